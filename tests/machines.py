"""Do the lessons print the same on other processors? `python -m tests.machines [notebooks]`.

Runs notebooks strictly, by default all lessons, as processors would that have fewer instructions
than this one (AVX2; SSE alone), and with two threads, and says which cells printed otherwise. A
few minutes for each setting.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# torch's own kernels, MKL's matrix products and oneDNN's convolutions each have a switch.
SETTINGS = {
    "as it is": {},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    },
    "SSE": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "two threads": {"OMP_NUM_THREADS": "2"},
}


def differing(notebooks: list[Path], setting: dict[str, str]) -> list[str]:
    """The cells that print otherwise in a setting, "01_patches.ipynb::Cell 7"; [] if none does.

    Raises:
        RuntimeError: the run itself failed.
    """
    folder = os.path.commonpath([path.parent for path in notebooks])
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", folder]
    command = [sys.executable, "-m", "pytest", *settings, "-q", "--tb=no", *notebooks]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | setting
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    failed = re.findall(r"(?m)^FAILED (?:\S*/)?([^/\s]+::Cell \d+)", ran.stdout)
    if ran.returncode not in (0, 1) or (ran.returncode and not failed):
        raise RuntimeError(ran.stdout + ran.stderr)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    notebooks = parser.parse_args().notebooks or sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))
    cells = []
    for name, setting in SETTINGS.items():
        found = differing([path.absolute() for path in notebooks], setting)
        print(f"{name:12} {len(found)} cells print otherwise", *found, sep="\n  ", flush=True)
        cells += found
    raise SystemExit(bool(cells))


if __name__ == "__main__":
    main()
