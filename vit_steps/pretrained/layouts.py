"""Whose names a checkpoint's tensors have, and what we call them."""

import csv
import re
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
HUGGING_FACE = LAYOUTS["Hugging Face"]


def recognise(tensors: dict[str, Tensor], head: bool) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Tell whose names these are, and for each of our tensors the names of theirs that make it.

    ValueError where they are nobody's, or of a model with other pieces; a head counts if asked for.
    """
    firsts = {c: their_names(table, depth=1).values() for c, table in LAYOUTS.items()}
    column = max(LAYOUTS, key=lambda c: sum(names[0] in tensors for names in firsts[c]))
    table = LAYOUTS[column]
    if not tensors.keys() & {table["patch_embed.proj.weight"], table["patch_embed.proj.bias"]}:
        names = shorten(", ".join(tensors), 200)
        raise ValueError(f"it is in no layout that is known ({', '.join(LAYOUTS)}): {names}")
    if head and not tensors.keys() & {table["head.weight"], table["head.bias"]}:
        raise ValueError("it has no head; give num_classes for a new, untrained one, or 0")
    block = re.escape(table["blocks.#.norm1.bias"].split("#")[0]) + r"(\d{1,4})[./]"
    numbers = [int(match[1]) for name in tensors if (match := re.match(block, name))]
    names = their_names(table, depth=1 + max(numbers, default=-1))
    biases = [ours for ours in names if ours.endswith("qkv.bias")]
    absent = [] if head else ["head.weight", "head.bias"]
    if not any(theirs in tensors for ours in biases for theirs in names[ours]):
        absent += biases
    names = {ours: theirs for ours, theirs in names.items() if ours not in absent}
    expected = {theirs for group in names.values() for theirs in group}
    problems = {"missing": expected - tensors.keys(), "not ours": tensors.keys() - expected}
    if texts := [f"{name}: {', '.join(sorted(some))}" for name, some in problems.items() if some]:
        raise ValueError(
            f"it does not fit our ViT; {shorten('; '.join(texts), 400)}. We have no place for a "
            "distilled DeiT's second token, registers and LayerScale (DINOv2), relative positions "
            "(BEiT, Swin), more norms (CLIP, a mean's fc_norm) and a decoder (MAE)"
        )
    return column.split(" (")[0], names


def their_names(table: dict[str, str], depth: int) -> dict[str, tuple[str, ...]]:
    """Give for each of our tensors the names of theirs that make it: one, or three for q, k and v.

    The table is such as `HUGGING_FACE`, the depth is L, the number of blocks.
    """
    names = {}
    for ours, theirs in table.items():
        for block in map(str, range(depth if "#" in ours else 1)):
            thirds = ("query", "key", "value") if "{}" in theirs else ("",)
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
        stacked = torch.cat(parts) if len(parts) > 1 else parts[0]
        # A copy: the file may change or go while the model lives.
        weights[ours] = stacked.to(torch.float32, copy=True).contiguous()
    return weights
