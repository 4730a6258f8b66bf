"""Masks of attention: addends of the scores, and conditions that hide keys."""

import math
from collections.abc import Sequence

import numpy as np

from arenite.planner import Array, DType
from arenite.planner.sizes import depends, largest, same
from arenite.runtime.operators.elementwise import Binary, BinaryFunction, Select
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.drafting import ProgramDraft, Shape
from arenite.runtime.rewrites.scores import Hidden, Makers

HIDES = -1e4
"""An addend that is at most this hides a key: its weight is 0."""
_HIDDEN = -1e30
"""An addend that leaves nothing of a score, so that keys that are all hidden weigh the same."""


class Masks:
    """The masks of one attention.

    Attributes:
        is_causal: Whether one of them hides all keys behind a query, and no others.
    """

    def __init__(
        self,
        makers: Makers,
        batch: int,
        heads: int,
        num_queries: int,
        num_keys: int,
        scores: Shape,
    ) -> None:
        """Begin without any.

        Args:
            makers: The program.
            scores: Shape that masks broadcast to, as the model writes it.
        """
        self._makers = makers
        self._lengths = (batch, heads, num_queries, num_keys)
        self._scores = scores
        self._constants: list[tuple[Array, Shape]] = []
        self._hidden: list[tuple[Array, Shape, float]] = []
        self._made: list[tuple[str | Hidden, Shape]] = []
        self.is_causal = False

    def add(self, addend: str | Hidden) -> bool:
        """Add a mask; tell whether it has a form that the operator takes."""
        name = addend.condition if isinstance(addend, Hidden) else addend
        tensor = self._makers.program.tensors[name]
        wanted = DType.BOOL if isinstance(addend, Hidden) else DType.FLOAT32
        shape = self._four_axes(tensor.shape)
        if shape is None or tensor.dtype is not wanted:
            return False
        array = self._makers.array(name)
        if array is None:
            self._made.append((addend, shape))
            return True
        hidden = array == addend.where if isinstance(addend, Hidden) else None
        score = addend.score if isinstance(addend, Hidden) else 0.0
        numbers = array if hidden is None else _chosen(hidden, score)
        if _is_causal(numbers, *self._lengths[2:]):
            self.is_causal = True
        elif hidden is not None and hidden.any():
            self._hidden.append((hidden, shape, score))
        elif hidden is None and array.any():
            self._constants.append((array, shape))
        return True

    def _four_axes(self, shape: Shape) -> Shape | None:
        """Return a shape as batches, heads, queries and keys; None if a mask has no such form."""
        batch, heads, num_queries, num_keys = self._lengths
        if len(shape) > len(self._scores) or not shape or not same(shape[-1], num_keys):
            return None
        full = (*(1,) * (len(self._scores) - len(shape)), *shape)
        *lead, queries, keys = full
        if not same(queries, 1) and not same(queries, num_queries):
            return None
        if len(lead) < 2:
            outer: Shape = (1, lead[0] if lead else 1)
        else:
            outer = (lead[0], math.prod(lead[1:]))
        for length, wanted in zip(outer, (batch, heads), strict=True):
            if not same(length, 1) and not same(length, wanted):
                return None
        return (*outer, queries, keys)

    def emitted(self, draft: ProgramDraft, hint: str) -> str:
        """Add the steps that make the addend of the operator; return its name, "" for none."""

        def constant(array: Array, shape: Shape) -> str:
            stored = np.ascontiguousarray(array.reshape(shape).transpose(0, 2, 1, 3))
            return draft.constant(stored, f"{hint}/mask")

        least = self._least()
        hiding = [
            constant(_chosen(hidden, least or score), shape)
            for hidden, shape, score in self._hidden
        ]
        added = [constant(array, shape) for array, shape in self._constants]
        for addend, shape in self._made:
            if isinstance(addend, Hidden):
                condition = _by_tokens(draft, self._makers, addend.condition, shape, hint)
                low, none = (
                    draft.constant(np.full((1, 1, 1, 1), each, np.float32), f"{hint}/hidden")
                    for each in (least or addend.score, 0.0)
                )
                chosen = (low, none) if addend.where else (none, low)
                made = draft.emit(
                    Select(), (condition, *chosen), f"{hint}/mask", draft.shape(condition)
                )
                hiding.append(made)
            else:
                added.append(_by_tokens(draft, self._makers, addend, shape, hint))
        # A key that two conditions hide is hidden as one that a single one does.
        hidden_by = _joined(draft, hiding, BinaryFunction.MINIMUM, hint)
        parts = [each for each in (hidden_by, *added) if each]
        return _joined(draft, parts, BinaryFunction.ADD, hint)

    def _least(self) -> float:
        """Return what hides keys in the place of one finite score, 0 if there is another mask.

        Beside others the score itself says which keys are hidden more.
        """
        made = [addend for addend, _ in self._made]
        scores = {score for *_, score in self._hidden}
        scores |= {each.score for each in made if isinstance(each, Hidden)}
        is_alone = not self._constants and all(isinstance(each, Hidden) for each in made)
        return _HIDDEN if is_alone and len(scores) == 1 and np.isfinite([*scores]).all() else 0.0


def _chosen(hidden: Array, score: float) -> Array:
    return np.where(hidden, np.float32(score), np.float32(0))


def _joined(draft: ProgramDraft, parts: Sequence[str], function: BinaryFunction, hint: str) -> str:
    """Return what a function makes of masks, "" of none."""
    if not parts:
        return ""
    total = parts[0]
    for part in parts[1:]:
        shape = tuple(map(largest, draft.shape(total), draft.shape(part)))
        total = draft.emit(Binary(function=function), (total, part), f"{hint}/masks", shape)
    return total


def _by_tokens(
    draft: ProgramDraft, makers: Makers, name: str, shape: Sequence[int], hint: str
) -> str:
    """Return a mask with its axes in the order of batches, queries, heads and keys."""
    program = makers.program
    root, offset = program.root(name)
    start = offset // (program.tensors[name].dtype.bits // 8)
    batch, heads, queries, keys = shape
    stored = (batch, queries, heads, keys)
    if same(heads, 1) or same(queries, 1):
        return draft.view(root, start, stored)
    move = Move(
        shape=stored,
        input_strides=(heads * queries * keys, keys, queries * keys, 1),
        output_strides=(queries * heads * keys, heads * keys, keys, 1),
    )
    return draft.emit(
        Copy(moves=(move,)), (name,), f"{hint}/mask", stored, program.tensors[name].dtype
    )


def _is_causal(mask: Array, num_queries: int, num_keys: int) -> bool:
    """Tell whether an addend hides the keys behind each query, and does nothing else."""
    if depends(num_queries) or depends(num_keys) or num_queries > num_keys:
        return False
    if mask.shape[-2:] != (num_queries, num_keys) or mask.size != num_queries * num_keys:
        return False
    matrix = mask.reshape(num_queries, num_keys)
    seen = np.tri(num_queries, num_keys, num_keys - num_queries, dtype=bool)
    return bool(np.all(matrix[seen] == 0) and np.all(matrix[~seen] <= HIDES))
