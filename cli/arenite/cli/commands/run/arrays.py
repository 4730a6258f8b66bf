"""Arrays by name as a file."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as an `.npz` file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # np.savez stumbles over the name "file"
        for key, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
    return stream.getvalue()
