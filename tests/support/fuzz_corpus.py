"""Files that fuzzers came by: a sample of those that reach something, and those that failed once.

    PYTHONPATH=tests python -m support.fuzz_corpus FOLDER

keeps those of `FOLDER/programs` and so on, which should be few and small; `fuzz-programs -merge=1`
leaves one for each thing that is reached.
"""

import sys
import tarfile
from pathlib import Path
from typing import Final

from support.archives import unpack

CORPUS: Final = Path(__file__).resolve().parents[1] / "hostile" / "corpus.tar.xz"
KINDS: Final = ("programs", "weights", "onnx", "tflite", "plan", "csv")
MOST_BYTES: Final = 64 << 10
"""Of the archive: whoever clones the project has it."""


def corpus(folder: Path, kind: str) -> list[Path]:
    """Unpack the files of a kind into a folder."""
    with tarfile.open(CORPUS) as archive:
        members = [each for each in archive if each.isfile() and each.name.startswith(f"{kind}/")]
        unpack(archive, folder, members)
    return sorted(folder / each.name for each in members)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def pack(folder: Path) -> int:
    """Write the archive from a folder, the same bytes for the same files; return its size."""
    with tarfile.open(CORPUS, "w:xz", preset=9) as archive:
        for kind in KINDS:
            for path in sorted((folder / kind).iterdir()):
                archive.add(path, f"{kind}/{path.name}", filter=_anonymous)
    return CORPUS.stat().st_size


if __name__ == "__main__":
    size = pack(Path(sys.argv[1]))
    sys.stdout.write(f"{size:,} B\n")
    sys.exit(size > MOST_BYTES)
