"""`arenite fit --memory`: bands and memories, chosen together."""

import numpy as np
import pytest

from arenite.runtime import Session
from support.command_models import BANDED
from support.running import random_feeds
from support.tiny_onnx import parse, save, with_random_weights

LIMITS = ("--memory", "sram=11KiB", "--memory", "psram=any,read=40,write=60")

BEHIND = 128
"""Bytes that kernels may read behind a memory."""


def aligned(size):
    """Return so many bytes from a cache line on."""
    room = np.empty(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]


@pytest.fixture
def network(tmp_path):
    return save(tmp_path, with_random_weights(parse(BANDED)))


def test_the_program_has_a_buffer_for_each_memory_and_gives_the_same_bits(
    run, run_json, network, tmp_path
):
    output, entire = tmp_path / "small.arena", tmp_path / "whole.arena"
    found = run_json("fit", network, *LIMITS, "-o", output)
    sram, psram = found["memories"]
    assert 0 < sram["height"] <= sram["capacity"] == 11 * 1024
    assert psram["height"] > 0
    assert found["regions"]
    assert found["spread"]["cost"] > 0
    assert found["predicted_slowdown"] < found["predicted_slowdown_whole"]
    assert run("build", network, "-o", entire)[0] == 0
    with Session(output) as session, Session(entire) as whole:
        assert [(each.name, each.size) for each in session.memories] == [
            ("sram", sram["height"]), ("psram", psram["height"])
        ]  # fmt: skip
        feeds = random_feeds(session)
        buffers = {each.name: aligned(each.size + BEHIND) for each in session.memories}
        with Session(output, buffers=buffers) as ours:
            given = ours.run(feeds)["y"].tobytes()
        assert session.run(feeds)["y"].tobytes() == whole.run(feeds)["y"].tobytes() == given


def test_it_says_what_lies_where_and_what_that_costs(run, network):
    code, out, _ = run("fit", network, *LIMITS)
    assert code == 0
    text = " ".join(out.split())
    assert "in 2 memories" in text
    assert "over these memories" in text
    assert "sram 1" in text
    assert "psram 1" in text
    assert "for all reads and writes" in text
    assert "than whole in one memory, a byte at a cost of 1, predicted" in text


def test_whole_programs_that_do_not_fit_are_told_of(run, run_json, network):
    bounded = ("--memory", "sram=11KiB", "--memory", "psram=12KiB,read=4")
    code, out, _ = run("fit", network, *bounded)
    assert code == 0
    assert "these memories have no room for that" in " ".join(out.split())
    assert run_json("fit", network, *bounded)["predicted_slowdown_whole"] is None


def test_too_little_memory_is_one_line(refused, network):
    said = refused("fit", network, "--memory", "sram=4KiB", "--memory", "psram=4KiB")
    assert "no program fits 'sram' of 4,096 B and 'psram' of 4,096 B" in said
    assert "would suffice beside the others" in said


@pytest.mark.parametrize(
    "option", [("--budget", "1KiB"), ("--slowdown", "5%"), ("--link", "1GB/s")]
)
def test_memories_go_without_what_limits_one_arena(misused, network, option):
    assert option[0] in misused("fit", network, *LIMITS, *option)


def test_measuring_is_for_the_frontier(misused, network):
    assert "--measure" in misused("fit", network, *LIMITS, "--measure")
