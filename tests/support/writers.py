"""Every command that writes, with small files to read, and what happens to a folder meanwhile."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from support.command import main
from support.command_models import CLASSIFIER
from support.hostile_models import onnx_model, tflite_chains
from support.running import with_random_weights
from support.tiny_onnx import parse

OLD: Final = b"what was there before"


@dataclass(frozen=True, slots=True)
class Writer:
    """A command that writes.

    Attributes:
        line: Its arguments; what it writes has names that start with "o.".
        needs: Packages without which it does not run.
        is_slow: Whether it takes seconds.
        is_read_too: Whether it reads what it writes, so that only its own may be there before.
        grows: Files that are not there before, and are written anew whenever more is known.
    """

    line: str
    needs: tuple[str, ...] = ()
    is_slow: bool = False
    is_read_too: bool = False
    grows: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words of the line."""
        return tuple(shlex.split(self.line))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it writes."""
        return tuple(word for word in self.arguments if word.startswith("o."))

    def make_room(self, folder: Path) -> None:
        """Put what there may be before where the command writes."""
        for name in self.outputs:
            path = folder / name
            if self.is_read_too:
                assert path.exists(), f"{name} is of an earlier run of the command"
            elif name not in self.grows:
                path.write_bytes(OLD)


WRITERS: Final[Mapping[str, Writer]] = {
    "plan": Writer("plan m.onnx -o o.json --dim n=1"),
    "annotate": Writer("annotate m.onnx -o o.onnx --dim n=1"),
    "build": Writer("build m.onnx -o o.arena --dim n=1"),
    "compare": Writer(
        "compare m.csv --quick -o o.html --csv o.csv --markdown o.md --trace o.trace.json",
        needs=("bokeh",)),
    "compress": Writer("compress m.onnx -o o.onnx --dim n=1"),
    "compress to a program": Writer("compress m.onnx -o o.arena --dim n=1"),
    "compress, and scan": Writer(
        "compress m.onnx -o o.onnx --dim n=1 --sensitivity 0.3 --scan o.scan.json",
        grows=("o.scan.json",)),
    "export for TFLM": Writer(
        "export m.tflite --to tflm -o o.tflite --header o.h", needs=("tflite_micro",),
        is_slow=True),
    "export for ONNX Runtime": Writer("export m.onnx --to onnxruntime -o o.onnx --dim n=1"),
    "export to C": Writer("export m.tflite --to c -o o.c", is_read_too=True),
    "fit": Writer("fit m.onnx --dim n=1 --budget 100% -o o.arena"),
    "fit, a page": Writer(
        "fit m.onnx --dim n=1 -o o.html", needs=("bokeh",), is_slow=True),
    "train": Writer("train classifier.onnx -o o.onnx --loss cross-entropy"),
    "run": Writer("run m.onnx --dim n=1 --input x.npy -o o.npz --trace o.trace.json"),
    "run a training step": Writer(
        "run step.onnx --input batch.npz --steps 2 --state o.state.npz --json", is_read_too=True),
    "calibrate": Writer("calibrate -o o.json"),
}  # fmt: skip

_CSV = "id,lower,upper,size\na,0,3,32\nb,1,4,64\nc,2,6,16\nd,3,9,128\n"


def make_inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    draw = np.random.default_rng(0)
    (folder / "m.onnx").write_bytes(onnx_model("to compress").SerializeToString())
    (folder / "m.tflite").write_bytes(tflite_chains()["floats"])
    (folder / "m.csv").write_text(_CSV, encoding="utf-8")
    np.save(folder / "x.npy", draw.standard_normal((1, 3, 6, 6)).astype(np.float32))
    classifier = folder / "classifier.onnx"
    classifier.write_bytes(with_random_weights(parse(CLASSIFIER)).SerializeToString())
    step = ("train", classifier, "-o", folder / "step.onnx", "--loss", "cross-entropy", "--json")
    assert main([str(word) for word in step]) == 0
    images = draw.standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez(folder / "batch.npz", x=images, labels=np.array([3]))


_CHANGES: Final = frozenset(
    {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link",
     "os.symlink", "shutil.rmtree"}
)  # fmt: skip


def before_each_change(folder: Path, act: Callable[[str, Path], None]) -> None:
    """Call `act` before anything below a folder is opened for writing, renamed or removed.

    It is a hook of this process for as long as it lives. A process that is killed there leaves
    the files as `act` finds them.

    Args:
        folder: What lies in its `tmp` is left out.
        act: Takes the name of the event and the path.
    """
    is_acting = False

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal is_acting
        if is_acting or event not in _CHANGES or not given:
            return
        if event == "open" and not (isinstance(given[2], int) and given[2] & 3):
            return
        is_acting = True
        try:
            path = _path_of(given[0])
            if path.is_relative_to(folder) and not path.is_relative_to(folder / "tmp"):
                act(event, path)
        finally:
            is_acting = False

    sys.addaudithook(hook)


def _path_of(given: object) -> Path:
    if isinstance(given, int):
        return Path(os.readlink(f"/proc/self/fd/{given}"))  # noqa: PTH115  # a pipe is no path
    return Path(os.path.abspath(os.fsdecode(given)))  # type: ignore[arg-type]  # noqa: PTH100


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, and folders that are empty, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def copied(folder: Path, outputs: tuple[str, ...], to: Path) -> None:
    """Copy what is there of the outputs."""
    to.mkdir()
    for name in outputs:
        path = folder / name
        if path.is_dir():
            shutil.copytree(path, to / name)
        elif path.exists():
            shutil.copyfile(path, to / name)
