"""Names of tensors inside nested ONNX graphs."""


class Scope:
    """What the names of one ONNX graph stand for in the flat graph.

    Args:
        parent: Of the graph around it, None for the outermost.
        wanted: The flat names that some of its tensors must get.
    """

    def __init__(self, parent: "Scope | None", wanted: dict[str, str] | None = None) -> None:
        self._parent = parent
        self._wanted = wanted or {}
        self._names: dict[str, str] = {}

    def claim(self, local: str) -> str | None:
        """Return the flat name that `local` must get, None if any will do."""
        return self._wanted.pop(local, None)

    def define(self, local: str, flat: str) -> None:
        """State what a name stands for."""
        self._names[local] = flat

    def find(self, local: str) -> str | None:
        """Return the flat name, looking outwards, None if nothing has that name."""
        if local in self._names or self._parent is None:
            return self._names.get(local)
        return self._parent.find(local)
