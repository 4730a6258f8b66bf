"""Descriptions of systems that are refused, and those that are read."""

from pathlib import Path

import pytest

from arenite.pipeline.systems import Connection, SystemDescription, SystemFileError, plan_system
from arenite.planner import Memory
from arenite.planner.programs import CostedMemory, Section, SectionKind
from support.small_systems import write_system
from support.tiny_onnx import parse, save

TWO = '[models.a]\npath = "a.onnx"\n[models.b]\npath = "b.onnx"\n'
CONNECT = '[[connect]]\nfrom = "a.y"\nto = "b.x"\n'


def described(folder: Path, text: str) -> SystemDescription:
    path = folder / "system.toml"
    path.write_text(text, encoding="utf-8")
    return SystemDescription.read(path)


def test_models_run_in_the_order_of_the_file_unless_there_is_a_schedule(tmp_path):
    assert described(tmp_path, TWO).schedule == Section(SectionKind.SEQUENCE, ("a", "b"))
    found = described(tmp_path, f'schedule = ["b", {{ maybe = ["a"] }}]\n{TWO}')
    maybe = Section(SectionKind.MAYBE, ("a",))
    assert found.schedule == Section(SectionKind.SEQUENCE, ("b", maybe))
    assert list(found.models) == ["b", "a"]
    assert found.models["a"].path == tmp_path / "a.onnx"
    assert described(tmp_path, TWO + CONNECT).connections == (Connection("a.y", "b.x"),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("models = 1", "expected a table"),
        ("[models", "is not TOML"),
        ("", "describes no model"),
        (f"{TWO}[other]", "unknown key 'other'; known: models, schedule, connect"),
        (f'{TWO}schedule = ["a"]', "keys of the system stand above its tables"),
        (f"memories = 1\n{TWO}", "memories is 1; expected a table"),
        (f'memories = {{ a = "1KiB" }}\n{TWO}', "memory 'a' is '1KiB'; expected a table"),
        (f"{TWO}[memories.a]\nread = 1", "memory 'a' has no size"),
        (f"{TWO}[memories.a]\nsize = 0", "memory 'a' has size 0; expected bytes from 1"),
        (f"{TWO}[memories.a]\nsize = true", "memory 'a' has size True; expected bytes"),
        (f'{TWO}[memories.a]\nsize = "9K"', "size of memory 'a': '9K' is not a size, as"),
        (f"{TWO}[memories.a]\nsize = nan", "memory 'a' has size nan; expected bytes"),
        ('[models.a]\npath = "a\\u0000.onnx"', r"path 'a\x00.onnx'; no file has a name with a z"),
        (f'{TWO}[memories.a]\nsize = "9EB"', "is not a size; write 65536, 64KiB or 1.5MB, or"),
        (f'{TWO}[memories.a]\nsize = "any"\nread = -1', "has read -1; expected a number from 0"),
        (f'{TWO}[memories.a]\nsize = "any"\nwrite = inf', "has write inf; expected a number"),
        (f"{TWO}[memories.a]\nbytes = 8", "unknown key 'bytes'; known: size, read, write"),
        (f'{TWO}[memories."a=b"]\nsize = 8', "a memory is named 'a=b'"),
        ("[models.a]\nkeep = []", "'a' has no path"),
        ('[models."a.b"]\npath = "a.onnx"', "use no dot"),
        ('[models.a]\npath = "a.onnx"\nkeep = [1]', "expected names of outputs"),
        ('[models.a]\npath = "a.onnx"\ndims = { n = 0.5 }', "expected a whole number"),
        ('[models.a]\npath = "a.onnx"\ndims = { n = "4..1" }', "a range needs"),
        ('[models.a]\npath = "a.onnx"\ndims = { n = "0..4+" }', "which grows: unsupported"),
        ('[models.a]\npath = "a.onnx"\nvalues = { n = true }', "expected a number"),
        ('[models.a]\npath = "a.onnx"\nweights = "much"', "weights 'much'"),
        ('[models.a]\npath = "a.onnx"\nweights = "5%,late"', "'late' is unsupported"),
        ('[models.a]\npath = "a.onnx"\naxis = "x:1"', "axis and hop state a stream together"),
        ('[models.a]\npath = "a.onnx"\naxis = "x:1"\nhop = "20ms"', "and a number of rows"),
        ('[models.a]\npath = "a.onnx"\naxis = "x"\nhop = 2', "write INPUT:AXIS such as frames:1"),
        (
            '[models.a]\npath = "a.onnx"\naxis = "x:1"\nhop = 2\npadding = "no"',
            "has padding 'no'; known: 'window', 'stream'",
        ),
        (f'schedule = ["a"]\n{TWO}', "leaves out 'b'"),
        (f'schedule = ["a", "b", "c"]\n{TWO}', "names 'c'; models: 'a', 'b'"),
        (f'schedule = ["a", "b", "a"]\n{TWO}', "more than once"),
        (f'schedule = ["a", "b", {{ maybe = [] }}]\n{TWO}', "section maybe of the schedule is e"),
        (f'schedule = [{{ never = ["a", "b"] }}]\n{TWO}', "section 'never'; known: 'sequence'"),
        (f'schedule = ["a", 2]\n{TWO}', "has a part 2"),
        (f'schedule = [{{ at_once = ["a", {{ at_once = ["b"] }}] }}]\n{TWO}', "inside another"),
        (f"schedule = {'[' * 40}{']' * 40}\n{TWO}", "expected a model, or a section"),
        (f'{TWO}[[connect]]\nfrom = "a.y"', "expected from and to"),
        (f'{TWO}[[connect]]\nfrom = "c.y"\nto = "b.x"', "connects 'c.y'; expected MODEL.PORT"),
        (f"{TWO}{CONNECT}{CONNECT}", "two outputs are connected to 'b.x'"),
        (f'schedule = ["b", "a"]\n{TWO}{CONNECT}', "cannot feed 'b.x': it runs later"),
        (f'schedule = [{{ maybe = ["a"] }}, "b"]\n{TWO}{CONNECT}', "'b' may run without 'a'"),
        (f'schedule = [{{ any_order = ["a", "b"] }}]\n{TWO}{CONNECT}', "no order"),
        (f'schedule = [{{ at_once = ["a", "b"] }}]\n{TWO}{CONNECT}', "no order"),
        (f'{TWO}[[connect]]\nfrom = "a.y"\nto = "a.x"', "it is the same model"),
    ],
)
def test_what_is_no_system_is_refused(tmp_path, text, reason):
    with pytest.raises(SystemFileError) as error:
        described(tmp_path, text)
    assert reason in str(error.value)


def test_memories_cost_what_is_stated_or_their_place(tmp_path):
    text = '[memories.sram]\nsize = "1KiB"\n[memories.psram]\nsize = "any"\nread = 4\n'
    assert described(tmp_path, TWO + text).memories == (
        CostedMemory(Memory("sram", 1024), 1, 1), CostedMemory(Memory("psram"), 4, 2),
    )  # fmt: skip
    assert described(tmp_path, TWO).memories == ()


def test_a_mark_of_the_encoding_before_the_text_is_read_over(tmp_path):
    assert list(described(tmp_path, f"\N{ZERO WIDTH NO-BREAK SPACE}{TWO}").models) == ["a", "b"]


def test_what_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "system.toml"
    path.write_bytes(TWO.encode("utf-16"))
    with pytest.raises(SystemFileError, match="is not TOML: 'utf-8' codec can't decode"):
        SystemDescription.read(path)


def test_ranges_have_the_name_of_their_model(tmp_path):
    text = 'dims = { n = "1..4" }\nshapes = { x = [1, "2..8:2"] }\n'
    found = described(tmp_path, f"{TWO}{text}").models["b"]
    assert str(found.dims["n"]) == "b.n=1..4"
    assert [str(each) for each in found.shapes["x"]] == ["1", "b.x:1=2..8:2"]


def test_what_is_handed_on_has_one_size(tmp_path):
    for name in ("a", "b"):
        save(tmp_path, parse("(float[n] x) => (y) {y = Neg(x)}")).rename(tmp_path / f"{name}.onnx")
    path = tmp_path / "system.toml"
    ranged = TWO.replace("[models.b]", 'dims = { n = "1..4" }\n[models.b]\ndims = { n = 4 }')
    path.write_text(ranged + CONNECT, encoding="utf-8")
    with pytest.raises(SystemFileError, match="its size differs from run to run"):
        plan_system(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(SystemFileError, match="cannot be read"):
        SystemDescription.read(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("(float[2] x) => (y) {y = Neg(x)}", "(float[3] x) => (y) {y = Neg(x)}", "2; the other f"),
        ("(float[2] x) => (y) {y = Neg(x)}", "(int32[2] x) => (y) {y = Neg(x)}", "other int32 2"),
        ("(float[2] x) => (z) {z = Neg(x)}", "(float[2] x) => (y) {y = Neg(x)}", "outputs are"),
        ("(float[2] x) => (y) {y = Neg(x)}", "(float[2] x) => (x) {w = Neg(x)}", "no step that"),
        ("(float[2] x) => (y) {y = Neg(x)}", "(float[2] z) => (y) {y = Neg(z)}", "inputs are"),
    ],
)
def test_ports_that_do_not_fit_are_refused(tmp_path, first, second, reason):
    for name, text in (("a", first), ("b", second)):
        save(tmp_path, parse(text)).rename(tmp_path / f"{name}.onnx")
    path = tmp_path / "system.toml"
    path.write_text(TWO + CONNECT, encoding="utf-8")
    with pytest.raises(SystemFileError) as error:
        plan_system(path)
    assert reason in str(error.value)
    assert str(error.value).startswith(f"{path}: ")


def test_an_output_that_is_not_there_cannot_be_kept(tmp_path):
    path = write_system(tmp_path, '"iris"', "iris", keep="iris.glance")
    with pytest.raises(SystemFileError, match=r"keeps 'iris\.glance'; outputs are 'iris\.gaze'"):
        plan_system(path)
