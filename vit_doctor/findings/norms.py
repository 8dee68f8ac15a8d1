"""Where norms stand: before each branch of a block, before the head, and once."""

from typing import Any

import torch
from torch import nn

from ..patient import Patient, SoundError, need, only_if
from ..report import Finding
from ..watching.calls import LinearMaps, Runnable, rms, runnable, silenced

NO_BLOCKS = "no list of blocks of tokens was seen"


def blocks(p: Patient) -> list[tuple[str, nn.Module, Runnable]]:
    """Give the first block of each class that turns tokens into tokens, and how to run it alone."""
    by_type: dict[type, tuple[str, nn.Module, Runnable]] = {}
    for path in p.blocks:
        module = p.model.get_submodule(path)
        alone = runnable(module, p.calls.first.get(path))
        if alone is not None:
            by_type.setdefault(type(module), (path, module, alone))
    return list(by_type.values())


def maps_in(p: Patient, path: str) -> list[str]:
    """List the weights of the linear maps in a module by their names, in the order of their use."""
    return [name for name in p.maps.input_sizes if name.startswith(f"{path}.")]


def adds_to_stream(p: Patient, path: str, block: Runnable) -> bool:
    """Tell whether a block hands its input on where its linear maps are silent (pre-norm)."""
    tokens, run = block
    tokens = 100 * tokens / max(float(tokens.std()), 1e-30)
    with torch.no_grad(), silenced(p.model, maps_in(p, path)):
        output = run(tokens)
    direction = float(torch.cosine_similarity(output.flatten(), tokens.flatten(), dim=0))
    return direction > 0.9 and 0.5 < rms(output) / rms(tokens) < 2


def norm_missing(p: Patient) -> Finding:
    """Make tokens a hundred times larger: no linear map of a pre-norm block may get larger input.

    Behind a norm the ratio is 1, without it 100; 30 is a finding, if what the block adds grows ten
    times too. A norm behind the branch is sound, and so is one behind the sum (post-norm); batch
    norms do not scale in eval, and blocks without any norm but with a gate are left alone.
    """
    need("random in eval" not in p.found_names, "the same tokens give something else each time")
    pre_norm = []
    for path, module, block in blocks(p):
        norms = any(name.startswith(f"{path}.") for name in p.norms)
        gates = any(x.numel() == 1 for x in module.parameters())
        judged = (norms or not gates) and not has_batch_norm(module)
        if judged and adds_to_stream(p, path, block):
            pre_norm.append((path, block))
    need(pre_norm, "no block without batch norms was seen to add to a stream")
    for path, (tokens, run) in pre_norm:
        tokens = tokens / max(float(tokens.std()), 1e-30)
        inputs, additions = [], []
        for scale in (100, 10_000):
            with torch.no_grad(), LinearMaps(p.model) as maps:
                additions.append(rms(run(tokens * scale) - tokens * scale))
            inputs.append(maps.input_sizes)
        # Float32 leaves 1e-7 of the stream: an addition below 3e-5 of it is not compared.
        if additions[1] < 0.3 or additions[1] < 10 * additions[0]:
            continue
        before, after = inputs
        raw = [name for name in before if after.get(name, 0) > 30 * before[name] > 0]
        if raw:
            ratio = after[raw[0]] / before[raw[0]]
            return Finding(
                f"tokens 100 times larger make the input of {raw[0]} {ratio:.0f} times larger; "
                "behind a norm it would be 1",
                "the stream grows from block to block, and the branch gets it raw: branch(norm(x))",
                p.location(path),
            )
    raise SoundError


def has_batch_norm(module: nn.Module) -> bool:
    """Tell whether there is a batch norm in a module."""
    return any("BatchNorm" in type(m).__name__ for m in module.modules())


def final_norm_missing(p: Patient) -> Finding:
    """Make the last block's output a hundred times larger: the next linear map's input must not be.

    Only for blocks that have norms and add to a stream (pre-norm), of a model without batch norms;
    behind a norm the ratio is 1, without it 100; 30 is a finding. Of a block that is a ModuleList
    it is the last part's output, a share of the stream; there 3 is a finding.
    """
    last = next((path for path in reversed(p.calls.first) if path in p.blocks), "")
    block = p.model.get_submodule(last)
    alone = need(runnable(block, p.calls.first.get(last)) if last else None, NO_BLOCKS)
    holder = last.rpartition(".")[0]
    lists = [holder, holder.rpartition(".")[0]]
    part = all(n and isinstance(p.model.get_submodule(n), nn.ModuleList) for n in lists)
    normed = any(name.startswith(f"{holder if part else last}.") for name in p.norms)
    normed = normed and not has_batch_norm(p.model) and "random in eval" not in p.found_names
    pre_norm = normed and (part or adds_to_stream(p, last, alone))
    need(pre_norm, "the blocks are not pre-norm, or batch norms keep it from being told")
    handle = block.register_forward_hook(lambda _, __, output: louder(output))
    with LinearMaps(p.model) as maps:
        p.ask(p.sample)
    handle.remove()
    order, inside = list(maps.input_sizes), maps_in(p, last)
    behind = order[order.index(inside[-1]) + 1 :] if inside else []
    name = need(behind, "no linear map was seen behind the blocks")[0]
    ratio = maps.input_sizes[name] / max(p.maps.input_sizes[name], 1e-30)
    only_if(not ratio < (3 if part else 30))
    return Finding(
        f"a last block's output 100 times larger makes the input of {name} {ratio:.0f} times "
        "larger; behind a norm it would be 1",
        "the stream grows with each block, and the head gets it raw: head(norm(x))",
        name,
    )


def louder(output: Any) -> Any:
    """Give what a block gives, its tokens a hundred times larger."""
    several = isinstance(output, (tuple, list))
    return type(output)((output[0] * 100, *output[1:])) if several else output * 100


def norm_unused(p: Patient) -> Finding:
    """Look for a norm whose output does not count for the logits, in a part that does; exactly.

    A norm that is used in training alone gets a gradient there, and is sound.
    """
    applies = p.norms and p.pixel_gradients is not None
    need(applies, "no norm was seen, or no gradient reaches the images")
    counts = p.calls.has_influence
    for path in counts:
        if path not in p.norms or counts[path]:
            continue
        norm = p.model.get_submodule(path)
        holder = path.rpartition(".")[0]
        while holder and holder not in counts:
            holder = holder.rpartition(".")[0]
        names = [f"{path}.{n}" for n, x in norm.named_parameters() if x.requires_grad]
        if counts.get(holder, True) and all(name in p.silent for name in names):
            return Finding(
                f"{path} is called, and its output has no influence on the logits",
                "it is thrown away, as in x2 = norm(x); x2 = gelu(x): hand it on",
                p.location(holder),
            )
    raise SoundError


def norm_twice(p: Patient) -> Finding:
    """Look for a norm that is given another's output, both in one block or one holder; exactly.

    A norm around the blocks may follow or precede one of theirs, as in torch's Transformer.
    """
    for second, first in p.calls.chained:
        if not {first, second} <= p.norms or second.startswith(f"{first}."):
            continue
        holders = [path.rpartition(".")[0] for path in (first, second)]
        around = [[b for b in p.blocks if f"{path}.".startswith(f"{b}.")] for path in holders]
        if (around[0] and around[0] == around[1]) or holders[0] == holders[1]:
            twice = f"{first} is applied twice"
            pair = twice if first == second else f"{second} is given what {first} gives"
            return Finding(
                f"{pair}, with nothing in between",
                "the second changes nothing at the start, and its weights repeat the first's: take "
                "one out",
                p.location(holders[1]),
            )
    need(p.calls.first, NO_BLOCKS)
    raise SoundError
