"""Runs a model: images in, logits, errors, gradients and what is printed out."""

import math
import random
from contextlib import ExitStack
from typing import TypeVar

import torch
from torch import Tensor, nn

from .watching.answers import STDOUT, Answer, floats_in
from .watching.blocks import Blocks
from .watching.calls import Calls, LinearMaps, norms_of
from .watching.fixed_devices import Devices
from .watching.gradients import silent_rows, without_gradient
from .watching.locations import error_location, module_location
from .watching.restore import stray_tensors, unchanged
from .watching.watch import Watch

SAME = 1e-4  # of the spread of the logits; float32 alone leaves 1e-6, an influence 1e-2 and more

T = TypeVar("T")


class SkipError(Exception):
    """A check does not apply to a model, for the reason in the message."""


class SoundError(Exception):
    """A check finds nothing."""


def need(value: T | None, reason: str) -> T:
    """Give a value back, or end a check for a reason if the value is None, False or empty."""
    if value is None or not (isinstance(value, Tensor) or value):
        raise SkipError(reason)
    return value


def only_if(value: T) -> T:
    """Give a value back, or end a check as passed if the value is None, False, 0 or empty."""
    if not value:
        raise SoundError
    return value


class Patient:
    """A model that is examined, and what the checks know of it in common.

    The model is in eval mode, and `unchanged` stands around all that is done to it; `size` is the
    (height, width) of the images; without a word whether it is `fresh`, its norms tell.
    """

    def __init__(
        self, model: nn.Module, size: tuple[int, int], channels: int, fresh: bool | None = None
    ):
        self.model, self.size, self.fresh = model, size, fresh
        self.module_paths = {id(module): path for path, module in model.named_modules()}
        self.stray_tensors = list(stray_tensors(model))
        tensors = [x for x in model.parameters() if x.is_floating_point()]
        like = tensors[0] if tensors else torch.empty(0)
        images = torch.randn(2, channels, *size, generator=torch.Generator().manual_seed(0))
        self.images = images.to(like.device, like.dtype)
        self.found_names: list[str] = []  # names of findings so far
        # What `observe` finds out.
        self.single = Answer()  # for the first image alone
        self.logits: Tensor | None = None  # of both images
        # One image (two where one fails), and its logits, in the model's dtype and in float64.
        self.sample = self.images[:1]
        self.reference: Tensor | None = None
        self.reference64: Tensor | None = None
        self.pixel_gradients: Tensor | None = None
        # Of parameters that were woken, their size before, as root of the mean square.
        self.original_sizes: dict[str, float] = {}
        self.blocks: dict[str, bool] = {}  # by their paths, whether they have an influence
        self.tokens_read: dict[str, Tensor] = {}  # of each block, which tokens it gives count
        self.silent: list[str] = []  # the parameters without a gradient
        self.silent_rows: dict[str, tuple[int, int]] = {}  # of weights, where no gradient came
        self.backward_error = ""
        self.returned_weights: list[Tensor] = []  # of attention, as it gave them in training
        self.observe()

    def location(self, path: str) -> str:
        """Give the path of a module, and the line at which its forward begins."""
        return module_location(self.model.get_submodule(path), path)

    def ask(self, images: Tensor, seed: int = 0) -> Answer:
        """Give the model's answer for these images, without gradients. It does not raise."""
        with torch.no_grad():
            return self.call(images.clone(), seed)

    def call(self, images: Tensor, seed: int) -> Answer:
        """Give the model's answer, with the gradients of the moment; errors become answers."""
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            with STDOUT.listen(self.module_paths):
                output = self.model(images)
        except (Exception, SystemExit) as error:
            where = error_location(error, self.module_paths)
            answer = Answer(error=in_one_line(error), where=where)
            error.__traceback__ = None
        else:
            heads = [x for x in floats_in(output) if x.ndim == 2 and len(x) == len(images)]
            heads = [head for head in heads if head.shape == heads[0].shape]
            answer = Answer(heads[0] if heads else None, heads)
        answer.printed = (STDOUT.text, STDOUT.where)
        return answer

    def wake(self) -> None:
        """Give small noise to every parameter that is zero or nearly so.

        Heads, gates, positions and layer scales may start at zero, and then hide all that stands
        before them: what is looked for is whether they could have an influence.
        """
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, x in self.model.named_parameters():
                if x.is_floating_point() and x.numel() and x.abs().max() < 1e-3:
                    self.original_sizes[name] = float(x.float().square().mean().sqrt())
                    x.copy_(torch.randn(x.shape, generator=generator) * 0.02)

    def observe(self) -> None:
        """Do the one run with gradients: two images, the loss a random mix of the first's logits.

        It sets the attributes that the checks read.
        """
        numbers = {n: x.detach().float() for n, x in self.model.named_parameters()}
        self.stds = {n: float(x.std(correction=0)) for n, x in numbers.items() if x.numel()}
        self.wake()
        self.old_parameters = {n: x.detach().clone() for n, x in self.model.named_parameters()}
        self.model.zero_grad(set_to_none=True)
        leaf = self.images.clone().requires_grad_()
        images = leaf * 1  # not a leaf, so that the model may change it
        copy = images.detach().clone()
        self.watch = Watch(self.model, self.module_paths)
        self.maps = LinearMaps(self.model)
        self.devices = Devices(self.module_paths, (x for _, x in self.stray_tensors))
        with ExitStack() as hooks:
            blocks, self.calls = Blocks(self.model, hooks), Calls(self.model, hooks)
            with self.watch, self.devices, self.maps:
                self.answer = self.call(images, 0)
            if self.answer.error:  # what watches may be in the way
                self.watch, images = Watch(self.model, self.module_paths), leaf * 1
                self.calls.runs.clear()
                self.answer = self.call(images, 0)
            self.runs = self.calls.runs.copy()
            self.input_changed = not torch.equal(copy, images.detach())
            if self.answer.logits is not None:
                self.learn_from(self.answer.logits, leaf, blocks)
        self.watch.labels.clear()  # lets go of all tensors
        self.answer.logits, self.answer.heads = self.logits, []
        if self.silent or self.silent_rows:
            self.second_chance()
        self.norms = norms_of(self.model, self.calls, self.maps)
        stds = [std for name, std in self.stds.items() if name.rpartition(".")[0] in self.norms]
        if self.fresh is None and stds:  # in a norm all weights are alike, till training parts them
            self.fresh = not any(stds)

    def learn_from(self, logits: Tensor, leaf: Tensor, blocks: Blocks) -> None:
        """Send the gradient back, note who gets one, and ask for the first image alone."""
        self.logits = logits.detach()
        self.backward_error = self.send_back(logits[:1])
        self.blocks = blocks.changes if logits.requires_grad else {}
        if not self.backward_error:
            self.pixel_gradients = leaf.grad
            counts = self.calls.has_influence
            self.blocks = {path: x and counts.get(path, False) for path, x in self.blocks.items()}
            self.tokens_read = blocks.tokens_read
            self.silent = without_gradient(self.model)
            self.silent_rows = silent_rows(self.model)
        self.single = self.ask(self.images[:1])
        self.reference = self.single.logits
        if self.reference is None or self.reference.shape != self.logits[:1].shape:
            self.sample = self.images  # it cannot do with one
            self.reference = self.ask(self.images).logits

    def send_back(self, *heads: Tensor) -> str:
        """Send a gradient back from a random mix of logits; give the error, or ""."""
        generator = torch.Generator().manual_seed(2)
        mixes = [torch.randn(head.shape, generator=generator).to(head) for head in heads]
        loss = sum(((head * mix).sum() for head, mix in zip(heads, mixes, strict=True)), 0.0)
        if isinstance(loss, Tensor) and loss.requires_grad:
            try:
                loss.backward()
            except RuntimeError as error:
                return in_one_line(error)
        return ""

    def second_chance(self) -> None:
        """Take off what is silent all that gets a gradient in training mode, from any head."""
        with unchanged(self.model):
            self.model.train()
            failed = self.send_back(*self.call(self.images.clone(), 0).heads)
            names = [] if failed else without_gradient(self.model)
            rows = {} if failed else silent_rows(self.model)
        self.silent = [name for name in self.silent if name in names]
        still = {*names, *rows}
        self.silent_rows = {name: ends for name, ends in self.silent_rows.items() if name in still}

    def difference(self, logits: Tensor, other: Tensor) -> float:
        """Give the largest difference of two rows of logits, over how much logits spread."""
        logits, other = logits.double(), other.double()
        spread = max(float(other.std()), 1e-12) if other.numel() > 1 else 1.0
        difference = float((logits - other).abs().max())
        return difference / spread if math.isfinite(difference) else math.inf


def in_one_line(error: BaseException) -> str:
    """Give the type of an error, and the first line of its message."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
