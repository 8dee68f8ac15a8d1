"""The page's model and measures, run by Node without a browser, beside PyTorch.

Needs Node 18 or newer; `node --test tests/explorer/*.test.js` runs alone what was worked out by
hand, and this file brings PyTorch's numbers for the rest.
"""

import base64
import json
import os
import shutil
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import close, needs, sh
from PIL import Image
from torch.nn import functional as F

from vit_course.canvases import scattered
from vit_course.explorer import packing
from vit_steps import ViT, ViTConfig, maps
from vit_steps.images import Preprocess
from vit_steps.inputs import as_pair
from vit_steps.training import load_model
from vit_steps.weights import SCATTERED

FILES = sorted((Path(__file__).parent / "explorer").glob("*.test.js"))


def node(*files, fixture=""):
    """Run tests in Node, and give what it prints."""
    program = shutil.which("node")
    needs(program="" if program else "Node")
    return sh(program, "--test", *files, timeout=300, env=os.environ | {"FIXTURE": str(fixture)})


def beside_pytorch(folder, *cases):
    """Run pytorch.test.js on what PyTorch says, in cases of one of its kinds each."""
    path = folder / "fixture.json"
    path.write_text(json.dumps(plain(cases)), encoding="utf-8")
    (file,) = [file for file in FILES if file.name == "pytorch.test.js"]
    assert f"# pass {len(cases)}" in node(file, fixture=path).replace("ℹ", "#")


def plain(x):
    """Write tensors as their shapes and their numbers of 32 bits; all else as JSON has it."""
    if isinstance(x, torch.Tensor):
        numbers = x.detach().float().contiguous().numpy().astype("<f4").tobytes()
        return {"shape": list(x.shape), "float32": base64.b64encode(numbers).decode()}
    if isinstance(x, dict):
        return {name: plain(value) for name, value in x.items()}
    return [plain(value) for value in x] if isinstance(x, (list, tuple)) else x


def page_data(model, images=None, labels=None, ink=True):
    """Give what the page's JSON holds of a model and pictures."""
    return packing.pack(model, images, labels) | {"ink": ink}


def matrices(model):
    """Give a model's weights as the page has them: of two axes each."""
    weights = {name: x[0] if x.ndim == 3 else x for name, x in model.state_dict().items()}
    return {name: x[None] if x.ndim == 1 else x.flatten(1) for name, x in weights.items()}


def test_what_was_worked_out_by_hand():
    assert "skipped 1" in node(*FILES)  # what follows here


# What PyTorch makes of it ------------------------------------------------------------------------


def steps(model, images, **without):
    """Give every intermediate of a ViT by model.js's names, in torch's functions and 64 bits.

    `without` is as in model.js. The first axis of each tensor is that of the images (B, C, H, W);
    "blocks" is a list of such dicts, and in a block "heads" is one.
    """
    c, x = model.config, images.double()
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    P, h, d = c.patch_size, c.num_heads, c.embed_dim // c.num_heads

    def linear(name, x):
        return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(name, x):
        if name in without.get("norms", ()):
            return x
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return F.layer_norm(x, x.shape[-1:], scale, shift, c.norm_eps)

    def stream(x, branch):
        return branch if without.get("residuals") else x + branch

    cut = x.unfold(2, P, P).unfold(3, P, P)  # (B, C, rows, cols, P, P)
    found = {"patches": cut.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)}
    weight, bias = weights["patch_embed.proj.weight"], weights["patch_embed.proj.bias"]
    found["embedded"] = F.conv2d(x, weight, bias, stride=P).flatten(2).mT
    cls = weights["tokens.cls_token"].expand(len(x), 1, -1)
    x = torch.cat([cls, found["embedded"]], dim=1)
    if not without.get("positions"):
        x = x + weights["tokens.pos_embed"]
    found |= {"start": x, "blocks": []}
    for b in range(c.depth):
        block, name = {"input": x}, f"blocks.{b}"
        block["norm1"] = norm(f"{name}.norm1", x)
        qkv = linear(f"{name}.attn.qkv", block["norm1"]).unflatten(-1, (3, h, d))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, h, N, d)
        products = q @ k.mT
        scores = products if without.get("scale") else products / d**0.5
        scores = scores.clone()
        scores[:, :, 0, [1 + patch for patch in without.get("hidden", ())]] = -torch.inf
        shares = scores.softmax(dim=-1)
        mixed = shares @ v
        mixed[:, [head for at, head in without.get("heads", ()) if at == b]] = 0
        parts = dict(q=q, k=k, v=v, products=products, scores=scores, weights=shares, mixed=mixed)
        block["heads"] = [{key: part[:, i] for key, part in parts.items()} for i in range(h)]
        block["merged"] = mixed.transpose(1, 2).flatten(2)
        block["attended"] = linear(f"{name}.attn.proj", block["merged"])
        block["middle"] = stream(x, block["attended"])
        block["norm2"] = norm(f"{name}.norm2", block["middle"])
        block["hidden"] = linear(f"{name}.mlp.fc1", block["norm2"])
        block["bent"] = F.gelu(block["hidden"])
        block["made"] = linear(f"{name}.mlp.fc2", block["bent"])
        block["output"] = stream(block["middle"], block["made"])
        if b in without.get("blocks", ()):
            block["output"] = x
        x = block["output"]
        found["blocks"].append(block)
    found["norm"] = norm("norm", x)
    pooled = found["norm"][:, 1:].mean(dim=1) if c.pool == "mean" else found["norm"][:, 0]
    logits = linear("head", pooled)
    ends = dict(pooled=pooled, logits=logits, probabilities=logits.softmax(dim=-1))
    return found | {name: x[:, None] for name, x in ends.items()}


def first(found):
    """Give the steps of the first picture."""
    if isinstance(found, dict):
        return {name: first(value) for name, value in found.items()}
    return [first(value) for value in found] if isinstance(found, list) else found[0]


def lively(config):
    """Make a model whose numbers all show: no flat attention, no bias of 0."""
    model = ViT(config).eval().requires_grad_(False)
    for name, x in model.named_parameters():
        if name.endswith("weight") and x.ndim > 1:
            x.normal_(std=1.5 / x[0].numel() ** 0.5)
        else:
            x.normal_(mean="norm" in name and name.endswith("weight"), std=0.3)
    return model


def rolled(found, **without):
    """Give the rollout (N, N) of the first picture: what is out takes no part in it."""
    eye = torch.eye(found["start"].shape[1], dtype=torch.float64)
    flow = eye
    for b, block in enumerate(found["blocks"]):
        out = [head for at, head in without.get("heads", ()) if at == b]
        used = [head["weights"][0] for j, head in enumerate(block["heads"]) if j not in out]
        if b not in without.get("blocks", ()) and used:
            itself = 0 if without.get("residuals") else 0.5
            flow = ((1 - itself) * torch.stack(used).mean(dim=0) + itself * eye) @ flow
    return flow


def run(model, image, **without):
    """Give a run as pytorch.test.js compares it: every step, and what some tokens look at."""
    found = steps(model, image, **without)
    blocks, last = found["blocks"], found["start"].shape[1] - 1
    looks = []
    for query, block, head in ((0, len(blocks) - 1, 0), (last, 0, model.config.num_heads - 1)):
        heads = torch.stack([one["weights"][0, query] for one in blocks[block]["heads"]])
        gone = [h for b, h in without.get("heads", ()) if b == block]
        used = [h for h in range(len(heads)) if h not in gone]
        mean = heads[used].mean(dim=0) if used else torch.zeros(last + 1)
        looks.append(["head", query, block, head, heads[head]])
        looks.append(["mean", query, block, head, mean])
        looks.append(["rollout", query, block, head, rolled(found, **without)[query]])
    return dict(pixels=image[0], without=without, wanted=first(found), looks=looks, atol=1e-4)


CONFIGS = [
    ViTConfig(8, 4, 3, 3, embed_dim=12, depth=2, num_heads=3, pool="mean"),
    ViTConfig((6, 9), 3, 3, 5, embed_dim=12, depth=2, num_heads=2, qkv_bias=False),
    ViTConfig((15, 5), 5, 2, 4, embed_dim=16, depth=3, num_heads=4, mlp_ratio=1.5, pool="mean"),
    ViTConfig((4, 16), 2, 2, 12, embed_dim=12, depth=1, num_heads=4, norm_eps=0.01),
    ViTConfig(16, 4, 1, 10, embed_dim=64, depth=4, num_heads=1),
    ViTConfig(3, 1, 1, 2, embed_dim=8, depth=2, num_heads=2, mlp_ratio=0.5, norm_eps=0.1),
    ViTConfig((9, 15), 3, 1, 1, embed_dim=10, depth=1, num_heads=2, pool="mean", qkv_bias=False),
]


def test_every_number_is_pytorchs(tmp_path):
    cases = []
    for c in CONFIGS:
        model = lively(c)
        image = torch.rand(1, c.in_channels, *as_pair(c.image_size)) * 2 - 1
        reference = steps(model, image)
        logits, attention = model(image, return_attention=True)
        close(reference["logits"][:, 0].float(), logits, 1e-4)
        for block, weights in zip(reference["blocks"], attention, strict=True):
            close(torch.stack([h["weights"] for h in block["heads"]], 1).float(), weights, 1e-4)
        assert all(weights.std() > 0.02 for weights in attention)  # not flat
        close(rolled(reference).float(), maps.rollout(attention)[0], 1e-4)
        cases.append(["runs", dict(given=page_data(model), runs=[run(model, image)])])
    beside_pytorch(tmp_path, *cases)


def test_a_page_in_16_bits_computes_with_the_rounded_weights(tmp_path):
    c = ViTConfig((16, 24), 8, 3, 5, embed_dim=128, depth=2, num_heads=4, pool="mean")
    model = lively(c)
    # The smallest numbers, the largest, those between two, and a 0 with its sign.
    odd = torch.tensor([2**-24, -(2**-14) + 2**-24, 65504.0, 1 + 2**-11, -0.0])
    model.tokens.pos_embed.data[0, 0, :5] = odd * torch.tensor([1, 1, 2**-15, 1, 1])
    model.tokens.cls_token.data[0, 0, :2] = torch.tensor([-65504.0, 65504.0])
    rounded = deepcopy(model).half().float()
    image = torch.rand(1, 3, 16, 24) * 2 - 1
    assert (steps(model, image)["logits"] - steps(rounded, image)["logits"]).abs().max() > 1e-4
    data = page_data(model)
    assert {entry["kind"] for entry in data["weights"].values()} == {"float16"}
    bits = plain(dict(given=data, wanted=matrices(rounded)))
    model.tokens.cls_token.data[:] = rounded.tokens.cls_token.data[:] = 1.0
    runs = dict(given=page_data(model), runs=[run(rounded, image)])
    beside_pytorch(tmp_path, ["weights", bits], ["runs", runs])


NORMS = ["norm", *(f"blocks.{b}.norm{i}" for b in range(2) for i in (1, 2))]
SWITCHES = [
    *({name: True} for name in ("positions", "scale", "residuals")),
    *({"norms": [norm]} for norm in NORMS),
    *({"blocks": [b]} for b in range(2)),
    *({"heads": [[b, h]]} for b in range(2) for h in range(3)),
]


def test_what_is_taken_out_is_out(tmp_path):
    model = lively(ViTConfig((8, 12), 4, 1, 4, embed_dim=12, depth=2, num_heads=3))
    image = torch.rand(1, 1, 8, 12) * 2 - 1
    whole, runs = steps(model, image)["logits"], []
    for without in SWITCHES:
        logits = steps(model, image, **without)["logits"]
        assert (logits - whole).abs().max() > 0.01, without
        runs.append(run(model, image, **without))
    for hidden in ([0], [5], [1, 3], list(range(6))):
        blind = torch.zeros(1, 2, 3, dtype=torch.bool)
        blind.view(-1)[hidden] = True
        logits = steps(model, image, hidden=hidden)["logits"]
        close(logits[:, 0].float(), maps.blinded(model, image, blind), 1e-4)
        runs.append(run(model, image, hidden=hidden))
    runs.append(run(model, image, heads=[[0, 2], [1, 0]], positions=True, hidden=[2]))
    runs.append(run(model, image, heads=[[1, 0], [1, 1], [1, 2]]))
    beside_pytorch(tmp_path, ["runs", dict(given=page_data(model), runs=runs)])


SIZES = [  # of a photo, and of the model's picture
    ((48, 64), (8, 8)),  # wide: the middle is cut out
    ((101, 37), (32, 32)),  # tall, sizes that no number divides
    ((31, 33), (32, 32)),  # made larger
    ((500, 333), (32, 32)),
    ((40, 90), (8, 24)),  # it must cover the longer side
    ((57, 200), (24, 8)),
    ((8, 24), (8, 24)),  # as it is
]


def test_a_photo_is_prepared_as_for_training(tmp_path):
    cases = []
    for size, to in SIZES:
        # Noise in large steps: bicubic goes beyond black and white.
        photo = np.random.default_rng(0).integers(2, size=(*size, 3), dtype=np.uint8) * 255
        prepared = Preprocess(to, min(to), "bicubic")(Image.fromarray(photo))[0]
        content = torch.from_numpy(np.dstack([photo, np.full(size, 255, dtype=np.uint8)]))
        config = dict(height=to[0], width=to[1], in_channels=3)
        case = dict(bytes=content, width=size[1], height=size[0], config=config)
        cases.append(["shrink", case | dict(wanted=prepared, atol=1 / 255)])
    beside_pytorch(tmp_path, *cases)


# What needs many runs ----------------------------------------------------------------------------


def draws(seed=1):
    """Draw shares from 0 to 1 by the page's generator of random numbers (Numerical Recipes)."""
    last = seed
    while True:
        last = (last * 1664525 + 1013904223) % 2**32
        yield (last + 0.5) / 2**32


def twin(model):
    """Make the untrained twin: as before training, but drawn by the page's generator."""
    c, share = model.config, draws()
    model = ViT(c).eval().requires_grad_(False)

    def normal(std):
        size = (-2 * np.log(next(share))) ** 0.5
        return std * size * np.cos(2 * np.pi * next(share))

    reach = (1 / (c.in_channels * c.patch_size**2)) ** 0.5
    for name, x in model.state_dict().items():
        if name.startswith("patch_embed"):
            numbers = [reach * (2 * next(share) - 1) for _ in range(x.numel())]
        elif name.endswith("bias"):
            numbers = [0.0] * x.numel()
        elif "norm" in name:
            numbers = [1.0] * x.numel()
        else:
            numbers = [normal(0.2 if "pos_embed" in name else 0.02) for _ in range(x.numel())]
        x.copy_(torch.tensor(numbers).view(x.shape))
    return model


def test_the_twin_is_as_a_model_before_training():
    """Its numbers are spread as those of a new ViT; the page's equal these, below."""
    c = ViTConfig(16, 4, 3, 10, embed_dim=64, depth=1, num_heads=4)
    for (name, a), b in zip(ViT(c).named_parameters(), twin(ViT(c)).parameters(), strict=True):
        assert a.numel() < 100 or abs(a.std() - b.std()) <= 0.2 * a.std(), name


def covered(images, patches, size, paper=None):
    """Cover patches of pictures (B, C, H, W) by paper, or by each one's mean colour."""
    hidden = torch.zeros(images.shape[2] // size, images.shape[3] // size, dtype=torch.bool)
    hidden.view(-1)[list(patches)] = True
    pixels = hidden.repeat_interleave(size, 0).repeat_interleave(size, 1)
    fill = images.mean(dim=(2, 3), keepdim=True) if paper is None else torch.tensor(paper)
    return torch.where(pixels, fill, images)


def shares(model, images, **without):
    return steps(model, images, **without)["probabilities"][:, 0]


def from_cls(found):
    """Give the weights that cls gives (L h, B, N)."""
    heads = [head for block in found["blocks"] for head in block["heads"]]
    return torch.stack([head["weights"][:, 0] for head in heads])


def readings(model, found):
    """Give what the head makes of each stage of the stream: logits (B, classes)."""
    stages = [found["start"], *(block["output"] for block in found["blocks"])]
    norms = [model.norm(x.float()) for x in stages]
    mean = model.config.pool == "mean"
    return [model.head(x[:, 1:].mean(dim=1) if mean else x[:, 0]) for x in norms]


def measured(model, images, labels, paper):
    """Give what vitMeasures finds, each as (its name, its arguments, its result)."""
    size, plain = model.config.patch_size, steps(model, images)
    patches = plain["patches"].shape[1]

    def right(found):
        return int((found.argmax(dim=1) == labels).sum())

    whole = right(plain["probabilities"][:, 0])
    for out in ({"positions": True}, {"blocks": [1]}, {"heads": [[0, 0], [0, 1], [1, 0]]}):
        after = right(shares(model, images, **out))
        assert after != whole
        yield "count", {"without": out}, dict(before=whole, after=after, of=len(images))
    after = right(shares(model, covered(images, [1, 2], size, paper), norms=["norm"]))
    args = {"without": {"norms": ["norm"]}, "covered": [1, 2]}
    yield "count", args, dict(before=whole, after=after, of=len(images))

    one = images[:1]
    for hidden, before in (([], []), ([3], [0, 2])):
        pictures = torch.cat([covered(one, [*before, i], size, paper) for i in range(patches)])
        args = dict(pixels=one[0], covered=before, without={"hidden": hidden})
        yield "matters", args, shares(model, pictures, hidden=hidden)

    lenses = [right(logits) for logits in readings(model, plain)]
    assert len(set(lenses)) > 1
    yield "lenses", {}, lenses

    light = plain["patches"].mean(dim=2)
    bare = steps(model, images, scale=True)
    sharp = [from_cls(found).amax(dim=-1).mean().item() for found in (plain, bare)]
    found = dict(before=sharp[0], after=sharp[1], right=right(bare["probabilities"][:, 0]))
    yield "sharpness", {}, found

    share, after = draws(), {"marked": [], "drawn": []}
    _, attention = model(images, return_attention=True)
    marked = maps.rollout(attention)[:, 0, 1:].argmax(dim=1).tolist()
    for picture, values, top in zip(images, light.tolist(), marked, strict=True):
        others = [p for p in range(patches) if p != top and values[p] != paper]
        drawn = others[int(next(share) * len(others))]
        for name, patch in (("marked", top), ("drawn", drawn)):
            after[name].append(shares(model, picture[None], hidden=[patch])[0])
    found = {name: right(torch.stack(rows)) for name, rows in after.items()}
    yield "reasons", {}, {"before": whole, **found}


@pytest.mark.slow
@pytest.mark.parametrize("ink", [True, False])
def test_what_needs_many_runs_is_as_worked_out_in_pytorch(ink, tmp_path):
    if ink:
        model = load_model(SCATTERED).eval().requires_grad_(False)
        images, labels = scattered(20, seed=1, held_out=True)[:]
    else:
        model = lively(ViTConfig((8, 12), 4, 3, 5, embed_dim=12, depth=2, num_heads=3, pool="mean"))
        images = torch.rand(40, 3, 8, 12) * 2 - 1
        labels = model(images).argmax(dim=1)
        labels[::3] = 0
    images = ((images + 1) * 127.5).round() / 127.5 - 1  # as the page's bytes have them
    results = measured(model, images, labels, -1.0 if ink else None)
    asked = [dict(name=name, args=args, wanted=x, atol=1e-5) for name, args, x in results]
    packed = page_data(model, images, labels.tolist(), ink)
    fixture = dict(given=packed, asked=asked, twin=matrices(twin(model)))
    beside_pytorch(tmp_path, ["measures", fixture])
