"""vit_steps.images: any file becomes a right RGB tensor, or a ValueError that says why not."""

import gc
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import warnings
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from vit_steps import denormalize, images, load_image, normalize, sample_photo
from vit_steps.images import LUMA, Preprocess

RED, GREEN, BLUE, WHITE, BLACK = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0)
STEP = 1 / 255  # the finest difference that 8 bits can show
FUZZ = settings(
    deadline=None,
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def refused(path) -> str:
    """The reason that load_image gives for refusing a file, after its name."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        load_image(path)
    message = str(caught.value)
    reason = message.replace(str(path), "").removeprefix(" cannot be read as a picture:").strip()
    assert reason, "the message names the file but no reason"
    return reason


def assert_colour(image, colour, atol=1e-6):
    wanted = torch.tensor(colour, dtype=torch.float32)[:, None, None].expand_as(image)
    torch.testing.assert_close(image, wanted, atol=atol, rtol=0)


def assert_right_kind(image):
    assert image.dtype == torch.float32
    assert image.ndim == 3
    assert image.shape[0] == 3
    assert image.min() >= 0
    assert image.max() <= 1


def chunk(name, data):
    """One PNG chunk, with its checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth=8, kind=0, pixels=b"", extra=b""):
    """A PNG file by hand: kind 0 grey, 2 RGB, 3 palette, 4 grey with alpha, 6 RGBA."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + extra + body


def noise(height=12, width=17):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encode(picture, form, **options):
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def as_tensor(array):
    return torch.tensor(array.copy()).permute(2, 0, 1).float() / 255


def peak_mib(run):
    """How far the process's memory rises while run() runs, in MiB. Linux tells; others do not."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")

    def read(name):
        line = next(s for s in status.read_text().splitlines() if s.startswith(name))
        return int(line.split()[1]) / 1024

    try:
        reset.write_text("5")
    except OSError:
        pytest.skip("this system does not tell a process's peak of memory")
    before = read("VmRSS")
    run()
    return read("VmHWM") - before


# Right pictures ----------------------------------------------------------------------------------


def test_the_sample_photo_is_the_known_one():
    image = load_image(sample_photo(), size=None)
    assert image.shape == (3, 600, 512)
    assert_right_kind(image)


def test_each_pixel_keeps_its_place_and_colour(tmp_path):
    pixels = noise()
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert torch.equal(load_image(tmp_path / "a.png", size=None), as_tensor(pixels))


def test_a_path_may_be_a_string(tmp_path):
    Image.fromarray(noise()).save(tmp_path / "a.png")
    one, other = tmp_path / "a.png", str(tmp_path / "a.png")
    assert torch.equal(load_image(one), load_image(other))


def test_a_wrong_or_missing_suffix_does_not_matter(tmp_path):
    pixels = noise()
    (tmp_path / "a.jpg").write_bytes(encode(Image.fromarray(pixels), "PNG"))
    (tmp_path / "b").write_bytes(encode(Image.fromarray(pixels), "PNG"))
    for name in ("a.jpg", "b"):
        assert torch.equal(load_image(tmp_path / name, size=None), as_tensor(pixels))


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("BMP", {}),
        ("GIF", {}),
        ("JPEG", {"quality": 95}),
        ("JPEG", {"quality": 95, "progressive": True}),
        ("JPEG2000", {}),
        ("PNG", {}),
        ("PPM", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"quality": 95}),
    ],
)
def test_each_common_format_gives_its_colour(tmp_path, form, options):
    (tmp_path / "a").write_bytes(encode(Image.new("RGB", (16, 16), (255, 0, 0)), form, **options))
    assert_colour(load_image(tmp_path / "a", size=None), RED, atol=0.03)


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_16_bit_grey_is_scaled_and_not_clipped(tmp_path, suffix):
    values = np.array([[0, 257, 32768, 50000, 65535]], dtype=np.uint16)
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(values).save(path)
    image = load_image(path, size=None)
    wanted = torch.tensor(values.astype(np.float32) / 65535).expand(3, -1, -1)
    torch.testing.assert_close(image, wanted, atol=STEP, rtol=0)


def test_16_bit_grey_keeps_its_transparent_value(tmp_path):
    key = chunk(b"tRNS", struct.pack(">H", 32768))
    row = b"\0" + struct.pack(">HH", 32768, 0)
    (tmp_path / "a.png").write_bytes(png(2, 1, depth=16, pixels=row, extra=key))
    image = load_image(tmp_path / "a.png", size=None)
    assert_colour(image[:, :, :1], WHITE)
    assert_colour(image[:, :, 1:], BLACK)


@pytest.mark.parametrize("most", [65535, 1023, 255])
def test_a_grey_pgm_of_8_bits_or_more(tmp_path, most):
    middle, form = (most + 1) // 2, ">BB" if most < 256 else ">HH"
    data = f"P5 2 1 {most}\n".encode() + struct.pack(form, middle, most)
    (tmp_path / "a.pgm").write_bytes(data)
    image = load_image(tmp_path / "a.pgm", size=None)
    wanted = torch.tensor([middle / most, 1.0]).expand(3, 1, 2)
    torch.testing.assert_close(image, wanted, atol=STEP, rtol=0)


def test_16_bit_rgb(tmp_path):
    row = b"\0" + struct.pack(">6H", 65535, 0, 32768, 0, 65535, 16384)
    (tmp_path / "a.png").write_bytes(png(2, 1, depth=16, kind=2, pixels=row))
    image = load_image(tmp_path / "a.png", size=None)
    assert_colour(image[:, :, :1], (1, 0, 0.5), atol=STEP)
    assert_colour(image[:, :, 1:], (0, 1, 0.25), atol=STEP)


def test_16_bit_grey_with_alpha(tmp_path):
    row = b"\0" + struct.pack(">6H", 32768, 65535, 0, 0, 0, 32768)
    (tmp_path / "a.png").write_bytes(png(3, 1, depth=16, kind=4, pixels=row))
    image = load_image(tmp_path / "a.png", size=None)
    torch.testing.assert_close(image[0, 0], torch.tensor([0.5, 1.0, 0.5]), atol=2 * STEP, rtol=0)


def test_1_bit(tmp_path):
    picture = Image.new("1", (2, 1))
    picture.putpixel((1, 0), 1)
    picture.save(tmp_path / "a.png")
    image = load_image(tmp_path / "a.png", size=None)
    assert_colour(image[:, :, :1], BLACK)
    assert_colour(image[:, :, 1:], WHITE)


def palette_picture():
    picture = Image.new("P", (2, 1))
    picture.putpalette([255, 0, 0, 0, 255, 0])
    picture.putpixel((1, 0), 1)
    return picture


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_a_palettes_colours(tmp_path, form):
    (tmp_path / "a").write_bytes(encode(palette_picture(), form))
    image = load_image(tmp_path / "a", size=None)
    assert_colour(image[:, :, :1], RED)
    assert_colour(image[:, :, 1:], GREEN)


@pytest.mark.parametrize("form", ["PNG", "GIF"])
def test_a_palettes_transparent_colour_is_white(tmp_path, form):
    (tmp_path / "a").write_bytes(encode(palette_picture(), form, transparency=0))
    image = load_image(tmp_path / "a", size=None)
    assert_colour(image[:, :, :1], WHITE)
    assert_colour(image[:, :, 1:], GREEN)


def test_a_palette_with_an_alpha_for_each_colour(tmp_path):
    data = encode(palette_picture(), "PNG", transparency=b"\x80\xff")
    (tmp_path / "a.png").write_bytes(data)
    image = load_image(tmp_path / "a.png", size=None)
    assert_colour(image[:, :, :1], (1, 0.5, 0.5), atol=STEP)
    assert_colour(image[:, :, 1:], GREEN)


def test_a_grey_with_alpha_is_laid_on_white(tmp_path):
    picture = Image.new("LA", (3, 1))
    for x, value in enumerate([(0, 0), (0, 128), (51, 255)]):
        picture.putpixel((x, 0), value)
    picture.save(tmp_path / "a.png")
    image = load_image(tmp_path / "a.png", size=None)
    wanted = torch.tensor([1.0, 127 / 255, 51 / 255]).expand(3, 1, 3)
    torch.testing.assert_close(image, wanted, atol=STEP, rtol=0)


def test_rgb_with_alpha_is_laid_on_white(tmp_path):
    Image.new("RGBA", (2, 2), (0, 0, 255, 128)).save(tmp_path / "a.png")
    assert_colour(load_image(tmp_path / "a.png", size=None), (0.5, 0.5, 1), atol=STEP)


@pytest.mark.parametrize(("mode", "key"), [("L", 77), ("RGB", (1, 2, 3))])
def test_one_colour_marked_transparent_is_white(tmp_path, mode, key):
    Image.new(mode, (2, 2), key).save(tmp_path / "a.png", transparency=key)
    assert_colour(load_image(tmp_path / "a.png", size=None), WHITE)


@pytest.mark.parametrize(
    ("inks", "colour"),
    [
        ((0, 255, 255, 0), RED),
        ((255, 0, 255, 0), GREEN),
        ((0, 0, 0, 255), BLACK),
        ((0,) * 4, WHITE),
    ],
)
def test_a_cmyk_jpeg_is_not_inverted(tmp_path, inks, colour):
    Image.new("CMYK", (16, 16), inks).save(tmp_path / "a.jpg", quality=95)
    assert_colour(load_image(tmp_path / "a.jpg", size=None), colour, atol=0.03)


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_of_an_animation_the_first_frame(tmp_path, form):
    frames = [Image.new("RGB", (8, 8), c) for c in ("red", "lime", "blue")]
    options = {"lossless": True} if form == "WEBP" else {}
    data = encode(frames[0], form, save_all=True, append_images=frames[1:], **options)
    (tmp_path / "a").write_bytes(data)
    with Image.open(tmp_path / "a") as file:
        assert file.n_frames == 3  # the test's own file is what it should be
    assert_colour(load_image(tmp_path / "a", size=None), RED)


UPRIGHT = {  # what turns the stored rows and columns into what is to be seen
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize(("form", "atol"), [("PNG", 0), ("TIFF", 0), ("JPEG", 0.03)])
def test_each_exif_orientation_is_turned_upright(tmp_path, orientation, form, atol):
    stored = np.zeros((32, 48, 3), np.uint8)
    stored[:16, :16], stored[:16, 16:], stored[16:, :16] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
    path = tmp_path / "a"
    path.write_bytes(encode(Image.fromarray(stored), form, exif=exif, **options))
    wanted = as_tensor(UPRIGHT[orientation](stored))
    torch.testing.assert_close(load_image(path, size=None), wanted, atol=atol, rtol=0)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_unknown_orientation_leaves_the_picture_as_it_is(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = noise()
    (tmp_path / "a.png").write_bytes(encode(Image.fromarray(pixels), "PNG", exif=exif))
    assert torch.equal(load_image(tmp_path / "a.png", size=None), as_tensor(pixels))


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0not exif at all",
        b"Exif\0\0II*\0\xff\xff\xff\xff",
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12",
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\x05\0\0\0\x90\0\0\0",
    ],
)
def test_corrupt_exif_does_not_hide_the_picture(tmp_path, exif):
    picture = Image.new("RGB", (16, 16), (255, 0, 0))
    (tmp_path / "a.jpg").write_bytes(encode(picture, "JPEG", quality=95, exif=exif))
    assert_colour(load_image(tmp_path / "a.jpg", size=None), RED, atol=0.03)


# Crop and size -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(10, 20), (20, 10), (7, 31), (1, 1), (1, 40)])
def test_size_is_height_then_width(tmp_path, size):
    Image.new("RGB", (40, 30), "red").save(tmp_path / "a.png")
    image = load_image(tmp_path / "a.png", size=size)
    assert image.shape == (3, *size)
    assert_colour(image, RED)


@pytest.mark.parametrize("wide", [True, False])
def test_the_crop_takes_the_centre(tmp_path, wide):
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :, 0] = 255  # red
    pixels[:, 10:30] = (0, 255, 0)  # but green in the middle square
    if not wide:
        pixels = pixels.swapaxes(0, 1).copy()
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert_colour(load_image(tmp_path / "a.png", size=20), GREEN)


@pytest.mark.parametrize("shape", [(200, 300), (300, 200), (250, 250)])
@pytest.mark.parametrize("size", [100, (100, 60), (60, 100)])
def test_a_square_in_the_picture_stays_a_square(tmp_path, shape, size):
    height, width = shape
    pixels = np.full((height, width, 3), 255, np.uint8)
    top, left = height // 2 - 30, width // 2 - 30
    pixels[top : top + 60, left : left + 60] = 0
    Image.fromarray(pixels).save(tmp_path / "a.png")
    dark = load_image(tmp_path / "a.png", size=size)[0] < 0.5
    rows, cols = dark.any(1).sum().item(), dark.any(0).sum().item()
    assert abs(rows - cols) <= 1
    assert rows > 10


def test_crop_then_bicubic_resize_as_pillow_does_it(tmp_path):
    picture = Image.fromarray(noise(30, 50))
    picture.save(tmp_path / "a.png")
    bicubic = Image.Resampling.BICUBIC
    for size, box in {(12, 12): (10, 0, 40, 30), (10, 30): (0, 6.667, 50, 23.333)}.items():
        by_hand = picture.resize(size[::-1], bicubic, box=box)
        image = load_image(tmp_path / "a.png", size=size)
        wanted = as_tensor(np.asarray(by_hand))
        torch.testing.assert_close(image, wanted, atol=2 * STEP, rtol=0)


def test_the_exif_turn_comes_before_the_crop(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 50)).save(tmp_path / "a.png", exif=exif)
    assert load_image(tmp_path / "a.png", size=None).shape == (3, 30, 50)
    assert load_image(tmp_path / "a.png", size=(10, 20)).shape == (3, 10, 20)


# Large JPEGs -------------------------------------------------------------------------------------


def large_jpeg(folder, orientation=1):
    """12 megapixels, as a phone makes them: smooth in the large, rough in the small."""
    rng, shape = np.random.default_rng(0), (3000, 4000)
    smooth, rough = (
        np.asarray(Image.fromarray(rng.integers(0, 256, small, dtype=np.uint8)).resize(shape[::-1]))
        for small in ((6, 8, 3), (1500, 2000, 3))
    )
    exif = Image.Exif()
    exif[0x112] = orientation
    pixels = (smooth * 0.8 + rough * 0.2).astype(np.uint8)
    Image.fromarray(pixels).save(folder / "large.jpg", quality=90, exif=exif)
    return folder / "large.jpg"


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_large_jpeg_is_decoded_at_a_fraction_and_looks_the_same(
    tmp_path, monkeypatch, orientation
):
    path, decoded = large_jpeg(tmp_path, orientation), []
    plain = images.to_rgb

    def spy(picture, of_16_bits):
        decoded.append(picture.size)
        return plain(picture, of_16_bits)

    monkeypatch.setattr(images, "to_rgb", spy)
    small, whole = load_image(path, size=(224, 160)), images.decode(path)
    wanted = images.ImageOps.fit(whole, (160, 224), Image.Resampling.BICUBIC)
    assert decoded == (
        [(500, 375), (4000, 3000)] if orientation == 1 else [(375, 500), (3000, 4000)]
    )
    assert (small - as_tensor(np.array(wanted))).abs().mean() < 0.005
    assert load_image(path, size=2000).shape == (3, 2000, 2000)
    assert max(decoded[2]) == 4000  # nothing is enlarged that was there to be decoded


def test_a_photo_of_usual_size_is_decoded_as_it_is():
    whole = images.decode(sample_photo())
    wanted = images.ImageOps.fit(whole, (112, 112), Image.Resampling.BICUBIC)
    assert torch.equal(load_image(sample_photo(), 112), as_tensor(np.array(wanted)))


def test_a_large_jpeg_that_is_cut_off_is_refused(tmp_path):
    path = large_jpeg(tmp_path)
    path.write_bytes(path.read_bytes()[:200_000])
    assert "truncated" in refused(path)


# HEIC --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("brand", [b"heic", b"heix", b"mif1"])
def test_without_its_package_heic_is_refused_by_its_name(tmp_path, monkeypatch, brand):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    start = b"\0\0\0\x18ftyp" + brand + b"\0\0\0\0mif1heic"
    (tmp_path / "photo.jpg").write_bytes(start + bytes(200))
    reason = refused(tmp_path / "photo.jpg")
    assert "HEIC" in reason
    assert "pip install pillow-heif" in reason
    assert "JPEG" in reason


def test_heic_is_read_where_its_package_is_installed(tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif", reason="pillow-heif is not installed")
    picture = Image.new("RGB", (64, 48), (200, 40, 90))
    pillow_heif.from_pillow(picture).save(tmp_path / "a.heic", quality=100)
    image = load_image(tmp_path / "a.heic", size=None)
    assert image.shape == (3, 48, 64)
    assert_colour(image, (200 / 255, 40 / 255, 90 / 255), atol=0.03)


# Odd ones ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 20000), (20000, 1)])
def test_extreme_shapes(tmp_path, shape):
    height, width = shape
    Image.new("RGB", (width, height), "blue").save(tmp_path / "a.png")
    assert_colour(load_image(tmp_path / "a.png"), BLUE)
    assert load_image(tmp_path / "a.png").shape == (3, 224, 224)
    assert load_image(tmp_path / "a.png", size=None).shape == (3, height, width)


@pytest.mark.parametrize("size", [0, -224, (0, 224), (224, -1)])
def test_a_size_below_one_is_refused(size):
    with pytest.raises(ValueError, match=r"size.*at least 1"):
        load_image(sample_photo(), size=size)


@pytest.mark.parametrize(
    "size", ["224", 224.0, (224,), (224, 224, 3), [224, "224"], True, (224.0, 1)]
)
def test_a_size_of_another_kind_is_refused(size):
    with pytest.raises(TypeError, match=r"size"):
        load_image(sample_photo(), size=size)


# Files that are no picture -----------------------------------------------------------------------


def test_a_missing_file(tmp_path):
    assert "not there" in refused(tmp_path / "missing.png")


def test_a_file_below_a_file(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    assert "not there" in refused(tmp_path / "a.png" / "b.png")


def test_a_name_too_long_for_the_system_is_refused_like_a_missing_file(tmp_path):
    refused(tmp_path / ("a" * 300 + ".png"))


def test_a_name_with_a_null_byte_is_refused_like_a_missing_file(tmp_path):
    assert "not there" in refused(tmp_path / "a\0.png")


def test_a_folder(tmp_path):
    assert "folder" in refused(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe")


@pytest.mark.parametrize(
    "data",
    [b"", b"a line of text\n", b"\0" * 1000, b"<svg xmlns='http://www.w3.org/2000/svg'/>"],
    ids=["empty", "text", "zeros", "svg"],
)
def test_a_file_of_something_else(tmp_path, data):
    (tmp_path / "a.png").write_bytes(data)
    reason = refused(tmp_path / "a.png")
    assert "not a picture" in reason
    assert "PNG" in reason  # it lists what it can read


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {}),
        ("TIFF", {}),
        ("BMP", {}),
    ],
)
@pytest.mark.parametrize("part", [0.02, 0.5, 0.9])
def test_a_truncated_file(tmp_path, form, options, part):
    data = encode(Image.fromarray(noise(60, 60)), form, **options)
    path = tmp_path / "a"
    path.write_bytes(data)
    load_image(path)
    path.write_bytes(data[: int(len(data) * part)])
    refused(path)


def test_floats_and_32_bit_integers_are_refused_for_they_have_no_known_white(tmp_path):
    for picture in (Image.new("F", (4, 4), 0.5), Image.new("I", (4, 4), 70000)):
        picture.save(tmp_path / "a.tif")
        assert "32 bits" in refused(tmp_path / "a.tif")


def test_eps_is_refused_without_starting_a_program(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(a))
    monkeypatch.setattr(os, "system", started.append)
    data = encode(Image.new("RGB", (4, 4), "red"), "EPS")
    assert data.startswith(b"%!PS")
    (tmp_path / "a.png").write_bytes(data)
    assert "not a picture in a known format" in refused(tmp_path / "a.png")
    assert not started


# Bombs and memory --------------------------------------------------------------------------------


def gif(side, frame_side):
    """One black frame on a screen, each of its own size."""
    screen = b"GIF89a" + struct.pack("<HH", side, side) + b"\x80\0\0" + bytes(6)
    frame = b"," + struct.pack("<HHHH", 0, 0, frame_side, frame_side) + b"\0\x02\x02D\x01\0"
    return screen + frame + b"\x3b"


def bmp(side):
    info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


def webp(side):
    """An animation of one 4×4 frame on a canvas of side × side."""
    still = encode(Image.new("RGB", (4, 4)), "WEBP", lossless=True)[12:]
    three = [(n).to_bytes(3, "little") for n in (side - 1, side - 1, 0, 0, 3, 3, 100)]
    frame = b"".join(three[2:]) + b"\0" + still
    canvas = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + three[0] + three[1]
    anim = b"ANIM" + struct.pack("<IIH", 6, 0, 0)
    body = b"WEBP" + canvas + anim + b"ANMF" + struct.pack("<I", len(frame)) + frame
    return b"RIFF" + struct.pack("<I", len(body)) + body


BOMBS = {
    "png": png(60000, 60000, depth=1, pixels=bytes(8000)),
    "png a little too large": png(10000, 10000, depth=1, pixels=bytes(8000)),
    "gif": gif(60000, 1),
    "gif with a large frame": gif(1, 60000),
    "bmp": bmp(60000),
    "webp": webp(16000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_refused_before_it_takes_memory(tmp_path, name):
    assert len(BOMBS[name]) < 10_000
    (tmp_path / "a").write_bytes(BOMBS[name])
    reasons = []
    assert peak_mib(lambda: reasons.append(refused(tmp_path / "a"))) < 100
    assert "pixels" in reasons[0]


def test_a_compressed_text_that_swells_is_refused_before_it_takes_memory(tmp_path):
    text = chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(100_000_000), 1))
    assert len(text) < 500_000
    (tmp_path / "a.png").write_bytes(png(1, 1, pixels=b"\0\0", extra=text))
    assert peak_mib(lambda: refused(tmp_path / "a.png")) < 50


def test_a_long_thin_picture_takes_little_memory(tmp_path):
    Image.new("RGB", (20000, 1)).save(tmp_path / "wide.png")
    Image.new("RGB", (1, 20000)).save(tmp_path / "high.png")
    for name in ("wide.png", "high.png"):
        assert peak_mib(lambda name=name: load_image(tmp_path / name)) < 100


def test_the_largest_transparent_picture_let_through_takes_less_than_a_gigabyte(tmp_path):
    colours = chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", b"\0\x80")

    def write(side, rows):
        (tmp_path / "a.png").write_bytes(png(side, side, 1, 3, rows, extra=colours))
        return tmp_path / "a.png"

    # the largest size that is not refused for its size (a file without pixels tells at once)
    sides = range(int(Image.MAX_IMAGE_PIXELS**0.5), 1000, -500)
    largest = next(side for side in sides if "pixels" not in refused(write(side, b"")))

    # a sixteenth of its pixels must take less than a sixteenth of a gigabyte
    side, images = largest // 4, []
    path = write(side, bytes((1 + (side + 7) // 8) * side))
    peak = peak_mib(lambda: images.append(load_image(path, size=8)))
    assert_colour(images[0], WHITE)
    assert 16 * peak < 1000


# Nothing else escapes ----------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["right", "truncated", "bomb", "text"])
def test_no_warning_and_no_file_left_open(tmp_path, case):
    right = encode(Image.fromarray(noise(60, 60)), "JPEG")
    data = {"right": right, "truncated": right[:900], "bomb": BOMBS["gif"], "text": b"text"}[case]
    (tmp_path / "a").write_bytes(data)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if case == "right":
            load_image(tmp_path / "a")
        else:
            refused(tmp_path / "a")
        gc.collect()
    assert [str(w.message) for w in seen] == []


def files_to_break():
    picture = Image.fromarray(noise())
    exif = Image.Exif()
    exif[0x0112] = 6
    grey16 = Image.fromarray(noise()[:, :, 0].astype(np.uint16) * 257)
    return {
        "jpeg": encode(picture, "JPEG", exif=exif),
        "progressive": encode(picture, "JPEG", progressive=True),
        "cmyk": encode(picture.convert("CMYK"), "JPEG"),
        "png": encode(picture, "PNG", exif=exif),
        "png palette": encode(picture.quantize(9), "PNG", transparency=3),
        "png 16": encode(grey16, "PNG"),
        "gif": encode(picture.quantize(9), "GIF"),
        "webp": encode(picture, "WEBP", exif=exif),
        "webp lossless": encode(picture, "WEBP", lossless=True),
        "tiff": encode(picture, "TIFF", exif=exif),
        "bmp": encode(picture, "BMP"),
        "ppm": encode(picture, "PPM"),
        "jpeg 2000": encode(picture, "JPEG2000"),
    }


def loads_or_is_refused(path):
    try:
        image = load_image(path, size=None)
    except ValueError:
        refused(path)
    else:
        assert_right_kind(image)


@pytest.mark.parametrize("name", files_to_break())
def test_a_file_with_flipped_bits_loads_or_is_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10**6)  # flipped sizes must not cost seconds
    right, rng = files_to_break()[name], random.Random(name)
    path, outcomes = tmp_path / "a", set()
    for _ in range(120):
        data = bytearray(right)
        for _ in range(rng.choice([1, 1, 2, 5])):
            # half of the flips in the first bytes, where the sizes and offsets stand
            data[rng.randrange(rng.choice([min(64, len(data)), len(data)]))] ^= 1 << rng.randrange(
                8
            )
        path.write_bytes(data)
        loads_or_is_refused(path)
        try:
            load_image(path, size=8)
            outcomes.add("loads")
        except ValueError:
            outcomes.add("refused")
    assert outcomes == {"loads", "refused"}  # the flips reach both ends


HEADERS = [
    b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0",
    b"\x89PNG\r\n\x1a\n",
    png(16, 16)[:33],
    b"GIF89a",
    b"II*\0\x08\0\0\0",
    b"RIFF\x24\0\0\0WEBPVP8 ",
    b"BM",
    b"P6 4 4 255\n",
]


@FUZZ
@given(header=st.sampled_from(HEADERS), rest=st.binary(max_size=200))
def test_random_bytes_behind_a_right_header_load_or_are_refused(tmp_path, header, rest):
    (tmp_path / "a").write_bytes(header + rest)
    loads_or_is_refused(tmp_path / "a")


@FUZZ
@given(
    pixels=hnp.arrays(
        np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)), fill=st.nothing()
    )
)
def test_any_rgb_pixels_survive_a_lossless_file(tmp_path, pixels):
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert torch.equal(load_image(tmp_path / "a.png", size=None), as_tensor(pixels))


# normalize and denormalize -----------------------------------------------------------------------


def test_normalize_maps_0_to_1_onto_minus_1_to_1():
    image = torch.tensor([0.0, 0.5, 1.0]).expand(3, 1, 3)
    assert torch.equal(normalize(image), torch.tensor([-1.0, 0.0, 1.0]).expand(3, 1, 3))


@pytest.mark.parametrize("lead", [(), (2,)])
def test_each_channel_gets_its_own_mean_and_std(lead):
    images = torch.rand(*lead, 3, 4, 5)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    result = normalize(images, mean, std)
    for c in range(3):
        wanted = (images[..., c, :, :] - mean[c]) / std[c]
        torch.testing.assert_close(result[..., c, :, :], wanted)
    assert result.shape == images.shape


def test_per_channel_values_follow_the_channels_also_where_all_sides_are_alike():
    images = torch.zeros(3, 3, 3, 3)
    result = normalize(images, mean=(1.0, 2.0, 3.0), std=1.0)
    assert result[0, :, 0, 0].tolist() == [-1, -2, -3]
    assert result[:, 1].unique().tolist() == [-2]


@settings(deadline=None, max_examples=50, derandomize=True, database=None)
@given(
    images=hnp.arrays(
        np.float32,
        st.sampled_from([(3, 2, 4), (2, 3, 4, 2), (1, 3, 3, 3)]),
        elements=st.floats(0, 1, width=32),
    ),
    mean=st.lists(st.floats(0, 1), min_size=3, max_size=3) | st.floats(0, 1),
    std=st.lists(st.floats(0.1, 1), min_size=3, max_size=3) | st.floats(0.1, 1),
)
def test_denormalize_undoes_normalize(images, mean, std):
    images = torch.tensor(images)
    back = denormalize(normalize(images, mean, std), mean, std)
    torch.testing.assert_close(back, images, atol=1e-5, rtol=1e-5)


def test_normalize_leaves_its_input_alone_and_keeps_its_type():
    images = torch.rand(3, 4, 4, dtype=torch.float64)
    before = images.clone()
    assert normalize(images).dtype == torch.float64
    assert denormalize(images).dtype == torch.float64
    assert torch.equal(images, before)


@pytest.mark.parametrize("convert", [normalize, denormalize])
@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (torch.zeros(3, 4, 4).byte(), {}, TypeError, r"uint8.*images\.float\(\) / 255"),
        (np.zeros((3, 4, 4)), {}, TypeError, "not a tensor"),
        (torch.zeros(4, 4), {}, ValueError, "axes"),
        (torch.zeros(1, 1, 3, 4, 4), {}, ValueError, "axes"),
        (torch.zeros(3, 4, 4), dict(mean=(0.5,)), ValueError, "one for each of 3 channels"),
        (torch.zeros(3, 4, 4), dict(std=(0.5,) * 4), ValueError, "one for each of 3 channels"),
        (torch.zeros(3, 4, 4), dict(std=[[0.5] * 3]), ValueError, "one for each of 3 channels"),
        (torch.zeros(5, 4, 3), dict(mean=(0.5,) * 3), ValueError, "one for each of 5 channels"),
    ],
)
def test_what_cannot_be_normalised_is_refused(convert, images, options, error, message):
    with pytest.raises(error, match=message):
        convert(images, **options)


# Preprocess --------------------------------------------------------------------------------------


def test_preprocessing_is_what_pillow_does():
    picture = Image.open(sample_photo()).convert("RGB")  # 512 wide, 600 high
    for mode, resample in (("bilinear", 2), ("bicubic", 3)):
        whole = picture.resize((224, 224), resample)
        assert_near(Preprocess(interpolation=mode)(sample_photo()), whole, mode)
        cut = picture.resize((256, 300), resample).crop((16, 38, 240, 262))
        assert_near(Preprocess((224, 224), 256, mode)(sample_photo()), cut, mode)


def assert_near(batch, picture, mode):
    assert batch.shape == (1, 3, 224, 224)
    apart = (denormalize(batch)[0] - as_tensor(np.array(picture))).abs() * 255
    assert apart.mean() <= 0.3  # Pillow rounds to bytes
    assert apart.max() <= (1.1 if mode == "bilinear" else 8)  # and clips between its two passes


def test_each_channel_gets_its_own_mean_and_std_and_bicubic_stays_within_0_and_1():
    picture = torch.zeros(3, 30, 40)
    picture[:, :, 20:] = 1
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    batch = Preprocess((16, 24), 24, "bicubic", mean, std)(picture)
    assert batch.shape == (1, 3, 16, 24)
    for c in range(3):
        assert batch[0, c].min().item() == pytest.approx(-mean[c] / std[c])
        assert batch[0, c].max().item() == pytest.approx((1 - mean[c]) / std[c])


@pytest.mark.parametrize(
    ("size", "shorter_side", "resized"),
    [
        ((16, 16), 20, (20, 26)),  # 26.67: publishers cut off what is behind the point
        ((16, 16), 10, (16, 21)),  # the shorter side would not cover it
        ((12, 32), 16, (24, 32)),
        ((32, 12), None, (32, 12)),
    ],
)
def test_the_shorter_side_is_resized_to_cover_the_size(monkeypatch, size, shorter_side, resized):
    plain, sizes = images.F.interpolate, []

    def spy(picture, size, **options):
        sizes.append(size)
        return plain(picture, size, **options)

    monkeypatch.setattr(images.F, "interpolate", spy)
    assert Preprocess(size, shorter_side).pixels(torch.rand(3, 30, 40)).shape == (3, *size)
    assert sizes == [resized]


GREY = Preprocess((2, 2), mean=(0.5,), std=(0.25,))


def test_a_model_of_one_channel_gets_grey_and_perhaps_as_ink(tmp_path):
    picture = Image.new("RGB", (4, 4), "blue")
    picture.save(tmp_path / "a.png")
    blue = torch.zeros(3, 4, 4)
    blue[2] = 1
    for source in (tmp_path / "a.png", picture, blue, torch.full((1, 4, 4), LUMA[2])):
        pixels = GREY.pixels(source)
        torch.testing.assert_close(pixels, torch.full((1, 2, 2), LUMA[2]))
        torch.testing.assert_close(GREY(source), (pixels[None] - 0.5) / 0.25)
        as_ink = Preprocess(**asdict(GREY) | dict(ink=True))
        torch.testing.assert_close(as_ink.pixels(source), 1 - pixels)
    white = Image.new("L", (4, 4), 255)
    torch.testing.assert_close(GREY.pixels(white), torch.ones(1, 2, 2))


def test_a_picture_of_pillows_is_taken_as_its_file_is(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noise()).convert("RGBA").save(tmp_path / "a.png", exif=exif)
    opened = Image.open(tmp_path / "a.png")
    how = Preprocess((8, 6), 7)
    assert torch.equal(how(opened), how(tmp_path / "a.png"))
    assert torch.equal(how(opened), how(load_image(tmp_path / "a.png", size=None)))


@pytest.mark.parametrize(
    ("picture", "error", "message"),
    [
        (torch.rand(3, 4, 4) * 255, ValueError, r"pixels run from .* to 2.*bytes / 255"),
        (normalize(torch.rand(3, 4, 4)), ValueError, r"pixels run from -.* not normalised"),
        (torch.full((3, 4, 4), float("nan")), ValueError, "pixels run from nan"),
        (torch.zeros(3, 4, 4).byte(), TypeError, r"uint8.*images\.float\(\) / 255"),
        (torch.rand(2, 3, 4, 4), ValueError, r"picture is \(2, 3, 4, 4\).*\(C, H, W\)"),
        (torch.rand(1, 4, 4), ValueError, "1 channels where the model takes 3"),
        (np.zeros((3, 4, 4)), TypeError, "picture is a ndarray"),
    ],
)
def test_pixels_that_are_not_from_0_to_1_are_refused(picture, error, message):
    with pytest.raises(error, match=message):
        Preprocess((2, 2))(picture)
    if "uint8" in message:
        with pytest.raises(error, match=message):
            GREY(picture)


@pytest.mark.parametrize(
    "how", [Preprocess(), Preprocess((8, 6), 9, "bicubic", (0.1,), (0.2,), ink=True)]
)
def test_json_gives_the_same_preprocessing_back(how):
    assert Preprocess(**json.loads(json.dumps(asdict(how)))) == how


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(interpolation="nearest"), "interpolation is 'nearest'"),
        (dict(shorter_side=0), "shorter_side is 0"),
        (dict(std=(0.5, 0.0, 0.5)), "each std above 0"),
        (dict(mean=("a", 0, 0)), "mean is"),
        (dict(mean=(float("nan"), 0, 0)), "mean is"),
        (dict(mean=(0.5,)), "a number for each channel"),
        (dict(mean=(), std=()), "a number for each channel"),
        (dict(size=(0, 224)), "size"),
        (dict(ink=1), "ink is 1"),
    ],
    ids=str,
)
def test_preprocessing_checks_itself(wrong, message):
    with pytest.raises(ValueError, match=message):
        Preprocess(**wrong)
