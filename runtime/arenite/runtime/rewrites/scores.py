"""Recognise the scores of attention: what a softmax reads that is made of queries and keys."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from arenite.planner import Array, DType, Program, Step, TensorKind
from arenite.planner.sizes import same, same_lengths
from arenite.runtime.operators.elementwise import (
    Binary,
    BinaryFunction,
    Convert,
    Select,
    Unary,
    UnaryFunction,
)
from arenite.runtime.operators.linear import MatMul
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.operators.reduction import Reduce, ReduceFunction

_REPLACES = -1e8
"""A score that is replaced by at most this has the weight 0 beside one that is not."""


class Makers:
    """The steps that make and read the storages of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = {step.name: step for step in program.steps}
        self._makers: dict[str, Step] = {}
        written: Counter[str] = Counter()
        self.readers: dict[str, list[Step]] = {}
        for step in program.steps:
            for name in step.writes:
                root, _ = program.root(name)
                written[root] += 1
                if root == name:
                    self._makers[name] = step
            for name in step.reads:
                self.readers.setdefault(program.root(name)[0], []).append(step)
        self._written_once = {name for name, count in written.items() if count == 1}
        self._outputs = {program.root(name)[0] for name in program.output_tensors}

    def maker(self, name: str) -> Step | None:
        """Return the step that makes a whole storage, once; None for views of a part of one."""
        root, offset = self.program.root(name)
        size, whole = self.program.tensors[name].size, self.program.tensors[root].size
        if not same(offset, 0) or not same(size, whole) or root not in self._written_once:
            return None
        return self._makers.get(root)

    def is_private(self, name: str, besides: Container[str] = ()) -> bool:
        """Tell whether one step alone reads a storage, and the caller does not.

        Args:
            besides: Names of steps that may read it too.
        """
        root, _ = self.program.root(name)
        is_activation = self.program.tensors[root].kind is TensorKind.ACTIVATION
        readers = [each for each in self.readers.get(root, ()) if each.name not in besides]
        return is_activation and len(readers) == 1 and root not in self._outputs

    def array(self, name: str) -> Array | None:
        """Return the elements of a constant under the shape of the tensor, None of others."""
        tensor = self.program.tensors[name]
        root, offset = self.program.root(name)
        array = self.program.constants.get(root)
        if array is None or offset or array.size != tensor.num_elements:
            return None
        return array.reshape(tensor.shape)

    def scalar(self, name: str) -> float | None:
        """Return the only number of a constant of floats, None of others."""
        if self.program.tensors[name].num_elements != 1:
            return None
        array = self.array(name)
        return None if array is None or array.dtype.kind != "f" else float(array.reshape(-1)[0])

    def scaled(self, step: Step | None) -> tuple[str, float] | None:
        """Return what a step multiplies by a constant, and that; None for other steps."""
        if step is None or not isinstance(step.operator, Binary) or not is_open(step.operator):
            return None
        function = step.operator.function
        for position in (0, 1):
            factor = self.scalar(step.inputs[1 - position])
            source = step.inputs[position]
            shapes = [self.program.tensors[each].num_elements for each in (source, *step.outputs)]
            if factor is None or not same(*shapes):
                continue
            if function is BinaryFunction.MULTIPLY:
                return source, factor
            if function is BinaryFunction.DIVIDE and position == 0 and factor:
                return source, 1.0 / factor
        return None


def is_open(operator: Binary) -> bool:
    """Tell whether the results of an operator have no bounds."""
    return (operator.min, operator.max) == (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Scores that a condition replaces.

    Attributes:
        condition: The tensor that decides.
        where: Value of the condition where scores are replaced.
        score: What replaces them.
    """

    condition: str
    where: bool
    score: float


@dataclass(frozen=True, slots=True)
class Scores:
    """What is done to the products of queries and keys before their softmax.

    Attributes:
        product: The step that multiplies queries and keys.
        scale: Factor of the products.
        softcap: Bound of the scores before the addends; 0: none.
        addends: Tensors that are added, and conditions that hide keys.
        shape: Of the scores where these broadcast to them.
    """

    product: Step
    scale: float = 1.0
    softcap: float = 0.0
    addends: tuple[str | Hidden, ...] = ()
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mixing:
    """A product of weights and values.

    Attributes:
        step: The step that makes it.
        scores: Of which the weights are the softmax.
    """

    step: Step
    scores: Scores


class ScoreFinder:
    """Finds the scores of attention in a program."""

    def __init__(self, makers: Makers) -> None:
        self._makers = makers
        self._tensors = makers.program.tensors

    def mixing(self, step: Step) -> Mixing | None:
        """Return a step as attention, None if it is something else."""
        if not isinstance(step.operator, MatMul) or step.operator.transpose_a:
            return None
        weights, guard = self._without_guard(step.inputs[0])
        softmax = self._makers.maker(weights)
        if softmax is None or not isinstance(softmax.operator, Softmax):
            return None
        if softmax.operator.logarithm or not self._makers.is_private(weights, guard):
            return None
        names = (*step.inputs, *step.outputs, softmax.inputs[0])
        if any(self._tensors[name].dtype is not DType.FLOAT32 for name in names):
            return None
        of_softmax = self._tensors[softmax.outputs[0]].shape
        if not of_softmax or not same(of_softmax[-1], self._tensors[weights].shape[-1]):
            return None
        scores = self._scores(softmax.inputs[0], guard)
        if scores is None:
            return None
        beta = softmax.operator.beta
        if beta != 1.0 and (scores.addends or scores.softcap):
            return None
        return Mixing(step, replace(scores, scale=scores.scale * beta))

    def _without_guard(self, name: str) -> tuple[str, Container[str]]:
        """Return the weights of which those of queries that see no key become zeros.

        PyTorch guards a softmax so: these are not numbers, or all their scores are minus infinity.
        The operator has the zeros by itself.

        Returns:
            The tensor and the names of the steps of the guard, which read it or the scores; the
            tensor alone if there is no guard.
        """
        guard = self._makers.maker(name)
        if guard is None or not isinstance(guard.operator, Select):
            return name, ()
        condition, zeros, weights = guard.inputs
        shape, shape_of_all = (self._tensors[each].shape for each in (weights, condition))
        softmax, array = self._makers.maker(weights), self._makers.array(zeros)
        if softmax is None or array is None or array.any() or not self._makers.is_private(name):
            return name, ()
        if not same_lengths(self._tensors[name].shape, shape):
            return name, ()
        steps = [guard.name]
        tested: Step | None = None
        while self._makers.is_private(condition):
            tested = self._makers.maker(condition)
            if tested is None:
                return name, ()
            steps.append(tested.name)
            if not isinstance(tested.operator, Convert) and not self._is_of_all(tested):
                break
            condition = tested.inputs[0]
        if tested is None:
            return name, ()
        is_nan = (
            isinstance(tested.operator, Unary)
            and tested.operator.function is UnaryFunction.IS_NAN
            and tested.inputs[0] == weights
            and len(steps) == len({guard.name, tested.name})
        )
        is_hidden = (
            isinstance(tested.operator, Binary)
            and tested.operator.function is BinaryFunction.EQUAL
            and tested.inputs[0] == softmax.inputs[0]
            and self._makers.scalar(tested.inputs[1]) == -np.inf
            and same_lengths(shape_of_all, (*shape[:-1], 1))
            and any(self._is_of_all(self._makers.steps[each]) for each in steps)
        )
        # The step that multiplies the weights reads the guard, and only it.
        return (weights, frozenset(steps[1:])) if is_nan or is_hidden else (name, ())

    def _is_of_all(self, step: Step) -> bool:
        """Tell whether a step is true where all conditions along the last axis are."""
        if not isinstance(step.operator, Reduce):
            return False
        rank = len(self._tensors[step.inputs[0]].shape)
        return step.operator.function is ReduceFunction.MINIMUM and step.operator.axes == (
            rank - 1,
        )

    def _scores(self, name: str, besides: Container[str] = ()) -> Scores | None:
        maker = self._makers.maker(name)
        if maker is None or not self._makers.is_private(name, besides):
            return None
        if isinstance(maker.operator, MatMul):
            return None if maker.operator.transpose_a else Scores(maker)
        scaled = self._makers.scaled(maker)
        if scaled is not None:
            return self._scaled(*scaled)
        if isinstance(maker.operator, Binary) and is_open(maker.operator):
            return self._with_addend(maker, maker.operator.function)
        if isinstance(maker.operator, Select):
            return self._with_hidden(maker)
        return None

    def _scaled(self, source: str, factor: float) -> Scores | None:
        maker = self._makers.maker(source)
        is_bound = (
            maker is not None
            and isinstance(maker.operator, Unary)
            and maker.operator.function is UnaryFunction.HYPERBOLIC_TANGENT
            and self._makers.is_private(source)
        )
        scores = self._scores(maker.inputs[0] if maker is not None and is_bound else source)
        if scores is None or scores.addends or scores.softcap:
            return None
        if is_bound:
            return replace(scores, scale=scores.scale * factor, softcap=factor)
        return replace(scores, scale=scores.scale * factor)

    def _with_addend(self, step: Step, function: BinaryFunction) -> Scores | None:
        if function is not BinaryFunction.ADD:
            return None
        for position in (0, 1):
            scores = self._below(step, position)
            if scores is not None:
                return self._added(scores, step, step.inputs[1 - position])
        return None

    def _with_hidden(self, step: Step) -> Scores | None:
        condition = step.inputs[0]
        for position in (1, 2):
            score = self._makers.scalar(step.inputs[3 - position])
            if score is None or not score <= _REPLACES:
                continue
            scores = self._below(step, position)
            if scores is not None:
                return self._added(scores, step, Hidden(condition, position == 2, score))
        return None

    def _below(self, step: Step, position: int) -> Scores | None:
        """Return the scores that a step reads at a position, if it makes as many."""
        source = step.inputs[position]
        counts = [self._tensors[name].num_elements for name in (source, step.outputs[0])]
        return self._scores(source) if same(*counts) else None

    def _added(self, scores: Scores, step: Step, addend: str | Hidden) -> Scores | None:
        shape = self._tensors[step.outputs[0]].shape
        if scores.shape and scores.shape != shape:
            return None
        return replace(scores, addends=(*scores.addends, addend), shape=shape)
