"""Scenes that our own code draws: pictures for a model of photos where no photo may be shipped.

They are no photos, and a model need not name them rightly: that is part of what they show. Ten show
what the course's photo model knows, six others things that it was never told of.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from vit_steps.images import Preprocess, to_tensor
from vit_steps.training.dataset import ImageDataset

SIDE = 256  # in pixels; a model gets them smaller

Scene = tuple[str, str, float, list[list[str]]]


def read() -> dict[str, Scene]:
    """What stands in scenes.txt, by name: sky, ground, where that begins, shapes."""
    found: dict[str, Scene] = {}
    text = Path(__file__).with_name("scenes.txt").read_text("utf-8")
    for line in text.splitlines():
        words = line.split()
        if line.startswith(" "):
            found[next(reversed(found))][3].append(words)
        elif words and line[0] != "#":
            name, sky, ground, horizon = words
            found[name] = sky, ground, float(horizon), []
    return found


ALL = read()
SCENES = dict([*ALL.items()][:10])  # of CIFAR-10's classes
OTHERS = dict([*ALL.items()][10:])  # sky and ground come from `variations`


def scene(name: str, sky: str = "", ground: str = "") -> Image.Image:
    """One of `SCENES` or `OTHERS` as a picture of 256×256 pixels in RGB, in its own colours or
    before another sky and ground."""
    own_sky, own_ground, horizon, shapes = ALL[name]
    sky, ground = sky or own_sky, ground or own_ground
    picture = Image.new("RGB", (SIDE, SIDE), sky)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, round(SIDE * horizon), SIDE, SIDE), fill=ground)
    for letter, *words, colour in shapes:
        numbers = [int(word) for word in words]
        if letter == "p":
            pen.polygon(numbers, fill=colour)
        elif letter == "e":
            pen.ellipse(numbers, fill=colour)
        elif letter == "r":
            pen.rectangle(numbers, fill=colour)
        else:
            pen.line(numbers[:-1], fill=colour, width=numbers[-1])
    return picture


def scenes(how: Preprocess) -> ImageDataset:
    """All of them, prepared for a model that learned CIFAR-10's ten classes, in that order."""
    pixels = torch.stack([how.pixels(scene(name)) for name in SCENES])
    pixels = (pixels * 255).round().byte()
    return ImageDataset(pixels, torch.arange(len(SCENES)), tuple(SCENES), preprocess=how)


def variations(
    names: Sequence[str], count: int, seed: int = 0, side: int = 96, own_colours: bool = False
) -> ImageDataset:
    """So many pictures of these scenes in turn, no two alike: cut out elsewhere, half of them
    mirrored, in another light, and each before another sky and ground, or its own.

    Bytes (count, 3, side, side), the classes being the names; the same seed draws the same.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    pixels, labels = torch.empty(count, 3, side, side, dtype=torch.uint8), torch.arange(count)
    for i in range(count):
        colours = ["#" + bytes((255 * c).byte().tolist()).hex() for c in draw(2, 3)]
        picture = scene(names[i % len(names)], *([] if own_colours else colours))
        size = SIDE * (0.6 + 0.4 * draw(1).item())
        left, top = ((SIDE - size) * draw(2)).tolist()
        box = (left, top, left + size, top + size)
        picture = picture.resize((side, side), Image.Resampling.BICUBIC, box)
        light = 0.7 + 0.6 * draw(3, 1, 1)  # of each channel
        drawn = (255 * light * to_tensor(picture)).clamp(0, 255).byte()
        pixels[i] = drawn.flip(2) if draw(1) < 0.5 else drawn
    return ImageDataset(pixels, labels % len(names), tuple(names))


def save_pictures(data: ImageDataset, folder: str | Path) -> None:
    """Write pictures (3, H, W) of bytes as PNG files, in a sub-folder for each class."""
    for number, (pixels, label) in enumerate(zip(data.pixels, data.labels.tolist(), strict=True)):
        home = Path(folder, data.classes[label])
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(home / f"{number}.png")
