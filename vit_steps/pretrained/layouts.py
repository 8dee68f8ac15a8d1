"""Whose names a checkpoint's tensors have, and what we call them."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten

import torch
from einops import rearrange
from torch import Tensor

# One row for each of our tensors, one column for each layout's names. # is the number of a block,
# and {} is query, key and value, whose rows stand below one another in our qkv.
with Path(__file__).with_name("layouts.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
OURS, *COLUMNS, AXES = ROWS[0]  # the titles: our name, each layout, and how axes stand in Google's
LAYOUTS = {column: {row[OURS]: row[column] for row in ROWS} for column in COLUMNS}
LAYOUTS["vit_steps"] = {row[OURS]: row[OURS] for row in ROWS}
HUGGING_FACE = LAYOUTS["Hugging Face"]
with Path(__file__).with_name("families.csv").open(encoding="utf-8") as file:
    FAMILIES = list(csv.DictReader(file))  # models of another make, by what only their names have
HEAD = re.compile(r"(head|heads|classifier|fc)(\.\w+)?\.(weight|bias)")  # alone, in a Sequential
HEADS = ("head", "classifier", "pre_logits", "fc.")  # how names of a head begin, in every layout
CHOSEN = ("base_encoder.", "teacher.", "encoder_q.")  # of several ViTs in a file, that to be used


def check_family(names: Iterable[str]) -> None:
    """Refuse, by what it is, a model whose tensors' names show that it is no plain ViT."""
    listed = "\n".join(names)
    for row in FAMILIES:
        if re.search(row["sign"], listed, re.MULTILINE):
            problem = f"it is {row['family']}; ours is the plain ViT"
            raise ValueError(f"{problem}: open it by the library that wrote it")


def recognise(
    tensors: dict[str, Tensor], head: bool
) -> tuple[str, str, dict[str, tuple[str, ...]]]:
    """Tell whose names these are, what stands before them, and which of theirs make each of ours.

    What a model stands in, such as "module.", is passed over, with all outside it but the head.
    ValueError where they are nobody's, or of a model with other pieces; a head counts if asked for.
    """
    column, prefix = _find_layout(tensors)
    table = LAYOUTS[column]
    block = re.escape(prefix + table["blocks.#.norm1.bias"].split("#")[0]) + r"(\d{1,4})[./]"
    numbers = [int(match[1]) for name in tensors if (match := re.match(block, name))]
    names = {
        ours: tuple(prefix + name for name in theirs)
        for ours, theirs in their_names(table, depth=1 + max(numbers, default=-1)).items()
    }
    biases = [ours for ours in names if ours.endswith("qkv.bias")]
    if not any(theirs in tensors for ours in biases for theirs in names[ours]):
        names = {ours: theirs for ours, theirs in names.items() if ours not in biases}
    heads = {ours: names.pop(ours) for ours in ("head.weight", "head.bias")}
    if head and not any(theirs in tensors for (theirs,) in heads.values()):
        heads = _other_head(tensors, prefix)
    names |= heads if head else {}
    expected = {theirs for group in names.values() for theirs in group}

    def is_spare(name: str) -> bool:
        """Tell what no answer needs, and what stands outside the model."""
        own = name.removeprefix(prefix)
        spare = "pooler." in own or own.endswith("mask_token") or not name.startswith(prefix)
        return spare or (not head and own.startswith(HEADS))

    others = {name for name in tensors.keys() - expected if not is_spare(name)}
    problems = {"missing": expected - tensors.keys(), "not ours": others}
    if texts := [f"{name}: {', '.join(sorted(some))}" for name, some in problems.items() if some]:
        raise ValueError(
            f"it does not hold a ViT of vit_steps; {shorten('; '.join(texts), 400)}. We have no "
            "place for other pieces, and can do without none but the biases of q, k and v"
        )
    if head and not heads:
        raise ValueError("it has no head; give num_classes for a new, untrained one, or 0")
    return column, prefix, names


def _find_layout(tensors: dict[str, Tensor]) -> tuple[str, str]:
    """Find the column that has the most of these names, and what stands before each of them."""
    scores = {}
    for column, table in LAYOUTS.items():
        firsts = [names[0] for names in their_names(table, depth=1).values()]
        ends = [table[f"patch_embed.proj.{kind}"] for kind in ("weight", "bias")]
        for prefix in {n.removesuffix(end) for end in ends for n in tensors if n.endswith(end)}:
            if not prefix or prefix.endswith((".", "/")):
                count = sum(prefix + name in tensors for name in firsts)
                scores[column, prefix] = count, any(word in prefix for word in CHOSEN)
    if scores:
        best = max(scores, key=lambda key: (*scores[key], -len(key[1])))
        rivals = [key[1] for key in scores if key[0] == best[0] and scores[key] == scores[best]]
        if len(rivals) > 1:
            raise ValueError(f"it holds several ViTs ({', '.join(sorted(rivals))}); save one alone")
        return best
    if (kernels := sum(tensor.ndim == 4 for tensor in tensors.values())) > 2:
        raise ValueError(f"it is a convolutional network, no ViT: {kernels} of its tensors are 4-D")
    listed = shorten(", ".join(tensors), 200)
    raise ValueError(f"it is in no layout that is known ({', '.join(LAYOUTS)}): {listed}")


def _other_head(tensors: dict[str, Tensor], prefix: str) -> dict[str, tuple[str, ...]]:
    """Find the one Linear of a head under another name, in the model or around it; {} if none."""
    parts = prefix.split(".")
    around = [".".join([*parts[:depth], ""]) for depth in range(len(parts))]
    places = {
        name.rpartition(".")[0]
        for name in tensors
        if any(HEAD.fullmatch(name.removeprefix(place)) for place in around)
    }
    if len(places) > 1:
        listed = ", ".join(sorted(places))
        raise ValueError(f"its head has several layers ({listed}); give num_classes, or 0 for none")
    return {f"head.{kind}": (f"{place}.{kind}",) for place in places for kind in ("weight", "bias")}


def their_names(table: dict[str, str], depth: int) -> dict[str, tuple[str, ...]]:
    """Give for each of our tensors the names of theirs that make it: one, or three for q, k and v.

    The table is such as `HUGGING_FACE`, the depth is L, the number of blocks.
    """
    names = {}
    for ours, theirs in table.items():
        for block in map(str, range(depth if "#" in ours else 1)):
            thirds = ("query", "key", "value") if "{}" in theirs else ("",)
            thirds = ("q", "k", "v") if "{}_proj" in theirs else thirds
            in_block = theirs.replace("#", block)
            names[ours.replace("#", block)] = tuple(in_block.format(third) for third in thirds)
    return names


def from_flax(name: str, tensor: Tensor) -> Tensor:
    """Turn one of Google's tensors, where heads have their own axis; the name is ours for it."""
    axes = {row[OURS]: row[AXES] for row in ROWS}[re.sub(r"\.\d+\.", ".#.", name)]
    fits = axes and tensor.ndim == len(axes.split("->")[0].split())
    return rearrange(tensor, axes) if fits else tensor


def rename(
    tensors: dict[str, Tensor], names: dict[str, tuple[str, ...]], flax: bool = False
) -> dict[str, Tensor]:
    """Put their tensors under our names, in 32 bits, by `their_names`; Google's by `from_flax`."""
    weights = {}
    for ours, theirs in names.items():
        parts = [from_flax(ours, tensors[name]) if flax else tensors[name] for name in theirs]
        if len({part.shape for part in parts}) > 1 or parts[0].ndim == 0:
            shapes = ", ".join(f"{name} {tuple(tensors[name].shape)}" for name in theirs)
            raise ValueError(f"shapes that do not belong together: {shapes}")
        # `cat` copies even one: the file may change or go while the model lives.
        weights[ours] = torch.cat(parts).float().contiguous()
    return weights
