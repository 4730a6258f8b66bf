"""Modules of other runtimes that are replaced by ours, for all that import them."""

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from multiprocessing import spawn
from types import ModuleType
from typing import TypeAlias

_ONNXRUNTIME, _TFLITE = ("arenite.compat.onnxruntime",), ("arenite.compat.tflite",)
_NATIVE = (*_ONNXRUNTIME, "arenite.compat.onnxruntime.capi.onnxruntime_pybind11_state")
_REPLACED = {
    "onnxruntime": _ONNXRUNTIME,
    "onnxruntime.capi": ("arenite.compat.onnxruntime.capi",),
    "onnxruntime.capi._pybind_state": _NATIVE,
    "onnxruntime.capi.onnxruntime_inference_collection": _ONNXRUNTIME,
    "onnxruntime.capi.onnxruntime_pybind11_state": _NATIVE,
    "tflite_runtime": _TFLITE,
    "tflite_runtime.interpreter": _TFLITE,
    "ai_edge_litert": _TFLITE,
    "ai_edge_litert.interpreter": _TFLITE,
}
"""Modules that are replaced, by name, and those of ours whose names they have."""
_ROOTS = {name.partition(".")[0] for name in _REPLACED}
_LITE = ("tensorflow.lite", "tensorflow.lite.python", "tensorflow.lite.python.interpreter")
"""Modules of TensorFlow that have the interpreter."""
_KEPT = ("arenite", "onnxruntime", "ai_edge_litert", "tflite_runtime")
"""Packages whose own imports find the other runtimes: ours runs some steps with them."""

Import: TypeAlias = Callable[..., ModuleType]
Names: TypeAlias = Mapping[str, object] | None


class Replacing(MetaPathFinder, Loader):
    """Finds our modules under the names of the other runtimes."""

    def __init__(self, *, tensorflow: bool = False) -> None:
        self._replaced: dict[str, tuple[str, ...]] = dict(_REPLACED)
        if tensorflow:
            self._replaced |= {"tensorflow": (), **dict.fromkeys(_LITE, _TFLITE)}
        self._originals: dict[str, ModuleType] = {}
        self._import: Import = builtins.__import__
        self._depth = 0

    def install(self) -> None:
        """Replace the modules from now on, for all that import them but for Arenite itself."""
        sys.meta_path.insert(0, self)
        builtins.__import__ = self._import_for

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how one of the replaced modules is loaded, None for all others."""
        return ModuleSpec(fullname, self, is_package=True) if fullname in self._replaced else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module for the names of ours; modules that are not replaced lie in its path."""
        made = ModuleType(spec.name)
        original = PathFinder.find_spec(spec.name) if spec.name in _ROOTS else None
        made.__path__ = list((original and original.submodule_search_locations) or ())
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Give a module the names of ours."""
        sources = self._replaced[module.__name__]
        if not sources:
            vars(module)["lite"] = import_module(_LITE[0])
        for source in sources:
            ours = vars(import_module(source))
            names = {each for each in ours if not each.startswith("__")} | {"__version__"}
            vars(module).update({each: ours[each] for each in names if each in ours})

    def _import_for(
        self,
        name: str,
        globals: Names = None,  # noqa: A002  # as in builtins
        locals: Names = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        importer = str((globals or {}).get("__name__", "")).partition(".")[0]
        if level or importer not in _KEPT or name.partition(".")[0] not in _ROOTS or self._depth:
            return self._import(name, globals, locals, fromlist, level)
        self._depth += 1
        ours = _taken()
        sys.meta_path.remove(self)
        sys.modules.update(self._originals)
        try:
            return self._import(name, globals, locals, fromlist, level)
        finally:
            self._originals = _taken()
            sys.meta_path.insert(0, self)
            sys.modules.update(ours)
            self._depth -= 1


def _taken() -> dict[str, ModuleType]:
    """Take the replaced packages from the loaded modules."""
    names = [each for each in sys.modules if each.partition(".")[0] in _ROOTS]
    return {name: sys.modules.pop(name) for name in names}


def replace_modules(*, tensorflow: bool = False) -> None:
    """Replace the modules in this process and those that `multiprocessing` starts.

    Args:
        tensorflow: Whether to replace TensorFlow by its interpreter.
    """
    Replacing(tensorflow=tensorflow).install()
    stated = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, object]:
        return {**stated(name), __name__: _InChild(tensorflow)}

    spawn.get_preparation_data = get_preparation_data


class _InChild:
    """Is what a started process is told, and replaces the modules where it is read."""

    def __init__(self, tensorflow: bool) -> None:
        self._tensorflow = tensorflow

    def __reduce__(self) -> tuple[object, ...]:
        return _replace_in_child, (self._tensorflow,)


def _replace_in_child(tensorflow: bool) -> None:
    replace_modules(tensorflow=tensorflow)
