"""Networks of PyTorch, exported by our plan, in the stock runtime of ExecuTorch."""

import warnings

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: see make torch")
pytest.importorskip("executorch", reason="the extra 'executorch' is not installed")

from arenite.runtime.targets.executorch import memory_planning
from arenite.strategies import find, spread
from bench.learning.pytorch_networks import NETWORKS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what PyTorch and ExecuTorch say of each other
    import torch
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.banked_memory_planning import Bank, BankedGreedy, TargetMemoryMap
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, Verifier
    from executorch.exir.passes import MemoryPlanningPass
    from executorch.runtime import Runtime

pytestmark = pytest.mark.filterwarnings("ignore")

HEIGHTS = {"attention": (44_032, 34_816), "branches": (65_536, 49_152)}
"""Bytes by ExecuTorch's greedy and by our plan, which is the lower bound."""


@pytest.fixture(scope="module", params=NETWORKS)
def network(request):
    """A network's name, an input, and what exports it by an algorithm."""
    make, shape = NETWORKS[request.param]
    torch.manual_seed(0)
    module, x = make().eval(), torch.randn(shape)
    exported = torch.export.export(module, (x,))

    def export(algorithm, **options):
        planning = MemoryPlanningPass(memory_planning_algo=algorithm, **options)
        config = ExecutorchBackendConfig(memory_planning_pass=planning)
        return to_edge(exported).to_executorch(config)

    return request.param, x, export


def outputs(program, x):
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return method.execute([x])


def sizes(program):
    return list(program.executorch_program.execution_plan[0].non_const_buffer_sizes)


def bytes_in(program, mem_id):
    specs = {}
    for node in program.exported_program().graph_module.graph.nodes:
        found = node.meta.get("spec")
        for spec in found if isinstance(found, list | tuple) else [found]:
            if spec is not None and spec.mem_id == mem_id:
                specs[id(spec)] = spec.allocated_memory
    return sum(specs.values())


def test_the_program_runs_by_our_plan_and_takes_less(network):
    name, x, export = network
    shown = []
    stock = export(None)
    ours = export(memory_planning(find("best"), on_plan=lambda *each: shown.append(each)))
    greedy, best = HEIGHTS[name]
    assert (sizes(stock), sizes(ours)) == ([0, greedy], [0, best])
    ((_, plan),) = shown
    assert plan.optimal
    module = ours.exported_program().graph_module
    Verifier(module, True, True, True).verify_storage_reuse()
    (expected,), (found,) = outputs(stock, x), outputs(ours, x)
    assert torch.equal(expected, found)


@pytest.mark.parametrize("network", ["attention"], indirect=True)
def test_the_fast_bank_gets_at_least_what_stock_gives_it(network):
    name, x, export = network
    banks = [Bank("fast", HEIGHTS[name][1] // 3 // 16 * 16, 1), Bank("slow", 1 << 20, 2)]
    greedy = BankedGreedy(TargetMemoryMap(banks))
    stock = export(MemoryPlanningAlgorithmSuite([greedy]))
    ours = export(memory_planning(find("best"), banks=banks, spread=spread))
    assert sizes(ours)[1] <= banks[0].size
    assert bytes_in(ours, 1) >= bytes_in(stock, 1)
    (expected,), (found,) = outputs(stock, x), outputs(ours, x)
    assert torch.equal(expected, found)
