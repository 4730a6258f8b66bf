"""Our arena beside that of onnxsim's `plan_activation_memory`, on the same models.

    python bench/onnxsim_comparison.py [--json]

onnxsim lets views and element-wise results share storage, so it is compared with our plan
after the same rewrite, and where it leaves tensors out, with our plan of those it took;
the plan of the graph as written stands beside it. Models:
the nine networks inside the `onnx` package and, where present, the ONNX models in
`../shared/models`.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from rich.table import Table

from arenite.planner.importers.onnx import read_onnx
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.tensors import TensorKind
from arenite.strategies import find
from harness import bench, emit, parser, table
from harness.inputs import dims_of, each_of, light_networks, shared_onnx

ALIGNMENT = 1  # as onnxsim has it


@dataclass(frozen=True)
class Row:
    """One model: bytes, and tensors left without a place."""

    model: str
    onnxsim_arena: int
    onnxsim_unplanned: int
    as_written: int
    arena: int
    same_tensors: int
    lower_bound: int
    unplanned: int


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if ours is larger on the same tensors or leaves any out."""
    options = parser(__doc__).parse_args(arguments)
    rows = list(each_of((), (*light_networks(), *shared_onnx()), compare))
    emit(options, rows, shown(rows))
    return int(any(row.same_tensors > row.onnxsim_arena or row.unplanned for row in rows))


def compare(path: Path) -> Row:
    """Return both planners' figures for one model."""
    import onnxsim

    dims = dims_of(path)
    theirs = onnxsim.plan_activation_memory(prepared(path, dims), run_shape_inference=False)
    program = read_onnx(path, dims=dims)
    written = liveness(program, alignment=ALIGNMENT)
    shared = liveness(share(program, SAFE_KINDS, alignment=ALIGNMENT), alignment=ALIGNMENT)
    same = [
        record
        for record in shared.records
        if not theirs.tensor_offsets.keys().isdisjoint(record.tensors)
    ]
    return Row(
        path.stem,
        theirs.arena_bytes,
        len(theirs.unplanned),
        height(written),
        height(shared),
        height(replace(shared, records=tuple(same))),
        shared.lower_bound,
        unplanned(program, shared),
    )


def height(problem: Problem) -> int:
    """Return the verified arena of the best quick plan."""
    plan = find("best")(problem)
    verify(problem, plan)
    return plan.height


def unplanned(program: Program, problem: Problem) -> int:
    """Count the tensors that take bytes at run time but lie in no record."""
    planned = {name for record in problem.records for name in record.tensors}
    return sum(
        tensor.size > 0 and tensor.kind is not TensorKind.CONSTANT and tensor.name not in planned
        for tensor in program.tensors.values()
    )


def prepared(path: Path, dims: dict[str, int]) -> ModelProto:
    """Return the model as onnxsim plans it best: dimensions bound, weights constant.

    The networks inside `onnx` make their weights by ConstantOfShape, which onnxsim would
    count as activations; they become initialisers without data.
    """
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in dims:
                dimension.dim_value = dims[dimension.dim_param]
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    initialisers = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "ConstantOfShape" and node.input[0] in initialisers:
            shape = numpy_helper.to_array(initialisers[node.input[0]]).tolist()
            weights = TensorProto(
                name=node.output[0],
                data_type=TensorProto.FLOAT,
                dims=shape,
                data_location=TensorProto.EXTERNAL,
            )
            weights.external_data.add(key="location", value="absent.bin")
            model.graph.initializer.append(weights)
        else:
            model.graph.node.append(node)
    return model


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Arena in bytes, alignment 1, inputs and outputs included",
        (
            "model", "onnxsim", "it left out", "ours, as written", "views, in place", "its bound",
            "on onnxsim's tensors", "against onnxsim",
        ),
        (
            (
                row.model,
                f"{row.onnxsim_arena:,}",
                str(row.onnxsim_unplanned),
                f"{row.as_written:,}",
                f"{row.arena:,}",
                f"{row.lower_bound:,}",
                f"{row.same_tensors:,}",
                f"{row.same_tensors / row.onnxsim_arena - 1:+.1%}",
            )
            for row in rows
        ),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
