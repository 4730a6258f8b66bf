"""Every operator of ONNX and TFLite: imported, planned, run natively, by ONNX Runtime, or refused.

    python bench/operator_table.py [--write PAGE] [--json]

Each case is a model of one operator that goes through import, planning, assembly and a run, and
whose outputs are compared: with what the onnx package's backend tests expect, with ONNX Runtime,
or with LiteRT. `--write docs/operators.md` writes the page again; it takes two minutes.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from harness import bench, emit, note, parser, table
from sweep.case import Case
from sweep.onnx_cases import onnx_cases, onnx_operators
from sweep.onnx_texts import text_cases
from sweep.outcome import Outcome, Result, outcome_of
from sweep.page import COMMAND, onnx_table, page, tflite_table
from sweep.tflite_cases import tflite_cases

__all__ = ["COMMAND", "main", "outcomes_of", "versions", "written_page"]

PACKAGES = {"onnx": "onnx", "ONNX Runtime": "onnxruntime", "LiteRT": "ai-edge-litert"}


def outcomes_of(cases: Iterable[Case]) -> list[Outcome]:
    """Put every case through."""
    with tempfile.TemporaryDirectory() as folder:
        return [outcome_of(case, Path(folder)) for case in cases]


def versions() -> list[str]:
    """Return the packages that the page depends on, with their versions."""
    return [f"{name} {version(package)}" for name, package in PACKAGES.items()]


def written_page(outcomes: Sequence[Outcome]) -> str:
    """Return the page of these outcomes."""
    since = onnx_operators()
    formats: dict[str, list[Outcome]] = {"onnx": [], "microsoft": [], "tflite": []}
    for each in outcomes:
        is_tflite = each.case.suffix == ".tflite"
        is_own = each.case.operator.startswith("com.microsoft.")
        formats["tflite" if is_tflite else "microsoft" if is_own else "onnx"].append(each)
    return page(
        onnx_table(formats["onnx"], since),
        onnx_table(formats["microsoft"], {}),
        tflite_table(formats["tflite"]),
        versions(),
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Put all cases through and return 1 if an output is wrong or an operator has no case."""
    options = parser(__doc__)
    options.add_argument("--write", type=Path, metavar="PAGE", help="write the page here")
    parsed = options.parse_args(arguments)
    outcomes = outcomes_of((*onnx_cases(), *text_cases(), *tflite_cases()))
    without = sorted(set(onnx_operators()) - {each.case.operator for each in outcomes})
    wrong = [each for each in outcomes if each.result is Result.WRONG]
    for each in wrong:
        note(f"{each.case.name}: {each.reason}")
    for operator in without:
        note(f"{operator}: there is no case of it")
    if parsed.write is not None:
        parsed.write.write_text(written_page(outcomes))
    counts = Counter(each.result for each in outcomes)
    rows = [{"result": str(result), "cases": counts[result]} for result in Result]
    shown = ((str(each["result"]), f"{each['cases']:,}") for each in rows)
    emit(parsed, rows, table("Cases of one operator", ("result", "cases"), shown))
    return int(bool(wrong or without))


if __name__ == "__main__":
    sys.exit(main())
