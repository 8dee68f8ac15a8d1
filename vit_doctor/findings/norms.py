"""Where norms stand: before each branch of a block, before the head, and once."""

from typing import Any

import torch
from torch import nn

from ..patient import Patient
from ..report import Finding, Skipped
from ..watching.calls import Maps, Part, part, silenced, size
from ..watching.places import of_module

NO_BLOCKS = Skipped("no list of blocks of tokens was seen")


def blocks(p: Patient) -> list[tuple[str, nn.Module, Part]]:
    """The first block of each class that turns tokens into tokens, in evaluation by itself."""
    found: dict[type, tuple[str, nn.Module, Part]] = {}
    for path in p.blocks:
        module = p.model.get_submodule(path)
        given = part(module, p.calls.of.get(path))
        if given is not None:
            found.setdefault(type(module), (path, module, given))
    return list(found.values())


def maps_in(p: Patient, path: str) -> list[str]:
    """The weights of the linear maps in a module, by their names, as they are used."""
    return [name for name in p.maps.came if name.startswith(f"{path}.")]


def stream(p: Patient, path: str, given: Part) -> bool:
    """Whether a block hands its input on unchanged where its linear maps are silent (pre-norm)."""
    x, run = given
    x = 100 * x / max(float(x.std()), 1e-30)
    with torch.no_grad(), silenced(p.model, maps_in(p, path)):
        out = run(x)
    return float(torch.cosine_similarity(out.flatten(), x.flatten(), dim=0)) > 0.9 and (
        0.5 < size(out) / size(x) < 2
    )


def norm_missing(p: Patient) -> Finding | Skipped | None:
    """A hundred times larger tokens: no linear map of a pre-norm block may get larger input.

    Behind a norm the ratio is 1, without it 100; 30 is a finding, if what the block adds grows ten
    times too. A norm behind the branch is sound, and so is one behind the sum (post-norm); batch
    norms do not scale in eval, and blocks without any norm but with a gate are left alone.
    """
    if "random in eval" in p.found:
        return Skipped("the same tokens give something else each time")
    applies = False
    for path, module, given in blocks(p):
        norms = [name for name in p.norms if name.startswith(f"{path}.")]
        gates = [x for x in module.parameters() if x.numel() == 1]
        if batch_norms(module) or (gates and not norms) or not stream(p, path, given):
            continue
        x, run = given
        x = x / max(float(x.std()), 1e-30)
        came, added = [], []
        for scale in (100, 10_000):
            with torch.no_grad(), Maps(p.model) as found:
                added.append(size(run(x * scale) - x * scale))
            came.append(found.came)
        applies = True
        # Float32 leaves 1e-7 of the stream: an addition below 3e-5 of it is not compared.
        if added[1] < 0.3 or added[1] < 10 * added[0]:
            continue
        raw = [n for n in came[0] if came[1].get(n, 0) > 30 * came[0][n] > 0]
        if raw:
            ratio = came[1][raw[0]] / came[0][raw[0]]
            return Finding(
                "norm missing",
                f"tokens 100 times larger make the input of {raw[0]} {ratio:.0f} times larger; "
                "behind a norm it would be 1",
                "the stream grows from block to block, and the branch gets it raw: branch(norm(x))",
                of_module(module, path),
            )
    return None if applies else Skipped("no block without batch norms was seen to add to a stream")


def batch_norms(module: nn.Module) -> bool:
    """Whether there is a batch norm in a module."""
    return any("BatchNorm" in type(m).__name__ for m in module.modules())


def final_norm_missing(p: Patient) -> Finding | Skipped | None:
    """The last block's output, a hundred times larger: the next linear map's input must not grow.

    Only for blocks that have norms and add to a stream (pre-norm), of a model without batch norms;
    behind a norm the ratio is 1, without it 100; 30 is a finding.
    """
    last = next((path for path in reversed(p.calls.of) if path in p.blocks), None)
    given = None if last is None else part(p.model.get_submodule(last), p.calls.of.get(last))
    if last is None or given is None:
        return NO_BLOCKS
    block, inside = p.model.get_submodule(last), maps_in(p, last)
    normed = any(name.startswith(f"{last}.") for name in p.norms) and not batch_norms(p.model)
    if not normed or not stream(p, last, given) or "random in eval" in p.found:
        return Skipped("the blocks are not pre-norm, or batch norms keep it from being told")
    handle = block.register_forward_hook(lambda _, __, output: louder(output))
    with Maps(p.model) as found:
        p.ask(p.some)
    handle.remove()
    order = list(found.came)
    name = next(iter(order[order.index(inside[-1]) + 1 :]), "") if inside else ""
    if not name:
        return Skipped("no linear map was seen behind the blocks")
    ratio = found.came[name] / max(p.maps.came[name], 1e-30)
    if ratio < 30:
        return None
    return Finding(
        "final norm missing",
        f"a last block's output 100 times larger makes the input of {name} {ratio:.0f} times "
        "larger; behind a norm it would be 1",
        "the stream grows with each block, and the head gets it raw: head(norm(x))",
        name,
    )


def louder(output: Any) -> Any:
    """What a block gives, its tokens a hundred times larger."""
    if isinstance(output, (tuple, list)):
        return type(output)((output[0] * 100, *output[1:]))
    return output * 100


def norm_unused(p: Patient) -> Finding | Skipped | None:
    """A norm whose output has no influence on the logits, while what holds the norm has; exactly.

    A norm that is used in training alone gets a gradient there, and is sound.
    """
    if p.pixels is None or not p.norms:
        return Skipped("no norm was seen, or no gradient reaches the images")
    for path, heard in p.calls.heard.items():
        if path not in p.norms or heard:
            continue
        norm = p.model.get_submodule(path)
        holder = path.rpartition(".")[0]
        while holder and holder not in p.calls.heard:
            holder = holder.rpartition(".")[0]
        own = [f"{path}.{n}" for n, x in norm.named_parameters() if x.requires_grad]
        if not p.calls.heard.get(holder, True):
            continue
        if all(name in p.silent for name in own):
            return Finding(
                "norm unused",
                f"{path} is called, and its output has no influence on the logits",
                "it is thrown away, as in x2 = norm(x); x2 = gelu(x): hand it on",
                of_module(p.model.get_submodule(holder), holder),
            )
    return None


def norm_twice(p: Patient) -> Finding | Skipped | None:
    """A norm that is given another one's output, both in one block or one holder; exactly.

    A norm around the blocks may follow or precede one of theirs, as in torch's Transformer.
    """
    for second, one in p.calls.fed:
        if not {one, second} <= p.norms or second.startswith(f"{one}."):
            continue
        holders = [path.rpartition(".")[0] for path in (one, second)]
        places = [[b for b in p.blocks if f"{path}.".startswith(f"{b}.")] for path in holders]
        if (places[0] and places[0] == places[1]) or holders[0] == holders[1]:
            names = f"{one} is applied twice" if one == second else f"{second} is given what {one}"
            return Finding(
                "norm twice",
                f"{names}{'' if one == second else ' gives'}, with nothing in between",
                "the second changes nothing at the start, and its weights repeat the first's: take "
                "one out",
                of_module(p.model.get_submodule(holders[1]), holders[1]),
            )
    return None if p.calls.of else NO_BLOCKS


NORMS = (norm_missing, final_norm_missing, norm_unused, norm_twice)
