"""The tests see course.py and each other's helpers; figures are drawn without a screen."""

import os
import sys
from pathlib import Path

# Two workers on two cores: more threads would only wait for each other. Kernels inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib
import pytest
import torch

matplotlib.use("Agg")  # not by the environment, which the notebooks' kernels would inherit
sys.path.insert(0, str(Path(__file__).parent.parent))


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a test may have changed it
