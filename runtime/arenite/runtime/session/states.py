"""The states of a session: what it keeps from one run to the next."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from arenite.planner.files import write_atomically
from arenite.planner.sizes import Dimension
from arenite.runtime import _core
from arenite.runtime.errors import SizeRangeError, StatesFileError
from arenite.runtime.session.stated import Array


class States(Mapping[str, Array]):
    """Views of the states, by name; write to them to change a state.

    Some states grow: the cache of a decoder has a row for each token, and each run adds rows
    behind those that there are. Of such a state the view has the rows that it holds.

    A session makes it. Calls that change states are refused while the session runs.
    """

    def __init__(
        self,
        native: _core.Session,
        dimensions: tuple[Dimension, ...],
        label: str,
        turn: AbstractContextManager[None],
    ) -> None:
        self._native, self._dimensions = native, dimensions
        self._label, self._turn = label, turn
        self._tensors = {name: (tensor, rows) for name, tensor, rows in native.states()}

    def __getitem__(self, name: str) -> Array:
        tensor, rows = self._tensors[name]
        view = self._native.view(tensor)
        return view if rows < 0 else view[: self._native.grown()[rows]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def lengths(self) -> dict[str, int]:
        """The rows that states hold, by the dimension that grows; {} if none grows."""
        held = zip(self._dimensions, self._native.grown(), strict=True)
        return {each.name: rows for each, rows in held if each.grows}

    @property
    def length(self) -> int:
        """The rows, or tokens, that the longest of the states that grow hold; 0 if none grows."""
        return max(self.lengths.values(), default=0)

    @property
    def can_truncate(self) -> bool:
        """Whether rows can be dropped: there are states, and all of them grow."""
        return bool(self._tensors) and all(rows >= 0 for _, rows in self._tensors.values())

    def reset(self) -> None:
        """Set all states to their initial values; those that grow have no rows then.

        Raises:
            SessionBusyError: Another thread is using the session.
        """
        with self._turn:
            self._native.reset()

    def truncate(self, length: int) -> None:
        """Drop the rows behind the first so many, as if their runs had not been.

        Args:
            length: Rows to keep of all states.

        Raises:
            SizeRangeError: Some hold fewer, it is below 0, or a state does not grow, so that each
                run replaces it; nothing has changed.
            SessionBusyError: Another thread is using the session.
        """
        held = self.lengths
        for name, (_, rows) in self._tensors.items():
            if rows < 0:
                raise SizeRangeError(
                    self._label,
                    f"state {name!r} has no rows to drop, as each run replaces all of it; reset "
                    "the states, or save and load them",
                )
        if not 0 <= length <= min(held.values(), default=0):
            said = ", ".join(f"{n} of {name!r}" for name, n in held.items()) or "none that grow"
            raise SizeRangeError(self._label, f"states hold {said}; {length} cannot be kept")
        with self._turn:
            self._native.truncate(length)

    def drop(self, row: int) -> None:
        """Drop one row of all states: the last one takes its place.

        A full cache forgets its oldest token so, and has room for the next. Attention does not
        ask for the order of keys, if all of them are before the query: after this a run adds one
        row.

        Args:
            row: Its index.

        Raises:
            SizeRangeError: The states do not hold it, hold different numbers of rows, or one does
                not grow; nothing has changed.
            SessionBusyError: Another thread is using the session.
        """
        held = set(self.lengths.values())
        length = min(held, default=0)
        if not self.can_truncate or len(held) != 1 or not 0 <= row < length:
            said = ", ".join(f"{n} of {name!r}" for name, n in self.lengths.items())
            raise SizeRangeError(
                self._label,
                f"row {row} of all states cannot be dropped: they hold {said or 'none that grow'}"
                + ("" if self.can_truncate else ", and each run replaces some of them"),
            )
        with self._turn:
            for tensor, _ in self._tensors.values():
                rows = self._native.view(tensor)
                rows[row] = rows[length - 1]
            self._native.truncate(length - 1)

    def save(self, path: Path | str) -> None:
        """Write all states to a file: of those that grow, the rows that they hold.

        Raises:
            OutputError: The file cannot be written.
            SessionBusyError: Another thread is using the session.
        """
        with self._turn:
            saved = self._native.save()
        write_atomically(Path(path), saved)

    def load(self, path: Path | str) -> None:
        """Read all states from a file that `save` wrote for the same program.

        Raises:
            StatesFileError: It cannot be read, is damaged, or is of another program; the states
                are as before.
            SessionBusyError: Another thread is using the session.
        """
        try:
            saved = Path(path).read_bytes()
        except OSError as error:
            raise StatesFileError(f"cannot be read: {error.strerror}", path=path) from error
        with self._turn:
            try:
                self._native.load(saved)
            except _core.StatesError as error:
                raise StatesFileError(str(error), path=path) from error
