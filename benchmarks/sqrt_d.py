"""Measure what leaving out √d costs, as lesson 04 draws it, in half an hour.

`python -m benchmarks.sqrt_d` writes "scale" into vit_course/plots/measured.json: shares of right
answers in %, one a seed; all forms get the same seeds.
"""

import torch
from torch import Tensor, nn

from benchmarks.storing import machine, store
from vit_course.plots.scores import FILE
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
    """Attention whose scores are not divided."""

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
    """Make the ViT of lesson 06, small, with its own first weights."""
    sizes = dict(image_size=8, patch_size=2, in_channels=1, num_classes=10)
    model = ViT(ViTConfig(**sizes, embed_dim=WIDTH, depth=2, num_heads=heads))
    for block in model.blocks:
        if not isinstance(block.attn, attention):
            weights = block.attn.state_dict()
            block.attn = attention(WIDTH, heads)
            block.attn.load_state_dict(weights)
    return model


def train_form(form: str, seed: int, rate: float, heads: int = 0) -> float:
    """Train, and count the right answers to held-out digits, in %. With heads it is a whole ViT."""
    scaled, small_start, small_steps = FORMS[form]
    data, test = digits()
    attention = MultiHeadAttention if scaled else WithoutScale
    torch.manual_seed(seed)
    model = (whole_vit(attention, heads) if heads else Reader(attention)).double()
    layers = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    queries = [p.data[:WIDTH] for layer in layers for p in layer.qkv.parameters()]
    root = (WIDTH // (heads or 1)) ** 0.5
    if small_start:
        for rows in queries:
            rows /= root
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, eps=TINY)
    for _ in range(STEPS):
        batch = torch.randint(len(data), (BATCH,))
        before = [rows.clone() for rows in queries]
        train_step(model, optimizer, data.images[batch].double(), data.labels[batch])
        if small_steps:
            for rows, old in zip(queries, before, strict=True):
                rows.copy_(old + (rows - old) / root)
    with torch.no_grad():
        answers = model(test.images.double()).argmax(dim=-1)
    return round(100 * (answers == test.labels).double().mean().item(), 1)


def main() -> None:
    """Train all forms at all rates, and two of them as whole ViTs; store all at the end."""

    def shares(form: str, rate: float, heads: int = 0) -> list[float]:
        numbers = [train_form(form, seed, rate, heads) for seed in range(SEEDS)]
        print(form, rate, heads, numbers, flush=True)
        return numbers

    torch.set_num_threads(1)
    reader = {form: {str(rate): shares(form, rate) for rate in RATES} for form in FORMS}
    whole = {
        str(heads): {form: shares(form, 0.001, heads) for form in list(FORMS)[:2]}
        for heads in (1, 4)
    }
    store(FILE, scale={"made": machine(), "steps": STEPS, "reader": reader, "ViT": whole})


if __name__ == "__main__":
    main()
