"""What a forward pass takes: by part, by tokens, after small changes, by the size of the batch.

Each function gives one of the measurements of bench_lesson.py, as shares or ratios.
"""

import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.bench_runs import Run, forward, products, some_images, spread, take_turns
from vit_steps import EncoderBlock, ViT, ViTConfig, scaled_dot_product_attention
from vit_steps.scale import int8_weights, kept_bytes, multiply_adds

PARTS = ("patches", "qkv", "attention", "proj", "MLP", "head")  # scores and mixture: attention
REST = "norms, sums"

# Where the time goes -----------------------------------------------------------------------------


def timed_parts(model: ViT) -> tuple[dict[str, float], ExitStack]:
    """Seconds by part, to which each forward pass adds; closing the stack ends it.

    Attention is what `attn` takes beside `qkv` and `proj`: scores, softmax, mixture, and the cut
    into heads.
    """
    seconds: dict[str, float] = dict.fromkeys(PARTS, 0.0)
    begun, stack = {}, ExitStack()

    def watch(module: nn.Module, parts: dict[str, int]) -> None:
        def before(*_: object) -> None:
            begun[module] = time.perf_counter()

        def after(*_: object) -> None:
            took = time.perf_counter() - begun[module]
            for part, sign in parts.items():
                seconds[part] += sign * took

        stack.callback(module.register_forward_pre_hook(before).remove)
        stack.callback(module.register_forward_hook(after).remove)

    watch(model.patch_embed, {"patches": 1})
    watch(model.head, {"head": 1})
    for block in model.blocks:
        watch(block.attn, {"attention": 1})
        watch(block.attn.qkv, {"qkv": 1, "attention": -1})
        watch(block.attn.proj, {"proj": 1, "attention": -1})
        watch(block.mlp, {"MLP": 1})
    return seconds, stack


def by_part(sizes: dict[str, ViTConfig], turns: int, batch: int = 4) -> dict:
    """Shares of the multiply-adds and of the time, and how far the whole is from its products."""
    found = {}
    for size, c in sizes.items():
        work = multiply_adds(c)
        work["attention"] = work.pop("scores") + work.pop("mixture")
        model = ViT(c)
        run, shares = forward(model, c, batch), {part: [] for part in (*PARTS, REST)}
        run()
        seconds, stack = timed_parts(model)
        with stack:
            for _ in range(turns):
                seconds.update(dict.fromkeys(PARTS, 0.0))
                start = time.perf_counter()
                run()
                whole = time.perf_counter() - start
                for part in PARTS:
                    shares[part].append(seconds[part] / whole)
                shares[REST].append(1 - sum(seconds.values()) / whole)
        taken = take_turns({"model": run, "products": products(c, batch)}, turns, size)
        found[size] = {
            "work": {part: work[part] / sum(work.values()) for part in PARTS},
            "time": {part: median(values) for part, values in shares.items()},
            "of_its_products": spread(taken["model"], taken["products"]),
        }
    return {"batch": batch, "sizes": found}


# Cost against tokens -----------------------------------------------------------------------------


class Alone(nn.Module):
    """Attention alone, of queries, keys and values (3, B, h, N, d) in one tensor."""

    def __init__(self, form: Callable):
        super().__init__()
        self.form = form

    def forward(self, qkv: Tensor) -> Tensor:
        return self.form(*qkv)


class TheRest(nn.Module):
    """A block without its scores and mixture: the projected tokens are the queries."""

    def __init__(self, block: EncoderBlock):
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        b = self.block
        x = x + b.attn.proj(b.attn.qkv(b.norm1(x))[..., : b.embed_dim])
        return x + b.mlp(b.norm2(x))


def by_tokens(
    turns: int, counts: tuple[int, ...] = (32, 64, 128, 256, 512, 1024), batch: int = 4
) -> dict:
    """Time of a forward pass, and bytes kept for backward, of attention and of a block's rest.

    Both over those of the rest at the fewest tokens.
    """
    D, h = 192, 3
    forms: dict[str, nn.Module] = {
        "explicit": Alone(lambda q, k, v: scaled_dot_product_attention(q, k, v)[0]),
        "fused": Alone(F.scaled_dot_product_attention),
        "rest": TheRest(EncoderBlock(D, h)),
    }
    repeats = {count: max(counts) // count for count in counts}  # so that no turn is too short

    def given(form: str, count: int) -> Tensor:
        shape = (batch, count, D) if form == "rest" else (3, batch, h, count, D // h)
        return torch.randn(shape, requires_grad=form != "rest")

    def repeated(form: str, count: int) -> Run:
        x = given(form, count)

        @torch.no_grad()
        def run() -> None:
            for _ in range(repeats[count]):
                forms[form](x)

        return run

    runs = {f"{form} {count}": repeated(form, count) for form in forms for count in counts}
    taken = take_turns(runs, turns, "tokens")
    time_of = {f: [median(taken[f"{f} {n}"]) / repeats[n] for n in counts] for f in forms}
    kept = {f: [kept_bytes(form, given(f, n)) for n in counts] for f, form in forms.items()}
    return {
        "embed_dim": D,
        "heads": h,
        "batch": batch,
        "tokens": list(counts),
        "time": {f: [value / time_of["rest"][0] for value in time_of[f]] for f in forms},
        "kept": {f: [value / kept["rest"][0] for value in kept[f]] for f in forms},
    }


# Small changes -----------------------------------------------------------------------------------


def in_threads(run: Run, threads: int) -> Run:
    def changed() -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        run()
        torch.set_num_threads(before)

    return changed


def calls(function: Callable, x: Tensor, around: Callable = torch.no_grad) -> Run:
    def run() -> None:
        with around():
            function(x)

    return run


def in_bf16() -> ExitStack:
    stack = ExitStack()
    stack.enter_context(torch.no_grad())
    stack.enter_context(torch.autocast("cpu", torch.bfloat16))
    return stack


def small_changes(
    c: ViTConfig, what: str, turns: int, batch: int = 8, compiled: bool = True
) -> dict:
    """Seconds after each change over seconds before it, each against the same plain forward pass.

    Returns:
        "what", "rows" (name: quartiles of the ratio) and "left_out" (name: why).
    """
    model, images = ViT(c).eval(), some_images(c, batch)
    patcher, last = model.patch_embed, images.to(memory_format=torch.channels_last)
    plain = calls(model, images)
    runs: dict[str, Run] = {
        "plain": plain,
        "with gradients": calls(model, images, torch.enable_grad),
        "explicit": calls(lambda x: model(x, return_attention=True), images),
        "patcher": calls(patcher, images),
        "inference_mode instead of no_grad": calls(model, images, torch.inference_mode),
        "bf16 autocast": calls(model, images, in_bf16),
        "bf16 weights and images": calls(deepcopy(model).bfloat16(), images.bfloat16()),
        "channels-last images": calls(model, last),
        "channels-last, the patcher alone": calls(patcher, last),
        "two threads": in_threads(plain, 2),
        "int8 weights, multiplied as floats": calls(int8_weights(model), images),
    }
    before = {"channels-last, the patcher alone": "patcher"}  # the others: plain
    left_out = {}
    if not compiled or not shutil.which("c++"):
        left_out["torch.compile"] = "no C++ compiler here" if compiled else "not asked for"
    else:
        runs["torch.compile"] = calls(torch.compile(model), images)
    if dynamic := own_int8(model):
        runs["int8 by PyTorch, weights and inputs"] = calls(dynamic, images)
    else:
        left_out["int8 by PyTorch, weights and inputs"] = "this PyTorch has none"
    taken = take_turns(runs, turns, what)
    rows = {
        "no_grad instead of gradients": spread(taken["plain"], taken["with gradients"]),
        "fused attention instead of explicit": spread(taken["plain"], taken["explicit"]),
    }
    for name in runs:
        if name not in ("plain", "with gradients", "explicit", "patcher"):
            rows[name] = spread(taken[name], taken[before.get(name, "plain")])
    return {"what": f"{what}, batch {batch}", "rows": rows, "left_out": left_out}


def own_int8(model: nn.Module) -> nn.Module | None:
    """A copy whose Linears multiply in 8 bits, rounding their inputs too, if PyTorch still can."""
    quantize = getattr(getattr(torch.ao, "quantization", None), "quantize_dynamic", None)
    if quantize is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is to move to torchao
        return quantize(model, {nn.Linear}, dtype=torch.qint8)


def by_batch(
    c: ViTConfig, what: str, turns: int, batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
) -> dict:
    """Images a second over those of one image at a time in one thread, in one and two threads."""
    model = ViT(c)
    runs = {}
    for batch in batches:
        run = forward(model, c, batch)
        runs |= {f"{threads} {batch}": in_threads(run, threads) for threads in (1, 2)}
    taken = take_turns(runs, turns, what)
    first = median(taken[f"1 {batches[0]}"]) / batches[0]
    return {
        "what": what,
        "batch": list(batches),
        "images_a_second": {
            name: [first * batch / median(taken[f"{threads} {batch}"]) for batch in batches]
            for threads, name in ((1, "one thread"), (2, "two threads"))
        },
    }
