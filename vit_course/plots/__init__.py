"""Every drawing that more than one lesson needs. matplotlib is imported only when one is called.

Each function draws on the axes that it is given, or on a new figure, and returns nothing: in a
notebook the figure then shows itself. One colour stands for one idea everywhere (`colours`).
"""

from .close_ups import (
    bytes_in_order,
    maps_below,
    maps_beside,
    opened,
    outlined,
    pictures,
    pixel_numbers,
)
from .colours import INK, QUERY
from .figures import NAMED, curves, dots, mark_patches, matrices, matrix, picture, sharp
from .learning import (
    all_gaps,
    answer_bars,
    backward_pass,
    compared,
    downhill,
    drawing_and_answer,
    keepsake,
    live_training,
    seed_runs,
    valley,
)
from .lookup import (
    heads_at_work,
    possible_blends,
    qkv_product,
    soft_lookup,
    three_roles,
    turning_query,
)
from .patches import (
    answer_map,
    cut_in_a_row,
    memory_row,
    sliding,
    split_and_merge,
    template_grid,
    template_products,
)
from .positions import clock_faces, likeness_by_distance, lines_alike, position_maps, token_sum
from .published import alarms, few_labels, name_lines, proofs, slip_costs
from .road import STAGES, course_map, forward_path
from .roles import heads_cut, paths, qkv_rows, same_patch
from .saving import merged_photo, merging, step_memory
from .scores import (
    attention_layer,
    attention_shapes,
    heads_of_c,
    hidden_keys,
    scale_runs,
    stored,
    weight_bars,
    whole_table,
)
from .stream import (
    bends,
    canvases,
    edge_points,
    norm_bars,
    norm_places,
    number_field,
    parameter_bars,
    reading,
    residual_road,
)
