"""A model of one operator, its inputs, and what it must give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Reference: TypeAlias = Callable[[], Sequence[Array] | None]
"""Returns outputs that are right, None if it has none after all."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model of one operator.

    Attributes:
        operator: Its name, the domain in front unless that is ONNX's own.
        name: What this case shows of it.
        suffix: Of its file.
        model: The file's bytes.
        feeds: Input arrays by name, or in the model's order where the format numbers them; None
            where an input is no array, so that nothing can be fed.
        expected: Return the outputs that the operator must give, the definition's first; to agree
            with one is enough. None where nobody can foretell them.
        types: Element types that the case is about, for the table.
        rtol: Largest relative difference of a number.
        atol: Largest difference, in addition.
    """

    operator: str
    name: str
    suffix: str
    model: bytes
    feeds: dict[str, Array] | list[Array] | None
    expected: tuple[Reference, ...]
    types: tuple[str, ...] = ()
    rtol: float = 1e-3
    atol: float = 1e-5
