"""Functions of torch by their names, as the doctor hears of them, and what they are given."""

from typing import Any

from torch import Tensor

# They move the numbers of a tensor, and change none.
MOVES = (
    *("view", "reshape", "permute", "transpose", "contiguous", "chunk", "unbind", "split", "to"),
    *("unflatten", "flatten", "squeeze", "unsqueeze", "movedim", "swapaxes", "swapdims", "float"),
    *("double", "type_as", "clone", "expand", "expand_as", "repeat", "tensor_split", "narrow"),
    *("select", "__getitem__", "__get__", "broadcast_to", "tile", "view_as", "reshape_as"),
    *("repeat_interleave", "index_select", "moveaxis", "ravel"),
)
JOINS = ("cat", "concat", "concatenate", "stack", "vstack", "hstack", "row_stack")
TIMES = ("mul", "mul_", "multiply", "__mul__", "__rmul__", "__imul__")
OVER = ("div", "div_", "true_divide", "divide", "__truediv__", "__itruediv__", "__div__")
PLUS = ("add", "add_", "__add__", "__radd__", "__iadd__")
MINUS = ("sub", "sub_", "subtract", "__sub__", "__isub__")
MASKS = ("masked_fill", "masked_fill_", "where")
DROPOUT = ("dropout", "dropout_")
PRODUCTS = ("matmul", "bmm", "mm", "__matmul__", "einsum")
MAPS = (*PRODUCTS, "linear", "conv1d", "conv2d", "conv3d", "multi_head_attention_forward")
NORMS = ("layer_norm", "rms_norm", "normalize")
# They take tokens, and change their numbers.
TAKES = (*PLUS, *DROPOUT, *MAPS, *NORMS, *JOINS)
ACTIVATIONS = (
    *("relu", "relu_", "gelu", "silu", "silu_", "mish", "elu", "elu_", "leaky_relu", "hardswish"),
    *("sigmoid", "tanh", "softplus", "relu6", "selu"),
)
MADE = (
    *("zeros", "ones", "full", "empty", "eye", "arange", "linspace", "tensor", "as_tensor"),
    *("rand", "randn", "randint", "randperm", "from_numpy", "tril_indices", "triu_indices"),
)
# Where tensors on two devices raise an error.
MEET = (
    *(*TIMES, *OVER, *PLUS, *MINUS, *MASKS, *PRODUCTS, "__rsub__"),
    *("cat", "concat", "stack", "linear", "conv2d", "layer_norm", "embedding"),
    "scaled_dot_product_attention",
)


def tensors_in(args: Any, kwargs: Any) -> list[Tensor]:
    """List the tensors among a function's arguments, also in its lists and tuples, in order."""
    values = [*args, *kwargs.values()]
    flat = [x for v in values for x in (v if isinstance(v, (tuple, list)) else (v,))]
    return [x for x in flat if isinstance(x, Tensor)]
