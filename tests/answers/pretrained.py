"""Answers to lesson 09's exercises, as learners would write them."""

import torch


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


def underscore_kept(name):
    return name_by_replacing(name).replace("qkv.", "qkv_")


def mlp_numbers_kept(name):
    return name_by_replacing(name).replace("fc2", "fc3").replace("fc1", "fc0")


def norms_with_underscore(name):
    return name_by_replacing(name).replace("norm1", "norm_1").replace("norm2", "norm_2")


def one_digit(name):
    return name_by_replacing(name).replace("blocks.11.", "blocks.1.")


def bare_tokens(name):
    return name_by_replacing(name).removeprefix("tokens.")


def qkv_by_flatten(query, key, value):
    return torch.cat([query.flatten(1).T, key.flatten(1).T, value.flatten(1).T])


def qkv_by_permute(query, key, value):
    kernels = torch.stack([query, key, value])  # (3, D, h, d)
    return kernels.permute(0, 2, 3, 1).reshape(-1, len(query))


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
    return set(own) - both, set(weights) - both, wrong


def audit_swapped(weights, model):
    missing, extra, wrong = audit_with_loops(weights, model)
    return extra, missing, wrong


def audit_by_count(weights, model):
    missing, extra, _ = audit_with_loops(weights, model)
    own = model.state_dict()
    wrong = [n for n, t in weights.items() if n in own and t.numel() != own[n].numel()]
    return missing, extra, wrong


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


RIGHT = {
    "torchvision_name": [name_by_replacing, name_by_cases],
    "google_qkv": [qkv_by_flatten, qkv_by_permute],
    "audit_weights": [audit_with_loops, audit_with_sets],
}
WRONG = {
    "torchvision_name": [
        (underscore_kept, "underscore where we have a dot"),
        (mlp_numbers_kept, "second Linear, fc2"),
        (norms_with_underscore, "norm1 and norm2"),
        (one_digit, "two digits"),
        (bare_tokens, "live in tokens"),
    ],
    "google_qkv": [
        (qkv_not_transposed, "so transpose"),
        (qkv_reshaped, "mixes inputs and outputs"),
        (qkv_head_by_head, "all queries first"),
        (qkv_last, "(h d qkv)"),
        (qkv_width_first, "rows are (d h)"),
        (qkv_keys_first, "keys stand before queries"),
    ],
    "audit_weights": [
        (audit_swapped, "swapped"),
        (audit_by_count, "compare the shapes"),
        (audit_names_only, "never compared"),
        (audit_missing_twice, "first list only"),
        (audit_one_way, "goes unseen"),
    ],
}
