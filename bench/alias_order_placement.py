"""Sharing, order and placement together, beside every peer that plans the same model.

    python bench/alias_order_placement.py [--json] [MODEL ...]

A row is a model as one peer counts it: its tensors, its alignment, its view of graph inputs
and outputs. Ours comes four times: the bound of the graph as written, after sharing storage
(`--alias all`), in the best order on top, and the height of the verified plan of that.

    onnxsim  `plan_activation_memory`; alignment 1, inputs and outputs in; of our plan the
             storages that it places too
    ort      ONNX Runtime's default session: the most its arena was asked for at once,
             without weights, rounding and kernel scratch; alignment 1, inputs are the
             caller's; ours for the better of two graphs, as written and as it fuses it
    litert   TensorFlow Lite's arena in LiteRT, kernel scratch in; alignment 64; its kernels
             support views and element-wise results in place; its order is fixed
    tflm     TensorFlow Lite Micro's head; alignment 16; results reach into operands
             (`--alias overlap`), which its reference kernels support: the interpreter
             runs our plan, and its outputs must be bit-identical
    paper    the bounds of Pisarchyk and Lee 2020 for their networks, activations fused,
             inputs and outputs left out; the paper neither shares nor reorders

A MODEL is a file or a network of the zoo. Without any: the nine networks of the `onnx`
package, the zoo, and those in `../shared/models`, where present. Each runs in a process of
its own.
"""

import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from arenite.planner.errors import AreniteError
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Boundary, Rules
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import TensorKind
from arenite.runtime.targets.litert import probe_arena
from arenite.runtime.targets.onnxruntime import (
    drawn_feeds,
    stock_memory,
    stock_options,
    stock_session,
)
from arenite.runtime.targets.tflm import (
    learn_scratch,
    measure_arena,
    measure_bytes,
    read_tflm_model,
)
from arenite.strategies import find, find_order
from harness import ProcessError, bench, emit, in_fresh_process, parser, table
from harness.inputs import (
    SHAPES,
    dims_of,
    light_networks,
    required,
    shared_onnx,
    shared_tflite,
    zoo_file,
)
from onnxsim_comparison import prepared
from paper_tables import PAPER
from zoo import NETWORKS


@dataclass(frozen=True)
class Row:
    """A model as one peer counts it, in bytes.

    Attributes:
        model: Its name.
        peer: Whose count.
        theirs: What the peer needs.
        written: Bound of the graph as written.
        shared: Bound with storage shared.
        ordered: Bound in the best order too.
        overlapped: Bound with results that reach into operands too, where kernels support it.
        placed: Height of the verified plan of that.
        refused: Why the peer has no figure; then the rest is 0.
    """

    model: str
    peer: str
    theirs: int = 0
    written: int = 0
    shared: int = 0
    ordered: int = 0
    overlapped: int = 0
    placed: int = 0
    refused: str = ""

    @property
    def change(self) -> float:
        """Ours against theirs: -0.1 is a tenth lower."""
        return self.placed / self.theirs - 1


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if ours is larger anywhere."""
    options = parser(__doc__, models="all there are").parse_args(arguments)
    named = [str(model) for model in options.models]
    files = [Path(model) for model in named if model not in NETWORKS]
    if files:
        required(files, f"name files or networks of the zoo: {', '.join(NETWORKS)}")
    rows = [row for model in named or models() for row in isolated(model)]
    emit(options, rows, shown(rows), *summary(rows))
    return int(any(row.placed > row.theirs for row in rows if not row.refused))


def models() -> Iterator[str]:
    """Yield the model files and networks there are."""
    yield from map(str, light_networks())
    yield from NETWORKS
    yield from map(str, (*shared_onnx(), *shared_tflite()))


def isolated(model: str) -> list[Row]:
    """Return the rows of a model, measured in a fresh process."""
    try:
        return in_fresh_process(compare, model)
    except ProcessError as error:
        return [Row(Path(model).stem, "all", refused=str(error))]


def compare(model: str) -> list[Row]:
    """Return a model's rows, one for each peer that takes it."""
    if model not in NETWORKS:
        path = Path(model)
        peers = (
            (against_litert, against_tflm)
            if path.suffix == ".tflite"
            else (against_onnxsim, against_ort)
        )
        return [measured(path.stem, path, peer) for peer in peers]
    with tempfile.TemporaryDirectory() as folder:
        path = zoo_file(model, Path(folder))
        rows = [measured(model, path, peer) for peer in (against_onnxsim, against_ort)]
        return rows + ([against_paper(model, path)] if model in PAPER else [])


def measured(name: str, path: Path, peer: Callable[[str, Path], Row]) -> Row:
    """Return the row of one peer, or why there is none."""
    try:
        return peer(name, path)
    except (AreniteError, RuntimeError) as error:
        label = peer.__name__.removeprefix("against_")
        reason = str(error).removeprefix(f"{path}: ").splitlines()[0]
        return Row(name, label, refused=textwrap.shorten(reason, 60, placeholder=" ..."))


def against_onnxsim(name: str, path: Path) -> Row:
    """Return our figures beside onnxsim's, both on the tensors that it places."""
    import onnxsim

    dims = dims_of(path)
    theirs = onnxsim.plan_activation_memory(prepared(path, dims), run_shape_inference=False)
    return ours(
        Row(name, "onnxsim", theirs.arena_bytes),
        read_onnx(path, dims=dims),
        only=frozenset(theirs.tensor_offsets),
    )


def against_ort(name: str, path: Path) -> Row:
    """Return our figures, inputs left to the caller, beside ONNX Runtime's."""
    shapes = dict(SHAPES.get(path.stem, {}))
    dims = {} if shapes else dims_of(path)
    with tempfile.TemporaryDirectory() as folder:
        optimised, options = Path(folder, path.name), stock_options()
        options.optimized_model_filepath = str(optimised)
        feeds = drawn_feeds(path, stock_session(path, options).get_inputs(), dims, shapes)
        optimised_program = read_onnx(optimised, dims=dims_of(path))
    theirs = stock_memory(path, stock_options(), feeds).tensors
    rows = []
    for each in (optimised_program, read_onnx(path, dims=dims_of(path))):
        given = set(each.input_tensors)
        tensors = {
            name: replace(tensor, kind=TensorKind.CONSTANT) if name in given else tensor
            for name, tensor in each.tensors.items()
        }
        rows.append(ours(Row(name, "ort", theirs), replace(each, tensors=tensors, inputs=())))
    return min(rows, key=lambda row: row.placed)


def against_paper(name: str, path: Path) -> Row:
    """Return our figures beside the bound that the paper states, to three decimals of a MiB."""
    if name == "blazeface":
        return Row(name, "paper", refused="the paper has another BlazeFace")
    theirs = round(PAPER[name]["offsets-bound"] * 2**20)
    row = ours(Row(name, "paper", theirs), fuse_activations(read_onnx(path)), Boundary.EXCLUDE)
    is_same = f"{row.placed / 2**20:.3f}" == f"{theirs / 2**20:.3f}"
    return replace(row, theirs=row.placed) if is_same else row


def against_litert(name: str, path: Path) -> Row:
    """Return our figures for the interpreter's own tensors beside its arena."""
    asked = probe_arena(path)
    written = liveness(asked.program, alignment=64)
    shared = asked.problem(keep_inputs=False)
    return Row(
        name,
        "litert",
        asked.stock_bytes,
        written.lower_bound,
        shared.lower_bound,
        shared.lower_bound,
        placed=height(shared),
    )


def against_tflm(name: str, path: Path) -> Row:
    """Return our figures beside the head of TensorFlow Lite Micro, which runs our plan."""
    model = read_tflm_model(path)
    boundary = (len(model.program.inputs), len(model.program.outputs))
    theirs = measure_arena(path, *boundary)
    scratch = learn_scratch(model)
    written = model.problem(scratch)
    safe = replace(model, program=share(model.program, SAFE_KINDS))
    reaching = replace(model, program=share(model.program, tuple(AliasKind)))
    # Overlaps as merged storages, as permission for the placement, and as both.
    ways = [
        (safe, permit_overlaps(safe.program, safe.problem(scratch))),
        (reaching, reaching.problem(scratch)),
        (reaching, permit_overlaps(reaching.program, reaching.problem(scratch))),
    ]
    plans = [find("best")(problem) for _, problem in ways]
    (sharing, problem), plan = min(zip(ways, plans, strict=True), key=lambda way: way[1].height)
    data = model.file.with_plan(sharing.offsets(problem, plan))
    planned = measure_bytes(path, data, *boundary)
    if planned.outputs != theirs.outputs:
        raise RuntimeError("the outputs with our plan are others")
    shared = safe.problem(scratch).lower_bound
    return Row(
        name,
        "tflm",
        theirs.head,
        written.lower_bound,
        shared,
        shared,
        min(problem.lower_bound for _, problem in ways),
        planned.head,
    )


def ours(
    row: Row,
    program: Program,
    boundary: Boundary = Boundary.INCLUDE,
    only: frozenset[str] = frozenset(),
) -> Row:
    """Return the row with our figures filled in, alignment 1."""

    def problem(each: Program) -> Problem:
        found = liveness(each, boundary=boundary, alignment=1)
        same = [record for record in found.records if not only or only & {*record.tensors}]
        return replace(found, records=tuple(same))

    rules = Rules(SAFE_KINDS, boundary, alignment=1)
    shared, ordered = (
        problem(derive(program, rules, order).program) for order in (None, find_order("best"))
    )
    return replace(
        row,
        written=problem(program).lower_bound,
        shared=shared.lower_bound,
        ordered=min(shared.lower_bound, ordered.lower_bound),
        placed=min(height(shared), height(ordered)),
    )


def height(problem: Problem) -> int:
    """Return the verified arena of the best plan."""
    plan = find("best")(problem)
    verify(problem, plan)
    return plan.height


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    cells = []
    for row in rows:
        if row.refused:
            cells.append((row.model[:36], row.peer, *"------", row.refused))
            continue
        figures = (
            row.theirs, row.written, row.shared, row.ordered, row.overlapped, row.placed
        )  # fmt: skip
        shown_figures = (f"{figure:,}" if figure else "" for figure in figures)
        cells.append((row.model[:36], row.peer, *shown_figures, f"{row.change:+.1%}"))
    return table(
        "Bytes, as each peer counts",
        (
            "model", "peer", "theirs", "as written", "+ sharing", "+ order", "+ overlap",
            "placed", "against theirs",
        ),
        cells,
        num_names=2,
    )  # fmt: skip


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield a comparison with each peer."""
    for peer in dict.fromkeys(row.peer for row in rows):
        stood = [row for row in rows if row.peer == peer and not row.refused]
        if stood:
            lower = sum(row.placed < row.theirs for row in stood)
            equal = sum(row.placed == row.theirs for row in stood)
            yield (
                f"{peer}: {lower} of {len(stood)} lower, {equal} equal, "
                f"{len(stood) - lower - equal} higher; "
                f"{min(row.change for row in stood):+.1%} to "
                f"{max(row.change for row in stood):+.1%}"
            )


if __name__ == "__main__":
    sys.exit(main())
