"""ncnn and MNN, which run ONNX models in formats of their own: converted once, with their tools.

Both are on PyPI: `pip install ncnn pnnx MNN`, or the same with `--target FOLDER` and that folder
in PYTHONPATH. What is not installed, or does not take a model, is left out with a note.
"""

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import onnx

from arenite.planner.importers import load
from harness.command import note
from harness.inputs import dims_of

PEERS = ("ncnn", "mnn")
_NEEDS = {"ncnn": ("ncnn", "pnnx"), "mnn": ("MNN", "_tools")}
_SECONDS = 600
_LONGEST = 200


def converted_peers(model: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the peers that are installed and take a model, and the file that each loads."""
    for peer in PEERS:
        missing = [package for package in _NEEDS[peer] if find_spec(package) is None]
        if missing:
            note(f"{peer} is left out: {', '.join(missing)} is not installed")
            continue
        place = folder / peer
        place.mkdir()
        wanted = place / ("model.ncnn.param" if peer == "ncnn" else "model.mnn")
        command = _pnnx(model, place) if peer == "ncnn" else _mnnconvert(model, wanted)
        try:
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            note(f"{peer} is left out: it takes more than {_SECONDS} s to convert {model.name}")
            continue
        if done.returncode or not wanted.is_file():
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
            note(f"{peer} is left out: it does not convert {model.name}: {said[-1][:_LONGEST]}")
            continue
        yield peer, wanted


def _pnnx(model: Path, place: Path) -> list[str]:
    # Its package imports PyTorch, the program inside it does not.
    (folder,) = find_spec("pnnx").submodule_search_locations  # type: ignore[union-attr,misc]
    wanted = place / "model.onnx"
    onnx.save(without_given_inputs(onnx.load(model)), wanted)
    program = load(model, dims=dims_of(model))
    shapes = (
        str(list(port.shape(program.tensors[port.tensor].shape))).replace(" ", "") + "f32"
        for port in program.inputs
    )
    return [f"{folder}/pnnx", wanted.name, f"inputshape={','.join(shapes)}", "fp16=0"]


def without_given_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that does not list constants among its inputs, as old files do."""
    constants = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model


def _mnnconvert(model: Path, wanted: Path) -> list[str]:
    # Its command tells its makers of each conversion, the module behind it does not.
    arguments = [
        "mnnconvert", "-f", "ONNX", "--modelFile", str(model.resolve()), "--MNNModel", str(wanted),
        "--bizCode", "bench",
    ]  # fmt: skip
    return [sys.executable, "-c", f"import _tools; _tools.mnnconvert({arguments!r})"]
