"""Public names of a package, each imported when it is first used (PEP 562)."""

import sys
from collections.abc import Callable
from importlib import import_module


def lazily(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    The package imports its public names in a block under `TYPE_CHECKING`. Type checkers execute
    that block; here its text tells the module of each name.
    """
    module_of: dict[str, str] = {}

    def read() -> dict[str, str]:
        if not module_of:
            import re  # late, as commands must catch Ctrl-C soon after they start

            loader = sys.modules[package].__loader__
            source = loader.get_source(package)  # type: ignore[union-attr]  # a SourceLoader
            imports = r"^    from (\S+) import ([^(]+?$|\([^)]+)"
            for module, names in re.findall(imports, source, re.MULTILINE):
                module_of.update(dict.fromkeys(re.findall(r"\w+", names), module))
        return module_of

    def load(name: str) -> object:
        if name.startswith("__") or name not in read():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(read())
