"""Pictures as inputs: sizes, layouts, element types, and what is no picture."""

import io

import numpy as np
import pytest

from arenite.cli.commands.run.images import ImageError, Normalisation, read_image
from arenite.planner.errors import MissingDependencyError

Image = pytest.importorskip("PIL.Image", reason="the extra 'images' is not installed")

HALVES = Normalisation((127.5,), (127.5,))
FLOAT, UINT8, INT8 = np.dtype(np.float32), np.dtype(np.uint8), np.dtype(np.int8)


@pytest.fixture
def pixels():
    """Eight rows of six pixels."""
    return np.random.default_rng(0).integers(0, 256, (8, 6, 3), np.uint8)


@pytest.fixture
def picture(tmp_path, pixels):
    """A file of them, without loss."""
    path = tmp_path / "cat.png"
    Image.fromarray(pixels).save(path)
    return path


def test_floating_point_is_normalised_in_both_layouts(picture, pixels):
    expected = (pixels.astype(np.float32) - 127.5) / 127.5
    last = read_image(picture, (1, 8, 6, 3), FLOAT, HALVES)
    assert (last.dtype, last.shape) == (FLOAT, (1, 8, 6, 3))
    np.testing.assert_allclose(last[0], expected, atol=1e-6)
    first = read_image(picture, (1, 3, 8, 6), FLOAT, HALVES)
    np.testing.assert_array_equal(first[0].transpose(1, 2, 0), last[0])


def test_each_channel_has_its_own_mean_and_deviation(picture, pixels):
    own = Normalisation((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    found = read_image(picture, (1, 3, 8, 6), FLOAT, own)
    expected = (pixels - np.array([1, 2, 3])) / np.array([4, 5, 6])
    np.testing.assert_allclose(found[0].transpose(1, 2, 0), expected, rtol=1e-6)


def test_inputs_of_8_bits_take_the_pixels(picture, pixels):
    plain = read_image(picture, (1, 8, 6, 3), UINT8, HALVES)
    np.testing.assert_array_equal(plain[0], pixels)
    signed = read_image(picture, (1, 8, 6, 3), INT8, HALVES)
    np.testing.assert_array_equal(signed[0].astype(int) + 128, pixels)


def test_a_picture_is_scaled_and_turned_grey_as_the_input_asks(picture):
    assert read_image(picture, (1, 16, 20, 3), UINT8, HALVES).shape == (1, 16, 20, 3)
    with Image.open(picture) as image:
        grey = np.asarray(image.convert("L"))
    found = read_image(picture, (1, 1, 8, 6), UINT8, HALVES)
    np.testing.assert_array_equal(found[0, 0], grey)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_any_kind_of_pixels_becomes_three_channels(tmp_path, mode):
    path = tmp_path / "cat.tiff"
    Image.new(mode, (6, 8)).save(path)
    assert read_image(path, (1, 8, 6, 3), UINT8, HALVES).shape == (1, 8, 6, 3)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((1, 8, 6, 4), FLOAT, "a picture for an input of shape 1x8x6x4 is unsupported"),
        ((2, 3, 8, 6), FLOAT, "a picture for an input of shape 2x3x8x6 is unsupported"),
        ((10,), FLOAT, "a picture for an input of shape 10 is unsupported"),
        ((), FLOAT, "a picture for an input of shape scalar is unsupported"),
        ((1, 3, 8, 6), np.dtype(np.int64), "a picture for an input of int64 is unsupported"),
    ],
)
def test_an_input_that_takes_no_picture_says_so(picture, shape, dtype, message):
    with pytest.raises(ImageError, match=message):
        read_image(picture, shape, dtype, HALVES)


def test_three_means_are_for_three_channels(picture):
    three = Normalisation((1.0, 2.0, 3.0), (1.0,))
    with pytest.raises(ImageError, match="1,2,3 is 3 numbers for 1 channels"):
        read_image(picture, (1, 1, 8, 6), FLOAT, three)


@pytest.mark.parametrize("content", [None, b"", b"no picture"])
def test_what_is_no_picture_is_refused(tmp_path, content):
    path = tmp_path / "cat.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ImageError, match="cannot be read as a picture"):
        read_image(path, (1, 8, 6, 3), UINT8, HALVES)


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "bmp", "tiff"])
def test_a_damaged_picture_is_read_or_refused(tmp_path, kind, pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    generator = np.random.default_rng(0)
    path = tmp_path / f"cat.{kind}"
    num_refused = 0
    for _ in range(200):
        damaged = bytearray(stream.getvalue())
        for place in generator.integers(0, min(len(damaged), 150), 3):
            damaged[place] = generator.integers(256)
        path.write_bytes(damaged)
        try:
            assert read_image(path, (1, 8, 6, 3), UINT8, HALVES).shape == (1, 8, 6, 3)
        except ImageError:
            num_refused += 1
    assert num_refused > 0


def test_pixels_of_a_png_that_end_too_early_are_refused(picture):
    content = picture.read_bytes()
    at = content.index(b"IDAT")
    length = int.from_bytes(content[at - 4 : at], "big") - 50
    picture.write_bytes(content[: at - 4] + length.to_bytes(4, "big") + content[at:])
    with pytest.raises(ImageError, match="broken PNG file"):
        read_image(picture, (1, 8, 6, 3), UINT8, HALVES)


def test_pillow_is_named_where_it_is_absent(picture, without):
    without("PIL")
    with pytest.raises(MissingDependencyError, match=r"arenite\[images\]"):
        read_image(picture, (1, 8, 6, 3), UINT8, HALVES)


def test_run_takes_a_picture(run_json, run, classifier, picture):
    found = run_json("run", classifier, "--input", f"x={picture}", "--mean", "0,0,0")
    assert len(found["top"]) == 5
    code, _, err = run("run", classifier, "--input", picture, "--std", "1,2")
    assert (code, "--std" in err) == (2, True)
