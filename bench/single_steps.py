"""Operators that networks have few of, beside ONNX Runtime: where ours are slower.

    python bench/single_steps.py [--rounds N] [--json] [STEP ...]

Models of one operator of floats, random inputs and weights. Both run in one process, one thread,
in turn, on processor time; a latency is the median over the rounds of the ratio of ours to ONNX
Runtime's, so below 1 ours is faster. Ours takes the time to copy inputs in and outputs out too,
which changes the order of an image's axes; a network pays that once, not for each step. So the
step alone stands beside it.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from rich.table import Table

from arenite.pipeline.session import Session
from arenite.runtime.targets.onnxruntime import stock_options, stock_session
from arenite.strategies import find
from harness import (
    Spread,
    bench,
    chosen,
    emit,
    interleaved,
    mean_processor_seconds,
    note,
    paired_ratios,
    parser,
    table,
)

STEPS: Mapping[str, str] = {
    "sigmoid": "(float[1,64,112,112] x) => (y) { y = Sigmoid(x) }",
    "tanh": "(float[1,64,112,112] x) => (y) { y = Tanh(x) }",
    "elu": "(float[1,64,112,112] x) => (y) { y = Elu(x) }",
    "erf": "(float[1,64,112,112] x) => (y) { y = Erf(x) }",
    "hard-swish": "(float[1,64,112,112] x) => (y) { y = HardSwish(x) }",
    "softmax": "(float[512,1000] x) => (y) { y = Softmax(x) }",
    "transposed-2-stride-2": "(float[1,128,64,64] x, float[128,64,2,2] w) => (y)"
    " { y = ConvTranspose<strides=[2,2]>(x, w) }",
    "transposed-3-stride-2": "(float[1,128,32,32] x, float[128,64,3,3] w) => (y)"
    " { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w) }",
    "transposed-4-stride-2": "(float[1,256,16,16] x, float[256,128,4,4] w) => (y)"
    " { y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
    "max-pool-3-stride-2": "(float[1,64,112,112] x) => (y)"
    " { y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x) }",
    "average-pool-3": "(float[1,192,35,35] x) => (y)"
    " { y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }",
}
"""As ONNX's text; `w` is a constant."""

MOST_DIFFERENCE = 1e-4
_ROUND_S = 0.03
_HEAD = '<ir_version: 8, opset_import: ["": 17]> step '


@dataclass(frozen=True)
class Row:
    """One operator.

    Attributes:
        step: Its name.
        latency: Ratio of ours to ONNX Runtime's.
        step_alone: The same without copies of inputs and outputs.
        milliseconds: Median of ours.
        their_milliseconds: Of ONNX Runtime's.
        difference: Largest difference of the outputs, relative to the largest number in them.
    """

    step: str
    latency: Spread
    step_alone: Spread
    milliseconds: float
    their_milliseconds: float
    difference: float


def model_of(text: str) -> onnx.ModelProto:
    """Return a model whose input `w`, if it has one, is a random constant."""
    model = onnx.parser.parse_model(_HEAD + text)
    given = [each for each in model.graph.input if each.name == "w"]
    for each in given:
        model.graph.input.remove(each)
        shape = [size.dim_value for size in each.type.tensor_type.shape.dim]
        values = np.random.default_rng(1).standard_normal(shape).astype(np.float32) / 32
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    return model


def measured_row(name: str, folder: Path, rounds: int) -> Row:
    """Return what was measured of an operator."""
    path = folder / f"{name}.onnx"
    onnx.save(model_of(STEPS[name]), path)
    theirs = stock_session(path, stock_options(num_threads=1))
    with Session(path, strategy=find("best")) as session:
        (port,) = session.inputs
        feeds = {"x": np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)}
        own, other = session.run(feeds)["y"], theirs.run(None, feeds)[0]
        port.view[...] = feeds["x"]
        runs: Mapping[str, Callable[[], object]] = {
            "ours": partial(session.run, feeds, copy=False),
            "alone": session.invoke,
            "theirs": partial(theirs.run, None, feeds),
        }
        seconds = interleaved(
            {way: partial(mean_processor_seconds, run, _ROUND_S) for way, run in runs.items()},
            rounds,
        )
    row = Row(
        name,
        paired_ratios(seconds["ours"], seconds["theirs"]),
        paired_ratios(seconds["alone"], seconds["theirs"]),
        1000 * statistics.median(seconds["ours"]),
        1000 * statistics.median(seconds["theirs"]),
        float(np.abs(own - other).max() / np.abs(other).max()),
    )
    note(f"{name}: {row.latency.median:.2f}, the step alone {row.step_alone.median:.2f}")
    return row


def shown(rows: Sequence[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Single operators, relative to ONNX Runtime",
        ("step", "latency (range)", "the step alone (range)", "ms", "theirs", "difference"),
        (
            (
                row.step,
                row.latency.text(".2f"),
                row.step_alone.text(".2f"),
                f"{row.milliseconds:.3f}",
                f"{row.their_milliseconds:.3f}",
                f"{row.difference:.0e}",
            )
            for row in rows
        ),
        num_names=1,
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if an output is further off than 1e-4."""
    options = parser(__doc__, rounds=9)
    options.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parsed = options.parse_args(arguments)
    steps = chosen(parsed.steps, STEPS, "step")
    with tempfile.TemporaryDirectory() as folder:
        rows = [measured_row(name, Path(folder), parsed.rounds) for name in steps]
    emit(parsed, rows, shown(rows))
    return int(any(row.difference > MOST_DIFFERENCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
