"""Models as C source on emulated boards: RAM, flash and instructions, beside other tools."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from arenite.runtime.targets.tflm import InterpreterError
from arenite.runtime.targets.tflm import measure_arena as measure_tflm
from bench.boards.board import LARGE_M3, Board, board
from bench.boards.program import BuildError, Subject, build, exported, footprint, with_cmsis_nn
from bench.boards.run import BoardError, joined, litert_outputs, random_inputs, run, tflm_outputs
from bench.harness.contest import (
    TABLE,
    Asked,
    MissingInputsError,
    Row,
    contest,
    note,
    option,
    required,
)
from bench.harness.engines import tigris_bytes
from bench.harness.inputs import CHECKOUT, TFLITE_MODELS, shared_tflite, zoo_file

Array = NDArray[Any]
MODELS: Final = (
    "vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "person_detect",
    "mobilenet_v1_0.5_160_quant", "tf2_mobilenet_v2_1.0_224_ptq", "ad_toycar_hybrid",
)  # fmt: skip
BUDGETS: Final = {
    "vww_96_int8": 28_032, "kws_ref_model": 3_888, "pretrainedResnet_quant": 10_304,
    "person_detect": 12_288, "tf2_mobilenet_v2_1.0_224_ptq": 190_624,
}  # fmt: skip
"""The least arenas that bands of rows reach."""
M4, M7, M55 = "mps2-an386", "mps2-an500", "mps3-an547"
_LARGE: Final = 1 << 20
"""Bytes of a model that is run on one input, not on three: emulation takes its time."""
_OPTIMISE = option("--optimise", default="-O2", help="compiler option (default: %(default)s)")
_TITLE = "C source on emulated boards: bytes, and instructions of an inference"


@dataclass(frozen=True, slots=True)
class OnBoard:
    """A program on a board, in bytes, and the instructions of an inference."""

    ram: int
    arena: int
    variables: int
    stack: int
    flash: int
    text: int
    instructions: int
    outputs: bytes


def export_c(model: Path, folder: Path, *options: str) -> int:
    """Export a model as C source into a folder and return the bytes of its arena.

    Raises:
        BuildError: `arenite export` refuses the model.
    """
    done = subprocess.run(
        [sys.executable, "-m", "arenite", "export", model, "--to", "c", "-o", folder, "--json",
         *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise BuildError(done.stderr.strip())
    return int(json.loads(done.stdout)["arena_bytes"])


def on_board(target: Board, subject: Subject, folder: Path, inputs: bytes, arena: int) -> OnBoard:
    """Return the measurements of a board.

    Raises:
        BuildError: The compiler or the linker refuses.
        BoardError: The program does not end, or leaves its arena or its stack.
    """
    program = build(target, subject, folder)
    report, sizes = run(program, inputs), footprint(program)
    report.require_sound()
    variables = sizes.data + sizes.bss
    return OnBoard(
        arena + variables + report.stack, arena, variables, report.stack, sizes.flash, sizes.text,
        report.instructions, report.outputs,
    )  # fmt: skip


def distance(found: bytes, outputs: Sequence[Sequence[Array]]) -> float:
    """Return the largest difference of an output, in parts of the largest of all."""
    if found == joined(outputs):
        return 0
    worst, start = 0.0, 0
    for theirs in (array for each in outputs for array in each):
        ours = np.frombuffer(found, theirs.dtype, theirs.size, start).reshape(theirs.shape)
        start += theirs.nbytes
        differences = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        worst = max(worst, float(differences.max() / max(np.abs(theirs).max(), 1e-30)))
    return worst or 1.0


def _available(*boards: Board) -> None:
    for each in boards:
        if missing := each.missing():
            raise MissingInputsError(f"no compiler or emulator of {each.name}: {missing}")


@contest(
    {_TITLE: {
        "model": "", "RAM in all": "", "arena": "", "variables": "", "stack": "", "flash": "",
        "its text": "", "M4": "", "M55": "", "outputs": "", "TFLM, smallest arena": "",
        "against it": "+.1%", "TiGrIS": "",
    }},
    models="those of ../shared/models/tflite",
    options=[
        _OPTIMISE,
        option("--banded", action="store_true", help="only in bands of rows"),
        option("--tigris", metavar="PROGRAM", help="the program of TiGrIS"),
    ],
)  # fmt: skip
def c_source(asked: Asked) -> Iterator[Row]:
    """Models as C source on an emulated Cortex-M4 and Cortex-M55, beside other runtimes.

    Models that bands of rows make smaller run a second time, in the least arena that `--budget`
    reaches. Outputs are compared bit for bit with TensorFlow Lite Micro's interpreter, or with
    LiteRT's reference kernels where that refuses the model. RAM is the arena with graph inputs and
    outputs, `.data`, `.bss` and the stack, painted and measured; flash is instructions, weights
    and parts of the compiler's libraries. TensorFlow Lite Micro's arena is the smallest in which
    its 64-bit interpreter works, without its stack, code and variables. `--tigris` asks TiGrIS
    (the package `tigris-ml`) for the least fast and slow memory that its analyser states.
    """
    paths = required(asked.models or shared_tflite(MODELS), TFLITE_MODELS)
    _available(board(M4), board(M55))
    for path in paths:
        budgets = [0, BUDGETS[path.stem]] if path.stem in BUDGETS else [0]
        for budget in budgets[1:] if asked.given.banded else budgets:
            name = path.stem + (", in bands" if budget else "")
            try:
                yield {"model": name, **_c_row(path, budget, asked, name)}
            except (BuildError, BoardError) as error:
                note(f"{name}: {error}")
                yield {"model": name, "outputs": "not measured"}


def _c_row(path: Path, budget: int, asked: Asked, name: str) -> Row:
    with tempfile.TemporaryDirectory(prefix="arenite-") as text:
        folder = Path(text)
        arena = export_c(path, folder / "c", *(["--budget", str(budget)] if budget else []))
        inputs = random_inputs(path, 1 if path.stat().st_size > _LARGE else 3)
        try:
            reference, outputs = "TFLM", tflm_outputs(path, inputs)
        except RuntimeError:
            reference, outputs = "LiteRT", litert_outputs(path, inputs)
        subject = exported(folder / "c", optimised=(asked.given.optimise,))
        m4, m55 = (
            on_board(board(each), subject, folder / each, joined(inputs), arena)
            for each in (M4, M55)
        )
    worst = max(distance(each.outputs, outputs) for each in (m4, m55))
    tolerance = 1e-5 if any(array.dtype.kind == "f" for array in outputs[0]) else 0.0
    tflm = None
    try:
        tflm = measure_tflm(path, len(inputs[0]), 1).smallest
    except InterpreterError as error:
        note(str(error))
    asked.require(worst <= tolerance, f"{name}: {reference}'s outputs")
    asked.require(tflm is None or m4.ram < tflm, f"{name}: less RAM than TFLM's arena")
    return {
        "RAM in all": m4.ram, "arena": arena, "variables": m4.variables, "stack": m4.stack,
        "flash": m4.flash, "its text": m4.text, "M4": f"{m4.instructions / 1e6:,.1f} M",
        "M55": f"{m55.instructions / 1e6:,.1f} M",
        "outputs": f"{reference}'s" + (f" to {worst:.0e}" if worst else ""),
        "TFLM, smallest arena": tflm or "refused",
        "against it": m4.ram / tflm - 1 if tflm else None,
        "TiGrIS": tigris_bytes(asked.given.tigris, path) or None,
    }  # fmt: skip


_ENTRY: Final = re.compile(r"^void entry\((.*)\)", re.MULTILINE)


@contest(
    {"ONNX models of floats as C source, emulated Cortex-M4: bytes": {
        "model": "", "source": "", "RAM in all": "", "stack": "", "flash": "",
        "instructions": "", "from ONNX Runtime's": ".0e",
    }},
    models="a LeNet-5 of assets and a small MobileNet v1 of the zoo",
    options=[option("--onnx2c", metavar="PROGRAM", help="the program onnx2c"), _OPTIMISE],
)  # fmt: skip
def c_onnx(asked: Asked) -> Iterator[Row]:
    """ONNX models of floats as C source, ours and that of onnx2c, on an emulated Cortex-M4.

    onnx2c (github.com/kraiskil/onnx2c) is a program that you build. RAM is `.data`, `.bss`, the
    stack and the place of inputs and outputs: inside our arena, and beside onnx2c's variables,
    since its caller provides them. Outputs are compared with ONNX Runtime's. No board is measured,
    no cycle.
    """
    if asked.given.onnx2c is None:
        raise MissingInputsError("--onnx2c must name the program, built from its repository")
    _available(board(M4))
    lenet = CHECKOUT / "assets" / "digits-lenet-5.onnx"
    for path in asked.models or [lenet, zoo_file("mobilenet-v1-0.25-96", asked.folder)]:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        (port,) = session.get_inputs()
        shape = [each if isinstance(each, int) else 1 for each in port.shape]
        given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        (expected,) = (np.asarray(each) for each in session.run(None, {port.name: given}))
        found: dict[str, OnBoard] = {}
        sources: dict[str, Callable[[Path], OnBoard]] = {
            "ours": partial(_ours, path, given, asked.given.optimise),
            "onnx2c": partial(_onnx2c, path, given, expected, asked),
        }
        for source, measure in sources.items():
            try:
                with tempfile.TemporaryDirectory(prefix="arenite-") as text:
                    found[source] = each = measure(Path(text))
            except (BuildError, BoardError) as error:
                note(f"{path.name}, {source}: {error}")
                continue
            off = distance(each.outputs, [[expected]])
            if source == "ours":
                asked.require(off <= 1e-4, f"{path.name}: outputs as ONNX Runtime's")
            yield {
                "model": path.stem, "source": source, "RAM in all": each.ram, "stack": each.stack,
                "flash": each.flash, "instructions": f"{each.instructions / 1e6:,.1f} M",
                "from ONNX Runtime's": off,
            }  # fmt: skip
        no_more = "onnx2c" not in found or (
            "ours" in found and found["ours"].ram <= found["onnx2c"].ram
        )
        asked.require("ours" in found and no_more, f"{path.name}: no more RAM than onnx2c's")


def _ours(path: Path, given: Array, optimise: str, folder: Path) -> OnBoard:
    arena = export_c(path, folder / "c")
    # An image of several channels is stored with them last.
    stored = np.moveaxis(given, 1, -1) if given.ndim == 4 else given
    subject = exported(folder / "c", optimised=(optimise,))
    inputs = np.ascontiguousarray(stored).tobytes()
    return on_board(board(M4), subject, folder / "board", inputs, arena)


def _onnx2c(path: Path, given: Array, expected: Array, asked: Asked, folder: Path) -> OnBoard:
    done = subprocess.run([asked.given.onnx2c, path], capture_output=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"code {done.returncode}: {done.stderr.decode()[-200:]}")
    source, header = folder / "model.c", folder / "model.h"
    source.write_bytes(done.stdout)
    entry = _ENTRY.search(done.stdout.decode())
    assert entry is not None
    header.write_text(
        f"#include <stdint.h>\nvoid entry({entry[1]});\n"
        "static inline int model_run(uint8_t *arena)\n"
        f"{{ entry((void *)arena, (void *)(arena + {given.nbytes})); return 0; }}\n"
    )
    ports = given.nbytes + expected.nbytes
    subject = Subject(
        [source], header, "model_run(arena)", str(ports), "8", [("arena", str(given.nbytes))],
        [(f"arena + {given.nbytes}", str(expected.nbytes))],
        flags=("-std=gnu99", "-w", asked.given.optimise),
    )  # fmt: skip
    return on_board(board(M4), subject, folder / "board", given.tobytes(), ports)


BOARDS: Final = (
    (LARGE_M3, "none"), (board(M4), "dsp"), (board(M7), "dsp"), (board(M55), "mve"),
    (board("virt"), "none"), (board("virt-rvv"), "none"), (board("sim"), "none"),
)  # fmt: skip
MOST_OF_PLAIN_C: Final = 1.3
"""Instructions of ours, at most, in parts of those of CMSIS-NN's plain C."""
_BESIDE_CMSIS_NN: Final = "Our C kernels beside CMSIS-NN: instructions of an inference, and bytes"
_ON_XTENSA: Final = "Our C kernels beside CMSIS-NN on Xtensa: instructions, and bytes"
_KERNELS: Final = {
    "model": "", "processor": "", "ours": "", "in bands": "", "CMSIS-NN": "",
    "ours in parts of it": ".2f", "in bands in parts of it": ".2f", "arena": "",
    "arena in bands": "", "its arena": "", "stack": "", "stack in bands": "",
    "its stack": "", "flash": "", "its flash": "",
}  # fmt: skip


@contest(
    {_BESIDE_CMSIS_NN: _KERNELS, _ON_XTENSA: _KERNELS},
    models="those of ../shared/models/tflite",
    options=[
        option("--cmsis-nn", type=Path, metavar="FOLDER", help="your CMSIS-NN"),
        option("--board", choices=[each.name for each, _ in BOARDS], help="only this one"),
        _OPTIMISE,
    ],
)  # fmt: skip
def c_kernels(asked: Asked) -> Iterator[Row]:
    """Our C kernels and those of CMSIS-NN, by instructions on emulated boards.

    Each model is exported whole, in the least arena that bands of rows reach, and with
    `--kernels cmsis-nn`: for a Cortex-M3, Xtensa, and RISC-V with vectors and without, where
    CMSIS-NN is plain C, a Cortex-M4 and M7 with its DSP kernels, and a Cortex-M55 with its
    vectors. FOLDER has CMSIS-NN's `Include`, and in `lib` the libraries `cortex-m3.a`,
    `cortex-m4.a`, `cortex-m7.a`, `cortex-m55.a`, `rv32imac.a`, `rv32imac_zve32x.a` and
    `xtensa-lx106.a`; `--optimise` is for our source. All outputs are compared with TensorFlow Lite
    Micro's interpreter, bit for bit.
    Flash holds the linked parts of the library.
    """
    cmsis_nn: Path | None = asked.given.cmsis_nn
    if cmsis_nn is None:
        raise MissingInputsError("--cmsis-nn must name a folder with Include and lib")
    boards = [each for each in BOARDS if asked.given.board in (None, each[0].name)]
    for target, _ in boards:
        library = cmsis_nn / "lib" / f"{target.processor.lower()}.a"
        if missing := target.missing() or ("" if library.is_file() else f"there is no {library}"):
            raise MissingInputsError(f"{target.name}: {missing}")
    for path in required(asked.models or shared_tflite(MODELS[:4]), TFLITE_MODELS):
        inputs = random_inputs(path, 1)
        expected = joined(tflm_outputs(path, inputs))
        budget = BUDGETS.get(path.stem)
        banded = ["--budget", str(budget)] if budget else None
        with tempfile.TemporaryDirectory(prefix="arenite-") as text:
            sources = _Sources(path, Path(text), asked)
            for target, extension in boards:
                theirs = ["--kernels", "cmsis-nn", "--extension", extension]
                found = [
                    each if each is None else sources.on(target, each, joined(inputs))
                    for each in ([], banded, theirs)
                ]
                label = f"{path.stem}, {target.processor}"
                yield _kernels_row(label, extension, found, expected, asked)


@dataclass(slots=True)
class _Sources:
    """A model as C source by several options, each exported once."""

    path: Path
    folder: Path
    asked: Asked
    arenas: dict[str, int] = field(default_factory=dict)

    def on(self, target: Board, options: Sequence[str], inputs: bytes) -> OnBoard:
        """Return the measurements of the model, exported with options, on a board."""
        name = "".join(options) or "whole"
        source = self.folder / name
        if name not in self.arenas:
            self.arenas[name] = export_c(self.path, source, *options)
        subject = exported(source, optimised=(self.asked.given.optimise,))
        if "--kernels" in options:
            subject = with_cmsis_nn(subject, target, self.asked.given.cmsis_nn)
        made = self.folder / f"{target.name}-{name}"
        return on_board(target, subject, made, inputs, self.arenas[name])


def _kernels_row(
    label: str, extension: str, found: Sequence[OnBoard | None], expected: bytes, asked: Asked
) -> Row:
    ours, banded, theirs = found
    assert ours is not None
    assert theirs is not None
    ratio = ours.instructions / theirs.instructions
    right = all(each is None or each.outputs == expected for each in found)
    asked.require(right, f"{label}: the interpreter's bits")
    most = MOST_OF_PLAIN_C if extension == "none" else 1
    asked.require(ratio <= most, f"{label}: {ratio:.2f} of CMSIS-NN's instructions")
    model, processor = label.split(", ")
    return {
        TABLE: _ON_XTENSA if processor.startswith("Xtensa") else _BESIDE_CMSIS_NN,
        "model": model, "processor": f"{processor}, {extension}",
        "ours": _millions(ours), "in bands": _millions(banded) if banded else "",
        "CMSIS-NN": _millions(theirs), "ours in parts of it": ratio,
        "in bands in parts of it":
            banded.instructions / theirs.instructions if banded else None,
        "arena": ours.arena, "arena in bands": banded.arena if banded else None,
        "its arena": theirs.arena, "stack": ours.stack,
        "stack in bands": banded.stack if banded else None, "its stack": theirs.stack,
        "flash": ours.flash, "its flash": theirs.flash,
    }  # fmt: skip


def _millions(found: OnBoard) -> str:
    return f"{found.instructions / 1e6:,.2f} M"
