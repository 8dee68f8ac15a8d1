"""Lesson 07: the one way of writing a file whole."""

import os
from pathlib import Path
from uuid import uuid4


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new, never a part.

    The bytes go to another file in the same folder, named `….half`, and are brought to the disk;
    only then does it get the name, and the folder is brought to the disk too.

    Raises:
        ValueError: it cannot be written (disk full, no permission); the old file is as it was.
    """
    path = Path(path)
    half = path.with_name(f"{path.name}.{uuid4().hex[:8]}.half")  # two writers have two of them
    try:
        try:
            with open(half, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(half, path)
        except BaseException:  # Ctrl-C too
            half.unlink(missing_ok=True)
            raise
        if hasattr(os, "O_DIRECTORY"):  # Windows has no way to sync a folder
            folder = os.open(path.parent, os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error
