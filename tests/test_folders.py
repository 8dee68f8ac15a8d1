"""A folder of the learner's own pictures: whatever lies on a disk, in memory or in a file."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import close, peak_mib
from PIL import Image

from vit_steps.images import Preprocess, load_image, normalize
from vit_steps.training import folders
from vit_steps.training.dataset import split
from vit_steps.training.folders import folder, read_all
from vit_steps.training.listing import list_files


def rows(data):
    """The images as a set of byte strings, to compare without regard to order."""
    return set(map(bytes, data.images.numpy()))


def picture(path, colour=(200, 30, 30), size=(37, 23), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).convert(mode).save(path, **options)


def plain(path, **counts):
    """A folder with so many pictures of each class, no two alike."""
    for blue, (name, count) in enumerate(counts.items()):
        (path / name).mkdir(parents=True)
        for i in range(count):
            picture(path / name / f"{i:02}.jpg", (250, 10 * i, 50 * blue), (20 + i, 31 - i % 9))
    return path


def held(path, *size):
    """All pictures of a folder in memory, not split."""
    return read_all(*list_files(path), Preprocess(size, min(size), "bicubic"))[0]


@pytest.fixture
def messy(tmp_path):
    """What is found on a disk: nothing here was prepared for training."""
    path = plain(tmp_path / "pets", dog=3, cat=3)
    picture(path / "cat" / "grey.jpeg", (90, 90, 90), (101, 7), "L")
    picture(path / "cat" / "press.JPG", (90, 90, 90), (8, 300), "CMYK")
    deep = path / "dog" / "수영장" / "older"  # nested, as a phone's or a camera's
    picture(deep / "검둥이.png", (0, 0, 250))
    whole = (path / "dog" / "00.jpg").read_bytes()
    (path / "dog" / "broken.jpg").write_bytes(whole[: len(whole) // 2])
    for name in (".ipynb_checkpoints", "__MACOSX", "dog/older.jpg", "dog/.thumbnails"):
        (path / name).mkdir()
    for name in ("dog/._00.jpg", "dog/Thumbs.db", "dog/.thumbnails/00.jpg", "list.csv"):
        (path / name).write_bytes(b"no picture, and none that is to be one")
    return path


def test_a_folder_that_nobody_prepared_is_read_and_its_broken_picture_named(messy):
    with pytest.warns(UserWarning, match=r"broken\.jpg cannot be read as.*; skipped") as caught:
        train, val, test = folder(messy, size=16, val_fraction=0)
    assert [warning.filename for warning in caught] == [__file__]  # the learner's own line
    assert val is None
    assert train.classes == ("cat", "dog")
    assert (train.labels.bincount() + test.labels.bincount()).tolist() == [5, 4]
    assert test.labels.bincount().tolist() == [1, 1]
    assert train.images.shape == (7, 3, 16, 16)
    assert train.pixels.dtype == torch.uint8
    assert train.images.dtype == torch.float32
    assert train.images.min() >= -1


def test_pictures_are_those_of_load_image_up_to_rounding(tmp_path):
    path = plain(tmp_path / "pets", cat=3, dog=3)
    whole = held(path, 12, 20)
    for i, file in enumerate(list_files(path)[0]):
        close(whole.images[i], normalize(load_image(file, (12, 20))), 0.03)
        assert whole.classes[whole.labels[i]] == file.parent.name


def test_pictures_are_prepared_as_a_model_wants_them(tmp_path):
    path = plain(tmp_path, a=4, b=4)
    grey = Preprocess((8, 12), 20, "bilinear", (0.3,), (0.2,))
    train, _, test = folder(path, preprocess=grey, val_fraction=0)
    assert (train.shape, train.preprocess, test.preprocess) == ((1, 8, 12), grey, grey)
    expected = torch.cat([grey(file) for file in sorted(path.glob("*/*"))])
    distance = (train.images[:, None] - expected).abs().flatten(2).amax(2).min(1).values
    assert distance.max() < 1 / 255 / 0.2  # bytes are rounded


def test_a_split_folder_loses_nothing_and_repeats_nothing(tmp_path):
    path = plain(tmp_path, a=11, b=7, c=5)
    whole = held(path, 8, 8)
    parts = folder(path, 8, 0.4, seed=3, val_fraction=0.3)
    shares = [part.labels.bincount().tolist() for part in parts]
    assert shares == [[5, 3, 2], [2, 1, 1], [4, 3, 2]]  # val is a share of what is left
    pairs = [(bytes(image.numpy()), label) for part in parts for image, label in part]
    wanted = [(bytes(image.numpy()), label) for image, label in whole]
    assert sorted(pairs) == sorted(wanted)
    assert len({*wanted}) == 23
    assert torch.equal(parts.test[:][0], split(whole, 0.4, 3)[1].images)


# Named parts -------------------------------------------------------------------------------------


NAMES = """
train test val | Train Test Valid | Training Testing Validation | seg_train seg_test seg_dev
training_set test_set dev_set | TRAIN TEST eval | cats-train cats-test cats-valid
"""


@pytest.mark.parametrize("names", NAMES.replace("\n", "|").strip("|").split("|"))
def test_folders_of_parts_are_known_in_any_spelling(tmp_path, names):
    train, test, val = names.split()
    plain(tmp_path / train, a=4, b=5)
    plain(tmp_path / test, a=1, b=2)  # one is enough here: nothing is to be split
    plain(tmp_path / val, a=2, b=1)
    train, val, test = folder(tmp_path, (8, 12))
    assert train.classes == ("a", "b")
    assert train.labels.bincount().tolist() == [4, 5]
    assert val.labels.bincount().tolist() == [2, 1]
    assert test.labels.bincount().tolist() == [1, 2]
    assert test.images.shape == (3, 3, 8, 12)


def test_without_a_val_folder_it_is_a_share_of_train(tmp_path):
    plain(tmp_path / "train", a=10, b=20)
    plain(tmp_path / "test", a=1, b=2)
    train, val, test = folder(tmp_path, 8, val_fraction=0.2)
    assert train.labels.bincount().tolist() == [8, 16]
    assert val.labels.bincount().tolist() == [2, 4]
    assert test.labels.bincount().tolist() == [1, 2]
    assert not rows(train) & rows(val)
    train, val, _ = folder(tmp_path, 8, val_fraction=0)
    assert (len(train), val) == (30, None)


@pytest.mark.parametrize("names", ["test valid", "test train val valid", "new old", "a test train"])
def test_parts_that_leave_a_doubt_are_refused(tmp_path, names):
    for name in names.split():
        plain(tmp_path / name, a=2, b=2)
    message = f"holds {names.replace(' ', ' and ')}, which .* are no classes: call one train"
    with pytest.raises(ValueError, match=message):
        folder(tmp_path, 8)


def test_parts_packed_in_a_folder_of_their_name_are_found_and_what_stands_beside_is_named(tmp_path):
    for name in ("seg_train", "seg_test"):
        plain(tmp_path / name / name, a=4, b=4)
    plain(tmp_path / "unsorted", c=4)
    with pytest.warns(UserWarning, match="unsorted stands beside seg_test and seg_train; skipped"):
        assert len(folder(tmp_path, 8).test) == 8


def test_a_class_may_be_called_train(tmp_path):
    vehicles = plain(tmp_path, bus=4, train=4)
    plain(vehicles / "bus", old=1)  # folders in a class belong to it
    assert folder(vehicles, 8).train.classes == ("bus", "train")
    plain(vehicles / "bus", images=2)  # as some archives have in each class
    plain(vehicles / "train", images=2)
    assert folder(vehicles, 8).train.classes == ("bus", "train")
    stations = plain(tmp_path / "stations", train_station=4, test_track=4)
    assert folder(stations, 8).train.classes == ("test_track", "train_station")


@pytest.mark.parametrize(
    ("parts", "classes", "others"),
    [
        ("train test", "a b d", "a b c"),
        ("seg_train seg_test", "a b d", "a b c"),
        ("seg_train seg_test", "a d", "a c"),  # where folders are called so, one in common will do
        ("Cats-Train cats-dev", "a d", "A c"),  # of another case, too
    ],
)
def test_train_and_test_must_hold_the_same_classes(tmp_path, parts, classes, others):
    for part, names in zip(parts.split(), (classes, others), strict=True):
        plain(tmp_path / part, **dict.fromkeys(names.split(), 2))
    message = r"parts of different classes; not in each are (A, a, )?c, d$"
    with pytest.raises(ValueError, match=message):
        folder(tmp_path, 8)


def test_a_class_without_pictures_is_named(tmp_path):
    path = plain(tmp_path, full=3, empty=0)
    with pytest.raises(ValueError, match=r"empty holds no picture that can be read"):
        folder(path, 8)
    (path / "empty" / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic")
    skipped = pytest.warns(UserWarning, match=r"phone\.heic .*(HEIC|known format).*; skipped")
    with skipped, pytest.raises(ValueError, match="empty holds no picture"):
        folder(path, 8)


def test_a_folder_that_is_none_or_has_no_two_classes_is_refused(tmp_path):
    path = plain(tmp_path / "one", only=3)
    picture(tmp_path / "loose" / "a.jpg")
    for where, message in [
        (tmp_path / "nowhere", "nowhere is not a folder"),
        (path / "only" / "00.jpg", "is not a folder"),
        (tmp_path / "loose", "holds no sub-folders"),
        (path, "only the sub-folder 'only'"),
    ]:
        with pytest.raises(ValueError, match=message):
            folder(where, 8)
    with pytest.raises(ValueError, match="size is 0"):
        folder(plain(tmp_path / "two", a=2, b=2), 0)


# What is easily overlooked -----------------------------------------------------------------------


def noise(path, seed, size=(16, 16)):
    """A picture that is like no other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)).save(path)
    return path


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_linked_folders_are_followed_once_and_the_systems_own_passed_over(tmp_path):
    pets, away = plain(tmp_path / "pets", cat=3, dog=3), plain(tmp_path / "away", more=5)
    (pets / "cat" / "link").symlink_to(away / "more")
    (pets / "cat" / "again").symlink_to(away / "more")
    (pets / "dog" / "loop").symlink_to(pets / "dog")
    (pets / "dog" / "up").symlink_to(pets)  # the cats are no dogs
    picture(pets / "cat" / "@eaDir" / "00.jpg" / "SYNOPHOTO_THUMB_M.jpg")
    picture(pets / "#recycle" / "old.jpg")
    _, labels, classes = list_files(pets)
    assert (labels.bincount().tolist(), classes) == ([8, 3], ("cat", "dog"))


@pytest.mark.parametrize(
    "pair", [("cafe\u0301", "caf\u00e9"), ("cat ", "cat"), ("cat", "\u00a0cat")]
)
def test_two_names_that_look_alike_are_one_class_in_two_parts_and_refused_in_one(tmp_path, pair):
    for part, name in zip(("train", "test"), pair, strict=True):
        plain(tmp_path / "parts" / part, **{name: 3, "zoo": 3})
        plain(tmp_path / "one", **{name: 3})
    if len([*(tmp_path / "one").iterdir()]) < 2:
        pytest.skip("this system takes them for one name")
    parts = folder(tmp_path / "parts", 8)
    assert len(parts.train.classes) == 2 == len(parts.test.classes)
    with pytest.raises(ValueError, match=r"look alike, one of them .*(u0301|xe9| '|'cat'|xa0)"):
        folder(tmp_path / "one", 8)


def test_the_same_picture_in_two_parts_or_classes_is_named(tmp_path):
    parts, classes = tmp_path / "parts", tmp_path / "classes"
    for i, part in enumerate(("train", "test")):
        for j, name in enumerate(("cat", "dog")):
            for n in range(3):
                noise(parts / part / name / f"{n}.png", (i, j, n))
                noise(classes / name / f"{i}{n}.png", (i, j, n))
    folder(parts, 8, val_fraction=0)  # with errors for warnings: nothing is said
    folder(classes, 8, val_fraction=0)
    noise(parts / "test" / "cat" / "copy.bmp", (0, 0, 1))  # in another format
    noise(parts / "train" / "dog" / "copy.png", (0, 1, 1))  # within a class no harm is done
    with pytest.warns(UserWarning, match=r"same .*1\.png \(train, cat\) and .*copy\.bmp \(test, c"):
        folder(parts, 8, val_fraction=0)
    noise(classes / "dog" / "copy.tif", (0, 0, 1))
    with pytest.warns(UserWarning, match=r"1 of the pictures .*01\.png \(.*, cat\).*, dog\)"):
        folder(classes, 8, val_fraction=0)


def flat(path, text):
    for n in range(8):
        noise(path / f"{n}.png", (n,))
    noise(path / "more" / "8.png", (8,))
    (path / "labels.csv").write_text(text, "utf-8")
    return path / "labels.csv"


TABLES = {
    "plain": "".join(f"{n}.png,{'ab'[n % 2]}\n" for n in range(8)) + "more/8.png,a\n",
    "title": "id,label\n" + "".join(f"{n},{'ab'[n % 2]} \n\n" for n in range(8)) + "more/8,a\n",
    "of Excel": "\ufefffile;label\r\n" + "".join(f"{n}.png;{'ab'[n % 2]}\r\n" for n in range(8))
    + "more\\8.png;a\r\n",
}  # fmt: skip


@pytest.mark.parametrize("form", TABLES)
def test_labels_may_stand_in_a_table(tmp_path, form):
    table = flat(tmp_path, TABLES[form])
    files, labels, classes = list_files(tmp_path, table)
    assert classes == ("a", "b")
    assert {(file.stem, "ab"[label]) for file, label in zip(files, labels, strict=True)} == {
        (str(n), "ab"[n % 2]) for n in range(9)
    }
    train, val, test = folder(tmp_path, 8, table=table)
    assert [len(part) for part in (train, val, test)] == [5, 2, 2]


def test_a_table_that_does_not_fit_is_refused_or_named(tmp_path):
    table = flat(tmp_path, TABLES["plain"])
    for text, message in (
        (TABLES["plain"] + "1.png,a\n", "gives 1.png two labels, 'b' and 'a'"),
        (TABLES["plain"] + "1.png,b,c\n", r"has the row \['1.png', 'b', 'c'\]; give two"),
        ("x.png,a\ny.png,b\n", "names no picture in"),
        ("", "names no picture in"),
        ("1.png,a\n2.png,a\n", "one label alone"),
    ):
        table.write_text(text)
        with (
            pytest.raises(ValueError, match=message),
            warnings.catch_warnings(action="ignore"),
        ):
            folder(tmp_path, 8, table=table)
    with pytest.raises(ValueError, match="cannot be read"):
        folder(tmp_path, 8, table=tmp_path / "none.csv")
    noise(tmp_path / "1.jpg", (1,))
    table.write_text(TABLES["title"])
    with pytest.raises(ValueError, match=r"names 1, which 1\.jpg and 1\.png may be; write its end"):
        list_files(tmp_path, table)
    (tmp_path / "1.jpg").unlink()
    table.write_text(TABLES["title"].replace("\n3,", "\nthree,"))
    with pytest.warns(UserWarning, match=r"names 1 pictures .*\(three first\), and not 1 that"):
        assert len(list_files(tmp_path, table)[0]) == 8


# In a file ---------------------------------------------------------------------------------------


def test_pictures_lie_in_a_file_and_one_whose_end_is_broken_is_left_out(tmp_path, monkeypatch):
    path = plain(tmp_path / "photos", cat=9, dog=9)
    sound = held(path, 8, 8).pixels
    broken = path / "cat" / "03.jpg"
    picture(broken, size=(400, 400))
    broken.write_bytes(broken.read_bytes()[:-1000])  # its header is sound
    with pytest.warns(UserWarning, match=r"03\.jpg cannot be read.*; skipped"):
        disk = held(path, 8, 8)
    assert torch.equal(disk.pixels, torch.cat([sound[:3], sound[4:]]))
    maps = Path("/proc/self/maps")
    if maps.exists():  # on Linux one can see it: the system may take its memory back
        assert f"{disk.pixels.data_ptr():x}" in maps.read_text()
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda where: type("", (), dict(free=99)))
    with pytest.raises(ValueError, match=r"the pictures take 0\.0 GB on the disk; .* has less"):
        folder(path, 8)


def test_reading_leaves_what_is_done_with_warnings_as_it_was(tmp_path, monkeypatch):
    def pixels(how, file):  # in one of the threads
        warnings.simplefilter("ignore")
        return torch.zeros(3, 8, 8)

    monkeypatch.setattr(Preprocess, "pixels", pixels)
    before = warnings.filters[:]
    folder(plain(tmp_path, cat=3, dog=3), 8)
    assert warnings.filters == before


def test_a_file_that_is_no_picture_or_a_bomb_is_left_out_before_the_split(tmp_path, monkeypatch):
    path = plain(tmp_path, cat=3, dog=3)
    (path / "cat" / "00.jpg").write_bytes(b"not a picture")
    picture(path / "dog" / "bomb.png", size=(200, 200))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30_000)
    with (
        pytest.warns(UserWarning, match=r"00\.jpg is not a picture in a known format.*; skipped"),
        pytest.warns(UserWarning, match=r"bomb\.png has more than 30000 pixels.*; skipped"),
    ):
        _, labels, _ = list_files(path)
    assert labels.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.slow
def test_a_folder_takes_the_memory_of_its_bytes_and_little_more(tmp_path):
    plain(tmp_path / "few", a=4, b=4)
    plain(tmp_path / "many", a=300, b=300)
    folder(tmp_path / "few", 224)  # what the first call takes once is not counted
    parts = []
    grown = peak_mib(lambda: parts.extend(folder(tmp_path / "many", 224)))
    assert sum(map(len, parts)) == 600
    needed = 600 * 3 * 224 * 224 / 2**20
    assert 0.5 * needed < grown < 1.7 * needed  # where they are copied it is twice
