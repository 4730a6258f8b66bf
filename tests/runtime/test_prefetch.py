"""Weights that are loaded on a lane of their own, beside the computation."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model, lower_model, rules
from arenite.planner.errors import OrderError
from arenite.planner.placement.problem import load_spans
from arenite.planner.programs.program import COMPUTE
from arenite.planner.rewrites.derivation import derive
from arenite.runtime import ProgramError, Session, SessionForkedError
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import (
    Kernels,
    Loading,
    WeightBudget,
    WeightBudgetError,
    derive_ahead,
    loads_as_in,
)
from arenite.strategies import find
from support.coded_programs import KINDS, code, network
from support.edited_programs import edited, load
from support.forked import in_child
from support.running import PoisonedSession, random_feeds
from support.tiny_onnx import parse, save, with_random_weights

AHEAD = WeightBudget(30, is_percent=True, loading=Loading.BESIDE)
TURNS = WeightBudget(30, is_percent=True, loading=Loading.IN_TURN)

LARGE = """(float[1,512] x) => (y) <float[512,1024] a, float[1024,2048] b>
    { p = MatMul(x, a) q = Relu(p) y = MatMul(q, b) }"""


@pytest.fixture(scope="module", params=KINDS)
def path(request, tmp_path_factory):
    """A network whose weights have many values, few, or are mostly zeros."""
    return network(tmp_path_factory.mktemp("network"), **KINDS[request.param])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A network whose weights have many values."""
    return network(tmp_path_factory.mktemp("network"))


def compiled_with(path, budget, **options):
    return compile_model(path, Reading(weight_budget=budget), kernels=Kernels.DIRECT, **options)


def assembled(compiled, coded=None):
    return compiled.assemble(find("best")(compiled.source.problem), coded)


def pieces(compiled, coded=None):
    return list(program_pieces(assembled(compiled, coded)))


def windows(compiled):
    return [record for record in compiled.source.problem.records if "window" in record.name]


@pytest.mark.parametrize(
    ("percent", "threads", "coded"), [(60, 1, None), (30, 2, code), (20, 1, code)]
)
def test_outputs_have_the_bits_of_resident_weights(path, percent, threads, coded):
    whole, streamed = (
        pieces(compiled_with(path, budget), coded)
        for budget in (None, WeightBudget(percent, is_percent=True, loading=Loading.BESIDE))
    )
    with (
        Session.of_pieces(whole, "whole") as expected,
        PoisonedSession(streamed, threads=threads) as session,
    ):
        for seed in range(2):
            feeds = random_feeds(session, seed)
            for name, array in session.run(feeds).items():
                assert array.tobytes() == expected.run(feeds)[name].tobytes()


RESIDUAL = """(float[1,32,9,9] x) => (y)
<float[64,32,1,1] v, float[64,64,3,3] w, float[64] b>
{ a = Conv(x, v) c = Conv<pads=[1,1,1,1]>(a, w, b) d = Add(c, a) y = Relu(d) }"""


def test_what_a_convolution_adds_keeps_its_place_in_the_sums(tmp_path):
    path = save(tmp_path, with_random_weights(parse(RESIDUAL)))
    whole, streamed = (pieces(compiled_with(path, budget)) for budget in (None, AHEAD))
    with Session.of_pieces(whole, "whole") as expected, PoisonedSession(streamed) as session:
        feeds = random_feeds(session)
        assert session.run(feeds)["y"].tobytes() == expected.run(feeds)["y"].tobytes()


def test_two_windows_at_a_time_keep_to_the_budget(path):
    compiled = compiled_with(path, AHEAD)
    streaming = compiled.streaming
    budget = AHEAD.bytes_of(compile_model(path).program)
    assert streaming.at_once == 2
    live = max(span.load for span in load_spans(windows(compiled)))
    assert streaming.window < live <= 2 * streaming.window
    assert streaming.resident + 2 * streaming.window <= budget


def test_a_window_is_filled_while_the_one_before_is_read(plain):
    steps = compiled_with(plain, AHEAD).program.steps
    loads = [i for i, step in enumerate(steps) if step.lane != COMPUTE]
    assert len(loads) > 4
    for first, following in pairwise(loads):
        assert any(steps[first].outputs[0] in step.reads for step in steps[following:])


@pytest.mark.parametrize("percent", [60, 30, 20])
def test_loads_go_as_far_ahead_as_a_limit_allows(plain, percent):
    budget = WeightBudget(percent, is_percent=True, loading=Loading.BESIDE)
    lowered = lower_model(plain, Reading(weight_budget=budget))
    found = derive(lowered.program, rules())
    live = found.problem.lower_bound
    free = derive_ahead(found, rules(), 4 * live)
    bound = derive_ahead(found, rules(), live)
    assert bound.problem.lower_bound == live
    assert free.program.steps != bound.program.steps
    either = (free, bound, derive_ahead(found, rules()))
    for each in either:
        computing = [step.name for step in each.program.steps if step.lane == COMPUTE]
        assert computing == [step.name for step in found.program.steps if step.lane == COMPUTE]


def test_an_order_moves_loads_alone(plain):
    lowered = lower_model(plain, Reading(weight_budget=AHEAD))
    found = derive(lowered.program, rules())
    ahead = derive_ahead(found, rules())
    order = [step.name for step in ahead.program.steps]
    assert loads_as_in(found, order, rules()) == ahead
    computing = [step.name for step in ahead.program.steps if step.lane == COMPUTE]
    swapped = [computing[1] if name == computing[0] else computing[0] if name == computing[1]
               else name for name in order]  # fmt: skip
    assert loads_as_in(found, swapped, rules()) is found
    assert loads_as_in(found, order[:-1], rules()) is found
    first = next(step.name for step in found.program.steps if step.lane != COMPUTE)
    order.remove(first)
    with pytest.raises(OrderError, match="before it is written"):
        loads_as_in(found, [*order, first], rules())


def test_in_turn_there_is_one_window_and_no_lane(plain):
    compiled = compiled_with(plain, TURNS)
    assert compiled.streaming.at_once == 1
    assert all(step.lane == COMPUTE for step in compiled.program.steps)
    live = max(span.load for span in load_spans(windows(compiled)))
    assert live == max(record.size for record in windows(compiled))


def test_small_windows_are_filled_in_turn_unless_it_is_asked_for(plain):
    compiled = compiled_with(plain, WeightBudget(30, is_percent=True))
    assert compiled.streaming == compiled_with(plain, TURNS).streaming
    assert compiled.streaming.at_once == 1 < compiled_with(plain, AHEAD).streaming.at_once


def test_large_windows_are_filled_beside_the_computation(tmp_path):
    path = save(tmp_path, with_random_weights(parse(LARGE)))
    streaming = compiled_with(path, WeightBudget(75, is_percent=True)).streaming
    assert streaming.at_once == 2
    assert streaming.window >= 256 * 1024


def test_where_two_windows_do_not_fit_there_is_one(plain):
    with pytest.raises(WeightBudgetError) as caught:
        compile_model(plain, Reading(weight_budget=WeightBudget(1000)))
    least = WeightBudget(caught.value.least, loading=Loading.BESIDE)
    compiled = compile_model(plain, Reading(weight_budget=least))
    assert compiled.streaming.at_once == 1


def test_a_plan_gives_the_same_program_again(plain):
    compiled = compiled_with(plain, AHEAD)
    again = compiled_with(plain, AHEAD, order=compiled.source.problem.steps)
    assert again.source.problem == compiled.source.problem
    assert again.program.steps == compiled.program.steps


@pytest.mark.parametrize("amount", ["25%", "4096"])
@pytest.mark.parametrize("how", ["", ",in-turn", ",beside"])
def test_a_budget_reads_what_it_writes(amount, how):
    budget = WeightBudget.parse(amount + how)
    assert str(budget) == amount + how
    assert (budget.loading or "") == how.removeprefix(",")


@pytest.mark.parametrize("text", ["25%,", "25%,ahead", ",in-turn"])
def test_what_follows_a_budget_is_known(text):
    with pytest.raises(ValueError, match=r"size|supported: .beside. or .in-turn."):
        WeightBudget.parse(text)


def num_threads():
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize(("processors", "more"), [(1, 0), (2, 1)])
def test_on_one_processor_no_thread_is_started(plain, processors, more):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < processors:
        pytest.skip("there is one processor")
    streamed = pieces(compiled_with(plain, AHEAD))

    def run():
        os.sched_setaffinity(0, allowed[:processors])
        before = num_threads()
        with Session.of_pieces(streamed, "streamed") as session:
            assert num_threads() == before + more
            session.run(random_feeds(session))

    assert in_child(run) == 0


def test_a_child_is_refused_and_may_close_it(plain):
    with Session.of_pieces(pieces(compiled_with(plain, AHEAD)), "streamed") as session:
        feeds = random_feeds(session)
        (expected,) = session.run(feeds).values()

        def used():
            with pytest.raises(SessionForkedError, match="after fork"):
                session.run(feeds)
            session.close()

        if session._native.has_lane:
            assert in_child(used) == 0
        (again,) = session.run(feeds).values()
        assert again.tobytes() == expected.tobytes()


def test_loads_are_profiled(plain):
    with Session.of_pieces(pieces(compiled_with(plain, AHEAD)), "streamed") as session:
        session.run(random_feeds(session))
        loads = [step for step in session.profile() if step.operator == "LoadWeights"]
    assert loads
    assert all(step.nanoseconds > 0 for step in loads)


def loading(root):
    return next(each for each in root["steps"] if each["kernel_type"] == "LoadWeights")


def reader(root, window):
    return next(each for each in root["steps"] if window in each["inputs"])


def reads_too_early(root):
    """Nobody waits for the first window."""
    reader(root, loading(root)["outputs"][0])["awaits"] = []


def awaits_the_one_before(root):
    """The second window is read when the first is there."""
    loads = [i for i, each in enumerate(root["steps"]) if each["kernel_type"] == "LoadWeights"]
    reader(root, root["steps"][loads[1]]["outputs"][0])["awaits"] = [loads[0]]


def writes_into_a_window(root):
    """A step makes its result where a window is being filled."""
    steps = root["steps"]
    load = steps.index(loading(root))
    step = next(each for each in steps[load + 1 :] if each.get("lane", 0) == 0)
    window = root["tensors"][loading(root)["outputs"][0]]
    made = root["tensors"][step["outputs"][0]]
    made["offset"] = window["offset"]
    for each in root["steps"]:
        each["awaits"] = []


LIES = {
    "a window that nobody awaits": (reads_too_early, "may still be written beside it"),
    "the wrong window awaited": (awaits_the_one_before, "may still be written beside it"),
    "a result in a window": (writes_into_a_window, "may still be written beside it"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_load_that_races_another_step_is_refused(plain, name):
    edit, reason = LIES[name]
    data = edited(assembled(compiled_with(plain, AHEAD)), edit)
    with pytest.raises(ProgramError) as caught:
        load(data)
    assert reason in str(caught.value)


def test_decoders_are_not_shared_between_threads(tmp_path):
    """Of two loads, one in its turn: both decode at once, and give what they should."""
    coded = network(tmp_path, **KINDS["shared"])
    assembly = assembled(compiled_with(coded, AHEAD), code)

    def edit(root):
        loads = [i for i, each in enumerate(root["steps"]) if each["kernel_type"] == "LoadWeights"]
        root["steps"][loads[1]]["lane"] = 0
        for step in root["steps"]:
            step["awaits"] = [each for each in step.get("awaits", ()) if each != loads[1]]

    with (
        Session.of_pieces([edited(assembly, lambda root: None)], "beside") as first,
        Session.of_pieces([edited(assembly, edit)], "mixed") as second,
    ):
        feeds = random_feeds(first)
        expected = first.run(feeds)
        for _ in range(20):
            found = second.run(feeds)
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
