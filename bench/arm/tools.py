"""What counting needs: QEMU, its plugin, a driver of our runtime, and other engines' wheels."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from bench.harness.contest import MissingInputsError
from bench.harness.inputs import CHECKOUT

TRIPLETS: Final = {"aarch64": "aarch64-linux-gnu", "arm": "arm-linux-gnueabihf"}
"""By architecture, as QEMU names it; the second has 32 bits."""
TRIPLET: Final = TRIPLETS["aarch64"]
ARM: Final = CHECKOUT / "build" / "arm"
"""Where `make arm-wheels` cross-compiles."""
HERE: Final = Path(__file__).parent
_PEERS: Final = ARM / "peers"
_WHEELS: Final = (
    "ai-edge-litert==2.3.0", "onnxruntime==1.32.0", "ncnn==1.0.20261020", "MNN==3.6.1",
    "numpy==2.4.6",
)  # fmt: skip
_FOLDERS: Final = {"aarch64": ARM / "arm64", "arm": ARM / "armhf"}
SYSROOT: Final = _FOLDERS["aarch64"] / "sysroot"
"""Packages of Debian that are unpacked, not installed; has a Python."""


@cache
def qemu(arch: str) -> str:
    """Return QEMU's user emulator of an architecture, one that loads plugins.

    Raises:
        MissingInputsError: There is none; Debian 13 builds it without.
    """
    found = shutil.which(f"qemu-{arch}")
    if found is None or "-plugin" not in output([found, "--help"]):
        raise MissingInputsError(
            f"needs a qemu-{arch} that loads plugins, as the package qemu-user of Debian 12 has it"
        )
    return found


@cache
def plugin() -> Path:
    """Return the plugin that counts, compiled."""
    return compiled(ARM / "count.so", ["cc", "-O2", "-shared", "-fPIC", HERE / "count.c"])


@cache
def driver(arch: str) -> list[str | Path]:
    """Return the cross-compiled program that runs our programs, behind what QEMU has to be told.

    Raises:
        MissingInputsError: The library was not cross-compiled.
    """
    triplet, folder = TRIPLETS[arch], _FOLDERS[arch]
    build = folder / "build" / "runtime" / "capi"
    if not (build / "libarenite.so").exists():
        raise MissingInputsError("no cross-compiled runtime: run `make arm-wheels` first")
    made = compiled(
        build / "arenite-runs",
        [f"{triplet}-gcc", "-O2", f"-I{CHECKOUT / 'runtime' / 'capi'}", HERE / "runs.c",
         f"-L{build}", "-larenite", "-Wl,--allow-shlib-undefined"],
    )  # fmt: skip
    libraries = build, folder / "sysroot" / "usr" / "lib" / triplet, f"/usr/{triplet}/lib"
    path = ":".join(map(str, libraries))
    return ["-L", f"/usr/{triplet}", "-E", f"LD_LIBRARY_PATH={path}", made]


@cache
def peers() -> Path:
    """Return a folder with the peers' wheels for AArch64, unpacked.

    Raises:
        MissingInputsError: They cannot be downloaded.
    """
    if (_PEERS / "fetched").exists():
        return _PEERS / "site"
    packages = _PEERS / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    output(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", packages,
         "--only-binary=:all:", "--python-version=311", "--implementation=cp", *platforms,
         "--platform=manylinux2014_aarch64", *_WHEELS]
    )  # fmt: skip
    for wheel in packages.glob("*.whl"):
        shutil.unpack_archive(wheel, _PEERS / "site", "zip")
    (_PEERS / "fetched").touch()
    return _PEERS / "site"


def compiled(made: Path, command: Sequence[str | Path]) -> Path:
    """Return a file after a compiler has made it.

    Processes that make it at the same time see whole files only.

    Raises:
        MissingInputsError: The compiler fails.
    """
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        new = Path(folder) / made.name
        output([*command, "-o", new])
        new.replace(made)
    return made


def output(command: Sequence[str | Path], folder: Path | None = None, text: str = "") -> str:
    """Return the output of a command that reads a text.

    Raises:
        MissingInputsError: It fails; its last words.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, cwd=folder, input=text, capture_output=True, text=True, check=False,
            env=environment,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise MissingInputsError(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise MissingInputsError(f"{command[0]} fails: {said[-1]}")
    return done.stdout
