"""Lesson 06: the head, the whole model, its size and its work."""

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from vit_steps import ViT, ViTConfig

from . import near, only

SMALL = ViTConfig(32, 8, num_classes=10, embed_dim=48, depth=3, num_heads=4)


def small(kind: type[ViT] = ViT) -> ViT:
    torch.manual_seed(0)
    return kind(SMALL)


def q1_larger_photos():
    def sizes(**options) -> dict[str, int]:
        with torch.device("meta"):
            model = ViT(ViTConfig.preset("B/16", **options))
        return {part: p.numel() for part, p in model.named_parameters()}

    old, new = sizes(), sizes(image_size=448)
    grown = {part for part in old if new[part] != old[part]}
    assert new["tokens.pos_embed"] - old["tokens.pos_embed"] == 588 * 768
    return only(
        a=grown == {"tokens.pos_embed"},
        b="patch_embed.proj.weight" in grown,
        c="head.weight" in grown,
    )


def q2_work_of_larger_patches():
    def work(name: str) -> int:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            ViT(ViTConfig.preset(name))(torch.empty(1, 3, 224, 224), return_attention=True)
        return counter.get_total_flops()

    return near(work("B/32") / work("B/16"), within=0.02, a=1 / 16, b=1 / 2, c=1 / 4)


def q3_softmax_after_the_head():
    logits = small()(torch.randn(1000, 3, 32, 32))
    changed = (logits.softmax(dim=-1).argmax(dim=-1) != logits.argmax(dim=-1)).sum().item()
    return only(a=changed == 0, b=50 < changed < 150, c=changed > 900)


def q4_norm_and_mean():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)
    before = F.layer_norm(x, (48,)).mean(dim=1).std()
    after = F.layer_norm(x.mean(dim=1), (48,)).std()
    return only(a=bool(before > 1.1 * after), b=bool(after > 1.1 * before), c=before == after)


class FirstBlockOnly(ViT):
    def forward(self, images, return_attention=False):
        x = self.tokens(self.patch_embed(images))
        for _ in self.blocks:
            x = self.blocks[0](x)
        return self.head(self.norm(x)[:, 0])


def q5_first_block_only():
    right, wrong, images = small(), small(FirstBlockOnly), torch.randn(2, 3, 32, 32)
    wrong(images).sum().backward()
    unused = [b for b in wrong.blocks if all(p.grad is None for p in b.parameters())]
    counts = {sum(p.numel() for p in model.parameters()) for model in (right, wrong)}
    return only(
        a=len(counts) == 2,
        b=right(images).shape != wrong(images).shape,
        c=len(unused) == SMALL.depth - 1,
    )


@torch.no_grad()
def q6_final_norm():
    model = small()
    x = model.blocks(model.tokens(model.patch_embed(torch.randn(8, 3, 32, 32))))
    sizes = [model.norm(times * x).std() for times in (1, 10)]
    sums = model.head(model.norm(x)[:, 0]).sum(dim=1)
    return only(
        a=model.norm(x).shape[1] == 1,
        b=bool((sizes[0] - sizes[1]).abs() < 1e-3) and bool((10 * x).std() > 9 * x.std()),
        c=bool((sums - 1).abs().max() < 1e-3),
    )
