"""Programs that run the lower sizes of a range by plans of their own."""

from dataclasses import replace

import numpy as np
import pytest

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_model
from arenite.pipeline.making.program_files import ProgramFile
from arenite.planner.placement import OversizedError
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError, Session, SizeRangeError
from arenite.runtime.program import program_pieces
from arenite.runtime.rewrites import Kernels
from bench.short_weights import with_short_weights
from support.edited_programs import edited
from support.running import PoisonedSession
from support.tiny_onnx import parse, save, with_random_weights

# Whole, tensors of 128 pixels take more than a cache.
CHAIN = """(float[1,3,h,h] x) => (y) <float[32,3,3,3] a, float[8,32,3,3] b, float[8,8,1,1] c> {
    p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b)
    s = Relu(r) y = Conv(s, c) }"""
RANGE = Dimension("h", 8, 256, 8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save(tmp_path_factory.mktemp("chain"), with_random_weights(parse(CHAIN)))


@pytest.fixture(scope="module")
def built(model):
    return build_model(model, Reading(dims={"h": RANGE}), kernels=Kernels.DIRECT)


@pytest.fixture(scope="module")
def ceiling(built):
    """The highest size at which every step runs whole."""
    (dimensions, _), *_ = built.parts
    return dimensions[0].high


def feeds_of(size):
    return {"x": np.random.default_rng(size).standard_normal((1, 3, size, size), np.float32)}


def turns_at(session, size):
    session.resize(h=size)
    return session._native.num_turns


def test_lower_sizes_run_whole_in_the_arena_of_bands(built, ceiling):
    assert RANGE.low < ceiling < RANGE.high
    assert all(height <= built.arena_bytes < built.height for _, height in built.parts)
    with Session.of_pieces(list(program_pieces(built.assemble())), "chain") as session:
        steps = turns_at(session, RANGE.low)
        assert turns_at(session, ceiling) == steps
        turns = [turns_at(session, size) for size in RANGE.values]
        assert len({*turns}) == 3
        assert turns.count(steps) == turns.index(turns_at(session, ceiling + RANGE.step))
        assert session.arena_bytes == built.arena_bytes


def test_outputs_are_those_of_a_program_for_the_size_alone(model, built, ceiling):
    with PoisonedSession(program_pieces(built.assemble())) as session:
        for size in (RANGE.high, RANGE.low, ceiling, ceiling + RANGE.step, ceiling - RANGE.step):
            alone = build_model(model, Reading(dims={"h": size}), kernels=Kernels.DIRECT)
            with Session.of_pieces(list(program_pieces(alone.assemble())), "alone") as other:
                expected = other.run(feeds_of(size))["y"]
            assert session.run(feeds_of(size))["y"].tobytes() == expected.tobytes()


def test_a_range_may_be_that_of_a_shape(model, built):
    size = replace(RANGE, name="x:2"), replace(RANGE, name="x:3")  # the file names both h
    shapes = {"x": (1, 3, *size)}
    found = build_model(model, Reading(shapes=shapes), kernels=Kernels.DIRECT)
    assert found.parts == built.parts != []


def test_weights_of_16_bits_are_in_the_file_once(tmp_path):
    text = CHAIN.replace("x) => (y) <", "x, float[1,h,96] t) => (y, z) <float[96,96] d, ")
    text = text.replace(
        "y = Conv(s, c)",
        "y = Conv(s, c) f = Constant<value = int64[1] {0}>() k = Constant<value = int64[1] {6}>()"
        "e = Constant<value = int64[1] {9999}>() o = Constant<value = int64[1] {1}>()"
        "u = Slice(t, f, e, o, k) z = MatMul(u, d)",  # few rows in the part, more in all
    )
    path = save(tmp_path, with_short_weights(with_random_weights(parse(text))))
    found = build_model(path, Reading(dims={"h": RANGE}), kernels=Kernels.DIRECT)
    assert found.parts
    assert found.assemble().weights_size == found.compiled.assemble(found.plan).weights_size
    few = build_model(path, Reading(dims={"h": Dimension("h", 8, 64, 8)}))
    assert np.dtype(np.float16) in {each.dtype for each in few.compiled.program.constants.values()}


def test_subranges_add_no_weights_and_little_memory(built, tmp_path):
    assert built.assemble().weights_size == built.compiled.assemble(built.plan).weights_size
    held = built.write(tmp_path / "both.arena")
    alone = replace(built, subranges=()).write(tmp_path / "alone.arena")
    assert held.weights_resident >= alone.weights_resident
    assert held.memories == alone.memories
    assert alone.total < held.total < alone.total + 64 * 1024


def test_a_size_outside_of_all_of_them_is_refused_and_changes_nothing(built, ceiling):
    with Session.of_pieces(list(program_pieces(built.assemble())), "chain") as session:
        session.resize(h=ceiling)
        for size in (RANGE.high + RANGE.step, 0, ceiling + 1, ceiling - 1):
            with pytest.raises(SizeRangeError, match=r"its range is 8 to 256, in steps of 8"):
                session.resize(h=size)
            assert session.sizes == {"h": ceiling}


def test_the_profile_is_that_of_the_program_that_ran(built, ceiling):
    with Session.of_pieces(list(program_pieces(built.assemble())), "chain") as session:
        for size in (ceiling, RANGE.high):
            session.resize(h=size)
            assert sum(each.nanoseconds > 0 for each in session.profile()) == len(
                session.backends()
            )


def test_a_program_file_has_them_checked(built, tmp_path):
    program = tmp_path / "chain.arena"
    built.write(program)
    found = ProgramFile.read(program)
    found.check()
    assert found.parts == built.parts
    assert len(found.run.turns) > len(found.subranges[0].run.turns) == found.num_steps

    def bulge(root):
        """Let lengths be h + (h - low) * (high - h): right at both ends, too long between."""
        part = below(root)
        (range_,) = part["dimensions"]
        added, at = part["expressions"], len(part["expressions"])
        for operation, a, b in (
            ("dimension", 0, 0), ("constant", -range_["low"], 0), ("add", at, at + 1),
            ("constant", -1, 0), ("multiply", at, at + 3), ("constant", range_["high"], 0),
            ("add", at + 4, at + 5), ("multiply", at + 2, at + 6), ("add", at, at + 7),
        ):  # fmt: skip
            added.append({"operation": operation, "a": a, "b": b})
        for axis in part["axes"]:
            axis["expression"] = len(added) - 1

    program.write_bytes(edited(built.assemble(), bulge))
    with pytest.raises((OversizedError, ProgramError)):
        ProgramFile.read(program).check()


def test_coded_weights_are_decoded_once(built, tmp_path):
    pytest.importorskip("zstandard")
    from arenite.pipeline.making.programs import code_of

    built.write(tmp_path / "coded.arena", code_of())
    assert ProgramFile.read(tmp_path / "coded.arena").subranges == ()


def below(root):
    return root["subranges"][0]


def second(root):
    root["subranges"].append(root["subranges"][0])


def grown(root):
    below(root)["memories"][0]["size"] = root["memories"][0]["size"] + 64


def as_high(root):
    below(root)["dimensions"] = root["dimensions"]


def nested(root):
    below(root)["subranges"] = [dict(below(root))]


def renamed(root):
    below(root)["inputs"][0]["name"] = "z"


def another_type(root):
    tensor = below(root)["tensors"][below(root)["outputs"][0]["tensor"]]
    tensor["type"] = "int32"


def no_tensor(root):
    below(root)["inputs"][0]["tensor"] = -1


def state(root):
    below(root)["states"] = [{"tensor": below(root)["inputs"][0]["tensor"]}]


def beside(root):
    root["steps"][0]["lane"] = 1


def few_weights(root):
    below(root)["weights_size"] -= 64


def early_death(root):
    for each in below(root)["records"]:
        each["end"] = min(each["end"], each["start"] + 1)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (second, "no lower sizes"), (as_high, "lower sizes|highest sizes"),
        (grown, "other memories"), (nested, "has subranges itself"),
        (renamed, "other inputs or outputs"), (another_type, "other inputs or outputs"),
        (no_tensor, "other inputs or outputs"), (state, "states"), (beside, "lane"),
        (few_weights, "other memories or weights"), (early_death, "live"),
        (lambda root: root.update(subranges=[below(root)] * 17), "at most 16 subranges"),
        (lambda root: below(root).update(dimensions=[]), "no dimensions"),
    ],
)  # fmt: skip
def test_a_subrange_that_cannot_take_the_place_of_the_program_is_refused(edit, reason, built):
    valid = built.assemble()
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([edited(valid, edit)], "hostile")


def test_a_model_file_is_run_with_them(model, ceiling):
    with arenite.Session(model, dims={"h": RANGE.text}) as session:
        assert turns_at(session, RANGE.high) > turns_at(session, RANGE.low)
