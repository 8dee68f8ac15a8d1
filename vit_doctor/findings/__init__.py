"""The checks: each looks for one fault, and says what it measures and when that is a finding."""

from .elsewhere import ELSEWHERE
from .inside import INSIDE
from .mixing import MIXING
from .norms import NORMS
from .outside import OUTSIDE, another_dtype
from .parameters import PARAMETERS
from .pixels import LAST, PIXELS
from .residuals import RESIDUALS
from .starts import STARTS

__all__ = ["CHECKS"]

# The last change the dtype of the model.
CHECKS = (
    *(*OUTSIDE, *PIXELS, *PARAMETERS, *INSIDE, *MIXING, *NORMS, *RESIDUALS, *STARTS),
    *(*ELSEWHERE, another_dtype, *LAST),
)
