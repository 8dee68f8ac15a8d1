"""Compare our speed with peers: `python -m tests.bench`. Prints ratios from one run, never times.

The peers run turn by turn, so that a busy machine slows them alike, and the quickest run of each
counts. The floor is the matrix products alone, without biases, norms, softmax or GELU.
"""

import argparse
import time
from collections.abc import Callable
from math import prod

import torch
from torch import Tensor, nn
from tqdm import tqdm

from vit_steps import PatchEmbedding, TokenEmbedding, ViT, ViTConfig


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
    D, h, N, hidden = c.embed_dim, c.num_heads, 197, int(c.embed_dim * c.mlp_ratio)
    shapes = [(D, 3 * D), (D, D), (D, hidden), (hidden, D)]
    linears = [(torch.randn(batch * N, i), torch.randn(i, o)) for i, o in shapes]
    q, k = torch.randn(batch * h, N, D // h), torch.randn(batch * h, D // h, N)
    weights, v = torch.randn(batch * h, N, N), torch.randn(batch * h, N, D // h)
    patches, embed = (
        torch.randn(batch * 196, 3 * c.patch_size**2),
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


def forward(model: nn.Module, batch: int) -> Callable[[], None]:
    images = torch.randn(batch, 3, 224, 224)
    model.eval()

    @torch.no_grad()
    def run() -> None:
        model(images)

    return run


def training_step(model: nn.Module, batch: int) -> Callable[[], None]:
    images = torch.randn(batch, 3, 224, 224)
    model.train()

    def run() -> None:
        model.zero_grad()
        model(images).sum().backward()

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="turns of each peer (default 10)")
    rounds = parser.parse_args().rounds
    torch.manual_seed(0)
    base, tiny = ViTConfig.preset("B/16"), ViTConfig.preset("Ti/16")
    ours, peer = ViT(base), TorchViT(base)
    cases = {
        "B/16 forward, batch 1": (forward, ours, peer, base, 1, 3 * rounds),
        "B/16 forward, batch 8": (forward, ours, peer, base, 8, rounds),
        "Ti/16 forward and backward, batch 8": (
            training_step,
            ViT(tiny),
            TorchViT(tiny),
            tiny,
            8,
            rounds,
        ),
    }
    for what, (kind, mine, other, config, batch, turns) in cases.items():
        runs = {"vit_steps": kind(mine, batch), "torch.nn.TransformerEncoder": kind(other, batch)}
        if kind is forward:
            runs["bare matrix products"] = products(config, batch)
        best = quickest(runs, turns, what)
        fastest = min(best["vit_steps"], best["torch.nn.TransformerEncoder"])
        print(f"{what}, as ratios to the faster model")
        for name, seconds in best.items():
            print(f"  {name:30} {seconds / fastest:.2f}")


if __name__ == "__main__":
    main()
