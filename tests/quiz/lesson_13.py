"""Lesson 13: fast and large."""

from collections.abc import Callable
from fractions import Fraction

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps import ViT, ViTConfig, scale

from . import only


def mixing(config: ViTConfig) -> int:
    parts = scale.multiply_adds(config)
    return parts["scores"] + parts["mixture"]


def twice_as_wide() -> str:
    wide = ViTConfig.preset("B/16", embed_dim=1536)
    times = mixing(wide) / mixing(ViTConfig.preset("B/16"))
    return only(a=times == 1, b=times == 2, c=times == 4)


def as_dear_as_the_linears() -> str:
    def share(tokens: int) -> float:
        """Mixing over the Linears, in a picture of one row of patches."""
        config = ViTConfig.preset("L/16", image_size=(16, 16 * (tokens - 1)))
        parts = scale.multiply_adds(config)
        return mixing(config) / (parts["qkv"] + parts["proj"] + parts["MLP"])

    return only(a=share(1024) == 1, b=share(4608) == 1, c=share(6144) == 1)


def faster_and_another() -> str:
    torch.manual_seed(0)
    model = ViT(ViTConfig(16, 4, 1, 10, embed_dim=64, depth=4, num_heads=4)).eval()
    images = torch.randn(64, 1, 16, 16)
    with torch.no_grad():
        plain = model(images)
        with torch.autocast("cpu", torch.bfloat16):
            other = model(images).float()
    differs = not torch.allclose(other, plain, atol=1e-4)
    wrong = (other.argmax(dim=1) != plain.argmax(dim=1)).float().mean() > 0.1
    return only(a=not differs, b=differs and not wrong, c=bool(wrong))


def merged_by_size() -> str:
    x = torch.tensor([[[0.0], [2.0], [10.0]]])  # cls, B's, A's
    keys, sizes = torch.ones(1, 3, 1), torch.tensor([[1.0, 1.0, 3.0]])
    merged, _ = scale.merge_tokens(x, keys, sizes, 1)
    value = merged[0, 1, 0].item()
    return only(a=value == 8, b=value == 6, c=value == 32)


def tokens_at_the_end() -> str:
    model = scale.merging(ViT(ViTConfig(16, 4, 1, 10, embed_dim=64, depth=4, num_heads=4)), 2)
    seen = []
    model.model.norm.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[1]))
    model(torch.randn(1, 1, 16, 16))
    return only(a=seen == [17], b=seen == [11], c=seen == [9])


def rounded() -> str:
    whole, _ = scale.int8_rows(torch.tensor([[0.2, -0.4, 1.27]]))
    middle = whole[0, 1].item()
    return only(a=middle == -40, b=middle == -51, c=middle == -127)


def first_of_three() -> str:
    torch.manual_seed(0)
    model, images, labels = nn.Linear(4, 3), torch.randn(10, 4), torch.arange(10) % 3
    losses = [
        F.cross_entropy(model(some), theirs)
        for some, theirs in zip(images.split([4, 3, 3]), labels.split([4, 3, 3]), strict=True)
    ]
    whole, rest = F.cross_entropy(model(images), labels), 0.3 * (losses[1] + losses[2])
    weight = ((whole - rest) / losses[0]).item()
    near = {name: abs(weight - float(Fraction(name))) < 1e-5 for name in ("1/3", "1/4", "2/5")}
    return only(a=near["1/3"], b=near["1/4"], c=near["2/5"])


def twice_as_deep() -> str:
    def kept(depth: int) -> int:
        model = ViT(ViTConfig(64, 8, 3, 10, embed_dim=96, depth=depth, num_heads=4))
        return scale.kept_bytes(scale.checkpoint_blocks(model), torch.randn(8, 3, 64, 64))

    times = kept(24) / kept(12)
    return only(a=times < 1.2, b=1.6 < times < 2, c=times > 3)


def third_of_three() -> str:
    torch.manual_seed(0)
    losses = torch.rand(8)
    shares = [losses[number::3] for number in range(3)]

    def mean(weight: Fraction) -> float:
        """Of the three, the first two weighted by 3 · 3 / 8."""
        weights = [9 / 8, 9 / 8, float(weight)]
        return sum(w * s.mean().item() for w, s in zip(weights, shares, strict=True)) / 3

    near = [
        abs(mean(Fraction(*weight)) - losses.mean().item()) < 1e-5
        for weight in ((1, 1), (3, 4), (1, 4))
    ]
    return only(a=near[0], b=near[1], c=near[2])


def held_by_each() -> str:
    config = ViTConfig.preset("B/16")
    parts = scale.training_memory(config, 1)
    a_weight = (parts["weights"] + parts["gradients"] + parts["optimizer"]) / (parts["weights"] / 4)
    held = a_weight * 100e6 / 4 / 1e9
    return only(a=held == 0.4, b=held == 0.1, c=held == 1.6)


PROOFS: dict[int, Callable[[], str]] = {
    1: twice_as_wide,
    2: as_dear_as_the_linears,
    3: faster_and_another,
    4: merged_by_size,
    5: tokens_at_the_end,
    6: rounded,
    7: first_of_three,
    8: twice_as_deep,
    9: third_of_three,
    10: held_by_each,
}
