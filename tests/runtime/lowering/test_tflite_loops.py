"""A WHILE runs as LiteRT runs it, however its end is decided."""

import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")

from tflite import BuiltinOperator as Op

import arenite
from arenite.pipeline.making.program_files import ProgramFile
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.importers import load
from arenite.runtime import Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Reference
from support.tiny_loops import (
    BOOL,
    FLOAT,
    INT,
    LOOPS,
    Graph,
    Kind,
    below,
    counting,
    endless,
    nested,
    nested_deep,
    quantised,
    swapping,
)
from support.tiny_tflite import tiny_tflite

NOT_EXACT = {"layers of bytes": 4, "beside convolutions": 1e-3}
"""Largest difference of outputs: single layers round otherwise than those of LiteRT, or add up in
another order."""


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_that_of_litert(tmp_path, name):
    looping = LOOPS[name]
    path = saved(tmp_path, looping.model)
    reference = Reference(path)
    program = build(path, tmp_path)
    ProgramFile.read(program).check()
    with PoisonedSession(program, guard=True) as session:
        for given, feeds in zip(looping.runs, looping.feeds, strict=True):
            expected = reference.run(given)
            for found, each in zip(session.run(feeds).values(), expected, strict=True):
                assert found.shape == each.shape
                if name not in NOT_EXACT:
                    assert found.tobytes() == each.tobytes()
                difference = np.abs(found.astype(np.float64) - each).max()
                assert difference <= NOT_EXACT.get(name, 0)


def test_its_rounds_are_the_same_to_the_bit_as_written_out(tmp_path):
    looping = LOOPS["layers of bytes"]
    program = build(saved(tmp_path, looping.model), tmp_path)
    written_out = build(saved(tmp_path, quantised(is_unrolled=True).model), tmp_path / "..")
    with Session(program) as one, Session(written_out) as other:
        for feeds in looping.feeds:
            (found,), (expected,) = one.run(feeds).values(), other.run(feeds).values()
            assert found.tobytes() == expected.tobytes()


def test_inputs_of_the_body_may_be_its_outputs_in_another_order(tmp_path):
    looping = swapping(computes=False)  # of which LiteRT loses one
    with PoisonedSession(build(saved(tmp_path, looping.model), tmp_path)) as session:
        for (a, b, c, n), feeds in zip(looping.runs, looping.feeds, strict=True):
            found = list(session.run(feeds).values())
            for each, expected in zip(found, (b, a, c) if n % 2 else (a, b, c), strict=True):
                assert each.tobytes() == expected.tobytes()


def saved(folder, model: bytes):
    path = folder / "m.tflite"
    path.write_bytes(model)
    return path


def test_it_may_have_its_other_name(tmp_path):
    looping = counting(code=Op.STABLEHLO_WHILE)  # for which LiteRT has no kernel
    with Session(build(saved(tmp_path, looping.model), tmp_path)) as session:
        for (given,), feeds in zip(looping.runs, looping.feeds, strict=True):
            (found,) = session.run(feeds).values()
            np.testing.assert_array_equal(found, 10 * given)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing(tmp_path, threads):
    looping = LOOPS["beside convolutions"]
    program = build(saved(tmp_path, looping.model), tmp_path)
    (feeds,) = looping.feeds
    with Session(program) as one, Session(program, threads=threads) as several:
        for found, expected in zip(
            several.run(feeds).values(), one.run(feeds).values(), strict=True
        ):
            assert found.tobytes() == expected.tobytes()


def test_working_memory_is_that_of_the_larger_program(tmp_path):
    program = build(saved(tmp_path, nested().model), tmp_path)
    found = ProgramFile.read(program)
    (condition, body), (inner,) = found.inner, {len(each.inner) for each in found.inner} - {0}
    assert inner == 2
    scratch = next(each for each in found.root["tensors"] if each["name"].endswith("/scratch"))
    heights = [sum(each.heights.values()) for each in (condition, body)]
    assert scratch["shape"] == [max(heights)]


def test_weights_that_are_equal_inside_and_outside_are_stored_once(tmp_path):
    root = ProgramFile.read(build(saved(tmp_path, LOOPS["layers of bytes"].model), tmp_path)).root
    places = [
        {each["offset"] for each in some["tensors"] if each["shape"][-1:] == [64]}
        for some in (root, root["inner"][1])
    ]
    assert places[0] & places[1]


def test_a_loop_without_an_end_is_left_by_a_signal(tmp_path):
    program = build(saved(tmp_path, endless()), tmp_path)

    class LeftError(Exception):
        pass

    def leave(*_):
        raise LeftError

    before = signal.signal(signal.SIGUSR1, leave)
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    try:
        with Session(program) as session:
            timer.start()
            started = time.perf_counter()
            with pytest.raises(LeftError):
                session.run({"v": np.ones(1, np.float32)})
            assert time.perf_counter() - started < 5
            (found,) = session.run({"v": -np.ones(1, np.float32)}).values()
            assert found == -1
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


def test_the_library_runs_a_model_file_within_a_budget(tmp_path):
    looping = LOOPS["beside convolutions"]
    path = saved(tmp_path, looping.model)
    (feeds,) = looping.feeds
    with arenite.Session(path) as session:
        (expected,) = session.run(feeds).values()
        budget = session.arena_bytes * 7 // 10
    fitted = arenite.fit(path, budget)
    fitted.save(tmp_path / "fitted.arena")
    program = ProgramFile.read(tmp_path / "fitted.arena")
    program.check()
    assert program.regions()
    assert sum(program.heights.values()) <= budget
    with PoisonedSession(tmp_path / "fitted.arena") as session:
        (found,) = session.run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def looped(carried: Kind, given: Kind, *, verdict: Kind = BOOL, made: Kind | None = None) -> bytes:
    """A loop whose programs carry what the model does not."""
    main, condition, body = Graph("main", v=given), Graph("c", v=carried), Graph("b", v=carried)
    (last,) = main.loop(1, 2, 0)
    made_verdict = condition.op(Op.LESS, 0, condition.constant(0, kind=FLOAT), kind=verdict)
    return tiny_tflite(
        main.made(last), condition.made(made_verdict),
        body.made(body.op(Op.EXP, 0, kind=made or carried)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (looped(Kind(shape=(2,)), FLOAT), r"carried value 0 is float32\[1\] before the loop"),
        (looped(FLOAT, FLOAT, made=INT), r"carried value 0 is float32\[1\].* int32\[1\] in"),
        (
            looped(Kind(shape=(2,)), Kind(shape=(2,)), verdict=Kind("bool", (2,))),
            r"its condition makes bool\[2\], supported: one boolean",
        ),
    ],
)
def test_values_of_other_shapes_are_refused(tmp_path, model, reason):
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(saved(tmp_path, model), tmp_path)


def test_loops_that_are_nested_deeper_than_eight_are_refused(tmp_path):
    with pytest.raises(UnsupportedOperatorsError, match="nested deeper than 8"):
        build(saved(tmp_path, nested_deep(9)), tmp_path)


def test_shapes_beside_a_loop_are_those_of_a_run_alone(tmp_path):
    main = Graph("main", v=FLOAT, x=Kind(shape=(2,)))
    (last,) = main.loop(1, 2, 0)
    body = Graph("body", v=FLOAT)
    model = tiny_tflite(
        main.made(last, main.op(Op.NEG, 1)), below(3, 0, v=FLOAT), body.made(body.op(Op.EXP, 0))
    )
    path, shapes = saved(tmp_path, model), {"x": (5,)}
    with pytest.raises(UnsupportedModelError, match=r"WHILE_0.*inferred for runs alone"):
        load(path, shapes=shapes)
    with arenite.Session(path, shapes=shapes) as session:
        given = {"v": np.ones(1, np.float32), "x": np.arange(5, dtype=np.float32)}
        ended, negated = session.run(given).values()
    assert abs(ended[0] - np.exp(np.exp(1))) < 1e-5
    np.testing.assert_array_equal(negated, -given["x"])


def test_sizes_of_a_range_are_refused(tmp_path):
    path = saved(tmp_path, counting().model)
    with pytest.raises(arenite.AreniteError, match="WHILE"):
        arenite.build(path, tmp_path / "m.arena", shapes={"x": ["4..8"]})
