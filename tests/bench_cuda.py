"""B/16 and L/16 on a CUDA card, in 16 bits, as they stand and compiled, beside timm's.

Images per second, and two shares: of the card's peak as its maker states it, where it is listed
here, and of what one large matrix product reaches on it. Both count the multiply-adds of the model
as two operations each, forward once, training three times.
"""

import time
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW

from tests.bench_peers import PEERS
from tests.bench_runs import Run, some_images, take_turns
from vit_steps import ViTConfig
from vit_steps.scale import multiply_adds
from vit_steps.training import decay_groups
from vit_steps.training.devices import half_dtype

SIZES = {"B/16": ViTConfig.preset("B/16"), "L/16": ViTConfig.preset("L/16")}
COMPARED = ("vit_steps", "timm")
# Operations a second in 16 bits, dense, from NVIDIA's data sheets; the first name that fits counts.
PEAKS = {
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
    "T4": 65e12,
}


def finish(device: torch.device) -> None:
    """Wait until a CUDA card has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def stated_peak(name: str) -> float | None:
    """What the maker states for a card of this name, or None."""
    return next((peak for known, peak in PEAKS.items() if known in name), None)


def product_speed(device: torch.device, side: int, repeats: int = 20) -> float:
    """Operations a second of one large matrix product in 16 bits: the median of some."""
    dtype = half_dtype(device)
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for turn in range(repeats + 3):
        finish(device)
        start = time.perf_counter()
        torch.mm(a, b)
        finish(device)
        if turn > 2:
            seconds.append(time.perf_counter() - start)
    return 2 * side**3 / median(seconds)


def inference(model: nn.Module, c: ViTConfig, batch: int, device: torch.device) -> Run:
    """Weights, images and all between them in 16 bits."""
    images = some_images(c, batch).to(device, half_dtype(device))
    model.to(device, half_dtype(device)).eval()

    @torch.inference_mode()
    def run() -> None:
        model(images)
        finish(device)

    return run


def training(model: nn.Module, c: ViTConfig, batch: int, device: torch.device) -> Run:
    """Weights in 32 bits, products in 16, as `fit` does with `amp`."""
    images = some_images(c, batch).to(device)
    labels = torch.randint(c.num_classes, (batch,), device=device)
    optimizer = AdamW(decay_groups(model.to(device).train(), weight_decay=0.05), fused=True)

    def run() -> None:
        with torch.autocast(device.type, half_dtype(device)):
            logits = model(images)
        loss = F.cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        finish(device)

    return run


def measure(
    device: torch.device,
    rounds: int,
    batch: int = 128,
    sizes: dict[str, ViTConfig] | None = None,
    compiled: tuple[bool, ...] = (False, True),
) -> dict:
    """Images per second and shares of the peak, a row for each size, kind, form and peer.

    Args:
        device: a CUDA card; the CPU serves to try this.
        rounds: turns of each.
        compiled: whether to compile; both forms by default.

    Returns:
        "card", "product" (operations a second), "stated" (the same, or None), "absent" (peers that
        cannot be imported) and "rows".
    """
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    product = product_speed(device, 8192 if device.type == "cuda" else 256)
    stated = stated_peak(card)
    rows, absent = [], set()
    for size, c in (sizes or SIZES).items():
        work = sum(multiply_adds(c).values())
        for kind, start, passes in (("forward", inference, 1), ("training", training, 3)):
            runs = {}
            for peer in COMPARED:
                for form in compiled:
                    try:
                        model = PEERS[peer](c)
                    except ImportError:
                        absent.add(peer)
                        break
                    model = torch.compile(model) if form else model
                    runs[f"{peer}, compiled" if form else peer] = start(model, c, batch, device)
            turns = take_turns(runs, rounds, f"{size} {kind}")
            for name, seconds in turns.items():
                speed = batch / median(seconds)
                operations = 2 * passes * work * speed
                row = {"size": size, "kind": kind, "model": name, "images_a_second": speed}
                row["of_product"] = operations / product
                row["of_stated"] = operations / stated if stated else None
                rows.append(row)
            del runs
            torch.compiler.reset()
    told = {"card": card, "batch": batch, "product": product, "stated": stated}
    return told | {"rows": rows, "absent": sorted(absent)}


def as_text(found: dict) -> str:
    peak = f"{found['stated'] / 1e12:.0f} stated" if found["stated"] else "its peak is not listed"
    lines = [
        f"{found['card']}, batch {found['batch']}, 16 bits: {peak}, "
        f"{found['product'] / 1e12:.0f} in one large product, in 10¹² operations a second",
        f"  {'':8}{'':10}{'':22}{'images a second':>18}{'of the product':>18}{'of the peak':>14}",
    ]
    for row in found["rows"]:
        stated = f"{row['of_stated']:.0%}" if row["of_stated"] is not None else "–"
        lines.append(
            f"  {row['size']:8}{row['kind']:10}{row['model']:22}{row['images_a_second']:>18,.0f}"
            f"{row['of_product']:>18.0%}{stated:>14}"
        )
    if found["absent"]:
        lines.append(f"  not installed: {', '.join(found['absent'])}")
    return "\n".join(lines)
