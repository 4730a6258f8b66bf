import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.problem import Problem
from arenite.strategies.share.tenancy import Tenancy
from support.problems import problems
from support.small_problems import problem_of


def test_nothing_is_vacant_before_there_are_objects() -> None:
    assert Tenancy(problem_of((8, 0, 1)).records).vacant(0).tolist() == []


@given(problem=problems(), data=st.data())
def test_an_object_is_vacant_unless_a_tenant_is_met(problem: Problem, data: st.DataObject) -> None:
    records = problem.records
    tenancy = Tenancy(records)
    tenants: list[list[int]] = []
    for index, record in enumerate(records):
        vacant = [
            number
            for number, inside in enumerate(tenants)
            if not any(record.meets(records[other]) for other in inside)
        ]
        assert tenancy.vacant(index).tolist() == vacant
        tops = np.arange(1, len(records) + 1)
        assert tenancy.highest(index, tops).tolist() == [
            max((other + 1 for other in inside if record.meets(records[other])), default=0)
            for inside in tenants
        ]
        if data.draw(st.booleans()) or not tenants:
            assert tenancy.assign(index, None) == len(tenants)
            tenants.append([index])
        else:
            chosen = data.draw(st.integers(0, len(tenants) - 1))
            assert tenancy.assign(index, chosen) == chosen
            tenants[chosen].append(index)
    by_object = enumerate(tenants)
    expected = {index: number for number, inside in by_object for index in inside}
    assert dict(enumerate(tenancy.assignment)) == expected
