"""Runs a model: images in, logits, errors, gradients and what is printed out."""

import math
import random

import torch
from torch import Tensor, nn

from .watching.answers import EARS, Answer, rows_of
from .watching.blocks import Acts
from .watching.calls import Calls, Maps, norms_of
from .watching.fixed_devices import Devices
from .watching.gradients import silent_rows, without_gradient
from .watching.places import of_error, paths
from .watching.restore import strays, unchanged
from .watching.watch import Watch

SAME = 1e-4  # of the spread of the logits; float32 alone leaves 1e-6, an influence 1e-2 and more


class Patient:
    """A model that is examined, and what the checks know of it in common.

    Args:
        model: in eval mode; `unchanged` stands around all that is done to it.
        size: (height, width) of the images.
        channels: of the images.
        fresh: whether it is untrained; None to tell by its norms.
    """

    def __init__(
        self, model: nn.Module, size: tuple[int, int], channels: int, fresh: bool | None = None
    ):
        self.model, self.size = model, size
        self.known = paths(model)
        self.fresh = fresh
        self.strays = list(strays(model))
        tensors = [t for t in model.parameters() if t.is_floating_point()]
        like = tensors[0] if tensors else torch.empty(0)
        images = torch.randn(2, channels, *size, generator=torch.Generator().manual_seed(0))
        self.images = images.to(like.device, like.dtype)
        # What `observe` finds out.
        self.watch, self.calls = Watch(model, self.known), Calls(nn.Identity())
        self.maps, self.norms = Maps(model), set[str]()
        self.stds: dict[str, float] = {}  # of parameters, before they were woken
        self.devices = Devices(self.known, ())
        self.answer, self.alone = Answer(), Answer()
        self.logits: Tensor | None = None
        # One image (two where one fails), and its logits, in the model's dtype and in float64.
        self.some = self.images[:1]
        self.given: Tensor | None = None
        self.double: Tensor | None = None
        self.pixels: Tensor | None = None
        self.input_changed = False
        self.before: dict[str, Tensor] = {}
        self.blocks: dict[str, bool] = {}
        self.reads: dict[str, Tensor] = {}  # of each block, which tokens of its output count
        self.silent: list[str] = []
        self.rows: dict[str, tuple[int, int]] = {}  # of weights, where no gradient came
        self.backward = ""  # what backward raised
        self.woken: dict[str, float] = {}  # their size before, as root of the mean square
        self.squares: list[Tensor] = []  # attention that it returned in training
        self.found: list[str] = []  # names of findings so far

    def ask(self, images: Tensor, seed: int = 0) -> Answer:
        """What the model gives for these images, without gradients. It does not raise."""
        with torch.no_grad():
            return self.call(images.clone(), seed)

    def call(self, images: Tensor, seed: int) -> Answer:
        """What the model gives, with the gradients of the moment; errors become answers."""
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            with EARS.listen(self.known):
                output = self.model(images)
        except (Exception, SystemExit) as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            answer = Answer(error=text, where=of_error(error, self.known))
            error.__traceback__ = None
        else:
            heads = rows_of(output, len(images))
            heads = [head for head in heads if head.shape == heads[0].shape]
            answer = Answer(heads[0] if heads else None, heads)
        answer.printed = (EARS.text, EARS.where)
        return answer

    def wake(self) -> None:
        """Give small noise to every parameter that is zero or nearly so.

        Heads, gates, positions and layer scales may start at zero, and then hide all that stands
        before them: what is looked for is whether they could have an influence.
        """
        draw = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                if p.is_floating_point() and p.numel() and p.abs().max() < 1e-3:
                    self.woken[name] = float(p.float().square().mean().sqrt())
                    p.copy_(torch.randn(p.shape, generator=draw) * 0.02)

    def observe(self) -> None:
        """The one run with gradients: two images, the loss a random mix of the first's logits.

        Afterwards `watch` holds what was seen inside, `pixels` the gradient at the images or None,
        `silent` the parameters without a gradient, `blocks` which blocks of a list have an
        influence, `alone` the answer for the first image by itself, `given` the logits of `some`.
        """
        numbers = {n: x.detach().float() for n, x in self.model.named_parameters()}
        self.stds = {n: float(x.std(correction=0)) for n, x in numbers.items() if x.numel()}
        self.wake()
        self.before = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        self.model.zero_grad(set_to_none=True)
        leaf = self.images.clone().requires_grad_()
        given = leaf * 1  # not a leaf, so that the model may change it
        copy = given.detach().clone()
        self.watch = Watch(self.model, self.known)
        acts, self.calls = Acts(self.model), Calls(self.model)
        self.devices = Devices(self.known, (x for _, x in self.strays))
        with self.watch, self.devices, self.maps:
            self.answer = self.call(given, 0)
        if self.answer.error:  # what watches may be in the way
            self.watch, given = Watch(self.model, self.known), leaf * 1
            self.answer = self.call(given, 0)
        self.input_changed = not torch.equal(copy, given.detach())
        logits = self.answer.logits
        if logits is not None:
            self.logits = logits.detach()
            self.backward = self.learn(logits[:1])
            self.blocks = acts.moved
            if not self.backward:
                self.pixels = leaf.grad
                self.blocks = acts.result() if logits.requires_grad else {}
                self.reads = acts.reads
                self.silent = without_gradient(self.model)
                self.rows = silent_rows(self.model)
            self.alone = self.ask(self.images[:1])
            if self.alone.logits is None or self.alone.logits.shape != self.logits[:1].shape:
                self.some = self.images  # it cannot do with one
                self.given = self.ask(self.images).logits
            else:
                self.given = self.alone.logits
        acts.remove()
        self.calls.remove()
        self.watch.forget()
        self.answer.logits, self.answer.heads = self.logits, []
        if logits is not None and (self.silent or self.rows):
            self.second_chance()
        self.norms = norms_of(self.model, self.calls, self.maps)
        if self.fresh is None:
            self.fresh = self.looks_fresh()

    def looks_fresh(self) -> bool | None:
        """Whether in every norm the weights are all alike, and the biases: training parts them.

        None where there is no norm to tell by.
        """
        own = [n for n in self.stds if n.rpartition(".")[0] in self.norms]
        return all(self.stds[n] == 0 for n in own) if own else None

    def learn(self, *heads: Tensor) -> str:
        """Send a gradient back from a random mix of logits; gives the error, or ""."""
        draw = torch.Generator().manual_seed(2)
        mixes = [torch.randn(head.shape, generator=draw).to(head) for head in heads]
        loss = sum(((head * mix).sum() for head, mix in zip(heads, mixes, strict=True)), 0.0)
        if isinstance(loss, Tensor) and loss.requires_grad:
            try:
                loss.backward()
            except RuntimeError as error:
                return f"{type(error).__name__}: {error}".splitlines()[0]
        return ""

    def second_chance(self) -> None:
        """Take off `silent` and `rows` what gets a gradient in training mode, from any head."""
        with unchanged(self.model):
            self.model.train()
            failed = self.learn(*self.call(self.images.clone(), 0).heads)
            still = [] if failed else without_gradient(self.model)
            rows = {} if failed else silent_rows(self.model)
        self.silent = [name for name in self.silent if name in still]
        self.rows = {name: at for name, at in self.rows.items() if name in rows or name in still}

    def differs(self, logits: Tensor, other: Tensor) -> float:
        """The largest difference of two rows of logits, over how much logits spread."""
        logits, other = logits.double(), other.double()
        spread = max(float(other.std()), 1e-12) if other.numel() > 1 else 1.0
        difference = float((logits - other).abs().max())
        return difference / spread if math.isfinite(difference) else math.inf
