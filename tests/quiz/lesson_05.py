"""Lesson 05: the residual connections, the norm, the MLP and the block."""

import torch
from torch import nn
from torch.nn import functional as F

from . import only


def q2_a_shifted_token():
    first, second = nn.LayerNorm(2, eps=1e-6)(torch.tensor([[2.0, 4], [102, 104]])).tolist()
    assert [round(x, 3) for x in first] == [-1, 1]
    found = [round(x, 1) for x in second]
    return only(a=found == [0, 0], b=found == [-1, 1], c=found == [99, 101])


def q6_one_large_number():
    torch.manual_seed(0)
    token = torch.randn(768)
    without = F.layer_norm(token, (768,))[1:]
    token[0] = 1000
    assert 34 < token.std() / token[1:].std() < 38
    others = F.layer_norm(token, (768,))[1:]
    return only(
        a=bool((others.std() - 1).abs() < 0.1),
        b=bool(others.std() < 0.05),
        c=torch.allclose(others, without, atol=0.1),
    )
