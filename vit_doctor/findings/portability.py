"""Whether the model runs in another dtype, and on another device."""

import torch

from ..patient import Patient
from ..report import Finding, Skipped

NO_LOGITS = Skipped("the model gave no logits")


def device_fixed(p: Patient) -> Finding | Skipped | None:
    """Look for tensors that were told no device, or plain attributes, that meet others in forward.

    So is autocast for "cuda" by name, where nothing on its line asks whether there is one.
    """
    if p.logits is None:
        return NO_LOGITS
    why = "with the model on a GPU, or without one, it fails or does nothing: take x.device"
    if p.devices.cuda_casts:
        line, where = p.devices.cuda_casts[0]
        return Finding(f"autocast is for cuda alone: {line}", f"{why}.type", where)
    if p.devices.meetings:
        meeting, where = p.devices.meetings[0]
        source = "it was made without a device, or is no buffer, and stays on the CPU"
        return Finding(f"{meeting}; {source}", why, where)
    return None


def another_dtype(p: Patient) -> Finding | Skipped | None:
    """Run the model and one image in float64; an error is a finding. The model stays in float64."""
    if p.reference is None:
        return NO_LOGITS
    if p.images.dtype != torch.float32:
        return Skipped(f"the model is in {p.images.dtype}")
    p.model.double()
    answer = p.ask(p.sample.double())
    if not answer.error:
        p.reference64 = answer.logits
        return None
    p.model.float()
    return Finding(
        f"model and image in float64: {answer.error}",
        "a dtype written into the code keeps the model from float64, bfloat16 and half: take "
        "x.dtype",
        answer.where,
    )


PORTABILITY = (device_fixed, another_dtype)
