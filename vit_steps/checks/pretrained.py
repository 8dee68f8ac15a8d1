"""Exercises of lesson 09."""

import re

import torch
from einops import rearrange
from torch import Tensor, nn

from .engine import Check, Mistake, Trial, call

PIECES = {
    "ln_1": "norm1",
    "self_attention.in_proj_": "attn.qkv.",
    "self_attention.out_proj": "attn.proj",
    "ln_2": "norm2",
    "mlp.0": "mlp.fc1",
    "mlp.3": "mlp.fc2",
}
ENDS = {
    "class_token": "tokens.cls_token",
    "encoder.pos_embedding": "tokens.pos_embed",
    "conv_proj": "patch_embed.proj",
    "encoder.ln": "norm",
    "heads.head": "head",
}


def translated(
    name: str, pieces: dict[str, str] = PIECES, ends: dict[str, str] = ENDS, digits: str = r"\d+"
) -> str:
    """Torchvision's name as ours; the options make the known mistakes."""
    found = re.match(rf"encoder\.layers\.encoder_layer_({digits})\d*\.(.*)", name)
    table, start, rest = ends, "", name
    if found:
        table, start, rest = pieces, f"blocks.{found[1]}.", found[2]
    for theirs, ours in table.items():
        if rest.startswith(theirs):
            return start + ours + rest.removeprefix(theirs)
    return start + rest


def names(what: str, *given: str) -> Trial:
    """The names one by one; a text each."""

    def run(answer):
        results = [answer(name) for name in given]
        return next((result for result in results if result is None), results)

    return Trial(what, run)


BLOCK = "encoder.layers.encoder_layer_"
torchvision_name = Check(
    reference=translated,
    trials=[
        names("a Linear of block 0", f"{BLOCK}0.self_attention.out_proj.weight"),
        names(
            "the names inside block 3",
            f"{BLOCK}3.ln_1.weight",
            f"{BLOCK}3.ln_2.bias",
            f"{BLOCK}3.mlp.0.weight",
            f"{BLOCK}3.mlp.3.bias",
            f"{BLOCK}3.self_attention.in_proj_weight",
            f"{BLOCK}3.self_attention.in_proj_bias",
        ),
        names("block 11", f"{BLOCK}11.ln_1.bias", f"{BLOCK}11.mlp.3.weight"),
        names(
            "the names outside the blocks",
            "class_token",
            "encoder.pos_embedding",
            "conv_proj.weight",
            "encoder.ln.bias",
            "heads.head.weight",
        ),
    ],
    mistakes=[
        Mistake(
            "in_proj_weight has an underscore where we have a dot: attn.qkv.weight",
            lambda n: translated(n, PIECES | {"self_attention.in_proj_": "attn.qkv_"}),
        ),
        Mistake(
            "mlp.3 is the second Linear, fc2: in torchvision 1 and 2 are the GELU and a dropout",
            lambda n: translated(n, PIECES | {"mlp.0": "mlp.fc0", "mlp.3": "mlp.fc3"}),
        ),
        Mistake(
            "the norms of a block are called norm1 and norm2 here, not norm_1 and norm_2",
            lambda n: translated(n, PIECES | {"ln_1": "norm_1", "ln_2": "norm_2"}),
        ),
        Mistake(
            "a block's number may have two digits: block 11 becomes blocks.1",
            lambda n: translated(n, digits=r"\d"),
        ),
        Mistake(
            "cls and positions live in tokens: tokens.cls_token, tokens.pos_embed",
            lambda n: translated(
                n, ends=ENDS | {"class_token": "cls_token", "encoder.pos_embedding": "pos_embed"}
            ),
        ),
    ],
)


def stacked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Google's kernels (D, h, d) as our qkv weight (3·D, D)."""
    return torch.cat([rearrange(kernel, "i h d -> (h d) i") for kernel in (query, key, value)])


def by_pattern(pattern: str):
    """A wrong answer: the kernels stacked and rearranged in another order."""
    return lambda q, k, v: rearrange(torch.stack([q, k, v]), pattern)


def kernels(width: int, heads: int) -> Trial:
    drawn = torch.randn(3, width, heads, width // heads, generator=torch.Generator().manual_seed(0))
    return call(f"kernels of width {width} with {heads} heads", *drawn)


google_qkv = Check(
    reference=stacked,
    trials=[kernels(4, 2), kernels(12, 3), kernels(8, 1)],
    mistakes=[
        Mistake(
            "this is (D, 3·D): Google multiplies x @ kernel, inputs first; torch's Linear keeps "
            "outputs first, so transpose",
            by_pattern("q i h d -> i (q h d)"),
        ),
        Mistake(
            "the shape is right by a reshape that mixes inputs and outputs: put the input axis "
            "last first (permute or transpose), then flatten the others",
            lambda q, k, v: torch.cat([kernel.reshape(len(q), len(q)) for kernel in (q, k, v)]),
        ),
        Mistake(
            "the rows stand head by head, each with its q, k and v: ours are (qkv h d), all "
            "queries first",
            by_pattern("q i h d -> (h q d) i"),
        ),
        Mistake(
            "this is the order (h d qkv), a published mistake: it loads, and the logits are wrong",
            by_pattern("q i h d -> (h d q) i"),
        ),
        Mistake(
            "within q, k and v the rows are (d h); the head counts slowest: (h d)",
            by_pattern("q i h d -> (q d h) i"),
        ),
        Mistake(
            "keys stand before queries; the order is query, key, value",
            lambda q, k, v: stacked(k, q, v),
        ),
    ],
)


def audited(weights: dict[str, Tensor], model: nn.Module) -> tuple[list, list, list]:
    """Names that are missing, left over, and of a wrong shape, each list sorted."""
    own = model.state_dict()
    wrong = [n for n in own if n in weights and own[n].shape != weights[n].shape]
    return sorted(own.keys() - weights), sorted(weights.keys() - own), sorted(wrong)


def as_lists(result):
    """Any collections of names as sorted lists, so that sets and orders count as right."""
    if isinstance(result, (tuple, list)) and len(result) == 3 and ... not in result:
        good = all(isinstance(part, (list, tuple, set, frozenset)) for part in result)
        return [" ".join(sorted(map(str, part))) for part in result] if good else result
    return result


def audit(what: str, **changes: Tensor | None) -> Trial:
    """A checkpoint of two Linears with tensors changed, or taken out by None."""

    def run(answer):
        model = nn.ModuleDict({"fc1": nn.Linear(3, 4), "fc2": nn.Linear(4, 3)})
        weights = model.state_dict() | {n.replace("__", "."): t for n, t in changes.items()}
        return as_lists(answer({n: t for n, t in weights.items() if t is not None}, model))

    return Trial(what, run)


def shapes_by_count(weights, model):
    missing, extra, _ = audited(weights, model)
    own = model.state_dict()
    return missing, extra, [n for n in own if n in weights and own[n].numel() != weights[n].numel()]


def with_absent_ones(weights, model):
    missing, extra, wrong = audited(weights, model)
    return missing, extra, sorted({*wrong, *missing})


def swapped(weights, model):
    missing, extra, wrong = audited(weights, model)
    return extra, missing, wrong


audit_weights = Check(
    reference=audited,
    trials=[
        audit("a checkpoint that fits"),
        audit("a checkpoint without fc2.bias", fc2__bias=None),
        audit("a checkpoint with a pooler", pooler__weight=torch.zeros(2, 2)),
        audit("a bias of 5 where 4 are expected", fc1__bias=torch.zeros(5)),
        audit("a weight that was not transposed", fc1__weight=torch.zeros(3, 4)),
        audit("a bias under another name", fc1__bias=None, fc1__b=torch.zeros(4), fc2__bias=None),
    ],
    mistakes=[
        Mistake(
            "missing and left over are swapped: missing is what the model asks for and the "
            "checkpoint has not",
            swapped,
        ),
        Mistake(
            "a transposed weight has as many numbers and another shape: compare the shapes",
            shapes_by_count,
        ),
        Mistake(
            "shapes are never compared: the third list stays empty",
            lambda weights, model: (*audited(weights, model)[:2], []),
        ),
        Mistake(
            "a tensor that is missing has no shape at all: it belongs in the first list only",
            with_absent_ones,
        ),
        Mistake(
            "you look at what the model asks for only: what is left over in the checkpoint goes "
            "unseen, as with load_state_dict(strict=False)",
            lambda weights, model: (audited(weights, model)[0], [], audited(weights, model)[2]),
        ),
    ],
)
