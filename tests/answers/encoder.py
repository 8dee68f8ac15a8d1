"""Answers to lesson 05's exercises, as learners would write them."""

import copy

import torch


def norm_by_moments(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean**2
    return weight * (x - mean) * (variance + eps) ** -0.5 + bias


def norm_by_std_and_mean(x, weight, bias, eps=1e-6):
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def norm_unbiased(x, weight, bias, eps=1e-6):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


def norm_over_tokens(x, weight, bias, eps=1e-6):
    tokens = x.ndim - 2
    mean = x.mean(tokens, keepdim=True)
    variance = ((x - mean) ** 2).mean(tokens, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


def norm_eps_outside(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    std = ((x - mean) ** 2).mean(-1, keepdim=True).sqrt()
    return weight * (x - mean) / (std + eps) + bias


def norm_without_root(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    return weight * (x - mean) / (((x - mean) ** 2).mean(-1, keepdim=True) + eps) + bias


def norm_without_weights(x, weight, bias, eps=1e-6):
    return norm_by_moments(x, 1, 0, eps)


def norm_in_place(x, weight, bias, eps=1e-6):
    x -= x.mean(-1, keepdim=True)
    return weight * x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() + bias


def changes_as_differences(encoder, x):
    written = []
    for block in encoder:
        middle = x + block.attn(block.norm1(x))
        end = block(x)
        written += [middle - x, end - middle]
        x = end
    return written


def changes_by_the_equation(encoder, x):
    written = []
    for block in encoder:
        a, _ = block.attn(block.norm1(x), return_attention=True)
        m = block.mlp(block.norm2(x + a))
        written += [a, m]
        x = x + a + m
    return tuple(written)


def changes_with_first_x(encoder, x):
    written = []
    for block in encoder:
        a = block.attn(block.norm1(x))
        written += [a, block.mlp(block.norm2(x + a))]
    return written


def changes_parallel(encoder, x):
    written = []
    for block in encoder:
        a = block.attn(block.norm1(x))
        m = block.mlp(block.norm2(x))
        written += [a, m]
        x = x + a + m
    return written


def changes_unnormalised(encoder, x):
    written = []
    for block in encoder:
        for layer in (block.attn, block.mlp):
            change = layer(x)
            written.append(change)
            x = x + change
    return written


def changes_a_block(encoder, x):
    written = []
    for block in encoder:
        out = block(x)
        written.append(out - x)
        x = out
    return written


def changes_in_place(encoder, x):
    written = []
    for block in encoder:
        written.append(block.attn(block.norm1(x)))
        x += written[-1]
        written.append(block.mlp(block.norm2(x)))
        x += written[-1]
    return written


def changes_as_streams(encoder, x):
    written = []
    for block in encoder:
        x = x + block.attn(block.norm1(x))
        written.append(x)
        x = x + block.mlp(block.norm2(x))
        written.append(x)
    return written


def unheard_by_nudging(encoder, x):
    with torch.no_grad():
        usual = encoder(x)
        found = []
        for number in range(len(encoder)):
            nudged = copy.deepcopy(encoder)
            for weight in nudged[number].parameters():
                weight += 0.1
            if torch.equal(usual, nudged(x)):
                found.append(number)
    return found


def unheard_by_autograd(encoder, x):
    tokens = encoder(x.clone().requires_grad_())
    found = []
    for number, block in enumerate(encoder):
        weights = list(block.parameters())
        slopes = torch.autograd.grad(tokens.sum(), weights, retain_graph=True, allow_unused=True)
        if all(slope is None for slope in slopes):
            found.append(number)
    return found


def unheard_by_spoiling(encoder, x):
    found = []
    with torch.no_grad():
        for number, block in enumerate(encoder):
            usual = encoder(x)
            for weight in block.parameters():
                weight += 0.1
            if torch.equal(usual, encoder(x)):
                found.append(number)
    return found


def unheard_without_clearing(encoder, x):
    tokens = encoder(x)
    if tokens.grad_fn is not None:
        tokens.mean().backward()
    return [n for n, b in enumerate(encoder) if all(p.grad is None for p in b.parameters())]


def unheard_with_attention(encoder, x):
    usual = encoder(x, return_attention=True)
    found = []
    with torch.no_grad():
        for number in range(len(encoder)):
            nudged = copy.deepcopy(encoder)
            for weight in nudged[number].parameters():
                weight += 0.1
            tokens, attention = nudged(x, return_attention=True)
            same_maps = all(map(torch.equal, attention, usual[1]))
            if torch.equal(tokens, usual[0]) and same_maps:
                found.append(number)
    return found


def heard_blocks(encoder, x):
    return [n for n in range(len(encoder)) if n not in unheard_by_nudging(encoder, x)]


def unheard_counted(encoder, x):
    return len(unheard_by_nudging(encoder, x))


def unheard_from_one(encoder, x):
    return [n + 1 for n in unheard_by_nudging(encoder, x)]


RIGHT = {
    "layer_norm": [norm_by_moments, norm_by_std_and_mean],
    "contributions": [changes_as_differences, changes_by_the_equation],
    "unheard_blocks": [unheard_by_nudging, unheard_by_autograd],
}
WRONG = {
    "layer_norm": [
        (norm_unbiased, "divides by D - 1"),
        (norm_over_tokens, "over the tokens"),
        (norm_eps_outside, "after the root"),
        (norm_without_root, "divide by its square root"),
        (norm_without_weights, "the weight and the bias are not used"),
        (norm_in_place, "changes the tensor"),
    ],
    "contributions": [
        (changes_with_first_x, "the x that came in at the start"),
        (changes_parallel, "before attention wrote to it"),
        (changes_unnormalised, "the branches read the stream itself"),
        (changes_a_block, "one change a block"),
        (changes_as_streams, "the streams after each change"),
        (changes_in_place, "changes the tensor"),
    ],
    "unheard_blocks": [
        (unheard_by_spoiling, "the weights are not as they were"),
        (unheard_without_clearing, "gradients left from an earlier step"),
        (unheard_with_attention, "the attention weights are counted as well"),
        (heard_blocks, "these are the blocks that are heard"),
        (unheard_counted, "this is how many"),
        (unheard_from_one, "counted from 1"),
    ],
}
