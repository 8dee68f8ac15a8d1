"""vit_steps.images: any file becomes a right RGB tensor, or a ValueError that says why not."""

import os
import random
import re
import struct
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import close, peak_mib, saved
from PIL import Image

from vit_steps import denormalize, images, load_image, normalize, sample_photo
from vit_steps.images import LUMA, Preprocess

RED, GREEN, BLUE, WHITE = (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)
STEP = 1 / 255  # the finest difference that 8 bits can show
TURNED = Image.Exif()
TURNED[0x0112] = 6  # lies on its side


def refused(path) -> str:
    """The reason that load_image gives for refusing a file, after its name."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        load_image(path)
    message = str(caught.value)
    reason = message.replace(str(path), "").removeprefix(" cannot be read as a picture:").strip()
    assert reason, "the message names the file but no reason"
    return reason


def assert_colour(image, colour, atol=1e-6):
    close(image, torch.tensor(colour).float()[:, None, None].expand_as(image), atol)


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


def as_tensor(array):
    return torch.tensor(array.copy()).permute(2, 0, 1).float() / 255


# Right pictures ----------------------------------------------------------------------------------


SQUARE, CMYK = Image.new("RGB", (16, 16), "red"), Image.new("CMYK", (16, 16), (0, 255, 255, 0))
REDS = {form: saved(SQUARE, form) for form in images.FORMATS}
REDS["CMYK, not inverted"] = saved(CMYK, "JPEG", quality=95)
REDS["corrupt EXIF"] = saved(SQUARE, "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12")


@pytest.mark.parametrize("name", REDS)
def test_each_format_gives_its_colour(tmp_path, name):
    (tmp_path / "a").write_bytes(REDS[name])
    assert_colour(load_image(tmp_path / "a", size=None), RED, atol=0.03)


def row(mode, *pixels):
    picture = Image.new(mode, (len(pixels), 1))
    for x, pixel in enumerate(pixels):
        picture.putpixel((x, 0), pixel)
    return picture


def palette():
    picture = row("P", 0, 1)
    picture.putpalette([255, 0, 0, 0, 255, 0])
    return picture


def animation():
    red, lime = (Image.new("RGB", (1, 1), colour) for colour in ("red", "lime"))
    return saved(red, "GIF", save_all=True, append_images=[lime])


def words(*values):
    """A row of a 16-bit PNG."""
    return b"\0" + struct.pack(f">{len(values)}H", *values)


WIDE, SCALED = np.array([[0, 257, 32768, 50000, 65535]], np.uint16), (0, 1 / 255, 0.5, 0.763, 1)
KEY = chunk(b"tRNS", struct.pack(">H", 32768))
ROWS = {  # files of one row, and its colours, a number for a grey one
    "16-bit grey": (saved(Image.fromarray(WIDE), "PNG"), SCALED),
    "16-bit TIFF": (saved(Image.fromarray(WIDE), "TIFF"), SCALED),
    "16-bit grey with a key": (png(2, 1, 16, pixels=words(32768, 0), extra=KEY), (1, 0)),
    "16-bit RGB": (png(2, 1, 16, 2, words(65535, 0, 32768, 0, 65535, 0)), ((1, 0, 0.5), GREEN)),
    "16-bit grey, alpha": (png(3, 1, 16, 4, words(32768, 65535, 0, 0, 0, 32768)), (0.5, 1, 0.5)),
    "PGM of 10 bits": (b"P5 2 1 1023\n" + struct.pack(">HH", 512, 1023), (0.5, 1)),
    "PGM of 16 bits": (b"P5 2 1 65535\n" + struct.pack(">HH", 32768, 65535), (0.5, 1)),
    "palette with a key": (saved(palette(), "PNG", transparency=0), (WHITE, GREEN)),
    "palette, alphas": (saved(palette(), "PNG", transparency=b"\x80\xff"), ((1, 0.5, 0.5), GREEN)),
    "grey with alpha": (saved(row("LA", (0, 0), (0, 128), (51, 255)), "PNG"), (1, 0.5, 0.2)),
    "RGBA": (saved(row("RGBA", (0, 0, 255, 128)), "PNG"), ((0.5, 0.5, 1),)),
    "grey with a key": (saved(row("L", 77, 0), "PNG", transparency=77), (1, 0)),
    "animated GIF": (animation(), (RED,)),  # the first frame
}


@pytest.mark.parametrize("name", ROWS)
def test_each_depth_palette_and_transparency_gives_its_colours(tmp_path, name):
    data, colours = ROWS[name]
    (tmp_path / "a").write_bytes(data)
    wanted = torch.tensor([c if isinstance(c, tuple) else (c, c, c) for c in colours]).float()
    image = load_image(tmp_path / "a", size=None)
    close(image, wanted.T[:, None], STEP)


def test_what_exif_data_turn_is_upright(tmp_path):
    Image.fromarray(noise()).save(tmp_path / "a.png", exif=TURNED)
    assert torch.equal(load_image(tmp_path / "a.png", size=None), as_tensor(np.rot90(noise(), -1)))


# Sizes -------------------------------------------------------------------------------------------


def test_crop_then_bicubic_resize_as_pillow_does_it(tmp_path):
    picture = Image.fromarray(noise(30, 50))
    picture.save(tmp_path / "a.png")
    bicubic = Image.Resampling.BICUBIC
    for size, box in {(12, 12): (10, 0, 40, 30), (10, 30): (0, 6.667, 50, 23.333)}.items():
        by_hand = picture.resize(size[::-1], bicubic, box=box)
        image = load_image(tmp_path / "a.png", size=size)
        close(image, as_tensor(np.asarray(by_hand)), 2 * STEP)


@pytest.mark.parametrize("shape", [(1, 1), (1, 20000)])
def test_extreme_shapes_are_cropped_before_they_are_resized(tmp_path, shape):
    path, made = tmp_path / "a.png", []
    Image.new("RGB", shape, "blue").save(path)
    assert peak_mib(lambda: made.append(load_image(path))) < 100
    assert_colour(made[0], BLUE)
    assert made[0].shape == (3, 224, 224)
    assert load_image(path, size=None).shape == (3, *shape[::-1])


@pytest.mark.slow
def test_a_large_jpeg_is_decoded_at_a_fraction_and_looks_the_same(tmp_path, monkeypatch):
    path, decoded, plain = tmp_path / "large.jpg", [], images.to_rgb
    large = Image.fromarray(noise(1500, 2000)).resize((4000, 3000))  # 12 megapixels, as of a phone
    smooth = Image.fromarray(noise(6, 8)).resize(large.size)
    Image.blend(smooth, large, 0.2).save(path, quality=90, exif=TURNED)

    def spy(picture, of_16_bits):
        decoded.append(picture.size)
        return plain(picture, of_16_bits)

    monkeypatch.setattr(images, "to_rgb", spy)
    small, whole = load_image(path, size=(224, 160)), images.decode(path)
    wanted = images.ImageOps.fit(whole, (160, 224), Image.Resampling.BICUBIC)
    assert decoded == [(375, 500), (3000, 4000)]
    assert (small - as_tensor(np.array(wanted))).abs().mean() < 0.005
    assert load_image(path, size=2000).shape == (3, 2000, 2000)
    assert max(decoded[2]) == 4000  # nothing is enlarged that was there to be decoded


def test_a_photo_of_usual_size_is_decoded_as_it_is():
    expected = images.ImageOps.fit(images.decode(sample_photo()), (112, 112), 3)
    assert torch.equal(load_image(sample_photo(), 112), as_tensor(np.array(expected)))


# HEIC --------------------------------------------------------------------------------------------


def test_heic_is_read_where_its_package_is_and_else_refused_by_name(tmp_path, monkeypatch):
    pillow_heif, path = pytest.importorskip("pillow_heif"), tmp_path / "photo.jpg"
    picture = Image.new("RGB", (64, 48), (200, 40, 90))
    pillow_heif.from_pillow(picture).save(path, format="HEIF", quality=100)
    assert_colour(load_image(path, size=None), (200 / 255, 40 / 255, 90 / 255), atol=0.03)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not installed
    assert "it is HEIC; `pip install pillow-heif`" in refused(path)


# Files that are no picture -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.png", "a.png/b.png", "a" * 300, "a\0.png", "", "pipe"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, name):
    (tmp_path / "a.png").write_bytes(b"")
    if hasattr(os, "mkfifo"):  # some systems have no pipes with a name
        os.mkfifo(tmp_path / "pipe")
    assert "is not there, or is a folder" in refused(tmp_path / name)


# Of the last Pillow's reader would start a program, Ghostscript.
@pytest.mark.parametrize(
    "data",
    [b"", b"a line of text\n", b"\0" * 1000, saved(row("RGB", (9, 9, 9)), "EPS")],
    ids=["empty", "text", "zeros", "EPS"],
)
def test_a_file_of_something_else(tmp_path, data):
    (tmp_path / "a.png").write_bytes(data)
    reason = refused(tmp_path / "a.png")
    assert "not a picture" in reason
    assert "PNG" in reason  # it lists what it can read


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
def test_a_truncated_file(tmp_path, form):
    data = saved(Image.fromarray(noise(60, 60)), form)
    for share in (0.02, 0.5, 0.9):
        (tmp_path / "a").write_bytes(data[: int(len(data) * share)])
        refused(tmp_path / "a")


def test_floats_and_32_bit_integers_are_refused_for_they_have_no_known_white(tmp_path):
    for picture in (Image.new("F", (4, 4), 0.5), Image.new("I", (4, 4), 70000)):
        picture.save(tmp_path / "a.tif")
        assert "32 bits" in refused(tmp_path / "a.tif")


@pytest.mark.parametrize("high", [1, 255, 1023, 4095])
def test_few_bits_in_a_file_of_16_are_not_taken_for_black(tmp_path, high):
    values = np.linspace(0, high, 16).astype(np.uint16).reshape(4, 4)
    for ending in ("png", "tif"):
        Image.fromarray(values).save(tmp_path / f"a.{ending}")
        message = refused(tmp_path / f"a.{ending}")
        assert f"its 16-bit pixels go up to {high} alone" in message
        Image.fromarray(values * (65535 // high)).save(tmp_path / f"a.{ending}")
        assert load_image(tmp_path / f"a.{ending}", size=None).max() > 0.9
    Image.fromarray(values * 0).save(tmp_path / "black.png")
    assert load_image(tmp_path / "black.png", size=None).max() == 0


@pytest.mark.parametrize("address", ["https://a.org/b.jpg", "http://a.org/b", "s3://a/b.png"])
def test_an_address_is_named_as_it_was_given(address):
    for read in (load_image, images.decode, Preprocess()):
        with pytest.raises(ValueError, match=f"^{address} is an address; save"):
            read(address)


# Bombs and memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [60_000, 10_000])  # the latter is a little too large
def test_a_decompression_bomb_is_refused_before_it_takes_memory(tmp_path, side):
    (tmp_path / "a").write_bytes(png(side, side, depth=1, pixels=bytes(8000)))
    reasons = []
    assert peak_mib(lambda: reasons.append(refused(tmp_path / "a"))) < 100
    assert "pixels" in reasons[0]


def test_the_largest_transparent_picture_let_through_would_take_less_than_a_gigabyte(tmp_path):
    colours = chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", b"\0\x80")
    side, images = int(Image.MAX_IMAGE_PIXELS**0.5) // 4, []
    rows = bytes((1 + (side + 7) // 8) * side)
    (tmp_path / "a.png").write_bytes(png(side, side, 1, 3, rows, extra=colours))
    peak = peak_mib(lambda: images.append(load_image(tmp_path / "a.png", size=8)))
    assert_colour(images[0], WHITE)
    assert 16 * peak < 1000  # it has a sixteenth of the pixels


# Nothing else escapes ----------------------------------------------------------------------------


PICTURE, GREY16 = Image.fromarray(noise()), Image.fromarray(noise()[:, :, 0] * np.uint16(257))
FORMS = ("JPEG", "GIF", "WEBP", "TIFF", "PPM")
TO_BREAK = {form: saved(PICTURE, form, exif=TURNED) for form in FORMS}
TO_BREAK["PNG palette"] = saved(PICTURE.quantize(9), "PNG", transparency=3)
TO_BREAK["PNG 16"] = saved(GREY16, "PNG")


@pytest.mark.parametrize("name", TO_BREAK)
def test_a_file_with_flipped_bits_loads_or_is_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10**6)  # flipped sizes must not cost seconds
    path, outcomes, rng = tmp_path / "a", set(), random.Random(name)
    for _ in range(120):
        data = bytearray(TO_BREAK[name])
        for _ in range(rng.choice([1, 1, 2, 5])):
            end = rng.choice([64, len(data)])  # half of them where the sizes and offsets stand
            data[rng.randrange(end)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            image = load_image(path, size=None)
            assert (image.dtype, image.shape[0], image.ndim) == (torch.float32, 3, 3)
            assert 0 <= image.min() <= image.max() <= 1
            outcomes.add("loads")
        except ValueError:
            refused(path)
            outcomes.add("refused")
    assert outcomes == {"loads", "refused"}  # the flips reach both ends


# normalize and denormalize -----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 3, 3, 3)])
def test_normalize_and_denormalize_use_each_channels_own_mean_and_std(shape):
    images = torch.rand(shape, dtype=torch.float64)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    result = normalize(images, mean, std)
    for c in range(3):
        expected = (images[..., c, :, :] - mean[c]) / std[c]
        torch.testing.assert_close(result[..., c, :, :], expected)
    torch.testing.assert_close(denormalize(result, mean, std), images)
    torch.testing.assert_close(normalize(images), 2 * images - 1)  # 0…1 onto -1…1
    assert normalize(images.bfloat16(), mean, std).dtype == torch.bfloat16


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


def test_bicubic_stays_within_0_and_1():
    picture = torch.zeros(3, 30, 40)
    picture[:, :, 20:] = 1
    batch = Preprocess((16, 24), 24, "bicubic")(picture)
    assert (batch.min().item(), batch.max().item()) == (-1, 1)


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


def test_a_model_of_one_channel_gets_grey_and_perhaps_as_ink():
    blue = torch.zeros(3, 4, 4)
    blue[2] = 1
    for source in (Image.new("RGB", (4, 4), "blue"), blue, torch.full((1, 4, 4), LUMA[2])):
        pixels = GREY.pixels(source)
        torch.testing.assert_close(pixels, torch.full((1, 2, 2), LUMA[2]))
        torch.testing.assert_close(GREY(source), (pixels[None] - 0.5) / 0.25)
        torch.testing.assert_close(replace(GREY, ink=True).pixels(source), 1 - pixels)


def test_a_picture_of_pillows_is_taken_as_its_file_is(tmp_path):
    Image.fromarray(noise()).convert("RGBA").save(tmp_path / "a.png", exif=TURNED)
    opened = Image.open(tmp_path / "a.png")
    how = Preprocess((8, 6), 7)
    assert torch.equal(how(opened), how(tmp_path / "a.png"))
    assert torch.equal(how(opened), how(load_image(tmp_path / "a.png", size=None)))


# What is refused ---------------------------------------------------------------------------------


def read(picture):
    return Preprocess((2, 2))(picture)


LIGHT = torch.rand(3, 4, 4)
REFUSED = [
    (lambda: load_image(sample_photo(), size=0), ValueError, "size"),
    (lambda: load_image(sample_photo(), size=(1, 2, 3)), TypeError, "size"),
    (lambda: read(LIGHT * 255), ValueError, r"pixels run from .* to 2.*bytes / 255"),
    (lambda: read(normalize(LIGHT)), ValueError, r"pixels run from -.* not normalised"),
    (lambda: read(LIGHT * torch.nan), ValueError, "pixels run from nan"),
    (lambda: read(torch.rand(2, 3, 4, 4)), ValueError, r"is \(2, 3, 4, 4\).*\(C, H, W\)"),
    (lambda: read(LIGHT[:1]), ValueError, "1 channels where the model takes 3"),
    (lambda: Preprocess(interpolation="nearest"), ValueError, "interpolation is 'nearest'"),
    (lambda: Preprocess(shorter_side=0), ValueError, "shorter_side is 0"),
    (lambda: Preprocess(std=(0.5, 0.0, 0.5)), ValueError, "std above 0"),
    (lambda: Preprocess(mean=(float("nan"), 0, 0)), ValueError, "mean is"),
    (lambda: Preprocess(mean=(), std=()), ValueError, "a number for each channel"),
    (lambda: Preprocess(ink=1), ValueError, "ink is 1"),
    (lambda: normalize(LIGHT.byte()), TypeError, r"uint8.*images\.float\(\) / 255"),
    (lambda: normalize(LIGHT.numpy()), TypeError, "not a tensor"),
    (lambda: denormalize(LIGHT[None, None]), ValueError, "axes"),
    (lambda: denormalize(LIGHT.movedim(0, 2), mean=(0.5,) * 3), ValueError, "each of 4 channels"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_cannot_be_prepared_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
