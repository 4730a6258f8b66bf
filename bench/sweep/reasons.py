"""Why an operator is not run by us, or not at all, in a word."""

import re

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
