"""Public names of a package, each imported when it is first used (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(
    package: str, names_of: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    Type checkers see the same names in a block of imports under `TYPE_CHECKING`; a test compares
    both with `__all__`.

    Args:
        package: Name of the package.
        names_of: The public names of each of its modules, separated by spaces, by the path of the
            module inside it.
    """
    module_of = {name: module for module, names in names_of.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(module_of)
