"""What is drawn on the live page is read: 360 digits of tests/drawn, by the page's own pen."""

from pathlib import Path

import pytest
from live_page import ask, canvas, settled, state, window

pytestmark = pytest.mark.slow

HANDS = sorted(Path(__file__).with_name("drawn").glob("*.txt"))
# Draws each digit's strokes on an empty sheet, and gives the class with the largest share.
READ = """drawings => drawings.map(strokes => {
  const { config, weights } = vitState;
  let sheet = new Float32Array(config.height * config.width).fill(-1);
  for (const points of strokes) {
    points.forEach((to, i) => {
      sheet = vitModel.stroke(sheet, points[Math.max(i - 1, 0)], to, config);
    });
  }
  return vitMeasures.best(vitModel.vit(sheet, weights, config).probabilities.data);
})"""


def drawings(path):
    """The digits of a hand, and of each the strokes: lists of [row, column]."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    labels = [int(line.partition(":")[0]) for line in lines]
    strokes = [
        [[[*map(float, reversed(p.split(",")))] for p in s.split()] for s in line[2:].split("/")]
        for line in lines
    ]
    return labels, strokes


def test_nine_in_ten_of_what_is_drawn_are_read(chrome, stored):
    right, count = {}, 0
    with window(chrome, stored) as page:
        for hand in HANDS:
            labels, strokes = drawings(hand)
            read = ask(page, READ, strokes)
            right[hand.stem] = sum(a == b for a, b in zip(labels, read, strict=True))
            count += len(labels)
    assert len(HANDS) >= 10
    assert count >= 300
    assert sum(right.values()) >= 0.9 * count, right
    assert min(right.values()) >= 0.8 * count / len(HANDS), right  # no hand is left out


@pytest.mark.parametrize("hand", [HANDS[0], HANDS[-1]], ids=lambda hand: hand.stem)
def test_the_mouse_draws_what_the_pen_draws(hand, chrome, stored):
    _, strokes = drawings(hand)
    with window(chrome, stored) as page:
        box = canvas(page).bounding_box()
        side = box["width"] / 16
        for number in (0, 14, 28):
            page.get_by_role("button", name="an empty sheet to draw on").click()
            for points in strokes[number]:
                for i, (row, column) in enumerate(points):
                    page.mouse.move(box["x"] + column * side, box["y"] + row * side)
                    if i == 0:
                        page.mouse.down()
                page.mouse.up()
            settled(page)
            shares = state(page, "run.shown.probabilities.data.slice()")
            shares = [shares[str(i)] for i in range(10)] if isinstance(shares, dict) else shares
            assert shares.index(max(shares)) == ask(page, READ, [strokes[number]])[0]
            assert page.locator("#answer").text_content().startswith("It says ")
