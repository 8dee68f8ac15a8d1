"""The three packages as a whole: the wheel's files, public names, what an import costs.

Who imports whom is `lint-imports`' concern, and docstrings and prints are `ruff`'s: pyproject.toml.
"""

import ast
import importlib
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vit_steps

ROOT = Path(vit_steps.__file__).parents[1]
PACKAGES = ("vit_steps", "vit_course", "vit_doctor")
FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
PUBLIC = {  # what lessons, solutions and learners build on
    *("ViTConfig", "ViT", "MLP", "EncoderBlock", "Encoder", "MultiHeadAttention", "pool_tokens"),
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "split_qkv", "TokenEmbedding"),
    *("resize_positions", "PatchEmbedding", "patchify", "unpatchify", "load_image", "normalize"),
    "denormalize",
}


def test_what_is_no_python_is_named_to_the_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    in_the_wheel = {
        path
        for package, patterns in settings["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    others = {path for name in PACKAGES for path in (ROOT / name).rglob("*.*")} - in_the_wheel
    assert [path for path in others if path.suffix not in (".py", ".pyc")] == []


def test_the_public_names_are_listed_and_are_ours():
    assert set(vit_steps.__all__) >= PUBLIC
    assert len(vit_steps.__all__) == len(set(vit_steps.__all__))
    for name in vit_steps.__all__:
        assert getattr(vit_steps, name).__module__.startswith("vit_steps."), name


@pytest.mark.parametrize("file", [path for path in FILES if path.stem == "__init__"])
def test_no_function_hides_a_module(file):
    package = importlib.import_module(".".join(file.relative_to(ROOT).parent.parts))
    rooms = [path.parent.name for path in file.parent.glob("*/__init__.py")]
    names = [*rooms, *(path.stem for path in file.parent.glob("[a-z]*.py"))]
    hidden = [n for n in names if not inspect.ismodule(getattr(package, n, package))]
    assert hidden == []


def test_no_function_swallows_a_misspelt_option():
    """`preset`, `recipe` and the checks look at each option; `__call__` hands on what it gets.

    So do the plots, to matplotlib, which refuses what it does not know.
    """
    for path in (path for path in FILES if path.parent.name not in ("checks", "plots")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.FunctionDef)
                and node.args.kwarg
                and node.args.kwarg.arg != "__"
            ):
                looks = node.name in ("preset", "recipe", "__call__")
                assert looks or node.name.startswith("check_"), (path.name, node.name)


def python(*lines):
    """Run lines in a fresh Python, and give what it prints."""
    command = [sys.executable, "-W", "error::UserWarning:vit_steps", "-c", "\n".join(lines)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_importing_the_packages_brings_in_nothing_heavy():
    imports = "import vit_steps.training, vit_course.plots, sys"
    modules = set(python(imports, "print(*sys.modules)").split())
    assert {"vit_steps.vit", "vit_course.plots", "torch"} <= modules
    heavy = {"matplotlib", "torchinfo", "IPython", "sklearn", "scipy", "pandas", "timm"}
    heavy |= {"torchvision", "transformers", "ipykernel", "vit_course.checks"}
    assert modules & heavy == set()


@pytest.mark.slow
def test_the_doctor_and_its_command_come_without_the_other_packages():
    modules = python("import vit_doctor.__main__, sys", "print(*sys.modules)").split()
    assert "vit_doctor.command" in modules
    assert [name for name in modules if name.startswith(("vit_steps", "vit_course"))] == []


@pytest.mark.slow
def test_the_model_alone_needs_torch_einops_numpy_and_pillow():
    """The other packages are not to be had: importing one raises, as if it were not installed."""
    course = ["matplotlib", "torchinfo", "sklearn", "safetensors", "tqdm", "huggingface_hub"]
    shape = python(
        "import torch, sys",
        f"sys.modules.update(dict.fromkeys({[*course, 'filelock']!r}))",
        "from vit_course import plots",
        "from vit_steps import ViT, ViTConfig, load_image",
        "small = ViTConfig(image_size=16, patch_size=4, embed_dim=12, depth=1, num_heads=3)",
        "print(tuple(ViT(small)(torch.zeros(1, 3, 16, 16)).shape))",
    )
    assert shape == "(1, 1000)\n"
