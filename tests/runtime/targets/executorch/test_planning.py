"""What a `MemoryPlanningPass` is told, for specifications that stand in for ExecuTorch's."""

from types import SimpleNamespace

import pytest

from arenite.planner.errors import InfeasibleError, UnsupportedModelError
from arenite.runtime.targets.executorch import memory_planning
from arenite.strategies import find, spread
from support.executorch_specs import Bank, GraphModule, Spec, overlapping

BEST = find("best")


def planned(specs, *, alignment=16, inner=(), padding=0, **options):
    module = GraphModule(specs, list(inner))
    if "banks" in options:
        options["spread"] = spread
    return memory_planning(BEST, **options)(alignment, specs, module, None, padding)


def test_memory_0_stands_for_constants_and_memory_1_holds_the_rest():
    specs = [Spec(100, [0, 1]), Spec(50, [1, 2]), Spec(100, [2, 3])]
    assert planned(specs) == [0, 112 + 64]
    assert {spec.mem_id for spec in specs} == {1}
    assert overlapping(specs) == []


def test_tensors_that_meet_at_one_node_do_not_share_bytes():
    specs = [Spec(64, [0, 1]), Spec(64, [1, 2])]
    assert planned(specs) == [0, 128]


def test_a_tensor_without_bytes_has_an_offset_too():
    spec = Spec(0, [0, 1])
    assert planned([spec]) == [0, 0]
    assert (spec.mem_id, spec.mem_offset) == (1, 0)


def test_what_branches_take_lies_below_everything():
    spec = Spec(64, [0, 1])
    assert planned([spec], inner=[0, 40, 24]) == [0, 48 + 64, 32]
    assert spec.mem_offset == 48


def test_padding_is_added_to_each_memory_in_use():
    specs = [Spec(64, [0, 1]), Spec(64, [0, 1], mem_id=3)]
    assert planned(specs, padding=64) == [0, 128, 0, 128]


def test_a_result_over_its_operand_has_its_offset():
    operand = Spec(64, [0, 3])
    result = Spec(64, [3, 5], storage_base=operand)
    specs = [Spec(64, [0, 9]), operand, result]
    assert planned(specs) == [0, 128]
    assert operand.mem_offset == result.mem_offset


def test_tensors_are_spread_over_banks():
    specs = [Spec(64, [0, 1]), Spec(96, [0, 1]), Spec(48, [2, 3])]
    banks = [Bank("fast", 64, 1), Bank("slow", 999, 2)]
    assert planned(specs, banks=banks) == [0, 64, 96]
    assert [spec.mem_id for spec in specs] == [1, 2, 1]


def test_a_chosen_memory_is_kept_and_one_that_is_no_bank_holds_only_that():
    specs = [Spec(64, [0, 1], mem_id=4), Spec(64, [0, 1], mem_id=2), Spec(64, [0, 1])]
    banks = [Bank("fast", 64, 1), Bank("slow", 999, 2)]
    assert planned(specs, banks=banks) == [0, 64, 64, 0, 64]
    assert [spec.mem_id for spec in specs] == [4, 2, 1]


def test_padding_and_branches_are_taken_from_a_bank():
    specs = [Spec(64, [0, 1]), Spec(64, [0, 1])]
    banks = [Bank("fast", 192, 1), Bank("slow", 999, 2)]
    assert planned(specs, banks=banks, inner=[0, 16], padding=64) == [0, 16 + 64 + 64, 64 + 64]


def test_banks_that_are_too_small_fail_the_export():
    with pytest.raises(InfeasibleError, match="at least 64 B"):
        planned([Spec(64, [0, 1])], banks=[Bank("fast", 32, 1)])


def test_offsets_are_aligned_as_a_bank_asks():
    specs = [Spec(16, [0, 1]), Spec(16, [0, 1])]
    assert planned(specs, banks=[Bank("fast", 999, 1, 64)]) == [0, 128]


def test_the_first_bank_need_not_have_the_first_number():
    specs = [Spec(64, [0, 1]), Spec(96, [0, 1])]
    assert planned(specs, banks=[Bank("fast", 64, 3), Bank("slow", 999, 1)]) == [0, 96, 0, 64]


def test_banks_without_what_spreads_tensors_over_them_are_a_misuse():
    with pytest.raises(ValueError, match="or neither"):
        memory_planning(BEST, banks=[Bank("fast", 64, 1)])


def test_banks_are_of_the_processor():
    spec = Spec(64, [0, 1], device=SimpleNamespace(name="CUDA"))
    with pytest.raises(UnsupportedModelError, match="'node_0': is on CUDA"):
        planned([spec], banks=[Bank("fast", 64, 1)])
    assert planned([spec]) == [0, 64]


def test_whoever_asks_is_shown_the_problem_and_the_plan():
    shown = []
    planned([Spec(64, [0, 1])], on_plan=lambda problem, plan: shown.append((problem, plan)))
    ((problem, plan),) = shown
    assert problem.steps == ("node_0",)
    assert plan.optimal
