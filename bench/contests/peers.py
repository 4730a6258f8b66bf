"""Sharing, order and placement beside every tool that plans the same model."""

import json
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, numpy_helper

from arenite.planner.errors import AreniteError
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.operators.operator import Operator
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Boundary, Rules
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import DType, Tensor, TensorKind
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
from bench.contests.placement import PAPER
from bench.harness.contest import Asked, Row, contest, note, option, required
from bench.harness.inputs import (
    SHAPES,
    dims_of,
    light_networks,
    shared_onnx,
    shared_tflite,
    zoo_file,
)
from bench.harness.measuring import ProcessError, in_fresh_process, timed
from bench.zoo import CELLS, NETWORKS


def height(problem: Problem) -> int:
    """Return the verified arena of the best plan."""
    plan = find("best")(problem)
    verify(problem, plan)
    return plan.height


@contest(
    {"Bytes, as each peer counts": {
        "model": "", "peer": "", "theirs": "", "as written": "", "+ sharing": "", "+ order": "",
        "+ overlap": "", "placed": "", "against theirs": "+.1%", "refused": "",
    }},
    models="the onnx package, the zoo, and models of ../shared; or names of the zoo",
)  # fmt: skip
def alias_order_placement(asked: Asked) -> Iterator[Row]:
    """Sharing, order and placement together, beside every peer that plans the same model.

    A row is a model as one peer counts it: its tensors, its alignment, its view of graph inputs
    and outputs. Ours: the bound of the graph as written, after sharing storage (`--alias all`), in
    the best order too, and the height of the verified plan.

        onnxsim  `plan_activation_memory`; alignment 1, inputs and outputs in; the tensors it
        places ort      ONNX Runtime's default session: the most that is asked of its arena at
        once, without weights, rounding and kernel scratch; alignment 1, inputs are the caller's
        litert   LiteRT's arena, kernel scratch in; alignment 64; its order is fixed tflm
        TensorFlow Lite Micro's head; alignment 16; results may overlap operands (`--alias
        overlap`): its interpreter runs our plan, with identical outputs paper    the bounds of
        Pisarchyk and Lee 2020, activations fused, inputs and outputs left out

    Each model runs in a process of its own.
    """
    named = [str(model) for model in asked.models]
    files = [Path(model) for model in named if model not in NETWORKS]
    if files:
        required(files, f"name files or networks of the zoo: {', '.join(NETWORKS)}")
    found: list[Row] = []
    every = (*map(str, light_networks()), *NETWORKS, *map(str, (*shared_onnx(), *shared_tflite())))
    for model in named or every:
        try:
            found += in_fresh_process(against_peers, model)
        except ProcessError as error:
            found.append({"model": Path(model).stem, "peer": "all", "refused": str(error)})
    for peer in dict.fromkeys(row["peer"] for row in found):
        changes = [
            change
            for row in found
            if row["peer"] == peer and isinstance(change := row.get("against theirs"), float)
        ]
        if changes:
            lower, higher = (sum(sign * each > 0 for each in changes) for sign in (-1, 1))
            note(
                f"{peer}: {lower} of {len(changes)} lower, {len(changes) - lower - higher} equal, "
                f"{higher} higher; {min(changes):+.1%} to {max(changes):+.1%}"
            )
            asked.require(not higher, f"nothing is larger than {peer}'s")
    yield from found


def against_peers(model: str) -> list[Row]:
    """Return a model's rows, one for each peer that takes it."""
    if model not in NETWORKS:
        path = Path(model)
        is_tflite = path.suffix == ".tflite"
        peers = (_litert, _tflm) if is_tflite else (_onnxsim, _ort)
        return [_tried(path.stem, path, peer) for peer in peers]
    with tempfile.TemporaryDirectory() as folder:
        path = zoo_file(model, Path(folder))
        rows = [_tried(model, path, peer) for peer in (_onnxsim, _ort)]
        return rows + ([_tried(model, path, partial(_paper, model))] if model in PAPER else [])


def _tried(name: str, path: Path, peer: Callable[[Path], Row]) -> Row:
    label = getattr(peer, "__name__", "_paper")[1:]
    try:
        row: Row = {"model": name[:36], "peer": label, **peer(path)}
    except (AreniteError, RuntimeError) as error:
        reason = str(error).removeprefix(f"{path}: ").splitlines()[0]
        return {
            "model": name[:36], "peer": label,
            "refused": textwrap.shorten(reason, 60, placeholder=" ..."),
        }  # fmt: skip
    placed, theirs = row["placed"], row["theirs"]
    assert isinstance(placed, int)
    assert isinstance(theirs, int)
    return {**row, "against theirs": placed / theirs - 1}


def _onnxsim(path: Path) -> Row:
    import onnxsim

    dims = dims_of(path)
    theirs = onnxsim.plan_activation_memory(prepared(path, dims), run_shape_inference=False)
    only = frozenset(theirs.tensor_offsets)
    return {"theirs": theirs.arena_bytes, **_ours(read_onnx(path, dims=dims), only=only)}


def _ort(path: Path) -> Row:
    shapes = dict(SHAPES.get(path.stem, {}))
    dims = {} if shapes else dims_of(path)
    with tempfile.TemporaryDirectory() as folder:
        optimised, options = Path(folder, path.name), stock_options()
        options.optimized_model_filepath = str(optimised)
        feeds = drawn_feeds(path, stock_session(path, options).get_inputs(), dims, shapes)
        optimised_program = read_onnx(optimised, dims=dims_of(path))
    theirs = stock_memory(path, stock_options(), feeds).tensors
    found: list[dict[str, int]] = []
    for each in (optimised_program, read_onnx(path, dims=dims_of(path))):
        given = set(each.input_tensors)
        tensors = {
            name: replace(tensor, kind=TensorKind.CONSTANT) if name in given else tensor
            for name, tensor in each.tensors.items()
        }
        found.append(_ours(replace(each, tensors=tensors, inputs=())))
    best = min(found, key=lambda row: row["placed"])
    return {"theirs": theirs, **best}


def _paper(name: str, path: Path) -> Row:
    """Return our figures beside the bound that the paper states, to three decimals of a MiB."""
    if name == "blazeface":
        raise RuntimeError("the paper has another BlazeFace")
    theirs = round(PAPER[name]["offsets-bound"] * 2**20)
    row = _ours(fuse_activations(read_onnx(path)), Boundary.EXCLUDE)
    is_same = f"{row['placed'] / 2**20:.3f}" == f"{theirs / 2**20:.3f}"
    return {"theirs": row["placed"] if is_same else theirs, **row}


def _litert(path: Path) -> Row:
    asked = probe_arena(path)
    shared = asked.problem(keep_inputs=False)
    return {
        "theirs": asked.stock_bytes,
        "as written": liveness(asked.program, alignment=64).lower_bound,
        "+ sharing": shared.lower_bound, "+ order": shared.lower_bound, "placed": height(shared),
    }  # fmt: skip


def _tflm(path: Path) -> Row:
    model = read_tflm_model(path)
    boundary = (len(model.program.inputs), len(model.program.outputs))
    theirs = measure_arena(path, *boundary)
    scratch = learn_scratch(model)
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
    planned = measure_bytes(path, model.file.with_plan(sharing.offsets(problem, plan)), *boundary)
    if planned.outputs != theirs.outputs:
        raise RuntimeError("the outputs with our plan are others")
    shared = safe.problem(scratch).lower_bound
    return {
        "theirs": theirs.head, "as written": model.problem(scratch).lower_bound,
        "+ sharing": shared, "+ order": shared,
        "+ overlap": min(each.lower_bound for _, each in ways), "placed": planned.head,
    }  # fmt: skip


def _ours(
    program: Program, boundary: Boundary = Boundary.INCLUDE, only: frozenset[str] = frozenset()
) -> dict[str, int]:
    """Return our figures at alignment 1, of the storages of some tensors if these are named."""

    def problem(each: Program) -> Problem:
        found = liveness(each, boundary=boundary, alignment=1)
        same = [record for record in found.records if not only or only & {*record.tensors}]
        return replace(found, records=tuple(same))

    rules = Rules(SAFE_KINDS, boundary, alignment=1)
    shared, ordered = (
        problem(derive(program, rules, order).program) for order in (None, find_order("best"))
    )
    return {
        "as written": problem(program).lower_bound, "+ sharing": shared.lower_bound,
        "+ order": min(shared.lower_bound, ordered.lower_bound),
        "placed": min(height(shared), height(ordered)),
    }  # fmt: skip


@contest({
    "Arena in bytes, alignment 1, inputs and outputs included": {
        "model": "", "onnxsim": "", "it left out": "", "ours, as written": "",
        "views, in place": "", "its bound": "", "on onnxsim's tensors": "",
        "against onnxsim": "+.1%",
    },
})  # fmt: skip
def onnxsim_comparison(asked: Asked) -> Iterator[Row]:
    """Our arena beside that of onnxsim's `plan_activation_memory`, on the same tensors.

    onnxsim lets views and element-wise results share storage, so it is compared with our plan
    after the same rewrite; where it leaves tensors out, with our plan of those it takes. Models:
    the nine networks inside the `onnx` package and the ONNX models of `../shared`, where present.
    """
    import onnxsim

    def compared(path: Path) -> Row:
        dims = dims_of(path)
        theirs = onnxsim.plan_activation_memory(prepared(path, dims), run_shape_inference=False)
        program = read_onnx(path, dims=dims)
        shared = liveness(share(program, SAFE_KINDS, alignment=1), alignment=1)
        same = replace(shared, records=tuple(
            record for record in shared.records
            if not theirs.tensor_offsets.keys().isdisjoint(record.tensors)
        ))  # fmt: skip
        ours = height(same)
        asked.require(ours <= theirs.arena_bytes, f"{path.stem}: no larger than onnxsim's arena")
        asked.require(not unplanned(program, shared), f"{path.stem}: every tensor has a place")
        return {
            "model": path.stem, "onnxsim": theirs.arena_bytes,
            "it left out": len(theirs.unplanned),
            "ours, as written": height(liveness(program, alignment=1)),
            "views, in place": height(shared), "its bound": shared.lower_bound,
            "on onnxsim's tensors": ours, "against onnxsim": ours / theirs.arena_bytes - 1,
        }  # fmt: skip

    asked.given.models = []
    yield from asked.each((*light_networks(), *shared_onnx()), compared)


def unplanned(program: Program, problem: Problem) -> int:
    """Count the tensors that take bytes at run time but lie in no record."""
    planned = {name for record in problem.records for name in record.tensors}
    return sum(
        tensor.size > 0 and tensor.kind is not TensorKind.CONSTANT and tensor.name not in planned
        for tensor in program.tensors.values()
    )


def prepared(path: Path, dims: dict[str, int]) -> ModelProto:
    """Return the model as onnxsim plans it best: dimensions bound, weights constant.

    The networks inside `onnx` make their weights by ConstantOfShape, which onnxsim would count as
    activations; they become initialisers without data.
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
        if node.op_type != "ConstantOfShape" or node.input[0] not in initialisers:
            model.graph.node.append(node)
            continue
        weights = TensorProto(
            name=node.output[0], data_type=TensorProto.FLOAT,
            dims=numpy_helper.to_array(initialisers[node.input[0]]).tolist(),
            data_location=TensorProto.EXTERNAL,
        )  # fmt: skip
        weights.external_data.add(key="location", value="absent.bin")
        model.graph.initializer.append(weights)
    return model


PUBLISHED = {
    "darts": 1656 / 903, "swiftnet-a": 552 / 251, "swiftnet-b": 194 / 82, "swiftnet-c": 70 / 33,
    "randwire-78-a": 645 / 459, "randwire-78-b": 330 / 260, "randwire-156-a": 605 / 359,
    "randwire-156-b": 350 / 280, "randwire-312": 160 / 115,
}  # fmt: skip
"""TFLite's peak over that of the best order, for cells of the same family (Ahn et al. 2020,
SERENITY, from memory: open the paper before quoting one)."""


@contest(
    {"Peaks by operator order, bytes": {
        "graph": "", "operators": "", "given": "", "breadth-first": "", "best": "", "proved": "",
        "seconds": ".2f", "given / best": ".2f", "breadth-first / best": ".2f", "SERENITY": ".2f",
    }},
    options=[option("layered", nargs="*", type=Path, metavar="LAYERED.json")],
)  # fmt: skip
def operator_order(asked: Asked) -> Iterator[Row]:
    """Peaks by operator order: as written, breadth-first, and the least, with proof.

    The cells of `bench/zoo` are regenerated, not those of the papers, so ratios may be compared
    and bytes may not. Files are random layered graphs of the Moccasin repository (node-link JSON
    with `out_cost`), which are not part of this project.
    """
    if asked.given.layered:
        required(asked.given.layered, "graphs come from the Moccasin repository's folder of data")
    for name, network in CELLS.items():
        path = asked.folder / f"{name}.onnx"
        onnx.save(network(), path)
        rules = Rules((AliasKind.VIEWS, AliasKind.IN_PLACE))
        yield _ordered(name, fuse_activations(read_onnx(path)), rules)
    for path in asked.given.layered:
        yield _ordered(path.stem, _layered(path), Rules(alignment=1))


def _ordered(name: str, program: Program, rules: Rules) -> Row:
    seconds, best = timed(lambda: find_order("optimal")(program, rules))
    given, breadth = (find_order(each)(program, rules).peak for each in ("given", "breadth-first"))
    return {
        "graph": name, "operators": len(program.steps), "given": given, "breadth-first": breadth,
        "best": best.peak, "proved": "proved" if best.optimal else "", "seconds": seconds,
        "given / best": given / best.peak, "breadth-first / best": breadth / best.peak,
        "SERENITY": PUBLISHED.get(name),
    }  # fmt: skip


def _layered(path: Path) -> Program:
    data = json.loads(path.read_text())
    sizes = {node["name"]: int(node["out_cost"]) for node in data["nodes"]}
    sources: dict[int, list[str]] = {name: [] for name in sizes}
    for link in data["links"]:
        first, second = link.get("source", link.get("0")), link.get("target", link.get("1"))
        sources[second].append(str(first))
    target = data["graph"]["target_node"]
    kinds: Sequence[TensorKind] = (TensorKind.ACTIVATION, TensorKind.OUTPUT)
    tensors = [
        Tensor(str(name), DType.UINT8, (size,), kinds[name == target])
        for name, size in sizes.items()
    ]
    steps = [
        Step(f"node {name}", Operator(), tuple(sources[name]), (str(name),))
        for name in data["graph"]["order"]
    ]
    return Program.of(path.stem, tensors, steps, (), (str(target),))
