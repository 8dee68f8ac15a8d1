"""Answers to lesson 07's build cells and exercises, as learners would write them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from vit_steps.training import augment_digits

# The first build cell: one training step ----------------------------------------------------------


def in_another_order(model, optimizer, images, labels):
    optimizer.zero_grad()
    logits = model(images)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def cleared_by_the_model(model, optimizer, images, labels):
    model.zero_grad()
    loss = nn.CrossEntropyLoss()(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach().clone()


def cleared_at_the_end(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.data


def by_log_softmax(model, optimizer, images, labels):
    logs = model(images).log_softmax(dim=-1)
    loss = -logs[torch.arange(len(labels)), labels].mean()
    for parameter in model.parameters():
        parameter.grad = None
    loss.backward()
    optimizer.step()
    return loss.detach()


def by_autograd(model, optimizer, images, labels):
    loss = F.nll_loss(F.log_softmax(model(images), 1), labels)
    parameters = list(model.parameters())
    for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = grad
    optimizer.step()
    return loss.detach()


def with_the_mode_put_back(model, optimizer, images, labels):
    mode = model.training
    loss = F.cross_entropy(input=model(images), target=labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    model.train(mode)
    return loss.detach()


def switched_to_training(model, optimizer, images, labels):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(input=model(images), target=labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def never_cleared(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def clearing_not_called(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad  # noqa: B018
    loss.backward()
    optimizer.step()
    return loss.detach()


def cleared_too_late(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.detach()


def never_backward(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    optimizer.step()
    return loss.detach()


def backward_not_called(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward  # noqa: B018
    optimizer.step()
    return loss.detach()


def never_moved(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    return loss.detach()


def moved_before_backward(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    optimizer.step()
    loss.backward()
    return loss.detach()


def moving_not_called(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step  # noqa: B018
    return loss.detach()


def softmax_before_the_loss(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images).softmax(dim=-1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def summed_over_the_batch(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels, reduction="sum")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def uphill(model, optimizer, images, labels):
    loss = -F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def with_its_graph(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def as_a_number(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def without_return(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def loss_after_the_step(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return F.cross_entropy(model(images), labels).detach()


def put_in_eval(model, optimizer, images, labels):
    model.eval()
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def accuracy_as_loss(model, optimizer, images, labels):
    loss = (model(images).argmax(dim=1) == labels).float().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def nll_of_logits(model, optimizer, images, labels):
    loss = F.nll_loss(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def stepped_twice(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    optimizer.step()
    return loss.detach()


def loss_halved_in_return(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach() / 2


def optimizer_of_its_own(model, optimizer, images, labels):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def moved_by_hand(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    return loss.detach()


def arguments_swapped(model, optimizer, images, labels):
    loss = F.cross_entropy(labels, model(images))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def squared_error(model, optimizer, images, labels):
    logits = model(images)
    loss = F.mse_loss(logits, F.one_hot(labels, logits.shape[1]).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def labels_guessed(model, optimizer, images, labels):
    logits = model(images)
    loss = F.cross_entropy(logits, logits.argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def without_gradients(model, optimizer, images, labels):
    with torch.no_grad():
        loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def detached_too_early(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels).detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def model_stepped(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    optimizer.backward(loss)
    optimizer.step()
    return loss.detach()


# The second build cell: the schedule --------------------------------------------------------------


def as_one_expression(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (1 + step) / (1 + rise)
    return 0.5 + 0.5 * math.cos((step - rise) / (steps - rise) * math.pi)


def by_half_angle(step, steps, warmup):
    rise = math.floor(warmup * steps)
    if step >= rise:
        return math.cos(math.pi / 2 * (step - rise) / (steps - rise)) ** 2
    return 1 - (rise - step) / (rise + 1)


def by_tensors(step, steps, warmup):
    rise = int(steps * warmup)
    up = torch.linspace(0, 1, rise + 2, dtype=torch.float64)[1:-1]
    angles = torch.arange(steps - rise, dtype=torch.float64) / (steps - rise) * torch.pi
    return torch.cat([up, (angles.cos() + 1) / 2])[step].item()


def as_the_smaller(step, steps, warmup):
    rise = int(warmup * steps)
    done = max(step - rise, 0) / (steps - rise)
    return (
        min((step + 1) / (rise + 1), (1 + math.cos(math.pi * done)) / 2)
        if step < rise
        else (1 + math.cos(math.pi * done)) / 2
    )


def first_step_wasted(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return step / rise
    return as_one_expression(step, steps, warmup)


def counted_from_zero(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return step / (rise + 1)
    return as_one_expression(step, steps, warmup)


def peak_too_early(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / rise
    return as_one_expression(step, steps, warmup)


def cosine_from_step_0(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * step / steps)) / 2


def cosine_too_long(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * (step - rise) / steps)) / 2


def cosine_to_the_last(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * (step - rise) / (steps - 1 - rise))) / 2


def cosine_without_brackets(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return 0.5 * 1 + math.cos(math.pi * (step - rise) / (steps - rise))


def half_without_brackets(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return 1 + math.cos(math.pi * (step - rise) / (steps - rise)) / 2


def angle_without_brackets(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * step - rise / steps - rise)) / 2


def rise_without_brackets(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return step + 1 / rise + 1
    return as_one_expression(step, steps, warmup)


def rise_with_one_pair(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / rise + 1
    return as_one_expression(step, steps, warmup)


def from_two(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return 1 + math.cos(math.pi * (step - rise) / (steps - rise))


def below_zero(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return math.cos(math.pi * (step - rise) / (steps - rise))


def quarter_cosine(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return math.cos(math.pi / 2 * (step - rise) / (steps - rise))


def without_pi(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos((step - rise) / (steps - rise))) / 2


def whole_wave(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(2 * math.pi * (step - rise) / (steps - rise))) / 2


def in_degrees(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(180 * (step - rise) / (steps - rise))) / 2


def straight_down(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return 1 - (step - rise) / (steps - rise)


def never_rising(step, steps, warmup):
    return (1 + math.cos(math.pi * step / steps)) / 2


def never_falling(step, steps, warmup):
    rise = int(warmup * steps)
    return (step + 1) / (rise + 1) if step < rise else 1.0


def rise_rounded(step, steps, warmup):
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def rise_not_whole(step, steps, warmup):
    rise = warmup * steps
    if step < rise:
        return (step + 1) / (rise + 1)
    return (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def warmup_as_steps(step, steps, warmup):
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def both_at_once(step, steps, warmup):
    rise = int(warmup * steps)
    share = min(1.0, (step + 1) / (rise + 1))
    return share * (1 + math.cos(math.pi * step / steps)) / 2


def done_alone(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    return (step - rise) / (steps - rise)


def falls_out(step, steps, warmup):
    rise = int(warmup * steps)
    if step < rise:
        return (step + 1) / (rise + 1)
    (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2
    return None


# Exercise 1: the loss -----------------------------------------------------------------------------


def gathered(logits, labels, smoothing):
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    hit = log_p[torch.arange(len(labels)), labels]
    return -((1 - smoothing) * hit + smoothing * log_p.mean(dim=1)).mean()


def one_by_one(logits, labels, smoothing):
    losses = []
    for row, label in zip(logits, labels, strict=True):
        target = torch.full_like(row, smoothing / len(row))
        target[label] += 1 - smoothing
        losses.append(-torch.dot(target, F.log_softmax(row, dim=0)))
    return sum(losses) / len(losses)


def by_two_losses(logits, labels, smoothing):
    logs = F.log_softmax(logits, dim=-1)
    sure = F.nll_loss(logs, labels)
    unsure = torch.einsum("bk->", -logs) / logs.numel()
    return (1 - smoothing) * sure + smoothing * unsure


def scattered(logits, labels, smoothing):
    sure = torch.zeros_like(logits).scatter(1, labels[:, None], 1.0)
    target = torch.lerp(sure, torch.full_like(sure, 1 / sure.size(1)), smoothing)
    return (target * (logits.logsumexp(1, keepdim=True) - logits)).sum() / logits.size(0)


def softmax_twice(logits, labels, smoothing):
    probabilities = F.softmax(logits, dim=1)
    return gathered(probabilities, labels, smoothing)


def unsmoothed(logits, labels, smoothing):
    return F.nll_loss(F.log_softmax(logits, dim=1), labels)


def to_the_others(logits, labels, smoothing):
    n = logits.shape[1]
    target = torch.full(logits.shape, smoothing / (n - 1))
    target[range(len(labels)), labels] = 1 - smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def too_much_target(logits, labels, smoothing):
    target = torch.full(logits.shape, smoothing / logits.shape[1])
    target[range(len(labels)), labels] += 1.0
    return -(target * logits.log_softmax(1)).sum(1).mean()


def too_little_target(logits, labels, smoothing):
    target = torch.full(logits.shape, smoothing / logits.shape[1])
    target[range(len(labels)), labels] = 1.0 - smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def all_to_each(logits, labels, smoothing):
    target = F.one_hot(labels, logits.shape[1]) * (1 - smoothing) + smoothing
    return -(target * logits.log_softmax(1)).sum(1).mean()


def shares_exchanged(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * smoothing + (1 - smoothing) / n
    return -(target * logits.log_softmax(1)).sum(1).mean()


def without_minus(logits, labels, smoothing):
    return -gathered(logits, labels, smoothing)


def summed(logits, labels, smoothing):
    return gathered(logits, labels, smoothing) * logits.shape[0]


def mean_of_all(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).mean()


def log_of_softmax(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * torch.log(torch.softmax(logits, 1))).sum(1).mean()


def log_of_exp(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    p = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
    return -(target * p.log()).sum(1).mean()


def propped_up(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * torch.log(torch.softmax(logits, 1) + 1e-8)).sum(1).mean()


def classes_forgotten(logits, labels, smoothing):
    target = F.one_hot(labels) * (1 - smoothing) + smoothing / logits.shape[1]
    return -(target * logits.log_softmax(1)).sum(1).mean()


def classes_from_labels(logits, labels, smoothing):
    n = int(labels.max()) + 1
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).sum(1).mean()


def ten_classes(logits, labels, smoothing):
    target = F.one_hot(labels, 10) * (1 - smoothing) + smoothing / 10
    return -(target * logits.log_softmax(1)).sum(1).mean()


def over_the_batch(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(0)).sum(1).mean()


def one_loss_each(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.log_softmax(1)).sum(1)


def without_a_log(logits, labels, smoothing):
    n = logits.shape[1]
    target = F.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return -(target * logits.softmax(1)).sum(1).mean()


# Exercise 2: the slip -----------------------------------------------------------------------------


def probe(step, model=None, images=None, lr=0.0):
    """Run a step once on a tiny model; give the model and the loss."""
    model = nn.Linear(3, 3) if model is None else model
    images = torch.tensor([[1.0, 2, 3], [3, 1, 2], [2, 3, 1]]) if images is None else images
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return model, step(model, optimizer, images, torch.tensor([0, 1, 2]))


def sure():
    model = nn.Linear(3, 3, bias=False)
    model.weight.data = 100 * torch.eye(3)
    return model


def is_eval(step):
    return not probe(step)[0].training


def is_softmax(step):
    return float(probe(step, sure(), torch.eye(3))[1]) > 0.1


def is_piling_up(step):
    model, _ = probe(step)
    first = model.weight.grad.clone()
    return not torch.allclose(probe(step, model)[0].weight.grad, first)


def is_still(step):
    model = nn.Linear(3, 3)
    before = model.weight.data.clone()
    return torch.equal(before, probe(step, model, lr=0.5)[0].weight.data)


def four_probes(step):
    for name, has in (
        ("step", is_still),
        ("softmax", is_softmax),
        ("eval", is_eval),
        ("zero_grad", is_piling_up),
    ):
        if has(step):
            return name
    return None


def loss_against_mine(step):
    model, loss = probe(step)
    images = torch.tensor([[1.0, 2, 3], [3, 1, 2], [2, 3, 1]])
    mine = F.cross_entropy(model(images), torch.tensor([0, 1, 2]))
    if abs(mine.item() - loss.item()) > 1e-3:
        return "softmax"
    model.zero_grad()
    if is_piling_up(step):
        return "zero_grad"
    return "eval" if is_eval(step) else "step" if is_still(step) else None


class Spy(nn.Module):
    """A model that notes the mode in which it was called."""

    def __init__(self):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([[9.0, 0, 0, 0]]))
        self.modes = []

    def forward(self, images):
        self.modes.append(self.training)
        return self.logits.expand(len(images), -1)


def by_a_spy(step):
    spy, images, labels = Spy(), torch.zeros(2, 1), torch.tensor([1, 1])
    optimizer = torch.optim.AdamW(spy.parameters(), lr=0.1, weight_decay=0.0)
    loss = step(spy, optimizer, images, labels)
    if not all(spy.modes):
        return "eval"
    if loss < 5:  # nine, where it is sound
        return "softmax"
    if (spy.logits == torch.tensor([[9.0, 0, 0, 0]])).all():
        return "step"
    optimizer = torch.optim.SGD(spy.parameters(), lr=0.0)
    step(spy, optimizer, images, labels)
    first = spy.logits.grad.clone()
    step(spy, optimizer, images, labels)
    return None if torch.allclose(spy.logits.grad, first) else "zero_grad"


def without_softmax(step):
    return "eval" if is_eval(step) else "zero_grad" if is_piling_up(step) else still(step)


def still(step):
    return "step" if is_still(step) else None


def without_clearing(step):
    return "eval" if is_eval(step) else "softmax" if is_softmax(step) else still(step)


def without_mode(step):
    return "softmax" if is_softmax(step) else "zero_grad" if is_piling_up(step) else still(step)


def without_moving(step):
    name = four_probes(step)
    return None if name == "step" else name


def judged_at_the_start(step):
    model = nn.Linear(3, 3)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    loss = float(probe(step, model)[1])
    return four_probes(step) or ("softmax" if abs(loss - math.log(3)) < 1e-3 else None)


def any_gradient(step):
    model, _ = probe(step)
    return four_probes(step) or ("zero_grad" if model.weight.grad.abs().sum() > 0 else None)


def with_learning_rate_zero(step):
    model = nn.Linear(3, 3)
    before = model.weight.data.clone()
    probe(step, model)
    return four_probes(step) or ("step" if torch.equal(before, model.weight.data) else None)


def not_cloned(step):
    model = nn.Linear(3, 3)
    before = model.weight
    probe(step, model, lr=0.5)
    return four_probes(step) or ("step" if torch.equal(before, model.weight) else None)


def not_cloned_and_first(step):
    model = nn.Linear(3, 3)
    before = model.weight
    probe(step, model, lr=0.5)
    return "step" if torch.equal(before, model.weight) else four_probes(step)


def not_cloned_after_softmax(step):
    return "softmax" if is_softmax(step) else not_cloned_and_first(step)


def moving_weights_compared(step):
    model, _ = probe(step, lr=0.5)
    first = model.weight.grad.clone()
    probe(step, model, lr=0.5)
    changed = not torch.allclose(model.weight.grad, first)
    name = four_probes(step)
    return "zero_grad" if name is None and changed else name


def put_in_eval_first(step):
    model = nn.Linear(3, 3).eval()
    probe(step, model)
    return "eval" if not model.training else four_probes(step)


def always_sound(step):
    known = {}
    return known.get(step)


def in_other_words(step):
    name = four_probes(step)
    return "no zero_grad" if name == "zero_grad" else name


def says_none(step):
    return four_probes(step) or "None"


def says_true(step):
    return four_probes(step) is None


def sure_and_moving(step):
    model = sure()
    before = model.weight.data.clone()
    probe(step, model, 50 * torch.eye(3), lr=0.5)
    stood = torch.equal(before, model.weight.data)
    name = four_probes(step)
    return "step" if stood and name != "softmax" else name


# Exercise 3: the bar ------------------------------------------------------------------------------


def small_batches():
    return dict(lr=2e-3, batch_size=8)


def eights():
    return {"batch_size": 8, "lr": 0.002}


def short_rise():
    settings = dict(batch_size=8)
    settings.update(lr=0.003, warmup=0.05)
    return settings


def the_defaults():
    return {}


def only_faster():
    return dict(lr=1e-2)


def far_too_fast():
    return dict(lr=0.3)


def far_too_slow():
    return dict(lr=1e-5)


def more_epochs():
    return dict(epochs=20)


def no_dictionary():
    return 16, 2e-3


def not_an_option():
    return dict(learning_rate=2e-3, batch_size=16)


def another_seed():
    return dict(batch_size=16, lr=2e-3, seed=7)


def rate_as_text():
    return dict(batch_size=16, lr="2e-3")


def half_a_batch():
    return dict(batch_size=0.5, lr=2e-3)


def with_validation_pictures():
    return dict(batch_size=16, val="val")


def augmented_by_name():
    return dict(batch_size=16, lr=2e-3, augment="digits")


def smoothed_and_augmented():
    return dict(lr=2e-3, label_smoothing=0.1, augment=augment_digits)


RIGHT = {
    "train_step": [
        in_another_order,
        cleared_by_the_model,
        cleared_at_the_end,
        by_log_softmax,
        by_autograd,
        with_the_mode_put_back,
    ],
    "warmup_cosine": [as_one_expression, by_half_angle, by_tensors, as_the_smaller],
    "smoothed_loss": [gathered, one_by_one, by_two_losses, scattered],
    "find_slip": [four_probes, loss_against_mine, by_a_spy],
    "beat_the_bar": [small_batches, eights, short_rise],
}
WRONG = {
    "train_step": [
        (never_cleared, "optimizer.zero_grad()"),
        (clearing_not_called, "optimizer.zero_grad()"),
        (cleared_too_late, "between backward and step"),
        (never_backward, "loss.backward()"),
        (backward_not_called, "loss.backward()"),
        (never_moved, "optimizer.step()"),
        (moved_before_backward, "optimizer.step()"),
        (moving_not_called, "optimizer.step()"),
        (softmax_before_the_loss, "a softmax too many"),
        (summed_over_the_batch, "sum over the batch"),
        (uphill, "uphill"),
        (with_its_graph, "detach()"),
        (as_a_number, "detach()"),
        (without_return, "return"),
        (loss_after_the_step, "before the step"),
        (put_in_eval, "model.eval()"),
        (switched_to_training, "model.train()"),
        (accuracy_as_loss, "an accuracy"),
        (nll_of_logits, "log-probabilities"),
        (stepped_twice, "once"),
        (loss_halved_in_return, "`loss`"),
        (optimizer_of_its_own, "the optimizer that it is given"),
        (moved_by_hand, "the optimizer that it is given"),
        (arguments_swapped, "the logits come first"),
        (squared_error, "squared"),
        (labels_guessed, "does not depend on the labels"),
        (without_gradients, "no_grad"),
        (detached_too_early, "detach"),
        (model_stepped, "AttributeError"),
    ],
    "warmup_cosine": [
        (first_step_wasted, "count from 1"),
        (counted_from_zero, "step + 1"),
        (peak_too_early, "one step early"),
        (cosine_from_step_0, "where the rise ends"),
        (cosine_too_long, "steps - rise"),
        (cosine_to_the_last, "steps - rise"),
        (cosine_without_brackets, "brackets"),
        (half_without_brackets, "brackets"),
        (angle_without_brackets, "brackets"),
        (rise_without_brackets, "brackets"),
        (rise_with_one_pair, "brackets"),
        (from_two, "halve"),
        (below_zero, "below 0"),
        (quarter_cosine, "a quarter"),
        (without_pi, "pi"),
        (whole_wave, "half a wave"),
        (in_degrees, "radians"),
        (straight_down, "straight line"),
        (never_rising, "no rise"),
        (never_falling, "stays at the peak"),
        (rise_rounded, "int("),
        (rise_not_whole, "int("),
        (warmup_as_steps, "a share of the steps"),
        (both_at_once, "where the rise ends"),
        (done_alone, "how far down"),
        (falls_out, "return"),
    ],
    "smoothed_loss": [
        (softmax_twice, "softmax too many"),
        (unsmoothed, "makes no difference"),
        (to_the_others, "the other classes only"),
        (too_much_target, "do not sum to 1"),
        (too_little_target, "do not sum to 1"),
        (all_to_each, "do not sum to 1"),
        (shares_exchanged, "exchanged"),
        (without_minus, "the sign is wrong"),
        (summed, "the sum over the batch"),
        (mean_of_all, "mean over classes too"),
        (log_of_softmax, "log(0)"),
        (log_of_exp, "exp"),
        (propped_up, "log_softmax"),
        (classes_forgotten, "how many classes"),
        (classes_from_labels, "how many classes"),
        (ten_classes, "how many classes"),
        (over_the_batch, "over the classes"),
        (one_loss_each, "the mean over the pictures"),
        (without_a_log, "logarithm"),
    ],
    "find_slip": [
        (without_softmax, "the softmax goes unnoticed"),
        (without_clearing, "missing zero_grad goes unnoticed"),
        (without_mode, "the eval mode goes unnoticed"),
        (without_moving, "optimizer.step() goes unnoticed"),
        (judged_at_the_start, "accused of a softmax"),
        (any_gradient, "accused of piling up"),
        (moving_weights_compared, "accused of piling up"),
        (with_learning_rate_zero, "accused of not moving"),
        (sure_and_moving, "surely right"),
        (not_cloned, ".clone()"),
        (not_cloned_and_first, ".clone()"),
        (not_cloned_after_softmax, ".clone()"),
        (put_in_eval_first, "accused of eval mode"),
        (always_sound, "no slip is noticed"),
        (in_other_words, "'no zero_grad'"),
        (says_none, "None itself"),
        (says_true, "not True or False"),
    ],
    "beat_the_bar": [
        (the_defaults, "the package's defaults"),
        (only_faster, "the bar"),
        (far_too_fast, "too high"),
        (far_too_slow, "too low"),
        (smoothed_and_augmented, "the bar"),
        (more_epochs, "epochs"),
        (no_dictionary, "a dict"),
        (not_an_option, "learning_rate"),
        (another_seed, "seed"),
        (rate_as_text, "a number"),
        (half_a_batch, "batch_size"),
        (with_validation_pictures, "val"),
        (augmented_by_name, "augment"),
    ],
}
