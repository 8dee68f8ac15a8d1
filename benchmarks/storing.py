"""Where trainings that take long keep what they measured: a JSON file that lessons draw from."""

import json
import platform
from pathlib import Path
from typing import Any

import torch


def stored(file: Path) -> dict[str, Any]:
    """Read the file; {} where there is none."""
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


def store(file: Path, **entries: Any) -> None:
    """Put entries into the file, and leave its others alone."""
    text = json.dumps(stored(file) | entries, indent=1, ensure_ascii=False) + "\n"
    file.write_text(text, encoding="utf-8")


def makers(entry: dict[str, Any]) -> list[dict[str, str]]:
    """List on what an entry's numbers were made: where they were added to, more than one."""
    before = entry.get("made", [])
    return [*before, *([] if machine() in before else [machine()])]


def machine() -> dict[str, str]:
    """Say on what the numbers were made."""
    return {
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
