"""Settings of all tests, a single lesson's too, wherever they are started from."""

import os
import signal
import tempfile

# Each worker one thread: more would only wait for each other. Kernels inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib
import pytest
import torch

matplotlib.use("Agg")  # not by the environment, which the notebooks' kernels would inherit


# In the background of a shell Ctrl-C is ignored, by whatever a test starts too.
signal.signal(signal.SIGINT, signal.default_int_handler)

MY_VIT_FOLDER = tempfile.mkdtemp()


def pytest_xdist_auto_num_workers(config):
    """How many workers `-n auto` means; unlike a number, it also lets `--pdb` do without any.

    Two: more, each with a B/16 or two, fill a small machine's memory. None where one file is asked
    for: a file is one worker's in any case.
    """
    files = [name.split("::")[0] for name in config.args]
    return 0 if len(files) == 1 and os.path.isfile(files[0]) else 2


def pytest_itemcollected(item):
    """Solutions are made of what the exercises declare and seldom break: they run with the slow."""
    if item.path.parent.name == "solutions":
        item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Each notebook, and each test, begins without a `my_vit.py`, and leaves none behind."""
    name = f"{os.getpid()}-{item.path.parent.name}-{item.path.stem}"
    os.environ["MY_VIT"] = os.path.join(MY_VIT_FOLDER, name, "my_vit.py")
    os.makedirs(os.path.dirname(os.environ["MY_VIT"]), exist_ok=True)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a test may have changed it
