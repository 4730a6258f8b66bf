"""The translators of each operator of a format; each registers itself."""

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")
Translate = Callable[[T], None]


class Layout(Enum):
    """The order in which an operator needs its first input stored."""

    AS_WRITTEN = "as written"
    CHANNELS_LAST = "channels last"
    ANY = "any"
    """In any order; the result has the same."""


class Translators(Generic[T]):
    """The translators of one format, by the names of its operators."""

    def __init__(self) -> None:
        self._translators: dict[str, Translate[T]] = {}
        self._layouts: dict[str, Layout] = {}
        self._of_int16: set[str] = set()

    def translates(
        self, *names: str, layout: Layout = Layout.AS_WRITTEN, int16: bool = False
    ) -> Callable[[Translate[T]], Translate[T]]:
        """Return a decorator that registers a function as the translator of operators.

        Args:
            names: Names of the operators; none may have a translator already.
            layout: The order in which they need their first input.
            int16: Whether they take integers of 16 bits: they move or convert them, keep a state
                of them, or go by the numbers that these stand for.
        """

        def listed(translate: Translate[T]) -> Translate[T]:
            for name in names:
                assert name not in self._translators, f"{name} has a translator already"
                self._translators[name] = translate
                self._layouts[name] = layout
                if int16:
                    self._of_int16.add(name)
            return translate

        return listed

    def find(self, name: str) -> Translate[T] | None:
        """Return the translator of an operator, None if it has none."""
        return self._translators.get(name)

    def layout(self, name: str) -> Layout:
        """Return the order in which an operator needs its first input."""
        return self._layouts.get(name, Layout.AS_WRITTEN)

    def takes_int16(self, name: str) -> bool:
        """Tell whether an operator with a translator takes integers of 16 bits."""
        return name in self._of_int16

    def names(self) -> tuple[str, ...]:
        """Return the names of all operators with a translator, sorted."""
        return tuple(sorted(self._translators))
