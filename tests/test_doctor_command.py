"""`python -m vit_doctor`: on one file, and on a folder of files, whatever they do."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import nbformat
import pytest
import torch
from helpers import contents

from vit_doctor import CHECKS, Finding, Note, Report, Skipped, examine
from vit_doctor import __main__ as command
from vit_doctor.command.arguments import Task, UnfitError
from vit_doctor.command.each_file import Result, files_in
from vit_doctor.command.loading import load
from vit_doctor.command.making import make
from vit_doctor.command.one_file import find, look
from vit_doctor.command.page import harmless, page, table, write, write_whole
from vit_doctor.command.usual import USUAL
from vit_steps import ViT
from vit_steps.training import load_model, save_model
from vit_steps.weights import SCATTERED

ROOT = Path(__file__).parent.parent

# The plain model of the doctor's own tests, as a student's file.
SOUND = (ROOT / "tests" / "sick.py").read_text("utf-8").partition("\n# Models of another")[0]
SOUND = SOUND.replace("class Plain(", "class ViT(")
UNSCALED = SOUND.replace(" / math.sqrt(q.shape[-1])", "")
FORGED = """
import json, os
report = {"findings": [], "skipped": [], "sound": []}
clean = {"status": "examined", "message": "", "report": report}
print(json.dumps(clean), flush=True)
os.write(1, json.dumps(clean).encode())
"""
ENDLESS = "while True:\n    pass\n"
IN_FORWARD = "def forward(self, images: Tensor):\n        "
CLASS = {
    "sound.py": SOUND,
    "=1+1.py": UNSCALED + FORGED,
    "broken.py": SOUND + "def half(\n",
    "exits_at_once.py": SOUND + FORGED + "os._exit(0)\n",
    "endless.py": SOUND.replace(IN_FORWARD, IN_FORWARD + "while True: pass\n        "),
    "Zoé Müller/mon ViT & co.py": "import os\nos.chdir('/')\nimport parts_of_zoé\n"
    + SOUND
    + "import threading, time\nthreading.Thread(target=time.sleep, args=(999,)).start()\n",
    "Zoé Müller/parts_of_zoé/__init__.py": "print('helping')\n",  # beside the file, for it alone
    "Zoé Müller/parts_of_zoé/deep.py": ENDLESS,
    "Zoé Müller/__init__.py": "",
    ".hidden/never.py": ENDLESS,
}
if sys.platform == "linux":  # no other limits address space
    CLASS["greedy.py"] = SOUND + "x = bytearray(10**10)\n"
assert UNSCALED != SOUND != CLASS["endless.py"]
LIMIT = 8  # seconds: what is not endless takes 1 s, and more on a busy machine
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


# A folder ----------------------------------------------------------------------------------------


STATUS = {
    "sound.py": ("examined", r""),
    "'=1+1.py": ("examined", r"prints when it is loaded and made: \{\"status\": \"examined\".*"),
    "broken.py": ("cannot be loaded", r"SyntaxError: .* \(broken.py, line \d+\)"),
    "exits_at_once.py": ("ended itself", r"its process ended: exit code 0"),
    "endless.py": ("took too long", r"more than 8 s"),
    "Zoé Müller/mon ViT & co.py": (
        "examined",
        r"prints when it is loaded and made: helping; leaves a thread running \(1\): .*",
    ),
}
if "greedy.py" in CLASS:
    message = r"more than 4000 MB on top of PyTorch's own; greedy.py:\d+"
    STATUS["greedy.py"] = ("out of memory", message)


@pytest.mark.slow
def test_each_file_of_a_folder_is_reported_as_what_it_is_and_nothing_else(tmp_path, capsys):
    homework, out = written(tmp_path / "home work", CLASS), tmp_path / "results" / "one"
    options = ["--out", str(out), "--limit", str(LIMIT), "--image-size", "32"]
    assert command.main([f"{homework}:ViT", *options]) == 2
    printed = capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["report.csv", "report.html"]
    text = (out / "report.csv").read_text("utf-8-sig")
    rows = {row["file"]: row for row in csv.DictReader(StringIO(text))}
    assert set(rows) == set(STATUS)
    for file, (status, message) in STATUS.items():
        row = rows[file]
        assert row["status"] == status, file
        assert re.fullmatch(message, row["message"]), row["message"]
        assert float(row["seconds"]) < 2 * LIMIT, file
        examined = status == "examined"
        expected = ("1", "scale missing") if file == "'=1+1.py" else ("0" if examined else "", "")
        assert (row["findings"], row["names"]) == expected, file
        counts = (row["checks passed"], row["do not apply"])
        assert sum(map(int, counts)) >= len(CHECKS) - 1 if examined else counts == ("", ""), file
    assert re.search(r"=1\+1.py: 1 finding; .* do(es)? not apply: scale missing\n", printed)
    assert "endless.py: took too long: more than 8 s\n" in printed
    assert printed.endswith(f"results: {out / 'report.csv'}, {out / 'report.html'}\n")
    assert "helping" not in printed
    assert not list(homework.rglob("__pycache__"))


def test_the_page_tells_all_of_a_finding_and_what_is_not_done_yet():
    finding = Finding("1 & 2", "because", "blocks.0 (a.py:3)", name="a <fault>")
    note = Note("cut <off>", "fine", name="images cropped")
    skipped = (Skipped("no cls", "cls unused"),)
    report = Report((finding,), skipped, ("prints",), (note,), (3, 64, 32))
    results = [Result("a.py", "examined", "", report), Result("<i>.py", "ended itself", "code <3>")]
    text = page(results, "T <1>", 4)
    for part in (
        *("<h1>T &lt;1&gt;</h1>", "2 of 4 files: 0 without findings, 1 could not be examined"),
        *("a &lt;fault&gt;", "1 &amp; 2", "because", "blocks.0 (a.py:3)", "cls unused: no cls"),
        *("images cropped: cut &lt;off&gt;; fine", "images of 64×32 in 3 channels"),
        *("&lt;i&gt;.py", "code &lt;3", "href='#f1'", "id='f1'"),
    ):
        assert part in text
    assert not re.search(r"<(fault|i>|script|link|img)|https?:|url\(", text)


def test_no_cell_is_a_formula():
    for start in "=+-@\t\r\n":
        assert harmless(f"a{start}1") == f"a{start}1"
        report = Report((Finding("", "", name=f"{start}4"),))
        result = Result(f"{start}1", f"{start}2", f"{start}3", report)
        _, row = csv.reader(StringIO(table([result]), newline=""))
        assert row == [f"'{start}1", f"'{start}2", *"100", f"'{start}4", "", f"'{start}3", "0.0"]


def test_a_note_stands_in_the_table_and_is_no_finding():
    result = Result("a.py", "examined", "", Report(notes=(Note("m", "w", name="images cropped"),)))
    (row,) = csv.DictReader(StringIO(table([result]), newline=""))
    assert (row["findings"], row["names"], row["notes"]) == ("0", "", "images cropped")
    assert command.exit_code([result]) == 0
    assert command.line(result) == "0 findings and 1 note; 0 of 1 checks passed, 0 do not apply"


def test_results_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write(tmp_path, [], "before", 1)
    before = contents(tmp_path)

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.csv", b"after")
    assert contents(tmp_path) == before


@pytest.mark.slow
@posix
def test_a_stopped_run_keeps_what_is_done_and_leaves_no_process(tmp_path):
    endless = "import os\nopen('pid', 'w').write(str(os.getpid()))\n" + ENDLESS
    written(tmp_path / "work", {"a.py": "import torch\nViT = torch.nn.Identity\n", "b.py": endless})
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "vit_doctor", "work:ViT", "--out", "out"]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        pid, start = tmp_path / "pid", time.monotonic()
        while not (pid.exists() and pid.read_text()) and time.monotonic() - start < 60:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)  # taken as Ctrl-C
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.decode().endswith("vit_doctor: stopped; what is done stands in out\n")
    text = (tmp_path / "out" / "report.csv").read_text("utf-8-sig")
    rows = list(csv.reader(StringIO(text)))
    assert [row[0] for row in rows] == ["file", "a.py"]
    assert "1 of 2 files" in (tmp_path / "out" / "report.html").read_text("utf-8")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_folders_files_are_its_own_and_those_one_folder_down(tmp_path):
    names = ("b.py", "A/x.py", "a.py", "A/deep/no.py", ".git/no.py", "__pycache__/no.py", "no.txt")
    written(tmp_path, dict.fromkeys((*names, "__init__.py", "A/__init__.py"), ""))
    found = [file.relative_to(tmp_path).as_posix() for file in files_in(tmp_path)]
    assert found == ["a.py", "A/x.py", "b.py"]


# One file ----------------------------------------------------------------------------------------


def test_one_file_gives_its_report_and_an_exit_code(tmp_path, capfd):
    written(tmp_path, {"my vit.py": "print('loading')\n" + UNSCALED})
    assert command.main([f"{tmp_path / 'my vit.py'}:ViT", "--image-size", "32"]) == 1
    out, err = capfd.readouterr()
    assert out.startswith("1 finding; ")
    assert "scale missing\n  measured: " in out
    assert "my_vit" not in out
    assert err.split() == ["loading"]  # what it prints is shown, beside the report


def test_a_file_of_weights_is_examined_as_the_model_in_it(tmp_path, capfd):
    assert command.main([str(SCATTERED)]) == 0
    model = ViT(load_model(SCATTERED).config)
    model.tokens.pos_embed.data.mul_(1000)
    save_model(model, tmp_path / "loud.safetensors")
    assert command.main([str(tmp_path / "loud.safetensors")]) == 1
    assert "positions large" in capfd.readouterr().out
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    assert command.main([str(tmp_path / "broken.safetensors")]) == 2
    assert "broken.safetensors" in capfd.readouterr().err


def test_the_exit_code_is_that_of_the_worst():
    clean, sick = Result("a", "", "", Report()), Result("b", "", "", Report((Finding("", ""),)))
    assert command.exit_code([clean]) == 0
    assert command.exit_code([clean, sick, clean]) == 1
    assert command.exit_code([sick, Result("c", "ended itself"), clean]) == 2


@pytest.mark.slow
def test_one_file_that_cannot_be_examined_gives_2(tmp_path, capfd):
    written(tmp_path, {"vit.py": "raise KeyError('k')\n"})
    assert command.main([str(tmp_path / "vit.py")]) == 2
    assert capfd.readouterr() == ("", "vit.py: cannot be loaded: KeyError: 'k' (vit.py:1)\n")


def test_without_the_doctor_in_its_process_no_file_is_blamed(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("vit_doctor.command.each_file.CHILD", "raise SystemExit")
    written(tmp_path, {"vit.py": SOUND})
    assert command.main([str(tmp_path / "vit.py")]) == 2
    assert "Python cannot load the doctor in a process of its own" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py:ViT"], "there is no nowhere.py"),
        (["."], "a folder needs --out RESULTS"),
        (["vit.py", "--out", "x"], "--out is for a folder"),
        (["vit.py", "--image-size", "0"], "'0' is no size"),
        (["vit.py", "--image-size", "32x"], "'32x' is no size"),
        (["vit.py", "--limit", "0"], "'0' is not a number above 0"),
        (["vit.py", "--memory", "-1"], "'-1' is not a whole number above 0"),
        (["vit.py", "--set", "depth"], "'depth' is not NAME=VALUE"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(words, said, tmp_path, monkeypatch, capsys):
    written(tmp_path, {"vit.py": ""})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        command.main(words)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_size_is_one_number_or_height_by_width():
    for text, size in (("32", (32, 32)), ("32x16", (32, 16))):
        assert command.parser().parse_args(["a.py", "--image-size", text]).image_size == size


def test_an_empty_folder_is_said_so_and_nothing_is_written(tmp_path, capsys):
    assert command.main([f"{tmp_path}:ViT", "--out", str(tmp_path / "out")]) == 2
    assert "holds no *.py" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@posix
def test_the_target_may_hold_colons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {"a:ViT": "", "b.py": ""})
    assert command.path_and_name("a:ViT") == (Path("a:ViT"), "")
    assert command.path_and_name("b.py:ViT") == (Path("b.py"), "ViT")
    assert command.path_and_name("C:\\work\\b.py") == (Path("C:\\work\\b.py"), "")
    assert command.path_and_name("C:\\b.py:ViT") == (Path("C:\\b.py"), "ViT")


# The class and its arguments ---------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """What is loaded stays here, as in a process of its own."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())


@pytest.fixture
def loaded(tmp_path, alone):
    """Gives a text as a module."""

    def give(text, name="student.py"):
        return load(written(tmp_path, {name: "import torch\nfrom torch import nn\n" + text}) / name)

    return give


def test_without_a_name_it_is_vit_or_the_only_module(loaded):
    two = "class A(nn.Module): pass\nclass B(nn.Module): pass\n"
    assert find(loaded(two + "ViT = A"), "").__name__ == "A"
    assert find(loaded("class A(nn.Module): pass\nfrom torch.nn import Linear"), "").__name__ == "A"
    with pytest.raises(UnfitError, match="no ViT in it: it has A, B; say which, as file"):
        find(loaded(two), "")
    with pytest.raises(UnfitError, match=r"no C in it: it has A, B$"):
        find(loaded(two), "C")
    with pytest.raises(UnfitError, match=r"no ViT in it: it defines no nn.Module$"):
        find(loaded("x = 1"), "")


def test_a_file_that_is_called_as_a_module_takes_no_ones_place(loaded):
    module = loaded("class ViT(nn.Module): pass", "random.py")
    assert module.__name__ == "random_"
    assert sys.modules["random"] is not module


# The arguments that a class gets, as its forward's only answer.
KEEPS = """class ViT(nn.Module):
    def __init__(self, {}):
        super().__init__()
        self.got = {{k: v for k, v in locals().items() if k not in ('self', '__class__')}}
"""


@pytest.mark.parametrize(
    ("arguments", "task", "got", "images"),
    [
        ("img_size, patch_size, dim, heads, *, num_classes", Task(),
         dict(img_size=224, patch_size=16, dim=768, heads=12, num_classes=1000), ((224, 224), 3)),
        ("depth, n_layers=3", Task(settings={"depth": "2"}), dict(depth=2, n_layers=3),
         ((224, 224), 3)),
        ("num_layers=3, pool='cls'", Task(settings={"depth": "2", "pool": "mean"}),
         dict(num_layers=2, pool="mean"), ((224, 224), 3)),
        ("image_size=32, in_chans=1", Task(), dict(image_size=32, in_chans=1), ((32, 32), 1)),
        ("image_size=(32, 16), in_chans=1", Task((""), (64, 48), 2),
         dict(image_size=(64, 48), in_chans=2), ((64, 48), 2)),
        ("image_size=None", Task(size=(8, 8)), dict(image_size=8), ((8, 8), 3)),
        ("image_size=None", Task(), dict(image_size=None), ((224, 224), 3)),
        ("size='big', **more", Task(settings={"patch_size": "(4, 2)"}),
         dict(size="big", more=dict(patch_size=(4, 2))), ((224, 224), 3)),
    ],
)  # fmt: skip
def test_arguments_are_filled_by_their_names(loaded, arguments, task, got, images):
    model, *rest = make(loaded(KEEPS.format(arguments)).ViT, task)
    assert got.items() <= model.got.items()
    assert tuple(rest) == images


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        (KEEPS.format("magic, dim"), {}, "known for its argument magic: give --set magic=V"),
        (KEEPS.format("dim, heads=2"), {"depht": "2"}, "no argument depht, .* it takes dim, heads"),
        ("ViT = nn.Identity()", {"depth": "2"}, "no argument depth, which --set .* takes none"),
        ("ViT = 3", {}, "it is int, not a class, a function or a model"),
        ("def ViT(): return 3", {}, "calling it gave int, not an nn.Module"),
    ],
)
def test_what_cannot_be_made_says_why(loaded, text, given, said):
    with pytest.raises(UnfitError, match=said):
        make(loaded(text).ViT, Task(settings=given))


def test_a_function_or_a_model_will_do(loaded):
    task = Task(settings={"dim": "4"})
    made = make(loaded("def ViT(dim, depth=2): return nn.Linear(dim, depth)").ViT, task)[0]
    assert (made.in_features, made.out_features) == (4, 2)
    assert isinstance(make(loaded("ViT = nn.Identity()").ViT, Task())[0], torch.nn.Identity)


def test_a_config_is_what_its_annotation_says_or_an_object_with_all_names(loaded):
    task = Task(size=(32, 16), settings={"num_heads": "4", "own": "x"})
    module = loaded(KEEPS.format("config, classes=3"))
    config = make(module.ViT, task)[0].got["config"]
    assert set(config) == {name for group in USUAL for name in group} | {"own"}
    assert (config.image_size, config.heads, config.num_heads) == ((32, 16), 4, 4)
    assert (config.depth, config.own) == (12, "x")
    fields = "    dim: int\n    img_size: int = 64\n    own: str = 'y'\n"
    text = f"from dataclasses import dataclass\n@dataclass\nclass Sizes:\n{fields}"
    module = loaded(text + KEEPS.format("sizes: Sizes"))
    model, size, _ = make(module.ViT, Task(settings={"own": "x"}))
    assert model.got["sizes"] == module.Sizes(768, 64, "x")
    assert size == (64, 64)
    with pytest.raises(UnfitError, match=r"no argument num_heads, .* it takes dim, img_size, own"):
        make(module.ViT, Task(settings={"num_heads": "4"}))


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("import nowhere_to_be_found\n", "cannot be loaded",
         "ModuleNotFoundError: No module named 'nowhere_to_be_found' (a.py:1)"),
        ("input()\n", "cannot be loaded", "EOFError: EOF when reading a line (a.py:1)"),
        ("import sys\nsys.exit('done')\n", "ended itself", "sys.exit('done') (a.py:2)"),
        ("def ViT():\n    raise KeyError('k')\n", "cannot be made", "KeyError: 'k' (a.py:2)"),
        ("raise MemoryError\n", "out of memory", "a.py:1"),
        ("raise ValueError('x' * 10**6)\n", "cannot be loaded",
         f"ValueError: {'x' * 1988} (a.py:1)"),
    ],
)  # fmt: skip
def test_each_error_is_told_with_its_line(tmp_path, monkeypatch, alone, text, status, message):
    monkeypatch.setattr(sys, "stdin", StringIO())
    path = written(tmp_path, {"a.py": text}) / "a.py"
    answer = look(examine, path, Task(), quiet=True)
    assert answer == {"status": status, "message": message}


# A stranger's file -------------------------------------------------------------------------------

# The sound model with its sizes as arguments, at a width that 12 heads do not divide.
SIZED = SOUND.replace("def __init__(self):\n        super().__init__()\n        tokens", "{}tokens")


def stranger(init, *statements):
    """Give a model whose sizes come from what the lines of its __init__ make of its arguments."""
    start = [f"def __init__(self, {init}):", "super().__init__()", *statements, ""]
    return SIZED.replace("{}", "\n        ".join(start))


PARTS, _, CLASSES_ = SOUND.partition("class ViT(")


def model_of(module):
    """Give the file of the model whose parts stand in another module."""
    names = "Attention, Block, CLASSES, IMAGE, PATCH, WIDTH"
    imports = f"import torch\nfrom torch import Tensor, nn\nfrom {module} import {names}\n"
    return f"{imports}class ViT({CLASSES_}"


FILES = {  # the model's file, where its parts stand and what it imports; texts of __init__.py
    "relative import": ("kit/vit.py", "kit", ".blocks", {"kit": ""}),
    "without an __init__": ("kit/vit.py", "kit", ".blocks", {}),
    "broken __init__": ("kit/vit.py", "kit", ".blocks", {"kit": "import nowhere_to_be_found\n"}),
    "imported by its __init__": ("kit/vit.py", "kit", ".blocks", {"kit": "from .vit import ViT\n"}),
    "two folders up": (
        *("kit/models/vit.py", "kit/parts", "..parts.blocks"),
        dict.fromkeys(("kit", "kit/models", "kit/parts"), ""),
    ),
    "hides its package": ("kit/kit.py", "kit", "kit.blocks", {"kit": ""}),
    "hides a folder": ("kit/kit.py", "kit", "kit.blocks", {}),
    "from the root": ("nets/vit.py", "nets", "nets.blocks", {}),
    "beside it": ("nets/vit.py", "nets", "blocks", {}),
    "package called as torch's": ("torch/vit.py", "torch", ".blocks", {}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_somebodys_repository_is_loaded(tmp_path, alone, name):
    file, parts, module, packages = FILES[name]
    files = {file: model_of(module), f"{parts}/blocks.py": PARTS}
    files |= {f"{folder}/__init__.py": text for folder, text in packages.items()}
    path = written(tmp_path, files) / file
    answer = look(examine, path, Task("ViT", (32, 32)), quiet=True)
    assert (answer["status"], answer["message"]) == ("examined", "")
    assert answer["report"]["findings"] == ()


NOTEBOOK = [
    "%matplotlib inline\n!pip install nothing\nimport nowhere_to_be_found\n",
    "%%bash\nls | wc\n",
    "images = torch.load('nowhere.pt')\n",
    PARTS,
    f"%%time\nclass ViT({CLASSES_}",
    "ViT?\nmodel = ViT().to('cuda')\nfor epoch in range(10**9):\n    train(model)\n",
    "raise SystemExit\n",
]


def notebook(cells):
    """Give the text of a notebook with these cells."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return nbformat.writes(book)


def test_a_notebook_gives_what_it_defines_and_trains_nothing(tmp_path, alone):
    unscaled = [cell.replace(" / math.sqrt(q.shape[-1])", "") for cell in NOTEBOOK]
    files = {"a.ipynb": notebook(NOTEBOOK), "b.ipynb": notebook(unscaled), "c.ipynb": "{}"}
    written(tmp_path, files | {"d.ipynb": notebook(["import nowhere_to_be_found\n"])})
    task = Task("ViT", (32, 32))
    answer = look(examine, tmp_path / "a.ipynb", task, quiet=True)
    assert (answer["status"], answer["report"]["findings"]) == ("examined", ())
    (finding,) = look(examine, tmp_path / "b.ipynb", task, quiet=True)["report"]["findings"]
    assert re.fullmatch(r"blocks\.0\.attn \(b\.ipynb cell 4:\d+\)", finding["where"])
    assert "no notebook" in look(examine, tmp_path / "c.ipynb", task, quiet=True)["message"]
    message = look(examine, tmp_path / "d.ipynb", task, quiet=True)["message"]
    assert "No module named 'nowhere_to_be_found' (d.ipynb cell 1:1)" in message


GIVEN = {"image_size": "32", "patch_size": "8"}
NESTED = "sizes={'data': {'im_size': 224}, 'model': {'patch': 16, 'heads': 3}}"
IN_NESTED = "sizes['data']['im_size']", "sizes['model']['patch']"
CONFIGS = {  # the argument of a model, where it finds its size and its patches' in it; settings
    "attributes": ("cfg", "cfg.img_size", "cfg.patch", GIVEN),
    "keys": ("config", "config['im_size']", "config['patch_size']", GIVEN),
    "get": ("config", "config.get('im_size', 8)", "config.get('p', 8)", GIVEN),
    "sections": ("cfg", "cfg.data.img_size", "cfg['model']['patch']", GIVEN),
    "capitals": ("cfg", "cfg.DATA.IMG_SIZE", "cfg.MODEL.PATCH_SIZE", GIVEN),
    "dotted": (
        *("cfg", "cfg.sight.image_size", "cfg.sight.own"),
        {"sight.image_size": "32", "sight.own": "8"},
    ),
    "annotated": ("hyper: dict", "hyper['im_size']", "hyper['patch']", GIVEN),
    "own dict": (NESTED, *IN_NESTED, GIVEN),
    "path in a dict": (NESTED, *IN_NESTED, {"data.im_size": "32", "sizes.model.patch": "8"}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_set_reaches_into_configs_of_any_form(tmp_path, alone, name):
    argument, size, patch, settings = CONFIGS[name]
    read = f"IMAGE, PATCH = {size}, {patch}"
    text = stranger(argument, "global IMAGE, PATCH", read, "assert (IMAGE, PATCH) == (32, 8)")
    path = written(tmp_path, {"a.py": text}) / "a.py"
    answer = look(examine, path, Task(settings=settings), quiet=True)
    assert answer["status"] == "examined", answer
    assert answer["report"]["findings"] == ()


DATACLASSES = """from dataclasses import dataclass, field
@dataclass(frozen=True)
class Inner:
    dim: int = 64
    n_layers: int = 3
@dataclass
class Outer:
    model: Inner = field(default_factory=Inner)
    image_size: int = 32
"""


@pytest.mark.parametrize("parameter", ["c: Outer", "c=Outer()", "c: Outer = None", "*, c: Outer"])
def test_set_reaches_into_dataclasses_of_dataclasses(loaded, parameter):
    module = loaded(DATACLASSES + KEEPS.format(parameter))
    for settings in ({"model.dim": "8", "depth": "2"}, {"c.model.dim": "8", "n_layers": "2"}):
        model, size, _ = make(module.ViT, Task(settings=settings))
        assert (model.got["c"].model.dim, model.got["c"].model.n_layers) == (8, 2)
        assert size == (32, 32)
    assert module.Outer().model == module.Inner()
    with pytest.raises(UnfitError, match="no argument nothing"):
        make(module.ViT, Task(settings={"nothing": "1"}))


def test_all_that_lacks_a_value_is_told_at_once_with_what_was_guessed(loaded):
    text = KEEPS.format("n_channels, magic, emb_size, spell=3, *, wand")
    with pytest.raises(UnfitError) as error:
        make(loaded(text).ViT, Task())
    assert str(error.value) == (
        "no value is known for its arguments magic, wand: give --set magic=VALUE --set wand=VALUE; "
        "guessed: n_channels=3, emb_size=768"
    )
    asks = "        x = cfg.dim, cfg.magic, self.cfg['wand'], cfg.get('none')\n"
    text = KEEPS.format("cfg") + asks
    with pytest.raises(UnfitError, match=r"arguments magic, wand: give --set magic=VALUE --set wa"):
        make(loaded(text).ViT, Task())


NAMES_OF_STRANGERS = dict(
    n_channels=3, emb_size=768, nb_head=12, n_head=12, num_transformer_layers=12, class_num=1000,
    num_class=1000, drop_p=0.0, dropout_p=0.0, im_size=224, img_dim=224, resolution=224, in_chs=3,
    emb_dim=768, ff_dim=3072, n_patches=196, seq_len=197, patch_sz=16,
)  # fmt: skip


def test_names_of_strangers_are_known_and_fit_to_each_other(loaded):
    def given(arguments, **task):
        return make(loaded(KEEPS.format(arguments)).ViT, Task(**task))[0].got

    assert given(", ".join(NAMES_OF_STRANGERS)) == NAMES_OF_STRANGERS
    names = "im_size, patch, hidden_size, n_patches, hidden_dim, nb_head, emb_dim=None"
    got = given(names, size=(32, 32), settings={"hidden_size": "40"})
    assert (got["patch"], got["n_patches"], got["nb_head"]) == (8, 16, 12)
    got = given("image_size, dim, hidden_dim, heads, head_dim", settings={"dim": "40"})
    assert (got["hidden_dim"], got["heads"], got["head_dim"]) == (160, 8, 5)
    assert given("dim, heads=5")["dim"] == 320


GUESSED = {
    "another name": (stranger("sidelength=32, heads=4"), "image=32×32"),
    "no name": (SOUND, "image=32×32"),
    "a pair": (stranger("im_size", "global IMAGE, PATCH", "IMAGE, PATCH = im_size[0], 16"),
               "im_size=(224, 224)"),
}  # fmt: skip


@pytest.mark.parametrize("name", GUESSED)
def test_a_guess_that_fails_is_made_again_and_said(tmp_path, alone, name):
    text, said = GUESSED[name]
    path = written(tmp_path, {"a.py": text}) / "a.py"
    answer = look(examine, path, Task(), quiet=True)
    assert answer["status"] == "examined", answer
    assert answer["report"]["findings"] == ()
    assert answer["message"].startswith(f"guessed: {said}")


def test_where_no_guess_runs_the_report_says_that_the_size_was_guessed(tmp_path, alone):
    fails = SOUND.replace("return self.head(", "return self.heat(")
    path = written(tmp_path, {"a.py": fails}) / "a.py"
    answer = look(examine, path, Task(), quiet=True)
    assert answer["message"].startswith("guessed: image=224×224 (it fails on that and others: ")
    answer = look(examine, path, Task(size=(32, 32)), quiet=True)
    assert (answer["message"], len(answer["report"]["findings"])) == ("", 1)
