"""Names of tensors inside nested ONNX graphs."""


class Scope:
    """Maps the names of one ONNX graph to flat names, unique in the whole model.

    Args:
        parent: Scope of the enclosing graph, None for the outermost.
        wanted: Flat names that some of its tensors must get, by local name.
    """

    def __init__(self, parent: "Scope | None", wanted: dict[str, str] | None = None) -> None:
        self._parent = parent
        self._wanted = wanted or {}
        self._names: dict[str, str] = {}

    def claim(self, local: str) -> str | None:
        """Return the flat name that `local` must get, None if any will do."""
        return self._wanted.pop(local, None)

    def define(self, local: str, flat: str) -> None:
        """Record the flat name of a local name."""
        self._names[local] = flat

    def find(self, local: str) -> str | None:
        """Return the flat name, looking outwards, None if nothing has that name."""
        if local in self._names or self._parent is None:
            return self._names.get(local)
        return self._parent.find(local)
