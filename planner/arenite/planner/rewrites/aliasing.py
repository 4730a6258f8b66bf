"""Let a tensor lie in the storage of another: views, and results written in place.

Views are always right: the bytes are the same. A result may overwrite an operand when
the operator reads each element before it writes that element, nobody reads the operand's
storage afterwards, and it belongs neither to the caller nor to the next run.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum

from arenite.planner.graph import Alias, Graph, Operator, TensorKind
from arenite.planner.liveness import Boundary


class AliasKind(StrEnum):
    """What may share storage."""

    VIEWS = "views"
    """Reshape and its like: other shape, same bytes."""
    IN_PLACE = "in-place"
    """Element-wise results over a dying operand of the same type and shape."""


VIEWS = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}
    | {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST"}
)
"""Operators whose first output holds the bytes of the first input."""

ELEMENT_WISE = frozenset(
    {"Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization",
     "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu",
     "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul",
     "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign",
     "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh",
     "ThresholdedRelu", "Xor"}
    | {"ABS", "ADD", "CEIL", "COS", "DIV", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH",
       "LEAKY_RELU", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "MAXIMUM",
       "MINIMUM", "MUL", "NEG", "POW", "PRELU", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1",
       "ROUND", "RSQRT", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH"}
)  # fmt: skip
"""Operators that compute each element of the first output from the same element, or its
broadcast, of each input."""


def alias(
    graph: Graph, kinds: Collection[AliasKind], boundary: Boundary = Boundary.INCLUDE
) -> Graph:
    """Return `graph` with the storage shared that `kinds` allow, in its present order.

    Args:
        graph: Its order decides which operand dies where, so reorder first.
        kinds: What may share storage.
        boundary: Where graph inputs and outputs are the caller's, they are neither
            overwritten nor laid over what is not.

    Cost: O(tensors + operator operands).
    """
    storages = _Storages(graph)
    if boundary is Boundary.EXCLUDE:
        storages.keep(graph.inputs)
    for step, operator in enumerate(graph.operators):
        if AliasKind.VIEWS in kinds and views(graph, operator):
            storages.put_into(operator.outputs[0], operator.inputs[0])
        if AliasKind.IN_PLACE in kinds:
            _alias_in_place(graph, storages, operator, step, boundary)
    tensors = {
        name: replace(tensor, alias=storages.aliases[name])
        for name, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


class _Storages:
    """Which tensors share a storage, and until when it is read."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = {name: tensor.alias for name, tensor in graph.tensors.items()}
        self._root = {name: graph.root(name)[0] for name in graph.tensors}
        self._last_read: dict[str, int] = {}
        self._kept: set[str] = set()
        self.keep(graph.outputs)
        self.keep(
            tensor.name
            for tensor in graph.tensors.values()
            if tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE)
        )
        for step, operator in enumerate(graph.operators):
            for name in operator.reads:
                self._last_read[self._root[name]] = step

    def keep(self, names: Iterable[str]) -> None:
        """Let nobody overwrite the storages of these tensors."""
        self._kept.update(self._root[name] for name in names)

    def owner(self, name: str) -> str:
        """Return the tensor in whose storage `name` lies."""
        while name != (root := self._root[name]):
            name = root
        return name

    def is_kept(self, name: str) -> bool:
        """Tell whether the caller or the next run needs the storage's bytes."""
        return self.owner(name) in self._kept

    def dies_at(self, name: str, step: int) -> bool:
        """Tell whether nobody reads the storage after `step`."""
        return self._last_read.get(self.owner(name), -1) <= step

    def put_into(self, name: str, target: str) -> None:
        """Let `name`, the owner of its storage, lie at the start of `target`."""
        owner = self.owner(target)
        self.aliases[name] = Alias(target)
        self._root[name] = owner
        self._last_read[owner] = max(self._last_read.get(owner, -1), self._last_read.get(name, -1))
        if name in self._kept:
            self._kept.add(owner)


def views(graph: Graph, operator: Operator) -> bool:
    """Tell whether the operator's first output may be a view of its first input."""
    operands = (*operator.inputs[:1], *operator.outputs[:1])
    if operator.op_type not in VIEWS or len(operands) < 2 or not all(operands):
        return False
    source, result = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    kinds = {source.kind, graph.tensors[graph.root(source.name)[0]].kind}
    # A constant has no storage to share; a state's bytes would change under the view.
    unfit = kinds & {TensorKind.CONSTANT, TensorKind.STATE}
    return not unfit and result.alias is None and source.size == result.size


def overwritable(graph: Graph, operator: Operator) -> tuple[str, ...]:
    """Return the operands whose place the first output may take if they die there."""
    if operator.op_type not in ELEMENT_WISE or not any(operator.outputs[:1]):
        return ()
    result = graph.tensors[operator.outputs[0]]
    if result.alias is not None or result.kind is TensorKind.STATE:
        return ()
    return tuple(
        name
        for name in operator.reads
        if graph.tensors[name].dtype.bits == result.dtype.bits
        and graph.tensors[name].shape == result.shape
    )


def _alias_in_place(
    graph: Graph, storages: _Storages, operator: Operator, step: int, boundary: Boundary
) -> None:
    for source in overwritable(graph, operator):
        result = operator.outputs[0]
        if boundary is Boundary.EXCLUDE and storages.is_kept(result):
            return
        if storages.is_kept(source) or not storages.dies_at(source, step):
            continue
        shares = [
            other
            for other in operator.reads
            if other != source and storages.owner(other) == storages.owner(source)
        ]
        if not shares:  # another part of the storage would be overwritten before it is read
            storages.put_into(result, source)
            return
