"""Read a model file of any format we know.

Each importer is imported when a file of its format is read, so that only that format's
packages need be installed.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from arenite.planner.errors import (
    BindingError,
    ModelFormatError,
    UnsupportedModelError,
    about_file,
)
from arenite.planner.files import model_digest, read_model
from arenite.planner.graph import Graph
from arenite.planner.importers.tflite.file import IDENTIFIER
from arenite.planner.liveness import DEFAULT_ALIGNMENT, Boundary, liveness
from arenite.planner.ordering import FindOrder, MemoryModel, Order, choose_order
from arenite.planner.problem import Problem
from arenite.planner.rewrites.aliasing import AliasKind, alias, permit_overlaps
from arenite.planner.source import Source

Shapes = Mapping[str, tuple[int, ...]]

_FORMATS = {".onnx": "onnx", ".tflite": "tflite", ".lite": "tflite", ".csv": "csv"}


def read(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int | None = None,
    capacity: int | None = None,
    order: FindOrder | tuple[str, ...] | None = None,
    aliases: Collection[AliasKind] = (),
) -> Source:
    """Return the graph and the problem of a model file.

    Args:
        path: `.onnx`, `.tflite`, `.lite` or `.csv`.
        dims: Values of free dimensions, by name; ONNX only.
        shapes: Shapes of graph inputs, by name; a TFLite file allows no other than its own.
        boundary: Whether graph inputs and outputs lie in the arena; a CSV states none.
        alignment: Bytes of every offset; by default 16, and for a CSV what it states.
        capacity: Bytes the arena may have; by default what the name of a CSV states.
        order: The operators by name, or what finds their order; by default the file's own.
        aliases: What may share storage; a CSV states records, so it has no use for them.

    Raises:
        ModelFormatError: The file cannot be read, is damaged or of an unknown format.
        BindingError: `dims` or `shapes` give what it does not have or cannot take.
        ModelError: Whatever else keeps the model from being planned.
    """
    with about_file(path):
        digest = model_digest(path)
        kind = model_format(path)
        if kind == "csv":
            problem = _read_csv(path, dims or {}, shapes or {}, alignment)
            if capacity is not None:
                problem = problem.with_capacity(capacity)
            return Source(path.name, digest, None, problem)
        read_graph = _read_onnx if kind == "onnx" else _read_tflite
        graph = read_graph(path, dims or {}, shapes or {})
        alignment = DEFAULT_ALIGNMENT if alignment is None else alignment
        found: Order | None = None
        if callable(order):
            _check_reorderable(graph)
            found = choose_order(graph, order, MemoryModel(tuple(aliases), boundary, alignment))
            order = found.operators
        if order is not None:
            graph = graph.reordered(order)
        graph = alias(graph, aliases, boundary, alignment)
        problem = liveness(graph, boundary=boundary, alignment=alignment, capacity=capacity)
        if AliasKind.OVERLAP in aliases:
            problem = permit_overlaps(graph, problem)
        return Source(path.name, digest, graph, problem, found)


def _check_reorderable(graph: Graph) -> None:
    for operator in graph.operators:
        if "subgraph" in operator.attributes:
            raise UnsupportedModelError(
                operator.name,
                "the operators of a subgraph run between its entry and its exit; keep the "
                "given order",
            )


def model_format(path: Path) -> str:
    """Return the format of a model file, by its suffix, else by its content.

    Raises:
        ModelFormatError: Neither is known, or the file cannot be read.
    """
    known = _FORMATS.get(path.suffix.lower())
    if known is None and read_model(path)[4:8] == IDENTIFIER:
        return "tflite"
    if known is None:
        raise ModelFormatError(
            f"neither its suffix nor its content is known; known: {', '.join(_FORMATS)}",
            path=path,
        )
    return known


def _read_onnx(path: Path, dims: Mapping[str, int], shapes: Shapes) -> Graph:
    from arenite.planner.importers.onnx import read_onnx

    return read_onnx(path, dims=dims, shapes=shapes)


def _read_tflite(path: Path, dims: Mapping[str, int], shapes: Shapes) -> Graph:
    from arenite.planner.importers.tflite import read_tflite

    graph = read_tflite(path)
    check_fixed_shapes(graph, dims, shapes)
    return graph


def check_fixed_shapes(graph: Graph, dims: Mapping[str, int], shapes: Shapes) -> None:
    """Return if what is asked of the inputs is what a TFLite file fixes.

    Raises:
        BindingError: It is not.
    """
    for name in dims:
        raise BindingError(name, "cannot be given; a TFLite file has no free dimensions")
    for name, shape in shapes.items():
        if name not in graph.inputs or graph.tensors[name].shape != shape:
            stated = [f"{each!r} {graph.tensors[each].shape}" for each in graph.inputs]
            raise BindingError(
                name,
                f"cannot be given; a TFLite file fixes its inputs: {', '.join(stated)}",
            )


def _read_csv(
    path: Path, dims: Mapping[str, int], shapes: Shapes, alignment: int | None
) -> Problem:
    from arenite.planner.importers.csv import read_csv

    for name in (*dims, *shapes):
        raise BindingError(name, "cannot be given; a CSV has neither dimensions nor inputs")
    problem = read_csv(path)
    if alignment is None:
        return problem
    return replace(
        problem,
        records=tuple(replace(record, alignment=alignment) for record in problem.records),
    )
