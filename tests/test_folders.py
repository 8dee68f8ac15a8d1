"""A folder of the learner's own pictures: whatever lies on a disk, held or read as needed."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageFile
from torch import nn

from vit_steps import ViT, ViTConfig, training
from vit_steps.images import load_image, normalize
from vit_steps.training.data import folder
from vit_steps.training.dataset import FileDataset, split
from vit_steps.training.folders import list_files, read_all


def same(a, b):
    alike = torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels)
    return alike and a.classes == b.classes


def rows(data):
    """The images as a set of byte strings, to compare without regard to order."""
    return {image.numpy().tobytes() for image in data.images}


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


def held(path, size):
    """All pictures of a folder in memory, not split."""
    return read_all(FileDataset(*list_files(path), size))


def two_halves(path, **options):
    """Left half red, right half blue."""
    image = Image.new("RGB", (64, 32), "red")
    image.paste("blue", (32, 0, 64, 32))
    image.save(path, quality=95, **options)


@pytest.fixture
def messy(tmp_path):
    """What is found on a disk: nothing here was prepared for training."""
    path = plain(tmp_path / "pets", dog=3, cat=3)
    picture(path / "cat" / "grey.jpeg", (90, 90, 90), (101, 7), "L")
    picture(path / "cat" / "press.JPG", (90, 90, 90), (8, 300), "CMYK")
    picture(path / "cat" / "palette.gif", (0, 200, 0), (5, 5))
    turned = Image.Exif()
    turned[0x0112] = 3  # upside down
    two_halves(path / "dog" / "turned.jpg", exif=turned)
    whole = (path / "dog" / "00.jpg").read_bytes()
    (path / "dog" / "broken.jpg").write_bytes(whole[: len(whole) // 2])
    (path / "dog" / "._00.jpg").write_bytes(b"left by a Mac")
    (path / "dog" / "Thumbs.db").write_bytes(b"left by Windows")
    (path / "dog" / "notes.txt").write_text("my dogs")
    (path / "dog" / "older.jpg").mkdir()
    (path / "list.csv").write_text("a file beside the classes")
    for hidden in (".ipynb_checkpoints", "__MACOSX"):
        (path / hidden).mkdir()
    return path


def test_a_folder_that_nobody_prepared_is_read_and_its_broken_picture_named(messy):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train, val, test = folder(messy, size=16, val_fraction=0)
    said = sorted(str(warning.message) for warning in caught)
    assert len(said) == 2
    assert re.search(r"broken\.jpg.*; skipped", said[0])
    assert re.search(r"older\.jpg is a folder inside a class; skipped", said[1])
    assert {warning.filename for warning in caught} == {__file__}  # the learner's own line
    assert val is None
    assert train.classes == ("cat", "dog")
    assert (train.labels.bincount() + test.labels.bincount()).tolist() == [6, 4]
    assert test.labels.bincount().tolist() == [1, 1]
    assert train.images.shape == (8, 3, 16, 16)
    assert train.pixels.dtype == torch.uint8
    assert train.images.dtype == torch.float32
    assert train.images.min() >= -1


def test_each_picture_arrives_in_its_own_colours_turned_as_it_was_taken(messy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = held(messy, 16)
    cats, dogs = whole.images[whole.labels == 0], whole.images[whole.labels == 1]
    *_, grey, palette, press = cats  # sorted by name
    for image in (grey, press):
        torch.testing.assert_close(
            image, torch.full((3, 16, 16), 90 / 127.5 - 1), atol=0.03, rtol=0
        )
    assert palette[1].min() > 0.5  # green
    assert palette[0].max() < -0.9
    turned = dogs[-1]
    assert turned[2, :, :6].min() > 0.8  # upside down, blue is on the left
    assert turned[0, :, 10:].min() > 0.8


def test_pictures_are_those_of_load_image_to_the_bit(tmp_path):
    path = plain(tmp_path / "pets", cat=3, dog=3)
    whole = held(path, (12, 20))
    for i, file in enumerate(list_files(path)[0]):
        assert torch.equal(whole.images[i], normalize(load_image(file, (12, 20))))
        assert whole.classes[whole.labels[i]] == file.parent.name


def test_a_folder_is_split_the_same_by_the_same_seed(tmp_path):
    path = plain(tmp_path, a=10, b=10)
    one, again, other = (folder(path, 8, 0.3, seed) for seed in (4, 4, 5))
    assert all(same(a, b) for a, b in zip(one, again, strict=True))
    assert not same(one.test, other.test)
    assert not same(one.val, other.val)
    assert one.test.labels.bincount().tolist() == [3, 3]
    assert one.val.labels.bincount().tolist() == [1, 1]  # a tenth of the 7 that are left


@pytest.mark.parametrize("limit", [2e9, 0])
def test_a_split_folder_loses_nothing_and_repeats_nothing(tmp_path, limit):
    path = plain(tmp_path, a=11, b=7, c=5)
    whole = held(path, 8)
    parts = folder(path, 8, 0.4, seed=3, val_fraction=0.3, limit=limit)
    batches = [part[:] for part in parts]
    found = [image.numpy().tobytes() for images, _ in batches for image in images]
    label_of = {i.numpy().tobytes(): n for i, n in zip(whole.images, whole.labels, strict=True)}
    assert len(label_of) == 23
    assert sorted(found) == sorted(label_of)
    assert [label_of[image] for image in found] == torch.cat([n for _, n in batches]).tolist()
    assert torch.equal(parts.test[:][0], split(whole, 0.4, 3)[1].images)


# Named parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_folders_named_train_val_and_test_are_the_parts(tmp_path, name):
    plain(tmp_path / "train", a=4, b=5)
    plain(tmp_path / "test", a=1, b=2)  # one is enough here: nothing is to be split
    plain(tmp_path / name, a=2, b=1)
    train, val, test = folder(tmp_path, (8, 12))
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


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train", "val"], "holds train and val, but no test"),
        (["test", "valid"], "holds test and valid, but no train"),
        (["train", "test", "val", "valid"], "holds val and valid, which mean the same"),
    ],
)
def test_parts_that_leave_a_doubt_are_refused(tmp_path, names, message):
    for name in names:
        plain(tmp_path / name, a=2, b=2)
    with pytest.raises(ValueError, match=message):
        folder(tmp_path, 8)


def test_what_stands_beside_the_parts_is_named(tmp_path):
    for name in ("train", "test", "unsorted"):
        plain(tmp_path / name, a=4, b=4)
    with pytest.warns(UserWarning, match="unsorted stands beside train and test; skipped"):
        assert len(folder(tmp_path, 8).test) == 8


def test_a_class_may_be_called_train(tmp_path):
    assert folder(plain(tmp_path, bus=4, train=4), 8).train.classes == ("bus", "train")


def test_train_and_test_must_hold_the_same_classes(tmp_path):
    plain(tmp_path / "train", a=2, b=2, d=2)
    plain(tmp_path / "test", a=2, b=2, c=2)
    with pytest.raises(ValueError, match="train and test hold other classes; only one has c, d"):
        folder(tmp_path)


def test_a_class_too_small_to_be_split_is_named(tmp_path):
    path = plain(tmp_path, many=5, lonely=1)
    with pytest.raises(ValueError, match="class 'lonely' has 1 picture; give it at least 3"):
        folder(path, 8)
    with pytest.raises(ValueError, match="class 'lonely' has 1 picture; give it at least 2"):
        folder(path, 8, val_fraction=0)
    (path / "lonely" / "second.jpg").write_bytes(b"not a picture")
    with pytest.warns(UserWarning, match=r"second\.jpg"), pytest.raises(ValueError, match="lonely"):
        folder(path, 8)


def test_a_class_without_pictures_is_named(tmp_path):
    path = plain(tmp_path, full=3, empty=0)
    with pytest.raises(ValueError, match=r"empty holds no picture that can be read"):
        folder(path, 8)
    (path / "empty" / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic")
    with (
        pytest.warns(UserWarning, match=r"phone\.heic .*(HEIC|known format).*; skipped"),
        pytest.raises(ValueError, match=r"empty holds no picture"),
    ):
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


# Read as they are needed -------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    return plain(tmp_path / "photos", cat=9, dog=9)


def test_more_pictures_than_the_limit_are_read_as_they_are_needed(photos):
    needed = 18 * 3 * 8 * 8
    held, later = folder(photos, 8, limit=needed), folder(photos, 8, limit=needed - 1)
    for a, b in zip(held, later, strict=True):
        assert isinstance(b, FileDataset)
        assert (len(a), a.shape, a.classes) == (len(b), b.shape, b.classes)
        assert torch.equal(a.labels, b.labels)
        for index in (slice(None), [1, 0], torch.tensor([0]), a.labels == 1):
            assert all(torch.equal(x, y) for x, y in zip(a[index], b[index], strict=True))
        assert torch.equal(a[1][0], b[1][0])
        assert a[1][1] == b[1][1]
        with pytest.raises(IndexError):
            b[len(b)]
        with pytest.raises(IndexError):
            b[[len(b)]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12's, of fork and threads
@pytest.mark.parametrize("workers", [0, 2])
def test_training_on_either_gives_the_same_weights(photos, workers):
    def trained(limit):
        train, val, _ = folder(photos, 8, limit=limit, workers=workers)
        torch.manual_seed(0)
        model = ViT(ViTConfig(8, 4, 3, 2, 8, 1, 2))
        options = dict(epochs=2, batch_size=4, augment=training.augment_photos, device="cpu")
        history = training.fit(model, train, val, **options, progress=False)
        return history, model.state_dict()

    held, later = trained(2e9), trained(0)
    assert held[0] == later[0]
    assert all(torch.equal(held[1][name], later[1][name]) for name in held[1])


def drawn(data):
    """All labels of an epoch, batch by batch, and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [n.tolist() for _, n in training.batches(data, 4)]
    return found, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_breaks_later_is_named_once_and_left_out_of_its_batch(photos, workers):
    train = folder(photos, 8, limit=0, workers=workers).train
    before, said = drawn(train)
    assert ([len(labels) for labels in before], said) == ([4, 4, 4], [])
    broken = train.files[3]
    broken.write_bytes(broken.read_bytes()[:-200])  # its header is sound
    for times in (1, 0):
        after, said = drawn(train)
        assert after == [before[0][:3], *before[1:]]
        assert len(said) == times
        assert all(re.search(r"\.jpg cannot be read.*; skipped", message) for message in said)
    with pytest.raises(ValueError, match="cannot be read as a picture"):
        train[3]
    _, accuracy = training.evaluate(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), train)
    assert (accuracy * 11).is_integer()


@pytest.mark.filterwarnings("ignore:.*; skipped")
def test_a_batch_that_is_left_empty_is_not_given(photos):
    train = folder(photos, 8, limit=0).train
    for file in train.files[4:8]:
        file.unlink()
    found, said = drawn(train)
    assert [len(labels) for labels in found] == [4, 4]
    assert len(said) == 4  # one for each file
    for file in photos.glob("*/*"):
        file.unlink()
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    for use in (
        lambda: training.fit(model, train, progress=False, device="cpu"),
        lambda: training.evaluate(model, train),
    ):
        with pytest.raises(ValueError, match="none of 12 pictures can be read"):
            use()


def test_listing_files_looks_at_their_first_bytes_and_decodes_none(photos, monkeypatch):
    def never(*args):
        raise AssertionError("it decoded")

    (photos / "cat" / "00.jpg").write_bytes(b"not a picture")
    picture(photos / "dog" / "bomb.png", size=(200, 200))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30_000)
    monkeypatch.setattr(ImageFile.ImageFile, "load", never)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = folder(photos, 8, limit=0)
    assert sum(map(len, parts)) == 17
    broken, bomb = sorted(str(warning.message) for warning in caught)
    assert re.search(r"00\.jpg is not a picture in a known format.*; skipped", broken)
    assert re.search(r"bomb\.png has more than 30000 pixels.*; skipped", bomb)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (dict(files=()), ValueError, "files is empty"),
        (dict(labels=torch.tensor([0])), ValueError, "2 images need"),
        (dict(labels=torch.tensor([0, 2])), ValueError, "from 0 to 2"),
        (dict(size=0), ValueError, "size is 0"),
        (dict(workers=-1), ValueError, "workers is -1"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(change, error, message):
    good = dict(files=(Path("a"), Path("b")), labels=torch.arange(2), classes=("a", "b"))
    assert len(FileDataset(**good)) == 2
    with pytest.raises(error, match=message):
        FileDataset(**(good | change))


READER = """
import sys
from pathlib import Path
from vit_steps.training.data import folder

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

folder(Path(sys.argv[1], "few"), 224)
Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
before = peak()
parts = folder(Path(sys.argv[1], "many"), 224)
print(sum(map(len, parts)), peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_a_folder_takes_the_memory_of_its_bytes_and_little_more(tmp_path):
    plain(tmp_path / "few", a=4, b=4)
    plain(tmp_path / "many", a=120, b=120)
    words = [sys.executable, "-c", READER, str(tmp_path)]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    count, grown = map(int, result.stdout.split())
    assert count == 240
    needed = 240 * 3 * 224 * 224
    assert 0.5 * needed < grown < 1.35 * needed  # 1,200 photos: 181 MB held, 250 MB allowed
