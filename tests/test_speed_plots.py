"""Lesson 13's drawings show what was measured, and say so below."""

import json
from math import isclose

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex

from vit_course import plots
from vit_course.plots import speed
from vit_course.plots.figures import INK, QUERY, VALUE

MADE = {"turns": 7, "cores": 2, "threads": 1}
PARTS = {
    "batch": 4,
    "sizes": {
        "Ti/16": {
            "work": {"qkv": 0.25, "MLP": 0.75},
            "time": {"qkv": 0.5, "MLP": 0.4, "rest": 0.1},
            "of_its_products": [1.2, 1.3, 1.5],
        },
        "B/16": {
            "work": {"qkv": 0.1, "MLP": 0.9},
            "time": {"qkv": 0.2, "MLP": 0.7, "rest": 0.1},
            "of_its_products": [1.0, 1.08, 1.1],
        },
    },
}
TOKENS = {
    "embed_dim": 192,
    "heads": 3,
    "batch": 4,
    "tokens": [32, 64, 128],
    "time": {"explicit": [0.1, 0.4, 1.6], "fused": [0.1, 0.2, 0.5], "rest": [1.0, 2.0, 4.0]},
    "kept": {"explicit": [0.2, 0.8, 3.2], "fused": [0.2, 0.4, 0.8], "rest": [1.0, 2.0, 4.0]},
}
BATCHES = {
    "what": "a model",
    "batch": [1, 4],
    "images_a_second": {"one thread": [1.0, 2.0], "two threads": [1.5, 4.0]},
}
PIECES = "pieces, peak memory 25%"
RATIOS = {
    "forward": {
        "what": "a forward",
        "rows": {"quick": [0.4, 0.5, 0.6], "level": [0.9, 1.02, 1.1], "slow": [2.5, 3.0, 3.5]},
    },
    "training": {"what": "a step", "rows": {"pieces": [1.1, 1.2, 1.3]}, "peak": {"pieces": 0.25}},
}


@pytest.fixture(autouse=True)
def measured(tmp_path, monkeypatch):
    """A file of known numbers in place of the stored one."""
    file = tmp_path / "measured.json"
    known = dict(made=MADE, parts=PARTS, tokens=TOKENS, batches=BATCHES, ratios=RATIOS)
    file.write_text(json.dumps(known), encoding="utf-8")
    monkeypatch.setattr(speed, "FILE", file)
    yield
    plt.close("all")


def texts(ax) -> list[str]:
    return [text.get_text().strip() for text in ax.texts]


def rows(ax) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


@pytest.mark.parametrize(
    ("drawing", "what"),
    [
        (plots.work_and_time, "forward pass, batch 4"),
        (plots.token_costs, "width 192 with 3 heads, batch 4"),
        (plots.time_ratios, "7 or more turns"),
        (plots.batch_speeds, "a model"),
    ],
)
def test_each_drawing_says_below_on_what_it_was_measured_and_fits_the_page(drawing, what):
    drawing()
    figure = plt.gcf()
    figure.canvas.draw()  # only then names beside points have their room
    below = figure.get_supxlabel()
    assert below.startswith("measured on two CPU cores, ")
    assert below.endswith(what)
    assert figure.get_tightbbox().width <= 8.8  # inches of 100 pixels


def test_work_stands_beside_time_on_one_scale_and_a_part_without_work_has_no_bar():
    plots.work_and_time()
    first, second = plt.gcf().axes
    titles = ["Ti/16: 1.30 times its bare products", "B/16: 1.08 times its bare products"]
    assert [first.get_title(), second.get_title()] == titles
    assert rows(first) == ["qkv", "MLP", "rest"]
    assert first.get_xlim() == second.get_xlim()
    assert [bar.get_width() for bar in first.patches] == [0.25, 0.75, 0.5, 0.4, 0.1]
    assert texts(first) == ["25%", "75%", "50%", "40%", "10%"]
    assert {bar.get_hatch() for bar in first.patches[:2]} == {""}
    assert {bar.get_hatch() for bar in first.patches[2:]} == {"///"}


def test_guides_grow_as_tokens_and_as_their_square():
    plots.token_costs()
    time, memory = plt.gcf().axes
    for ax, kind in ((time, "time"), (memory, "kept")):
        assert ax.get_xscale() == ax.get_yscale() == "log"
        straight, square, *drawn = [list(line.get_ydata()) for line in ax.lines]
        assert drawn == list(TOKENS[kind].values())
        assert isclose(straight[2] / straight[0], 4)
        assert isclose(square[2] / square[0], 16)
        assert {"N", "N²", "attention, explicit", "attention, fused"} <= set(texts(ax))


def test_a_ratio_is_faster_slower_or_neither_in_form_as_in_colour():
    plots.time_ratios()
    ax = plt.gca()
    assert rows(ax) == ["a forward", "quick", "level", "slow", "a step", PIECES]
    assert texts(ax) == ["0.50", "1.02", "3.00", "1.20"]
    points = [line for line in ax.lines if line.get_marker() in ("o", "D")]
    assert [list(point.get_xdata()) for point in points] == [[0.5], [1.02], [3.0], [1.2]]
    assert [point.get_marker() for point in points] == ["o", "o", "D", "D"]
    looks = [(to_hex(p.get_color()), to_hex(p.get_markerfacecolor())) for p in points]
    known = [VALUE.lower(), INK, QUERY.lower(), QUERY.lower()]
    assert looks == [(c, "#ffffff" if c == INK else c) for c in known]
    bars = [list(line.get_xdata()) for line in ax.lines if line.get_linewidth() == 3]
    assert bars == [[0.4, 0.6], [0.9, 1.1], [2.5, 3.5], [1.1, 1.3]]
    least, most = ax.get_xlim()
    assert least < 0.4
    assert most > 3.5


def test_one_group_of_ratios_is_drawn_alone_and_another_name_is_refused():
    plots.time_ratios("training")
    assert rows(plt.gca()) == ["a step", PIECES]
    with pytest.raises(ValueError, match="no group 'sewing'; there are forward, training"):
        plots.time_ratios("sewing")


def test_batches_are_curves_from_nothing_up():
    plots.batch_speeds()
    ax = plt.gca()
    assert [list(line.get_ydata()) for line in ax.lines] == [[1.0, 2.0], [1.5, 4.0]]
    assert ax.get_ylim()[0] == 0
    assert set(texts(ax)) == {"one thread", "two threads"}


# What is stored ----------------------------------------------------------------------------------


def test_the_stored_measurement_is_whole_and_of_enough_turns(monkeypatch):
    monkeypatch.undo()
    made, sizes, tokens = (speed.stored(name) for name in ("made", "parts", "tokens"))
    assert made["turns"] >= 7
    assert made["threads"] == 1
    assert {"cores", "processor", "python", "torch"} <= set(made)
    assert set(sizes["sizes"]) == {"Ti/16", "B/16"}
    for shares in sizes["sizes"].values():
        assert sum(shares["work"].values()) == pytest.approx(1, abs=1e-3)
        assert sum(shares["time"].values()) == pytest.approx(1, abs=0.05)  # medians
    assert tokens["tokens"] == [32, 64, 128, 256, 512, 1024]
    ratios = speed.stored("ratios")
    assert list(ratios) == ["forward", "merging", "training", "processes", "reading"]
    for group in ratios.values():
        assert all(low <= middle <= high for low, middle, high in group["rows"].values())
