"""The cases of ONNX's own operators: those of the onnx package's backend tests.

The package's models take everything as inputs of the graph, weights and axes too. Deployed models
have constants there, so each case comes in that form as well.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from sweep.case import Array, Case, Reference

RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike"}
)  # fmt: skip
"""Whose outputs nobody can foretell, Dropout's in training."""


def onnx_operators() -> dict[str, int]:
    """Return every operator of ONNX's own domain, and the version that changed it last."""
    schemas = [each for each in onnx.defs.get_all_schemas() if not each.domain]
    return {each.name: each.since_version for each in sorted(schemas, key=lambda s: s.name)}


def onnx_cases() -> Iterator[Case]:
    """Yield the cases of ONNX's operators, both forms of each."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():  # the package computes infinities on purpose
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    for test in found:
        nodes = test.model.graph.node
        if len(nodes) == 1 and not nodes[0].domain and not test.name.endswith("_expanded"):
            yield from _forms(test)


def _forms(test: TestCase) -> Iterator[Case]:
    inputs, outputs = (list(map(_array, each)) for each in test.data_sets[0])
    yield _case(test, test.model, test.name, inputs, outputs)
    frozen = _with_constants(test.model, inputs)
    if frozen is not None:
        yield _case(test, frozen, f"{test.name}, constants", inputs[:1], outputs)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _case(test: TestCase, model: onnx.ModelProto, name: str, inputs: Any, outputs: Any) -> Case:
    kind = model.graph.node[0].op_type
    feeds: dict[str, Array] | None = None
    if all(isinstance(each, np.ndarray | np.generic) for each in inputs):
        names = [value.name for value in model.graph.input]
        feeds = {n: np.asarray(each) for n, each in zip(names, inputs, strict=True)}
    serialised = model.SerializeToString()
    references: tuple[Reference, ...] = (
        lambda: [np.asarray(each) for each in outputs],
        lambda: stock_outputs(serialised, feeds),
    )
    return Case(
        kind, name, ".onnx", serialised, feeds, () if kind in RANDOM else references,
        types_of(model), test.rtol, max(test.atol, 1e-5),
    )  # fmt: skip


def types_of(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the element types of a model's inputs, sorted."""
    return tuple(sorted({_label(value) for value in model.graph.input}))


def stock_outputs(model: bytes, feeds: dict[str, Array] | None) -> list[Array] | None:
    """Return what ONNX Runtime makes of a model's inputs, None if it does not run it.

    It is the second to ask: in a few cases it departs from the definition, and we with it.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options)
        made: list[Array] = session.run(None, feeds)
    except Exception:  # its errors have no common base, and none matters here
        return None
    return made


def _with_constants(model: onnx.ModelProto, inputs: Any) -> onnx.ModelProto | None:
    """Return a model whose inputs but the first are constants, None if there are no others."""
    arrays = [each for each in inputs[1:] if isinstance(each, np.ndarray | np.generic)]
    if not arrays or len(arrays) < len(inputs) - 1:
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value, array in zip(list(made.graph.input)[1:], arrays, strict=True):
        tensor = numpy_helper.from_array(np.asarray(array), value.name)
        if tensor.data_type != value.type.tensor_type.elem_type:
            return None  # numpy has no such type
        made.graph.initializer.append(tensor)
        made.graph.input.remove(value)
    return made


def _label(value: onnx.ValueInfoProto) -> str:
    if not value.type.HasField("tensor_type"):
        return str(value.type.WhichOneof("value")).removesuffix("_type")
    return str(onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type)).lower()
