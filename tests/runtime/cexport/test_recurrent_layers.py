"""Layers over a sequence of ONNX in C compute what our runtime does, at each size of a range."""

from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.session import Session
from arenite.pipeline.targets.c import lower_model_for_c
from arenite.planner.rewrites.derivation import derive
from arenite.planner.sizes import Dimension
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.exported_c import Machine, compiled, exported
from support.tiny_onnx import parse, save, with_random_weights

TIMES = Dimension("n", 1, 14)
BATCH = Dimension("n", 1, 3)
STATES = ", float[1,3,5] h, float[1,3,5] c"
ROWS = {"GRU": 15, "LSTM": 20, "RNN": 5}


def layer(
    kind: str, directions: int = 1, attributes: str = "", x: str = "float[n,3,4]",
    states: str = "", given: str = "",
) -> str:  # fmt: skip
    """Return a graph of one layer of 5 units with all its outputs."""
    rows, d = ROWS[kind], directions
    outputs = "y, s, e" if kind == "LSTM" else "y, s"
    return (
        f"({x} x{states}) => ({outputs}) "
        f"<float[{d},{rows},4] w, float[{d},{rows},5] r, float[{d},{2 * rows}] b> "
        f"{{ {outputs} = {kind}<hidden_size=5{attributes}>(x, w, r, b{given}) }}"
    )


NETWORKS = {
    "gru": (TIMES, layer("GRU")),
    "gru, reset behind the product": (TIMES, layer("GRU", attributes=",linear_before_reset=1")),
    "gru, both ways": (
        TIMES,
        layer("GRU", 2, ',direction="bidirectional",linear_before_reset=1'),
    ),
    "gru, backwards": (TIMES, layer("GRU", attributes=',direction="reverse"')),
    "gru, from a state": (TIMES, layer("GRU", states=", float[1,3,5] h", given=", , h")),
    "gru of several sequences": (
        BATCH, layer("GRU", 2, ',direction="bidirectional"', x="float[6,n,4]")
    ),
    "rnn": (TIMES, layer("RNN")),
    "rnn, rectified, both ways": (
        TIMES, layer("RNN", 2, ',direction="bidirectional",activations=["Relu","Relu"]')
    ),
    "rnn, from a state, backwards": (
        TIMES,
        layer("RNN", 1, ',direction="reverse"', states=", float[1,3,5] h", given=", , h"),
    ),
    "lstm": (TIMES, layer("LSTM")),
    "lstm, both ways": (TIMES, layer("LSTM", 2, ',direction="bidirectional"')),
    "lstm, backwards": (TIMES, layer("LSTM", attributes=',direction="reverse"')),
    "lstm, from states": (TIMES, layer("LSTM", states=STATES, given=", , h, c")),
    "lstm of several sequences": (
        BATCH, layer("LSTM", 2, ',direction="bidirectional"', x="float[6,n,4]")
    ),
    "lstm beside a logistic function": (
        TIMES, layer("LSTM").replace("{ y", "{ k = Sigmoid(x) y").replace("(x, w", "(k, w")
    ),
    "running sums": (TIMES, """(float[n,3,4] x) => (y, z)
        <int64 one = {1}, int64 first = {0}, int64 last = {2}> { y = CumSum(x, first)
        a = CumSum<exclusive=1, reverse=1>(x, one) z = CumSum<reverse=1>(a, last) }"""),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_a_layer_has_the_numbers_of_our_runtime_at_each_size(name: str, tmp_path: Path) -> None:
    dimension, text = NETWORKS[name]
    path = save(tmp_path, with_random_weights(parse(text)))
    lowered = lower_model_for_c(path, Reading({"n": dimension}))
    source = lowered.compiled(derive(lowered.program, lowered.rules))
    export = export_c(source, find("best")(source.source.problem), COptions())
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    random = np.random.default_rng(1)
    with Session(path, dims={"n": dimension}) as session:
        for n in (dimension.high, 1, 2, dimension.high - 1):
            inputs = {
                port.port.name: random.standard_normal(port.tensor.shape).astype(np.float32)
                for port in export.interface.at({"n": n}).inputs
            }
            found = machine.run(inputs, {"n": n})
            for key, expected in session.run(inputs).items():
                np.testing.assert_allclose(found[key], expected, 1e-5, 1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_sequences_of_other_lengths_end_where_those_of_onnx_runtime_do(
    kind: str, direction: str, tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    count = 2 if direction == "bidirectional" else 1
    text = layer(kind, count, f',direction="{direction}"', "float[6,3,4]", ", int32[3] l", ", l")
    path = save(tmp_path, with_random_weights(parse(text)))
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    session = onnxruntime.InferenceSession(str(path))
    x = np.random.default_rng(2).standard_normal((6, 3, 4)).astype(np.float32)
    for lengths in ([6, 1, 4], [2, 6, 3]):
        inputs = {"x": x, "l": np.array(lengths, np.int32)}
        found = machine.run(inputs)
        names = [each.name for each in session.get_outputs()]
        for name, expected in zip(names, session.run(None, inputs), strict=True):
            np.testing.assert_allclose(found[name], expected, 1e-5, 1e-5)
