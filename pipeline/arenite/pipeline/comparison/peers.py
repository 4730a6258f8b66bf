"""Arenas that other tools need for a model, each in its own process: some crash."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.workers import Crash, each_in_a_process
from arenite.pipeline.report.results import PeerResult
from arenite.planner import AreniteError, Source

_PROCESSES = 1  # they measure: one at a time


@dataclass(frozen=True, slots=True)
class _Question:
    """A peer and the model to plan with it."""

    peer: "_Peer"
    model: Path
    reading: Reading
    num_inputs: int
    num_outputs: int


@dataclass(frozen=True, slots=True)
class _Peer:
    """A tool that states the arena of a model.

    Attributes:
        packages: Any of them brings it.
        arena: Its answer, in bytes.
    """

    name: str
    packages: tuple[str, ...]
    suffixes: tuple[str, ...]
    arena: Callable[[_Question], int]

    def takes(self, model: Path) -> bool:
        return model.suffix.lower() in self.suffixes and any(map(find_spec, self.packages))


def ask_peers(model: Path, reading: Reading, source: Source) -> Iterator[PeerResult]:
    """Yield the arena of each installed peer that takes such models."""
    if source.program is None:
        return
    num_inputs, num_outputs = len(source.program.inputs), len(source.program.outputs)
    questions = [
        _Question(peer, model, reading, num_inputs, num_outputs)
        for peer in _PEERS
        if peer.takes(model)
    ]
    yield from _answers(questions)


def _answers(questions: Sequence[_Question]) -> list[PeerResult]:
    answers = list(questions)
    results: dict[int, PeerResult] = {}
    for index, answer in each_in_a_process(_answer, answers, _PROCESSES):
        if isinstance(answer, Crash):
            answer = PeerResult(questions[index].peer.name, None, answer.reason)
        results[index] = answer
    return [results[index] for index in range(len(questions))]


def _answer(question: _Question) -> PeerResult:
    try:
        arena = question.peer.arena(question)
    except (AreniteError, OSError, RuntimeError, ValueError) as error:  # theirs to choose
        return PeerResult(question.peer.name, None, str(error))
    return PeerResult(question.peer.name, arena)


def _onnxsim(question: _Question) -> int:
    import onnx
    import onnxsim

    model = onnx.load(question.model)
    for value in (*model.graph.input, *model.graph.output):
        shape = question.reading.fixed_shapes.get(value.name)
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if shape is not None:
                dimension.dim_value = shape[axis]
            elif dimension.dim_param in question.reading.dims:
                dimension.dim_value = question.reading.fixed_dims[dimension.dim_param]
    return int(onnxsim.plan_activation_memory(model).arena_bytes)


def _onnxruntime(question: _Question) -> int:
    from arenite.runtime.targets import drawn_feeds, stock_memory, stock_options, stock_session

    model, reading = question.model, question.reading
    inputs = stock_session(model, stock_options()).get_inputs()
    feeds = drawn_feeds(
        model, inputs, reading.fixed_dims, reading.fixed_shapes, values=reading.values
    )
    return stock_memory(model, stock_options(), feeds).in_use


def _tflm(question: _Question) -> int:
    from arenite.runtime.targets import measure_arena

    return measure_arena(question.model, question.num_inputs, question.num_outputs).head


def _litert(question: _Question) -> int:
    from arenite.runtime import UnexpectedRuntimeError
    from arenite.runtime.targets import PlannedInterpreter, StockPlacementWarning
    from arenite.strategies import find

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StockPlacementWarning)  # the stock arena is wanted
        interpreter = PlannedInterpreter(question.model, strategy=find("best"))
    if interpreter.stock_bytes is None:
        raise UnexpectedRuntimeError("LiteRT does not show the size of its arena")
    return interpreter.stock_bytes


_PEERS = (
    _Peer("ONNX Runtime", ("onnxruntime",), (".onnx",), _onnxruntime),
    _Peer("onnxsim", ("onnxsim",), (".onnx",), _onnxsim),
    _Peer("TFLM", ("tflite_micro",), (".tflite", ".lite"), _tflm),
    _Peer("LiteRT", ("ai_edge_litert", "tflite_runtime"), (".tflite", ".lite"), _litert),
)
