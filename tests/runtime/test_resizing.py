"""Programs for a range of sizes: every size is, to the bit, the program that is built for it."""

import numpy as np
import pytest

from arenite.pipeline.base import Reading
from arenite.runtime import InputShapeError, InputTypeError, ProgramError, Session, SizeRangeError
from support.edited_programs import edited, file_of
from support.one_step import Given, one_step
from support.ranged_programs import NETWORKS, built, range_of, ranged
from support.running import PoisonedSession


@pytest.fixture
def small(tmp_path):
    """The program of a text of 2 to 40."""
    return range_of(tmp_path, "text")[1]


def random_input(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def shape_of(network: str, size: int) -> tuple[int, ...]:
    return (1, 3, size, size) if network.startswith("images") else (1, size, 16)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("options", [{}, {"guard": True}, {"threads": 2}], ids=str)
def test_outputs_are_those_of_the_program_of_each_size(tmp_path, network, options):
    build, assembly = range_of(tmp_path, network)
    _, low, high, step = NETWORKS[network]
    session = PoisonedSession([file_of(assembly)], **options)
    for size in (high, low, low + step, high - step, high, low + 3 * step, low):
        feeds = {"x": random_input(shape_of(network, size))}
        with Session.of_pieces([file_of(build(size))], "fixed") as fixed:
            expected = fixed.run(feeds)
        found = session.run(feeds)
        for name, array in expected.items():
            assert found[name].shape == array.shape
            assert found[name].tobytes() == array.tobytes(), (size, name)


def test_sizes_are_those_of_the_inputs_or_set(small):
    with Session.of_pieces([file_of(small)], "small") as session:
        assert [str(each) for each in session.dimensions] == ["n=2..40"]
        assert session.sizes == {"n": 40}
        assert session.inputs[0].shape == (1, 40, 16)
        assert session.run({"x": random_input((1, 7, 16))})["y"].shape == (1, 7, 16)
        assert session.sizes == {"n": 7}
        assert session.inputs[0].shape == session.outputs[0].shape == (1, 7, 16)
        session.resize(n=9)
        assert session.outputs[0].view.shape == (1, 9, 16)
        session.resize({"n": np.int64(11)})
        assert session.sizes == {"n": 11}


@pytest.mark.parametrize("size", [1, 41, 0, -3, 2**63 - 1, 2**70])
def test_a_size_outside_of_its_range_is_refused_and_leaves_the_session_as_it_was(small, size):
    with Session.of_pieces([file_of(small)], "small") as session:
        feeds = {"x": random_input((1, 7, 16))}
        expected = session.run(feeds)["y"]
        with pytest.raises(SizeRangeError, match="2 to 40"):
            session.resize(n=size)
        assert session.sizes == {"n": 7}
        np.testing.assert_array_equal(session.run(feeds)["y"], expected)


def test_an_input_of_no_size_in_the_range_is_refused_with_the_range(small):
    with Session.of_pieces([file_of(small)], "small") as session:
        with pytest.raises(SizeRangeError, match=r"length 41 along axis 1.* 'n'.*2 to 40"):
            session.run({"x": random_input((1, 41, 16))})
        for shape in ((1, 7, 15), (2, 7, 16), (7, 16)):
            with pytest.raises(InputShapeError):
                session.run({"x": random_input(shape)})
        assert session.sizes == {"n": 40}


def test_inputs_that_contradict_one_another_are_refused(tmp_path):
    def two(n: int) -> str:
        return f"(float[1,{n},16] x, float[{n},16] z) => (y) {{ y = Add(x, z) }}"

    assembly = ranged(built(tmp_path, two, Reading()), 2, 9)
    with Session.of_pieces([file_of(assembly)], "two") as session:
        session.resize(n=5)
        with pytest.raises(InputShapeError, match="'z' has the shape 6x16; expected 7x16"):
            session.run({"x": random_input((1, 7, 16)), "z": random_input((6, 16))})
        with pytest.raises(InputTypeError, match="float64"):
            session.run({"x": random_input((1, 7, 16)), "z": np.zeros((7, 16))})
        assert session.sizes == {"n": 5}
        found = session.run({"x": random_input((1, 6, 16)), "z": random_input((6, 16))})
        assert found["y"].shape == (1, 6, 16)


def test_a_length_that_is_no_dimension_tells_the_dimension_in_it(small):
    def halve(root):
        # Of lengths n: 2 m, where m is the dimension.
        root["dimensions"] = [{"name": "m", "low": 1, "high": 20}]
        first, *others = root["expressions"]
        for each in others:
            if each["operation"] != "constant":
                each["a"], each["b"] = each["a"] + 2, each["b"] + 2
        root["expressions"] = [first, entry("constant", 2), entry("multiply", 0, 1), *others]
        for each in (*root["axes"], *root["numbers"]):
            each["expression"] += 2

    assert small.root["expressions"][0] == entry("dimension", 0)
    with Session.of_pieces([edited(small, halve)], "halves of lengths") as session:
        assert session.run({"x": random_input((1, 14, 16))})["y"].shape == (1, 14, 16)
        assert session.sizes == {"m": 7}
        for length in (0, 13, 42):
            with pytest.raises(SizeRangeError, match=f"length {length} along axis 1.*1 to 20"):
                session.run({"x": random_input((1, length, 16))})
        assert session.sizes == {"m": 7}


def test_a_size_between_two_steps_is_refused(tmp_path):
    _, assembly = range_of(tmp_path, "attention by steps")
    with Session.of_pieces([file_of(assembly)], "steps") as session:
        with pytest.raises(SizeRangeError, match="8 to 64, in steps of 8"):
            session.resize(n=12)
        with pytest.raises(SizeRangeError, match="8 to 64, in steps of 8"):
            session.run({"x": random_input((1, 12, 16))})


def test_wrong_names_and_kinds_of_sizes_are_refused(small):
    with Session.of_pieces([file_of(small)], "small") as session:
        with pytest.raises(SizeRangeError, match="no dimension 'm'; dimensions: 'n'"):
            session.resize(m=3)
        for wrong in (3.0, "3", None, True):
            with pytest.raises(TypeError):
                session.resize(n=wrong)


def test_a_program_of_one_size_has_no_dimensions(tmp_path):
    build, _ = range_of(tmp_path, "text")
    with Session.of_pieces([file_of(build(4))], "fixed") as session:
        assert session.dimensions == ()
        assert session.sizes == {}
        session.resize()
        with pytest.raises(SizeRangeError, match="dimensions: none"):
            session.resize(n=4)


def test_memory_is_the_same_after_any_sizes(small):
    with Session.of_pieces([file_of(small)], "small") as session:
        before = session.memory().total
        for size in range(2, 41):
            session.run({"x": random_input((1, size, 16))})
        assert session.memory().total <= before


def entry(operation: str, a: int, b: int = 0) -> dict:
    return {"operation": operation, "a": a, "b": b}


def last(root: dict) -> int:
    return len(root["expressions"]) - 1


def made(root: dict) -> int:
    """Return the first result of the first step."""
    return root["steps"][0]["outputs"][0]


def with_offset(root: dict, tensor: int, more: int = 0) -> dict:
    """State the offset of a tensor as an expression."""
    root["expressions"].append(entry("constant", offset_of(root, tensor) + more))
    root["offsets"] = [{"tensor": tensor, "expression": last(root)}]
    return root


def offset_of(root: dict, tensor: int) -> int:
    return root["tensors"][tensor].get("offset", 0) if tensor < len(root["tensors"]) else 0


def moving(root: dict, by: int) -> None:
    """Let the first result lie so many bytes higher for each that n is below 40."""
    tensor = made(root)
    at = len(root["expressions"])
    root["expressions"] += [
        entry("dimension", 0), entry("constant", -by), entry("multiply", at, at + 1),
        entry("constant", offset_of(root, tensor) + 40 * by), entry("add", at + 2, at + 3),
    ]  # fmt: skip
    root["offsets"] = [{"tensor": tensor, "expression": last(root)}]


HOSTILE = {
    "no dimensions": (lambda r: r.update(dimensions=[]), "no dimensions"),
    "a range that is none": (lambda r: r["dimensions"][0].update(low=41), "no range"),
    "steps that miss the end": (lambda r: r["dimensions"][0].update(step=3), "no range"),
    "steps of none": (lambda r: r["dimensions"][0].update(step=0), "no range"),
    "a huge range": (lambda r: r["dimensions"][0].update(high=2**63), "no range"),
    "two of a name": (lambda r: r["dimensions"].append(r["dimensions"][0]), "duplicate name"),
    "many dimensions": (
        lambda r: r.update(dimensions=[{"name": str(i), "low": 1, "high": 1} for i in range(257)]),
        "at most 256 dimensions",
    ),
    "another highest size": (lambda r: r["dimensions"][0].update(high=41), "its expression is"),
    "an unknown dimension": (lambda r: r["expressions"].append(entry("dimension", 1)), "unknown"),
    "a negative dimension": (lambda r: r["expressions"].append(entry("dimension", -1)), "unknown"),
    "of itself": (
        lambda r: r["expressions"].append(entry("add", len(r["expressions"]), 0)), "before it",
    ),
    "of a later one": (lambda r: r["expressions"].insert(0, entry("add", 1, 1)), "before it"),
    "of a negative one": (lambda r: r["expressions"].append(entry("add", 0, -1)), "before it"),
    "a sum beyond 64 bits": (
        lambda r: r["expressions"].extend(
            [entry("constant", 2**63 - 1), entry("add", last(r) + 1, last(r) + 1)]
        ),
        "64 bits",
    ),
    "a product beyond 64 bits": (
        lambda r: r["expressions"].extend(
            [entry("constant", -(2**63)),
             entry("multiply", last(r) + 1, last(r) + 1)]
        ),
        "64 bits",
    ),
    "a quotient of 0": (
        lambda r: r["expressions"].extend([entry("constant", 0), entry("divide", 0, last(r) + 1)]),
        "divides by 0",
    ),
    "the lowest number over -1": (
        lambda r: r["expressions"].extend(
            [entry("constant", -(2**63)), entry("constant", -1),
             entry("divide", last(r) + 1, last(r) + 2)]
        ),
        "64 bits",
    ),
    "an axis of no tensor": (lambda r: r["axes"][-1].update(tensor=9999), "does not exist"),
    "an axis beyond the rank": (lambda r: r["axes"][-1].update(axis=7), "does not exist"),
    "an axis of no expression": (lambda r: r["axes"][-1].update(expression=9999), "of"),
    "an axis twice": (lambda r: r["axes"].append(r["axes"][-1]), "out of order"),
    "axes out of order": (lambda r: r["axes"].reverse(), "out of order"),
    "an axis of another value": (
        lambda r: with_input_axis(entry("constant", 5))(r), "its expression is",
    ),
    "a number of no step": (lambda r: r["numbers"][-1].update(step=9999), "of"),
    "a number too far": (lambda r: r["numbers"][-1].update(number=9999), "no number 9999"),
    "a number of no expression": (lambda r: r["numbers"][-1].update(expression=9999), "of"),
    "a number twice": (lambda r: r["numbers"].append(r["numbers"][-1]), "out of order"),
    "a number of another value": (
        lambda r: r["numbers"][-1].update(expression=0), "its expression is",
    ),
    "an offset of no tensor": (lambda r: with_offset(r, 9999), "does not exist"),
    "an offset of another value": (lambda r: with_offset(r, made(r), 3), "its expression is"),
    "an offset twice": (
        lambda r: r.update(offsets=with_offset(r, made(r))["offsets"] * 2), "out of order",
    ),
    "an offset of a constant": (
        lambda r: with_offset(r, next(i for i, t in enumerate(r["tensors"]) if "weights" in
                                      t.get("place", "memory"))), "is of a constant",
    ),
    "an offset that leaves the memory": (lambda r: moving(r, 1 << 20), "not live at these sizes"),
    "an offset below the memory": (lambda r: moving(r, -(1 << 20)), "not live at these sizes"),
    "an offset inside an element": (lambda r: moving(r, 1), "not live at these sizes"),
    "a number of a step without": (
        lambda r: r["numbers"].insert(0, {"step": 0, "number": 0, "expression": 0}), "no number 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", HOSTILE)
@pytest.mark.parametrize("guard", [False, True])
def test_hostile_sizes_are_refused(small, edit, guard):
    change, reason = HOSTILE[edit]
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([edited(small, change)], "hostile", guard=guard)


def with_input_axis(*more: dict):
    """Let the length of the first sized axis be the last of these expressions."""

    def edit(root):
        root["expressions"] += more
        root["axes"][0]["expression"] = len(root["expressions"]) - 1

    return edit


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        # 40 at the highest size, more below it: a constant of 80 less n.
        (lambda at: [entry("constant", 80), entry("constant", -1), entry("dimension", 0),
                     entry("multiply", at + 1, at + 2), entry("add", at, at + 3)], "needs more"),
        (lambda at: [entry("dimension", 0), entry("constant", 2), entry("multiply", at, at + 1),
                     entry("constant", -40), entry("add", at + 2, at + 3)], "has the length -36"),
        (lambda at: [entry("dimension", 0), entry("constant", -2), entry("add", at, at + 1),
                     entry("constant", 1520), entry("divide", at + 3, at + 2)], "divides by 0"),
    ],
)  # fmt: skip
def test_lengths_that_do_not_fit_the_lowest_size_are_refused(small, more, reason):
    start = len(small.root["expressions"])
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([edited(small, with_input_axis(*more(start)))], "hostile")


def test_a_size_that_fails_between_the_ends_leaves_the_session_as_it_was(small):
    # 40 at 40 and 2 at 2, otherwise one less than n: no shapes fit one another.
    at = len(small.root["expressions"])
    more = [
        entry("dimension", 0), entry("constant", -2), entry("add", at, at + 1),
        entry("constant", -40), entry("add", at, at + 3), entry("constant", -1),
        entry("multiply", at + 4, at + 5), entry("minimum", at + 2, at + 6), entry("constant", 1),
        entry("minimum", at + 7, at + 8), entry("multiply", at + 9, at + 5),
        entry("add", at, at + 10),
    ]  # fmt: skip
    wrong = edited(small, with_input_axis(*more))
    with Session.of_pieces([wrong], "wrong", guard=True) as session:
        feeds = {"x": random_input((1, 2, 16))}
        session.resize(n=2)
        expected = session.run(feeds)["y"]
        with pytest.raises(ProgramError, match="step"):
            session.resize(n=20)
        assert session.sizes == {"n": 2}
        np.testing.assert_array_equal(session.run(feeds)["y"], expected)


def test_padding_above_rows_that_run_in_bands_is_fixed():
    pool = {"window": [2, 2], "padding": [0, 0, 0, 0], "strides": [1, 1], "dilations": [1, 1]}

    def sized(number):
        def edit(root):
            root["dimensions"] = [{"name": "n", "low": 0, "high": 0}]
            root["expressions"] = [entry("dimension", 0)]
            root["numbers"] = [{"step": 0, "number": number, "expression": 0}]

        return one_step(
            "Pool2D", pool, [Given((1, 4, 4, 2))], [Given((1, 3, 3, 2))],
            turns=[(0, 0, 2), (0, 2, 1)], edit=edit,
        )  # fmt: skip

    with Session.of_pieces(sized(1), "fixed above") as session:
        session.invoke()
    with pytest.raises(ProgramError, match="the padding above them depends on sizes"):
        Session.of_pieces(sized(0), "sized above")


def test_damaged_tables_of_sizes_never_crash(small):
    generator = np.random.default_rng(3)
    valid = small.root
    numbers = [-(2**63), -1, 0, 1, 2, 3, 7, 40, 41, 2**31, 2**40, 2**63 - 1]
    opened = 0
    for _ in range(300):

        def edit(root, generator=generator):
            for _ in range(int(generator.integers(1, 4))):
                key = ("expressions", "axes", "numbers")[generator.integers(3)]
                each = root[key][generator.integers(len(valid[key]))]
                name = list(each)[generator.integers(len(each))]
                if name == "operation":
                    each[name] = ("add", "divide", "maximum", "minimum")[generator.integers(4)]
                else:
                    value = numbers[generator.integers(len(numbers))]
                    each[name] = value if key == "expressions" else abs(value) % 2**32

        data = edited(small, edit)
        try:
            with Session.of_pieces([data], "damaged", guard=True, poison=255) as session:
                opened += 1
                for size in (2, 3, 19, 40):
                    try:
                        session.resize(n=size)
                    except ProgramError:
                        continue
                    session.invoke()
        except ProgramError:
            pass
    assert opened < 300


@pytest.mark.parametrize("copy", [True, False])
def test_sizes_change_in_memory_of_the_caller(small, copy):
    (memory,) = small.root["memories"]
    size_given = memory["size"] + 128  # that kernels read beyond it
    arena = np.full(size_given + 4096, 255, np.uint8)
    begin = -arena.ctypes.data % 4096
    buffers = {memory["name"]: arena[begin : begin + size_given]}
    with (
        Session.of_pieces([file_of(small)], "own memory") as own,
        Session.of_pieces([file_of(small)], "the caller's", buffers=buffers) as session,
    ):
        for size in (40, 2, 17, 40):
            feeds = {"x": random_input((1, size, 16))}
            found = session.run(feeds, copy=copy)["y"]
            np.testing.assert_array_equal(found, own.run(feeds)["y"])
            assert np.shares_memory(found, arena) != copy
