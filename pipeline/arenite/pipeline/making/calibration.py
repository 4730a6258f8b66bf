"""Timing of small programs and of a temporary file: the costs of this machine."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from arenite.pipeline.making.costs import DESKTOP, FLOAT, INTEGER
from arenite.pipeline.making.programs import random_inputs
from arenite.pipeline.targets.compiling import Compiled, rules
from arenite.planner import (
    Array,
    Costs,
    Derivation,
    DType,
    Link,
    Plan,
    Port,
    Problem,
    Program,
    Quantisation,
    Source,
    Step,
    Tensor,
    TensorKind,
    derive,
    verify,
)
from arenite.planner.operators import Operator
from arenite.planner.programs import OperatorSet
from arenite.runtime import Session
from arenite.runtime.operators import NO_PADDING, Conv2D, DepthwiseConv2D, Unary, UnaryFunction
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import pack_filters
from arenite.strategies import BandsSearch, find

_SCALE = Quantisation((0.05,))
_SEED = 0
_AROUND = (1, 1, 1, 1)


@dataclass(slots=True)
class _StepChain:
    """Steps that each read the result of the one before."""

    dtype: DType
    shape: tuple[int, ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tensor("t0", TensorKind.INPUT)

    def add(self, operator: Operator, *constants: Array) -> None:
        """Add a step that makes a tensor of the same shape."""
        number = len(self.steps)
        names = []
        for index, array in enumerate(constants):
            names.append(f"c{number}.{index}")
            dtype = next(each for each in DType if each.label == array.dtype.name)
            self.constants[names[-1]] = array
            self.tensors[names[-1]] = Tensor(
                names[-1], dtype, array.shape, TensorKind.CONSTANT,
                quantisation=_SCALE if dtype is DType.INT8 else None,
            )  # fmt: skip
        made = self._tensor(f"t{number + 1}", TensorKind.ACTIVATION)
        self.steps.append(Step(f"s{number}", operator, (f"t{number}", *names), (made,)))

    def program(self) -> Program:
        """Return the program, its filters packed."""
        last = self.steps[-1].outputs[0]
        self._tensor(last, TensorKind.OUTPUT)
        return pack_filters(
            Program(
                "calibration", self.tensors, tuple(self.steps), (Port("x", "t0"),),
                (Port("y", last),), operator_set=OperatorSet.ARENITE, constants=self.constants,
            )
        )  # fmt: skip

    def _tensor(self, name: str, kind: TensorKind) -> str:
        quantisation = _SCALE if self.dtype is DType.INT8 else None
        self.tensors[name] = Tensor(name, self.dtype, self.shape, kind, quantisation=quantisation)
        return name


def convolutions(label: str, kernels: Sequence[int], size: int, channels: int) -> Program:
    """Return convolutions one after the other.

    Args:
        label: Type of the elements.
        kernels: Rows and columns of the filter of each.
        size: Rows and columns of the image.
        channels: Of the image, and of all results.
    """
    chain, draw = _chain(label, size, channels)
    for kernel in kernels:
        padding = _AROUND if kernel > 1 else NO_PADDING
        chain.add(
            Conv2D(padding=padding, kernel=(kernel, kernel)),
            _filter(draw, label, (channels, kernel, kernel, channels)),
        )
    return chain.program()


def depthwise_convolutions(label: str, count: int, size: int, channels: int) -> Program:
    """Return depthwise convolutions of three rows and columns, one after the other."""
    chain, draw = _chain(label, size, channels)
    for _ in range(count):
        chain.add(DepthwiseConv2D(padding=_AROUND), _filter(draw, label, (1, 3, 3, channels)))
    return chain.program()


def separable_convolutions(label: str, count: int, size: int, channels: int) -> Program:
    """Return depthwise convolutions that each have one of a single row and column after them."""
    chain, draw = _chain(label, size, channels)
    for _ in range(count):
        chain.add(DepthwiseConv2D(padding=_AROUND), _filter(draw, label, (1, 3, 3, channels)))
        chain.add(Conv2D(kernel=(1, 1)), _filter(draw, label, (channels, 1, 1, channels)))
    return chain.program()


def passes(count: int, size: int, channels: int) -> Program:
    """Return steps that do no more than read floats and write others."""
    chain, _ = _chain(FLOAT, size, channels)
    for _ in range(count):
        chain.add(Unary(function=UnaryFunction.CLAMP, alpha=-3.0, beta=3.0))
    return chain.program()


def _chain(label: str, size: int, channels: int) -> tuple[_StepChain, np.random.Generator]:
    dtype = next(each for each in DType if each.label == label)
    return _StepChain(dtype, (1, size, size, channels)), np.random.default_rng(_SEED)


def _filter(draw: np.random.Generator, label: str, shape: tuple[int, ...]) -> Array:
    if label == FLOAT:
        return draw.uniform(-0.1, 0.1, shape).astype(np.float32)
    return draw.integers(-10, 11, shape).astype(np.int8)


_ROUNDS = 5
_ROUND_S = 0.04
"""Seconds that each program runs in a round, at least."""
_LEAST_STEP_S = 1e-9

Runnable = tuple[Derivation, Plan]


def measured() -> dict[str, Costs]:
    """Return the costs of this machine by element type. This takes a few seconds."""
    stream = _whole(passes(4, 64, 128))
    runnables: dict[str, Runnable] = {"bytes": stream}
    for label in (FLOAT, INTEGER):
        # In most networks the filters of one row and column do most of the work.
        runnables[f"{label} conv"] = _whole(convolutions(label, (1,) * 9 + (3,), 28, 64))
        runnables[f"{label} depthwise"] = _whole(depthwise_convolutions(label, 8, 28, 128))
        small = separable_convolutions(label, 4, 32, 16)
        runnables[f"{label} whole"] = _whole(small)
        runnables[f"{label} bands"] = _in_bands(small)
    seconds = _least_seconds(runnables)
    found: dict[str, Costs] = {}
    for label in (FLOAT, INTEGER):
        work = {
            kind: _work(runnables[f"{label} {name}"]) / seconds[f"{label} {name}"]
            for kind, name in ((Conv2D, "conv"), (DepthwiseConv2D, "depthwise"))
        }
        whole, bands = (f"{label} {name}" for name in ("whole", "bands"))
        turns = _num_steps(runnables[bands]) - _num_steps(runnables[whole])
        found[label] = Costs(
            work[Conv2D],
            _bytes_touched(stream) / seconds["bytes"],
            DESKTOP.link,
            {kind.__name__: speed for kind, speed in work.items()},
            max((seconds[bands] - seconds[whole]) / max(1, turns), _LEAST_STEP_S),
        )
    return found


def _least_seconds(runnables: dict[str, Runnable]) -> dict[str, float]:
    """Return the least seconds of a run of each; they take turns, so that all meet the same."""
    best = dict.fromkeys(runnables, float("inf"))
    sessions = {name: _session(each) for name, each in runnables.items()}
    arrays = {name: random_inputs(each[0].program, 0) for name, each in runnables.items()}
    for _ in range(_ROUNDS):
        for name, session in sessions.items():
            end = time.perf_counter() + _ROUND_S
            while time.perf_counter() < end:
                begun = time.perf_counter()
                session.run(arrays[name])
                best[name] = min(best[name], time.perf_counter() - begun)
    for session in sessions.values():
        session.close()
    return best


def _whole(program: Program) -> Runnable:
    found = derive(program, rules())
    return found, _placed(found.problem)


def _in_bands(program: Program) -> Runnable:
    *_, least = BandsSearch(program, rules(), DESKTOP, _placed).frontier()
    return least.derivation, least.plan


def _placed(problem: Problem) -> Plan:
    plan = find("best")(problem)
    verify(problem, plan)
    return plan


def _session(runnable: Runnable) -> Session:
    derivation, plan = runnable
    source = Source.derived("calibration", "", derivation)
    return Session.of_pieces(list(program_pieces(Compiled(source).assemble(plan))), "calibration")


def _work(runnable: Runnable) -> int:
    program = runnable[0].program
    return sum(step.operator.multiply_adds(program.operands(step)) for step in program.steps)


def _bytes_touched(runnable: Runnable) -> int:
    """Return the bytes that steps read and write, as predictions count: twice their results."""
    program = runnable[0].program
    return 2 * sum(program.tensors[name].size for step in program.steps for name in step.writes)


def _num_steps(runnable: Runnable) -> int:
    return len(runnable[0].program.steps)


_BLOCK = 1 << 24


def measured_link() -> Link:
    """Return the speed of a temporary file where the runtime has its own.

    As in the runtime nothing is synchronised: bytes that fit the cache of the system move at its
    speed. One lane does one transfer at a time.

    Raises:
        OSError: There is no room for such a file, or it cannot be written.
    """
    block = np.random.default_rng(0).integers(0, 256, _BLOCK, np.uint8)
    out, back = float("inf"), float("inf")
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR") or "/tmp", buffering=0) as stream:
        os.posix_fallocate(stream.fileno(), 0, _BLOCK)
        for _ in range(_ROUNDS):
            out = min(out, _seconds(stream, block, writes=True))
            back = min(back, _seconds(stream, block, writes=False))
    return Link(_BLOCK / out, _BLOCK / back, duplex=False)


def _seconds(stream: IO[bytes], block: np.ndarray, *, writes: bool) -> float:
    """Return the time in which the whole block is written or read."""
    call = os.pwritev if writes else os.preadv
    done = 0
    begun = time.perf_counter()
    while done < _BLOCK:
        some = call(stream.fileno(), [block.data[done:]], done)
        if some <= 0:
            raise OSError(f"the temporary file ends after {done} of {_BLOCK} B")
        done += some
    return time.perf_counter() - begun
