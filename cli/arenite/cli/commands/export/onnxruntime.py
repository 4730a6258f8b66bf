"""Facts of a model exported for ONNX Runtime."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from arenite.pipeline.base import change
from arenite.runtime.targets import OnnxruntimeExport

_MEASURES = {
    "tensors": "tensors at the peak",
    "in_use": "arena in use at the peak",
    "held": "arena held",
}
OPTIONS = "GraphOptimizationLevel.ORT_DISABLE_ALL, ExecutionOrder.PRIORITY_BASED"


def as_json(model: Path, export: OnnxruntimeExport, order_name: str) -> dict[str, object]:
    return {
        "model": str(model),
        "target": "onnxruntime",
        "order": order_name,
        "order_used": not export.stays,
        "stock_stays": export.stays or None,
        **{
            name: {"stock": getattr(export.stock, name), "ordered": getattr(export.ordered, name)}
            for name in _MEASURES
        },
    }


def rows(export: OnnxruntimeExport) -> Iterator[tuple[str, RenderableType]]:
    """Yield the facts for people."""
    for name, label in _MEASURES.items():
        yield label, change(getattr(export.stock, name), getattr(export.ordered, name))
    if export.stays:
        yield "order to use", Text(f"stock stays: {export.stays}")
        return
    yield "outputs", "identical bit for bit"
    yield "order to use", Text("ours", "bold")
    yield "run it with", OPTIONS
