"""Quantised models in our native runtime beside LiteRT, TensorFlow Lite Micro, ONNX Runtime.

    python bench/quantised_models.py [--rounds N] [--json] [MODEL ...]

Outputs are compared on the same random inputs, in quanta, the least difference of two integers
or of two numbers that are dequantised: with LiteRT's XNNPACK delegate and its reference kernels,
or with ONNX Runtime. Latency is measured in fresh processes, turn by turn, one thread; below 1
ours is faster. Without arguments the models are those in `../shared/models/tflite` of 8 bits,
and two of `bench/zoo` that `onnxruntime.quantization` makes QDQ and QLinear models of, with
random weights and random calibration: these show speed, and rounding at its worst.
"""

import argparse
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from arenite.cli.commands.bench.engines import ENGINES, OURS
from arenite.cli.commands.bench.rounds import Contest, EngineError, measure, ours
from arenite.cli.planning.programs import build_program, random_inputs
from arenite.planner.errors import AreniteError
from arenite.planner.importers import model_format
from arenite.runtime.session import Session
from arenite.runtime.targets.litert import PlannedInterpreter
from arenite.runtime.targets.tflm.export import export_tflm
from arenite.strategies import find
from zoo import NETWORKS

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"
QUANTISED = (
    "hello_world_int8", "keyword_scrambled", "kws_ref_model", "micro_speech_quantized",
    "mobilenet_v1_0.5_160_quant", "person_detect", "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq", "vww_96_int8", "deeplabv3_mnv2_dm05_pascal_quant",
)  # fmt: skip
CONVERTED = ("mobilenet-v2", "blazeface")
SECONDS = 0.5
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
        operators: How many steps.
        steps: How many each backend of ours runs.
        agreement: With each other runtime that runs it.
        arena: Bytes of ours, and of each other that says.
        latency: Ours to that of LiteRT with XNNPACK, or of ONNX Runtime; None if it fails.
    """

    model: str
    operators: int
    steps: dict[str, int]
    agreement: dict[str, Agreement]
    arena: dict[str, int]
    latency: float | None


class RandomCalibration:
    """What `onnxruntime.quantization` reads its inputs from."""

    def __init__(self, model: onnx.ModelProto) -> None:
        generator = np.random.default_rng(0)
        value = model.graph.input[0]
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        self._feeds = iter(
            [{value.name: generator.uniform(-1, 1, shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> dict[str, Array] | None:
        """Return the next inputs."""
        return next(self._feeds, None)


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there; those of ONNX are written to a folder."""
    for name in QUANTISED:
        path = SHARED / f"{name}.tflite"
        if path.is_file():
            yield path
    yield from quantised_networks(folder, CONVERTED)


def quantised_networks(folder: Path, networks: Sequence[str]) -> Iterator[Path]:
    """Yield networks of the zoo as QDQ models, signed and unsigned, and as QLinear ones.

    They are written to a folder, each when it is asked for.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    logging.disable(logging.WARNING)
    for name in networks:
        model = NETWORKS[name]()
        source = folder / f"{name}.onnx"
        onnx.save(model, source)
        for label, form, activations, by_channel in (
            ("qdq-int8", QuantFormat.QDQ, QuantType.QInt8, True),
            ("qdq-uint8", QuantFormat.QDQ, QuantType.QUInt8, True),
            ("qlinear", QuantFormat.QOperator, QuantType.QUInt8, False),
        ):
            path = folder / f"{name}-{label}.onnx"
            quantize_static(
                source, path, RandomCalibration(model), quant_format=form,
                activation_type=activations, weight_type=QuantType.QInt8, per_channel=by_channel,
            )  # fmt: skip
            yield path


def measured_row(model: Path, rounds: int) -> Row:
    """Return what was measured of a model."""
    kind = model_format(model)
    opponent = {"onnx": "onnxruntime", "tflite": "litert-xnnpack"}[kind]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "model.arena"
        lowered = build_program(model, program, dims={}, shapes={}).lowered
        inputs = [list(random_inputs(lowered, seed).values()) for seed in range(NUM_SEEDS)]
        with Session(program) as session:
            steps = dict(Counter(session.backends()))
            names = [port.name for port in session.inputs]
            mine = [
                list(session.run(dict(zip(names, each, strict=True))).values()) for each in inputs
            ]
            arena = {"arenite": session.arena_bytes}
        agreement = {}
        for label, run in references(model, kind):
            try:
                agreement[label] = compared(mine, [run(each) for each in inputs])
            except (RuntimeError, ValueError):
                continue
        np.savez(Path(folder) / "inputs.npz", *inputs[0])
        contest = Contest(
            kind, {OURS: program, opponent: model}, Path(folder) / "inputs.npz", 1, SECONDS
        )
        arena |= arenas(model) if kind == "tflite" else {}
        return Row(
            model.stem, len(lowered.steps), steps, agreement, arena, latency(contest, rounds)
        )


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


def latency(contest: Contest, rounds: int) -> float | None:
    """Return our latency to the other's, the median of pairs."""
    try:
        measured = measure(contest, rounds, lambda _number, _engine: None)
    except EngineError:
        return None
    own = ours(measured)
    assert own is not None
    return 1 / next(each for each in measured if each is not own).ratio(own)


def table(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    found = Table("model", "operators", "steps", "quanta (share that differ)", "arena", "latency")
    for row in rows:
        agreement = [
            f"{name}: {each.quanta:g} ({each.share:.2%}){'' if each.same_top else ', other top'}"
            for name, each in row.agreement.items()
        ]
        found.add_row(
            row.model,
            str(row.operators),
            ", ".join(f"{count} {backend}" for backend, count in row.steps.items()),
            "\n".join(agreement),
            "\n".join(f"{name} {size:,}" for name, size in row.arena.items()),
            "-" if row.latency is None else f"{row.latency:.2f}",
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a model needs a fallback."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models or default_models(Path(folder)):
            rows.append(measured_row(model, options.rounds))
            print(model.stem, file=sys.stderr)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        Console(width=160).print(table(rows))
    return int(any("onnxruntime" in row.steps for row in rows))


if __name__ == "__main__":
    sys.exit(main())
