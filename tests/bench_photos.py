"""What the weights "photos" are worth: `python -m tests.bench_photos PART --data folder:PATH`.

The folder holds the photos of CIFAR-10 in train and test, a folder a class. The parts are

  test     accuracy, classes, confusion and calibration on the photos to test on, minutes
  others   how sure the model is of what it does not know; needs no photos
  control  a ViT and a convolutional net, trained alike, hours
  shares   the ViT on a tenth, a third and all of the photos, in as many steps, hours

Each writes what it found into results.json in --out. The last two save each epoch: the same command
goes on where it was ended, and --now ends it after so many epochs. One epoch is as many steps as
one of all photos takes; of a share of them, it shows each several times. `fit` trains them, with
the recipe of the weights, but here epoch by epoch, so that a model of any kind can be gone on with;
the last epoch counts, and the photos to test on are looked at once, after it.
"""

import argparse
import json
import time
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from sklearn.datasets import load_digits, load_sample_image
from torch import Tensor, nn
from torch.optim import AdamW
from torch.utils.flop_counter import FlopCounterMode

from vit_steps import ViT, ViTConfig
from vit_steps.files import write_whole
from vit_steps.images import load_image, sample_photo
from vit_steps.pretrained import Loaded, load
from vit_steps.training import augment_photos, decay_groups, evaluate, fit, measure, warmup_cosine
from vit_steps.training.data import load_data
from vit_steps.training.dataset import ImageDataset, split
from vit_steps.training.loop import evaluating
from vit_steps.training.measuring import told

SIZE = 32  # pixels of a side
RECIPE: Any = dict(batch_size=128, augment=augment_photos, amp=True)
SHARES = (0.1, 1 / 3, 1.0)
SURE = 0.9


def keep(out: Path, *names: str, found: Any) -> None:
    """Put what was found into results.json, under its names; several may write in turns."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.json"
    with FileLock(out / ".results.lock"):
        whole = json.loads(path.read_text()) if path.exists() else {}
        place = whole
        for name in names[:-1]:
            place = place.setdefault(name, {})
        place[names[-1]] = found
        write_whole(path, (json.dumps(whole, indent=1) + "\n").encode())


# What the weights do ------------------------------------------------------------------------------


def on_test(model: nn.Module, test: ImageDataset) -> dict[str, Any]:
    """Accuracy, class by class, how often shares were right, and confusion."""
    found = measure(model, test)
    return told("test", test, found)["result"] | dict(confusion=found.counts.tolist())


def tiles(picture: Tensor) -> list[Tensor]:
    """A photo (3, H, W) in squares of a half, a quarter and an eighth of its shorter side."""
    cut = []
    for parts in (2, 4, 8):
        side = min(picture.shape[1:]) // parts
        for column in picture.unfold(1, side, side).unfold(2, side, side).permute(1, 2, 0, 3, 4):
            cut += [*column]
    return cut


def strangers() -> dict[str, list[Tensor]]:
    """Pictures (3, H, W), from 0 to 1, of what no class is."""
    photos = {
        name: torch.from_numpy(load_sample_image(f"{name}.jpg").copy()).permute(2, 0, 1) / 255
        for name in ("china", "flower")
    } | {"grace_hopper": load_image(sample_photo(), None)}
    bunch: Any = load_digits()
    digits = 1 - torch.from_numpy(bunch.images).float() / 16  # (n, 8, 8), dark on white
    noise = torch.rand(1000, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    found = {f"tiles of {name}": tiles(photo) for name, photo in photos.items()}
    return found | {"digits": [*digits[:, None].expand(-1, 3, -1, -1)], "noise": [*noise]}


def on_others(loaded: Loaded) -> dict[str, Any]:
    """How sure the model is of pictures of something else, and what it takes them for."""
    assert loaded.preprocess is not None
    found = {}
    for name, pictures in strangers().items():
        with evaluating(loaded.model):
            batch = torch.cat([loaded.preprocess(picture) for picture in pictures])
            shares = torch.cat([loaded.model(part).softmax(dim=1) for part in batch.split(256)])
        largest, named = shares.max(dim=1)
        counts = named.bincount(minlength=shares.shape[1]).tolist()
        found[name] = dict(
            pictures=len(pictures),
            mean_share=largest.mean().item(),
            sure=int((largest >= SURE).sum()),
            taken_for={c: n for c, n in zip(loaded.classes, counts, strict=True) if n},
        )
    return found


# What trained it ----------------------------------------------------------------------------------


def vit(classes: int) -> nn.Module:
    return ViT(ViTConfig(SIZE, 4, 3, classes, embed_dim=128, depth=6, num_heads=4))


def convolutional(classes: int) -> nn.Module:
    """A plain net of about as many weights: convolution, norm, ReLU, in three stages."""
    layers, before = [], 3
    for stage, (width, count) in enumerate(((64, 3), (128, 2), (256, 2))):
        layers += [nn.MaxPool2d(2)] if stage else []
        for _ in range(count):
            convolution = nn.Conv2d(before, width, 3, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU()]
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


MODELS = {"vit": vit, "conv": convolutional}


def shuffled(count: int, length: int, generator: torch.Generator) -> Tensor:
    """So many numbers below count, (length,): each as often as the others, or once more."""
    rounds = -(-length // count)
    return torch.cat([torch.randperm(count, generator=generator) for _ in range(rounds)])[:length]


def train(
    kind: str, share: float, seed: int, data: Any, options: argparse.Namespace, left: int
) -> int:
    """Go on with a run for at most so many epochs; how many are left over."""
    whole, val, test = data
    epochs, device = options.epochs, torch.device(options.device)
    name = f"{kind}, {share:.0%}, {epochs} epochs, lr {options.lr:g}, seed {seed}"
    part = whole if share == 1 else split(whole, share, seed)[1]  # of each class as much
    torch.manual_seed(seed)
    model = MODELS[kind](len(whole.classes)).to(device)
    optimizer = AdamW(decay_groups(model, 0.05), lr=options.lr, fused=True)
    path, rows = options.out / f"{name}.pt", []
    if path.exists():
        state = torch.load(path, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rows = state["rows"]
    while len(rows) < epochs and left:
        done, start = len(rows), time.perf_counter()
        number = 1_000 * seed + done  # the same for all models: order, mirrors and zooms
        shown = shuffled(len(part), len(whole), torch.Generator().manual_seed(number))
        one: Any = dict(optimizer=optimizer, schedule=partial(piece, done=done, epochs=epochs))
        one |= dict(epochs=1, seed=number, device=device, progress=False)
        history = fit(model, part.part(shown), **RECIPE, **one)
        seconds = time.perf_counter() - start
        loss, accuracy = evaluate(model, val, amp=RECIPE["amp"])
        row = dict(train_loss=history.train_loss[0], val_loss=loss, val_accuracy=accuracy)
        rows.append(row | dict(seconds=seconds))
        state = dict(model=model.state_dict(), optimizer=optimizer.state_dict(), rows=rows)
        bytes_ = BytesIO()
        torch.save(state, bytes_)
        write_whole(path, bytes_.getvalue())
        left -= 1
        print(f"{name}: epoch {done + 1}, val {accuracy:.1%}, {seconds:.0f} s", flush=True)
    found: dict[str, Any] = dict(model=kind, share=share, seed=seed, photos=len(part), epochs=rows)
    found["steps"] = len(rows) * -(-len(whole) // RECIPE["batch_size"])
    found["weights"] = sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counter, evaluating(model):
        model(torch.zeros(1, 3, SIZE, SIZE, device=device))
    found["multiply_adds"] = counter.get_total_flops() // 2
    if len(rows) == epochs:
        found["test"] = on_test(model, test)
        print(f"{name}: test {found['test']['accuracy']:.1%}", flush=True)
    keep(options.out, "runs", name, found=found)
    return left


def piece(step: int, steps: int, done: int, epochs: int) -> float:
    """The whole training's warm-up and cosine, of which one epoch is trained now."""
    return warmup_cosine(done * steps + step, epochs * steps, warmup=0.1)


def train_all(options: argparse.Namespace) -> None:
    """The runs that the command asks for, one after the other."""
    options.out.mkdir(parents=True, exist_ok=True)
    data, left = load_data(options.data, size=SIZE), options.now or 10**9
    chosen = [(kind, 1.0) for kind in options.models]
    if options.part == "shares":
        chosen = [("vit", share) for share in options.of]
    for seed in options.seeds:
        for kind, share in chosen:
            left = train(kind, share, seed, data, options, left)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("test", "others", "control", "shares"))
    parser.add_argument("--data", metavar="folder:PATH", help="of the photos, in train and test")
    parser.add_argument("--weights", default="photos", help="what to measure (default: photos)")
    parser.add_argument("--out", type=Path, default=Path("runs/bench_photos"), metavar="FOLDER")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=10, help="of a whole run (default: 10)")
    parser.add_argument("--now", type=int, help="epochs to train before this call ends (all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED")
    parser.add_argument("--models", choices=MODELS, nargs="+", default=[*MODELS], help="of control")
    parser.add_argument("--of", type=float, nargs="+", default=SHARES, help="shares of the photos")
    parser.add_argument("--lr", type=float, default=1e-3, help="highest one (default: 0.001)")
    options = parser.parse_args()
    if not options.data and options.part != "others":
        parser.error("--data is missing; give folder:PATH")
    torch.set_num_threads(options.threads)
    if options.part == "others":
        keep(options.out, "others", found=on_others(load(options.weights)))
    elif options.part == "test":
        loaded = load(options.weights)
        test = load_data(options.data, preprocess=loaded.preprocess).test
        keep(options.out, "test", found=on_test(loaded.model, test))
    else:
        train_all(options)


if __name__ == "__main__":
    main()
