"""Models over time on the rows of a hop, beside the same models on whole windows."""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_model
from arenite.pipeline.making.exporting import CRequest, write_c
from arenite.pipeline.making.hops import StreamedModel, stream_model
from arenite.pipeline.making.programs import random_array, session_by_plan
from arenite.planner import TensorKind
from arenite.runtime.rewrites import Hops, Kernels, Padding
from arenite.strategies import find
from bench.boards.board import Board, board
from bench.boards.program import build, exported, footprint
from bench.boards.run import joined, run
from bench.harness.contest import TABLE, Asked, Row, contest, note, option
from bench.harness.inputs import SHARED_ONNX, SHARED_TFLITE, zoo_file

Feeds: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Case:
    """A model, and the stream that it runs on.

    Attributes:
        is_padded: Whether layers pad each window, so that rows at its borders are made again.
    """

    name: str
    path: Path
    hops: Hops
    is_padded: bool = False


def _cases(folder: Path) -> Iterator[_Case]:
    def zoo(label: str, name: str, hops: Hops, *, is_padded: bool = False) -> _Case:
        return _Case(label, zoo_file(name, folder), hops, is_padded)

    def real(label: str, stem: str, hops: Hops, *, is_padded: bool = False) -> Iterator[_Case]:
        path = SHARED_TFLITE / f"{stem}.tflite"
        if path.is_file():
            yield _Case(label, path, hops, is_padded)
        else:
            note(f"{label}: left out: {stem}.tflite is not in {SHARED_TFLITE}")

    late = Padding.STREAM
    frames = "serving_default_input_1:0"
    yield from real("wake word of MLPerf Tiny, int8", "str_ww_ref_model", Hops(frames, 1, 3))
    yield from real("the same, int8, in 3 parts", "str_ww_ref_model", Hops(frames, 1, 3, parts=3))
    yield from real("the same, int8, a frame a hop", "str_ww_ref_model", Hops(frames, 1, 1))
    yield zoo("the same layers, floats", "wake-word", Hops("frames", 2, 3))
    yield zoo("the same, a frame a hop", "wake-word", Hops("frames", 2, 1))
    yield from real("keyword spotting of MLPerf Tiny, int8", "kws_ref_model",
                    Hops("input_1", 1, 4, late))  # fmt: skip
    yield from real("the same, each window padded", "kws_ref_model", Hops("input_1", 1, 4),
                    is_padded=True)  # fmt: skip
    yield zoo("noise suppression, TCN", "temporal", Hops("sound", 2, 800, late))
    yield zoo("the same, in 10 parts", "temporal", Hops("sound", 2, 800, late, 10))
    yield zoo("the same, each window padded", "temporal", Hops("sound", 2, 800), is_padded=True)
    yield zoo("the same, hops of 160 samples", "temporal", Hops("sound", 2, 160), is_padded=True)
    yield zoo("vocoder, HiFi-GAN V2", "vocoder", Hops("features", 2, 4, late))
    yield zoo("the same, each window padded", "vocoder", Hops("features", 2, 4), is_padded=True)
    yield zoo("speech, two GRU layers", "gru", Hops("frames", 0, 10, late))
    yield zoo("heart beats of three leads", "heart-beats", Hops("leads", 2, 50))
    yield zoo("bird song, an average over the window", "bird-song", Hops("sound", 2, 16_000))
    yield zoo("music, TCN", "music", Hops("keys", 2, 15, late))


@dataclass(frozen=True, slots=True)
class _WithStates:
    """A model that runs on a stream as it is, and the runtime that it is compared with.

    Attributes:
        fed: Inputs that are states, each with the output that is its next value.
        overlap: Samples of the stream that a run reads again; 0 where a run reads one frame.
        a_second: Runs of a second.
        peer: Makes outputs by name of inputs by name.
    """

    name: str
    path: Path
    reading: Reading
    fed: Mapping[str, str]
    overlap: int
    a_second: float
    peer: Callable[[Path], Callable[[Feeds], Feeds]]


def _with_states() -> Iterator[_WithStates]:
    sizes = Reading(dims={"batch": 1, "sequence": 576}, shapes={"state": (2, 1, 128)})
    found = (
        _WithStates("voice activity, Silero, floats; ONNX Runtime",
                    SHARED_ONNX / "silero_vad_16k_op15.onnx", sizes, {"state": "stateN"}, 64,
                    16_000 / 512, _onnxruntime),
        _WithStates("noise suppression, DTLN's first network, weights of 8 bits; LiteRT",
                    SHARED_TFLITE / "dtln_quant_1.tflite", Reading(), {"input_3": "Identity_1"},
                    0, 16_000 / 128, _litert),
        _WithStates("the same, int8; LiteRT", SHARED_TFLITE / "dtln_noise_suppression.tflite",
                    Reading(), {}, 0, 16_000 / 128, _litert),
    )  # fmt: skip
    for case in found:
        if case.path.is_file():
            yield case
        else:
            note(f"{case.name}: left out: {case.path.name} is not there")


def _onnxruntime(path: Path) -> Callable[[Feeds], Feeds]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(None, dict(feeds)), strict=True))


def _litert(path: Path) -> Callable[[Feeds], Feeds]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()

    def run_once(feeds: Feeds) -> Feeds:
        for each in interpreter.get_input_details():
            interpreter.set_tensor(each["index"], feeds[each["name"]])
        interpreter.invoke()
        return {
            each["name"]: interpreter.get_tensor(each["index"])
            for each in interpreter.get_output_details()
        }

    return run_once


_ON_THIS_MACHINE = "Models on a stream"
_BY_HOP = "Hops of one model"
_STATEFUL = "Models with states"
_ON_A_BOARD = "C source on an emulated Cortex-M4"


@contest(
    {
        _ON_THIS_MACHINE: {
            "model": "", "window": "", "hop": "", "padding": "", "multiply-adds of a hop": "",
            "of the window": "", "ratio": ".1f", "arena, B": "", "states, B": "",
            "arena of the window, B": "", "rows late": ".1f", "compared": "", "equal": "",
            "same class": "", "difference": ".1e",
        },
        _BY_HOP: {
            "model": "", "hop": "", "multiply-adds of a hop": "", "of a window's rows": "",
            "arena, B": "", "states, B": "",
        },
        _STATEFUL: {
            "model": "", "multiply-adds of a run": "", "runs of a second": ".2f",
            "of a second again": "", "arena, B": "", "states, B": "", "compared": "",
            "equal": "", "difference": ".1e",
        },
        _ON_A_BOARD: {
            "model": "", "window": "", "hop": "", "RAM of a hop": "", "RAM of the window": "",
            "flash of a hop": "", "flash of the window": "", "instructions of a hop": "",
            "instructions of the window": "", "ratio": ".1f", "compared": "", "equal": "",
        },
    },
    options=[option("--hops", type=int, default=1000, metavar="N", help="hops of each model")],
)  # fmt: skip
def streams(asked: Asked) -> Iterator[Row]:
    """Bytes and multiply-adds of models on a stream, and their outputs over many hops.

    Outputs are compared with those of the program of the whole window at each hop, once a window
    has been read; direct kernels compute both. Where outputs are late those are earlier rows of
    the window, or, of an output without rows, a window that ends earlier. The difference is the
    root of the mean square, over that of the outputs. Inputs are random.

    Models with states run on a stream as they are: each run reads the states that the one before
    has left, in our runtime and in the other. To compute the runs of a second again, from first
    states on, takes as many times the multiply-adds.

    Models of 8 bits also run as C source on an emulated Cortex-M4, where its compiler and emulator
    are. RAM is the arena and the stack, painted and measured. Outputs of 100 hops are compared
    with our program of a hop on this machine.

    The class of a classifier is its highest output.
    """
    yield from _rows_by_hop(asked.folder)
    for stateful in _with_states():
        yield _row_with_states(stateful, asked)
    m4 = board("mps2-an386")
    for case in _cases(asked.folder):
        reading = Reading(hops=case.hops)
        found = stream_model(case.path, reading, kernels=Kernels.DIRECT)
        compared, equal, same_class, difference = _compared(found, asked.given.hops)
        streamed = found.streamed
        if case.is_padded:
            asked.require(difference < _ROUNDING, f"{case.name}: outputs are those of the window")
        elif found.is_exact:
            asked.require(equal == compared, f"{case.name}: outputs are those of the window")
            share = streamed.window / case.hops.rows
            asked.require(
                found.multiply_adds * min(share / 2, 5) <= found.window_multiply_adds,
                f"{case.name}: a hop takes few multiply-adds",
            )
        asked.require(
            case.is_padded or found.built.arena_bytes <= found.window.arena_bytes,
            f"{case.name}: the arena of a hop is no larger than that of the window",
        )
        if case.path.suffix == ".tflite" and (missing := m4.missing()):
            note(f"{case.name}: not run on a board: {missing}")
        elif case.path.suffix == ".tflite":
            yield _row_on_board(case, found, m4, asked)
        yield {
            TABLE: _ON_THIS_MACHINE, "model": case.name, "window": streamed.window,
            "hop": case.hops.rows,
            "padding": str(case.hops.padding), "multiply-adds of a hop": found.multiply_adds,
            "of the window": found.window_multiply_adds,
            "ratio": found.window_multiply_adds / found.multiply_adds,
            "arena, B": found.built.arena_bytes, "states, B": streamed.state_bytes,
            "arena of the window, B": found.window.arena_bytes, "rows late": float(streamed.late),
            "compared": compared, "equal": equal, "same class": same_class,
            "difference": difference,
        }  # fmt: skip


def _rows_by_hop(folder: Path) -> Iterator[Row]:
    """Yield what hops of different lengths take: fewer bytes, or fewer multiply-adds a second."""
    for name, stream, lengths in (
        ("wake-word", Hops("frames", 2, 1), (1, 2, 3, 5, 6, 10, 15)),
        ("temporal", Hops("sound", 2, 1), (80, 160, 400, 800, 2000)),
    ):
        for rows in lengths:
            reading = Reading(hops=replace(stream, rows=rows))
            found = stream_model(zoo_file(name, folder), reading, kernels=Kernels.DIRECT)
            window = found.streamed.window
            yield {
                TABLE: _BY_HOP, "model": name, "hop": rows,
                "multiply-adds of a hop": found.multiply_adds,
                "of a window's rows": found.multiply_adds * window // rows,
                "arena, B": found.built.arena_bytes, "states, B": found.streamed.state_bytes,
            }  # fmt: skip


def _row_with_states(case: _WithStates, asked: Asked) -> Row:
    """Return what a run of a model with states takes, and outputs beside another runtime's."""
    built = build_model(case.path, case.reading)
    program = built.compiled.program
    shapes = {each.name: each.shape(program.tensors[each.tensor].shape) for each in program.inputs}
    dtypes = {
        each.name: np.dtype(program.tensors[each.tensor].dtype.label) for each in program.inputs
    }
    (source,) = (name for name in shapes if name not in {*case.fed, "sr"})
    states = sum(each.size for each in program.tensors.values() if each.kind is TensorKind.STATE)
    states += sum(
        program.tensors[each.tensor].size for each in program.inputs if each.name in case.fed
    )
    generator, peer = np.random.default_rng(0), case.peer(case.path)
    first = {name: np.zeros(shapes[name], dtypes[name]) for name in case.fed}
    ours, theirs = first, first
    frame = np.zeros(shapes[source], dtypes[source])
    equal, apart, total = 0, 0.0, 0.0
    with session_by_plan(built.compiled, built.plan) as session:
        for _ in range(asked.given.hops):
            drawn = random_array(generator, dtypes[source], shapes[source])
            if case.overlap:
                drawn[..., : case.overlap] = frame[..., -case.overlap :]
            frame = drawn
            feeds = {source: frame, **({"sr": np.array(16_000)} if "sr" in shapes else {})}
            found, expected = session.run(feeds | ours), peer(feeds | theirs)
            equal += all(np.array_equal(each, expected[name]) for name, each in found.items())
            for name in found.keys() - case.fed.values():
                other = expected[name].astype(np.float64)
                apart += float(np.square(found[name] - other).sum())
                total += float(np.square(other).sum())
            ours, theirs = (
                {name: outputs[made].reshape(shapes[name]) for name, made in case.fed.items()}
                for outputs in (found, expected)
            )
    difference = math.sqrt(apart / total)
    asked.require(difference < _MOST_APART, f"{case.name}: outputs are those of the other runtime")
    return {
        TABLE: _STATEFUL, "model": case.name, "multiply-adds of a run": program.multiply_adds,
        "runs of a second": case.a_second,
        "of a second again": round(case.a_second) * program.multiply_adds,
        "arena, B": built.arena_bytes, "states, B": states, "compared": asked.given.hops,
        "equal": equal, "difference": difference,
    }  # fmt: skip


_MOST_APART = 5e-2
"""Difference of outputs: LiteRT rounds inputs of layers with weights of 8 bits, we do not."""


_ROUNDING = 1e-6
"""Difference of outputs, where a transposed convolution adds its results in other blocks."""
_HOPS_ON_BOARD = 100


def _row_on_board(case: _Case, found: StreamedModel, m4: Board, asked: Asked) -> Row:
    """Return what a hop and a window take as C source on a board."""
    port = found.built.compiled.program.inputs[0]
    tensor = found.built.compiled.program.tensors[port.tensor]
    generator = np.random.default_rng(0)
    dtype = np.dtype(tensor.dtype.label)
    frames = [random_array(generator, dtype, tensor.shape) for _ in range(_HOPS_ON_BOARD)]
    hop, flash = _on_board(case.path, case.hops, m4, asked.folder, frames)
    size = math.prod(tensor.shape) // case.hops.rows * found.streamed.window
    zeros = np.zeros(size, dtype)
    window, window_flash = _on_board(case.path, None, m4, asked.folder, [zeros])
    (output,) = found.built.compiled.program.outputs
    made = np.frombuffer(hop.outputs, dtype).reshape(_HOPS_ON_BOARD, -1)
    with session_by_plan(found.built.compiled, found.built.plan) as session:
        ours = [session.run({port.name: each})[output.name].reshape(-1) for each in frames]
    equal = sum(np.array_equal(one, other) for one, other in zip(made, ours, strict=True))
    asked.require(equal == _HOPS_ON_BOARD, f"{case.name}: the board computes what we do")
    asked.require(
        case.hops.parts == 1 or hop.ram <= window.ram,
        f"{case.name}: a hop in parts takes no more RAM than the window",
    )
    return {
        TABLE: _ON_A_BOARD, "model": case.name, "window": found.streamed.window,
        "hop": case.hops.rows, "RAM of a hop": hop.ram, "RAM of the window": window.ram,
        "flash of a hop": flash, "flash of the window": window_flash,
        "instructions of a hop": hop.instructions,
        "instructions of the window": window.instructions,
        "ratio": window.instructions / hop.instructions, "compared": _HOPS_ON_BOARD,
        "equal": equal,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a board measured: bytes, instructions of a run, outputs of all runs."""

    ram: int
    instructions: int
    outputs: bytes


def _on_board(
    path: Path, hops: Hops | None, m4: Board, folder: Path, frames: Sequence[NDArray[Any]]
) -> tuple[_Measured, int]:
    """Return what a board measures of some runs, and the flash that it takes."""
    with tempfile.TemporaryDirectory(dir=folder) as text:
        source = Path(text) / "c"
        request = CRequest(path, source, Reading(hops=hops), find("best"), None)
        exported_as = write_c(request)
        program = build(m4, exported(source), Path(text) / "board")
        report = run(program, joined([[each] for each in frames]))
        report.require_sound()
        taken = footprint(program)
        ram = exported_as.export.arena_bytes + taken.variables + report.stack
        return _Measured(ram, report.instructions, report.outputs), taken.flash


def _compared(found: StreamedModel, num_hops: int) -> tuple[int, int, int | None, float]:
    """Return how many hops were compared, were equal, and had the same class; and the difference.

    The class is the highest output; None where an output has rows or is one number.
    """
    hops, window, late = found.streamed.hops, found.streamed.window, found.streamed.late
    program = found.window.compiled.program
    (port,) = program.inputs
    dtype, shape = (
        np.dtype(program.tensors[port.tensor].dtype.label),
        list(port.shape(program.tensors[port.tensor].shape)),
    )
    zeros = {
        each.name: 0 if stated is None else stated.zero_point
        for each in program.outputs
        for stated in [program.tensors[each.tensor].quantisation]
    }
    made_of_hop = found.built.compiled.program
    (output,), (whole_output,) = made_of_hop.outputs, program.outputs
    has_rows = (
        made_of_hop.tensors[output.tensor].num_elements
        != program.tensors[whole_output.tensor].num_elements
    )
    shape[hops.axis] = num_hops * hops.rows
    frames = np.moveaxis(random_array(np.random.default_rng(0), dtype, tuple(shape)), hops.axis, 0)
    is_class = not has_rows and made_of_hop.tensors[output.tensor].num_elements > 1
    compared, equal, same_class, apart, total = 0, 0, 0, 0.0, 0.0
    with (
        session_by_plan(found.built.compiled, found.built.plan) as stream,
        session_by_plan(found.window.compiled, found.window.plan) as whole,
    ):
        for run in range(1, num_hops + 1):
            end = run * hops.rows
            new = np.moveaxis(frames[end - hops.rows : end], 0, hops.axis)
            made = stream.run({port.name: new})
            if not has_rows:
                end -= math.ceil(late)
            if run < found.streamed.warm_up or end < window:
                continue
            read = np.moveaxis(frames[end - window : end], 0, hops.axis)
            expected = {
                name: _newest(array, made[name].shape, late / hops.rows if has_rows else 0)
                for name, array in whole.run({port.name: read}).items()
            }
            compared += 1
            equal += all(np.array_equal(array, made[name]) for name, array in expected.items())
            same_class += all(
                array.argmax() == made[name].argmax() for name, array in expected.items()
            )
            for name, array in expected.items():
                apart += float(np.square(array.astype(np.float64) - made[name]).sum())
                total += float(np.square(array.astype(np.float64) - zeros[name]).sum())
    difference = math.sqrt(apart / total) if total else apart
    return compared, equal, same_class if is_class else None, difference


def _newest(array: NDArray[Any], shape: Sequence[int], late: Fraction | int) -> NDArray[Any]:
    """Return the newest rows of an output, as many as a hop makes, but for some hops."""
    for axis, (have, made) in enumerate(zip(array.shape, shape, strict=True)):
        if have != made:
            end = have - math.ceil(late * made)
            return np.take(array, range(end - made, end), axis=axis)
    return array
