"""Lesson 07: what `python -m vit_steps.training` and `python -m vit_steps.predict` share."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from tqdm import tqdm


@contextmanager
def command(name: str) -> Iterator[None]:
    """Print what is warned of inside as notes, and what refuses it as its one last line.

    Where it is stopped by Ctrl-C it ends with 130.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # a name that the terminal cannot print: \udc..
        sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)
    try:
        with warnings.catch_warnings(action="default", category=UserWarning):
            warnings.showwarning = lambda message, *_, **__: tqdm.write(f"note: {message}")
            yield
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        tqdm.write(f"{name}: stopped", file=sys.stderr)
        sys.exit(130)
