"""The page of operators agrees with the tables of the code, and with a sample of its cases."""

import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

import numpy as np

import arenite.runtime.lowering.onnx.model
import arenite.runtime.lowering.tflite.model  # noqa: F401
from arenite.runtime.lowering.onnx.translation import TRANSLATORS as ONNX
from arenite.runtime.lowering.tflite.translation import TRANSLATORS as TFLITE
from bench.sweep.onnx_cases import TEXTS, onnx_cases, onnx_operators, text_cases
from bench.sweep.outcome import Case, Outcome, Result, outcome_of
from bench.sweep.page import COMMAND, WORDS, cells_of, onnx_table, versions, word_for, written_page
from bench.sweep.tflite_cases import tflite_cases
from bench.sweep.tflite_operators import CUSTOM, builtin_operators
from support.contests import run_contest

PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text()
AGAIN = f"the page is not what the code does; {COMMAND}"
SAMPLE = (
    "Conv", "DepthToSpace", "Dropout", "If", "Not", "ReduceMean", "Reshape", "SequenceAt",
    "Softmax", "SpaceToDepth", "StringConcat", "Unique", "com.microsoft.FusedConv",
    "com.microsoft.QLinearAdd", "CAST", "CONV_2D", "IF", "LOGISTIC", "RESHAPE",
    "STABLEHLO_WHILE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "WHILE",
)  # fmt: skip
STATED = cells_of(PAGE)
ONNX_ROWS = {**STATED["ONNX"], **STATED["ONNX Runtime's own"]}
TFLITE_ROWS = STATED["TFLite"]


@cache
def sample() -> tuple[Outcome, ...]:
    cases = (*onnx_cases(), *text_cases(), *tflite_cases(SAMPLE))
    with tempfile.TemporaryDirectory() as folder:
        return tuple(outcome_of(each, Path(folder)) for each in cases if each.operator in SAMPLE)


def test_the_page_has_every_operator_of_both_schemas_and_no_other():
    assert set(TFLITE_ROWS) == {*builtin_operators(), *CUSTOM}, AGAIN
    assert set(STATED["ONNX Runtime's own"]) == {each for each in TEXTS if "." in each}, AGAIN
    if f"onnx {version('onnx')}," in PAGE:
        assert set(STATED["ONNX"]) == set(onnx_operators()), AGAIN


def test_what_has_a_translator_is_native_on_the_page():
    for operator in set(ONNX.names()) & set(ONNX_ROWS):  # old ones are in no schema any more
        row = ONNX_ROWS[operator]
        assert row["native"] or row["before the run"], (operator, AGAIN)
    for operator in TFLITE.names():
        if operator in TFLITE_ROWS:
            assert TFLITE_ROWS[operator]["native"], (operator, AGAIN)
        else:
            assert f"`{operator}`" in PAGE, (operator, AGAIN)


def test_what_is_native_for_tflite_has_a_translator_or_is_resolved_by_the_importer():
    listed = {name for name, row in TFLITE_ROWS.items() if row["native"]}
    assert listed - set(TFLITE.names()) <= {"IF", "RANGE", "SHAPE"}, AGAIN


def test_a_sample_of_the_cases_gives_the_rows_of_the_page():
    if not all(each in PAGE for each in versions()):
        pytest.skip(f"the page is of other packages than {', '.join(versions())}")
    for section, rows in cells_of(written_page(sample())).items():
        assert {name: STATED[section][name] for name in rows} == rows, AGAIN


def test_no_case_of_the_sample_is_wrong():
    wrong = [(each.case.name, each.reason) for each in sample() if each.result is Result.WRONG]
    assert {each.case.operator for each in sample()} == set(SAMPLE)
    assert wrong == []


def test_the_sample_shows_every_result_but_a_wrong_one():
    assert {each.result for each in sample()} == set(Result) - {Result.WRONG}


def test_an_output_that_differs_makes_a_case_wrong(tmp_path):
    case = next(each for each in text_cases() if each.operator == "com.microsoft.Gelu")
    other = Case(
        case.operator, case.name, case.suffix, case.model, case.feeds,
        (lambda: [np.full((2, 6), 100.0, np.float32)],),
    )  # fmt: skip
    outcome = outcome_of(other, tmp_path)
    assert outcome.result is Result.WRONG
    assert outcome.reason.startswith("off by 10")


def test_what_raises_no_error_of_ours_makes_a_case_wrong(tmp_path):
    case = next(each for each in text_cases() if each.operator == "com.microsoft.Gelu")
    broken = Case(case.operator, "broken", case.suffix, case.model, {}, case.expected)
    assert outcome_of(broken, tmp_path).reason == "KeyError: 'x'"


def test_an_operator_is_listed_once_with_all_its_cases():
    case = next(each for each in text_cases() if each.operator == "com.microsoft.Gelu")
    ours = Outcome(case, True, True, Result.NATIVE)
    theirs = Outcome(case, True, False, Result.ONNXRUNTIME, "no kernel for this operator")
    (row,) = onnx_table([ours, theirs], {}).rows
    assert row == ("`com.microsoft.Gelu`", "2", "yes", "1", "1", "", "1: kernel", "")


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("'x': the runtime has no float64", "type"),
        ("step 'ABS_0' (Unary): no kernel runs it on these element types", "type"),
        ("'q': sequence type; only tensors can be planned", "sequence"),
        ("peephole weights (input P) are unsupported", "form"),
    ],
)
def test_a_reason_is_a_word_of_the_page(reason, word):
    assert word_for(reason) == word
    assert word in WORDS


def test_the_script_says_what_is_wrong(monkeypatch, capsys):
    case = next(each for each in text_cases() if each.operator == "com.microsoft.Gelu")
    broken = Case(case.operator, "broken", case.suffix, case.model, {}, case.expected)
    monkeypatch.setattr("bench.sweep.onnx_cases.onnx_cases", lambda: iter([broken]))
    monkeypatch.setattr("bench.sweep.onnx_cases.text_cases", lambda: iter(()))
    monkeypatch.setattr("bench.sweep.tflite_cases.tflite_cases", lambda: iter(()))
    assert run_contest("operator-table") == 1
    printed = capsys.readouterr().err
    assert "broken: KeyError: 'x'" in printed
    assert "Abs: there is no case of it" in printed
