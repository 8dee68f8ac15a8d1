"""The overview in images/ is what its script draws."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vit_course import lessons

pytestmark = pytest.mark.slow
OVERVIEW = lessons.ROOT / "images" / "overview.png"


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
    script = OVERVIEW.with_name("draw.py")
    subprocess.run([sys.executable, script, folder], check=True, cwd=lessons.ROOT)
    return Image.open(folder / OVERVIEW.name)


def test_picture_is_what_the_script_draws(redrawn):
    assert unlike(Image.open(OVERVIEW), redrawn) < 2


def test_a_changed_picture_is_caught(redrawn):
    after = redrawn.convert("RGB")
    ImageDraw.Draw(after).text((20, 20), "x", fill="black")
    assert unlike(redrawn, after) > 2
    assert unlike(redrawn, redrawn.resize((10, 10))) > 2
