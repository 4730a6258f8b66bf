"""Caches as states that grow: each run adds rows behind those that there are."""

import json

import numpy as np
import pytest

import arenite
from arenite.planner.errors import BindingError, ModelFormatError, SizeError, UnsupportedModelError
from arenite.planner.sizes import Dimension, length_text, read_lengths
from arenite.runtime import ProgramError, Session, SizeRangeError, StatesFileError, StatesFullError
from support.caches import CACHE, DIMS, compiled
from support.edited_programs import apart, edited, file_of
from support.running import PoisonedSession
from support.tiny_onnx import parse, save

HIGH = 9
ROWS = np.random.default_rng(0).standard_normal((HIGH + 4, 4)).astype(np.float32)


def program(folder, **options):
    return file_of(apart(compiled(folder, **options)))


def opened(folder, **options):
    return Session.of_pieces([program(folder)], "cache", **options)


def feed(session, begin, end):
    """Run on some of the rows; return the result, which must be that of all rows so far."""
    found = session.run({"x": ROWS[None, begin:end]})
    np.testing.assert_array_equal(found["y"], ROWS[None, :end].max(1).reshape(1, 2, 2))


@pytest.mark.parametrize("options", [{}, {"guard": True}, {"threads": 2}], ids=str)
def test_each_run_adds_rows_behind_those_that_there_are(tmp_path, options):
    with opened(tmp_path, **options) as session:
        assert [port.name for port in session.inputs] == ["x"]
        assert [port.name for port in session.outputs] == ["y"]
        assert [str(each) for each in session.dimensions] == ["s=1..4", "p=0..9+"]
        assert session.sizes == {"s": 4, "p": 0}
        assert (session.states.length, list(session.states)) == (0, ["past"])
        begin = 0
        for end in (3, 4, 5, 9, 13):
            feed(session, begin, end)
            assert session.states.lengths == {"p": end}
            np.testing.assert_array_equal(session.states["past"].reshape(-1, 4), ROWS[:end])
            begin = end


def test_dead_memory_holds_no_rows(tmp_path):
    session = PoisonedSession([program(tmp_path)])
    for row in range(5):
        found = session.run({"x": ROWS[None, row : row + 1]})
        np.testing.assert_array_equal(found["y"].reshape(-1), ROWS[: row + 1].max(0))


def test_full_states_refuse_a_run_and_stay_as_they_are(tmp_path):
    with opened(tmp_path) as session:
        for begin in range(0, 12, 4):
            feed(session, begin, begin + 4)
        with pytest.raises(
            StatesFullError, match=r"hold 12 rows of dimension 'p'; a run .* most 9"
        ):
            session.run({"x": ROWS[None, :1]})
        assert session.states.length == 12
        np.testing.assert_array_equal(session.states["past"].reshape(-1, 4), ROWS[:12])
        session.states.truncate(HIGH)
        feed(session, 9, 10)
        with pytest.raises(SizeRangeError, match="'s'"):
            session.run({"x": ROWS[None, :5]})
        session.states.truncate(2)
        feed(session, 2, 3)


def test_truncated_and_reset_states(tmp_path):
    with opened(tmp_path) as session:
        feed(session, 0, 4)
        for wrong in (5, -1):
            with pytest.raises(SizeRangeError, match=f"hold 4 of 'p'; {wrong} cannot be kept"):
                session.states.truncate(wrong)
        session.states.truncate(1)
        assert len(session.states["past"]) == 1
        feed(session, 1, 3)
        session.states.reset()
        assert session.states.length == 0
        feed(session, 0, 2)
        session.reset()
        feed(session, 0, 1)


def test_views_are_filled_after_the_sizes_are_set(tmp_path):
    with opened(tmp_path) as session:
        session.resize(s=2)
        session.inputs[0].view[...] = ROWS[:2]
        session.invoke()
        with pytest.raises(SizeRangeError, match=r"grown to 2 rows .*: set the sizes"):
            session.invoke()
        session.resize()
        session.inputs[0].view[...] = ROWS[2:4]
        session.profile()
        np.testing.assert_array_equal(session.outputs[0].view.reshape(-1), ROWS[:4].max(0))
        session.resize(p=1, s=1)  # as if there were one row
        session.inputs[0].view[...] = ROWS[7]
        session.invoke()
        np.testing.assert_array_equal(session.outputs[0].view.reshape(-1), ROWS[[0, 7]].max(0))


def test_saved_states_go_on_in_another_session(tmp_path):
    data = program(tmp_path)
    saved = tmp_path / "states"
    with Session.of_pieces([data], "one") as session:
        feed(session, 0, 3)
        session.states.save(saved)
    assert saved.stat().st_size == 96 + 8 + 3 * 16
    with Session.of_pieces([data], "other") as session:
        feed(session, 0, 4)
        session.states.load(saved)
        assert session.states.length == 3
        feed(session, 3, 5)
        before = session.states["past"].copy()
        good = saved.read_bytes()
        damaged = [good[:-1], good + b"\0", b"", good[:96]]
        damaged += [
            good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in (0, 9, 90, 97, 150)
        ]
        for wrong in damaged:
            saved.write_bytes(wrong)
            with pytest.raises(StatesFileError, match=r"damaged|no saved states"):
                session.states.load(saved)
        with pytest.raises(StatesFileError, match="cannot be read"):
            session.states.load(tmp_path / "none")
        np.testing.assert_array_equal(session.states["past"], before)
    saved.write_bytes(good)
    for other in (program(tmp_path, dims={**DIMS, "p": "0..8+"}), program(tmp_path, dims=FIXED)):
        with (
            Session.of_pieces([other], "other") as session,
            pytest.raises(StatesFileError, match="another program"),
        ):
            session.states.load(saved)


FIXED = {"s": 1, "p": "0..9+"}


def test_other_pairs_of_past_and_present_are_states_that_a_run_replaces(tmp_path):
    text = CACHE.replace("past)", "past, float[1,4] past_sum)", 1).replace(
        "present)", "present, float[1,4] present_sum)", 1
    )
    text = text.replace(
        "{ r", "{ u = ReduceSum<keepdims=0>(x, one) present_sum = Add(past_sum, u) r"
    )
    text = text.replace("<int64", "<int64[1] one = {1}, int64")
    data = program(tmp_path, text=text)
    with Session.of_pieces([data], "sums") as session:
        feed(session, 0, 2)
        feed(session, 2, 3)
        np.testing.assert_allclose(session.states["past_sum"][0], ROWS[:3].sum(0), rtol=1e-6)
        assert not session.states.can_truncate
        with pytest.raises(SizeRangeError, match="'past_sum' has no rows to drop"):
            session.states.truncate(1)


def with_metadata(model, pairs):
    entry = model.metadata_props.add()
    entry.key, entry.value = "arenite.states", json.dumps(pairs)
    return model


def test_metadata_name_pairs_that_neither_names_nor_operators_tell(tmp_path):
    text = CACHE.replace("past", "old").replace("present", "all")
    text = text.replace(
        "all = Concat<axis=2>(old, n)", "i = Concat<axis=2>(old, n) all = Identity(i)"
    )
    with pytest.raises(BindingError, match=r"'p'.* grows, but no output continues input 'old'"):
        compiled(tmp_path, text=text)
    model = with_metadata(parse(text), {"old": "all"})
    with Session.of_pieces([program(tmp_path, model=model)], "named") as session:
        feed(session, 0, 2)
        feed(session, 2, 3)
    with pytest.raises(ModelFormatError, match="different types or shapes"):
        compiled(tmp_path, model=model, dims={"s": "1..4", "p": "0..9"})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(past, n)", "(n, past)", "does not add rows behind"),
        ("= Concat<axis=2>(past, n)", "= Concat<axis=2>(past, past)", "does not add rows"),
    ],
)
def test_what_does_not_begin_with_its_input_is_refused(tmp_path, old, new, reason):
    with pytest.raises(UnsupportedModelError, match=f"'past': cannot be a state.*{reason}"):
        compiled(tmp_path, text=CACHE.replace(old, new))


def no_rows(root):
    root["states"][0]["rows"] = 0


HOSTILE = {
    "an expression that is not there": (
        lambda root: root["dimensions"][1].update(grows_by=99), "its growth is expression 99"
    ),
    "a range above 0": (lambda root: root["dimensions"][1].update(low=1), "does not begin at 0"),
    "steps": (lambda root: root["dimensions"][1].update(high=8, step=2), "highest sizes|begin"),
    "rows of no dimension": (lambda root: root["states"][0].update(rows=7), "counted by no"),
    "rows of one that does not grow": (no_rows, "counted by no dimension that grows"),
    "more rows than there are": (
        lambda root: root["tensors"][root["states"][0]["tensor"]].update(shape=[4, 1, 2, 2]),
        "counted by no|bytes",
    ),
    "no dimensions": (
        lambda root: [root.pop(each) for each in ("dimensions", "expressions", "axes", "numbers",
                                                  "offsets")],
        "no dimensions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_growth_is_refused(name, tmp_path):
    edit, reason = HOSTILE[name]
    data = edited(apart(compiled(tmp_path)), edit)
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([data], "hostile")


def test_growth_beyond_all_bounds_fills_the_states(tmp_path):
    def edit(root):
        root["expressions"].append({"operation": "constant", "a": 2**62, "b": 0})
        root["dimensions"][1]["grows_by"] = len(root["expressions"]) - 1

    with Session.of_pieces([edited(apart(compiled(tmp_path)), edit)], "hostile") as session:
        feed(session, 0, 1)
        assert session.states["past"].shape[0] == HIGH + 4
        with pytest.raises(StatesFullError):
            session.run({"x": ROWS[None, :1]})
        session.states.save(tmp_path / "states")
        with pytest.raises(StatesFileError, match="rows"):
            session.states.load(tmp_path / "states")


def test_a_range_that_grows_is_read_and_written_as_text():
    dimension = Dimension.parse("p", "0..9+")
    assert isinstance(dimension, Dimension)
    assert (dimension.grows, dimension.text, str(dimension)) == (True, "0..9+", "p=0..9+")
    assert dimension != Dimension("p", 0, 9)
    total = read_lengths({"p": "0..9+", "s": "1..4", "t": "p+s"})["t"]
    assert (int(total), length_text(total)) == (13, "p+s")
    for wrong in ("1..9+", "0..8:2+"):
        with pytest.raises(SizeError, match="what grows begins at 0"):
            Dimension.parse("p", wrong)
    for wrong in ("0..+", "9+", "s+"):
        with pytest.raises(SizeError, match="is neither a number nor a dimension"):
            read_lengths({"p": wrong, "s": 3})


def test_a_plan_of_a_range_that_grows_builds_the_same_program(tmp_path):
    model = save(tmp_path, parse(CACHE))
    arenite.plan(model, dims=DIMS).save(tmp_path / "plan.json")
    arenite.build(model, tmp_path / "planned.arena", plan=tmp_path / "plan.json")
    arenite.build(model, tmp_path / "built.arena", dims=DIMS)
    assert (tmp_path / "planned.arena").read_bytes() == (tmp_path / "built.arena").read_bytes()
    with Session(tmp_path / "planned.arena") as session:
        feed(session, 0, 3)
        feed(session, 3, 4)
