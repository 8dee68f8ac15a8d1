"""Compare our speed with peers: `python -m tests.bench`. Prints ratios from one run, never times.

The peers run turn by turn, so that a busy machine slows them alike, and the quickest run of each
counts. The floor is the matrix products alone, without biases, norms, softmax or GELU.

Linux' own allocator hands large tensors back to the system and asks for them anew, which costs by
chance a few hundredths, not always to the same peer. The bench starts itself with an allocator
that keeps them, as the better ones do (jemalloc, tcmalloc); `--plain-malloc` leaves it as it is.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from math import prod

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from tqdm import tqdm

from vit_steps import PatchEmbedding, TokenEmbedding, ViT, ViTConfig
from vit_steps.training import decay_groups, train_step

KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}


class TorchViT(nn.Module):
    """The same model on torch's own encoder."""

    def __init__(self, c: ViTConfig):
        super().__init__()
        self.patch_embed = PatchEmbedding(c.image_size, c.patch_size, c.in_channels, c.embed_dim)
        self.tokens = TokenEmbedding(prod(self.patch_embed.grid), c.embed_dim)
        width = int(c.embed_dim * c.mlp_ratio)
        options = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        layer = nn.TransformerEncoderLayer(c.embed_dim, c.num_heads, width, **options)
        norm = nn.LayerNorm(c.embed_dim, eps=c.norm_eps)
        self.encoder = nn.TransformerEncoder(layer, c.depth, norm, enable_nested_tensor=False)
        self.head = nn.Linear(c.embed_dim, c.num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(self.patch_embed(images)))[:, 0])


def products(c: ViTConfig, batch: int) -> Callable[[], None]:
    """The matrix products of one forward pass, on random numbers of the right shapes."""
    D, h, P, N = c.embed_dim, c.num_heads, 196, 197
    hidden = int(D * c.mlp_ratio)
    shapes = [(D, 3 * D), (D, D), (D, hidden), (hidden, D)]
    linears = [(torch.randn(batch * N, i), torch.randn(i, o)) for i, o in shapes]
    q, k = torch.randn(batch * h, N, D // h), torch.randn(batch * h, D // h, N)
    weights, v = torch.randn(batch * h, N, N), torch.randn(batch * h, N, D // h)
    patches, embed = (
        torch.randn(batch * P, 3 * c.patch_size**2),
        torch.randn(3 * c.patch_size**2, D),
    )

    def run() -> None:
        torch.mm(patches, embed)
        for _ in range(c.depth):
            for a, b in linears:
                torch.mm(a, b)
            torch.bmm(q, k)
            torch.bmm(weights, v)

    return run


def forward(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = torch.randn(batch, c.in_channels, c.image_size, c.image_size)
    model.eval()

    @torch.no_grad()
    def run() -> None:
        model(images)

    return run


def backward(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = torch.randn(batch, c.in_channels, c.image_size, c.image_size)
    model.train()

    def run() -> None:
        model.zero_grad()
        model(images).sum().backward()

    return run


def whole_step(model: nn.Module, c: ViTConfig, batch: int) -> Callable[[], None]:
    images = torch.randn(batch, c.in_channels, c.image_size, c.image_size)
    labels = torch.randint(c.num_classes, (batch,))
    optimizer = AdamW(decay_groups(model.train(), weight_decay=0.05), lr=1e-3, fused=True)

    def run() -> None:
        train_step(model, optimizer, images, labels)

    return run


def quickest(runs: dict[str, Callable[[], None]], rounds: int, what: str) -> dict[str, float]:
    """Seconds of each one's quickest run, turn by turn, after one round to warm up."""
    best = dict.fromkeys(runs, float("inf"))
    for turn in tqdm(range(rounds + 1), desc=what, leave=False):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="turns of each peer (default 10)")
    parser.add_argument("--plain-malloc", action="store_true", help="leave the allocator as it is")
    options = parser.parse_args()
    if not options.plain_malloc and not KEEP_MEMORY.items() <= os.environ.items():
        os.environ.update(KEEP_MEMORY)  # read when a process starts, so start again
        os.execv(sys.executable, [sys.executable, "-m", "tests.bench", *sys.argv[1:]])
    torch.manual_seed(0)
    base, tiny = ViTConfig.preset("B/16"), ViTConfig.preset("Ti/16")
    digits = ViTConfig(8, 2, 1, 10, embed_dim=48, depth=3, num_heads=4)
    cases = [
        ("B/16 forward, batch 1", forward, base, 1, 3),
        ("B/16 forward, batch 8", forward, base, 8, 1),
        ("Ti/16 forward and backward, batch 8", backward, tiny, 8, 1),
        ("lesson 07's training step, batch 64", whole_step, digits, 64, 30),
    ]
    for what, kind, config, batch, turns in cases:
        runs = {
            "vit_steps": kind(ViT(config), config, batch),
            "torch.nn.TransformerEncoder": kind(TorchViT(config), config, batch),
        }
        if kind is forward:
            runs["bare matrix products"] = products(config, batch)
        best = quickest(runs, turns * options.rounds, what)
        fastest = min(best["vit_steps"], best["torch.nn.TransformerEncoder"])
        print(f"{what}, as ratios to the faster model")
        for name, seconds in best.items():
            print(f"  {name:30} {seconds / fastest:.2f}")


if __name__ == "__main__":
    main()
