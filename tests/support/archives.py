"""Unpack archives of ours."""

import tarfile
from collections.abc import Iterable
from pathlib import Path


def unpack(
    archive: tarfile.TarFile, folder: Path, members: Iterable[tarfile.TarInfo] | None = None
) -> None:
    """Unpack an archive, or some of its members, into a folder."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, members, filter="data")
    else:  # Python 3.11.2, which Debian 12 has
        archive.extractall(folder, members)
