"""Weights that the course's own recipes trained; README.md beside this file tells how."""

from .. import pretrained
from ..pretrained.loading import OWN, Loaded

SCATTERED = OWN["scattered"]


def load(name: str) -> Loaded:
    """Load the course's weights "photos" (of ten things) or "scattered" (digits among fragments).

    With .model, .classes, .preprocess and .measured; ValueError for another name.
    """
    if name not in OWN:
        raise ValueError(f"{name!r}: the course's own weights are {' and '.join(map(repr, OWN))}")
    return pretrained.load(OWN[name])
