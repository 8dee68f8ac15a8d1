"""vit_steps.training: the pieces, augmentation, the whole training."""

import math
from contextlib import contextmanager
from functools import partial

import pytest
import torch
from helpers import close
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tiny_training import Plain, fit, pictures, same, tiny
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, Subset
from transformers.modeling_outputs import ImageClassifierOutput

from vit_course.systems import FaceConfig, face_vit
from vit_steps import ViT, training
from vit_steps.training import data
from vit_steps.training.data import recipe

# The pieces --------------------------------------------------------------------------------------


@given(steps=st.integers(1, 300), warmup=st.floats(0, 1, exclude_max=True))
def test_the_rate_rises_to_its_peak_once_and_falls(steps, warmup):
    rates = [training.warmup_cosine(step, steps, warmup) for step in range(steps)]
    peak = int(warmup * steps)
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[peak] == 1 == max(rates)
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)


def test_rates_worked_out_by_hand():
    rates = [training.warmup_cosine(step, 10, 0.2) for step in range(10)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert rates[6] == pytest.approx(0.5)  # half of the way down
    assert rates[9] == pytest.approx((1 + math.cos(7 / 8 * math.pi)) / 2)
    assert training.warmup_cosine(0, 10, 0) == 1


@pytest.mark.parametrize("make", [tiny, lambda: face_vit(FaceConfig(4, 2, 1, 3, 8, 1, 2))])
def test_the_matrices_decay_and_what_is_frozen_stands_in_no_group(make):
    model = make()
    model.blocks[0].norm1.requires_grad_(False)
    names = {p: name for name, p in model.named_parameters() if p.requires_grad}
    decayed, others = training.decay_groups(model, 0.05)
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.05, 0.0)
    modules = model.named_modules()
    matrices = {f"{n}.weight" for n, m in modules if isinstance(m, (nn.Linear, nn.Conv2d))}
    assert {names[p] for p in decayed["params"]} == matrices
    assert {names[p] for p in others["params"]} == set(names.values()) - matrices


@pytest.mark.parametrize("batch_size", [4, 100])
def test_evaluation_is_over_all_images_without_dropout_and_leaves_all_modes(batch_size):
    model, held_out = tiny(dropout=0.5).train(), pictures(9, 1)
    model.blocks.eval()  # as one who trains the head alone
    modes = [module.training for module in model.modules()]
    loss, accuracy = training.evaluate(model, held_out, batch_size)
    with pytest.raises(ValueError, match="from 0 to 3; 3 classes have the numbers 0 to 2"):
        training.evaluate(model, Plain([(torch.zeros(1, 4, 4), 3), (torch.zeros(1, 4, 4), 0)]))
    assert modes == [module.training for module in model.modules()]
    logits = model.eval()(held_out.images)
    assert loss == pytest.approx(F.cross_entropy(logits, held_out.labels).item(), abs=1e-6)
    assert accuracy == (logits.argmax(1) == held_out.labels).sum().item() / 9


# Augmentation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("augment", [training.augment_digits, training.augment_photos])
def test_augmentation_draws_from_its_generator_alone_and_changes_each_image_in_its_own_way(augment):
    images = torch.rand(1, 3, 8, 12).expand(20, -1, -1, -1) * 2 - 1
    once, other = (augment(images, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert (once.shape, once.dtype) == (images.shape, images.dtype)
    assert not torch.equal(once, other)
    torch.manual_seed(1)
    assert torch.equal(augment(images), once)
    assert len(once.flatten(1).unique(dim=0)) == 20
    assert -1 - 1e-6 <= once.min() < once.max() <= 1 + 1e-6


def test_the_paper_around_a_digit_stays_paper():
    paper = torch.full((20, 1, 8, 8), -1.0)
    assert torch.equal(training.augment_digits(paper), paper)
    dot = paper.clone()
    dot[:, :, 3:5, 3:5] = 1
    out = training.augment_digits(dot)
    assert (out[:, :, 0] == -1).all()
    ink = (out + 1).sum(dim=(1, 2, 3)) / 8
    assert ink.min() > 0.85
    assert ink.max() < 1.15


def test_digits_move_by_no_more_than_said():
    side = 101
    place = torch.linspace(-1, 1, side).expand(200, 1, side, side)  # a pixel's column, as its value
    row = training.augment_digits(place)[:, 0, side // 2]
    moved = row[:, side // 2]
    assert 0.05 < moved.abs().max() <= 0.061  # 3% of a side that is 2 long
    width = row[:, side // 2 + 30] - moved  # 0.6, times the scale and the angle's cosine
    assert 0.6 * 0.95 * math.cos(math.radians(10)) - 1e-3 < width.min() < 0.58
    assert 0.62 < width.max() < 0.6 * 1.05 + 1e-3


def test_photos_are_mirrored_half_of_the_time_and_nothing_comes_from_outside():
    side = 101
    place = torch.linspace(0.5, 1, side).expand(400, 1, side, side)
    out = training.augment_photos(place)[:, 0, side // 2]
    mirrored = (out[:, 0] > out[:, -1]).float().mean()
    assert 0.4 < mirrored < 0.6
    width = (out[:, 10] - out[:, -11]).abs() / 0.4
    assert 0.69 < width.min() < 0.75
    assert 0.95 < width.max() < 1.01
    assert out[:, 2:-2].min() > 0.49  # a pixel from outside would be 0


# Anyone's data -----------------------------------------------------------------------------------


def loader(train):
    # What the loader draws for its workers would change what follows, unless it draws elsewhere.
    order = RandomSampler(train, generator=torch.Generator().manual_seed(0))  # as fit draws it
    return DataLoader(Plain(train), 8, sampler=order, generator=torch.Generator())


@pytest.mark.parametrize(("form", "batch_size", "epochs"), [(Plain, 8, 2), (loader, None, 1)])
def test_a_fit_on_any_data_set_or_loader_is_that_on_an_image_dataset(form, batch_size, epochs):
    # A loader draws its own order, and so shifts what is drawn after it.
    options = dict(epochs=epochs, augment=training.augment_photos if form is Plain else None)
    model, twin = (tiny(dropout=0.1 if form is Plain else 0.0) for _ in range(2))
    history, val = fit(model, **options), DataLoader(pictures(9, 1), 9)
    assert fit(twin, None, form(pictures()), val, batch_size=batch_size, **options) == history
    assert same(model, twin)


def test_labels_may_be_the_shares_of_the_classes():
    model, twin, train = tiny(), tiny(), pictures()
    shares = F.one_hot(train.labels, 3).float()
    fit(model, train=Plain([*zip(train.images, shares, strict=True)]), epochs=1)
    fit(twin, epochs=1)
    close([*model.parameters()], [*twin.parameters()], 1e-4)


# The whole training ------------------------------------------------------------------------------


def test_a_fit_is_adamw_by_warmup_and_cosine_over_batches_that_the_seed_orders():
    model, twin, train = tiny(), tiny(), pictures()
    history = fit(model, lr=0.01, weight_decay=0.1, label_smoothing=0.1, seed=5)
    optimizer = torch.optim.AdamW(training.decay_groups(twin, 0.1))
    losses, rates = [], [0.01 * training.warmup_cosine(step, 9, 0.1) for step in range(9)]
    for epoch in range(3):
        order = torch.randperm(20, generator=torch.manual_seed(5 * 1_000_003 + epoch))
        for i, batch in enumerate(order.split(8), 3 * epoch):
            for group in optimizer.param_groups:
                group["lr"] = rates[i]
            images, labels = train[batch]
            loss = F.cross_entropy(twin(images), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item() * len(batch) / 20)
    close([*model.parameters()], [*twin.parameters()], 1e-4)
    means = [sum(losses[i : i + 3]) for i in (0, 3, 6)]
    assert history.train_loss == pytest.approx(means, abs=1e-5)
    assert history.learning_rate == pytest.approx(rates[2::3])
    loss, accuracy = training.evaluate(model, pictures(9, 1))
    assert (history.val_loss[-1], history.val_accuracy[-1]) == (loss, accuracy)


def test_the_plain_loop_comes_to_the_weights_of_fit():
    model, twin, seen = tiny(), tiny(), []
    history = fit(model, lr=0.01, label_smoothing=0, seed=5)

    def report(epoch, losses):
        seen.append((epoch, len(losses), twin.training))

    losses = training.train(twin, pictures(), 3, 0.01, 8, seed=5, report=report)
    close([*model.parameters()], [*twin.parameters()])
    sizes = torch.tensor([8, 8, 4]) / 20
    means = (torch.tensor(losses).reshape(3, 3) * sizes).sum(dim=1)
    assert history.train_loss == pytest.approx(means.tolist(), abs=1e-5)
    assert seen == [(1, 3, False), (2, 6, False), (3, 9, False)]


def test_an_own_optimizer_goes_by_an_own_schedule_and_is_given_back():
    model, twin, train = tiny(), tiny(), pictures()

    def optimizer(model):
        head = [{"params": model.head.parameters(), "lr": 0.5}]
        return torch.optim.SGD([{"params": model.blocks.parameters()}, *head], 0.1, momentum=0.9)

    own, by_hand = optimizer(model), optimizer(twin)
    history = fit(model, optimizer=own, schedule=lambda i, n: 1 - i / n, epochs=1)
    order = torch.randperm(20, generator=torch.manual_seed(0))
    for i, batch in enumerate(order.split(8)):
        for group, lr in zip(by_hand.param_groups, (0.1, 0.5), strict=True):
            group["lr"] = (1 - i / 3) * lr
        loss = training.train_step(twin, by_hand, *train[batch], 0.1)
        assert not loss.requires_grad
    assert same(model, twin)
    assert history.learning_rate == [(1 - 2 / 3) * 0.1]
    assert [group["lr"] for group in own.param_groups] == [0.1, 0.5]


def test_a_clipped_gradient_is_as_long_as_said():
    def moved(**options):
        model, before = tiny(), torch.cat([p.flatten() for p in tiny().parameters()])
        sgd = torch.optim.SGD(model.parameters(), 1.0)
        fit(model, epochs=1, batch_size=20, optimizer=sgd, schedule=lambda *_: 1.0, **options)
        return torch.cat([p.flatten() for p in model.parameters()]).sub(before).norm().item()

    assert moved(clip=1e-3) == pytest.approx(1e-3, rel=1e-3)
    assert moved(clip=1e3) == moved() > 1e-2


def test_mixed_precision_learns_and_is_measured_in_it():
    model, plain = tiny(), tiny()
    history = fit(model, epochs=30, lr=1e-2, amp=True)
    assert history.val_accuracy[-1] == 1
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    fit(plain, epochs=30, lr=1e-2)
    assert not same(model, plain)
    with torch.autocast("cpu", torch.bfloat16):
        assert training.evaluate(model, pictures(9, 1))[0] == history.val_loss[-1]


def test_the_best_epoch_has_the_highest_accuracy_then_the_lowest_loss():
    history = training.History([1, 1, 1, 1], [3, 2, 1, 1.5], [0.5, 0.9, 0.6, 0.9], [1, 1, 1, 1])
    assert history.best == 4
    history.val_loss[3] = 2  # of two alike, the first
    assert history.best == 2


def test_the_seed_decides_order_augmentation_and_dropout():
    def weights(seed, **options):
        model = tiny(dropout=0.2)
        torch.rand(seed)  # what was drawn before does not matter
        fit(model, seed=seed, **options)
        return model

    for options in ({}, {"augment": training.augment_photos}):
        assert same(weights(3, **options), weights(3, **options))
        assert not same(weights(3, **options), weights(4, **options))


def test_any_model_can_be_trained_without_a_folder():
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    assert fit(model, epochs=20, lr=0.05).val_accuracy[-1] == 1


def test_progress_goes_to_stderr_and_only_if_wanted(capsys):
    fit(tiny())
    assert capsys.readouterr() == ("", "")
    fit(tiny(), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "epoch 3/3" in err
    assert "9/9" in err


def test_a_loss_that_is_no_number_ends_the_training():
    with pytest.raises(ValueError, match="after epoch 1 the loss is nan"):
        fit(tiny(), lr=1e20)


def test_data_of_other_classes_are_refused():
    train, test = pictures(), pictures(9, 1, classes=("a", "b"))
    with pytest.raises(ValueError, match=r"train has the classes .*, val"):
        training.fit(tiny(), train, test)
    named = Plain(train)
    named.classes = ["a", "b", "c"]  # as torchvision's have them
    for known in (train, named, DataLoader(train), Subset(named, [0, 1])):
        with pytest.raises(ValueError, match="gives 5 logits for 3 classes; make it with"):
            training.fit(tiny(num_classes=5), known)


# Said before the first step ----------------------------------------------------------------------


IMAGE = torch.zeros(1, 4, 4)


class Streamed(IterableDataset):
    def __iter__(self):
        return iter([(IMAGE, 0)] * 4)


class Long(Streamed):
    def __len__(self):
        return 4


class Answers(nn.Module):
    """A model that gives something else than logits."""

    def __init__(self, answer):
        super().__init__()
        self.vit, self.answer = tiny(), answer

    def forward(self, images):
        return self.answer(self.vit, images)


def batches(labels):
    """A loader of a batch of 8 images and these labels."""
    return DataLoader(Plain([(torch.zeros(8, 1, 4, 4), labels)]), batch_size=None)


def whole(vit, images):
    return ImageClassifierOutput(logits=vit(images))


ONE, FROZEN = tiny(), tiny().requires_grad_(False)
LBFGS = dict(model=ONE, optimizer=torch.optim.LBFGS(ONE.parameters()))
LINEAR = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
SIZES = Plain([(IMAGE, 0), (torch.zeros(1, 5, 5), 0)])
PIL = Plain([(Image.new("L", (4, 4)), 0)])
LATE = Plain([(IMAGE, 0)] * 300 + [(IMAGE, 7)])
TYPES = [
    (dict(train=[(IMAGE, 0)]), "the data are a list"),
    (dict(train=Plain([(IMAGE, 0, 1)])), "give pairs"),
    (dict(train=Plain([(IMAGE, 0.5)])), "labels holds torch.float64; use labels.long"),
    (dict(train=Streamed()), "the data are a Streamed; give .*with a length"),
    (dict(train=Long()), "the data are a Long; give"),
    (dict(val=Long()), "the data are a Long; give"),
    (dict(train=PIL), "item .* holds .*PIL.Image.Image.*; give an image"),
    (dict(val=PIL), "item of the data holds .*PIL.Image.Image"),
    (dict(model=Answers(lambda vit, x: (vit(x), None))), "gives a tuple, not logits"),
    (dict(model=Answers(whole)), "an ImageClassifierOutput, not logits"),
]
VALUES = [
    (dict(train=Plain([])), "the data hold nothing"),
    (dict(train=Plain([(IMAGE, 3)])), "labels run from 3 to 3; 3 classes have"),
    (dict(train=Plain([(IMAGE[0], 0)])), "the batch axis is missing"),
    (dict(train=batches(torch.zeros(7).long())), r"labels is \(7,\); 8 images need \(8,\)"),
    (dict(train=batches(torch.zeros(7, 3))), "8 images and 7 labels"),
    (dict(model=LINEAR, train=Plain([(IMAGE, 7)])), "run from 7 to 7; 3 classes"),
    (dict(model=LINEAR, val=LATE), "run from 0 to 7; 3 classes"),
    (dict(train=SIZES), "of different sizes; bring all to one"),
    (dict(val=DataLoader(SIZES, 2)), "of different sizes; bring"),
    (dict(epochs=0), "epochs is 0"),
    (dict(batch_size=0), "batch_size is 0"),
    (dict(train=loader(pictures()), batch_size=8), "a DataLoader has its own"),
    (dict(lr=-1), "Invalid learning rate"),
    (dict(warmup=1), "warmup is 1"),
    (dict(label_smoothing=-0.1), "label_smoothing is -0.1"),
    (dict(seed=-1), "seed is -1"),
    (dict(clip=0), "clip is 0"),
    (dict(class_weights=[1, 2]), "class_weights are 2, but .* 3 classes"),
    (dict(optimizer=torch.optim.SGD(ONE.parameters())), "holds other weights"),
    (dict(device="nowhere"), "device 'nowhere' cannot be used"),
    (LBFGS, "LBFGS asks for a closure at each step; give AdamW"),
    (dict(model=FROZEN), "every weight is frozen"),
    (dict(model=FROZEN, optimizer=torch.optim.SGD(FROZEN.parameters())), "every weight is frozen"),
    (dict(model=tiny(num_classes=0), train=Plain([(IMAGE, 0)])), "no head, so no log"),
    (dict(model=Answers(ViT.features)), r"gives \(9, 5, 8\) for 9 images; give"),
    (dict(model=tiny().to("meta")), "weights are on meta, where no numbers are"),
]


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [*((TypeError, *row) for row in TYPES), *((ValueError, *row) for row in VALUES)],
)
def test_what_cannot_be_trained_is_said_before_the_first_step(error, options, message):
    usual = dict(model=tiny(), batch_size=None, report=lambda history: pytest.fail("it trained"))
    options = usual | options
    state = options["model"].state_dict()
    before = {name: weight.clone() for name, weight in state.items() if not weight.is_meta}
    with pytest.raises(error, match=message):
        fit(**options)
    assert all(torch.equal(weight, state[name]) for name, weight in before.items())


@contextmanager
def default(setter, value, usual):
    setter(value)
    try:
        yield
    finally:
        setter(usual)


DOUBLE = partial(default, torch.set_default_dtype, torch.float64, torch.float32)
GLOBAL = {
    "grad": (torch.no_grad, "gradients are switched off"),
    "grad for good": (partial(default, torch.set_grad_enabled, False, True), "switched off"),
    "inference": (torch.inference_mode, "nothing learns in torch.inference_mode"),
    "double": (DOUBLE, "default dtype is torch.float64, .* torch.float32.*set_default_dtype"),
    "device": (partial(default, torch.set_default_device, "meta", None), "default device is meta"),
}


@pytest.mark.parametrize("setting", GLOBAL)
def test_a_global_setting_that_stands_in_the_way_is_named(setting):
    context, message = GLOBAL[setting]
    data = Plain([*pictures()])
    model = tiny() if setting == "device" else None
    with context(), pytest.raises((ValueError, TypeError), match=message):
        fit(model or nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), None, data, data)
    if setting in ("double", "device"):
        with context(), pytest.raises((ValueError, TypeError), match=message):
            training.evaluate(model or nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), data)
    with torch.inference_mode():
        made_inside, expected = tiny(), training.evaluate(tiny(), data)
    assert training.evaluate(tiny(), data) == expected
    with pytest.raises(ValueError, match=r"nothing learns in torch\.inference_mode"):
        fit(made_inside)


def test_weights_by_class_count_in_the_loss():
    data, sgd = pictures(), dict(epochs=1, batch_size=20, label_smoothing=0.1)
    model, twin, plain = tiny(), tiny(), tiny()
    weights = [2.0, 0.5, 0.5]

    def optimizer(model):
        return torch.optim.SGD(model.parameters(), 0.1)

    options = sgd | dict(schedule=lambda *_: 1.0, class_weights=weights)
    fit(model, optimizer=optimizer(model), **options)
    losses = F.cross_entropy(twin(data.images), data.labels, reduction="none", label_smoothing=0)
    smooth = -twin(data.images).log_softmax(1) @ torch.tensor(weights) / 3
    losses = 0.9 * losses * torch.tensor(weights)[data.labels] + 0.1 * smooth
    by_hand = optimizer(twin)
    losses.mean().backward()
    by_hand.step()
    close([*model.parameters()], [*twin.parameters()], 1e-5)
    fit(plain, optimizer=optimizer(plain), **options | dict(class_weights=torch.ones(3)))
    fit(twin := tiny(), optimizer=optimizer(twin), **options | dict(class_weights=None))
    close([*plain.parameters()], [*twin.parameters()], 1e-6)


# The bars ----------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_digits_to_97_percent_and_more(tmp_path):
    """The command's own recipe, its best epoch; one seed here, three in the project's notes."""
    train, val, test = data.load_data("digits")
    model, options = recipe("digits", train)
    assert options["epochs"] == 30
    options |= dict(progress=False, device="cpu", folder=tmp_path)
    history = training.fit(model, train, val, best=True, **options)
    assert history.val_accuracy[-1] >= 0.97
    assert training.evaluate(model, test)[1] >= 0.97
