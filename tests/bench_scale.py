"""What leaving out √d costs, as lesson 04 draws it: `python -m tests.bench_scale`, half an hour.

It writes "scale" into vit_course/plots/measured.json and leaves the rest of that file alone. Kept
are shares of right answers in %, one a seed; all forms get the same seeds.
"""

import json
import platform
from pathlib import Path

import torch
from torch import Tensor, nn

from vit_course.plots.speed import FILE
from vit_steps import MultiHeadAttention, PatchEmbedding, TokenEmbedding, ViT, ViTConfig
from vit_steps.attention import scaled_dot_product_attention
from vit_steps.heads import merge_heads, split_qkv
from vit_steps.training.data import digits
from vit_steps.training.loop import train_step

WIDTH, STEPS, BATCH, SEEDS = 64, 500, 32, 5
RATES = (0.0003, 0.001, 0.003)
TINY = 1e-16  # Adam's eps, so small that it plays no part
FORMS = {  # is there a scale, do queries start √d smaller, are their steps √d smaller
    "divided by √d": (True, False, False),
    "not divided": (False, False, False),
    "smaller start": (False, True, False),
    "smaller steps": (False, False, True),
}


class WithoutScale(MultiHeadAttention):
    """The layer whose scores are not divided."""

    def forward(self, x: Tensor, mask: Tensor | None = None, return_attention: bool = False):
        q, k, v = split_qkv(self.qkv(x), self.num_heads)
        mixed, _ = scaled_dot_product_attention(q * q.shape[-1] ** 0.5, k, v)
        return self.proj(merge_heads(mixed))


class Reader(nn.Module):
    """Two attention layers of one head, and nothing else between tokens and head."""

    def __init__(self, attention: type[nn.Module], width: int = WIDTH):
        super().__init__()
        self.embed = PatchEmbedding(8, 2, 1, width)
        self.tokens = TokenEmbedding(16, width)
        self.first, self.second = attention(width, 1), attention(width, 1)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(self.embed(images))
        x = x + self.first(self.norm(x))
        x = x + self.second(self.norm(x))
        return self.head(self.norm(x)[:, 0])


def whole_vit(attention: type[nn.Module], heads: int) -> ViT:
    """The ViT of lesson 06, small, with its own first weights."""
    sizes = dict(image_size=8, patch_size=2, in_channels=1, num_classes=10)
    model = ViT(ViTConfig(**sizes, embed_dim=WIDTH, depth=2, num_heads=heads))
    for block in model.blocks:
        if not isinstance(block.attn, attention):
            begun = block.attn.state_dict()
            block.attn = attention(WIDTH, heads)
            block.attn.load_state_dict(begun)
    return model


def trained(form: str, seed: int, rate: float, heads: int = 0, steps: int = STEPS) -> float:
    """Train, and count the right answers to held-out digits, in %. With heads it is a whole ViT."""
    scaled, small_start, small_steps = FORMS[form]
    seen, unseen = digits()
    attention = MultiHeadAttention if scaled else WithoutScale
    torch.manual_seed(seed)
    model = (whole_vit(attention, heads) if heads else Reader(attention)).double()
    layers = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    rows = [p.data[:WIDTH] for layer in layers for p in layer.qkv.parameters()]  # of the queries
    root = (WIDTH // (heads or 1)) ** 0.5
    if small_start:
        for part in rows:
            part /= root
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, eps=TINY)
    for _ in range(steps):
        picked = torch.randint(len(seen), (BATCH,))
        before = [part.clone() for part in rows]
        train_step(model, optimizer, seen.images[picked].double(), seen.labels[picked])
        if small_steps:
            for part, old in zip(rows, before, strict=True):
                part.copy_(old + (part - old) / root)
    with torch.no_grad():
        answers = model(unseen.images.double()).argmax(dim=-1)
    return round(100 * (answers == unseen.labels).double().mean().item(), 1)


def everything() -> dict:
    found = {
        "made": {
            "processor": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "steps": STEPS,
        "reader": {},
        "ViT": {},
    }
    for form in FORMS:
        for rate in RATES:
            shares = [trained(form, seed, rate) for seed in range(SEEDS)]
            found["reader"].setdefault(form, {})[str(rate)] = shares
            print(form, rate, shares, flush=True)
    for heads in (1, 4):
        for form in ("divided by √d", "not divided"):
            shares = [trained(form, seed, 0.001, heads) for seed in range(SEEDS)]
            found["ViT"].setdefault(str(heads), {})[form] = shares
            print("ViT", heads, form, shares, flush=True)
    return found


def main(file: Path = FILE) -> None:
    torch.set_num_threads(1)
    stored = json.loads(file.read_text("utf-8")) | {"scale": everything()}
    file.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
