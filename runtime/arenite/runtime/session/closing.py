"""What holds memory until it is closed."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """What holds memory until it is closed, at the latest at the end of a `with` block."""

    @abstractmethod
    def close(self) -> None:
        """Release the memory. Closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
