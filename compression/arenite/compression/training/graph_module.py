"""A PyTorch module that runs the nodes of an ONNX graph; importing this imports PyTorch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import nn

from arenite.compression.training.onnx_operators import OPERATORS, UNSUPPORTED_ATTRIBUTES, Call


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph.

    Attributes:
        op_type: A key of `OPERATORS`.
        inputs: Names of values, empty where an optional one is left out.
        outputs: Names of values.
        attributes: By name.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class GraphModule(nn.Module):  # type: ignore[misc]  # PyTorch is not read by mypy
    """The nodes in order, over parameters, statistics and constants.

    Args:
        graph: Of the model, its nodes supported.
        opset: Version of the default domain.
        arrays: Initialisers by name.
        trained: Those that become parameters.
        statistics: Those updated without a gradient, such as running means.

    Attributes:
        entries: By initialiser, the entry of the module's state that it is.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        opset: int,
        arrays: Mapping[str, NDArray[Any]],
        trained: Sequence[str],
        statistics: Sequence[str],
    ) -> None:
        super().__init__()
        self.entries: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        for index, (name, array) in enumerate(arrays.items()):
            entry = f"{re.sub(r'[^0-9A-Za-z]+', '_', name).strip('_')}_{index}"
            tensor = torch.from_numpy(np.array(array))
            if name in trained:
                self.register_parameter(entry, nn.Parameter(tensor))
                self.entries[name] = entry
            else:
                is_statistic = name in statistics
                self.register_buffer(entry, tensor, persistent=is_statistic)
                (self.entries if is_statistic else self._constants)[name] = entry
        self._nodes = [_node(node) for node in graph.node]
        self._opset = opset
        self._inputs = [each.name for each in graph.input if each.name not in arrays]
        self._outputs = [each.name for each in graph.output]

    def forward(self, *inputs: torch.Tensor) -> "torch.Tensor | tuple[torch.Tensor, ...]":
        """Return the outputs of the graph, alone if there is one."""
        values: dict[str, torch.Tensor] = dict(zip(self._inputs, inputs, strict=True))
        for name, entry in (*self.entries.items(), *self._constants.items()):
            values[name] = getattr(self, entry)
        for node in self._nodes:
            call = Call(
                [values[name] if name else None for name in node.inputs],
                node.attributes,
                len(node.outputs),
                self._opset,
                self.training,
            )
            results = OPERATORS[node.op_type](call)
            if isinstance(results, torch.Tensor):
                results = (results,)
            values.update(zip(node.outputs, results, strict=False))
        outputs = tuple(values[name] for name in self._outputs)
        return outputs if len(outputs) > 1 else outputs[0]


def why_unsupported(graph: onnx.GraphProto) -> tuple[str, str] | None:
    """Return the first node that cannot be run, and why; None if there is none."""
    used = {name for node in graph.node for name in node.input}
    used |= {each.name for each in graph.output}
    for node in graph.node:
        label = node.name or node.op_type
        if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
            return label, f"the operator {node.op_type} cannot be trained"
        if any(name in used for name in node.output[1:]) and node.op_type != "Split":
            return label, f"a second output of {node.op_type} cannot be trained"
        for attribute in node.attribute:
            if attribute.name in UNSUPPORTED_ATTRIBUTES.get(node.op_type, ()):
                value = onnx.helper.get_attribute_value(attribute)
                if value not in (0, b"NOTSET") and not _is_ones(value):
                    return label, f"{node.op_type} with {attribute.name} cannot be trained"
    return None


def _is_ones(value: object) -> bool:
    return isinstance(value, list) and all(each == 1 for each in value)


def _node(node: onnx.NodeProto) -> Node:
    return Node(
        node.op_type,
        tuple(node.input),
        tuple(node.output),
        {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute},
    )
