"""The tests see course.py and each other's helpers; figures are drawn without a screen."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # not by the environment, which the notebooks' kernels would inherit
sys.path.insert(0, str(Path(__file__).parent.parent))
