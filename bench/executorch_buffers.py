"""Buffers of programs that ExecuTorch exports, by its own algorithms and by ours.

    python bench/executorch_buffers.py [--json]

Small networks of PyTorch, one memory and two. Every program runs in the stock runtime, and its
outputs are compared bit for bit with those of stock's own plan. Needs the extra `executorch`.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.runtime.targets.executorch import memory_planning
from arenite.strategies import find, spread
from harness import bench, emit, parser, table

SLOW = 1 << 24


@dataclass(frozen=True)
class Row:
    """One network, in bytes.

    Attributes:
        network: Its name.
        greedy: One memory, by ExecuTorch's default.
        planned: One memory, by our plan.
        lower_bound: What no plan goes below.
        fast: Capacity of the fast one of two memories.
        banked_greedy: Bytes of tensors in the fast one and size of the slow one, by ExecuTorch.
        banked: The same by us.
        identical: Whether all outputs are those of the default plan, bit for bit.
    """

    network: str
    greedy: int
    planned: int
    lower_bound: int
    fast: int
    banked_greedy: tuple[int, int]
    banked: tuple[int, int]
    identical: bool


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if an output differs or a plan of ours is higher."""
    options = parser(__doc__).parse_args(arguments)
    warnings.simplefilter("ignore")  # of what PyTorch and ExecuTorch say of each other
    from pytorch_networks import NETWORKS

    rows = [compare(name, make(), shape) for name, (make, shape) in NETWORKS.items()]
    emit(options, rows, shown(rows))
    return int(any(not row.identical or row.planned > row.greedy for row in rows))


def compare(name: str, module: Any, shape: tuple[int, ...]) -> Row:
    """Return the figures of one network."""
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

    plans: list[tuple[Problem, Plan]] = []
    stock = export(None)
    ours = export(memory_planning(find("best"), on_plan=lambda *each: plans.append(each)))
    fast = _sizes(ours)[1] // 3 // 16 * 16
    banks = [Bank("fast", fast, 1), Bank("slow", SLOW, 2)]
    greedy = export(MemoryPlanningAlgorithmSuite([BankedGreedy(TargetMemoryMap(banks))]))
    banked = export(memory_planning(find("best"), banks=banks, spread=spread))
    return Row(
        name,
        _sizes(stock)[1],
        _sizes(ours)[1],
        plans[0][1].lower_bound,
        fast,
        (_bytes_in(greedy, 1), _sizes(greedy)[2]),
        (_bytes_in(banked, 1), _sizes(banked)[2]),
        all(torch.equal(outputs[0], each) for each in outputs),
    )


def _sizes(program: Any) -> list[int]:
    return list(program.executorch_program.execution_plan[0].non_const_buffer_sizes)


def _bytes_in(program: Any, mem_id: int) -> int:
    """Return the bytes of all tensors that lie in a memory, at whatever time."""
    specs = {}
    for node in program.exported_program().graph_module.graph.nodes:
        found = node.meta.get("spec")
        for spec in found if isinstance(found, list | tuple) else [found]:
            if spec is not None and spec.mem_id == mem_id:
                specs[id(spec)] = spec.allocated_memory
    return sum(specs.values())


def shown(rows: list[Row]) -> Table:
    """Return the rows for people."""
    return table(
        "Bytes, ExecuTorch's plans beside ours",
        (
            "network", "greedy", "ours", "bound", "fast bank", "in it, banked_greedy",
            "in it, ours", "slow bank, banked_greedy", "slow bank, ours", "outputs",
        ),
        (
            (
                row.network,
                *(
                    f"{size:,}"
                    for size in (
                        row.greedy, row.planned, row.lower_bound, row.fast, row.banked_greedy[0],
                        row.banked[0], row.banked_greedy[1], row.banked[1],
                    )
                ),
                "identical" if row.identical else "DIFFERENT",
            )
            for row in rows
        ),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
