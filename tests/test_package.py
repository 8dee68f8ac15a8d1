"""The three packages as a whole: who imports whom, names, docstrings, what an import costs."""

import ast
import graphlib
import importlib
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vit_steps

ROOT = Path(vit_steps.__file__).parents[1]
CORE = ["inputs", "images", "patches", "tokens", "heads", "attention", "encoder", "vit"]
# What stands in each package. A file imports only from what stands before it, and from its own
# room; whoever copies the first eight of vit_steps has all that scale and dropping need, and, with
# dropping, variants.
ORDER = {
    "vit_steps": [*CORE, "__init__", "scale", "dropping", "variants", "files", "maps", "training",
        "pretrained", "weights", "predict"],
    "vit_course": ["__init__", "lessons", "address", "lab", "plots", "explorer", "checks",
        "folding", "minutes", "run", "start", "teaching", "__main__"],
    "vit_doctor": ["watching", "report", "patient", "findings", "__init__", "command", "__main__"],
}  # fmt: skip
ALONE = {"scale": CORE, "dropping": CORE, "variants": [*CORE, "dropping"]}
# From which other packages a file may import; and from which a function may, when it is called.
OTHERS = {"vit_course": {"vit_steps", "vit_doctor"}}
ASKED = {"vit_doctor/command": {"vit_steps"}, "vit_doctor/__main__": {"vit_steps"}}
MAY_REPEAT = {"__init__", "__main__"}  # names of files that mean the same everywhere
FILES = {
    path.relative_to(ROOT).as_posix(): path
    for package in ORDER
    for path in sorted((ROOT / package).rglob("*.py"))
}
MODULES = {name[:-3].replace("/", ".").removesuffix(".__init__"): name for name in FILES}
LIBRARY = [name for name in FILES if not name.startswith("vit_course/checks/")]
PUBLIC = {  # what lessons, solutions and learners build on
    *("ViTConfig", "ViT", "MLP", "EncoderBlock", "Encoder", "MultiHeadAttention", "pool_tokens"),
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "split_qkv", "TokenEmbedding"),
    *("resize_positions", "PatchEmbedding", "patchify", "unpatchify", "load_image", "normalize"),
    "denormalize",
}
each_file = pytest.mark.parametrize("file", FILES)


def text(file):
    return FILES[file].read_text("utf-8")


# Who imports whom --------------------------------------------------------------------------------


def imported(file, source):
    """Our modules that a file imports, and whether a function does: "vit_steps.training.data"."""
    place = file.split("/")[:-1]
    tree = ast.parse(source)
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for part in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, id(node) in inside) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = place[: len(place) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            # `from . import data` brings a module, `from .data import split` a name of it.
            for alias in node.names:
                longer = f"{module}.{alias.name}"
                found.add((longer if longer in MODULES else module, id(node) in inside))
    return {(module, late) for module, late in found if module.split(".")[0] in ORDER}


def own_part(file):
    """The package, and the file or room in it: ("vit_steps", "training")."""
    package, part = file.removesuffix(".py").split("/")[:2]
    return package, part


def from_below(file, source):
    """The imports of a file that it may not have: of what stands below it, or of a package that
    may not be asked."""
    package, part = own_part(file)
    above = ALONE.get(part) or ORDER[package][: ORDER[package].index(part)]
    if file.endswith("/__main__.py"):  # a room's command, which nobody imports
        above = ORDER[package]
    found = []
    for module, late in imported(file, source):
        other, _, rest = module.partition(".")
        if other != package:
            asked = ASKED.get(f"{package}/{part}", set()) if late else set()
            good = other in OTHERS.get(package, set()) | asked
        else:
            good = (rest or "__init__").split(".")[0] in (*above, *[part] * (file.count("/") > 1))
        found += [] if good else [module]
    return sorted(found)


@each_file
def test_a_file_imports_only_from_what_stands_above_it(file):
    assert from_below(file, text(file)) == []


@pytest.mark.parametrize(
    ("file", "source", "found"),
    [
        ("vit_steps/heads.py", "from .inputs import x\nfrom .attention import y", ["attention"]),
        ("vit_steps/heads.py", "def f():\n    from .attention import y", ["attention"]),
        ("vit_steps/heads.py", "import vit_steps", [""]),
        ("vit_steps/heads.py", "from . import ViT", [""]),
        ("vit_steps/heads.py", "from . import vit", ["vit"]),
        ("vit_steps/scale.py", "from .training import fit", ["training"]),
        ("vit_steps/variants.py", "from .scale import merging", ["scale"]),
        ("vit_steps/maps.py", "from .vit import ViT", []),
        ("vit_steps/maps.py", "from .training.data import x", ["training.data"]),
        ("vit_steps/training/__main__.py", "from ..pretrained import load", []),
        ("vit_steps/vit.py", "def f():\n    from vit_course import plots", ["vit_course.plots"]),
        ("vit_course/plots/road.py", "from .. import checks", ["checks"]),
        ("vit_course/lessons.py", "from . import run", ["run"]),
        ("vit_course/checks/lesson_12.py", "import vit_doctor\nfrom vit_steps import ViT", []),
        ("vit_doctor/findings/norms.py", "import vit_steps", ["vit_steps"]),
        ("vit_doctor/patient.py", "def f():\n    import vit_steps", ["vit_steps"]),
        ("vit_doctor/command/page.py", "import vit_steps", ["vit_steps"]),
        ("vit_doctor/command/page.py", "def f():\n    import vit_steps", []),
    ],
)
def test_an_import_from_below_is_found(file, source, found):
    package = file.split("/")[0]
    wanted = [x if x.startswith("vit_") else f"{package}.{x}".rstrip(".") for x in found]
    assert from_below(file, source) == wanted


def test_the_order_names_every_file_and_room():
    for package, order in ORDER.items():
        assert {part for name, part in map(own_part, FILES) if name == package} == set(order)


def test_no_circle_and_no_one_imports_a_command():
    needed = {m: {other for other, _ in imported(f, text(f))} for m, f in MODULES.items()}
    list(graphlib.TopologicalSorter(needed).static_order())  # raises CycleError
    assert not [m for some in needed.values() for m in some if m.endswith("__main__")]


def test_what_is_no_python_is_named_to_the_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    named = {
        path
        for package, patterns in settings["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    others = {path for package in ORDER for path in (ROOT / package).rglob("*.*")} - named
    assert [path for path in others if path.suffix not in (".py", ".pyc")] == []


# Names and docstrings ----------------------------------------------------------------------------


def test_no_two_files_of_one_name_mean_different_things():
    by_name = {}
    for file in FILES:
        by_name.setdefault(Path(file).stem, []).append(file)
    assert {
        n: files for n, files in by_name.items() if len(files) > 1 and n not in MAY_REPEAT
    } == {}


def hidden_modules(package):
    """The modules of a package that something else of the same name hides."""
    inside = [name.removeprefix(f"{package.__name__}.") for name in MODULES]
    return [
        name
        for name in inside
        if hasattr(package, name) and not inspect.ismodule(getattr(package, name))
    ]


@pytest.mark.parametrize("package", [m for m, f in MODULES.items() if f.endswith("__init__.py")])
def test_no_function_hides_a_module(package):
    assert hidden_modules(importlib.import_module(package)) == []


def test_the_search_for_hidden_modules_can_find_one(monkeypatch):
    monkeypatch.setattr(vit_steps, "attention", lambda q, k, v: v)
    assert hidden_modules(vit_steps) == ["attention"]


def test_the_public_names_are_listed_and_say_what_they_are():
    assert set(vit_steps.__all__) >= PUBLIC
    assert len(vit_steps.__all__) == len(set(vit_steps.__all__))
    for name in vit_steps.__all__:
        thing = getattr(vit_steps, name)
        assert callable(thing), name
        assert thing.__module__.startswith("vit_steps."), name
        assert len((thing.__doc__ or "").strip()) > 20, name


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
    assert undocumented(text(file)) == []


# Cleanliness -------------------------------------------------------------------------------------


def test_a_file_is_read_in_one_sitting():
    """Checks are lists of mistakes, each with its message: looked up, not read."""
    length = {name: len(text(name).splitlines()) for name in FILES}
    assert {n: lines for n, lines in length.items() if lines > 330 and n in LIBRARY} == {}
    assert {n: lines for n, lines in length.items() if lines > 1250} == {}


def calls_of(source, name):
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_no_core_module_prints():
    assert calls_of("def f(x):\n    print(x)\n    return x", "print") == [2]
    for module in CORE:
        assert calls_of(text(f"vit_steps/{module}.py"), "print") == []


@pytest.mark.parametrize("file", LIBRARY)
def test_no_function_swallows_a_misspelt_option(file):
    """`**kwargs` hides typos. `preset`, `recipe` and the checks look at each that they take; what
    stands for another, and is called in its place, hands all on."""
    for node in ast.walk(ast.parse(text(file))):
        if isinstance(node, ast.FunctionDef) and node.args.kwarg and node.args.kwarg.arg != "__":
            known = node.name in ("preset", "recipe", "__call__") or node.name.startswith("check_")
            assert known, node.name


# What import costs -------------------------------------------------------------------------------

COURSE = [
    "matplotlib",
    "torchinfo",
    "sklearn",
    "safetensors",
    "tqdm",
    "huggingface_hub",
    "filelock",
]


def python(*lines):
    """What a fresh Python prints."""
    command = [sys.executable, "-W", "error::UserWarning:vit_steps", "-c", "\n".join(lines)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_importing_the_packages_brings_in_nothing_heavy():
    imports = "import torch, vit_steps, vit_doctor, vit_course.plots, sys"
    loaded = set(python(imports, "print(*sys.modules)").split())
    assert {"vit_steps.vit", "vit_course.plots", "torch"} <= loaded
    heavy = {"matplotlib", "torchinfo", "IPython", "sklearn", "scipy", "pandas", "timm"}
    heavy |= {"torchvision", "transformers", "ipykernel", "vit_course.checks"}
    assert loaded & heavy == set()


def test_the_model_alone_needs_torch_einops_numpy_and_pillow():
    """The other packages are not to be had: importing one raises, as if it were not installed."""
    shape = python(
        "import torch, sys",
        f"sys.modules.update(dict.fromkeys({COURSE!r}))",
        "from vit_course import plots",
        "from vit_steps import ViT, ViTConfig, load_image",
        "small = ViTConfig(image_size=16, patch_size=4, embed_dim=12, depth=1, num_heads=3)",
        "print(tuple(ViT(small)(torch.zeros(1, 3, 16, 16)).shape))",
    )
    assert shape == "(1, 1000)\n"


@pytest.mark.parametrize("module", [m for m in MODULES if m.count(".") <= 1])
def test_each_file_and_room_can_be_imported_by_itself(module):
    assert importlib.import_module(module).__doc__
