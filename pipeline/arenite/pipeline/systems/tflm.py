"""A system for TensorFlow Lite Micro: every model with its part of one plan.

Interpreters that share an allocator share the head of its arena, from the same first byte, and
keep their structures and states in its tail, one behind the other::

    | head: tensors of all models by our plan | tail of a | tail of b |

An interpreter obeys the plan in its model, and a run writes nowhere else in the head. So an output
is there for the next model, which reads it where it lies, and stays until the plan needs its
bytes. Where kernels ask for scratch the interpreter looks for a gap by itself: bytes that hold
what other models made are inputs and outputs of the model, too, so it takes none of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.placing import Placed
from arenite.pipeline.systems.description import SystemDescription, SystemFileError
from arenite.pipeline.systems.foreign import (
    SharedArena,
    check_as_in_file,
    join_models,
    share_arena,
)
from arenite.planner import Plan, Rules, Strategy
from arenite.planner.errors import MissingDependencyError, about_file
from arenite.planner.programs import SectionKind
from arenite.runtime.cexport import check_folder, identifier, write_folder
from arenite.runtime.targets.tflm import (
    ALIGNMENT,
    InterpreterError,
    Measurement,
    TflmModel,
    comment,
    learn_scratch,
    measure_arena,
    measure_bytes,
    read_tflm_model,
)
from arenite.strategies import find


@dataclass(frozen=True, slots=True)
class TflmMember:
    """A model of a system for TensorFlow Lite Micro.

    Attributes:
        data: Bytes of its file, with its part of the plan.
        reserved: Bytes of the head that hold what other models made; inputs and outputs of the
            file behind its own.
        stock_head: Bytes of the head that the interpreter plans for the model alone.
        stock: Measurement of the model alone; None if the interpreter could not be asked.
        planned: Measurement of the file, alone in an arena.
    """

    data: bytes
    reserved: tuple[range, ...]
    stock_head: int
    stock: Measurement | None
    planned: Measurement | None


@dataclass(frozen=True, slots=True)
class TflmSystem(Placed):
    """A system for TensorFlow Lite Micro.

    Attributes:
        system: Its description.
        shared: The head of the arena.
        members: Its models, by name.
        not_measured: Why there are no measurements; empty if there are.
    """

    system: SystemDescription
    shared: SharedArena
    members: Mapping[str, TflmMember]
    not_measured: str

    @property
    def plan(self) -> Plan:
        """The offsets in the head, with the proof."""
        return self.shared.plan

    @property
    def stock_head(self) -> int:
        """Bytes of a head that the models share as the interpreter plans each of them."""
        return max(each.stock_head for each in self.members.values())

    @property
    def head(self) -> int:
        """Bytes of the head, as measured where it was."""
        measured = (each.planned.head for each in self.members.values() if each.planned)
        return max(self.plan.height, *measured, 0)

    @property
    def stock_tail(self) -> int:
        """Bytes of the tails of all models alone, 0 if they were not measured."""
        return sum(each.stock.tail for each in self.members.values() if each.stock)

    @property
    def tail(self) -> int:
        """Bytes of the tails of all files, 0 if they were not measured."""
        return sum(each.planned.tail for each in self.members.values() if each.planned)


def plan_for_tflm(
    system: SystemDescription, *, strategy: Strategy | None = None,
    limits: SearchLimits = UNLIMITED,
) -> TflmSystem:  # fmt: skip
    """Plan several models in the arena of interpreters that share an allocator.

    Args:
        system: Its models are TFLite files.
        strategy: Places the records; `best` by default.
        limits: Limits of the search.

    Raises:
        SystemFileError: The models do not fit together, or what is asked for is not possible.
        ModelError: A model is damaged or cannot be planned.
        PlanError: There is no plan, or a model may overwrite what another needs.
        InterpreterError: Outputs of a model differ with its part of the plan.
        MissingDependencyError: A package to read models is absent.

    Cost: for each model ten runs and about forty loads, and a load for each operator.
    """
    check_as_in_file(system, "TensorFlow Lite Micro")
    if SectionKind.AT_ONCE in {each.kind for each in system.schedule.sections()}:
        raise SystemFileError(
            "models run at_once: interpreters of TensorFlow Lite Micro that share an arena run "
            "one at a time; put the models into a sequence"
        )
    strategy = strategy or find("best")
    models = {name: read_tflm_model(each.path) for name, each in system.models.items()}
    join_models(system, {name: each.program for name, each in models.items()})
    stock, scratch, not_measured = _asked(models)
    programs = {name: each.with_scratch(scratch.get(name, {})) for name, each in models.items()}
    shared = share_arena(
        join_models(system, programs), Rules(alignment=ALIGNMENT), strategy, limits
    )
    members = {name: _member(name, each, shared, stock.get(name)) for name, each in models.items()}
    return TflmSystem(system, shared, members, not_measured)


def write_system_tflm(
    description: Path, folder: Path, *, strategy: Strategy | None = None,
    limits: SearchLimits = UNLIMITED,
) -> TflmSystem:  # fmt: skip
    """Write the models of a system with their parts of one plan, and return that.

    Args:
        description: The TOML file of the system.
        folder: New, empty or a previous export; gets a file for each model.
        strategy: Places the records; `best` by default.
        limits: Limits of the search.

    Raises:
        OutputError: The folder cannot be written.
        AreniteError: As `plan_for_tflm`; nothing is written.
    """
    system = SystemDescription.read(description)
    check_folder(folder, description, *system.paths)
    with about_file(description):
        planned = plan_for_tflm(system, strategy=strategy, limits=limits)
    write_folder(folder, {f"{name}.tflite": each.data for name, each in planned.members.items()})
    return planned


def _asked(
    models: Mapping[str, TflmModel],
) -> tuple[dict[str, Measurement], dict[str, dict[str, int]], str]:
    """Return measurements of the models alone, scratch of their steps, or why there are none."""
    stock: dict[str, Measurement] = {}
    scratch: dict[str, dict[str, int]] = {}
    for name, model in models.items():
        try:
            stock[name] = measure_arena(model.path, *_ports(model))
            scratch[name] = learn_scratch(model)
        except (MissingDependencyError, InterpreterError) as error:
            return {}, {}, str(error)
    return stock, scratch, ""


def _member(
    name: str, model: TflmModel, shared: SharedArena, stock: Measurement | None
) -> TflmMember:
    """Return a model with its part of a plan.

    Raises:
        InterpreterError: Its outputs differ then.
    """
    reserved = tuple(shared.held(name))
    offsets = model.numbered(shared.places(name), shared.plan.height)
    data = model.file.with_plan(offsets, reserved)
    if stock is None:
        return TflmMember(data, reserved, find("tflm")(model.problem()).height, None, None)
    planned = measure_bytes(model.path, data, *_ports(model))
    if planned.outputs != stock.outputs:
        raise InterpreterError(
            model.path, "its outputs differ with the plan of the system; please report the model"
        )
    return TflmMember(data, reserved, stock.head, stock, planned)


def _ports(model: TflmModel) -> tuple[int, int]:
    return len(model.program.inputs), len(model.program.outputs)


def tflm_header(planned: TflmSystem) -> str:
    """Return a C header with the bytes of the arena, and how its models are run.

    It is valid as C11 and as C++11.
    """
    name = identifier(planned.system.name.rpartition(".")[0])
    return "\n".join(_header_lines(planned, name.upper())) + "\n"


def _header_lines(planned: TflmSystem, macro: str) -> Iterator[str]:
    yield f"/* {comment(planned.system.name)}: planned by Arenite. Generated: do not edit."
    yield ""
    yield "   One tflite::MicroAllocator for all models. Call AllocateTensors() of each before the"
    yield "   first run: it overwrites the head. Then run them one at a time:"
    yield ""
    yield f"   {comment(str(planned.system.schedule))}"
    yield ""
    for each in planned.system.connections:
        yield f"   {comment(f'{each.target} is {each.source}, where that lies: do not write it.')}"
    for name, model in planned.system.models.items():
        for output in model.keep:
            yield f"   {comment(f'{name}.{output} stays until the schedule ends.')}"
    for name, member in planned.members.items():
        if count := len(member.reserved):
            ports = "input and output" if count == 1 else f"{count} inputs and outputs"
            yield f"   {comment(name)}: its last {ports} keep bytes of others."
    yield "*/"
    yield f"#ifndef ARENITE_{macro}_H_"
    yield f"#define ARENITE_{macro}_H_"
    yield ""
    yield "/* Bytes of the head: tensors of all models and scratch of their kernels. */"
    yield f"#define {macro}_HEAD_BYTES {planned.head}"
    if planned.not_measured:
        yield "/* The tails were not measured, nor scratch of kernels. */"
    else:
        yield "/* Head and tails, with the reference kernels on a 64-bit host, and what aligning"
        yield "   takes. Tails are smaller on a 32-bit target. */"
        yield f"#define {macro}_ARENA_BYTES {planned.head + planned.tail + 2 * ALIGNMENT}"
    yield ""
    yield f"#endif /* ARENITE_{macro}_H_ */"
