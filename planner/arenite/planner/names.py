"""Unique names, handed out in the order they are asked for."""

from collections.abc import Iterable


class Names:
    """Names that are in use, and new ones that are not.

    Args:
        taken: Names in use from the start.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._next_number: dict[str, int] = dict.fromkeys(taken, 2)

    def take(self, wanted: str) -> str:
        """Return `wanted`, numbered from 2 if it is in use, and mark it as in use."""
        name = wanted
        while name in self._next_number:
            number = self._next_number[wanted]
            self._next_number[wanted] = number + 1
            name = f"{wanted}.{number}"
        self._next_number[name] = 2
        return name
