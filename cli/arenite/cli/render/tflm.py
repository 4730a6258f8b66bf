"""Facts of a model exported to TensorFlow Lite Micro."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from arenite.pipeline.base import both, change, one_line
from arenite.pipeline.systems import TflmSystem
from arenite.runtime.targets import Measurement, TflmExport

_MEASURES = {
    "head": "head: tensors, scratch",
    "tail": "tail: what stays",
    "total": "total",
    "smallest": "smallest working arena",
}


_TAIL = {
    "tensors": "tensors, 1 each",
    "operators": "operators, 1 each",
    "kernels": "kernels' own data",
    "variables": "variable tensors",
    "boundary": "inputs and outputs",
    "quantisation": "their quantisation",
    "compression": "compressed weights",
    "own": "the interpreter",
}
"""The purpose of a part of the tail, in a few words."""


def as_json(model: Path, export: TflmExport) -> dict[str, object]:
    result: dict[str, object] = {
        "model": str(model),
        "target": "tflm",
        "strategy": export.plan.strategy,
        "height": export.plan.height,
        "lower_bound": export.plan.lower_bound,
        "plan_used": not export.stays,
        "stock_stays": export.stays or None,
        "measured": export.measured is not None,
        "not_measured": export.not_measured or None,
        "head": {"stock": export.stock_head, "planned": export.planned_head},
    }
    if (measured := export.measured) is None:
        return result | {"tail": None, "total": None, "smallest": None, "tail_parts": None,
                         "scratch": None, "outputs_identical": None}  # fmt: skip
    return result | {
        **{
            name: {
                "stock": getattr(measured.stock, name),
                "planned": getattr(measured.planned, name),
            }
            for name in _MEASURES
        },
        "tail_parts": {
            part: {"stock": size, "planned": measured.planned.tail_parts[part]}
            for part, size in measured.stock.tail_parts.items()
        },
        "scratch": measured.scratch,
        "outputs_identical": measured.stock.outputs == measured.planned.outputs,
    }


def rows(export: TflmExport) -> Iterator[tuple[str, RenderableType]]:
    """Yield the facts for people."""
    if (measured := export.measured) is None:
        yield "head, computed", change(export.stock_head, export.planned_head)
        yield "not measured", Text(one_line(export.not_measured))
    else:
        for name, label in _MEASURES.items():
            yield label, change(getattr(measured.stock, name), getattr(measured.planned, name))
            if name == "tail":
                yield from _tail_rows(measured.stock, measured.planned)
        if measured.scratch:
            most = max(measured.scratch.values())
            yield (
                "kernel scratch",
                f"{len(measured.scratch)} operators, at most {both(most)}; planned for",
            )
        same = measured.stock.outputs == measured.planned.outputs
        yield "outputs", "identical bit for bit" if same else "DIFFERENT"
    bound = export.problem.lower_bound
    yield "lower bound of the head", both(bound)
    verdict = f"stock stays: {export.stays}" if export.stays else "ours"
    yield "plan to use", Text(verdict, "" if export.stays else "bold")


def _tail_rows(stock: Measurement, planned: Measurement) -> Iterator[tuple[str, RenderableType]]:
    """Yield the parts of the tail that take bytes, the largest first."""
    ours = planned.tail_parts
    for part, size in sorted(stock.tail_parts.items(), key=lambda item: -item[1]):
        if size or ours[part]:
            yield f"  {_TAIL[part]}", change(size, ours[part]) if size else both(ours[part])


def system_as_json(description: Path, planned: TflmSystem) -> dict[str, object]:
    """Return the facts of a system."""
    is_measured = not planned.not_measured
    return {
        "system": str(description),
        "target": "tflm",
        "strategy": planned.plan.strategy,
        "height": planned.height,
        "lower_bound": planned.lower_bound,
        "optimal": planned.optimal,
        "measured": is_measured,
        "not_measured": planned.not_measured or None,
        "head": {"stock": planned.stock_head, "planned": planned.head},
        "tail": {"stock": planned.stock_tail, "planned": planned.tail} if is_measured else None,
        "copied": planned.shared.copied,
        "models": {
            name: {"stock_head": each.stock_head, "reserved": [len(r) for r in each.reserved]}
            for name, each in planned.members.items()
        },
    }


def system_rows(planned: TflmSystem) -> Iterator[tuple[str, RenderableType]]:
    """Yield the facts of a system for people."""
    heads = ", ".join(f"{name} {both(each.stock_head)}" for name, each in planned.members.items())
    yield "heads alone", heads
    yield "head", change(planned.stock_head, planned.head)
    if planned.not_measured:
        yield "not measured", Text(one_line(planned.not_measured))
    else:
        yield "tails", change(planned.stock_tail, planned.tail)
        yield "outputs", "identical bit for bit"
    yield "handed on, kept", f"{both(planned.shared.copied)}, not copied"
    yield "lower bound of the head", both(planned.lower_bound)
