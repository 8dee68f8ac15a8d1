"""Scenes that our own code draws: pictures for a model of photos where no photo may be shipped.

They are no photos, and a model need not name them rightly: that is part of what they show. Ten show
what the course's photo model knows, six others things that it was never told of.
"""

from collections.abc import Sequence

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from vit_steps.images import Preprocess, to_tensor
from vit_steps.training.dataset import ImageDataset

from .packing import text

SIDE = 256  # in pixels; a model gets them smaller

Scene = tuple[str, str, float, list[list[str]]]


def _scenes_by_name() -> dict[str, Scene]:
    """Read scenes.txt; give by name: sky, ground, where that begins, shapes."""
    scenes: dict[str, Scene] = {}
    shapes: list[list[str]] = []
    for line in text("scenes.txt").splitlines():
        fields = line.split()
        if line.startswith(" "):
            shapes.append(fields)
        elif fields and line[0] != "#":
            name, sky, ground, horizon = fields
            shapes = []
            scenes[name] = sky, ground, float(horizon), shapes
    return scenes


ALL = _scenes_by_name()
SCENES = dict([*ALL.items()][:10])  # of CIFAR-10's classes
OTHERS = dict([*ALL.items()][10:])  # sky and ground come from `variations`


def scene(name: str, sky: str = "", ground: str = "") -> Image.Image:
    """Draw one of `SCENES` or `OTHERS`, 256×256 pixels in RGB.

    It has its own sky and ground, or stands before others.
    """
    plain_sky, plain_ground, horizon, shapes = ALL[name]
    picture = Image.new("RGB", (SIDE, SIDE), sky or plain_sky)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, round(SIDE * horizon), SIDE, SIDE), fill=ground or plain_ground)
    draw = {"p": pen.polygon, "e": pen.ellipse, "r": pen.rectangle}
    for letter, *fields, colour in shapes:
        numbers = [int(field) for field in fields]
        if letter == "l":
            pen.line(numbers[:-1], fill=colour, width=numbers[-1])
        else:
            draw[letter](numbers, fill=colour)
    return picture


def scenes(preprocess: Preprocess) -> ImageDataset:
    """Draw all of `SCENES`, prepared for a model that learned these classes, in that order."""
    pixels = torch.stack([preprocess.pixels(scene(name)) for name in SCENES])
    pixels = (pixels * 255).round().byte()
    return ImageDataset(pixels, torch.arange(len(SCENES)), tuple(SCENES), preprocess=preprocess)


def variations(
    names: Sequence[str], count: int, seed: int = 0, side: int = 96, own_colours: bool = False
) -> ImageDataset:
    """Draw so many pictures of these scenes in turn, no two alike.

    Each is cut out elsewhere, in another light, before another sky and ground, or its own; half of
    them are mirrored. Bytes (count, 3, side, side), the classes being the names; the same seed
    draws the same.
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
        image = (255 * light * to_tensor(picture)).clamp(0, 255).byte()
        pixels[i] = image.flip(2) if draw(1) < 0.5 else image
    return ImageDataset(pixels, labels % len(names), tuple(names))
