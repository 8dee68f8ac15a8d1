"""Lesson 07: where a training runs, and in how many bits."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from .dataset import ImageDataset


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device by its name (ValueError where there is none); for None CUDA, MPS or the CPU."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch has both for what it lacks
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"device {device!r} cannot be used here: {reason}") from error


def bring(data: Any, device: torch.device) -> Any:
    """The pictures on CUDA, if they take less than half of what is free there; else as they are."""
    if device.type != "cuda" or not isinstance(data, ImageDataset):
        return data
    free, _ = torch.cuda.mem_get_info(device)
    if data.pixels.nbytes >= free / 2:
        return data
    return replace(data, pixels=data.pixels.to(device), labels=data.labels.to(device), places=None)


def half_dtype(device: torch.device) -> torch.dtype:
    """The 16 bits of mixed precision: bfloat16, but float16 on a CUDA card that lacks it."""
    if device.type not in ("cuda", "cpu"):
        raise ValueError(f"amp is for CUDA and the CPU, not for {device.type}; leave it out")
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


def autocast(device: torch.device, amp: bool) -> AbstractContextManager:
    """Within this, if `amp`, matrices are multiplied in 16 bits (Micikevicius et al. 2018)."""
    return torch.autocast(device.type, half_dtype(device)) if amp else nullcontext()


def make_scaler(device: torch.device, amp: bool) -> torch.amp.GradScaler:
    """What keeps small gradients from being rounded to 0; at work in float16 alone."""
    needed = amp and half_dtype(device) == torch.float16
    return torch.amp.GradScaler(device.type, enabled=needed)
