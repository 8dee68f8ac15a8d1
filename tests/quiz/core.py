"""Answers of the quiz that the trained weights, PyTorch or the doctor could belie.

`l05_q3_...` measures for each answer to lesson 05's question 3, a to c, whether it holds. Answers
that are arithmetic have it in their reasons, and no measurement here.
"""

from statistics import fmean

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import vit_doctor
from vit_course.canvases import scattered
from vit_course.plots import stored
from vit_steps import ViT, ViTConfig, maps, weights

GRID = (4, 4)
Holds = tuple[bool, bool, bool]


def l00_q6_upside_down() -> Holds:
    test = scattered(2000, seed=1, held_out=True)
    with torch.no_grad():
        answers = weights.load("scattered").model(test.images.flip(2)).argmax(dim=1)
    shares = [(answers[test.labels == d] == d).float().mean().item() for d in (2, 3, 7)]
    assert round(shares[1], 2) == 0.89
    assert (answers[test.labels == 2] == 5).float().mean() > 0.5
    a, b, c = (share == max(shares) for share in shares)
    return a, b, c


def l02_q6_what_positions_learn() -> Holds:
    positions = weights.load("scattered").model.tokens.pos_embed[0].detach()
    like = F.cosine_similarity(positions[1:, None], positions[None], dim=-1)  # (16, 17)
    like[:, 1:].fill_diagonal_(-1)
    grid = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    distances = F.pad(torch.cdist(grid, grid), (1, 0))  # cls first, 0 from all
    of_the_most_alike = distances.gather(1, like.argmax(dim=1, keepdim=True))[:, 0]
    return (
        bool((of_the_most_alike == 0).all()),
        bool((of_the_most_alike == distances.amax(dim=1)).all()),
        bool((of_the_most_alike == 1).all()),
    )


def l09_q3_two_patches_hidden() -> Holds:
    model = weights.load("scattered").model.requires_grad_(False)
    data = scattered(300, seed=2, held_out=True)
    marked = maps.cls_map(maps.rollout(model(data.images, return_attention=True)[1]), GRID)
    centres = 4 * torch.arange(4) + 2.0
    offsets = centres - (data.places[:, :, None] + 4)  # (B, 2, 4)
    middle = -(offsets[:, 0, :, None] ** 2 + offsets[:, 1, None, :] ** 2)
    chance = torch.rand(300, *GRID, generator=torch.Generator().manual_seed(0))

    def lost(scores: Tensor) -> float:
        best = scores.flatten(1).topk(2).indices
        hidden = torch.zeros(300, 16, dtype=torch.bool).scatter(1, best, True)
        answers = maps.blinded(model, data.images, hidden.unflatten(1, GRID)).argmax(dim=1)
        return (answers != data.labels).double().mean().item()

    of_map, of_guess, of_chance = map(lost, (marked, middle, chance))
    ahead = of_map > of_guess + 0.03
    return ahead, of_map > of_chance + 0.3, ahead


def l09_q4_a_map_of_another() -> Holds:
    def share(scores: Tensor, touched: Tensor) -> float:
        return ((scores * touched).sum((1, 2)) / scores.sum((1, 2))).mean().item()

    gaps, middles, corners, alike = [], [], [], []
    for seed in (2, 3, 4):
        canvases = scattered(500, seed=seed, held_out=True)
        touched = maps.touched(canvases.places, 8, GRID, 4).float()
        others, even = touched.roll(1, dims=0), torch.ones(500, *GRID)
        gaps.append(share(others, touched) - share(even, touched))
        middles.append(touched.mean(dim=0)[1:3, 1:3].mean().item())
        corners.append(touched.mean(dim=0)[::3, ::3].mean().item())
        alike.append((canvases.labels == canvases.labels.roll(1)).double().mean().item())
    return min(middles) > 2 * max(corners), max(alike) > 0.5, min(gaps) < 0


def l10_q4_another_head() -> Holds:
    head, file = nn.Linear(8, 3), nn.Linear(8, 1000).state_dict()
    before = head.weight.clone()
    try:
        head.load_state_dict(file, strict=False)
    except RuntimeError:
        return False, False, True
    return head.weight.equal(before), head.weight.equal(file["weight"][:3]), False


def l11_q3_gained_by_one_not_needed_by_the_other() -> Holds:
    runs = stored("why C")["runs"]
    means = {name: fmean(shares) for name, shares in runs.items()}
    assert 74.5 < means["A"] < 75.5
    assert 96.5 < means["A, batch norms"] < 97.5
    assert 97.5 < means["C, one Linear"] < 98.5
    gained = means["A, batch norms"] > means["A"] + 20
    needed = means["C, one Linear"] < means["C"] - 2
    return needed, gained and not needed, max(runs["A"]) > min(runs["A, batch norms"])


class Unused(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        for block in self.blocks:
            block(x)
        return self.head(self.norm(x)[:, 1:].mean(dim=1))


class OtherPictures(ViT):
    def forward(self, images, return_attention=False):
        return super().forward((images * 0.5 + 0.5 - 0.449) / 0.226)


class Dropping(ViT):
    def forward(self, images, return_attention=False):
        return self.head(F.dropout(self.features(images)[:, 0], 0.1))


def l12_q3_not_found() -> Holds:
    config = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=2, num_heads=4)
    models = (Unused(config), OtherPictures(config), Dropping(config))
    a, b, c = (vit_doctor.examine(model, image_size=32).names for model in models)
    assert "random in eval" in c
    return not a, not b, not c
