"""Pictures as inputs of a network."""

import struct
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import FileError, needing

Array: TypeAlias = NDArray[Any]

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})

_DAMAGE = (
    OSError, ValueError, EOFError, IndexError, KeyError, MemoryError, OverflowError, RuntimeError,
    SyntaxError, TypeError, struct.error, zlib.error,
)  # fmt: skip
"""Errors of Pillow for damaged files."""


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How the pixels of a picture become floats: (pixel - mean) / std.

    Attributes:
        mean: One number, or one a channel.
        std: The same.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]


class ImageError(FileError):
    """A picture cannot be an input."""


def read_image(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], normalisation: Normalisation
) -> Array:
    """Return a picture scaled to an input's size: N, C, H, W or N, H, W, C.

    Args:
        shape: Of the input; 1 or 3 channels.
        dtype: Of the input. Integers of 8 bits take the pixels as they are, signed ones
            less 128.
        normalisation: Of the pixels for an input of floating point.

    Raises:
        ImageError: It cannot be read, or the input takes no picture.
        MissingDependencyError: Pillow is absent.
    """
    with needing("PIL", "images", f"reading {path.name!r}"):
        from PIL import Image
    holds_pixels = dtype in (np.uint8, np.int8)
    if not (holds_pixels or dtype.kind == "f"):
        raise ImageError(
            f"a picture for an input of {dtype} is unsupported; feed a .npy", path=path
        )
    if len(shape) != 4 or shape[0] != 1 or not {1, 3}.intersection((shape[1], shape[3])):
        text = "x".join(map(str, shape)) or "scalar"
        raise ImageError(
            f"a picture for an input of shape {text} is unsupported; feed a .npy", path=path
        )
    is_channels_last = shape[3] in (1, 3)
    height, width, channels = shape[1:] if is_channels_last else (*shape[2:], shape[1])
    for numbers in (normalisation.mean, normalisation.std):
        if len(numbers) not in (1, channels) and not holds_pixels:
            text = ",".join(f"{number:g}" for number in numbers)
            raise ImageError(
                f"{text} is {len(numbers)} numbers for {channels} channels", path=path
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged tags: the pixels are there
            with Image.open(path) as image:
                pixels = image.convert("L" if channels == 1 else "RGB").resize((width, height))
                array = np.asarray(pixels).reshape(height, width, channels)
    except (*_DAMAGE, Image.DecompressionBombError) as error:
        raise ImageError(f"cannot be read as a picture: {_reason(error)}", path=path) from error
    if dtype == np.uint8:
        result = array
    elif dtype == np.int8:
        result = (array.astype(np.int16) - 128).astype(np.int8)
    else:
        mean, std = np.array(normalisation.mean), np.array(normalisation.std)
        result = ((array - mean) / std).astype(dtype)
    return np.asarray((result if is_channels_last else result.transpose(2, 0, 1))[np.newaxis])


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
