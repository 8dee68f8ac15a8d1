"""The checks: each looks for one fault, says what it measures, and when that is a finding.

A new finding is one function, named like it, in the file of its subject and in the tuple at that
file's end: it takes a `Patient`, and returns a `Finding` or raises `SoundError`, as by `only_if`;
the docstring says what it measures.
tests/sick.py gets a model that has the fault, tests/sound.py one that comes near it.
"""

from .inside_blocks import INSIDE
from .mixing import MIXING
from .norms import NORMS
from .output import OUTPUT, another_dtype, device_fixed
from .parameters import PARAMETERS
from .pixels import PIXELS, no_positions
from .residuals import RESIDUALS
from .starts import STARTS, bias_large, eps_large
from .training import TRAINING

__all__ = ["CHECKS"]

# In the order of the report. The last two come last: another_dtype leaves the model in float64, if
# it can do that, and there no_positions is measured.
CHECKS = (
    *(*OUTPUT, *PIXELS, *PARAMETERS, *STARTS, *INSIDE, *MIXING, *NORMS, *RESIDUALS),
    *(bias_large, eps_large, *TRAINING, device_fixed, another_dtype, no_positions),
)
