import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.placement.verification import verify
from arenite.runtime.targets.onnxruntime._allocator import PlanAllocator
from arenite.runtime.targets.onnxruntime.recording import ALIGNMENT, recorded_problem
from arenite.strategies import find

Trace: TypeAlias = Sequence[tuple[int, int]]
"""Allocations as size and, counted in allocations, how long the block is kept."""

STRATEGIES = ("best", "greedy-by-size", "no-reuse", "objects-by-size", "onnxruntime-pattern")


class Caller:
    """Asks an allocator as ONNX Runtime does: by the functions in its structure."""

    def __init__(self, allocator: PlanAllocator):
        self.allocator = allocator
        self.arena = np.zeros(0, np.uint8)
        fields = (ctypes.c_void_p * 4).from_address(allocator.address)
        self._self = allocator.address
        self._alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
            fields[1]
        )
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(fields[2])

    def alloc(self, size: int) -> int:
        return self._alloc(self._self, size) or 0

    def free(self, address: int) -> None:
        self._free(self._self, address)

    def is_inside(self, address: int, size: int) -> bool:
        first = self.arena.ctypes.data
        return first <= address and address + size <= first + self.arena.size


@dataclass
class Painter:
    """Fills each block with a value of its own and looks whether it is still there."""

    caller: Caller
    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    addresses: list[tuple[int, int]] = field(default_factory=list)

    def take(self, index: int, size: int) -> None:
        address = self.caller.alloc(size)
        ctypes.memset(address, index % 251, size)
        self.blocks[index] = (address, size)
        self.addresses.append((address, size))

    def give_back(self, index: int) -> None:
        address, size = self.blocks.pop(index)
        assert set(ctypes.string_at(address, size)) == {index % 251}
        self.caller.free(address)


def replay(caller: Caller, trace: Trace) -> list[tuple[int, int]]:
    """Run the trace and return address and size of each block."""
    painter = Painter(caller)
    ends = [index + lifetime for index, (_, lifetime) in enumerate(trace)]
    for index, (size, _) in enumerate(trace):
        painter.take(index, size)
        for other in list(painter.blocks):
            if ends[other] == index + 1:
                painter.give_back(other)
    for other in list(painter.blocks):
        painter.give_back(other)
    return painter.addresses


def recorded(trace: Trace, strategy: str = "best") -> Caller:
    """Return the caller of an allocator that serves what it recorded."""
    allocator = PlanAllocator()
    caller = Caller(allocator)
    allocator.start_recording()
    replay(caller, trace)
    problem = recorded_problem(allocator.stop_recording())
    plan = find(strategy)(problem)
    verify(problem, plan)
    memory = np.zeros(plan.height + ALIGNMENT, np.uint8)
    caller.arena = memory[-memory.ctypes.data % ALIGNMENT :][: plan.height]
    sizes = [record.size for record in problem.records]
    allocator.serve(caller.arena.ctypes.data, plan.height, sizes, plan.offsets)
    allocator.start_run()
    return caller


traces = st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 8)), max_size=40)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(trace=traces)
def test_a_recorded_trace_is_served_without_overlap_whatever_places_it(
    strategy: str, trace: Trace
):
    caller = recorded(trace, strategy)
    assert all(caller.is_inside(*block) for block in replay(caller, trace))
    assert caller.allocator.counts == (len(trace), 0, 0)


@given(trace=traces, other=traces)
def test_another_trace_is_served_without_overlap_and_counted(trace: Trace, other: Trace):
    caller = recorded(trace)
    blocks = replay(caller, other)
    outside = [size for address, size in blocks if not caller.is_inside(address, size)]
    counts = (len(blocks) - len(outside), len(outside), sum(outside))
    assert caller.allocator.counts == counts


def test_each_record_lives_from_its_allocation_to_the_first_after_its_release():
    allocator = PlanAllocator()
    caller = Caller(allocator)
    allocator.start_recording()
    replay(caller, [(100, 2), (200, 1), (300, 5)])
    assert allocator.stop_recording() == [(100, 0, 2), (200, 1, 2), (300, 2, 3)]


def test_what_outlives_the_recording_is_left_out():
    allocator = PlanAllocator()
    caller = Caller(allocator)
    before = caller.alloc(64)
    allocator.start_recording()
    caller.free(before)
    kept = caller.alloc(64)
    caller.free(caller.alloc(128))
    assert allocator.stop_recording() == [(128, 1, 2)]
    caller.free(kept)


def test_every_run_starts_with_the_first_block():
    caller = recorded([(100, 1), (200, 1)])
    first = replay(caller, [(100, 1), (200, 1)])
    caller.allocator.start_run()
    assert replay(caller, [(100, 1), (200, 1)]) == first
    assert caller.allocator.counts == (2, 0, 0)


def test_a_block_that_is_still_in_use_is_not_given_again():
    caller = recorded([(100, 1), (100, 1)])
    kept = caller.alloc(100)
    other = caller.alloc(100)
    assert caller.is_inside(kept, 100)
    assert not caller.is_inside(other, 100)
    assert caller.allocator.counts == (1, 1, 100)
    caller.allocator.start_run()
    assert not caller.is_inside(caller.alloc(100), 100)
    caller.free(kept)
    caller.free(other)


def test_addresses_are_aligned():
    caller = recorded([(1, 2), (65, 2), (3, 2)])
    trace = [(1, 2), (65, 2), (3, 2), (5, 1)]
    assert all(address % ALIGNMENT == 0 for address, _ in replay(caller, trace))


def test_nothing_is_given_for_nothing():
    allocator = PlanAllocator()
    caller = Caller(allocator)
    assert caller.alloc(0) == 0
    caller.free(0)
    assert allocator.num_calls == 0


@pytest.mark.parametrize(
    ("sizes", "offsets", "said"),
    [
        ([64], [], "differ in length"),
        ([64], [64], "not inside"),
        ([128], [0], "not inside"),
        ([64], [2**63], "not inside"),
    ],
)
def test_blocks_outside_the_arena_are_refused(sizes: list[int], offsets: list[int], said: str):
    memory = np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match=said):
        PlanAllocator().serve(memory.ctypes.data, 64, sizes, offsets)
