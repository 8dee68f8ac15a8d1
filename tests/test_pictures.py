"""The pictures in images/ are what their script draws."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vit_course import lessons

PICTURES = sorted((lessons.ROOT / "images").glob("*.png"))
PICTURES.remove(lessons.ROOT / "images" / "explorer.png")  # a screenshot


def unlike(a: Image.Image, b: Image.Image) -> float:
    """The largest mean difference, 0 to 255, in any square of 16×16 pixels; 255 if sizes differ."""
    if a.size != b.size:
        return 255.0
    apart = np.abs(np.asarray(a.convert("RGB"), float) - np.asarray(b.convert("RGB"), float))
    height, width = (side // 16 * 16 for side in apart.shape[:2])
    squares = apart[:height, :width].mean(-1).reshape(height // 16, 16, width // 16, 16)
    return float(squares.mean(axis=(1, 3)).max())


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    subprocess.run([sys.executable, lessons.ROOT / "images" / "draw.py", folder], check=True)
    return folder


def test_the_script_draws_all_pictures_and_no_other(redrawn):
    assert [p.name for p in PICTURES] == sorted(p.name for p in redrawn.iterdir())


@pytest.mark.parametrize("path", PICTURES, ids=lambda p: p.stem)
def test_picture_is_what_the_script_draws(path, redrawn):
    assert unlike(Image.open(path), Image.open(redrawn / path.name)) < 2


def test_a_changed_picture_is_caught(redrawn):
    before = Image.open(PICTURES[0]).convert("RGB")
    after = before.copy()
    ImageDraw.Draw(after).text((20, 20), "x", fill="black")
    assert unlike(before, after) > 2
    assert unlike(before, before.resize((10, 10))) > 2
