"""The drawings say what they are given, and refuse what they cannot draw truly."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from vit_steps import plots
from vit_steps.patches import patchify


@pytest.fixture(autouse=True)
def no_figure_left_over():
    yield
    plt.close("all")


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def pixels(figure) -> np.ndarray:
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def coloured(lesson) -> int:
    """How many pixels of the map are neither grey nor nearly so."""
    plots.course_map(lesson)
    drawn = pixels(plt.gcf())
    return int((drawn.max(-1) - drawn.min(-1) > 30).sum())


def test_each_lesson_lights_its_piece_and_less_than_the_whole():
    whole = coloured(None)
    assert all(0 < coloured(lesson) < whole for lesson in range(1, 7))
    assert coloured(0) == coloured(7) == coloured(12) == whole


def test_pieces_together_make_the_whole_map():
    # Lesson 5 lights QKV heads and attention again, and the MLP, which is grey by design.
    assert sum(coloured(lesson) for lesson in (1, 2, 3, 4, 6)) < coloured(None)
    assert abs(coloured(5) - coloured(3) - coloured(4)) < 200


def test_the_map_shows_the_shapes_that_it_is_given():
    plots.course_map(0, shapes={"photo": "3×112×112", "head": "10"})
    shown = texts(plt.gca())
    assert "3×112×112" in shown
    assert "10" in shown
    assert "3×224×224" not in shown
    assert "12×197×197" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((14,), "lesson is 14"), ((-1,), "lesson is -1"), ((1, {"heads": "8"}), "no stage 'heads'")],
)
def test_the_map_refuses_lessons_and_stages_that_it_has_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.course_map(*arguments)


def test_a_small_matrix_has_its_numbers_written_in_and_legible():
    plots.matrix(torch.tensor([[0.0, 1.0], [0.25, 0.75]]), form="{:.2f}")
    ax = plt.gca()
    assert texts(ax) == ["0.00", "1.00", "0.25", "0.75"]
    assert [to_hex(t.get_color()) for t in ax.texts] == ["#ffffff", "#000000", "#ffffff", "#000000"]


def test_a_large_matrix_has_a_colour_bar_instead():
    plots.matrix(torch.rand(13, 5))
    assert texts(plt.gca()) == []
    assert len(plt.gcf().axes) == 2


def test_a_matrix_with_gaps_takes_its_limits_from_what_is_known():
    plots.matrix(torch.tensor([[float("nan"), 2.0], [3.0, 5.0]]), form="")
    assert plt.gca().images[0].get_clim() == (2.0, 5.0)


def test_patch_grid_shows_every_patch_unharmed_between_white_gaps():
    image = torch.rand(3, 4, 6) * 0.9
    plots.patch_grid(image, 2, gap=1)
    shown = torch.from_numpy(plt.gca().images[0].get_array().data.copy())
    assert shown.shape == (6, 9, 3)
    tiles = patchify(shown.permute(2, 0, 1)[None], 3)[0].view(6, 3, 3, 3)
    assert torch.equal(tiles[:, :2, :2].reshape(6, -1), patchify(image[None], 2)[0])
    assert (tiles[:, 2] == 1).all()
    assert (tiles[:, :, 2] == 1).all()


def test_over_photo_wants_one_weight_a_patch():
    image = torch.rand(3, 32, 48)
    plots.over_photo(image, torch.arange(6.0), (2, 3))
    assert plt.gca().images[1].get_array().tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(
        ValueError, match=r"weights is \(7,\); give \(6,\).*leave out the cls token"
    ):
        plots.over_photo(image, torch.rand(7), (2, 3))


def test_lines_are_told_apart_without_colour_and_named_at_their_ends():
    plots.lines([1, 2, 4], {"a": [1, 2, 3], "b": [3, 2, 1]}, log="x")
    ax = plt.gca()
    assert texts(ax) == ["a", "b"]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "4"]


def test_a_picture_in_one_channel_is_grey_and_keeps_its_brightness():
    plots.picture(torch.full((1, 4, 4), 0.5))
    shown = plt.gca().images[0]
    assert shown.get_cmap().name == "gray"
    assert shown.get_clim() == (0, 1)
