"""The overview in images/ is what its script draws."""

import sys

import numpy as np
import pytest
from helpers import sh
from PIL import Image

from vit_course import lessons

pytestmark = pytest.mark.slow
OVERVIEW = lessons.ROOT / "images" / "overview.png"


def test_the_overview_is_what_its_script_draws(tmp_path):
    """In no square of 16×16 pixels they are apart by 2 of 255 in the mean, as a letter would be."""
    script = OVERVIEW.with_name("draw.py")
    sh(sys.executable, script, tmp_path, cwd=lessons.ROOT)
    stored, redrawn = (
        np.asarray(Image.open(path).convert("RGB"), float)
        for path in (OVERVIEW, tmp_path / OVERVIEW.name)
    )
    assert stored.shape == redrawn.shape
    height, width = (side // 16 * 16 for side in stored.shape[:2])
    apart = np.abs(stored - redrawn)[:height, :width].mean(-1)
    squares = apart.reshape(height // 16, 16, width // 16, 16).mean(axis=(1, 3))
    assert squares.max() < 2
