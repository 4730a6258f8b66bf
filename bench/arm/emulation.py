"""Counts instructions under QEMU: those of our runtime, and of other engines' aarch64 wheels."""

import bisect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from bench.harness.contest import MissingInputsError
from bench.harness.inputs import CHECKOUT

_TRIPLET: Final = "aarch64-linux-gnu"
_ARM: Final = CHECKOUT / "build" / "arm"
"""Where `make test-arm` cross-compiles."""
_PEERS: Final = _ARM / "peers"
_HERE: Final = Path(__file__).parent
_WHEELS: Final = (
    "ai-edge-litert==2.3.0", "onnxruntime==1.32.0", "ncnn==1.0.20261020", "MNN==3.6.1",
    "numpy==2.4.6",
)  # fmt: skip
_DEBS: Final = (
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libexpat1", "zlib1g",
    "libc6", "libstdc++6", "libgcc-s1", "libgomp1", "libssl3", "libffi8", "libbz2-1.0", "liblzma5",
)  # fmt: skip
"""A Python of Debian 12 that is unpacked, not installed."""
_BASE: Final = "fp asimd evtstrm crc32 cpuid"
_DOTS: Final = f"{_BASE} aes pmull sha1 sha2 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor to emulate.

    Attributes:
        boards: Boards that have it, or its like.
        part: Number in `/proc/cpuinfo`, by which engines choose kernels.
        features: Also there.
    """

    boards: str
    part: str
    features: str


PROCESSORS: Final[Mapping[str, Processor]] = {
    "cortex-a53": Processor("Pi 3, Zero 2 W", "0xd03", _BASE),
    "cortex-a72": Processor("Pi 4", "0xd08", _BASE),
    "neoverse-n1": Processor("Pi 5 (dot products as its Cortex-A76)", "0xd0b", _DOTS),
}


@dataclass(frozen=True, slots=True)
class Emulator:
    """One processor."""

    name: str

    def ours(self, program: Path, runs: int) -> Counter[str]:
        """Return the instructions of a run of a program file, by function."""
        libraries = _ARM / "arm64" / "build", _ARM / "arm64/sysroot/usr/lib" / _TRIPLET
        path = ":".join(map(str, (*libraries, f"/usr/{_TRIPLET}/lib")))
        command: list[str | Path] = [
            "-L", f"/usr/{_TRIPLET}", "-E", f"LD_LIBRARY_PATH={path}", driver(), program,
        ]  # fmt: skip
        return self._per_run(command, runs)

    def theirs(
        self, model_format: str, engine: str, model: Path, inputs: Path, runs: int
    ) -> Counter[str]:
        """Return the instructions of a run of a model in another engine, by function."""
        root = peers() / "root"
        stated = root / "proc" / "cpuinfo"  # QEMU looks below -L first
        stated.parent.mkdir(exist_ok=True)
        processor = PROCESSORS[self.name]
        stated.write_text(
            f"processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: {processor.features}\n"
            "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
            f"CPU part\t: {processor.part}\nCPU revision\t: 3\n"
        )
        ours = [CHECKOUT / each for each in ("pipeline", "planner", "strategies", "runtime")]
        places = ":".join(map(str, (peers() / "site", *ours)))
        libraries = ":".join(str(root / each / _TRIPLET) for each in ("usr/lib", "lib"))
        command: list[str | Path] = [
            "-L", root, "-E", f"PYTHONHOME={root}/usr", "-E", f"PYTHONPATH={places}",
            "-E", f"LD_LIBRARY_PATH={libraries}", "-E", "PYTHONDONTWRITEBYTECODE=1",
            root / "usr/bin/python3.11", _HERE / "peer.py", model_format, engine, model, inputs,
        ]  # fmt: skip
        return self._per_run(command, runs)

    def _per_run(self, command: Sequence[str | Path], runs: int) -> Counter[str]:
        """Return what some runs cost beyond those that warm up, divided by their number."""
        few, more = (self._counted([*command, str(2 + each)]) for each in (0, runs))
        return Counter({name: (more[name] - few[name]) // runs for name in more})

    def _counted(self, command: Sequence[str | Path]) -> Counter[str]:
        with tempfile.NamedTemporaryFile() as out:
            done = subprocess.run(
                [qemu(), "-cpu", self.name, "-plugin", f"{plugin()},out={out.name}", *command],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                said = done.stderr.strip().splitlines() or [f"code {done.returncode}"]
                raise MissingInputsError(f"{command[-3]} fails on {self.name}: {said[-1]}")
            return _by_function(Path(out.name).read_text().splitlines())


def _by_function(lines: Sequence[str]) -> Counter[str]:
    """Return the instructions of each function; of libraries without names, of the library."""
    maps: list[tuple[int, int, int, str]] = []
    counts: Counter[str] = Counter()
    for line in lines:
        if line.startswith("map ") and line.count("/") > 0:
            span, _, offset, *_, path = line.split()[1:]
            low, high = (int(each, 16) for each in span.split("-"))
            maps.append((low, high, int(offset, 16), path))
    maps.sort()
    starts = [low for low, *_ in maps]
    for line in lines:
        if not line.startswith("block "):
            continue
        place, instructions, runs = line.split()[1:]
        address = int(place, 16)
        found = bisect.bisect_right(starts, address) - 1
        low, high, start, path = maps[found]
        is_inside = found >= 0 and address < high
        name = _function(path, address - low + start) if is_inside else "elsewhere"
        counts[name] += int(instructions) * int(runs)
    return counts


def _function(path: str, offset: int) -> str:
    starts, names, segments = _symbols(path)
    place = offset
    for at, address, size in segments:
        if at <= offset < at + size:
            place = offset - at + address
    index = bisect.bisect_right(starts, place) - 1
    return names[index] if index >= 0 else Path(path).name


@cache
def _symbols(path: str) -> tuple[list[int], list[str], list[tuple[int, int, int]]]:
    """Return the functions of a file, and its segments: offset, address, bytes."""
    if "arenite" not in Path(path).name:
        return [], [], []
    found = []
    for line in _output([f"{_TRIPLET}-nm", "-C", "--defined-only", path]).splitlines():
        address, kind, name = line.split(" ", 2)
        if kind in "tTwWiu":
            found.append(
                (int(address, 16), re.sub(r"\(anonymous namespace\)::|arenite::", "", name))
            )
    found.sort()
    segments = [
        (int(words[1], 16), int(words[2], 16), int(words[4], 16))
        for line in _output([f"{_TRIPLET}-readelf", "-lW", path]).splitlines()
        if (words := line.split()) and words[0] == "LOAD"
    ]
    return [address for address, _ in found], [name for _, name in found], segments


@cache
def qemu() -> str:
    """Return QEMU's user emulator, one that loads plugins.

    Raises:
        MissingInputsError: There is none.
    """
    found = shutil.which("qemu-aarch64")
    if found is None or "-plugin" not in _output([found, "--help"]):
        raise MissingInputsError("needs qemu-aarch64 with plugins: apt install qemu-user")
    return found


@cache
def plugin() -> Path:
    """Return the plugin that counts, compiled."""
    made = _ARM / "count.so"
    _output(["cc", "-O2", "-shared", "-fPIC", "-o", made, _HERE / "count.c"])
    return made


@cache
def driver() -> Path:
    """Return the program that runs our programs, cross-compiled.

    Raises:
        MissingInputsError: The library was not cross-compiled.
    """
    build = _ARM / "arm64" / "build"
    if not (build / "libarenite.so").exists():
        raise MissingInputsError("no cross-compiled runtime: run `make test-arm` first")
    made = build / "arenite-runs"
    _output(
        [f"{_TRIPLET}-gcc", "-O2", f"-I{CHECKOUT / 'runtime' / 'capi'}", "-o", made,
         _HERE / "runs.c", f"-L{build}", "-larenite", "-Wl,--allow-shlib-undefined"]
    )  # fmt: skip
    return made


@cache
def peers() -> Path:
    """Return a folder with the peers' wheels for aarch64 and a Python to run them.

    Raises:
        MissingInputsError: They cannot be downloaded.
    """
    if (_PEERS / "fetched").exists():
        return _PEERS
    packages = _PEERS / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    _output(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", packages,
         "--only-binary=:all:", "--python-version=311", "--implementation=cp", *platforms,
         "--platform=manylinux2014_aarch64", *_WHEELS]
    )  # fmt: skip
    _output(["apt-get", "download", "-qq", *(f"{each}:arm64" for each in _DEBS)], packages)
    for wheel in packages.glob("*.whl"):
        shutil.unpack_archive(wheel, _PEERS / "site", "zip")
    for deb in packages.glob("*.deb"):
        _output(["dpkg-deb", "-x", deb, _PEERS / "root"])
    (_PEERS / "fetched").touch()
    return _PEERS


def _output(command: Sequence[str | Path], folder: Path | None = None) -> str:
    """Return the output of a command.

    Raises:
        MissingInputsError: It fails; its last words.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
    except FileNotFoundError as error:
        raise MissingInputsError(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise MissingInputsError(f"{command[0]} fails: {said[-1]}")
    return done.stdout
