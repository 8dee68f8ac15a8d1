"""The one way of writing a file whole."""

import os
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new, never a part.

    The bytes go to another file in the same folder, named `….half`, and are brought to the disk;
    only then does it get the name, and the folder is brought to the disk too. ValueError where it
    cannot be written (disk full, no permission); the old file is as it was.
    """
    path = Path(path)
    half = path.with_name(f"{path.name}.{uuid4().hex[:8]}.half")  # two writers have two of them
    try:
        with open(half, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        give_name(half, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it is there after an error alone, or Ctrl-C
            half.unlink()
    with suppress(OSError):  # Windows and some network drives cannot sync a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def give_name(half: Path, path: Path) -> None:
    """Give the file its name; on Windows again and again for a second, if somebody reads it."""
    for _ in range(10 if os.name == "nt" else 0):
        with suppress(PermissionError):
            return os.replace(half, path)
        time.sleep(0.1)
    return os.replace(half, path)
