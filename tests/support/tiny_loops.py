"""Small TFLite models with loops whose end depends on data, and inputs for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tflite import BuiltinOperator as Op
from tflite import TensorType

from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

_TYPES = {
    "float32": TensorType.FLOAT32, "int32": TensorType.INT32, "int8": TensorType.INT8,
    "uint8": TensorType.UINT8, "bool": TensorType.BOOL,
}  # fmt: skip
_OPTIONS = {
    Op.ADD: ("AddOptions", {"FusedActivationFunction": 0}),
    Op.SUB: ("SubOptions", {"FusedActivationFunction": 0}),
    Op.MUL: ("MulOptions", {"FusedActivationFunction": 0}),
    Op.FULLY_CONNECTED: ("FullyConnectedOptions", {"FusedActivationFunction": 0}),
    Op.CONV_2D: (
        "Conv2DOptions",
        {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1},
    ),
}


@dataclass(frozen=True)
class Kind:
    """A type of element, a shape, and how integers stand for numbers."""

    dtype: str = "float32"
    shape: Sequence[int] = (1,)
    scale: float = 0.0
    zero_point: int = 0


FLOAT, INT, BOOL = Kind(), Kind("int32"), Kind("bool")


class Graph:
    """A subgraph, written one operator after the other; tensors are indexes."""

    def __init__(self, name: str, **inputs: Kind) -> None:
        self.name = name
        self.tensors: list[TinyTensor] = []
        self.kinds: list[Kind] = []
        self.operators: list[TinyOperator] = []
        self.inputs = [self._add(kind, each) for each, kind in inputs.items()]

    def constant(self, *values: float, kind: Kind = FLOAT) -> int:
        data = np.array(values, kind.dtype).tobytes()
        return self._add(kind, f"c{len(self.tensors)}", data)

    def op(self, code: int, *inputs: int, kind: Kind | None = None) -> int:
        """Add an operator; by default its result is as its first input."""
        made = self._add(kind or self.kinds[inputs[0]], f"t{len(self.tensors)}")
        self.operators.append(TinyOperator(code, inputs, [made], options=_OPTIONS.get(code)))
        return made

    def loop(self, condition: int, body: int, *inputs: int, code: int = Op.WHILE) -> list[int]:
        made = [self._add(self.kinds[each], f"t{len(self.tensors)}") for each in inputs]
        self.operators.append(TinyOperator(code, inputs, made, (condition, body)))
        return made

    def choice(self, then: int, other: int, verdict: int, *inputs: int) -> list[int]:
        """Add an IF, whose results are as what it reads."""
        made = [self._add(self.kinds[each], f"t{len(self.tensors)}") for each in inputs]
        self.operators.append(TinyOperator(Op.IF, [verdict, *inputs], made, (then, other)))
        return made

    def made(self, *outputs: int) -> TinySubgraph:
        return TinySubgraph(self.tensors, self.operators, self.inputs, outputs, self.name)

    def _add(self, kind: Kind, name: str, data: bytes = b"") -> int:
        self.kinds.append(kind)
        scales = (kind.scale,) if kind.scale else ()
        self.tensors.append(
            TinyTensor(
                name, kind.shape, _TYPES[kind.dtype], data, scales=scales,
                zero_point=kind.zero_point,
            )
        )  # fmt: skip
        return len(self.tensors) - 1


@dataclass(frozen=True)
class Looping:
    """A model, and inputs of some of its runs."""

    model: bytes
    runs: Sequence[Sequence[np.ndarray]]

    @property
    def feeds(self) -> list[Mapping[str, np.ndarray]]:
        """The inputs by name."""
        names = [name.decode() for name in _input_names(self.model)]
        return [dict(zip(names, each, strict=True)) for each in self.runs]


def _input_names(model: bytes) -> list[bytes]:
    import tflite

    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    return [graph.Tensors(graph.Inputs(n)).Name() for n in range(graph.InputsLength())]


def below(limit: float, position: int, **carried: Kind) -> TinySubgraph:
    """Whether a carried value is less than a number."""
    graph = Graph("below", **carried)
    kind = graph.kinds[position]
    verdict = graph.op(Op.LESS, position, graph.constant(limit, kind=kind), kind=BOOL)
    return graph.made(verdict)


def counting(dtype: str = "float32", rounds: int = 10, code: int = Op.WHILE) -> Looping:
    """`x` added to itself for each round."""
    x = Kind(dtype, (4,))
    main = Graph("main", x=x)
    zero = main.constant(0, kind=INT)
    total = main.constant(0, 0, 0, 0, kind=x)
    (_, total, _) = main.loop(1, 2, zero, total, 0, code=code)
    body = Graph("body", n=INT, total=x, x=x)
    more = body.op(Op.ADD, 0, body.constant(1, kind=INT))
    model = tiny_tflite(
        main.made(total),
        below(rounds, 0, n=INT, total=x, x=x),
        body.made(more, body.op(Op.ADD, 1, 2), 2),
    )
    return Looping(model, [[np.array([1, -2, 3, 7], dtype)], [np.array([5, 0, 9, -7], dtype)]])


def halving() -> Looping:
    """Halved until it is not above a threshold: at once, if it is not at first."""
    main = Graph("main", v=FLOAT)
    (last,) = main.loop(1, 2, 0)
    condition = Graph("condition", v=FLOAT)
    verdict = condition.op(Op.GREATER, 0, condition.constant(0.3), kind=BOOL)
    body = Graph("body", v=FLOAT)
    model = tiny_tflite(
        main.made(last), condition.made(verdict), body.made(body.op(Op.MUL, 0, body.constant(0.5)))
    )
    return Looping(model, [[np.array([v], np.float32)] for v in (100, 0.01, 0.3, 1e30)])


def swapping(*, computes: bool = True) -> Looping:
    """Two values change places, a third stays, `n` times.

    Args:
        computes: Whether an operator makes each of the two; LiteRT copies outputs that are inputs
            of the body one after another, and loses one.
    """
    carried = {"a": Kind(shape=(3,)), "b": Kind(shape=(3,)), "c": Kind(shape=(2,)), "n": INT}
    main = Graph("main", **carried)
    made = main.loop(1, 2, *main.inputs)
    condition = Graph("condition", **carried)
    verdict = condition.op(Op.GREATER, 3, condition.constant(0, kind=INT), kind=BOOL)
    body = Graph("body", **carried)
    less = body.op(Op.SUB, 3, body.constant(1, kind=INT))
    first, second = (body.op(Op.NEG, 1), body.op(Op.NEG, 0)) if computes else (1, 0)
    model = tiny_tflite(
        main.made(*made[:3]), condition.made(verdict), body.made(first, second, 2, less)
    )
    values = [np.arange(n, dtype=np.float32) + n for n in (3, 3, 2)]
    values[1] *= 10
    return Looping(model, [[*values, np.array([n], np.int32)] for n in (0, 1, 2, 5)])


def nested() -> Looping:
    """Round i of the outer loop adds `x` in i rounds of the inner one."""
    x = Kind(shape=(3,))
    outer, inner = {"i": INT, "s": x, "x": x}, {"j": INT, "i": INT, "s": x, "x": x}
    main = Graph("main", x=x)
    zero, none = main.constant(0, kind=INT), main.constant(0, 0, 0, kind=x)
    made = main.loop(1, 2, zero, none, 0)
    body = Graph("outer", **outer)
    more = body.op(Op.ADD, 0, body.constant(1, kind=INT))
    result = body.loop(3, 4, body.constant(0, kind=INT), more, 1, 2)
    fewer = Graph("fewer", **inner)
    verdict = fewer.op(Op.LESS, 0, 1, kind=BOOL)
    add = Graph("inner", **inner)
    next_j = add.op(Op.ADD, 0, add.constant(1, kind=INT))
    model = tiny_tflite(
        main.made(made[1]),
        below(4, 0, **outer),
        body.made(more, result[2], 2),
        fewer.made(verdict),
        add.made(next_j, 1, add.op(Op.ADD, 2, 3), 3),
    )
    return Looping(model, [[np.array([1, 2.5, -3], np.float32)]])


def nested_deep(depth: int) -> bytes:
    """So many loops, one in another, of which the innermost halves until below a threshold."""
    graphs = []
    for level in range(depth):
        condition, body = Graph("condition", v=FLOAT), Graph(f"body {level}", v=FLOAT)
        verdict = condition.op(Op.GREATER, 0, condition.constant(0.3), kind=BOOL)
        if level + 1 < depth:
            (last,) = body.loop(2 * level + 3, 2 * level + 4, 0)
        else:
            last = body.op(Op.MUL, 0, body.constant(0.5))
        graphs += [condition.made(verdict), body.made(last)]
    main = Graph("main", v=FLOAT)
    (last,) = main.loop(1, 2, 0)
    return tiny_tflite(main.made(last), *graphs)


def choosing() -> Looping:
    """What is below nought rises by 2, what is not falls by 3, for seven rounds."""
    carried = {"n": INT, "s": FLOAT}
    main = Graph("main", s=FLOAT)
    made = main.loop(1, 2, main.constant(0, kind=INT), 0)
    body = Graph("body", **carried)
    verdict = body.op(Op.LESS, 1, body.constant(0), kind=BOOL)
    (chosen,) = body.choice(3, 4, verdict, 1)
    more = body.op(Op.ADD, 0, body.constant(1, kind=INT))
    rises, falls = Graph("rises", s=FLOAT), Graph("falls", s=FLOAT)
    model = tiny_tflite(
        main.made(made[1]),
        below(7, 0, **carried),
        body.made(more, chosen),
        rises.made(rises.op(Op.ADD, 0, rises.constant(2))),
        falls.made(falls.op(Op.SUB, 0, falls.constant(3))),
    )
    return Looping(model, [[np.array([v], np.float32)] for v in (4, -9, 0)])


def guarded() -> Looping:
    """Loops in both branches of an IF, that would never end on the values of the other.

    In the branch of positive numbers is another IF, with a loop in the branch of those below 1.
    """
    main = Graph("main", s=FLOAT)
    verdict = main.op(Op.GREATER, 0, main.constant(0), kind=BOOL)
    (last,) = main.choice(1, 2, verdict, 0)
    above, under = Graph("above", s=FLOAT), Graph("under", s=FLOAT)
    small = above.op(Op.LESS, 0, above.constant(1), kind=BOOL)
    (chosen,) = above.choice(3, 4, small, 0)
    (ended,) = under.loop(5, 6, 0)
    grows, shrinks = Graph("grows", s=FLOAT), Graph("shrinks", s=FLOAT)
    is_low, is_below = Graph("is_low", s=FLOAT), Graph("is_below", s=FLOAT)
    doubled, risen = Graph("doubled", s=FLOAT), Graph("risen", s=FLOAT)
    (grown,) = grows.loop(7, 8, 0)
    model = tiny_tflite(
        main.made(last),
        above.made(above.op(Op.NEG, chosen)),
        under.made(ended),
        grows.made(grown),
        shrinks.made(shrinks.op(Op.MUL, 0, shrinks.constant(0.5))),
        is_below.made(is_below.op(Op.LESS, 0, is_below.constant(0), kind=BOOL)),
        risen.made(risen.op(Op.ADD, 0, risen.constant(0.25))),
        is_low.made(is_low.op(Op.LESS, 0, is_low.constant(4), kind=BOOL)),
        doubled.made(doubled.op(Op.ADD, 0, 0)),
    )
    return Looping(model, [[np.array([v], np.float32)] for v in (-2.1, 0, 0.75, 3)])


def flagged() -> Looping:
    """A carried boolean is the condition itself, and the body's only other value its result."""
    carried = {"again": BOOL, "v": FLOAT}
    main = Graph("main", again=BOOL, v=FLOAT)
    made = main.loop(1, 2, 0, 1)
    body = Graph("body", **carried)
    less = body.op(Op.SUB, 1, body.constant(1))
    verdict = body.op(Op.GREATER, less, body.constant(0), kind=BOOL)
    model = tiny_tflite(
        main.made(made[1]), Graph("condition", **carried).made(0), body.made(verdict, less)
    )
    return Looping(model, [[np.array([v]), np.array([5.5], np.float32)] for v in (True, False)])


def quantised(*, is_unrolled: bool = False) -> Looping:
    """A layer of bytes after another, four times; its weights are those of a layer before it."""
    x = Kind("int8", (1, 8), 0.05, 3)
    weights = np.random.default_rng(0).integers(-90, 90, (8, 8)).ravel().tolist()
    matrix = Kind("int8", (8, 8), 0.01)
    carried = {"n": INT, "x": x}

    def layer(graph: Graph, source: int) -> int:
        bias = graph.constant(*range(-400, 400, 100), kind=Kind("int32", (8,), 0.0005))
        return graph.op(Op.FULLY_CONNECTED, source, graph.constant(*weights, kind=matrix), bias)

    main = Graph("main", x=x)
    last = layer(main, 0)
    graphs = []
    if is_unrolled:
        for _ in range(4):
            last = layer(main, last)
    else:
        (_, last) = main.loop(1, 2, main.constant(0, kind=INT), last)
        body = Graph("body", **carried)
        more = body.op(Op.ADD, 0, body.constant(1, kind=INT))
        graphs = [below(4, 0, **carried), body.made(more, layer(body, 1))]
    random = np.random.default_rng(1)
    runs = [[random.integers(-128, 128, (1, 8)).astype(np.int8)] for _ in range(4)]
    return Looping(tiny_tflite(main.made(last), *graphs), runs)


def beside() -> Looping:
    """A loop beside a branch of convolutions, which bands of rows may run."""
    image = Kind(shape=(1, 16, 16, 3))
    wide = Kind(shape=(1, 16, 16, 8))
    carried = {"n": INT, "v": image}
    random = np.random.default_rng(0)

    def convolved(graph: Graph, source: int, channels: int, kind: Kind) -> int:
        shape = (kind.shape[3], 3, 3, channels)
        values = random.standard_normal(shape).astype(np.float32).ravel().tolist()
        weights = graph.constant(*values, kind=Kind(shape=shape))
        bias = graph.constant(*[0.1] * kind.shape[3], kind=Kind(shape=(kind.shape[3],)))
        return graph.op(Op.CONV_2D, source, weights, bias, kind=kind)

    main = Graph("main", x=image)
    first = convolved(main, 0, 3, wide)
    second = convolved(main, first, 8, wide)
    third = convolved(main, second, 8, image)
    made = main.loop(1, 2, main.constant(0, kind=INT), 0)
    body = Graph("body", **carried)
    more = body.op(Op.ADD, 0, body.constant(1, kind=INT))
    halved = body.op(Op.MUL, convolved(body, 1, 3, image), body.constant(0.1))
    model = tiny_tflite(
        main.made(main.op(Op.ADD, made[1], third)), below(3, 0, **carried), body.made(more, halved)
    )
    return Looping(model, [[random.standard_normal((1, 16, 16, 3)).astype(np.float32)]])


def endless() -> bytes:
    """Never ends where its input is above nought."""
    main = Graph("main", v=FLOAT)
    (last,) = main.loop(1, 2, 0)
    condition, body = Graph("condition", v=FLOAT), Graph("body", v=FLOAT)
    verdict = condition.op(Op.GREATER, 0, condition.constant(0), kind=BOOL)
    return tiny_tflite(
        main.made(last), condition.made(verdict), body.made(body.op(Op.ADD, 0, body.constant(1)))
    )


LOOPS = {
    "counts, floats": counting(),
    "counts, integers": counting("int32"),
    "ends by data": halving(),
    "values change places": swapping(),
    "in another": nested(),
    "a choice in the body": choosing(),
    "in branches": guarded(),
    "a boolean is carried": flagged(),
    "layers of bytes": quantised(),
    "beside convolutions": beside(),
}
