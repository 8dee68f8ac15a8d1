"""Lesson 07: what `python -m vit_steps.training` and `python -m vit_steps.predict` share."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from tqdm import tqdm


@contextmanager
def command(name: str) -> Iterator[None]:
    """End what is inside by one line where it is refused, and with 130 where it is stopped."""
    if isinstance(sys.stdout, TextIOWrapper):  # a name that the terminal cannot print: \udc..
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        tqdm.write(f"{name}: stopped", file=sys.stderr)
        sys.exit(130)


@contextmanager
def notes() -> Iterator[None]:
    """Print the warnings of what is inside as notes, once it ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                tqdm.write(f"note: {warning.message}")
