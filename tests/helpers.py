"""What several files of tests use."""

import os
import subprocess
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest
import torch


def needs(*modules, program=""):
    """Skip a test for which a module, or a program, is missing; where SKIP=nothing is set, fail.

    `.ci/run` sets it: there all must be there.
    """
    missing = [name for name in modules if not find_spec(name)] + [program] * bool(program)
    if not missing:
        return
    reason = f"needs {', '.join(missing)}: CONTRIBUTING.md says how to get it"
    if os.environ.get("SKIP") == "nothing":
        raise RuntimeError(reason)
    pytest.skip(reason)


def sh(*command, **options):
    """Run a command, and give what it prints; where it fails, all that it wrote is shown."""
    result = subprocess.run(command, capture_output=True, encoding="utf-8", **options)
    assert result.returncode == 0, result.stdout[-9000:] + result.stderr[-9000:]
    return result.stdout


def contents(folder):
    """The bytes of all files in a folder, by their paths."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def close(a, b, atol=1e-5):
    torch.testing.assert_close(a, b, atol=atol, rtol=0)


def peak_mib(run):
    """How far the process's memory rises while run() runs, in MiB. Linux tells; others do not."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")

    def read(name):
        line = next(s for s in status.read_text().splitlines() if s.startswith(name))
        return int(line.split()[1]) / 1024

    try:
        reset.write_text("5")
    except OSError:
        pytest.skip("this system does not tell a process's peak of memory")
    before = read("VmRSS")
    run()
    return read("VmHWM") - before


def saved(picture, form, **options):
    """The bytes of a picture's file."""
    file = BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def shake(module):
    """Give every parameter numbers of its own, so that none is 0 or 1 by accident."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return module


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def mask_of(shape):
    """Random places to look, token 0 always among them."""
    if shape is None:
        return None
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask
