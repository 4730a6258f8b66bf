"""Our plans in other runtimes: their arenas and ours, outputs bit for bit; and two memories."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from arenite.pipeline.targets.arenite import compiled_for
from arenite.planner.errors import AreniteError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import verify
from arenite.planner.programs.memories import CostedMemory, assigned, cost_of, traffic_of
from arenite.planner.tensors import Memory
from arenite.runtime.targets.executorch import memory_planning
from arenite.runtime.targets.litert import PlannedInterpreter, load_interpreter
from arenite.runtime.targets.tflm import export_tflm
from arenite.strategies import find, spread
from arenite.strategies.base.gap_search import lowest_gap
from bench.harness.contest import Asked, Row, contest, note, required
from bench.harness.inputs import TFLITE_MODELS, reading_of, shared_onnx, shared_tflite, zoo_files
from bench.harness.measuring import ProcessError, in_fresh_process, timed

_SEED = 0


@contest(
    {"LiteRT's CPU arena in bytes, kernel scratch included, alignment 64": {
        "model": "", "stock": "", "inputs kept": "", "inputs reused": "",
        "against stock": "+.1%", "bound": "", "inside": "", "outputs": "",
    }},
    models="those of ../shared/models/tflite",
)  # fmt: skip
def litert_arena(asked: Asked) -> Iterator[Row]:
    """The arena of stock LiteRT beside ours, outputs compared bit for bit.

    Each model runs in a fresh process, because some crash the stock runtime. Every arena tensor,
    kernel scratch included, is looked up in the running interpreter.
    """
    for path in required(asked.models or shared_tflite(), TFLITE_MODELS):
        try:
            row = in_fresh_process(in_litert, path)
        except ProcessError as error:
            row = {"model": path.stem, "outputs": f"does not run in stock: {error}"}
        if "stock" in row:
            asked.require(bool(row.pop("holds")), f"{path.stem}: same bits, inside, no larger")
        yield row


def in_litert(path: Path) -> Row:
    """Return the row of a model."""
    try:
        stock = load_interpreter(path, 1)
        stock.allocate_tensors()
    except (AreniteError, RuntimeError) as error:
        return {
            "model": path.stem,
            "outputs": f"does not run in stock: {str(error).splitlines()[0][:60]}",
        }
    kept, planned = (
        PlannedInterpreter(path, strategy=find("best"), keep_inputs=keep) for keep in (True, False)
    )
    identical = _litert_outputs(stock) == _litert_outputs(kept) == _litert_outputs(planned)
    if planned.plan is None or kept.plan is None:
        return {"model": path.stem, "outputs": "the stock placement stays"}
    first = planned.arena.ctypes.data
    end = first + planned.arena.size
    inside = [first <= at and at + size <= end for at, size in planned.tensor_addresses()]
    stock_bytes = planned.stock_bytes or 0
    largest = max(kept.plan.height, planned.plan.height)
    return {
        "model": path.stem, "stock": stock_bytes, "inputs kept": kept.plan.height,
        "inputs reused": planned.plan.height,
        "against stock": planned.plan.height / stock_bytes - 1, "bound": planned.plan.lower_bound,
        "inside": f"{sum(inside)}/{len(inside)}",
        "outputs": "identical" if identical else "DIFFERENT",
        "holds": identical and all(inside) and largest <= stock_bytes,
    }  # fmt: skip


def _litert_outputs(interpreter: Any) -> list[bytes]:
    """Return the outputs of consecutive runs on the same random inputs."""
    random = np.random.default_rng(_SEED)
    result = []
    for _ in range(3):
        for each in interpreter.get_input_details():
            dtype = np.dtype(each["dtype"])
            if dtype.kind in "iu":
                low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
                drawn = random.integers(low, high, each["shape"], dtype=dtype, endpoint=True)
            else:
                drawn = random.standard_normal(each["shape"]).astype(dtype)
            interpreter.set_tensor(each["index"], drawn)
        interpreter.invoke()
        for each in interpreter.get_output_details():
            result.append(interpreter.get_tensor(each["index"]).tobytes())
    return result


@contest(
    {"TensorFlow Lite Micro, 64-bit host: bytes": {
        "model": "", "head, stock": "", "head, ours": "", "bound": "", "total, stock": "",
        "total, ours": "", "smallest arena, stock": "", "smallest arena, ours": "", "scratch": "",
        "outputs": "",
    }},
    models="those of ../shared/models/tflite",
)  # fmt: skip
def tflm_arena(asked: Asked) -> Iterator[Row]:
    """The arena that TensorFlow Lite Micro needs, with its own plan and with ours.

    Measured in the real interpreter, outputs compared bit for bit.
    """
    for path in required(asked.models or shared_tflite(), TFLITE_MODELS):
        try:
            export = export_tflm(path, find("best"), find("tflm"))
        except AreniteError as error:
            yield {"model": path.stem, "outputs": f"does not run: {str(error)[:60]}"}
            continue
        if export.measured is None:
            yield {"model": path.stem, "outputs": f"does not run: {export.not_measured[:60]}"}
            continue
        stock, ours = export.measured.stock, export.measured.planned
        same = stock.outputs == ours.outputs
        pairs = ((stock.head, ours.head), (stock.total, ours.total),
                 (stock.smallest, ours.smallest))  # fmt: skip
        no_larger = all(own <= other for other, own in pairs)
        asked.require(same and no_larger, f"{path.stem}: same bits in no more memory")
        yield {
            "model": path.stem, "head, stock": stock.head, "head, ours": ours.head,
            "bound": export.plan.lower_bound, "total, stock": stock.total,
            "total, ours": ours.total, "smallest arena, stock": stock.smallest,
            "smallest arena, ours": ours.smallest, "scratch": len(export.measured.scratch),
            "outputs": "identical" if same else "DIFFERENT",
        }  # fmt: skip


@contest({
    "ExecuTorch's plans beside ours, bytes": {
        "network": "", "greedy": "", "ours": "", "bound": "", "fast memory": "",
        "in it, banked_greedy": "", "in it, ours": "", "slow memory, banked_greedy": "",
        "slow memory, ours": "", "outputs": "",
    },
})  # fmt: skip
def executorch_buffers(asked: Asked) -> Iterator[Row]:
    """Buffers of programs that ExecuTorch exports, by its own algorithms and by ours.

    Small networks of PyTorch, one memory and two. Every program runs in the stock runtime; outputs
    are compared bit for bit with those of stock's own plan. Needs the extra `executorch`.
    """
    warnings.simplefilter("ignore")  # of PyTorch and ExecuTorch about each other
    from bench.learning.pytorch_networks import NETWORKS

    for name, (make, shape) in NETWORKS.items():
        row = in_executorch(name, make(), shape)
        ours, greedy = int(str(row["ours"])), int(str(row["greedy"]))
        asked.require(row["outputs"] == "identical" and ours <= greedy, f"{name}: same, no larger")
        yield row


def in_executorch(name: str, module: Any, shape: tuple[int, ...]) -> Row:
    """Return the row of one network."""
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.banked_memory_planning import Bank, BankedGreedy, TargetMemoryMap
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from executorch.exir.passes import MemoryPlanningPass
    from executorch.runtime import Runtime

    torch.manual_seed(0)
    x = torch.randn(shape)
    exported = torch.export.export(module.eval(), (x,))
    outputs: list[Any] = []

    def export(algorithm: Callable[..., Any] | None) -> Any:
        planning = MemoryPlanningPass(memory_planning_algo=algorithm)
        config = ExecutorchBackendConfig(memory_planning_pass=planning)
        program = to_edge(exported).to_executorch(config)
        method = Runtime.get().load_program(program.buffer).load_method("forward")
        outputs.append(method.execute([x])[0])
        return program

    def sizes(program: Any) -> list[int]:
        return list(program.executorch_program.execution_plan[0].non_const_buffer_sizes)

    plans: list[tuple[Problem, Plan]] = []
    stock = export(None)
    ours = export(memory_planning(find("best"), on_plan=lambda *each: plans.append(each)))
    fast = sizes(ours)[1] // 3 // 16 * 16
    banks = [Bank("fast", fast, 1), Bank("slow", 1 << 24, 2)]
    greedy = export(MemoryPlanningAlgorithmSuite([BankedGreedy(TargetMemoryMap(banks))]))
    banked = export(memory_planning(find("best"), banks=banks, spread=spread))
    identical = all(torch.equal(outputs[0], each) for each in outputs)
    return {
        "network": name, "greedy": sizes(stock)[1], "ours": sizes(ours)[1],
        "bound": plans[0][1].lower_bound, "fast memory": fast,
        "in it, banked_greedy": _bytes_in(greedy, 1), "in it, ours": _bytes_in(banked, 1),
        "slow memory, banked_greedy": sizes(greedy)[2], "slow memory, ours": sizes(banked)[2],
        "outputs": "identical" if identical else "DIFFERENT",
    }  # fmt: skip


def _bytes_in(program: Any, mem_id: int) -> int:
    """Return the bytes of all tensors in a memory, at any time."""
    specs = {}
    for node in program.exported_program().graph_module.graph.nodes:
        found = node.meta.get("spec")
        for spec in found if isinstance(found, list | tuple) else [found]:
            if spec is not None and spec.mem_id == mem_id:
                specs[id(spec)] = spec.allocated_memory
    return sum(specs.values())


_SLOW = CostedMemory(Memory("slow"), read=4, write=6)


@contest(
    {"Cost of reads and writes in two memories, over that of one fast memory for all": {
        "model": "", "fast memory, B": "", "ours": ".3f", "least by loads": ".3f",
        "largest first": ".3f", "seconds": ".2f",
    }},
    models="the zoo, and models of ../shared",
)  # fmt: skip
def several_memories(asked: Asked) -> Iterator[Row]:
    """Cost of reads and writes with the tensors of a network in two memories.

    A fast memory of a half or a quarter of the arena, and a slow one without limit in which a byte
    costs four times as much to read and six times as much to write. Beside our assignment: the
    least cost that loads allow, and ExecuTorch's `banked_greedy`, which takes the tensors by size,
    the largest first, each into the first memory with a gap. Every plan is verified.
    """

    def models() -> Iterator[Path]:
        zoo = ("mobilenet-v2", "unet", "resnet50", "densenet121", "inception-v3")
        yield from zoo_files(zoo, asked.folder)
        yield from shared_tflite((
            "tf2_mobilenet_v2_1.0_224_ptq", "mobilenet_v1_0.5_160_quant", "person_detect",
            "vww_96_int8", "pretrainedResnet_quant", "deeplabv3_mnv2_dm05_pascal_quant",
        ))  # fmt: skip
        yield from shared_onnx()

    for rows in asked.each(models(), _in_two_memories):
        yield from rows


def _in_two_memories(model: Path) -> list[Row]:
    source = compiled_for(reading_of(model), model).source
    traffic = traffic_of(source.problem, source.program)
    best = find("best")
    height = best(source.problem).height
    rows: list[Row] = []
    for share in (2, 4):
        fast = CostedMemory(Memory("fast", height // share))
        memories = (fast, _SLOW)
        everything = sum(each.cost_in(fast) for each in traffic)
        seconds, ours = timed(partial(spread, source.problem, memories, traffic, best))
        verify(ours.problem, ours.plan)
        chosen = _largest_first(source.problem, height // share)
        theirs = assigned(source.problem, [each.memory for each in memories], chosen)
        rows.append({
            "model": model.stem, "fast memory, B": height // share, "ours": ours.cost / everything,
            "least by loads": ours.least_cost / everything if ours.least_cost else None,
            "largest first": cost_of(theirs, memories, traffic) / everything, "seconds": seconds,
        })  # fmt: skip
    note(model.stem)
    return rows


def _largest_first(problem: Problem, capacity: int) -> dict[str, str]:
    """Return the memory of each record: the first with a gap, by size, the largest first."""
    placed: list[tuple[UsageRecord, int]] = []
    memory_of: dict[str, str] = {}
    for record in sorted(problem.records, key=lambda each: (-each.size, each.start)):
        taken = sorted(
            (offset, offset + other.size) for other, offset in placed if record.meets(other)
        )
        offset = lowest_gap(taken, record.size, record.alignment)
        fits = offset + record.size <= capacity
        memory_of[record.name] = "fast" if fits else "slow"
        if fits:
            placed.append((record, offset))
    return memory_of
