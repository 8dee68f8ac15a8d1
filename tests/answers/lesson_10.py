"""Answers to lesson 10's exercises, as learners would write them."""

import torch

# torchvision_name


def name_by_replacing(name):
    name = name.replace("encoder.layers.encoder_layer_", "blocks.")
    for theirs, ours in (
        ("self_attention.in_proj_", "attn.qkv."),
        ("self_attention.out_proj", "attn.proj"),
        ("ln_", "norm"),
        ("mlp.0", "mlp.fc1"),
        ("mlp.3", "mlp.fc2"),
        ("encoder.ln", "norm"),
        ("class_token", "tokens.cls_token"),
        ("encoder.pos_embedding", "tokens.pos_embed"),
        ("conv_proj", "patch_embed.proj"),
        ("heads.head", "head"),
    ):
        name = name.replace(theirs, ours)
    return name


def name_by_cases(name):
    if name == "class_token":
        return "tokens.cls_token"
    if name == "encoder.pos_embedding":
        return "tokens.pos_embed"
    *front, kind = name.replace("in_proj_", "in_proj.").split(".")
    inside = {
        "ln_1": "norm1",
        "ln_2": "norm2",
        "self_attention.in_proj": "attn.qkv",
        "self_attention.out_proj": "attn.proj",
        "mlp.0": "mlp.fc1",
        "mlp.3": "mlp.fc2",
    }
    if front[:2] == ["encoder", "layers"]:
        number = front[2].split("_")[-1]
        return f"blocks.{number}.{inside['.'.join(front[3:])]}.{kind}"
    outside = {"conv_proj": "patch_embed.proj", "encoder.ln": "norm", "heads.head": "head"}
    return f"{outside['.'.join(front)]}.{kind}"


def name_by_table(name):
    """Every name of theirs written out beforehand, for 100 blocks."""
    from vit_steps.pretrained.layouts import TORCHVISION, their_names

    table = {theirs[0]: ours for ours, theirs in their_names(TORCHVISION, 100).items()}
    return table[name]


def underscore_kept(name):
    return name_by_replacing(name).replace("qkv.", "qkv_")


def mlp_numbers_kept(name):
    return name_by_replacing(name).replace("fc2", "fc3").replace("fc1", "fc0")


def mlp_untouched(name):
    return name_by_replacing(name).replace("fc2", "3").replace("fc1", "0")


def mlp_swapped(name):
    name = name_by_replacing(name)
    return name.replace("fc1", "x").replace("fc2", "fc1").replace("x", "fc2")


def norms_with_underscore(name):
    return name_by_replacing(name).replace("norm1", "norm_1").replace("norm2", "norm_2")


def one_digit(name):
    return name_by_replacing(name).replace("blocks.11.", "blocks.1.")


def bare_tokens(name):
    return name_by_replacing(name).removeprefix("tokens.")


def attention_in_full(name):
    return name_by_replacing(name).replace(".attn.", ".self_attention.")


def layers_left(name):
    return name_by_replacing(name).replace("blocks.", "blocks.encoder_layer_")


def outside_forgotten(name):
    return name_by_replacing(name) if "layers" in name else name


def kind_lost(name):
    new = name_by_replacing(name)
    return new.rsplit(".", 1)[0] if new.endswith(("weight", "bias")) else new


def block_3_always(name):
    import re

    return re.sub(r"blocks\.\d+", "blocks.3", name_by_replacing(name))


def encoder_kept(name):
    name = name_by_replacing(name)
    return f"encoder.{name}" if name.startswith("norm.") else name


def projection_named_out(name):
    return name_by_replacing(name).replace("attn.proj", "attn.out_proj")


def heads_head(name):
    return name_by_replacing(name).replace("head.", "heads.head.")


# google_qkv


def qkv_by_flatten(query, key, value):
    return torch.cat([query.flatten(1).T, key.flatten(1).T, value.flatten(1).T])


def qkv_by_permute(query, key, value):
    kernels = torch.stack([query, key, value])  # (3, D, h, d)
    return kernels.permute(0, 2, 3, 1).reshape(-1, len(query))


def qkv_by_loops(query, key, value):
    rows = []
    for kernel in (query, key, value):
        for head in range(kernel.shape[1]):
            for column in range(kernel.shape[2]):
                rows.append(kernel[:, head, column])
    return torch.stack(rows)


def qkv_not_transposed(query, key, value):
    return torch.cat([query.flatten(1), key.flatten(1), value.flatten(1)], dim=1)


def qkv_reshaped(query, key, value):
    return torch.stack([query, key, value]).reshape(-1, query.shape[0])


def qkv_head_by_head(query, key, value):
    rows = []
    for head in range(query.shape[1]):
        rows += [query[:, head].T, key[:, head].T, value[:, head].T]
    return torch.cat(rows)


def qkv_last(query, key, value):
    return torch.stack([query, key, value], dim=-1).flatten(1).T


def qkv_width_first(query, key, value):
    return torch.cat([x.transpose(1, 2).flatten(1).T for x in (query, key, value)])


def qkv_keys_first(query, key, value):
    return qkv_by_flatten(key, query, value)


def qkv_values_first(query, key, value):
    return qkv_by_flatten(value, key, query)


def qkv_stacked(query, key, value):
    return torch.stack([query.flatten(1).T, key.flatten(1).T, value.flatten(1).T])


def qkv_three(query, key, value):
    return query.flatten(1).T, key.flatten(1).T, value.flatten(1).T


def qkv_heads_kept(query, key, value):
    return torch.cat([kernel.permute(1, 2, 0) for kernel in (query, key, value)])


def qkv_beside(query, key, value):
    return torch.cat([kernel.flatten(1).T for kernel in (query, key, value)], dim=1)


def qkv_scaled(query, key, value):
    return qkv_by_flatten(query / query.shape[-1] ** 0.5, key, value)


def qkv_twelve_heads(query, key, value):
    """The sizes of B/16 in the code."""
    return torch.cat([kernel.reshape(768, 768).T for kernel in (query, key, value)])


# audit_weights


def audit_with_loops(weights, model):
    missing, extra, wrong = [], [], []
    for name, tensor in model.state_dict().items():
        if name not in weights:
            missing.append(name)
        elif weights[name].shape != tensor.shape:
            wrong.append(name)
    for name in weights:
        if name not in model.state_dict():
            extra.append(name)
    return missing, extra, wrong


def audit_with_sets(weights, model):
    own = model.state_dict()
    both = set(own) & set(weights)
    wrong = {name for name in both if own[name].shape != weights[name].shape}
    return list(set(own) - both), list(set(weights) - both), list(wrong)


def audit_by_walking(weights, model):
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    missing = sorted(own.keys() - weights.keys())
    extra = sorted(weights.keys() - own.keys())
    return [missing, extra, [n for n in own if n in weights and own[n].size() != weights[n].size()]]


def audit_swapped(weights, model):
    missing, extra, wrong = audit_with_loops(weights, model)
    return extra, missing, wrong


def audit_other_order(weights, model):
    missing, extra, wrong = audit_with_loops(weights, model)
    return missing, wrong, extra


def audit_by_count(weights, model):
    missing, extra, _ = audit_with_loops(weights, model)
    own = model.state_dict()
    wrong = [n for n, t in weights.items() if n in own and t.numel() != own[n].numel()]
    return missing, extra, wrong


def audit_by_axes(weights, model):
    missing, extra, _ = audit_with_loops(weights, model)
    own = model.state_dict()
    return missing, extra, [n for n, t in weights.items() if n in own and t.ndim != own[n].ndim]


def audit_by_numbers(weights, model):
    missing, extra, _ = audit_with_loops(weights, model)
    own = model.state_dict()
    return missing, extra, [n for n, t in weights.items() if n in own and not t.equal(own[n])]


def audit_names_only(weights, model):
    own = model.state_dict()
    return [n for n in own if n not in weights], [n for n in weights if n not in own], []


def audit_missing_twice(weights, model):
    own, none = model.state_dict(), torch.empty(0)
    wrong = [n for n in own if weights.get(n, none).shape != own[n].shape]
    return *audit_names_only(weights, model)[:2], wrong


def audit_one_way(weights, model):
    missing, _, wrong = audit_with_loops(weights, model)
    return missing, [], wrong


def audit_without_buffers(weights, model):
    own = dict(model.named_parameters())
    missing = [name for name in own if name not in weights]
    extra = [name for name in weights if name not in own]
    return missing, extra, [n for n in own if n in weights and own[n].shape != weights[n].shape]


def audit_by_popping(weights, model):
    missing, wrong = [], []
    for name, tensor in model.state_dict().items():
        if name not in weights:
            missing.append(name)
        elif weights.pop(name).shape != tensor.shape:
            wrong.append(name)
    return missing, list(weights), wrong


def audit_by_loading(weights, model):
    own = model.state_dict()
    wrong = [n for n in own if n in weights and own[n].shape != weights[n].shape]
    fitting = {name: tensor for name, tensor in weights.items() if name not in wrong}
    missing, extra = model.load_state_dict(fitting, strict=False)
    return [name for name in missing if name not in wrong], extra, wrong


def audit_in_eval(weights, model):
    model.eval()
    return audit_with_loops(weights, model)


def audit_counted(weights, model):
    missing, extra, wrong = audit_with_loops(weights, model)
    return len(missing), len(extra), len(wrong)


RIGHT = {
    "torchvision_name": [name_by_replacing, name_by_cases, name_by_table],
    "google_qkv": [qkv_by_flatten, qkv_by_permute, qkv_by_loops],
    "audit_weights": [audit_with_loops, audit_with_sets, audit_by_walking],
}
WRONG = {
    "torchvision_name": [
        (underscore_kept, "underscore where we have a dot"),
        (mlp_numbers_kept, "second Linear, fc2"),
        (mlp_untouched, "second Linear, fc2"),
        (mlp_swapped, "swapped"),
        (norms_with_underscore, "norm1 and norm2"),
        (one_digit, "here block 11 became blocks.1"),
        (bare_tokens, "live in tokens"),
        (attention_in_full, "is attn here"),
        (layers_left, "blocks.3."),
        (outside_forgotten, "outside the blocks"),
        (kind_lost, "weight or bias"),
        (block_3_always, "its own number"),
        (encoder_kept, "last norm"),
        (projection_named_out, "attn.proj"),
        (heads_head, "head is called head"),
    ],
    "google_qkv": [
        (qkv_not_transposed, "so transpose"),
        (qkv_reshaped, "move the input axis to the end"),
        (qkv_head_by_head, "all queries first"),
        (qkv_last, "(h d qkv)"),
        (qkv_width_first, "rows are (d h)"),
        (qkv_keys_first, "keys stand before queries"),
        (qkv_values_first, "values stand first"),
        (qkv_stacked, "torch.cat"),
        (qkv_three, "torch.cat"),
        (qkv_heads_kept, "an axis of their own"),
        (qkv_beside, "side by side"),
        (qkv_scaled, "leave the scale"),
        (qkv_twelve_heads, "768"),
    ],
    "audit_weights": [
        (audit_swapped, "swapped"),
        (audit_other_order, "wrong shape comes last"),
        (audit_by_count, "compare the shapes"),
        (audit_by_axes, "as many axes"),
        (audit_by_numbers, "numbers are compared"),
        (audit_names_only, "never compared"),
        (audit_missing_twice, "first list only"),
        (audit_one_way, "goes unseen"),
        (audit_without_buffers, "buffers"),
        (audit_by_popping, "dictionary that it was given"),
        (audit_by_loading, "loads"),
        (audit_in_eval, "the model's mode"),
        (audit_counted, "names, not how many"),
    ],
}
