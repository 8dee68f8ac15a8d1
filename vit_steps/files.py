"""The one way of writing a file whole."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new, never a part.

    The bytes are brought to the disk in another file beside it, `.….half`, which then gets its
    name. It is hidden, because JupyterLab loses a folder if a file goes while it is listed.
    ValueError where it cannot be written (disk full, no permission); the old file is as it was.
    """
    path = Path(path)
    half = path.with_name(f".{path.name}.{uuid4().hex[:8]}.half")  # two writers have two of them
    try:
        with open(half, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it is there after an error alone, or Ctrl-C
            half.unlink()
