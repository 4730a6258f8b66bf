from dataclasses import replace

import pytest

from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import OverlapError, verify
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.tensors import Alias, DType, Memory, Tensor, TensorKind
from arenite.strategies import find
from support.tiny_graphs import step


def tensor(name, kind=TensorKind.ACTIVATION, alias=None, size=4):
    return Tensor(name, DType.UINT8, (size,), kind, alias)


def program_of(tensors, operands, inputs=("x",), outputs=("y",), scratch=()):
    steps = [
        step(f"op{index}", "Conv", reads, writes, scratch=dict(scratch).get(index, 0))
        for index, (reads, writes) in enumerate(operands)
    ]
    return Program.of("test", tensors, steps, inputs, outputs)


def lifetimes(program, **options):
    problem = liveness(program, alignment=1, **options)
    return {record.name: (record.start, record.end) for record in problem.records}


X = tensor("x", TensorKind.INPUT)
A, B, C = tensor("a"), tensor("b"), tensor("c")
Y = tensor("y", TensorKind.OUTPUT)
CHAIN = [(("x",), ("a",)), (("a",), ("b",)), (("b",), ("y",))]


def test_neighbours_in_a_chain_overlap_and_others_do_not():
    x, a, b, y = liveness(program_of([X, A, B, Y], CHAIN)).records
    assert x.meets(a)
    assert a.meets(b)
    assert b.meets(y)
    assert not x.meets(b)
    assert not a.meets(y)


def test_records_are_aligned_as_their_memory_asks():
    program = program_of([X, A, B, Y], CHAIN, scratch={2: 3}.items())
    program = replace(
        program,
        tensors=program.tensors | {"a": replace(A, memory="fast")},
        memories=(Memory(alignment=32), Memory("fast", alignment=128)),
    )
    problem = liveness(program, alignment=16)
    found = {record.name: (record.size, record.alignment) for record in problem.records}
    assert found.pop("a") == (128, 128)
    assert len(found) == 4
    assert set(found.values()) == {(32, 32)}


def test_an_input_lives_from_the_start_to_its_last_use_and_an_output_to_the_end():
    steps = [(("x",), ("y",)), (("x", "y"), ("a",)), (("a",), ("b",))]
    assert lifetimes(program_of([X, A, B, Y], steps)) == {
        "x": (0, 2), "y": (0, 3), "a": (1, 3), "b": (2, 3),
    }  # fmt: skip


def test_an_input_nobody_reads_lives_at_the_first_step_only():
    unread = tensor("unread", TensorKind.INPUT)
    program = program_of([X, unread, A, B, Y], CHAIN, inputs=("x", "unread"))
    assert lifetimes(program)["unread"] == (0, 1)


def test_a_state_lives_throughout_and_a_constant_nowhere():
    state, weights = tensor("s", TensorKind.STATE), tensor("w", TensorKind.CONSTANT)
    steps = [(("x", "w"), ("a",)), (("a", "s"), ("b",)), (("b",), ("y",))]
    found = lifetimes(program_of([X, A, B, Y, state, weights], steps))
    assert found["s"] == (0, 3)
    assert "w" not in found


def test_an_alias_keeps_its_storage_alive_and_takes_none():
    view = tensor("v", alias=Alias("a"))
    steps = [(("x",), ("a",)), (("a",), ("v",)), (("x",), ("b",)), (("v", "b"), ("y",))]
    program = program_of([X, A, B, view, Y], steps)
    assert lifetimes(program)["a"] == (0, 4)
    assert {r.name: r.tensors for r in liveness(program).records}["a"] == ("a", "v")


def test_a_tensor_without_elements_takes_no_record():
    program = program_of([X, tensor("a", size=0), B, Y], CHAIN)
    assert "a" not in lifetimes(program)


def test_scratch_lives_while_its_operator_runs_under_a_name_of_its_own():
    namesake = tensor("op1/scratch")
    program = program_of(
        [X, A, B, Y, namesake], [*CHAIN, (("y",), ("op1/scratch",))], scratch={1: 100}
    )
    assert lifetimes(program)["op1/scratch.2"] == (1, 2)


def test_sizes_are_rounded_up_to_the_alignment():
    records = liveness(program_of([X, A, B, Y], CHAIN), alignment=64).records
    assert {(record.size, record.alignment) for record in records} == {(64, 64)}


def test_the_callers_memory_can_be_left_out():
    program = program_of([X, A, B, Y], CHAIN)
    assert lifetimes(program, boundary=Boundary.EXCLUDE).keys() == {"a", "b"}


def test_what_lies_in_the_callers_memory_is_left_out_with_it():
    view = tensor("v", alias=Alias("x"))
    steps = [(("x",), ("v",)), (("v",), ("a",)), (("a",), ("y",))]
    program = program_of([X, view, A, Y], steps)
    assert lifetimes(program) == {"x": (0, 2), "a": (1, 3), "y": (2, 3)}
    assert lifetimes(program, boundary=Boundary.EXCLUDE) == {"a": (1, 3)}


def test_a_tensor_nobody_reads_lives_at_the_step_that_writes_it():
    steps = [(("x",), ("a", "unread")), (("a",), ("y",))]
    assert lifetimes(program_of([X, A, tensor("unread"), Y], steps))["unread"] == (0, 1)


def test_a_graph_of_one_input_that_is_its_output_has_one_step():
    program = Program.of("test", [X], [], ["x"], ["x"])
    assert lifetimes(program) == {"x": (0, 1)}


# Pisarchyk and Lee's worked example: size, first and last step, both inclusive.
EXAMPLE = [(32, 0, 1), (28, 1, 4), (36, 2, 5), (16, 3, 5), (8, 4, 5), (64, 5, 7), (10, 6, 8),
           (40, 7, 8)]  # fmt: skip


@pytest.mark.parametrize(("end_offset", "height"), [(1, 124), (0, 80)])
def test_closed_lifetimes_read_as_half_open_look_better_and_are_wrong(end_offset, height):
    def problem(offset):
        return Problem(
            tuple(
                UsageRecord(str(i), size, first, last + offset)
                for i, (size, first, last) in enumerate(EXAMPLE)
            )
        )

    plan = find("greedy-by-size")(problem(end_offset))
    assert plan.height == height
    on_the_right_records = Plan.of(problem(1), plan.offsets, plan.strategy)
    if end_offset == 1:
        verify(problem(1), plan)
    else:
        with pytest.raises(OverlapError):
            verify(problem(1), on_the_right_records)
