"""The package as a whole: its public names, its docstrings, who imports whom, what import costs."""

import ast
import graphlib
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import vit_steps

FOLDER = Path(vit_steps.__file__).parent
CORE = ["inputs", "images", "patches", "tokens", "heads", "attention", "encoder", "vit"]
# Who imports only goes up this list: the core's files, then the rooms.
ROOMS = ["plots", "training", "maps", "pretrained", "variants", "explorer", "doctor", "scale"]
ROOMS += ["checks"]
ORDER = [*CORE, *ROOMS]
FILES = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.py"))}
LIBRARY = [name for name in FILES if not name.startswith("checks/")]
PUBLIC = {  # what lessons, solutions and learners build on
    *("ViTConfig", "ViT", "MLP", "EncoderBlock", "Encoder", "MultiHeadAttention", "pool_tokens"),
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "split_qkv", "TokenEmbedding"),
    *("resize_positions", "PatchEmbedding", "patchify", "unpatchify", "load_image", "normalize"),
    "denormalize",
}


# Names and docstrings ----------------------------------------------------------------------------


def test_the_public_names_are_listed_and_exist():
    assert set(vit_steps.__all__) >= PUBLIC
    assert len(vit_steps.__all__) == len(set(vit_steps.__all__))
    for name in vit_steps.__all__:
        assert callable(getattr(vit_steps, name)), name


def hidden_modules(package):
    """The modules of a package that something else of the same name hides."""
    folder = Path(package.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} | {
        p.parent.name for p in folder.glob("*/__init__.py")
    }
    return [
        name
        for name in sorted(names - {"__init__", "__main__"})
        if hasattr(package, name) and not inspect.ismodule(getattr(package, name))
    ]


@pytest.mark.parametrize("room", ["", ".plots", ".training", ".maps", ".pretrained", ".checks"])
def test_no_function_hides_a_module(room):
    assert hidden_modules(importlib.import_module(f"vit_steps{room}")) == []


def test_the_search_for_hidden_modules_can_find_one(monkeypatch):
    monkeypatch.setattr(vit_steps, "attention", lambda q, k, v: v)
    assert hidden_modules(vit_steps) == ["attention"]


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


@pytest.mark.parametrize("file", LIBRARY)
def test_every_module_class_function_and_method_has_a_docstring(file):
    assert undocumented(FILES[file].read_text("utf-8")) == []


# Who imports whom --------------------------------------------------------------------------------


def imported(file, source):
    """The modules of vit_steps that a file imports, as ("vit_steps", "training", "data")."""
    place = ("vit_steps", *Path(file).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = place[: len(place) - node.level + 1] if node.level else ()
            module = (*start, *(node.module or "").split(".")) if node.module else start
            # `from . import data` brings a module, `from .data import split` a name of it.
            for alias in node.names:
                longer = "/".join((*module, alias.name)[1:])
                is_module = f"{longer}.py" in FILES or f"{longer}/__init__.py" in FILES
                found.add((*module, alias.name) if is_module else module)
    return {module for module in found if module[0] == "vit_steps"}


def from_below(file, source):
    """The imports of a file that go down the list, or to the package as a whole."""
    own = Path(file).parts[0].removesuffix(".py")
    if own == "__init__":
        return sorted(m for m in imported(file, source) if m[1] not in CORE)
    # The doctor examines any ViT, so it knows nothing of ours; scale can be taken with the model.
    alone = {"doctor": [], "scale": CORE}
    allowed = list(alone.get(own, ORDER[: ORDER.index(own)]))
    if len(Path(file).parts) > 1:
        allowed.append(own)  # within a room
    return sorted(m for m in imported(file, source) if len(m) < 2 or m[1] not in allowed)


def test_the_search_for_imports_can_find_them():
    for file, source, found in (
        ("heads.py", "from .tokens import TokenEmbedding\nfrom torch import nn", [("tokens",)]),
        (
            "vit.py",
            "from vit_steps.heads import x\nimport vit_steps.tokens",
            [("heads",), ("tokens",)],
        ),
        ("maps/covering.py", "from ..vit import ViT", [("vit",)]),
        ("maps/covering.py", "from .. import plots", [("plots",)]),
        ("maps/covering.py", "from ..training import data", [("training", "data")]),
        ("maps/covering.py", "from ..training.data import split", [("training", "data")]),
        ("training/loop.py", "from . import data", [("training", "data")]),
        ("training/loop.py", "def f():\n    from .data import split", [("training", "data")]),
        ("heads.py", "import vit_steps", [()]),
        ("heads.py", "from . import ViT", [()]),
    ):
        assert imported(file, source) == {("vit_steps", *module) for module in found}, source
    assert from_below("heads.py", "from .inputs import x\nfrom .attention import y") == [
        ("vit_steps", "attention")
    ]
    assert from_below("maps/covering.py", "from ..pretrained import load") == [
        ("vit_steps", "pretrained")
    ]
    assert from_below("heads.py", "import vit_steps") == [("vit_steps",)]
    assert from_below("doctor/inside.py", "from ..vit import ViT") == [("vit_steps", "vit")]
    assert from_below("scale.py", "from .training import x") == [("vit_steps", "training")]


@pytest.mark.parametrize("file", FILES)
def test_a_file_imports_only_from_what_stands_above_it(file):
    assert from_below(file, FILES[file].read_text("utf-8")) == []


@pytest.mark.parametrize(
    "room", ["plots", "training", "maps", "pretrained", "explorer", "doctor", "checks"]
)
def test_no_circle_within_a_room_and_no_one_imports_its_command(room):
    inside = {
        ("vit_steps", *Path(name).with_suffix("").parts): imported(name, path.read_text("utf-8"))
        for name, path in FILES.items()
        if name.startswith(f"{room}/") and not name.endswith("__init__.py")
    }
    for needed in inside.values():
        assert ("vit_steps", room) not in needed  # the room as a whole
        assert ("vit_steps", room, "__main__") not in needed
    order = {module: needed & inside.keys() for module, needed in inside.items()}
    list(graphlib.TopologicalSorter(order).static_order())  # raises CycleError


def test_the_order_names_every_file_and_room():
    found = {Path(name).parts[0].removesuffix(".py") for name in FILES} - {"__init__"}
    assert found == set(ORDER)


def test_a_file_is_read_in_one_sitting():
    """Checks are lists of wrong answers, each with its message: looked up, not read."""
    longest = {name: len(path.read_text("utf-8").splitlines()) for name, path in FILES.items()}
    listed = {name for name in FILES if Path(name).parts[0] == "checks"}
    assert {name: n for name, n in longest.items() if n > 330 and name not in listed} == {}
    assert {name: n for name, n in longest.items() if n > 1250} == {}


# What import costs -------------------------------------------------------------------------------


def modules_after(*lines):
    code = "; ".join([*lines, "import sys", "print(' '.join(sys.modules))"])
    command = [sys.executable, "-W", "error::UserWarning:vit_steps", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return set(result.stdout.split())


def test_importing_the_package_brings_in_nothing_heavy():
    loaded = modules_after("import torch", "import vit_steps", "import vit_course.plots")
    assert {"vit_steps.vit", "vit_course.plots", "torch"} <= loaded
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
    assert loaded & (heavy | {"transformers", "ipykernel", "vit_course.checks"}) == set()


def test_the_model_alone_needs_torch_einops_numpy_and_pillow():
    """The other packages are not to be had: importing one raises, as if it were not installed."""
    rooms = (
        "matplotlib",
        "torchinfo",
        "sklearn",
        "safetensors",
        "tqdm",
        "huggingface_hub",
        "filelock",
    )
    code = f"""
import torch, sys
sys.modules.update(dict.fromkeys({rooms!r}))
from vit_course import plots
from vit_steps import ViT, ViTConfig, load_image
model = ViT(ViTConfig(image_size=16, patch_size=4, embed_dim=12, depth=1, num_heads=3))
print(tuple(model(torch.zeros(1, 3, 16, 16)).shape))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "(1, 1000)\n", result.stderr


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


@pytest.mark.parametrize("file", LIBRARY)
def test_no_function_swallows_a_misspelt_option(file):
    """`**kwargs` hides typos. `preset` and the checks take named values and look at each."""
    for node in ast.walk(ast.parse(FILES[file].read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.args.kwarg:
            assert node.name == "preset" or node.name.startswith("check_"), node.name


@pytest.mark.parametrize("name", ORDER)
def test_each_file_and_room_can_be_imported_by_itself(name):
    assert importlib.import_module(f"vit_steps.{name}").__doc__
