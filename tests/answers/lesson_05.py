"""Answers to lesson 05's build cells and exercises, as learners would write them."""

import copy

import torch
from einops import reduce
from torch.nn import functional as F

# layer_norm ----------------------------------------------------------------------------------


def norm_by_moments(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean**2
    return weight * (x - mean) * (variance + eps) ** -0.5 + bias


def norm_by_var_mean(x, weight, bias, eps=1e-6):
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def norm_by_sums(x, weight, bias, eps=1e-6):
    width = x.shape[-1]
    mu = x.sum(dim=-1)[..., None] / width
    sigma2 = ((x - mu) ** 2).sum(dim=-1)[..., None] / width
    return (x - mu) / torch.sqrt(sigma2 + eps) * weight + bias


def norm_by_einops(x, weight, bias, eps=1e-6):
    x = x - reduce(x, "... d -> ... 1", "mean")
    spread = (reduce(x**2, "... d -> ... 1", "mean") + eps).sqrt()
    return weight * x / spread + bias


def norm_row_by_row(x, weight, bias, eps=1e-6):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        centred = row - row.mean()
        rows.append(centred / (centred.square().mean() + eps).sqrt() * weight + bias)
    return torch.stack(rows).reshape(x.shape)


def norm_by_std_squared(x, weight, bias, eps=1e-6):
    std = x.std(-1, correction=0, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(std**2 + eps) * weight + bias


def norm_unbiased(x, weight, bias, eps=1e-6):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


def norm_over_tokens(x, weight, bias, eps=1e-6):
    tokens = x.ndim - 2
    mean = x.mean(tokens, keepdim=True)
    variance = ((x - mean) ** 2).mean(tokens, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


def norm_over_axis_one(x, weight, bias, eps=1e-6):
    mean = x.mean(1, keepdim=True)
    variance = x.var(1, correction=0, keepdim=True)
    return weight * (x - mean) / torch.sqrt(variance + eps) + bias


def norm_over_everything(x, weight, bias, eps=1e-6):
    return weight * (x - x.mean()) / torch.sqrt(x.var(correction=0) + eps) + bias


def norm_eps_outside(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    std = ((x - mean) ** 2).mean(-1, keepdim=True).sqrt()
    return weight * (x - mean) / (std + eps) + bias


def norm_eps_on_result(x, weight, bias, eps=1e-6):
    centred = x - x.mean(-1, keepdim=True)
    normed = centred / centred.square().mean(-1, keepdim=True).sqrt() + eps
    return normed * weight + bias


def norm_eps_fixed(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    return weight * (x - mean) / (x.var(-1, correction=0, keepdim=True) + 1e-6).sqrt() + bias


def norm_without_eps(x, weight, bias, eps=1e-6):
    return weight * (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True) + bias


def norm_unbiased_eps_outside(x, weight, bias, eps=1e-6):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) * weight + bias


def norm_with_floor(x, weight, bias, eps=1e-6):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred**2).mean(-1, keepdim=True)
    return centred / torch.where(variance == 0, eps, variance).sqrt() * weight + bias


def norm_without_root(x, weight, bias, eps=1e-6):
    mean = x.mean(-1, keepdim=True)
    return weight * (x - mean) / (((x - mean) ** 2).mean(-1, keepdim=True) + eps) + bias


def norm_uncentred(x, weight, bias, eps=1e-6):
    return weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt() + bias


def norm_without_mean_above(x, weight, bias, eps=1e-6):
    return weight * x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() + bias


def norm_by_squares(x, weight, bias, eps=1e-6):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = x.square().mean(dim=-1, keepdim=True)
    return centred / (variance + eps).sqrt() * weight + bias


def norm_without_weights(x, weight, bias, eps=1e-6):
    return norm_by_sums(x, 1, 0, eps)


def norm_without_bias(x, weight, bias, eps=1e-6):
    return norm_by_sums(x, weight, 0, eps)


def norm_bias_first(x, weight, bias, eps=1e-6):
    return (norm_by_sums(x, 1, 0, eps) + bias) * weight


def norm_without_keepdim(x, weight, bias, eps=1e-6):
    mean, variance = x.mean(-1), x.var(-1, correction=0)
    return weight * (x - mean) / (variance + eps).sqrt() + bias


def norm_in_place(x, weight, bias, eps=1e-6):
    x -= x.mean(-1, keepdim=True)
    return weight * x / ((x * x).mean(-1, keepdim=True) + eps).sqrt() + bias


def norm_width_four(x, weight, bias, eps=1e-6):
    return F.layer_norm(x, (4,), weight, bias, eps)


def norm_for_three_axes(x, weight, bias, eps=1e-6):
    B, N, D = x.shape
    return norm_by_sums(x, weight, bias, eps).reshape(B, N, D)


# contributions -------------------------------------------------------------------------------


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


def changes_by_index(encoder, x):
    written = []
    for i in range(len(encoder)):
        for norm, branch in (("norm1", "attn"), ("norm2", "mlp")):
            change = getattr(encoder[i], branch)(getattr(encoder[i], norm)(x))
            written.append(change)
            x = x + change
    return written


def changes_by_hooks(encoder, x):
    written = []
    parts = [part for block in encoder for part in (block.attn, block.mlp)]
    hooks = [p.register_forward_hook(lambda m, i, out: written.append(out)) for p in parts]
    encoder(x)
    for hook in hooks:
        hook.remove()
    return written


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


def changes_parallel_then_the_block(encoder, x):
    written = []
    for block in encoder:
        written += [block.attn(block.norm1(x)), block.mlp(block.norm2(x))]
        x = block(x)
    return written


def changes_of_the_first_x_alone(encoder, x):
    parts = [(p, n) for b in encoder for p, n in ((b.attn, b.norm1), (b.mlp, b.norm2))]
    return [part(norm(x)) for part, norm in parts]


def changes_without_attention_in_the_stream(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x))
        thought = block.mlp(block.norm2(x + mixed))
        written += [mixed, thought]
        x = x + thought
    return written


def changes_without_thoughts_in_the_stream(encoder, x):
    written = []
    for block in encoder:
        written.append(block.attn(block.norm1(x)))
        x = x + written[-1]
        written.append(block.mlp(block.norm2(x)))
    return written


def changes_with_the_last_change_as_stream(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x))
        x = block.mlp(block.norm2(x + mixed))
        written += [mixed, x]
    return written


def changes_since_the_block_began(encoder, x):
    written = []
    for block in encoder:
        middle = x + block.attn(block.norm1(x))
        end = middle + block.mlp(block.norm2(middle))
        written += [middle - x, end - x]
        x = end
    return written


def changes_since_the_start(encoder, x):
    written, start = [], x
    for block in encoder:
        x = x + block.attn(block.norm1(x))
        written.append(x - start)
        x = x + block.mlp(block.norm2(x))
        written.append(x - start)
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


def changes_sorted_by_kind(encoder, x):
    written = changes_by_index(encoder, x)
    return written[::2] + written[1::2]


def changes_mlp_before(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x))
        x = x + mixed
        thought = block.mlp(block.norm2(x))
        x = x + thought
        written += [thought, mixed]
    return written


def changes_with_start(encoder, x):
    return [x, *changes_by_index(encoder, x)]


def changes_stacked(encoder, x):
    return torch.stack(changes_by_index(encoder, x))


def changes_in_pairs(encoder, x):
    written = changes_by_index(encoder, x)
    return list(zip(written[::2], written[1::2], strict=True))


def changes_summed(encoder, x):
    return sum(changes_by_index(encoder, x))


def changes_mlp_reads_attention(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x))
        thought = block.mlp(block.norm2(mixed))
        x = x + mixed + thought
        written += [mixed, thought]
    return written


def changes_of_first_block(encoder, x):
    block = encoder[0]
    mixed = block.attn(block.norm1(x))
    return [mixed, block.mlp(block.norm2(x + mixed))]


def changes_of_two_blocks(encoder, x):
    return changes_by_index(encoder[:2], x)


def changes_with_weights(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x), return_attention=True)
        x = x + mixed
        thought = block.mlp(block.norm2(x))
        x = x + thought
        written += [mixed, thought]
    return written


def changes_with_one_norm(encoder, x):
    written = []
    for block in encoder:
        mixed = block.attn(block.norm1(x))
        x = x + mixed
        thought = block.mlp(block.norm1(x))
        x = x + thought
        written += [mixed, thought]
    return written


# unheard_blocks ------------------------------------------------------------------------------


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


def unheard_by_putting_back(encoder, x):
    with torch.no_grad():
        usual = encoder(x)
        found = []
        for number, block in enumerate(encoder):
            kept = {name: w.clone() for name, w in block.state_dict().items()}
            for weight in block.parameters():
                weight.normal_()
            same = torch.allclose(usual, encoder(x))
            block.load_state_dict(kept)
            if same:
                found.append(number)
    return found


def unheard_by_cleared_gradients(encoder, x):
    for p in encoder.parameters():
        p.grad = None
    tokens = encoder(x)
    if not tokens.requires_grad:
        return list(range(len(encoder)))
    tokens.sum().backward()
    return [i for i in range(len(encoder)) if encoder[i].mlp.fc1.weight.grad is None]


def unheard_by_hooks_on_gradients(encoder, x):
    heard = set()
    handles = []
    for number, block in enumerate(encoder):
        weight = block.mlp.fc2.weight
        handles.append(weight.register_hook(lambda g, n=number: heard.add(n)))
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    for handle in handles:
        handle.remove()
    return sorted(set(range(len(encoder))) - heard)


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


def unheard_by_reference_kept(encoder, x):
    found = []
    with torch.no_grad():
        usual = encoder(x)
        for number, block in enumerate(encoder):
            kept = block.state_dict()
            for weight in block.parameters():
                weight.normal_()
            if torch.equal(usual, encoder(x)):
                found.append(number)
            block.load_state_dict(kept)
    return found


def unheard_without_clearing(encoder, x):
    tokens = encoder(x)
    if tokens.grad_fn is not None:
        tokens.mean().backward()
    return [n for n, b in enumerate(encoder) if all(p.grad is None for p in b.parameters())]


def unheard_with_zeros_for_none(encoder, x):
    encoder.zero_grad(set_to_none=False)
    tokens = encoder(x)
    if not tokens.requires_grad:
        return list(range(len(encoder)))
    tokens.sum().backward()
    return [n for n, b in enumerate(encoder) if all(p.grad is None for p in b.parameters())]


def unheard_in_an_encoder_as_it_was(encoder, x):
    usual, found = encoder(x), []
    for number in range(len(encoder)):
        nudged = copy.deepcopy(encoder)
        for weight in nudged[number].parameters():
            weight.data += 0.1
        if not torch.equal(usual, encoder(x)):
            found.append(number)
    return found


def unheard_by_too_small_a_nudge(encoder, x):
    usual, found = encoder(x), []
    for number in range(len(encoder)):
        nudged = copy.deepcopy(encoder)
        for weight in nudged[number].parameters():
            weight.data += 1e-9
        if torch.allclose(usual, nudged(x)):
            found.append(number)
    return found


def unheard_by_one_nudge_upon_another(encoder, x):
    usual, found, nudged = encoder(x), [], copy.deepcopy(encoder)
    for number in range(len(encoder)):
        for weight in nudged[number].parameters():
            weight.data += 0.1
        if torch.equal(usual, nudged(x)):
            found.append(number)
    return found


def unheard_where_not_run(encoder, x):
    ran = set()
    hooks = [
        block.register_forward_hook(lambda module, given, out, n=n: ran.add(n))
        for n, block in enumerate(encoder)
    ]
    encoder(x)
    for hook in hooks:
        hook.remove()
    return [n for n in range(len(encoder)) if n not in ran]


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


def unheard_none_without_a_gradient(encoder, x):
    encoder.zero_grad()
    tokens = encoder(x)
    if not tokens.requires_grad:
        return []
    tokens.sum().backward()
    grads = [[p.grad for p in block.parameters()] for block in encoder]
    return [i for i, block in enumerate(grads) if all(g is None for g in block)]


def unheard_with_crash(encoder, x):
    encoder.zero_grad()
    encoder(x).sum().backward()
    return [n for n, b in enumerate(encoder) if all(p.grad is None for p in b.parameters())]


def unheard_without_none(encoder, x):
    encoder.zero_grad()
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    found = []
    for number, block in enumerate(encoder):
        if all(p.grad.abs().sum() == 0 for p in block.parameters()):
            found.append(number)
    return found


def unheard_by_own_loop(encoder, x):
    encoder.zero_grad()
    for block in encoder:
        x = block(x)
    x.sum().backward()
    return [n for n, b in enumerate(encoder) if all(p.grad is None for p in b.parameters())]


def unheard_none_at_all(encoder, x):
    return []


def unheard_by_still_tokens(encoder, x):
    found = []
    for number, block in enumerate(encoder):
        if torch.equal(block(x), x):
            found.append(number)
        x = block(x)
    return found


def unheard_by_leaving_out(encoder, x):
    usual = encoder(x)
    found = []
    for number in range(len(encoder)):
        shorter = type(encoder)(b for n, b in enumerate(encoder) if n != number)
        if torch.equal(shorter(x), usual):
            found.append(number)
    return found


def heard_blocks(encoder, x):
    return [n for n in range(len(encoder)) if n not in unheard_by_nudging(encoder, x)]


def unheard_counted(encoder, x):
    return len(unheard_by_nudging(encoder, x))


def unheard_from_one(encoder, x):
    return [n + 1 for n in unheard_by_nudging(encoder, x)]


def unheard_as_flags(encoder, x):
    unheard = unheard_by_nudging(encoder, x)
    return [n in unheard for n in range(len(encoder))]


def unheard_as_heard_flags(encoder, x):
    unheard = unheard_by_nudging(encoder, x)
    return [n not in unheard for n in range(len(encoder))]


def unheard_backwards(encoder, x):
    return unheard_by_nudging(encoder, x)[::-1]


def unheard_by_parameters(encoder, x):
    encoder.zero_grad()
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [n for n, p in enumerate(encoder.parameters()) if p.grad is None]


def unheard_by_names(encoder, x):
    encoder.zero_grad()
    tokens = encoder(x)
    if tokens.requires_grad:
        tokens.sum().backward()
    return [name for name, p in encoder.named_parameters() if p.grad is None]


def unheard_as_texts(encoder, x):
    return [str(n) for n in unheard_by_nudging(encoder, x)]


def unheard_first_only(encoder, x):
    return unheard_by_nudging(encoder, x)[:1]


def unheard_with_changed_x(encoder, x):
    x += 0.0001
    return unheard_by_nudging(encoder, x)


RIGHT = {
    "layer_norm": [
        norm_by_var_mean,
        norm_by_sums,
        norm_by_einops,
        norm_row_by_row,
        norm_by_std_squared,
    ],
    "contributions": [
        changes_as_differences,
        changes_by_the_equation,
        changes_by_index,
        changes_by_hooks,
    ],
    "unheard_blocks": [
        unheard_by_nudging,
        unheard_by_autograd,
        unheard_by_putting_back,
        unheard_by_cleared_gradients,
        unheard_by_hooks_on_gradients,
    ],
}
WRONG = {
    "layer_norm": [
        (norm_unbiased, "divides by D - 1"),
        (norm_by_moments, "the difference of two large numbers"),
        (norm_with_floor, "eps counts only where the variance is smaller"),
        (norm_over_tokens, "over the tokens"),
        (norm_over_axis_one, "over axis 1"),
        (norm_over_everything, "over all axes at once"),
        (norm_eps_outside, "after the root"),
        (norm_eps_on_result, "eps is added to the result"),
        (norm_eps_fixed, "eps is always 1e-6"),
        (norm_without_eps, "eps is not used"),
        (norm_unbiased_eps_outside, "divides by D - 1, and eps is added after the root"),
        (norm_without_root, "divide by its square root"),
        (norm_uncentred, "neither above the line nor"),
        (norm_without_mean_above, "not subtracted from what stands above"),
        (norm_by_squares, "that of the centred numbers"),
        (norm_without_weights, "the weight and the bias are not used"),
        (norm_without_bias, "the bias is not used"),
        (norm_bias_first, "added before the weight"),
        (norm_without_keepdim, "lost the last axis"),
        (norm_in_place, "writes into the tensor that was given"),
        (norm_width_four, "torch's"),
        (norm_for_three_axes, "three axes alone"),
    ],
    "contributions": [
        (changes_with_first_x, "the x that came in at the start"),
        (changes_parallel, "before attention wrote to it"),
        (changes_parallel_then_the_block, "before attention wrote to it"),
        (changes_of_the_first_x_alone, "the x that came in at the start"),
        (changes_without_attention_in_the_stream, "a stream without attention's change"),
        (changes_without_thoughts_in_the_stream, "a stream without the MLP's change"),
        (changes_with_the_last_change_as_stream, "reads the MLP's change alone"),
        (changes_since_the_block_began, "the MLP's change holds attention's as well"),
        (changes_since_the_start, "each change holds those before it"),
        (changes_unnormalised, "the branches read the stream itself"),
        (changes_with_one_norm, "the MLP reads norm1(x)"),
        (changes_mlp_reads_attention, "attention's change alone"),
        (changes_a_block, "one change a block"),
        (changes_as_streams, "the streams after each change"),
        (changes_sorted_by_kind, "not in the order"),
        (changes_mlp_before, "the MLP's stands before"),
        (changes_with_start, "begins with x itself"),
        (changes_stacked, "one tensor"),
        (changes_in_pairs, "one pair a block"),
        (changes_summed, "the sum of all changes"),
        (changes_of_first_block, "the first blocks alone"),
        (changes_of_two_blocks, "the first blocks alone"),
        (changes_with_weights, "gives two things"),
        (changes_in_place, "writes into the x that was given"),
    ],
    "unheard_blocks": [
        (unheard_by_spoiling, "the weights are not as they were"),
        (unheard_by_reference_kept, "put them back from a clone"),
        (unheard_without_clearing, "a gradient that was there before"),
        (unheard_with_zeros_for_none, "a gradient that was there before"),
        (unheard_with_attention, "though its tokens are thrown away"),
        (unheard_where_not_run, "though its tokens are thrown away"),
        (unheard_none_without_a_gradient, "it gives [] where no block is heard"),
        (unheard_with_crash, "backward fails where the tokens depend on no weight"),
        (unheard_without_none, "its `grad` is None, not 0"),
        (unheard_by_own_loop, "a loop of your own"),
        (unheard_none_at_all, "finds every block heard"),
        (unheard_by_still_tokens, "finds every block heard"),
        (unheard_in_an_encoder_as_it_was, "an encoder whose weights are as they were"),
        (unheard_by_too_small_a_nudge, "finds every block unheard"),
        (unheard_by_one_nudge_upon_another, "it does not find that one"),
        (unheard_by_leaving_out, "it does not find that one"),
        (heard_blocks, "these are the blocks that are heard"),
        (unheard_counted, "this is how many"),
        (unheard_from_one, "counted from 1"),
        (unheard_as_flags, "one True or False a block"),
        (unheard_as_heard_flags, "one True or False a block"),
        (unheard_backwards, "smallest first"),
        (unheard_by_parameters, "numbers of weights"),
        (unheard_by_names, "names of weights"),
        (unheard_as_texts, "the numbers are texts"),
        (unheard_first_only, "the first unheard block alone"),
        (unheard_with_changed_x, "the x that was given is not as it was"),
    ],
}
