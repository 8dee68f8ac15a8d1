"""Every drawing that more than one lesson needs. matplotlib is imported only when one is called.

Each function draws on the axes that it is given, or on a new figure, and returns nothing: in a
notebook the figure then shows itself. One colour stands for one idea everywhere (Okabe and Ito's,
told apart by colour-blind eyes); attention weights use the map `cividis`.
"""

from .close_ups import (
    close_up,
    colour_channels,
    cuttings,
    pictures,
    template_grid,
    template_products,
)
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
    curves,
    dots,
    mark_patches,
    matrices,
    matrix,
    new_axes,
    picture,
    sharp,
)
from .learning import downhill, gaps, live_curve, seed_runs
from .positions import clock_faces, likeness_by_distance, token_sum
from .published import head_maps, name_lines, prepared
from .road import STAGES, course_map
from .roles import (
    heads_cut,
    possible_reads,
    qkv_rows,
    same_patch,
    soft_lookup,
    three_roles,
)
from .scores import attention_shapes, scale_runs
from .small_maps import maps_below, maps_beside
from .speed import batch_speeds, stored, time_ratios, token_costs, work_and_time
from .stream import bends, norm_places, reading, residual_road, silenced
from .whole_vit import canvases, drawing_read, parameter_bars

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
    "attention_shapes",
    "batch_speeds",
    "bends",
    "canvases",
    "clock_faces",
    "close_up",
    "colour_channels",
    "course_map",
    "curves",
    "cuttings",
    "dots",
    "downhill",
    "drawing_read",
    "gaps",
    "head_maps",
    "heads_cut",
    "likeness_by_distance",
    "live_curve",
    "maps_below",
    "maps_beside",
    "mark_patches",
    "matrices",
    "matrix",
    "name_lines",
    "new_axes",
    "norm_places",
    "parameter_bars",
    "picture",
    "pictures",
    "possible_reads",
    "prepared",
    "qkv_rows",
    "reading",
    "residual_road",
    "same_patch",
    "scale_runs",
    "seed_runs",
    "sharp",
    "silenced",
    "soft_lookup",
    "stored",
    "template_grid",
    "template_products",
    "three_roles",
    "time_ratios",
    "token_costs",
    "token_sum",
    "work_and_time",
]
