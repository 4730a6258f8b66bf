import contextlib
import csv
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import ModelFormatError
from arenite.planner.importers.csv import read_csv
from arenite.planner.placement.problem import Problem, UsageRecord
from support.shared_material import shared

HEADER = "id,lower,upper,size\n"


def load(tmp_path: Path, text: str, name: str = "instance.csv") -> Problem:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_csv(path)


def test_upper_is_the_first_step_at_which_a_record_no_longer_lives(tmp_path: Path) -> None:
    problem = load(tmp_path, HEADER + "x,0,2,5\ny,2,4,7\n")
    x, y = problem.records
    assert (x.start, x.end, x.size, x.alignment) == (0, 2, 5, 1)
    assert not x.meets(y)
    assert problem.lower_bound == 7


def test_records_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    problem = load(tmp_path, HEADER + "b,5,6,1\na,0,1,1\n")
    assert [record.name for record in problem.records] == ["b", "a"]


@pytest.mark.parametrize(
    ("name", "capacity"),
    [("A.1048576.csv", 1_048_576), ("A.csv", None), ("A.v2.csv", None), ("12.csv", None)],
)
def test_a_number_before_the_suffix_is_the_capacity(
    tmp_path: Path, name: str, capacity: int | None
) -> None:
    assert load(tmp_path, HEADER, name).capacity == capacity


def test_a_name_states_no_capacity_of_a_file_with_a_column_of_ours(tmp_path: Path) -> None:
    text = "id,lower,upper,size,alignment\nx,0,2,5,4\n"
    assert load(tmp_path, text, "model.100.csv").capacity is None


def test_columns_may_stand_in_any_order_with_an_alignment_and_an_answer(tmp_path: Path) -> None:
    problem = load(tmp_path, "offset,size,alignment,id,upper,lower\n64,5,16,x,3,1\n")
    assert problem.records == (UsageRecord("x", 5, 1, 3, alignment=16),)


def test_a_byte_order_mark_blank_lines_spaces_and_quotes_do_no_harm(tmp_path: Path) -> None:
    problem = load(tmp_path, '\ufeffid, lower, upper, size\r\n\r\n"a,b", 0, 1, 2\r\n')
    assert problem.records == (UsageRecord("a,b", 2, 0, 1),)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 0: column 'id' is missing"),
        ("id,lower,size\n", "line 1: column 'upper' is missing"),
        ("id,lower,upper,size,size\n", "line 1: column 'size' appears twice"),
        ("id,lower,upper,size,gap\n", "line 1: unknown column 'gap'; known: id, lower"),
        (HEADER + "x,0,1\n", "line 2: 3 fields where the header has 4"),
        (HEADER + "x,0,1,2,3\n", "line 2: 5 fields"),
        (HEADER + "x,0,1,2\n\ny,0,1,z\n", "line 4: 'z' is not a whole number"),
        (HEADER + "x,-1,1,2\n", "line 2: '-1' is not a whole number"),
        (HEADER + "x,0,1,1_0\n", "line 2: '1_0' is not a whole number"),
        (HEADER + "x,0,1,٣\n", "line 2: .* is not a whole number"),
        (HEADER + f"x,0,1,{'9' * 5000}\n", "line 2: .* is not a whole number"),
        (HEADER + "x,0,1,0\n", "line 2: record 'x': size 0"),
        (HEADER + "x,3,3,1\n", r"line 2: record 'x': \[3, 3\) is not a lifetime"),
        (HEADER + "x,0,1,1\nx,1,2,1\n", "line 3: the id 'x' is used a second time"),
        (HEADER + 'x,0,1,"1\n', "line 2: unexpected end of data"),
        ("id,lower,upper,size,alignment\nx,0,1,1,3\n", "line 2: .* not a power of two"),
    ],
)
def test_a_malformed_line_is_refused_by_number(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ModelFormatError, match=complaint):
        load(tmp_path, text)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.csv"
    path.write_bytes(b"id,lower\xff")
    with pytest.raises(ModelFormatError, match="byte 8 is not UTF-8"):
        read_csv(path)


@given(data=st.binary(max_size=200) | st.text(alphabet='id,lowerupsz\n"0129 ').map(str.encode))
def test_any_bytes_give_a_problem_or_a_format_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(data)
    with contextlib.suppress(ModelFormatError):
        assert isinstance(read_csv(path), Problem)


def test_a_hundred_thousand_rows_are_read_in_seconds(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i},{i + 9},{i % 999 + 1}\n" for i in range(100_000))
    begin = time.process_time()
    assert len(load(tmp_path, HEADER + rows).records) == 100_000
    assert time.process_time() - begin < 10


def test_known_instances_have_their_known_bounds() -> None:
    folder = shared("instances")
    with (folder / "index.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert rows
    for row in rows:
        problem = read_csv(folder / row["name"])
        assert len(problem.records) == int(row["n_buffers"])
        assert problem.lower_bound == int(row["lower_bound"])
        assert problem.capacity == (int(row["capacity"]) if row["capacity"] else None)
