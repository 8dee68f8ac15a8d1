"""Lesson 06: the head, the whole model, its size and its work."""

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from vit_steps import ViT, ViTConfig

from . import near, only


def q2_work_of_larger_patches():
    def work(name: str) -> int:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            ViT(ViTConfig.preset(name))(torch.empty(1, 3, 224, 224), return_attention=True)
        return counter.get_total_flops()

    return near(work("B/32") / work("B/16"), within=0.02, a=1 / 16, b=1 / 2, c=1 / 4)


def q4_norm_and_mean():
    torch.manual_seed(0)
    x = torch.randn(2, 17, 48)
    before = F.layer_norm(x, (48,)).mean(dim=1).std()
    after = F.layer_norm(x.mean(dim=1), (48,)).std()
    return only(a=bool(before > 1.1 * after), b=bool(after > 1.1 * before), c=before == after)
