"""The page of operators: the results of the cases, a row for each operator."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import arenite.runtime.lowering.tflite.model  # noqa: F401  # so that its translators are listed
from arenite.runtime.lowering.tflite.translation import TRANSLATORS
from bench.sweep.onnx_cases import onnx_operators
from bench.sweep.outcome import Outcome, Result

WORDS: dict[str, str] = {
    "kernel": "no kernel for this operator",
    "constant": "an input would have to be a constant",
    "type": "elements of this type",
    "string": "strings have no fixed size",
    "sequence": "a sequence or an optional value, not a tensor",
    "size": "the size of a result is known in the run alone",
    "subgraph": "it has subgraphs",
    "outputs": "its outputs are of different types",
    "training": "training mode is unsupported",
    "version": "the version of the operator set: before 7, or newer than ONNX Runtime's",
    "runtime": "ONNX Runtime has no kernel for it either",
    "form": "a form of the operator that our kernel does not have",
}
"""What each word means, in the order of the page."""

_PATTERNS = (
    ("training", r"training[ _]mode"),
    ("string", r"strings? "),
    ("sequence", r"sequence type|optional type"),
    ("version", r"operator set \d|[Oo]pset \d|core/graph/model(_load_utils)?\."),
    ("subgraph", r"subgraphs|control flow"),
    ("outputs", r"outputs are of different types"),
    ("kernel", r"no kernel for this operator"),
    ("constant", r"is not constant"),
    ("size", r"(not |un)known before the run"),
    ("type", r"the runtime has no|unsupported element type|element type \w+ is unsupported|"
             r"conversion from|it computes in|operands of these types|differ in type|"
             r"multiplies integers|CAST of a quantised"),
    ("runtime", r"ONNX Runtime|onnxruntime"),
)  # fmt: skip


def word_for(reason: str) -> str:
    """Return the word for a reason that a message gives."""
    return next((word for word, pattern in _PATTERNS if re.search(pattern, reason)), "form")


ONNX_HEAD = ("operator", "since", "cases", "imported", "planned", "native", "before the run",
             "ONNX Runtime", "refused")  # fmt: skip
TFLITE_HEAD = ("operator", "imported", "planned", "native", "refused")
WITH_OTHERS = "beside others"

COMMAND = "python -m bench run operator-table --write docs/operators.md"

_INTRODUCTION = """\
# Operators

What becomes of each operator of ONNX and TFLite. Nobody wrote this page:
`{command}` puts models of one operator each
through import, planning, `build` and a run, compares every output with the reference's, and
counts. It was made with {versions}.

- **imported**: the importer reads the model; **planned**: the graph as written is planned
  (`--target generic`). Operators that are unknown are imported and planned too, as operators that
  share nothing.
- **native**: our own kernels run it; **before the run**: its result is known when the model is
  read, or it only gives a tensor another shape, so nothing runs.
- **ONNX Runtime**: it runs the operator as a step of our program, in our arena. For TFLite there
  is no such fallback; `--target litert` plans what LiteRT runs.
- **refused**: neither does; `plan` then plans the graph as written, and `build` says why, before a
  file exists.

Why an operator is not native, in a word:

{words}
"""
_ONNX = """
## ONNX

The cases are those of the onnx package's backend tests with a single node, each as it comes, all
its inputs open, and again with all inputs but the first as constants, as deployed models have
them; and a few of our own.
"""
_MICROSOFT = """
## ONNX Runtime's own

Operators of the domain `com.microsoft`, a case each. Others of that domain are imported where ONNX
Runtime can tell their types, and are run by it.
"""
_TFLITE = """
## TFLite

The schema's operators, and the custom ones of which there are cases. Each is tried on float32,
int8, uint8, int16, int32 and int64, as far as LiteRT runs it on them; where it runs none, a model
of it is imported and planned, and no type is named. What runs natively {with_others} has no case
of its own.
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Attributes:
        head: Of its columns.
        rows: A text for each column.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def onnx_table(outcomes: Iterable[Outcome], since: Mapping[str, int]) -> Table:
    """Return the rows of ONNX's operators.

    Args:
        outcomes: Of their cases.
        since: For each operator, the version of the operator set that changed it last; empty
            for a table without that column.
    """
    rows = []
    for operator, found in _by_operator(outcomes).items():
        cells = [
            _share(sum(each.imported for each in found), len(found)),
            _share(sum(each.planned for each in found), len(found)),
            _count(found, Result.NATIVE),
            _count(found, Result.FOLDED),
            _count(found, Result.ONNXRUNTIME),
            _count(found, Result.REFUSED),
        ]
        versions = [str(since[operator])] if since else []
        rows.append((f"`{operator}`", *versions, str(len(found)), *cells))
    head = ONNX_HEAD if since else tuple(each for each in ONNX_HEAD if each != "since")
    return Table(head, tuple(rows))


def tflite_table(outcomes: Iterable[Outcome]) -> Table:
    """Return the rows of TFLite's operators."""
    rows = []
    for operator, found in _by_operator(outcomes).items():
        native = [each for each in found if each.result in (Result.NATIVE, Result.FOLDED)]
        types = ", ".join(", ".join(each.case.types) or "yes" for each in native)
        if not native and TRANSLATORS.find(operator) is not None:
            types = WITH_OTHERS
        refused: dict[str, list[str]] = defaultdict(list)
        for each in found:
            if each.result is Result.REFUSED and types != WITH_OTHERS:
                refused[word_for(each.reason)] += each.case.types
        reasons = "; ".join(
            f"{', '.join(each)}: {word}" if each else word for word, each in refused.items()
        )
        rows.append((
            f"`{operator}`", _all(each.imported for each in found),
            _all(each.planned for each in found), types, reasons,
        ))  # fmt: skip
    return Table(TFLITE_HEAD, tuple(rows))


def page(onnx: Table, microsoft: Table, tflite: Table, versions: Sequence[str]) -> str:
    """Return the whole page."""
    words = "\n".join(f"- *{word}*: {meaning}." for word, meaning in WORDS.items())
    introduction = _INTRODUCTION.format(command=COMMAND, versions=", ".join(versions), words=words)
    parts = (
        introduction, _ONNX, "\n", onnx.markdown(), _MICROSOFT, "\n", microsoft.markdown(),
        _TFLITE.format(with_others=f"*{WITH_OTHERS}*"), "\n", tflite.markdown(),
    )  # fmt: skip
    return "".join(parts)


def cells_of(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the cells of a page by section, operator and column."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    rows: dict[str, dict[str, str]] = {}
    head: list[str] = []
    for line in text.splitlines():
        if line.startswith("## "):
            rows = found.setdefault(line.removeprefix("## "), {})
        elif line.startswith("| "):
            cells = [each.strip() for each in line[1:-1].split("|")]
            if cells[0] == "operator":
                head = cells
            elif cells[0] != "---":
                rows[cells[0].strip("`")] = dict(zip(head, cells, strict=True))
    return found


def _by_operator(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        found[each.case.operator].append(each)
    return {operator: found[operator] for operator in sorted(found)}


def _count(outcomes: Sequence[Outcome], result: Result) -> str:
    """Return how many came to a result, with the words for why."""
    reasons = [each.reason for each in outcomes if each.result is result]
    words = sorted({word_for(reason) for reason in reasons if reason}, key=list(WORDS).index)
    if not reasons:
        return ""
    return f"{len(reasons)}: {', '.join(words)}" if words else str(len(reasons))


def _share(count: int, whole: int) -> str:
    return "yes" if count == whole else str(count) if count else "no"


def _all(values: Iterable[bool]) -> str:
    return "yes" if all(values) else "no"


PACKAGES = {"onnx": "onnx", "ONNX Runtime": "onnxruntime", "LiteRT": "ai-edge-litert"}


def versions() -> list[str]:
    """Return the packages that the page depends on, with their versions."""
    return [f"{name} {version(package)}" for name, package in PACKAGES.items()]


def written_page(outcomes: Sequence[Outcome]) -> str:
    """Return the page of these outcomes."""
    formats: dict[str, list[Outcome]] = {"onnx": [], "microsoft": [], "tflite": []}
    for each in outcomes:
        is_tflite = each.case.suffix == ".tflite"
        is_own = each.case.operator.startswith("com.microsoft.")
        formats["tflite" if is_tflite else "microsoft" if is_own else "onnx"].append(each)
    return page(
        onnx_table(formats["onnx"], onnx_operators()),
        onnx_table(formats["microsoft"], {}),
        tflite_table(formats["tflite"]),
        versions(),
    )
