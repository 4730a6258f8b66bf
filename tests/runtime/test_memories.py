"""Programs whose plan is laid over several memories."""

import numpy as np
import pytest

from arenite.planner.placement.strategy import run
from arenite.runtime import ArenaMemory, ProgramError, ResourceError, Session
from arenite.runtime.program import program_pieces
from arenite.strategies import find
from support.edited_programs import apart, edited, split_memories
from support.running import (
    MANY_KINDS,
    PoisonedSession,
    assert_same,
    random_feeds,
    reference_outputs,
)
from support.tiny_onnx import parse, save, with_random_weights
from support.two_memories import FAST, in_two_memories


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A network with many kinds of steps."""
    return save(tmp_path_factory.mktemp("model"), with_random_weights(parse(MANY_KINDS)))


@pytest.fixture(scope="module")
def assembly(path):
    """Its program, each record at bytes of its own."""
    return apart(path)


def read_only(root):
    """Let the record that the first step reads lie in a memory that is not writable."""
    split_memories(root)
    root["memories"][1]["writable"] = False


def aligned(size, alignment=128):
    """Return so many bytes at an address that is a multiple of the alignment."""
    whole = np.zeros(size + alignment, np.uint8)
    start = -whole.ctypes.data % alignment
    return whole[start : start + size]


def test_the_outputs_are_those_of_one_memory(path, assembly):
    with PoisonedSession([edited(assembly, split_memories)], guard=True) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds))


def test_a_session_tells_its_memories(assembly):
    with Session.of_pieces([edited(assembly, split_memories)], "two") as session:
        first, second = session.memories
        assert first == ArenaMemory("arena", second.size, 64, writable=True)
        assert second == ArenaMemory("second", first.size, 128, writable=True)
        assert session.arena_bytes == first.size + second.size
        assert session.memory().memories == session.arena_bytes + 2 * 128
    with Session.of_pieces([edited(assembly, lambda root: None)], "one") as session:
        (memory,) = session.memories
        assert session.arena_bytes == memory.size


def test_buffers_of_the_caller_are_used_by_name(assembly):
    data = edited(assembly, split_memories)
    with Session.of_pieces([data], "two") as session:
        size = session.memories[1].size
        feeds = random_feeds(session)
        expected = session.run(feeds)
    buffer = aligned(size + 128)
    with Session.of_pieces([data], "two", buffers={"second": buffer}) as session:
        assert_same(session.run(feeds), expected, tolerance=0)
    assert buffer.any()


def test_buffers_that_do_not_fit_are_refused(assembly):
    data = edited(assembly, split_memories)
    with Session.of_pieces([data], "two") as session:
        needed = session.memories[1].size + 128
    with pytest.raises(ResourceError, match=f"{needed - 1} B; the model needs {needed}"):
        Session.of_pieces([data], "two", buffers={"second": aligned(needed - 1)})
    with pytest.raises(ResourceError, match="not aligned to 128 B"):
        Session.of_pieces([data], "two", buffers={"second": aligned(needed + 64)[64:]})
    with pytest.raises(ValueError, match="an unknown memory"):
        Session.of_pieces([data], "two", buffers={"third": aligned(needed)})


def test_a_step_that_writes_where_none_may_is_refused(assembly):
    with pytest.raises(ProgramError, match="memory 'second', which is not writable"):
        Session.of_pieces([edited(assembly, read_only)], "two")


def test_a_step_reads_what_the_caller_has_put_into_a_memory_that_none_writes(assembly):
    """A constant of the file as the caller's: the second operand of a sum."""

    def edit(root):
        step = next(each for each in root["steps"] if each["kernel_type"] == "Binary")
        operand = root["tensors"][step["inputs"][1]]
        size = 4 * int(np.prod(operand["shape"]))
        root["memories"].append(
            {"name": "given", "size": size, "alignment": 64, "writable": False}
        )
        root["records"].append(
            {"name": "given", "memory": 1, "offset": 0, "size": size, "start": 0,
             "end": len(root["steps"])}
        )  # fmt: skip
        step["inputs"][1] = len(root["tensors"])
        root["tensors"].append(
            operand | {"name": "given", "place": "memory", "memory": 1, "offset": 0}
        )

    data = edited(assembly, edit)
    with Session.of_pieces([data], "given") as session:
        given = aligned(session.memories[1].size + 128)
        feeds = random_feeds(session)
    found = []
    for value in (0.0, 1.0):
        given[: given.size - 128].view(np.float32)[:] = value
        before = given.copy()
        with Session.of_pieces([data], "given", buffers={"given": given}, poison=0xFF) as session:
            found.append(session.run(feeds)["z"])
        np.testing.assert_array_equal(given, before)
    assert np.isfinite(found).all()
    assert not np.array_equal(*found)


@pytest.mark.parametrize("strategy", ["best", "greedy-by-size", "optimal"])
def test_a_program_of_two_memories_goes_all_the_way(path, strategy):
    compiled = in_two_memories(path)
    problem = compiled.source.problem
    used = {each.memory for each in problem.records}
    assert used == {memory.name for memory in problem.memories} == {"arena", FAST.name}
    assert compiled.source.order.peak == problem.lower_bound
    plan = run(find(strategy), problem)
    pieces = [bytes(piece) for piece in program_pieces(compiled.assemble(plan))]
    with PoisonedSession(pieces, guard=True) as session:
        feeds = random_feeds(session)
        expected = reference_outputs(path, feeds)
        assert_same(session.run(feeds), expected)
    with Session.of_pieces(pieces, "told") as session:
        memories = session.memories
    assert [memory.size for memory in memories] == list(plan.heights)
    assert [memory.alignment for memory in memories] == [64, FAST.alignment]
    buffers = {memory.name: aligned(memory.size + 128, memory.alignment) for memory in memories}
    with Session.of_pieces(pieces, "given", buffers=buffers) as session:
        assert_same(session.run(feeds), expected)
    assert all(buffer.any() for buffer in buffers.values())
