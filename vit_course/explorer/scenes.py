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

# Each: the sky, the ground, where that begins (0 is the top), and shapes: letter, numbers, colour.
# p: a polygon's points, e: an ellipse's box, r: a rectangle's box, l: a line and its width.
SCENES = {
    "airplane": ("#8fb8de", "#8fb8de", 1.0, """
        p 20 135 60 118 200 112 240 125 200 140 60 142 #e8ebee
        p 110 125 70 200 95 200 160 128 #b9c0c8
        p 120 120 105 75 125 75 160 118 #cfd5da
        p 25 128 12 80 35 80 62 122 #5a6f8a"""),
    "automobile": ("#c3ccd2", "#8a8781", 0.6, """
        p 70 135 100 92 175 92 208 135 #8c1d18
        p 85 133 106 102 134 102 134 133 #25303a
        p 142 133 142 102 170 102 192 133 #25303a
        r 20 130 240 178 #b3261e
        e 48 155 92 199 #1c1c1c
        e 168 155 212 199 #1c1c1c
        e 60 167 80 187 #aaaaaa
        e 180 167 200 187 #aaaaaa"""),
    "bird": ("#a9c7d9", "#a9c7d9", 1.0, """
        e 80 95 190 165 #7a5a3a
        e 165 75 215 125 #7a5a3a
        p 212 98 240 106 212 112 #d8912a
        p 85 125 25 150 30 175 95 145 #4f3a25
        p 100 115 150 115 110 160 #4f3a25
        l 125 160 125 205 5 #c98a2a
        l 145 160 145 205 5 #c98a2a
        r 0 203 256 214 #5b4632
        e 190 90 199 99 #101010"""),
    "cat": ("#b9a58a", "#8f7a60", 0.6, """
        e 70 120 190 250 #8a8a8a
        e 75 45 185 150 #9a9a9a
        p 80 80 85 20 125 55 #9a9a9a
        p 180 80 175 20 135 55 #9a9a9a
        e 100 80 122 104 #b9c94a
        e 140 80 162 104 #b9c94a
        e 107 82 115 102 #101010
        e 147 82 155 102 #101010
        p 122 112 138 112 130 122 #c77f7f"""),
    "deer": ("#6f8a4f", "#8a9a5a", 0.5, """
        e 60 110 180 165 #a9773f
        p 155 130 180 70 202 75 182 140 #a9773f
        e 175 58 225 90 #a9773f
        r 72 150 81 225 #8d6233
        r 92 150 101 225 #8d6233
        r 145 150 154 225 #8d6233
        r 163 150 172 225 #8d6233
        l 190 62 168 15 6 #e6d8bd
        l 190 62 212 15 6 #e6d8bd
        l 180 40 158 32 5 #e6d8bd
        l 200 40 222 32 5 #e6d8bd"""),
    "dog": ("#9fb07a", "#7d8f58", 0.5, """
        e 75 130 185 255 #a8703a
        e 75 40 185 150 #b57d44
        e 55 50 95 130 #6b4422
        e 165 50 205 130 #6b4422
        e 105 95 155 145 #e0c59a
        e 102 75 118 91 #101010
        e 142 75 158 91 #101010
        e 118 98 142 116 #101010"""),
    "frog": ("#6b5a3a", "#7a6845", 0.5, """
        e 50 95 205 215 #5f8f2f
        e 60 70 110 120 #6ba135
        e 145 70 195 120 #6ba135
        e 75 82 97 104 #101010
        e 160 82 182 104 #101010
        e 20 160 90 225 #4f7a26
        e 165 160 235 225 #4f7a26"""),
    "horse": ("#bcd0dc", "#7f9a4a", 0.55, """
        e 55 95 190 160 #5a3a22
        p 165 120 195 50 220 55 195 130 #5a3a22
        p 195 50 245 75 238 90 200 80 #5a3a22
        r 65 140 79 222 #4a2f1b
        r 90 140 104 222 #4a2f1b
        r 150 140 164 222 #4a2f1b
        r 172 140 186 222 #4a2f1b
        p 60 105 35 160 45 165 70 120 #2a1a10"""),
    "ship": ("#a9c4d8", "#3d6a86", 0.66, """
        p 25 150 235 150 205 195 55 195 #7a2f2a
        r 70 118 185 150 #f0f0ec
        r 95 92 160 118 #e4e4e0
        r 120 58 140 92 #333333"""),
    "truck": ("#c9d6df", "#77746f", 0.7, """
        r 20 65 160 185 #d9d9d6
        r 160 100 235 185 #b3261e
        r 185 110 228 140 #26323c
        e 45 165 85 205 #1c1c1c
        e 90 165 130 205 #1c1c1c
        e 190 165 230 205 #1c1c1c"""),
}  # fmt: skip


# Things that are none of the ten, in the same form; sky and ground come from `variations`.
OTHERS = {
    "cup": ("#c9c2b4", "#8a7a66", 0.65, """
        e 150 95 220 170 #d9d4ca
        e 168 112 203 152 #c9c2b4
        p 60 80 180 80 165 200 75 200 #d9d4ca
        e 60 65 180 95 #5a3420"""),
    "fish": ("#2f6f8f", "#d1b98a", 0.85, """
        p 70 130 15 85 15 175 #d9822b
        e 55 85 215 175 #e89a3c
        p 105 92 150 50 165 90 #d9822b
        e 180 108 200 128 #f4f4f0
        e 187 113 197 123 #101010"""),
    "house": ("#a9c4d8", "#7d8f58", 0.75, """
        r 60 120 200 215 #c9a27a
        p 45 120 130 50 215 120 #8a3b2a
        r 115 155 150 215 #5a3a22
        r 75 140 102 168 #e9e4b0
        r 163 140 190 168 #e9e4b0"""),
    "mushroom": ("#8f9f7a", "#5f6f3f", 0.7, """
        p 105 130 151 130 163 220 93 220 #e6dcc8
        e 45 55 211 150 #b3261e
        e 80 75 105 97 #f0ece4
        e 125 65 152 88 #f0ece4
        e 160 95 184 116 #f0ece4"""),
    "tree": ("#bcd0dc", "#7f9a4a", 0.75, """
        r 115 140 141 225 #5b4632
        e 60 80 150 165 #3f7a35
        e 105 75 198 165 #4a8a3c
        e 80 30 175 125 #56994a"""),
    "umbrella": ("#b4bcc4", "#6f757a", 0.8, """
        l 128 60 128 205 6 #3a3a3a
        l 128 205 150 205 6 #3a3a3a
        p 30 130 60 80 128 50 196 80 226 130 #3a5fa8
        p 88 130 108 70 128 50 148 70 168 130 #5a80c8"""),
}  # fmt: skip


def scene(name: str, sky: str = "", ground: str = "") -> Image.Image:
    """One of `SCENES` or `OTHERS` as a picture of 256×256 pixels in RGB, in its own colours or
    before another sky and ground."""
    own_sky, own_ground, horizon, shapes = (SCENES | OTHERS)[name]
    sky, ground = sky or own_sky, ground or own_ground
    picture = Image.new("RGB", (SIDE, SIDE), sky)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, round(SIDE * horizon), SIDE, SIDE), fill=ground)
    for line in shapes.split("\n")[1:]:
        letter, *words, colour = line.split()
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
