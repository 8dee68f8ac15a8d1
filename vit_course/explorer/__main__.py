"""The command line of `python -m vit_course.explorer`; no module imports it."""

import argparse
import sys
import warnings
import webbrowser
from pathlib import Path

from vit_steps.pretrained import load
from vit_steps.training import Weights, load_data
from vit_steps.training.dataset import ImageDataset

from ..canvases import scattered
from .pages import write
from .scenes import scenes

# What the course's own weights do.
ABOUT = {
    "scattered": "This model reads a digit: one that you draw, or one among pieces of others.",
    "photos": "This model names what is on your photo, if it is one of ten things. The examples "
    "are drawings, not photos.",
}
UNKNOWN = "no file says whether the model was trained on these pictures; they are called examples"


def main(argv: list[str] | None = None) -> None:
    """Write the page, say where it is, open it."""
    options = _parser().parse_args(argv)
    try:
        weights, data, pictures = load(options.weights), options.data, None
        name = "" if Path(options.weights).exists() else options.weights  # of the course's own
        if name == "scattered" and not data:
            data = name
        if data:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                pictures = held_out(data, weights, options.count)
            for warning in caught:
                print(f"note: {warning.message}")
        elif name == "photos" and weights.preprocess is not None:
            pictures = scenes(weights.preprocess)
        # The course drew these for no training; of other pictures no file says it.
        unseen = name == data == "scattered"
        if data and not unseen:
            print(f"note: {UNKNOWN}")
        about, count = ABOUT.get(name, ""), options.count
        path = write(options.out, weights, pictures, count=count, about=about, unseen=unseen)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"vit_course.explorer: {error}")
    print(f"{path}, {path.stat().st_size / 1e6:.1f} MB")
    if not options.no_browser and not webbrowser.open(path.resolve().as_uri()):
        print("no browser opened; open the file yourself")


def _parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m vit_course.explorer",
        description="Write a page on which a trained ViT runs live, and open it.",
        epilog="""\
examples:
  %(prog)s
      the course's own model, which reads the digit that you draw
  %(prog)s photos
      the course's own model that names what is on your photo
  %(prog)s runs/digits/best.safetensors --data digits
      what `python -m vit_steps.training` trained on digits
  %(prog)s runs/my_photos/best.safetensors --data folder:my_photos --out photos.html
      a model of your own pictures

The page is one file: it needs no server and no network, and you may send it to others.
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("weights", nargs="?", default="scattered", metavar="WEIGHTS",
        help="scattered (the default) or photos, the course's own; or a file of "
        "the training")  # fmt: skip
    parser.add_argument("--data", metavar="DATA", help="whose held-out pictures are shown: "
        "digits, scattered, folder:PATH (for the course's own: scattered; else none without "
        "this)")  # fmt: skip
    parser.add_argument("--count", type=int, default=200, metavar="N",
        help="at most so many pictures (default: 200)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("explorer.html"), metavar="FILE",
        help="where to write the page (default: explorer.html)")  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="only write it")
    return parser


def held_out(source: str, weights: Weights, count: int) -> ImageDataset:
    """Give a data set's pictures for testing; ValueError where they do not fit the weights."""
    size, preprocess = weights.model.config.image_size, weights.preprocess
    if source == "scattered":
        test = scattered(count, held_out=True)
    else:
        test = load_data(source, size=size, val_fraction=0, preprocess=preprocess).test
    if test is None:
        raise ValueError(f"{source} holds no pictures to test on; add a folder test")
    if weights.classes and weights.classes != test.classes:
        raise ValueError(f"the weights name {weights.classes}, but {source} {test.classes}")
    if preprocess is not None and preprocess != test.preprocess:
        raise ValueError(f"the weights want {preprocess}, but {source} gives {test.preprocess}")
    return test


if __name__ == "__main__":
    main()
