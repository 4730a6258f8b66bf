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
             r"conversion from|these element types|differ in type|"
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

Which operators of ONNX and TFLite the native runtime runs. A row lists the operators that share
its cells. `{command}` writes this page:
it imports, plans, builds and runs models of one operator each and compares every output with the
reference's ({versions}).

- **imported**, **planned**: the model is read, and planned as written (`--target generic`).
  Unknown operators are too, without sharing storage.
- **native**: our kernels run it. **before the run**: its result is known when the model is
  read, or it only changes a shape.
- **ONNX Runtime**: runs it as a step of our program, in our arena. TFLite has no such fallback;
  `--target litert` plans for LiteRT.
- **refused**: neither runs it; `plan` plans the graph as written, `build` says why and writes no
  file.

| reason | why the operator is not native |
| --- | --- |
{words}
"""
_ONNX = """
## ONNX

Single-node backend tests of the onnx package, with all inputs open and with all but the first
constant, and a few of our own.
"""
_MICROSOFT = """
## ONNX Runtime's own

The domain `com.microsoft`, a case each. Other operators are imported where ONNX Runtime can tell
their types, and it runs them.
"""
_TFLITE = """
## TFLite

The schema's operators and some custom ones, tried on float32, int8, uint8, int16, int32 and int64
where LiteRT runs them; no type is named where it runs none. {with_others} in *native*: no case of
its own.

Also native, without a row because LiteRT lacks them: `Convolution2DTransposeBias` and
`Landmarks2TransformMatrix` of MediaPipe, `SignalWindow` of TensorFlow Lite Micro.
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
        """Return it as Markdown, rows that differ in the operator alone as one."""
        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for operator, *cells in self.rows:
            alike[tuple(cells)].append(operator)
        rows = ((", ".join(operators), *cells) for cells, operators in alike.items())
        lines = [self.head, tuple("---" for _ in self.head), *rows]
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
    words = "\n".join(f"| *{word}* | {meaning} |" for word, meaning in WORDS.items())
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
        elif line.startswith("| ") and found:
            cells = [each.strip() for each in line[1:-1].split("|")]
            if cells[0] == "operator":
                head = cells
            elif cells[0] != "---":
                for operator in cells[0].split(", "):
                    named = [operator, *cells[1:]]
                    rows[operator.strip("`")] = dict(zip(head, named, strict=True))
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
