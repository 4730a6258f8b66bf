"""Write our plan into a model if the interpreter needs less memory for it.

The interpreter decides: the model is run as it is and with our plan, after kernel scratch has
been measured. Where the interpreter is absent or cannot run the model, heads are computed and
compared instead, without scratch.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from arenite.planner import Plan, Problem, TensorKind
from arenite.planner.errors import MissingDependencyError
from arenite.runtime.targets.tflm.measure import (
    InterpreterError,
    Measurement,
    learn_scratch,
    measure_arena,
    measure_bytes,
)
from arenite.runtime.targets.tflm.records import TflmModel, read_tflm_model


@dataclass(frozen=True, slots=True)
class TflmMeasurements:
    """Memory that the interpreter needs for a model.

    Attributes:
        stock: Measurement of the file as it is.
        planned: Measurement with our plan.
        scratch: Kernel scratch in bytes, by operator name.
    """

    stock: Measurement
    planned: Measurement
    scratch: dict[str, int]


@dataclass(frozen=True, slots=True)
class TflmExport:
    """A model with the better of two plans.

    Attributes:
        model: The model as read.
        problem: The records, with kernel scratch as far as it is known.
        plan: Our plan.
        stock_head: Bytes of the arena's head without our plan.
        planned_head: Bytes of the arena's head with our plan.
        measured: The measurements; None if both heads were computed instead.
        not_measured: Why there are no measurements; empty if there are.
        data: Bytes of the file to use, with our plan or unchanged.
        stays: Why the stock plan is kept; empty if ours is used.
    """

    model: TflmModel
    problem: Problem
    plan: Plan
    stock_head: int
    planned_head: int
    measured: TflmMeasurements | None
    not_measured: str
    data: bytes
    stays: str


def export_tflm(
    path: Path, strategy: Callable[[Problem], Plan], stock_strategy: Callable[[Problem], Plan]
) -> TflmExport:
    """Return the model with our plan, or unchanged if our plan is not better.

    Args:
        path: The model.
        strategy: Makes our plan.
        stock_strategy: Plans as the interpreter would, if that is not installed.

    Raises:
        ModelError: The model is damaged or cannot be planned.
        PlanError: The strategy made no plan, or a wrong one.
        MissingDependencyError: A package to read the model is absent.
    """
    model = read_tflm_model(path)
    num_inputs, num_outputs = len(model.program.inputs), len(model.program.outputs)
    try:
        stock = measure_arena(path, num_inputs, num_outputs)
        scratch = learn_scratch(model)
    except (MissingDependencyError, InterpreterError) as error:
        return _computed(model, strategy, stock_strategy, str(error))
    problem = model.problem(scratch)
    plan = strategy(problem)
    data = model.file.with_plan(model.offsets(problem, plan))
    planned = measure_bytes(path, data, num_inputs, num_outputs)
    if planned.outputs != stock.outputs:
        stays = "the outputs differ with our plan"
    elif planned.smallest > stock.smallest:
        stays = f"the smallest working arena is {planned.smallest} B, stock {stock.smallest} B"
    elif planned.total >= stock.total:
        stays = f"the arena takes {planned.total} B, stock {stock.total} B"
    else:
        stays = ""
    return TflmExport(
        model,
        problem,
        plan,
        stock.head,
        planned.head,
        TflmMeasurements(stock, planned, scratch),
        "",
        path.read_bytes() if stays else data,
        stays,
    )


def _computed(
    model: TflmModel,
    strategy: Callable[[Problem], Plan],
    stock_strategy: Callable[[Problem], Plan],
    reason: str,
) -> TflmExport:
    problem = model.problem()
    plan = strategy(problem)
    stock_head = stock_strategy(problem).height
    offsets = model.offsets(problem, plan)
    stays = ""
    if plan.height >= stock_head:
        stays = f"the head takes {plan.height} B, stock {stock_head} B"
    data = model.path.read_bytes() if stays else model.file.with_plan(offsets)
    return TflmExport(model, problem, plan, stock_head, plan.height, None, reason, data, stays)


def c_header(export: TflmExport) -> str:
    """Return a C header for a planned model: the arena's size, a check, a map, and the plan.

    It is valid as C11 and as C++11. The plan is there a second time for
    `NonPersistentMemoryPlannerShim`, which takes it as a `BufferPlan` instead of from the file: a
    count, then one offset for each request, tensors in the order of the file.
    """
    prefix = _identifier(export.model.path.stem)
    return "\n".join(
        [
            f"/* {comment(export.model.path.name)}",
            "   Planned by Arenite. Generated: do not edit. */",
            f"#ifndef ARENITE_{prefix}_H_",
            f"#define ARENITE_{prefix}_H_",
            "",
            "#include <stdint.h>",
            "",
            *_sizes(export, prefix),
            "",
            *_memory_map(export),
            "",
            *_buffer_plan(export, prefix),
            "",
            f"#endif /* ARENITE_{prefix}_H_ */",
            "",
        ]
    )


def _sizes(export: TflmExport, prefix: str) -> Iterator[str]:
    head = export.stock_head if export.stays else export.planned_head
    yield "/* Bytes of the arena's head: planned tensors and kernel scratch. */"
    yield f"#define {prefix}_HEAD_BYTES {head}"
    if export.measured is None:
        yield "/* The whole arena was not measured: the head alone, without kernel scratch. */"
        yield f"#define {prefix}_ARENA_BYTES {head}"
    else:
        used = export.measured.stock if export.stays else export.measured.planned
        yield "/* The smallest tensor_arena that works with the reference kernels on a 64-bit"
        yield "   host. The tail is smaller on a 32-bit target; its own kernels may ask for"
        yield "   other scratch. */"
        yield f"#define {prefix}_ARENA_BYTES {used.smallest}"
    yield ""
    yield f"/* After `uint8_t tensor_arena[N];`: {prefix}_CHECK_ARENA(tensor_arena); */"
    yield "#ifdef __cplusplus"
    for assertion in ("static_assert", "_Static_assert"):
        yield f"#define {prefix}_CHECK_ARENA(arena) \\"
        yield f"  {assertion}(sizeof(arena) >= {prefix}_ARENA_BYTES, \\"
        yield '      "the tensor arena is too small")'
        yield "#else" if assertion == "static_assert" else "#endif"


def _memory_map(export: TflmExport) -> Iterator[str]:
    yield "/*"
    if export.stays:
        yield f" * The interpreter's own plan stays: {comment(export.stays)}."
        yield " * Ours would be:"
    yield " * first byte  bytes  steps  tensor"
    pairs = zip(export.problem.records, export.plan.offsets, strict=True)
    for record, offset in sorted(pairs, key=lambda pair: (pair[1], pair[0].start)):
        yield (
            f" * {offset:>10} {record.size:>6}  [{record.start}, {record.end})  "
            f"{comment(record.name)}"
        )
    yield " */"


def _buffer_plan(export: TflmExport, prefix: str) -> Iterator[str]:
    if export.stays:
        yield "/* No BufferPlan: the interpreter's own plan stays. */"
        return
    if not _lists_every_request(export):
        yield "/* No BufferPlan: it must list every request of the interpreter in its order, and"
        yield "   here there are some, kernel scratch or unused tensors, that are not known one by"
        yield "   one. The plan in the model file needs no such list. */"
        return
    offsets = [offset for _, offset in sorted(_by_tensor_index(export))]
    yield "/* For NonPersistentMemoryPlannerShim: reinterpret_cast<const tflite::BufferPlan*>. */"
    yield "static const struct {"
    yield "  int32_t buffer_count;"
    yield f"  int32_t offsets[{len(offsets)}];"
    yield f"}} {prefix}_BUFFER_PLAN = {{"
    yield f"  {len(offsets)}, {{"
    for start in range(0, len(offsets), 8):
        yield "    " + " ".join(f"{offset}," for offset in offsets[start : start + 8])
    yield "  }"
    yield "};"


def _lists_every_request(export: TflmExport) -> bool:
    """Tell whether the interpreter allocates the planned tensors and nothing else."""
    model = export.model
    empty = any(
        tensor.size == 0 and tensor.kind not in (TensorKind.CONSTANT, TensorKind.STATE)
        for tensor in model.program.tensors.values()
    )
    unused = len(model.tensor_indexes) < model.file.num_tensors
    return not (export.measured is None or export.measured.scratch or empty or unused)


def _by_tensor_index(export: TflmExport) -> Iterator[tuple[int, int]]:
    indexes = export.model.tensor_indexes
    for record, offset in zip(export.problem.records, export.plan.offsets, strict=True):
        for tensor in record.tensors:
            yield indexes[tensor], offset


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII).upper()
    return f"MODEL_{name}" if not name[:1].isalpha() else name


def comment(text: str) -> str:
    """Return text from a file such that it stays within its comment."""
    safe = "".join(each if " " <= each <= "~" else "?" for each in text)
    return safe.replace("*/", "*?").replace("/*", "?*")
