"""Models made into programs, for the commands that run them."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.errors import PlanTargetError, UnloadableError
from arenite.pipeline.base.memories import spread_as
from arenite.pipeline.base.placing import Outcome
from arenite.pipeline.base.ranges import along
from arenite.pipeline.base.reading import Reading, reading_of
from arenite.pipeline.targets.arenite import compiled_by
from arenite.pipeline.targets.choice import ARENITE
from arenite.pipeline.targets.compiling import Compiled, Tuning, lower_model, rules
from arenite.planner import (
    Memory,
    Plan,
    Problem,
    Program,
    Source,
    UsageRecord,
    derive,
    liveness,
    planfile,
)
from arenite.planner.errors import MissingDependencyError, OrderError, about_file
from arenite.planner.files import model_digest
from arenite.planner.planfile import StaleRecordsError
from arenite.planner.programs import in_memories
from arenite.planner.sizes import Ranges, Sizes, at, first_sizes
from arenite.runtime import ProgramError, Session, SessionMemory, processor_name
from arenite.runtime.program import Assembly, Code, program_pieces, write_assembly
from arenite.runtime.rewrites import Activations, measured
from arenite.strategies import find

SUFFIX = ".arena"
"""Of a program file."""


def compile_by_plan(
    model: Path, plan_path: Path, stated: Reading | None = None
) -> tuple[Compiled, Outcome]:
    """Return the program of a model in the order of a plan file, and that plan.

    Args:
        stated: Sizes and values, where they are not to be the plan's.

    Raises:
        ModelError: The model cannot be read or run.
        PlanFileError: The plan file is damaged, or was made for another model or program.
        PlanTargetError: It was made for another runtime.
    """
    plan_file = planfile.read(plan_path)
    with about_file(plan_path):
        plan_file.check_digest(model_digest(model))
    if plan_file.target != ARENITE.name:
        raise PlanTargetError(plan_path, plan_file.target)
    reading = reading_of(plan_file, stated or Reading())
    try:
        compiled = compiled_by(reading, model, plan_file)
    except OrderError as error:
        raise StaleRecordsError(f"{error.reason}; plan it again", path=plan_path) from error
    compiled = replace(compiled, source=spread_as(compiled.source, plan_file))
    with about_file(plan_path):
        source = compiled.source
        plan_file.check_against(source.digest, source.problem, source.dimensions)
        plan_file.check_run(compiled.program)
    return compiled, Outcome(plan_file.plan, 0.0, interrupted=False)


def write_program(
    output: Path, compiled: Compiled, outcome: Outcome, *, code: Code | None = None
) -> SessionMemory:
    """Load a program with its plan, write its file and return the bytes that a session holds.

    Args:
        code: Codes weights, as `code_of` does; None to leave them as they are.

    Raises:
        InvalidPlanError: The plan is not right for the program.
        UnloadableError: No session runs the program; nothing is written.
        OutputError: The file cannot be written.
    """
    return write_loaded(output, compiled.source.name, compiled.assemble(outcome.plan, code))


def write_loaded(output: Path, name: str, assembly: Assembly) -> SessionMemory:
    """Load a program, write its file and return the bytes that a session holds.

    Args:
        name: That of the model, for the error.

    Raises:
        UnloadableError: No session runs the program; nothing is written.
        OutputError: The file cannot be written.
    """
    held: list[SessionMemory] = []

    def load(temporary: Path) -> None:
        try:
            with Session(temporary) as session:
                held.append(session.memory())
                free = [each for each in session.dimensions if not each.counted_by]
                for sizes in (*Ranges(free).points, *along(free, _TRIED)) if free else ():
                    session.resize(sizes)
        except ProgramError as error:
            raise UnloadableError(name, error.reason) from error

    write_assembly(output, assembly, load)
    return held[0]


def code_of(*, huffman: bool = True) -> Code:
    """Return a function that codes weights with few values.

    Args:
        huffman: Whether symbols are Huffman-coded.

    Raises:
        MissingDependencyError: Zstandard's package is absent.
    """
    if find_spec("zstandard") is None:
        raise MissingDependencyError("zstandard", "compression", "coding weights")
    from arenite.compression import code as coded

    def code(weights: NDArray[Any]) -> bytes | None:
        if weights.dtype != np.float32:
            return None
        found = coded(weights, huffman=huffman)
        return None if found is None else bytes(found)

    return code


_TRIED = 9
"""Sizes along a range at which a program's steps are made before it is written."""

CALLER = "caller"
"""Memory of inputs and outputs that are the caller's; a session takes a buffer or makes one."""


def with_callers(
    program: Program, problem: Problem, plan: Plan, alignment: int
) -> tuple[Program, Problem, Plan]:
    """Return a program, its records and their plan: inputs and outputs have a memory.

    The records leave them out. There they lie end to end, as the caller's arrays would.
    """
    known = {record.name: index for index, record in enumerate(problem.records)}
    records: list[UsageRecord] = []
    offsets: list[int] = []
    end = 0
    for record in liveness(program, alignment=alignment, outlines=problem.has_outlines).records:
        if record.name in known:
            records.append(problem.records[known[record.name]])
            offsets.append(plan.offsets[known[record.name]])
        else:
            records.append(replace(record, memory=CALLER, outline=()))
            offsets.append(end)
            end += record.size
    memories = (*problem.memories, Memory(CALLER))
    problem = replace(problem, records=tuple(records), memories=memories)
    plan = Plan.of(problem, tuple(offsets), plan.strategy, plan.parameters)
    return in_memories(program, problem), problem, plan


def held_bytes(compiled: Compiled, plan: Plan) -> SessionMemory:
    """Return the bytes that a session of a program holds, to the byte.

    Raises:
        UnloadableError: No session runs it.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    with session_by_plan(compiled, plan) as session:
        return session.memory()


def session_by_plan(compiled: Compiled, plan: Plan | None = None) -> Session:
    """Return a session of a program, for the caller to close.

    Args:
        plan: Its plan; None for a quick one.

    Raises:
        InvalidPlanError: The plan is not right for the program.
        UnloadableError: No session runs it.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    plan = plan or find("greedy-by-size")(compiled.source.problem)
    return session_of_assembly(compiled.assemble(plan), compiled.source.name)


def session_of_assembly(assembly: Assembly, name: str) -> Session:
    """Return a session of an assembled program, for the caller to close.

    Args:
        assembly: The program with its plan.
        name: That of the model, for the error.

    Raises:
        UnloadableError: No session runs it.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    try:
        return Session.of_pieces(list(program_pieces(assembly)), name)
    except ProgramError as error:
        raise UnloadableError(name, error.reason) from error


def backends(compiled: Compiled) -> tuple[str, ...]:
    """Return whose kernel runs each step of a program.

    Raises:
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    with session_by_plan(compiled) as session:
        return session.backends()


def session_of(program: Program) -> Session:
    """Return a session of a lowered program, for the caller to close.

    Where its steps state tiles for this processor, it runs by these.

    Raises:
        UnloadableError: No session runs it.
    """
    source = Source.derived(program.name, "", derive(program, rules()))
    return session_by_plan(Compiled(source, tuning=Tuning(processor_name(), measured({}))))


def rounding_error(model: Path, reading: Reading, compiled: Compiled, plan: Plan) -> float:
    """Return what a program with results of fewer bits loses on random inputs.

    It is the largest difference between its outputs and those of 32-bit floats, over the largest
    number of that output.

    Raises:
        ModelError: The model cannot be read or run.
        UnloadableError: No session runs it.
    """
    exact = lower_model(
        model, replace(reading, activations=Activations.FP32, cache=None, weight_budget=None)
    ).program
    arrays = random_inputs(exact, 0)
    with session_of(exact) as session:
        expected = session.run(arrays)
    with session_by_plan(compiled, plan) as session:
        made = session.run(arrays)
    worst = 0.0
    for name, right in expected.items():
        largest = np.abs(right.astype(np.float64)).max(initial=0.0)
        if right.dtype.kind == "f" and largest:
            apart = np.abs(right.astype(np.float64) - made[name]).max(initial=0.0)
            worst = max(worst, float(apart / largest))
    return worst


def random_inputs(
    program: Program, seed: int, sizes: Sizes | None = None
) -> dict[str, NDArray[Any]]:
    """Return an array of random numbers for each input of a model, small ones for integers.

    Args:
        sizes: Values of the dimensions of a program for a range; by default those of a new
            session.
    """
    sizes = first_sizes(program.dimensions) if sizes is None else sizes
    generator = np.random.default_rng(seed)
    arrays: dict[str, NDArray[Any]] = {}
    for port in program.inputs:
        tensor = program.tensors[port.tensor]
        dtype, shape = np.dtype(tensor.dtype.label), port.shape(tensor.shape)
        lengths = tuple(at(length, sizes) for length in shape)
        arrays[port.name] = random_array(generator, dtype, lengths)
    return arrays


def random_array(
    generator: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return random numbers; 0 and 1 for integers of more than a byte, which may be indices."""
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "b" or dtype.itemsize > 1:
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.integers(np.iinfo(dtype).min, 128, shape).astype(dtype)


def with_fixed(
    model: Path, reading: Reading, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return the inputs of an ONNX model in its order, those among them that are fixed.

    Args:
        arrays: Inputs of its program.
    """
    from arenite.planner.importers.onnx import fixed_arrays

    stated = fixed_arrays(model, reading.fixed_dims, reading.fixed_shapes, reading.values)
    return {name: arrays[name] if array is None else array for name, array in stated.items()}
