"""ExecuTorch's tensor specifications as usage records."""

import pytest

from arenite.planner.errors import UnsupportedModelError
from arenite.runtime.targets.executorch.planning import storages
from support.executorch_specs import GraphModule, Spec


def records_of(*specs: Spec, alignment: int = 16):
    found = storages(specs, alignment, GraphModule(list(specs)).graph)
    return [each.record for each in found if each.record is not None]


def test_the_last_node_of_a_lifetime_is_part_of_it():
    (record,) = records_of(Spec(64, [2, 5]))
    assert (record.start, record.end) == (2, 6)


def test_sizes_are_rounded_up_to_the_alignment_and_the_specification_keeps_it():
    spec = Spec(65, [0, 1])
    (record,) = records_of(spec, alignment=64)
    assert (record.size, record.alignment, spec.alignment) == (128, 64, 64)


def test_a_result_over_its_operand_shares_its_place():
    operand = Spec(32, [0, 3])
    result = Spec(64, [3, 5], storage_base=operand)
    again = Spec(32, [5, 9], storage_base=result)
    (record,) = records_of(operand, result, again)
    assert (record.size, record.start, record.end) == (64, 0, 10)


def test_a_tensor_may_lie_further_inside_another():
    whole = Spec(64, [0, 3])
    part = Spec(48, [3, 5], storage_base=whole, storage_base_offset=32)
    (storage,) = storages([whole, part], 16, GraphModule([whole, part]).graph)
    assert storage.record.size == 80
    assert [inner for _, inner in storage.specs] == [0, 32]


def test_a_tensor_inside_one_that_is_not_planned_is_refused():
    with pytest.raises(UnsupportedModelError, match="'node_0': is inside"):
        records_of(Spec(32, [3, 5], storage_base=Spec(32, [0, 3])))


def test_a_tensor_at_no_multiple_of_the_alignment_is_refused():
    whole = Spec(64, [0, 3])
    with pytest.raises(UnsupportedModelError, match="begins 8 B inside"):
        records_of(whole, Spec(16, [3, 5], storage_base=whole, storage_base_offset=8))


def test_a_tensor_without_bytes_takes_no_place():
    assert records_of(Spec(0, [0, 1])) == []


def test_records_have_the_names_of_their_nodes_and_do_not_depend_on_the_order_given():
    specs = [Spec(32, [1, 2]), Spec(64, [0, 1]), Spec(16, [0, 1])]
    graph = GraphModule(specs).graph
    names = [
        [each.record.name for each in storages(given, 16, graph) if each.record]
        for given in (specs, specs[::-1])
    ]
    assert names == [["node_1", "node_2", "node_0"]] * 2
