"""Quantised models in our native runtime beside LiteRT, TensorFlow Lite Micro, ONNX Runtime.

    python bench/quantised_models.py [--vectors avx2] [--rounds N] [--json] [MODEL ...]

Outputs are compared on the same random inputs, in quanta, the least difference of two integers
or of two numbers that are dequantised: with LiteRT's XNNPACK delegate and its reference kernels,
or with ONNX Runtime. Latency is measured in fresh processes, in turn, one thread; below 1
ours is faster. Without arguments the models are those in `../shared/models/tflite` of 8 bits,
two of `bench/zoo` as TFLite models of 8 bits, and three that `onnxruntime.quantization` makes
QDQ and QLinear models of. Those of the zoo have random weights and random calibration: they show
speed, and rounding at its worst.
With `--vectors avx2` latencies are those of all engines without AVX-512 (`harness/vectors.py`).
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from arenite.pipeline.contest.engines import ENGINES
from arenite.planner.errors import AreniteError
from arenite.runtime import Session
from arenite.runtime.targets.litert import PlannedInterpreter
from arenite.runtime.targets.tflm import export_tflm
from arenite.strategies import find
from harness import Spread, bench, emit, note, parser, table
from harness.contest import OURS, EngineError, Entry, compiled_entry, race
from harness.inputs import each_of, shared_tflite
from harness.vectors import AVX2, limited
from quantised_networks import quantised_networks
from quantised_tflite import quantised_tflite
from zoo import NETWORKS

QUANTISED = (
    "hello_world_int8", "keyword_scrambled", "kws_ref_model", "micro_speech_quantized",
    "mobilenet_v1_0.5_160_quant", "person_detect", "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq", "vww_96_int8", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip
WRITTEN = ("resnet50", "inception-v3")
CONVERTED = ("mobilenet-v2", "blazeface", "resnet50")
NUM_SEEDS = 3

Array = NDArray[Any]


@dataclass(frozen=True)
class Agreement:
    """Two sets of outputs.

    Attributes:
        quanta: Largest difference.
        share: Of the elements that differ at all.
        same_top: Whether the largest element is the same everywhere.
    """

    quanta: float
    share: float
    same_top: bool


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: Its name.
        operators: Number of steps.
        steps: How many each backend of ours runs.
        agreement: With each other runtime that runs it.
        arena: Bytes of ours, and of each other that reports its own.
        latency: Ratio of ours to that of LiteRT with XNNPACK, or of ONNX Runtime; None if that
            does not run the model.
    """

    model: str
    operators: int
    steps: dict[str, int]
    agreement: dict[str, Agreement]
    arena: dict[str, int]
    latency: Spread | None


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there; those of the zoo are written to a folder."""
    yield from shared_tflite(QUANTISED)
    for name in WRITTEN:
        path = folder / f"{name}-int8.tflite"
        path.write_bytes(quantised_tflite(NETWORKS[name]()))
        yield path
    yield from quantised_networks(folder, CONVERTED)


def measured_row(model: Path, rounds: int, vectors: str | None = None) -> Row:
    """Return what was measured of a model."""
    with tempfile.TemporaryDirectory() as folder:
        entry = compiled_entry(model, Path(folder), NUM_SEEDS)
        with Session(entry.program) as session:
            names = [port.name for port in session.inputs]
            mine = [
                list(session.run(dict(zip(names, each, strict=True))).values())
                for each in entry.inputs
            ]
        agreement = {}
        for label, run in references(model, entry.model_format):
            try:
                agreement[label] = compared(mine, [run(each) for each in entry.inputs])
            except (RuntimeError, ValueError):
                continue
        arena = {"arenite": entry.arena_bytes}
        arena |= arenas(model) if entry.model_format == "tflite" else {}
        with limited((OURS, entry.opponent)) if vectors else nullcontext():
            ratio = latency(entry, rounds)
        return Row(model.stem, entry.num_steps, entry.backends, agreement, arena, ratio)


def references(
    model: Path, kind: str
) -> Iterator[tuple[str, Callable[[list[Array]], list[Array]]]]:
    """Yield the other runtimes that run the model, by name."""
    if kind == "onnx":
        yield "onnxruntime", ENGINES[kind]["onnxruntime"](model, 1).run
        return
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    for label, resolver in (
        ("litert-xnnpack", OpResolverType.BUILTIN),
        ("litert-reference", OpResolverType.BUILTIN_REF),
    ):
        try:
            interpreter = Interpreter(str(model), experimental_op_resolver_type=resolver)
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError):
            continue
        yield label, partial(interpreted, interpreter)


def interpreted(interpreter: Any, arrays: Sequence[Array]) -> list[Array]:
    """Return what an interpreter makes of inputs."""
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def compared(mine: Sequence[Sequence[Array]], theirs: Sequence[Sequence[Array]]) -> Agreement:
    """Return how outputs agree over several runs."""
    quanta, num_different, count, same_top = 0.0, 0, 0, True
    for own, others in zip(mine, theirs, strict=True):
        for one, other in zip(own, others, strict=True):
            difference = np.abs(one.astype(np.float64) - other.astype(np.float64)) / quantum(other)
            quanta = max(quanta, float(difference.max(initial=0)))
            num_different += int((difference > 0.5).sum())
            count += difference.size
            same_top = same_top and int(one.argmax()) == int(other.argmax())
    return Agreement(round(quanta, 2), num_different / max(count, 1), same_top)


def quantum(array: Array) -> float:
    """Return the least difference between two numbers of a quantised output."""
    if array.dtype.kind != "f":
        return 1.0
    gaps = np.diff(np.unique(array))
    return float(gaps.min()) if gaps.size else 1.0


def arenas(model: Path) -> dict[str, int]:
    """Return the bytes of LiteRT's arena and of TensorFlow Lite Micro's, where they run."""
    found = {}
    try:
        stock = PlannedInterpreter(model, strategy=find("best"), keep_inputs=True).stock_bytes
        if stock is not None:
            found["litert"] = stock
    except (AreniteError, RuntimeError):
        pass
    try:
        export = export_tflm(model, find("best"), find("tflm"))
        if export.measured is not None:
            found["tflm"] = export.measured.stock.head
    except AreniteError:
        pass
    return found


def latency(entry: Entry, rounds: int) -> Spread | None:
    """Return the ratio of our latency to the other's; None if that does not run the model."""
    try:
        raced = race(entry, [entry.opponent], rounds)
    except EngineError:
        return None
    return raced[OURS].latency_to(raced[entry.opponent])


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    cells = []
    for row in rows:
        agreement = [
            f"{name}: {each.quanta:g} ({each.share:.2%}){'' if each.same_top else ', other top'}"
            for name, each in row.agreement.items()
        ]
        cells.append((
            row.model,
            ", ".join(f"{count} {backend}" for backend, count in row.steps.items()),
            "\n".join(agreement),
            str(row.operators),
            "\n".join(f"{name} {size:,}" for name, size in row.arena.items()),
            "-" if row.latency is None else row.latency.text(".2f"),
        ))  # fmt: skip
    return table(
        "Quantised models on our runtime",
        (
            "model", "steps", "quanta (share that differ)", "operators", "arena, B",
            "latency (range)",
        ),
        cells,
        num_names=3,
    )  # fmt: skip


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a model needs a fallback."""
    options = parser(__doc__, models="8-bit TFLite models, and some of the zoo", rounds=5)
    options.add_argument("--vectors", choices=[AVX2], help="the widest that engines may use")
    parsed = options.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in each_of(
            parsed.models,
            default_models(Path(folder)),
            lambda model: measured_row(model, parsed.rounds, parsed.vectors),
        ):
            rows.append(row)
            note(row.model)
    emit(parsed, rows, shown(rows))
    return int(any("onnxruntime" in row.steps for row in rows))


if __name__ == "__main__":
    sys.exit(main())
