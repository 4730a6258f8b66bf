"""Real networks, every tensor where a plan puts it: what is read is what was written.

ONNX Runtime computes each tensor once. Then the steps are replayed over one arena: each
reads its operands, which must hold the very bits, and writes its results.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind
from arenite.planner.rewrites.aliasing.rewrite import explain, share
from arenite.planner.tensors import TensorKind
from arenite.strategies import find

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = ("light_squeezenet", "light_shufflenet", "light_densenet121", "light_inception_v2")


def computed(path: Path, graph: Program) -> dict[str, bytes]:
    """Return the bytes of every tensor that a run makes or is given."""
    model = onnx.load(path)
    random = np.random.default_rng(0)
    feeds = {
        name: random.standard_normal(graph.tensors[name].shape).astype(np.float32)
        for name in graph.input_tensors
    }
    names = [name for operator in graph.steps for name in operator.writes]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results = dict(zip(names, session.run(names, feeds), strict=True))
    return {name: value.tobytes() for name, value in (feeds | results).items()}


class Replay:
    """One arena and what each tensor in it must hold."""

    def __init__(self, graph: Program, expected: Mapping[str, bytes]) -> None:
        problem = liveness(graph)
        plan = find("greedy-by-size")(problem)
        self.memory = bytearray(plan.height)
        self._offsets = {
            record.name: offset
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        }
        self._graph = graph
        self._expected = expected

    def write(self, name: str) -> None:
        self.memory[self._extent(name)] = self._expected[name]

    def holds(self, name: str) -> bool:
        return self.memory[self._extent(name)] == self._expected[name]

    def _extent(self, name: str) -> slice:
        root, offset = self._graph.root(name)
        begin = self._offsets[root] + offset
        return slice(begin, begin + self._graph.tensors[name].size)


def moves_nothing(graph: Program, operator: Step) -> bool:
    """Tell whether the operator finds its result in place already."""
    results = [graph.root(name)[0] for name in operator.writes]
    operands = [graph.root(name)[0] for name in operator.reads if name in graph.tensors]
    return operator.operator.label in ("Concat", "Reshape", "Split", "Dropout") and all(
        operand == results[0]
        for name, operand in zip(operator.reads, operands, strict=True)
        if graph.tensors[name].kind is not TensorKind.CONSTANT
    )


@pytest.mark.parametrize("network", NETWORKS)
def test_every_operand_holds_the_bits_that_were_written(network):
    path = LIGHT / f"{network}.onnx"
    plain = read_onnx(path)
    graph = share(plain, SAFE_KINDS)
    expected = computed(path, plain)
    replay = Replay(graph, expected)
    num_found = 0
    for name in graph.input_tensors:
        replay.write(name)
    for operator in graph.steps:
        for name in operator.reads:
            if graph.tensors[name].kind is not TensorKind.CONSTANT:
                assert replay.holds(name), (operator.name, name)
        if moves_nothing(graph, operator):
            num_found += 1
            assert all(map(replay.holds, operator.writes)), operator.name
        for name in operator.writes:
            replay.write(name)
    assert all(map(replay.holds, graph.output_tensors))
    assert num_found > 0


@pytest.mark.parametrize(
    ("network", "kind"),
    [
        ("light_densenet121", AliasKind.IN_PLACE),
        ("light_squeezenet", AliasKind.CONCAT),
        ("light_shufflenet", AliasKind.VIEWS),
    ],
)
def test_each_kind_pays_on_a_named_network(network, kind):
    graph = read_onnx(LIGHT / f"{network}.onnx")
    with_it = explain(graph, SAFE_KINDS)
    without = explain(graph, [other for other in AliasKind if other is not kind])
    assert with_it.num_shared[kind] > 0
    assert liveness(with_it.program).naive < liveness(without.program).naive
