"""Every one-line mutation of the core's forward passes and initialisers, and what the doctor says.

Each mutation (`rewriting` makes them) is run in a copy of the package that lives in memory, in
several forms of a small ViT, and examined in the first whose logits it changes.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from math import nan
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.rewriting import SOUND, Mutation
from vit_doctor import examine
from vit_steps import inputs

NAME = "vit_steps_mutated"  # of the copy, while it lives

# The package, mutated ----------------------------------------------------------------------------


@contextmanager
def package(mutation: Mutation | None = None) -> Iterator[dict[str, ModuleType]]:
    """A copy of the core with one mutation (None for none), which nothing is left of afterwards."""
    names = [NAME, f"{NAME}.inputs", *(f"{NAME}.{file}" for file in SOUND)]
    modules = {file: ModuleType(f"{NAME}.{file}") for file in SOUND}
    try:
        sys.modules.update(zip(names, [ModuleType(NAME), inputs, *modules.values()], strict=True))
        for file, module in modules.items():
            module.__package__ = NAME
            code = mutation.code if mutation and mutation.file == file else SOUND[file]
            exec(code, vars(module))
        yield modules
    finally:
        for name in names:
            sys.modules.pop(name, None)


# Each size another number, so that one that is taken for another shows.
SIZES = dict(image_size=32, patch_size=8, num_classes=10, embed_dim=128, depth=2)
SIZES |= dict(num_heads=4, mlp_ratio=2.0)
Modules = dict[str, ModuleType]


def fused(core: Modules, **options) -> Any:
    """As it ships, by fused attention."""
    sizes = {**SIZES, "dropout": 0.1, **options}
    return core["vit"].ViT(core["vit"].ViTConfig(**sizes))


def explicit(core: Modules) -> nn.Module:
    """By the equation, which gives the weights of attention too; the mean of the patches."""

    class Explicit(core["vit"].ViT):
        def forward(self, images: Tensor) -> tuple:
            return super().forward(images, return_attention=True)

    return Explicit(core["vit"].ViTConfig(**SIZES, dropout=0.1, pool="mean"))


def pieces(core: Modules) -> nn.Module:
    """Of the functions that the first lessons build: patchify and a Linear, heads split one by one,
    on an image that is not square."""
    model = fused(core, image_size=(16, 32))
    model.patch_embed = Patches(core, model.patch_embed.proj)
    for block in model.blocks:
        block.attn = Heads(core, block.attn)
    return model


class Patches(nn.Module):
    def __init__(self, core: Modules, conv: nn.Conv2d):
        super().__init__()
        self.cut = core["patches"].patchify
        self.proj = nn.Linear(3 * 64, 128)
        self.proj.weight = nn.Parameter(conv.weight.detach().permute(0, 2, 3, 1).flatten(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.proj(self.cut(images, 8))


class Heads(nn.Module):
    def __init__(self, core: Modules, attention: Any):
        super().__init__()
        self.split, self.merge = core["heads"].split_heads, core["heads"].merge_heads
        self.mix = core["attention"].scaled_dot_product_attention
        self.qkv, self.proj = attention.qkv, attention.proj

    def forward(self, x: Tensor, mask: None = None, return_attention: bool = False) -> Tensor:
        q, k, v = (self.split(part, 4) for part in self.qkv(x).chunk(3, -1))
        return self.proj(self.merge(self.mix(q, k, v)[0]))


FORMS: dict[str, Callable[[Modules], nn.Module]] = {
    form.__name__: form for form in (fused, explicit, pieces)
}


def made(core: Modules, form: str) -> nn.Module:
    """A fresh model of that form, from the same random state each time.

    Memory that nobody filled is NaN, rather than what happened to stand there.
    """
    empty = torch.empty
    torch.manual_seed(0)
    with patch("torch.empty", lambda *size, **options: empty(*size, **options).fill_(nan)):
        return FORMS[form](core)


def size_of(form: str) -> tuple[int, int]:
    """Of the images of a form."""
    return (16, 32) if form == "pieces" else (32, 32)


def logits_of(model: nn.Module, form: str) -> list[Tensor]:
    """Logits in float64, in eval mode and in training, of the model stirred.

    Biases of 0 and norms of 1 hide what is left out, as no trained ones do.
    """
    draw = torch.Generator().manual_seed(1)
    images = torch.randn(2, 3, *size_of(form), generator=draw, dtype=torch.float64)
    model, found = deepcopy(model).double(), []
    stir(model)
    for training in (False, True):
        torch.manual_seed(2)
        with torch.no_grad():
            output = model.train(training)(images)
        found.append(output[0] if isinstance(output, tuple) else output)
    return found


def stir(model: nn.Module) -> None:
    """Add noise to all biases and norms, to each of a name the same in every model."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                draw = torch.Generator().manual_seed(sum(map(ord, name)))
                p += torch.randn(p.shape, generator=draw).to(p) * 0.1


def moved(now: list[Tensor], sound: list[Tensor]) -> bool:
    """Whether any logits differ, by more than 1e-9 of their spread; another shape differs too."""
    return any(
        one.shape != two.shape or not float((one - two).abs().max()) <= 1e-9 * float(two.std())
        for one, two in zip(now, sound, strict=True)
    )


# The verdict -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation."""

    mutation: Mutation
    form: str = ""  # the first whose logits it changes in silence
    names: tuple[str, ...] = ()  # of the findings in that form
    error: str = ""  # that a form before it raises: the learner sees it


def look(chosen: Iterable[Mutation]) -> Iterator[Verdict]:
    """Run each mutation in all forms, up to one that raises or gives other logits; examine it."""
    with package() as core:
        sound = {form: logits_of(made(core, form), form) for form in FORMS}
    for mutation in chosen:
        with package(mutation) as core, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = look_at(mutation, core, sound)
        yield verdict


def look_at(mutation: Mutation, core: Modules, sound: dict[str, list[Tensor]]) -> Verdict:
    """Run one mutation, and examine it."""
    for form, logits in sound.items():
        try:
            model = made(core, form)
            same = not moved(logits_of(model, form), logits)
        except Exception as error:
            return Verdict(mutation, error=f"{type(error).__name__}: {error}")
        if not same:
            return Verdict(mutation, form, tuple(examine(model, size_of(form)).names))
    return Verdict(mutation)


# What cannot be found, by kind; below each what stands in the text of such mutations.
REASONS: dict[str, tuple[str, ...]] = {
    "an order of channels, heads, q, k and v: whatever it is, the weights learn it": (
        "'b n (d h) ->",
        "→ return rearrange(x, 'b d n h -> b n (h d)'",
        "-> b n (d h)'",
        "→ k, q, v = ",
        "→ q, v, k = ",
        "attention(k, q, v,",
        "attention(q, v, k,",
    ),
    "another number of heads has the same weights, and is a choice": ("-> b d n h'",),
    "an order of patches, or of pixels in a patch: positions and weights learn it": (
        "→ pattern = 'b c (col p1) (row p2)",
        "→ pattern = 'b c (row p2) (col p1)",
        "-> b (col row) (p1 p2 c)'",
        "(p2 p1 c)'",
        "(c p2 p1)'",
        "(p1 c p2)'",
    ),
    "a sign: the weights before it learn the other": (
        "x - self.pos_embed",
        "x - mixed",
        "x - self.mlp",
    ),
    "dropout left out: a choice": (
        "→ return x + self.pos_embed",
        "→ kept = weights",
        "if not dropout else weights",
        "→ return (weights @ v, weights)",
        "→ return (self.proj(merge_heads(mixed",
        "→ rate = 0.0",
        "→ return self.proj(merge_heads(mixed",
        "→ x = self.act(self.fc1",
        "→ return self.fc2(x)",
    ),
    "another activation, another width of the MLP: choices": (
        "nn.ReLU()",
        "nn.Tanh()",
        "→ hidden_dim = embed_dim",
    ),
    "an eps from 1e-12 to 1e-3 is in use": (
        "nn.LayerNorm(embed_dim)",
        "nn.LayerNorm(c.embed_dim)",
        "eps=0.001",
    ),
    "torch's own start of a Linear, and a cls token of std 1, are in use": (
        "(module.weight, std=0.02) → pass",
        "→ module.weight",
        "→ nn.init.trunc_normal_(module.bias",
        "zeros_(module.bias) → pass",
        "→ module.bias",
        "→ if not module.bias is not None",
        "apply(init_weights) → pass",
        "apply(init_weights) → init_weights",
        "→ nn.init.trunc_normal_(self.cls_token)",
        "_(self.cls_token, std=1.0)",
    ),
    "cls or mean, with cls or without: a choice": (
        "→ return tokens[:, 0] if not pool",
        "→ return tokens[:, 0]\n",
        "→ return tokens[:, 1:].mean(dim=1)",
        "tokens[:, 0:].mean(dim=1)",
    ),
    "a model without a head, which gives what that would read: a use": (
        "if not c.num_classes",
        "→ self.head = nn.Identity()",
    ),
    "without softmax: linear attention": ("→ weights = scores\n",),
    "in training alone; the doctor looks into attention in eval": ("→ kept = F.dropout(scores",),
    "attention's part alone goes on to the MLP: another wiring": ("self.norm2(mixed)",),
}


def text(mutation: Mutation) -> str:
    """What the parts of REASONS are looked for in."""
    return f"{mutation.file}: {mutation.before} → {mutation.after}\n"


def reasons_of(mutation: Mutation) -> list[str]:
    """The kinds that a mutation belongs to."""
    return [why for why, parts in REASONS.items() if any(part in text(mutation) for part in parts)]
