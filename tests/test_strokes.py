"""images/handwriting.py draws what is stored."""

import torch

from images.handwriting import drawn, hands
from vit_course import canvases


def test_what_is_stored_is_what_the_script_draws():
    before = torch.get_rng_state()
    val, again = canvases.drawn()[1], drawn(2000, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(val.labels, again.labels)
    assert (val.classes, val.preprocess) == (again.classes, again.preprocess)
    # Another processor may round one ink to the next step of 16. So each change of what is drawn
    # shows: of the pen, of the strokes and where they are lifted, of skips, of what is enlarged.
    for stored, drawing in ((val, again), (canvases.hands(), hands())):
        difference = (stored.pixels.int() - drawing.pixels.int()).abs()
        assert difference.max() <= 1
        assert difference.float().mean() < 1e-3
    assert drawn(3, side=28).shape == (1, 28, 28)
