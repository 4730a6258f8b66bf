"""Readers of models and of plan files, fed by a fuzzer that sees which lines of ours they reach.

    PYTHONPATH=tests python -m support.fuzz_importers KIND FOLDER [--seconds N] [--seed N]

KIND is onnx, tflite, plan or csv. FOLDER has a corpus of each, as `support.fuzz_seeds` writes it;
it grows, and FOLDER keeps what fails. The fuzzer is `atheris`, from PyPI; half of the changes are
its own, half those of `support.damage`, which know what a protobuf message and a JSON document
are.
"""

import argparse
import gc
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Final

from arenite.planner import planfile
from arenite.planner.errors import AreniteError, UnboundDimensionError
from arenite.planner.importers import read
from support.damage import damaged

MOST_BYTES: Final = 1 << 16
_SCRATCH: Final = Path("/dev/shm")  # a file a trial: none should reach a disk
_SUFFIXES: Final[Mapping[str, str]] = {
    "onnx": ".onnx", "tflite": ".tflite", "plan": ".json", "csv": ".csv",
}  # fmt: skip

_LATE: Final[Mapping[str, Sequence[str]]] = {
    "onnx": ["arenite.planner.importers.onnx.reader"],
    "tflite": ["arenite.planner.importers.tflite.reader"],
    "plan": ["arenite.planner.planfile"],
    "csv": ["arenite.planner.importers.csv"],
}
"""What must be there to be watched before the first file of a kind is read."""
_WATCHED: Final = "arenite.planner."


def main(arguments: Sequence[str]) -> int:
    """Fuzz one kind of file until the time is up or something fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=_SUFFIXES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    corpus = options.folder / options.kind
    if not corpus.is_dir():
        parser.error(f"no folder {corpus}; python -m support.fuzz_seeds {options.folder} makes it")

    import atheris

    for module in _LATE[options.kind]:
        import_module(module)
    # As modules are imported it cannot: it does not know the loader of an editable installation.
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and str(each.__module__).startswith(_WATCHED):
            atheris.instrument_func(each)

    def try_bytes(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(AreniteError):
            if options.kind == "plan":
                planfile.read(path)
            else:
                try:
                    read(path)
                except UnboundDimensionError:
                    read(path, dims={"n": 1})

    scratch = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_SCRATCH if _SCRATCH.is_dir() else None))
    path = scratch / f"tried{_SUFFIXES[options.kind]}"

    def change(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2 and data:
            with suppress(ValueError):  # text that is none cannot be moved about
                return damaged(data, random.Random(seed), _SUFFIXES[options.kind])[:most]
        return bytes(atheris.Mutate(data, most))

    atheris.Setup(
        [
            "fuzz_importers", str(corpus), f"-max_total_time={options.seconds}",
            f"-seed={options.seed}", f"-max_len={MOST_BYTES}", "-timeout=60",
            "-rss_limit_mb=4096", "-print_final_stats=1",
            f"-artifact_prefix={options.folder}/{options.kind}-",
        ],
        try_bytes,
        custom_mutator=change,

    )  # fmt: skip
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
