"""Random programs like training steps, whose operators are small enough to be run here.

They run on the bytes of a plan: what is dead is overwritten with garbage. What another lane does
is done at once or as late as may be, and both must give the same."""

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from arenite.planner.operators.moving import Wait
from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.placement.strategy import run as run_strategy
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import COMPUTE, Program, Step
from arenite.planner.rewrites.rescheduling import problem_of, with_views
from arenite.planner.tensors import ARENA, Alias, DType, Memory, Tensor, TensorKind
from arenite.strategies import find

Values = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Mix(Operator):
    """Mixes all bytes of its inputs into each byte of its outputs.

    Attributes:
        salt: Makes operators differ.
        adds: Multiply-adds.
        states: Positions of the inputs that it updates.
        again: Whether it may run again.
        clamps: Whether it clamps.
    """

    salt: int
    adds: int = 0
    states: tuple[int, ...] = ()
    again: bool = True

    @property
    def repeatable(self) -> bool:  # type: ignore[override]  # ours differ from case to case
        return self.again

    @property
    def updates(self) -> tuple[int, ...]:
        return self.states

    def multiply_adds(self, operands: Operands) -> int:
        return self.adds


@dataclass(frozen=True, slots=True)
class Clamp(Mix):
    is_clamp: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Look(Operator):
    """A view."""

    repeatable: ClassVar[bool] = True

    def is_view(self, operands: Operands) -> bool:
        return True


def training_program(seed: int, num_layers: int = 6) -> Program:
    """Return a forward pass with skips and views, and a backward pass that updates states."""
    draw = random.Random(seed)
    tensors: dict[str, Tensor] = {}
    steps: list[Step] = []

    def add(
        name: str, units: int, kind: TensorKind = TensorKind.ACTIVATION, memory: str = ARENA
    ) -> str:
        tensors[name] = Tensor(name, DType.UINT8, (16 * units,), kind, memory=memory)
        return name

    def mix(name: str, reads: list[str], makes: list[str], **more: object) -> None:
        heavy = draw.random() < 0.5
        kind = Clamp if not heavy and draw.random() < 0.5 else Mix
        adds = draw.randrange(1000, 100_000) if heavy else 0
        operator = kind(draw.randrange(1 << 30), adds, **more)  # type: ignore[arg-type]
        steps.append(Step(name, operator, tuple(reads), tuple(makes)))

    current = add("x", draw.randint(4, 12), TensorKind.INPUT)
    layers: list[tuple[str, str, str | None]] = []
    for layer in range(num_layers):
        weight = add(f"w{layer}", 2, TensorKind.STATE, memory="weights")
        made = add(f"a{layer}", draw.randint(2, 16))
        reads = [current, weight]
        if layers and draw.random() < 0.3:
            reads.append(draw.choice(layers)[1])
        small = [add(f"s{layer}", 1)] if draw.random() < 0.4 else []
        again = draw.random() < 0.9
        mix(f"forward {layer}", reads, [made, *small], again=again)
        layers.append((current, made, small[0] if small else None))
        current = made
        if draw.random() < 0.3:
            current = f"v{layer}"
            tensors[current] = Tensor(current, DType.UINT8, (1, tensors[made].size))
            steps.append(Step(f"view {layer}", Look(), (made,), (current,)))
    add("loss", 1, TensorKind.OUTPUT)
    gradient = add("g", tensors[current].size // 16)
    mix("loss", [current], ["loss", gradient])
    for layer, (source, made, extra) in reversed(list(enumerate(layers))):
        saved = [made] if draw.random() < 0.6 else []
        reads = [gradient, *saved, *([extra] if extra else [])]
        if draw.random() < 0.8:
            steps.append(
                Step(
                    f"update {layer}",
                    Mix(draw.randrange(1 << 30), 500, (1,)),
                    (gradient, f"w{layer}", source),
                    (),
                )
            )
        gradient = add(f"d{layer}", tensors[source].size // 16)
        mix(f"backward {layer}", reads, [gradient], again=draw.random() < 0.9)
    add("dx", 2, TensorKind.OUTPUT)
    mix("end", [gradient], ["dx"])
    outputs = ["loss", "dx"]
    if draw.random() < 0.3:
        outputs.append(draw.choice(layers)[1])
    memories = (Memory(), Memory("weights"))
    return Program.of(
        f"training {seed}", tensors.values(), steps, ["x"], outputs, memories=memories
    )


def results(program: Program, *, lazy: bool = False) -> Values:
    """Run a program in the arenas of a plan and return its outputs and states.

    Args:
        program: The program, of `Mix` and `Look`.
        lazy: Whether what is on another lane is done only when its result is waited for.
    """
    program = with_views(program)
    problem = problem_of(program)
    plan = run_strategy(find("greedy-by-size"), problem)
    verify(problem, plan)
    arenas = {
        memory.name: np.full(height, 0xA5, np.uint8)
        for memory, height in zip(problem.memories, plan.heights, strict=True)
    }
    places = {
        record.name: (arenas[record.memory], offset)
        for record, offset in zip(problem.records, plan.offsets, strict=True)
    }

    def at(name: str) -> np.ndarray:
        arena, offset = places[program.root(name)[0]]
        return arena[offset : offset + program.tensors[name].size]

    for name, tensor in program.tensors.items():
        if tensor.kind in (TensorKind.INPUT, TensorKind.STATE):
            at(name)[:] = np.frombuffer(name.encode() * tensor.size, np.uint8)[: tensor.size]
    waiting: dict[str, Step] = {}

    def finish(name: str) -> None:
        step = waiting.pop(name, None)
        if step is not None:
            finish(step.inputs[0])
            at(step.outputs[0])[:] = at(step.inputs[0])

    for number, step in enumerate(program.steps):
        if step.lane != COMPUTE:
            waiting[step.outputs[0]] = step
            if not lazy:
                finish(step.outputs[0])
        else:
            for name in step.reads:
                finish(name)
            _compute(step, at)
        for record, offset in zip(problem.records, plan.offsets, strict=True):
            if record.end == number + 1 < len(program.steps):
                arenas[record.memory][offset : offset + record.size] = 0x5A
    states = [name for name, each in program.tensors.items() if each.kind is TensorKind.STATE]
    return {name: at(name).tobytes() for name in (*program.output_tensors, *states)}


def _compute(step: Step, at: object) -> None:
    assert callable(at)
    operator = step.operator
    assert isinstance(operator, Mix | Look | Wait)
    if not isinstance(operator, Mix):
        return
    total = operator.salt
    for name in step.inputs:
        values = at(name).astype(np.int64)
        weights = np.arange(1, len(values) + 1, dtype=np.int64)
        total = (total * 31 + int((values * weights).sum())) % (1 << 40)
    for position, name in enumerate((*step.outputs, *(step.inputs[p] for p in operator.updates))):
        made = at(name)
        made[:] = (np.arange(len(made), dtype=np.int64) * (position + 3) + total) % 251


def program_in_parts(first: Mix, last: Mix, carried: Mix) -> Program:
    """Return a program that makes halves of a tensor, one in parts, and reads its middle.

    Args:
        first: Makes the first part of the first half.
        last: Makes the last half.
        carried: Makes what nothing reads until the end.
    """

    def tensor(name: str, size: int, alias: Alias | None = None) -> Tensor:
        return Tensor(name, DType.UINT8, (size,), alias=alias)

    tensors = [
        tensor("x", 64), tensor("carried", 64), tensor("whole", 128), tensor("other", 64),
        tensor("low", 64, Alias("whole", 0)), tensor("high", 64, Alias("whole", 64)),
        tensor("lowest", 32, Alias("low", 0)), tensor("next", 32, Alias("low", 32)),
        tensor("middle", 64, Alias("whole", 32)), tensor("y", 64),
    ]  # fmt: skip
    steps = [
        Step("carry", carried, ("x",), ("carried",)),
        Step("first", first, ("x",), ("lowest",)),
        Step("then", Mix(6), ("x",), ("next",)),
        Step("last", last, ("x",), ("high",)),
        Step("look", Mix(7), ("middle",), ("other",)),
        Step("end", Mix(8), ("other", "carried"), ("y",)),
    ]
    return Program.of("parts", tensors, steps, ["x"], ["y"])
