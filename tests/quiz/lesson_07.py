"""Lesson 07: training."""

from math import isclose

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vit_steps.training import train_step

from . import only


def q1_surer_of_a_mistake():
    logits, labels = 3 * torch.eye(10), torch.arange(10)
    labels[9] = 0  # one of ten is wrong
    right = [(x.argmax(dim=1) == labels).sum().item() for x in (logits, 10 * logits)]
    assert right == [9, 9]
    ratio = (F.cross_entropy(10 * logits, labels) / F.cross_entropy(logits, labels)).item()
    return only(a=ratio > 1.1, b=ratio < 0.9, c=isclose(ratio, 1, rel_tol=0.1))


def q2_a_loss_times_100():
    def first_step(kind: type[torch.optim.Optimizer], factor: float, **options: float) -> float:
        w = torch.tensor([0.5], requires_grad=True)
        optimizer = kind([w], lr=0.01, **options)
        (factor * (w - 3) ** 2).sum().backward()
        optimizer.step()
        return abs(w.item() - 0.5)

    kinds = {torch.optim.SGD: {}, torch.optim.AdamW: {"weight_decay": 0}}
    sgd, adamw = (
        isclose(first_step(kind, 100, **options), 100 * first_step(kind, 1, **options), rel_tol=0.1)
        for kind, options in kinds.items()
    )
    return only(a=sgd and adamw, b=sgd and not adamw, c=not sgd and not adamw)


def q3_val_or_test():
    torch.manual_seed(0)
    # 20 models that are equally good, 90%, judged on 359 pictures, and that 2,000 times.
    accuracy = torch.distributions.Binomial(359, torch.tensor(0.9)).sample((2, 2000, 20)) / 359
    val, test = accuracy
    best = val.argmax(dim=1, keepdim=True)
    reported = dict(a=val.gather(1, best), b=test.gather(1, best), c=test.amax(dim=1))
    return only(**{x: abs(said.mean().item() - 0.9) < 0.002 for x, said in reported.items()})


def q4_caught_by_one_batch():
    def learned(images: Tensor, labels: Tensor, of_another: bool = False) -> bool:
        torch.manual_seed(0)
        model, before = (
            nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
            for _ in "12"
        )
        optimizer = torch.optim.AdamW((before if of_another else model).parameters(), lr=0.02)
        losses = [train_step(model, optimizer, images, labels).item() for _ in range(60)]
        return losses[-1] < 0.1

    torch.manual_seed(0)
    images, labels = torch.randn(64, 1, 8, 8), torch.randint(10, (64,))
    assert learned(images, labels)
    twice = torch.arange(64) % 48  # a third of 48 pictures is there twice
    return only(
        a=not learned(images.flip(2), labels),
        b=not learned(images[twice], labels[twice]),
        c=not learned(images, labels, of_another=True),
    )


def q5_a_mode_that_is_left():
    model, at_work = nn.Dropout(0.5), 0
    model.train()
    for _ in range(8):
        at_work += (model(torch.ones(100)) == 0).any().item()
        model.eval()  # the report
    return only(a=at_work == 1, b=at_work == 7, c=at_work == 8)


def q6_a_new_adamw():
    def go_on(stops: bool, saved: bool = False) -> Tensor:
        """A weight after five steps and five more."""
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(10):
            if step == 5 and stops:
                state = optimizer.state_dict()
                optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
                if saved:
                    optimizer.load_state_dict(state)
            train_step(model, optimizer, torch.randn(8, 4), torch.randint(3, (8,)))
        return model.weight.detach()

    never = go_on(stops=False)
    assert torch.equal(go_on(stops=True, saved=True), never)
    try:
        alike, error = torch.equal(go_on(stops=True), never), False
    except (KeyError, RuntimeError, ValueError):
        alike, error = False, True
    return only(a=not error and not alike, b=alike, c=error)
