"""What chooses other kernels in LiteRT: it is accepted, and ours run."""

import enum
import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any


@enum.unique
class OpResolverType(enum.Enum):
    """Kernels of LiteRT to choose from; all values mean ours."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Delegate:
    """A library that would run operators; it is not loaded, as our kernels run them all.

    Args:
        library: Name of the library.
        options: Options for it.
    """

    def __init__(self, library: str, options: Mapping[Any, Any] | None = None) -> None:
        self.library = library
        self.options = dict(options or {})
        warnings.warn(f"delegate {library!r} is ignored: Arenite runs the operators", stacklevel=2)


def load_delegate(library: str, options: Mapping[Any, Any] | None = None) -> Delegate:
    """Return a delegate that is accepted and ignored, with a warning."""
    return Delegate(library, options)


experimental = SimpleNamespace(load_delegate=load_delegate, OpResolverType=OpResolverType)
"""The names of `tensorflow.lite.experimental`."""
