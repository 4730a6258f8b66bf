"""Sizes are integers that keep how they depend on dimensions."""

import copy
import math
import pickle
import random
import re

import pytest

from arenite.planner.errors import SizeError
from arenite.planner.sizes import (
    Dimension,
    Expression,
    Ranges,
    Size,
    at,
    bounds,
    depends,
    largest,
    length_text,
    read_lengths,
    require_inside,
    same,
    same_lengths,
    smallest,
)
from arenite.planner.units import align_up

SEQ = Dimension("seq", 1, 512)
PAST = Dimension("past", 0, 100)
WIDTH = Dimension("width", 32, 320, 32)


def test_a_size_is_the_integer_at_the_highest_sizes() -> None:
    size = SEQ.size
    assert size == 512
    assert hash(size) == hash(512)
    assert f"{size}" == "512"
    assert str(size.expression) == "seq"
    assert depends(size)


def test_a_dimension_with_one_value_is_a_plain_integer() -> None:
    assert type(Dimension("n", 4, 4).size) is int


def test_arithmetic_is_that_of_integers_at_every_size() -> None:
    rng = random.Random(0)
    dimensions = (SEQ, PAST, WIDTH)
    for _ in range(300):
        values = [each.size for each in dimensions] + [rng.randint(1, 9) for _ in range(3)]
        actions = []
        for _ in range(6):
            action = rng.choice(["add", "sub", "mul", "div", "mod", "max", "min"])
            one, other = rng.randrange(len(values)), rng.randrange(len(values))
            made = _apply(action, values[one], values[other])
            if made is None or abs(made) > 1 << 40:
                continue
            actions.append((action, one, other))
            values.append(made)
        for _ in range(10):
            sizes = {each.name: rng.choice(range(each.low, each.high + 1, each.step))
                     for each in dimensions}  # fmt: skip
            plain = [at(each, sizes) for each in values[:6]]
            for (action, one, other), made in zip(actions, values[6:], strict=True):
                expected = _apply(action, plain[one], plain[other])
                if expected is None:
                    break
                plain.append(expected)
                assert at(made, sizes) == expected


def _apply(action: str, one: int, other: int) -> int | None:
    if action in ("div", "mod") and other == 0:
        return None
    return {
        "add": lambda: one + other, "sub": lambda: one - other, "mul": lambda: one * other,
        "div": lambda: one // other, "mod": lambda: one % other,
        "max": lambda: largest(one, other), "min": lambda: smallest(one, other),
    }[action]()  # fmt: skip


def test_what_does_not_depend_on_a_dimension_is_a_plain_integer() -> None:
    size = SEQ.size
    for made in (size - size, size * 0, size // size, (size + 3) - size, size % 1):
        assert type(made) is int


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ((SEQ.size + 1) // 2 // 2, "floor((seq + 1)/(4))"),
        ((2 * SEQ.size + 6) // 4, "floor((seq + 1)/(2)) + 1"),
        (SEQ.size * 12 * 64 // 12, "64*seq"),
        (SEQ.size * PAST.size // SEQ.size, "past"),
        (WIDTH.size // 4, "8*width/32"),
        (-(-SEQ.size // 2), "floor((seq + 1)/(2))"),
        (largest(SEQ.size, SEQ.size + 1), "seq + 1"),
        (math.prod((2, SEQ.size, SEQ.size)), "2*seq*seq"),
        (sum((SEQ.size, 1)), "seq + 1"),
    ],
)
def test_expressions_have_one_form(made: int, text: str) -> None:
    assert isinstance(made, Size)
    assert str(made.expression) == text


def test_sizes_survive_copies() -> None:
    size = SEQ.size * 3 + 1
    assert isinstance(size, Size)
    for made in (pickle.loads(pickle.dumps(size)), copy.deepcopy(size)):
        assert made == size
        assert made.expression == size.expression


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SEQ.size * 4, (4, 2048)),
        ((SEQ.size + 3) // 4 * 4, (4, 512)),
        (SEQ.size - PAST.size, (-99, 512)),  # tried one by one
        (SEQ.size * (512 - SEQ.size), (0, 65536)),
        (7, (7, 7)),
    ],
)
def test_bounds_hold_for_all_sizes(value: int, expected: tuple[int, int]) -> None:
    assert bounds(value, (SEQ, PAST)) == expected


def test_sizes_are_the_same_if_they_are_for_all_values() -> None:
    size = SEQ.size
    assert same(size * 2, size + size)
    assert same(512, 512)
    assert not same(size, 512)  # equal at the highest sizes alone
    assert not same(size, size - 1)
    assert same_lengths((size, 4), (size, 4))
    assert not same_lengths((size, 512), (512, size))
    assert not same_lengths((size,), (size, 1))


def test_too_many_sizes_to_try_are_refused() -> None:
    wide = Dimension("wide", 0, 1 << 21)
    with pytest.raises(SizeError, match=r"wide=0\.\.2097152: too many sizes to prove a plan for"):
        bounds(wide.size * (5 - wide.size), (wide,))


@pytest.mark.parametrize(("low", "high", "step"), [(-1, 3, 1), (4, 3, 1), (1, 4, 2), (1, 4, 0)])
def test_a_range_is_checked(low: int, high: int, step: int) -> None:
    with pytest.raises(SizeError):
        Dimension("n", low, high, step)


@pytest.mark.parametrize("value", [0, 513])
def test_a_value_outside_the_range_is_refused(value: int) -> None:
    with pytest.raises(SizeError, match=r"dimension 'seq' is .*; its range is seq=1\.\.512"):
        require_inside({"seq": value}, (SEQ,))


def test_a_constant_has_the_expression_of_its_value() -> None:
    assert Expression.of(5).evaluate({}) == 5
    assert Expression.of(0).as_constant == 0


def test_a_range_is_read_from_a_text() -> None:
    assert Dimension.parse("seq", "1..512") == SEQ
    assert Dimension.parse("width", "32..320:32") == WIDTH
    assert Dimension.parse("seq", "17") == 17
    assert Dimension.parse("seq", "17..17") == 17
    assert Dimension.parse("width", WIDTH.text) == WIDTH


@pytest.mark.parametrize(
    "text", ["", "..", "1..", "..5", "-1..5", "1...5", "1..5:", "1..5:-1", "1-5", "²..5", "9" * 19]
)
def test_a_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(SizeError, match=r"expected a length such as 17, or a range such as 1\.\."):
        Dimension.parse("seq", text)


@pytest.mark.parametrize("text", ["5..1", "1..512:64", "1..5:0", "1..3:5"])
def test_a_range_without_its_ends_is_refused(text: str) -> None:
    with pytest.raises(SizeError, match="seq="):
        Dimension.parse("seq", text)


def test_an_expression_states_its_operations() -> None:
    seq, width = SEQ.size, WIDTH.size
    assert _tree(seq) == "seq"
    assert _tree(seq * 256 + 3) == ("+", ("*", 256, "seq"), 3)
    assert _tree(-(-seq * 4 // 64) * 64) == ("*", 64, ("/", ("+", "seq", 15), 16))
    assert _tree(width * 2) == ("*", 2, "width")
    assert _tree(width // 32) == ("/", "width", 32)
    assert _tree(largest(seq, 9)) == ("max", 9, "seq")
    assert _tree(Dimension("odd", 3, 13, 5).size * 2) == ("+", ("*", 2, ("+", "odd", -3)), 6)


def test_a_size_that_is_rounded_up_is_bounded_by_its_corners() -> None:
    """A million sizes are not tried one by one: rounded up, a product grows as it does."""
    height, width = Dimension("height", 1, 4000), Dimension("width", 1, 4000)
    size = align_up(height.size * width.size * 3, 64)
    assert bounds(size, (height, width)) == (64, 48_000_000)


def test_a_length_may_be_another_or_a_sum_of_others() -> None:
    ranges = {"past": PAST, "seq": "1..512", "width": WIDTH.text}
    stated = {"total": "past+ seq +1", "batch": 2, **ranges}
    found = read_lengths(stated)
    total = found["total"]
    assert isinstance(total, Size)
    assert at(total, {"past": 7, "seq": 3}) == 11
    texts = {name: length_text(each) for name, each in found.items()}
    assert texts["total"] == "past+seq+1"
    assert texts["seq"] == "1..512"
    assert read_lengths(texts) == found
    assert read_lengths({"n": "batch+3", "batch": 2})["n"] == 5
    stepped = read_lengths({"wide": "width+1", "width": Dimension("width", 7, 61, 6)})
    assert length_text(stepped["wide"]) == "width+1"
    same = read_lengths({"other": "seq", "seq": "1..512"})
    assert length_text(same["other"]) == "seq"
    assert read_lengths({"other": "batch", "batch": 2})["other"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("past+seq", "'past' is neither a number nor a dimension that is given beside it"),
        ("seq+", "'' is neither"),
        ("seq+-1", "'-1' is neither"),
        ("total+1", "'total' is neither"),
        ("total", "'total' is neither"),
        ("seq*2", "expected a length such as 17"),
    ],
)
def test_a_sum_of_what_is_not_given_is_refused(text: str, message: str) -> None:
    with pytest.raises(SizeError, match=re.escape(message)):
        read_lengths({"total": text, "seq": SEQ})


def test_an_expression_that_is_no_sum_has_no_text() -> None:
    for size in (SEQ.size * 2, SEQ.size - 1):
        assert isinstance(size, int)
        with pytest.raises(SizeError, match="expected a sum of dimensions and a number"):
            length_text(size)


def _tree(value: int) -> object:
    assert isinstance(value, Size)
    return value.expression.tree


def test_the_sign_of_a_largest_is_known():
    n, m = Dimension("n", 1, 9), Dimension("m", 2, 6)
    assert Ranges([n, m]).sign(largest(n.size, m.size)) == 1
    assert isinstance(bounds(largest(n.size, m.size), [n, m])[0], int)


def test_terms_that_share_no_dimension_are_proved_apart() -> None:
    dimensions = [Dimension(f"n{index}", 0, 3234) for index in range(90)]
    found = [smallest(each.size, 300) for each in dimensions]
    assert bounds(sum(found), dimensions) == (0, 27_000)
    assert bounds(sum(300 - each for each in found), dimensions) == (0, 27_000)
    one, other = dimensions[0].size, dimensions[1].size
    assert bounds(7 * one - 5 * other, dimensions) == (-5 * 3234, 7 * 3234)
    with pytest.raises(SizeError, match="too many sizes"):
        bounds(one * other - one, dimensions)
