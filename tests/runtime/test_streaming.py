"""Weights that are coded, and weights that are brought into the arena for each run."""

from contextlib import suppress

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import code_of
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import ProgramError, Session
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import Loading, WeightBudget, WeightBudgetError, weight_bytes
from arenite.strategies import find
from support.coded_programs import KINDS, build_coded, code, network
from support.running import PoisonedSession, assert_same, random_feeds, reference_outputs


@pytest.fixture(scope="module", params=KINDS)
def path(request, tmp_path_factory):
    """A network whose weights have many values, few, or are mostly zeros."""
    return network(tmp_path_factory.mktemp("network"), **KINDS[request.param])


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("percent", [100, 60, 30, 25])
@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_are_those_of_onnxruntime(path, percent, coded, threads, tmp_path):
    budget = None if percent == 100 else WeightBudget(percent, is_percent=True)
    file, compiled = build_coded(path, tmp_path, budget, coded=coded)
    with PoisonedSession(file, threads=threads) as session:
        for seed in range(2):
            feeds = random_feeds(session, seed)
            assert_same(session.run(feeds), reference_outputs(path, feeds))
    if budget is not None:
        streaming = compiled.streaming
        assert streaming.num_tiles > 0
        windows = streaming.at_once * streaming.window
        assert streaming.resident + windows <= budget.bytes_of(compiled.program)
        assert streaming.resident + streaming.streamed == weight_bytes(compile_model(path).program)


def test_a_coded_file_is_smaller_and_gives_the_same_bits(path, tmp_path):
    plain, _ = build_coded(path, tmp_path, coded=False)
    size = plain.stat().st_size
    with Session(plain) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
    coded, _ = build_coded(path, tmp_path)
    if coded.stat().st_size == size:
        assert code(np.random.default_rng(0).standard_normal(1000).astype(np.float32)) is None
    with Session(coded) as session:
        outputs = session.run(feeds)
    assert all(np.array_equal(outputs[name], expected[name]) for name in expected)


def test_windows_in_turn_are_records_of_two_steps_each(path, tmp_path):
    budget = WeightBudget(20, is_percent=True, loading=Loading.IN_TURN)
    _, compiled = build_coded(path, tmp_path, budget)
    windows = [each for each in compiled.source.problem.records if "window" in each.name]
    assert len(windows) == compiled.streaming.num_tiles
    assert all(record.end == record.start + 2 for record in windows)
    assert max(record.size for record in windows) == -(-compiled.streaming.window // 64) * 64


def test_a_budget_that_holds_all_streams_nothing(path):
    compiled = compile_model(path, Reading(weight_budget=WeightBudget(1 << 30)))
    assert compiled.streaming.num_tiles == 0
    assert compiled.streaming.streamed == 0


def test_a_budget_that_cannot_be_met_is_refused_with_what_suffices(path):
    with pytest.raises(WeightBudgetError) as caught:
        compile_model(path, Reading(weight_budget=WeightBudget(1000)))
    least = caught.value.least
    compiled = compile_model(path, Reading(weight_budget=WeightBudget(least)))
    assert compiled.streaming.resident + compiled.streaming.window <= least
    with pytest.raises(WeightBudgetError):
        compile_model(path, Reading(weight_budget=WeightBudget(least - 1)))


def test_sessions_of_a_streamed_file_come_and_go(path, tmp_path):
    file, _ = build_coded(path, tmp_path, WeightBudget(20, is_percent=True))
    outputs = []
    for _ in range(3):
        with Session(file) as first, Session(file) as second:
            feeds = random_feeds(first)
            outputs += [first.run(feeds)["y"], second.run(feeds)["y"]]
    assert all(np.array_equal(outputs[0], each) for each in outputs)


def read_and_run(file):
    with Session(file) as session:
        session.run(random_feeds(session))


@pytest.mark.parametrize("budget", [None, WeightBudget(20, is_percent=True)])
def test_damaged_codes_are_refused_or_run_but_never_a_crash(path, budget, tmp_path):
    file, _ = build_coded(path, tmp_path, budget)
    content = file.read_bytes()
    begin = int.from_bytes(content[24:32], "little")
    random = np.random.default_rng(0)
    for _ in range(20):
        damaged = bytearray(content)
        for at in random.integers(begin, len(content), 40):
            damaged[at] ^= 1 << int(random.integers(8))
        file.write_bytes(damaged)
        with suppress(ProgramError):
            read_and_run(file)


@pytest.mark.parametrize("budget", [None, WeightBudget(20, is_percent=True)])
@pytest.mark.parametrize("position", [0, 1, 5, 8, 12])
def test_a_damaged_head_is_refused_with_the_name_of_the_step(path, budget, position, tmp_path):
    file, compiled = build_coded(path, tmp_path, budget)
    coded = code(compiled.program.constants["h/packed"])
    if coded is None:
        pytest.skip("these weights have no code")
    content = file.read_bytes()
    damaged = bytearray(content)
    damaged[content.index(coded) + position] ^= 0xFF
    file.write_bytes(damaged)
    with pytest.raises(ProgramError, match=r"'MatMul_8.*' has coded weights that are damaged"):
        read_and_run(file)


def test_symbols_of_a_byte_are_read_as_they_are(path, tmp_path):
    file, compiled = build_coded(path, tmp_path, WeightBudget(25, is_percent=True))
    plan = find("best")(compiled.source.problem)
    write_assembly(tmp_path / "bytes.arena", compiled.assemble(plan, code_of(huffman=False)))
    with Session(file) as first, Session(tmp_path / "bytes.arena") as second:
        feeds = random_feeds(first)
        assert_same(second.run(feeds), first.run(feeds), tolerance=0)
