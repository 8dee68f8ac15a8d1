"""What a model's parameters say: who learns, who is hidden, who is saved."""

from torch import Tensor

from ..patient import Patient, in_one_line, need, only_if
from ..report import Finding

NO_GRADIENTS = "no gradients could be measured"


def owner(p: Patient, name: str) -> str:
    """Give the path of a parameter's module, and the line of that module's forward."""
    return p.location(name.rpartition(".")[0])


def no_gradient(p: Patient) -> Finding:
    """Look for parameters that the logits do not depend on: no gradient, or zeros, in eval.

    No threshold. What is used in training alone gets a second chance, in training mode. Also rows
    of a linear map, 8 and a quarter of all side by side, as of the keys where they are fused.
    """
    learns = any(x.requires_grad for x in p.model.parameters())
    need(learns and p.logits is not None and not p.backward_error, NO_GRADIENTS)
    names = p.silent
    if names:
        total = sum(x.numel() for x in p.model.parameters())
        share = sum(p.model.get_parameter(n).numel() for n in names) / total
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return Finding(
            f"{', '.join(names[:3])}{more} ({share:.1%} of all weights) get no gradient",
            "they never learn: what they compute is thrown away, or detached; hand it on, or take "
            "them out",
            owner(p, names[0]),
        )
    name, (start, end) = next(iter(only_if(p.silent_rows).items()))
    return Finding(
        f"rows {start} to {end - 1} of {name} get no gradient, in {len(p.silent_rows)} weights",
        "what they compute is not used: of a fused map, the queries, keys or values",
        owner(p, name),
    )


def cls_unused(p: Patient) -> Finding:
    """Look for a token that joins the patches, or a parameter called cls, without a gradient.

    Mean pooling is sound: there cls still has an influence, through attention.
    """
    tokens = {meeting.name for meeting in p.watch.meetings if meeting.kind == "joined"}
    tokens |= {name for name, _ in p.model.named_parameters() if "cls" in name.split(".")[-1]}
    need(p.pixel_gradients, NO_GRADIENTS)
    need(tokens, "no token was seen to join the patches")
    unused = only_if(sorted(tokens & set(p.silent)))
    return Finding(
        f"{unused[0]} has no influence on the logits",
        "it takes part in nothing that the head reads; read x[:, 0], or leave it out",
        owner(p, unused[0]),
    )


def idle_block(p: Patient) -> Finding:
    """Look for blocks of a list that hand on their input to the last bit, or reach no logits."""
    need(p.blocks, "no list of blocks was seen")
    idle = only_if([path for path, has_influence in p.blocks.items() if not has_influence])
    return Finding(
        f"{len(idle)} of {len(p.blocks)} blocks change nothing: {', '.join(idle[:3])}",
        "their output is not used; they cost time, and do not learn. Hand it on: x = block(x), or "
        "the first of what the block gives",
        p.location(idle[0]),
    )


def hidden(p: Patient) -> Finding:
    """Look for leaves that want a gradient, and are not among parameters(); no threshold."""
    names = only_if([name for name, x in p.stray_tensors if x.is_leaf and x.requires_grad])
    return Finding(
        f"{len(names)} tensors want a gradient and are not in parameters(): {names[0]}",
        "no optimizer trains them, no checkpoint saves them, .to(device) leaves them; use "
        "nn.Parameter, nn.ModuleList",
        names[0],
    )


def not_saved(p: Patient) -> Finding:
    """Look for tensors that are used, look drawn at random, and are not in state_dict().

    Such are 64 and more floats whose neighbours have a correlation below 0.2 in every direction; a
    table of sines, or a mask, is made the same again and is sound.
    """
    try:
        saved = p.model.state_dict()
        p.model.load_state_dict(saved)
    except Exception as error:
        why = "a checkpoint of this model cannot be taken up again"
        return Finding(f"load_state_dict(state_dict()) raises {in_one_line(error)}", why)
    buffers = [(name, x) for name, x in p.model.named_buffers() if name not in saved]
    lost = [n for n, _ in p.model.named_parameters(remove_duplicate=False) if n not in saved]
    for name, x in (*p.stray_tensors, *buffers):
        if id(x) in p.watch.used_tensors and not x.requires_grad and looks_random(x):
            lost.append(name)
    only_if(lost)
    return Finding(
        f"{lost[0]} is used, looks drawn at random, and is not in state_dict()",
        "a model loaded from a checkpoint draws it anew, and gives other logits: make it an "
        "nn.Parameter, or register_buffer(name, x)",
        lost[0],
    )


def looks_random(x: Tensor) -> bool:
    """Tell whether neighbouring numbers have nothing to do with each other."""
    if not x.is_floating_point() or x.numel() < 64 or not x.isfinite().all() or x.std() == 0:
        return False
    if len(x.unique()) < x.numel() // 2:
        return False
    x = (x.float() - x.float().mean()) / x.float().std()
    long = [axis for axis in range(x.ndim) if x.shape[axis] >= 4]
    pairs = [(x.narrow(a, 1, x.shape[a] - 1), x.narrow(a, 0, x.shape[a] - 1)) for a in long]
    return all(float((a * b).mean().abs()) < 0.2 for a, b in pairs)
