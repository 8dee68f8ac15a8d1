"""Every drawing that more than one lesson needs. matplotlib is imported only when one is called.

Each function draws on the axes that it is given, or on a new figure, and returns nothing: in a
notebook the figure then shows itself. One colour stands for one idea everywhere (Okabe and Ito's,
told apart by colour-blind eyes); attention weights use the map `cividis`.
"""

from .figures import (
    CLS,
    FAINT,
    INK,
    KEY,
    NAMED,
    PAPER,
    PATCH,
    POSITION,
    QUERY,
    STYLES,
    VALUE,
    WEIGHTS,
    lines,
    mark_patches,
    matrix,
    new_axes,
    over_photo,
    patch_grid,
    picture,
    sharp,
)
from .road import STAGES, course_map

__all__ = [
    "CLS",
    "FAINT",
    "INK",
    "KEY",
    "NAMED",
    "PAPER",
    "PATCH",
    "POSITION",
    "QUERY",
    "STAGES",
    "STYLES",
    "VALUE",
    "WEIGHTS",
    "course_map",
    "lines",
    "mark_patches",
    "matrix",
    "new_axes",
    "over_photo",
    "patch_grid",
    "picture",
    "sharp",
]
