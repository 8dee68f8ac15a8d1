"""Examines any ViT written in PyTorch, from outside and within, and changes nothing in it.

It runs the model that it is given, and nothing else. What it does not know it does not claim: a
check that does not apply says so.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import index
from threading import Lock

import torch
from torch import nn

from .findings import CHECKS
from .patient import Patient, SkipError, SoundError
from .report import Finding, Note, Report, Skipped
from .watching.answers import STDOUT
from .watching.restore import unchanged

ONE_AT_A_TIME = Lock()  # what is printed, and autocast, can be listened to for one model alone

__all__ = ["Finding", "Note", "Report", "Skipped", "examine"]


def examine(
    model: nn.Module,
    image_size: int | tuple[int, int] = 224,
    in_channels: int = 3,
    fresh: bool | None = None,
) -> Report:
    """Look for the known mistakes in a model that turns images into logits.

    The logits may stand in a tuple, a list, a dict or an object. The model is run a dozen times
    with one or two images of noise, and is afterwards as it was: weights, buffers, gradients, mode,
    hooks, plain attributes, and the random state too.

    Args:
        model: from images (B, C, H, W) of floats to logits (B, classes).
        image_size: in pixels, one number for a square or (height, width).
        in_channels: C.
        fresh: whether the model is untrained, as some checks are only for its start; None to tell
            by its norms, which no training leaves at 1 and 0.

    Raises:
        TypeError: the model is no nn.Module, such as a class that was not called.
        ValueError: a size below 1.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}; give an nn.Module, made and not trained")
    sides = image_size if isinstance(image_size, Sequence) else (image_size,) * 2
    size, channels = tuple(map(index, sides)), index(in_channels)
    if len(size) != 2 or min(*size, channels) < 1:
        raise ValueError(f"image_size is {image_size}, in_channels {in_channels}; give 1 and more")
    findings, notes, skipped, passed = [], [], [], []
    model = getattr(model, "_orig_mod", model)  # what torch.compile has wrapped
    with ONE_AT_A_TIME, unchanged(model), uncompiled(), STDOUT.listen({}):
        torch.set_num_threads(1)  # beside other work two are slower than one
        patient = Patient(model.eval(), (size[0], size[1]), channels, fresh)
        for check in CHECKS:
            name = check.__name__.replace("_", " ")
            try:
                finding = check(patient)
            except SoundError:
                passed.append(name)
            except SkipError as error:
                skipped.append(Skipped(str(error), name))
            except Exception as error:  # a model may surprise the doctor: then it knows nothing
                reason = f"could not be measured: {type(error).__name__}: {error}"
                skipped.append(Skipped(reason, name))
            else:
                where = finding.where.replace("_orig_mod.", "")  # torch.compile's own
                finding = replace(finding, name=name, where=where)
                if isinstance(finding, Note):
                    notes.append(finding)
                else:
                    findings.append(finding)
                    patient.found_names.append(name)
    found = tuple(findings), tuple(skipped), tuple(passed), tuple(notes)
    return Report(*found, images=(channels, *size))


def uncompiled() -> AbstractContextManager:
    """Let run as written what torch.compile has compiled; each look would compile it anew."""
    in_use = "torch._dynamo" in sys.modules
    return torch.compiler.set_stance("force_eager") if in_use else nullcontext()
