"""Commands that write are killed, run out of disk, may not write, or write one file together.

What they write is there as it was or whole, never half; and an error is one line.
"""

import ctypes
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import pytest

from arenite.cli.commands import calibrate as calibrating
from arenite.cli.group import ENTRIES
from arenite.cli.main import main
from arenite.planner.programs.costs import Costs, Link
from support import forked
from support.command_models import CLASSIFIER
from support.flip_files import warm_up
from support.hostile_models import onnx_model, tflite_chains
from support.tiny_onnx import parse, with_random_weights

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
    "stream": Writer("stream m.onnx --dim n=1 --axis x:2 --hop 2 --padding stream -o o.arena"),
    "system": Writer("system s.toml -o o.arena"),
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
    (folder / "s.toml").write_text('[models.m]\npath = "m.onnx"\ndims = { n = 1 }\n')
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


TEMPORARY = re.compile(r"\.arenite-[0-9a-f]{16}(/.*)?")
LARGEST_FILE = 256
"""Bytes; an error of one line is shorter, and one output of every command is longer."""


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with everything that the commands read, and what those write that read it too."""
    folder = tmp_path_factory.mktemp("given")
    warm_up(folder)
    make_inputs(folder)
    for writer in WRITERS.values():
        if writer.is_read_too:
            names = {*writer.outputs, *(path.name for path in folder.iterdir())}
            words = (f"{folder}/{word}" if word in names else word for word in writer.arguments)
            assert main(list(words)) == 0
    (folder / "o.c" / "mine.txt").write_text("added by the user")
    return folder


@pytest.fixture(params=WRITERS)
def writer(request, given, tmp_path, monkeypatch):
    """A command, in a folder where what it writes is there already."""
    writer = WRITERS[request.param]
    for package in writer.needs:
        pytest.importorskip(package)
    for path in given.iterdir():
        if not path.name.startswith("o.") or path.name in writer.outputs:
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, tmp_path / path.name)
    writer.make_room(tmp_path)
    costs = Costs(1e9, 1e9, Link(1e9, 1e9), {"Conv2D": 1e9})
    monkeypatch.setattr(calibrating, "measured", lambda: {"float32": costs})
    (tmp_path / "tmp").mkdir()
    return writer


QUICK = pytest.mark.parametrize(
    "writer", [name for name, each in WRITERS.items() if not each.is_slow], indirect=True
)
"""Without those that take seconds, and write by the same few lines as the others."""


def run(writer, folder, monkeypatch, prepare=lambda: None):
    """Run the command in a process of its own, which does something else first."""

    def prepared(arguments):
        prepare()
        return main(arguments)

    monkeypatch.setattr(forked, "main", prepared)
    return forked.run(writer.arguments, folder, time_limit_s=60, memory_limit=8 << 30)


def names(folder):
    """What lies in a folder, but for what ONNX Runtime leaves among temporary files."""
    return {name for name in contents(folder) if name != "tmp/.ses"}


def of_output(contents, name):
    """What there is of one output among the contents of a folder."""
    return {each: data for each, data in contents.items() if each.split("/")[0] == name}


def test_at_no_moment_is_an_output_there_in_part(writer, tmp_path, monkeypatch, tmp_path_factory):
    moments = tmp_path_factory.mktemp("moments")
    events = moments / "events"
    events.touch()

    def note(event, path):
        copied(tmp_path, writer.outputs, moments / str(len(list(moments.iterdir()))))
        with events.open("a") as stream:
            stream.write(f"{event} {path.relative_to(tmp_path)}\n")

    before = contents(tmp_path)
    ended = run(writer, tmp_path, monkeypatch, lambda: before_each_change(tmp_path, note))
    assert (ended.code, ended.fault) == (0, None)
    after = contents(tmp_path)
    seen = [contents(moment) for moment in moments.iterdir() if moment.is_dir()]
    assert len(seen) >= 2 * len(writer.outputs)
    for name in writer.outputs:
        assert f"open {name}\n" not in events.read_text()
        assert of_output(after, name)
        for moment in seen:
            if name in writer.grows:
                assert name not in moment or json.loads(moment[name])["digest"]
            else:
                assert of_output(moment, name) in (of_output(before, name), of_output(after, name))
    assert {name for name in after.keys() - before.keys() if name.split("/")[0] not in {
        "tmp", *writer.outputs}} == set()  # fmt: skip


@QUICK
def test_who_is_killed_leaves_what_was_there(writer, tmp_path, monkeypatch):
    before = contents(tmp_path)

    def kill(event, _path):
        if event in {"os.rename", "shutil.rmtree"}:  # a folder is exchanged, and the old one goes
            os.kill(os.getpid(), signal.SIGKILL)

    ended = run(writer, tmp_path, monkeypatch, lambda: before_each_change(tmp_path, kill))
    assert ended.code == -signal.SIGKILL
    left = contents(tmp_path)
    for name in writer.outputs:
        assert of_output(left, name) == of_output(before, name)
    more = {name for name in left.keys() - before.keys() if not name.startswith("tmp/")}
    assert all(TEMPORARY.fullmatch(name) for name in more)
    if writer is WRITERS["plan"]:  # and what is left is in nobody's way
        again = run(writer, tmp_path, monkeypatch)
        assert (again.code, again.fault) == (0, None)


def test_a_full_disk_is_one_error_and_nothing_is_left(writer, tmp_path, monkeypatch):
    """Standing in for the disk is a limit on the size of every file."""
    before = contents(tmp_path)
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    ended = run(writer, tmp_path, monkeypatch, limit)
    assert (ended.code, ended.fault) == (1, None)
    after = contents(tmp_path)
    assert after.keys() - before.keys() <= {"tmp/.ses", *writer.outputs}
    changed = [name for name in after if after[name] != before.get(name)]
    assert all(len(after[name]) < LARGEST_FILE for name in changed), changed


def drop_power_over_permissions():
    """Let root, too, write only where the permissions say that the owner may."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capget(header, sets) == 0
    for index in range(3):  # effective, permitted, inheritable
        sets[index] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0


def test_a_read_only_folder_is_one_error_and_nothing_changes(writer, tmp_path, monkeypatch):
    before = contents(tmp_path)
    tmp_path.chmod(0o555)
    try:
        ended = run(writer, tmp_path, monkeypatch, drop_power_over_permissions)
    finally:
        tmp_path.chmod(0o755)
    assert (ended.code, ended.fault) == (1, None)
    assert "read-only" in ended.err
    assert names(tmp_path) == before.keys()
    assert contents(tmp_path).items() >= before.items()


def meet_before_each_rename(folder):
    """Return what lets this process and the one it forks wait for each other at every rename."""
    ways = [os.pipe(), os.pipe()]

    def begin(index):
        mine, theirs = ways[index][0], ways[1 - index][1]

        def meet(event, _path):
            if event == "os.rename":
                os.write(theirs, b"!")
                select.select([mine], [], [], 1.0)
                os.set_blocking(mine, False)
                with suppress(BlockingIOError):
                    os.read(mine, 1)

        before_each_change(folder, meet)

    return begin


@pytest.fixture
def alone(writer, tmp_path, tmp_path_factory, monkeypatch):
    """What the command writes when nobody else does."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(tmp_path, folder, dirs_exist_ok=True)

    def alone(writer):
        assert run(writer, folder, monkeypatch).code == 0
        return {name: data for name, data in contents(folder).items()
                if name.split("/")[0] in writer.outputs}  # fmt: skip

    return alone


def without_numbers(data):
    """What does not differ from run to run: times do."""
    return re.sub(rb"[0-9.]+(e-?[0-9]+)?", b"0", data)


@QUICK
def test_of_two_that_write_at_once_one_is_there_whole(writer, alone, tmp_path, monkeypatch):
    before = contents(tmp_path)
    begin = meet_before_each_rename(tmp_path)

    def both(arguments):
        other = os.fork()
        begin(1 if other else 0)
        code = main(arguments)
        sys.stdout.flush()
        if other == 0:
            os._exit(code)
        _, status = os.waitpid(other, 0)
        return max(code, os.waitstatus_to_exitcode(status))

    monkeypatch.setattr(forked, "main", both)
    ended = forked.run(writer.arguments, tmp_path, time_limit_s=60, memory_limit=8 << 30)
    assert (ended.code, ended.fault) == (0, None)
    found = contents(tmp_path)
    assert found.keys() - before.keys() <= {"tmp/.ses", *writer.outputs}
    for name, data in alone(writer).items():
        if name.endswith(".html"):  # times are drawn, too
            assert found[name][-16:] == data[-16:]
            assert len(found[name]) == pytest.approx(len(data), rel=0.01)
        else:
            assert without_numbers(found[name]) == without_numbers(data)


READ = {
    "--baseline",
    "--compression",
    "--costs",
    "--evaluate",
    "--labels",
    "--plan",
    "--tokenizer",
}
"""Options that name what is read."""


def test_every_option_that_names_a_file_to_write_is_tried():
    tried = {
        (writer.arguments[0], word) for writer in WRITERS.values() for word in writer.arguments
    }
    for name, entry in ENTRIES.items():
        for option in entry.load(name).params:
            if isinstance(option, click.Option) and isinstance(option.type, click.Path):
                words = set(option.opts) - READ
                assert not words or {(name, word) for word in words} & tried, option.opts
