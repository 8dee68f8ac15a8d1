"""What a model's parameters say: who learns, who is hidden, how large they start."""

import math

from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.places import of_module

SMALL = "nn.init.trunc_normal_(x, std=0.02)"  # the usual start
NO_GRADIENTS = Skipped("no gradients could be measured")
NOT_FRESH = Skipped("only for a model that is not trained yet")


def owner(p: Patient, name: str) -> str:
    """Where a parameter stands: the path of its module, and the line of that module's forward."""
    path = name.rpartition(".")[0]
    return of_module(p.model.get_submodule(path), path)


def no_gradient(p: Patient) -> Finding | Skipped | None:
    """Parameters that the logits do not depend on: no gradient, or zeros throughout, in eval.

    No threshold. What is used in training alone gets a second chance, in training mode. Also rows
    of a linear map, 8 and a quarter of all side by side, as of the keys where they are fused.
    """
    learn = any(x.requires_grad for x in p.model.parameters())
    if p.logits is None or p.backward or not learn:
        return NO_GRADIENTS
    names = p.silent
    if not names and p.rows:
        (name, (start, end)), *_ = p.rows.items()
        return Finding(
            "no gradient",
            f"rows {start} to {end - 1} of {name} get no gradient, in {len(p.rows)} weights",
            "what they compute is not used: of a fused map, the queries, keys or values",
            owner(p, name),
        )
    if not names:
        return None
    total = sum(x.numel() for x in p.model.parameters())
    share = sum(p.model.get_parameter(n).numel() for n in names) / total
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return Finding(
        "no gradient",
        f"{', '.join(names[:3])}{more} ({share:.1%} of all weights) get no gradient",
        "they never learn: what they compute is thrown away, or detached; hand it on, or take them "
        "out",
        owner(p, names[0]),
    )


def cls_unused(p: Patient) -> Finding | Skipped | None:
    """A token that joins the patches, or a parameter called cls, without a gradient.

    Mean pooling is sound: there cls still has an influence, through attention.
    """
    joined = {m.name for m in p.watch.meetings if m.how == "joined"}
    tokens = {n for n, _ in p.model.named_parameters() if "cls" in n.split(".")[-1]} | joined
    if p.pixels is None:
        return NO_GRADIENTS
    if not tokens:
        return Skipped("no token was seen to join the patches")
    unused = sorted(tokens & set(p.silent))
    if not unused:
        return None
    why = "it takes part in nothing that the head reads; read x[:, 0], or leave it out"
    return Finding(
        "cls unused", f"{unused[0]} has no influence on the logits", why, owner(p, unused[0])
    )


def idle_block(p: Patient) -> Finding | Skipped | None:
    """Blocks of a list whose output is their input to the last bit, or reaches no logits."""
    if p.logits is None or not p.blocks:
        return Skipped("no list of blocks was seen")
    idle = [path for path, acts in p.blocks.items() if not acts]
    if not idle:
        return None
    return Finding(
        "idle block",
        f"{len(idle)} of {len(p.blocks)} blocks change nothing: {', '.join(idle[:3])}",
        "their output is not used; they cost time, and do not learn. Hand it on: x = block(x), or "
        "the first of what the block gives",
        of_module(p.model.get_submodule(idle[0]), idle[0]),
    )


def hidden(p: Patient) -> Finding | Skipped | None:
    """Leaves that want a gradient, and are not among parameters(); no threshold."""
    names = [n for n, x in p.strays if x.is_leaf and x.requires_grad]
    if not names:
        return None
    return Finding(
        "hidden",
        f"{len(names)} tensors want a gradient and are not in parameters(): {names[0]}",
        "no optimizer trains them, no checkpoint saves them, .to(device) leaves them; use "
        "nn.Parameter, nn.ModuleList",
        names[0],
    )


def not_saved(p: Patient) -> Finding | Skipped | None:
    """Tensors that forward uses, that look drawn at random, and that state_dict() does not hold.

    Such are 64 and more floats whose neighbours have a correlation below 0.2 in every direction; a
    table of sines, or a mask, is made the same again and is sound.
    """
    try:
        saved = p.model.state_dict()
        p.model.load_state_dict(saved)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        why = "a checkpoint of this model cannot be taken up again"
        return Finding("not saved", f"load_state_dict(state_dict()) raises {text}", why)
    beside = [(n, b) for n, b in p.model.named_buffers() if n not in saved]
    lost = [n for n, _ in p.model.named_parameters(remove_duplicate=False) if n not in saved]
    for name, x in (*p.strays, *beside):
        if id(x) in p.watch.used and not x.requires_grad and looks_random(x):
            lost.append(name)
    if not lost:
        return None
    return Finding(
        "not saved",
        f"{lost[0]} is used, looks drawn at random, and is not in state_dict()",
        "a model loaded from a checkpoint draws it anew, and gives other logits: make it an "
        "nn.Parameter, or register_buffer(name, x)",
        lost[0],
    )


def looks_random(x: Tensor) -> bool:
    """Whether neighbouring numbers have nothing to do with each other."""
    if not x.is_floating_point() or x.numel() < 64 or not x.isfinite().all() or x.std() == 0:
        return False
    x = (x.float() - x.float().mean()) / x.float().std()
    long = [axis for axis in range(x.ndim) if x.shape[axis] >= 4]
    pairs = [(x.narrow(a, 1, x.shape[a] - 1), x.narrow(a, 0, x.shape[a] - 1)) for a in long]
    few = len(x.unique()) < x.numel() // 2
    return not few and all(float((a * b).mean().abs()) < 0.2 for a, b in pairs)


def initial_loss(p: Patient) -> Finding | Skipped | None:
    """Cross-entropy over all labels, against ln(classes), for a model that is not trained.

    Sound heads add 0 to 1 (half the variance of the logits); 3 and more is a finding.
    """
    if p.logits is None or p.logits.shape[1] < 2 or not p.fresh:
        return NOT_FRESH
    if any(isinstance(module, _BatchNorm) for module in p.model.modules()):
        return Skipped("batch norms make the first logits otherwise in training")
    loss = float((p.logits.float().logsumexp(1) - p.logits.float().mean(1)).mean())
    best = math.log(p.logits.shape[1])
    if not loss - best > 3:
        return None
    return Finding(
        "initial loss",
        f"the loss starts at {loss:.1f}; guessing gives ln {p.logits.shape[1]} = {best:.1f}",
        "the model starts sure of wrong answers, and first has to unlearn them: start the head "
        f"small, {SMALL}",
    )


def gains(p: Patient) -> list[tuple[str, float]]:
    """For each weight of a linear map, its standard deviation times √inputs; nn.Linear gives 0.58.

    The last one, the head's, may start as it likes.
    """
    names = list(p.maps.came)
    known = [n for n in names[:-1] if p.maps.width[n] in p.model.get_parameter(n).shape]
    return [(n, p.stds[n] * p.maps.width[n] ** 0.5) for n in known]


def weights_large(p: Patient) -> Finding | Skipped | None:
    """A Linear that makes its input 6 times as large, at the start; usual are 0.3 to 1.5."""
    if not p.fresh:
        return NOT_FRESH
    large = [(n, g) for n, g in gains(p) if g > 6]
    if not large:
        return None
    name, gain = max(large, key=lambda pair: pair[1])
    why = f"numbers explode, softmax saturates, and learning does not start: {SMALL}"
    measured = f"{name} makes its input {gain:.1f} times as large; usual is about 1"
    return Finding("weights large", measured, why, owner(p, name))


def weights_small(p: Patient) -> Finding | Skipped | None:
    """A Linear, not the head, that makes its input 1/200 as large at the start, yet not zero.

    Zero is a start that is meant; trunc_normal(0.02) at a width of 4 gives 0.04.
    """
    if not p.fresh:
        return NOT_FRESH
    small = [(n, g) for n, g in gains(p) if 0 < g < 0.005]
    if not small:
        return None
    name, gain = min(small, key=lambda pair: pair[1])
    why = f"what passes through it is lost beside the rest, and so are its gradients: {SMALL}"
    measured = f"{name} makes its input {gain:.1g} times as large; usual is about 1"
    return Finding("weights small", measured, why, owner(p, name))


def positions_large(p: Patient) -> Finding | Skipped | None:
    """Learned positions of 1.4 times the tokens' size and more, at the start, and above 0.4.

    Drawn with std 1 on patches of 0.58 (nn.Linear's) they are 1.7 times as large; std 1 behind a
    norm, 1.0, is in use and sound. Fixed sines are not looked at.
    """
    return against(p, "added", 1.4, "positions large", f"they drown the content: {SMALL}")


def positions_small(p: Patient) -> Finding | Skipped | None:
    """Learned positions a thousandth of the tokens' size, at the start, yet not zero.

    Positions of std 0.02 on tokens of size 1, the usual, are twenty times as large.
    """
    return against(
        p, "added", -1e-3, "positions small", f"the model hardly sees where a patch is: {SMALL}"
    )


def token_large(p: Patient) -> Finding | Skipped | None:
    """A token that joins the patches, 6 times their size at the start; 1.7 is in use."""
    return against(
        p, "joined", 6, "token large", f"attention looks at it, and at little else: {SMALL}"
    )


def against(p: Patient, how: str, limit: float, name: str, why: str) -> Finding | Skipped | None:
    """A parameter that meets tokens of another size; a limit below 0 is one from below."""
    met = [m for m in p.watch.meetings if m.how == how]
    if not p.fresh or not met:
        return NOT_FRESH if not p.fresh else Skipped(f"no parameter was seen to be {how}")
    for m in met:
        if how == "added" and m.alike:  # that is another fault: no positions
            continue
        own = p.woken.get(m.name, m.own)
        ratio = own / m.content if m.content else math.inf
        if (ratio > limit and own > 0.4) if limit > 0 else 0 < ratio < -limit:
            sizes = f"{own:.2g}, the tokens {m.content:.2g}"
            return Finding(name, f"{m.name} is {how}: its size is {sizes}", why, m.where)
    return None


PARAMETERS = (
    *(no_gradient, cls_unused, idle_block, hidden, not_saved, initial_loss),
    *(weights_large, weights_small, positions_large, positions_small, token_large),
)
