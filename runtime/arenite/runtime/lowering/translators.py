"""What translates each operator of a format: listed where the translators stand."""

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")
Translate = Callable[[T], None]


class Layout(Enum):
    """How an operator wants its first input stored."""

    AS_WRITTEN = "as written"
    CHANNELS_LAST = "channels last"
    ANY = "any"
    """As it comes, and its result the same."""


class Translators(Generic[T]):
    """The translators of one format, by the names of its operators."""

    def __init__(self) -> None:
        self._translators: dict[str, Translate[T]] = {}
        self._layouts: dict[str, Layout] = {}

    def translates(
        self, *names: str, layout: Layout = Layout.AS_WRITTEN
    ) -> Callable[[Translate[T]], Translate[T]]:
        """Return what lists a function as the translator of these operators.

        Args:
            names: Of the operators; none may be listed already.
            layout: How they want their first input.
        """

        def listed(translate: Translate[T]) -> Translate[T]:
            for name in names:
                assert name not in self._translators, f"{name} has a translator already"
                self._translators[name] = translate
                self._layouts[name] = layout
            return translate

        return listed

    def find(self, name: str) -> Translate[T] | None:
        """Return what translates an operator, None if nothing does."""
        return self._translators.get(name)

    def layout(self, name: str) -> Layout:
        """Return how an operator wants its first input."""
        return self._layouts.get(name, Layout.AS_WRITTEN)

    def names(self) -> tuple[str, ...]:
        """Return the names of all operators that are translated, sorted."""
        return tuple(sorted(self._translators))
