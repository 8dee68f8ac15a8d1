"""The package as a whole: its public names, its docstrings, who imports whom, what import costs."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import vit_steps

CORE = ["inputs", "images", "patches", "tokens", "heads", "attention", "encoder", "vit"]
ORDER = [*CORE, "data", "checkpoints", "training", "command", "maps", "layouts"]
ORDER += ["preprocess", "pretrained"]
FOLDER = Path(vit_steps.__file__).parent
PUBLIC = {  # what lessons, solutions and learners build on
    *("ViTConfig", "ViT", "Head", "MLP", "EncoderBlock", "Encoder", "MultiHeadAttention"),
    *("attention", "QKV", "split_heads", "merge_heads", "TokenEmbedding", "resize_positions"),
    *("PatchEmbedding", "patchify", "unpatchify", "load_image", "normalize", "denormalize"),
}


# Names and docstrings ----------------------------------------------------------------------------


def test_the_public_names_are_listed_and_exist():
    assert set(vit_steps.__all__) >= PUBLIC
    assert len(vit_steps.__all__) == len(set(vit_steps.__all__))
    for name in vit_steps.__all__:
        assert callable(getattr(vit_steps, name)), name


def test_a_star_import_brings_the_function_attention_and_not_the_module():
    names = {}
    exec("from vit_steps import *", names)
    assert inspect.isfunction(names["attention"])


@pytest.mark.parametrize("name", vit_steps.__all__)
def test_each_public_name_says_what_it_is(name):
    thing = getattr(vit_steps, name)
    assert thing.__module__.startswith("vit_steps.")
    assert thing.__doc__
    assert len(thing.__doc__.strip()) > 20


def undocumented(source):
    """The public functions, classes and methods, and the module, that lack a docstring."""
    tree, missing = ast.parse(source), []
    if not ast.get_docstring(tree):
        missing.append("the module")

    def look(node, prefix):
        for child in node.body:
            if not isinstance(child, (ast.FunctionDef, ast.ClassDef)) or child.name.startswith("_"):
                continue
            if not ast.get_docstring(child):
                missing.append(prefix + child.name)
            if isinstance(child, ast.ClassDef):
                look(child, f"{prefix}{child.name}.")

    look(tree, "")
    return missing


def test_the_search_for_missing_docstrings_can_find_one():
    assert undocumented("def f():\n    pass") == ["the module", "f"]
    assert undocumented('"""m"""\nclass A:\n    """a"""\n    def f(self):\n        pass') == ["A.f"]
    assert undocumented('"""m"""\ndef _f():\n    pass') == []


@pytest.mark.parametrize("module", ORDER)
def test_every_module_class_function_and_method_has_a_docstring(module):
    assert undocumented((FOLDER / f"{module}.py").read_text("utf-8")) == []


# Who imports whom --------------------------------------------------------------------------------


def imported(source):
    """The modules of vit_steps that a source imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "vit_steps":
                    found.add((*alias.name.split("."), "the package")[1])
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".") if node.module else []
            if node.level == 0:
                if parts[0] != "vit_steps":
                    continue
                parts = parts[1:]
            found.update([parts[0]] if parts else [alias.name for alias in node.names])
    return found


def imports_from_below(module, source):
    above = ORDER[: ORDER.index(module)]
    return sorted(imported(source) - set(above))


def test_the_search_for_imports_can_find_them():
    assert imported("from .heads import QKV\nfrom torch import nn\nimport torch") == {"heads"}
    assert imported("from vit_steps.vit import ViT\nimport vit_steps.tokens") == {"vit", "tokens"}
    assert imported("from . import plots\nfrom .checks.patches import x") == {"plots", "checks"}
    assert imported("import vit_steps") == {"the package"}
    assert imported("def f():\n    from .vit import ViT") == {"vit"}
    assert imports_from_below("heads", "from .inputs import x\nfrom .attention import y") == [
        "attention"
    ]


@pytest.mark.parametrize("module", ORDER)
def test_a_module_imports_only_from_modules_above_it(module):
    source = (FOLDER / f"{module}.py").read_text("utf-8")
    source, _, _ = source.partition('if __name__ == "__main__":')  # a command, not the module
    assert imports_from_below(module, source) == []


def test_the_order_names_every_module():
    others = {"__init__", "plots"}  # these may import from all
    assert {path.stem for path in FOLDER.glob("*.py")} - others == set(ORDER)


# What import costs -------------------------------------------------------------------------------


def modules_after(*lines):
    code = "; ".join([*lines, "import sys", "print(' '.join(sys.modules))"])
    command = [sys.executable, "-W", "error::UserWarning:vit_steps", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return set(result.stdout.split())


def test_importing_the_package_brings_in_nothing_heavy():
    loaded = modules_after("import torch", "import vit_steps", "import vit_steps.plots")
    assert {"vit_steps.vit", "vit_steps.plots", "torch"} <= loaded
    heavy = {
        "matplotlib",
        "torchinfo",
        "IPython",
        "sklearn",
        "scipy",
        "pandas",
        "timm",
        "torchvision",
    }
    assert loaded & (heavy | {"transformers", "ipykernel", "vit_steps.checks"}) == set()


# Cleanliness -------------------------------------------------------------------------------------


def calls_of(source, name):
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_the_search_for_prints_can_find_one():
    assert calls_of("def f(x):\n    print(x)\n    return x", "print") == [2]
    assert calls_of('"""print(x)"""', "print") == []


@pytest.mark.parametrize("module", CORE)
def test_no_core_module_prints(module):
    source = (FOLDER / f"{module}.py").read_text("utf-8")
    assert calls_of(source, "print") == []


@pytest.mark.parametrize("module", ORDER)
def test_no_core_function_swallows_a_misspelt_option(module):
    """`**kwargs` hides typos. `preset` and the checks take named values and look at each."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.args.kwarg:
            assert node.name == "preset" or node.name.startswith("check_"), node.name


@pytest.mark.parametrize("module", ORDER)
def test_each_core_module_can_be_imported_by_itself(module):
    assert importlib.import_module(f"vit_steps.{module}").__doc__
