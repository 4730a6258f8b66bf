"""A model that can be run, whether it was built before or not."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from arenite.runtime import Session as ProgramSession
from arenite.runtime import SessionOptions, System

if TYPE_CHECKING:
    from arenite.pipeline.base.reading import StatedDims, StatedShapes
    from arenite.planner import Strategy

__all__ = ["Session", "System"]

_MODELS = {".onnx", ".tflite", ".lite"}


class Session(ProgramSession):
    """A model that can be run, one inference at a time.

    An `.arena` file is mapped and takes no package that reads models. An ONNX or TFLite model is
    first built in memory, to the bytes that `arenite build` writes.

    Args:
        path: An `.arena` file, or an ONNX or TFLite model.
        strategy: Places the tensors of a model; `best` by default.
        dims: Values of free dimensions of a model by name, or ranges such as `"1..512"`.
        shapes: Shapes of a model's inputs by name, ranges among them.
        values: Inputs of a model fixed at a value, by name.
        activations: Type that results and weights are stored as: `fp16` or `fp32`.
        cache: Type that caches of keys and values that grow are stored as: `fp16`, `int8` or
            `fp32`.
        threads: Number of threads that run kernels, at most 256. More than 1 helps large models on
            an otherwise idle machine; a child process that is forked later cannot use the session.
        poison: Byte to fill dead memory with, which shows a wrong plan.
        guard: Protect the pages around each memory from access, and check indices.
        buffers: Memory to use, by the name of the memory; the library allocates the others.
        copy: Read an `.arena` file into memory instead of mapping it, so that later changes of the
            file have no effect. A model is always read into memory.
        check: Read the whole `.arena` file once and compare it with its checksums.

    Raises:
        ProgramError: The file cannot be read or is not to be trusted.
        ResourceError: There is no memory for it, or a buffer does not fit.
        ModelError: The model cannot be read, or has an operator that nothing runs.
        MissingDependencyError: A package that reads the model or runs a step is absent.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        strategy: "Strategy | None" = None,
        dims: "StatedDims | None" = None,
        shapes: "StatedShapes | None" = None,
        values: Mapping[str, float] | None = None,
        activations: str | None = None,
        cache: str | None = None,
        threads: int = 1,
        poison: int | None = None,
        guard: bool = False,
        buffers: Mapping[str, NDArray[Any]] | None = None,
        copy: bool = False,
        check: bool = False,
    ) -> None:
        path = Path(path)
        if path.suffix.lower() not in _MODELS:
            super().__init__(
                path,
                threads=threads,
                poison=poison,
                guard=guard,
                buffers=buffers,
                copy=copy,
                check=check,
            )
            return
        # Late, so that running a program file takes none of the packages that read models.
        from arenite.pipeline.base.reading import Reading, lengths_of
        from arenite.pipeline.making.building import build_model
        from arenite.runtime.program import program_pieces
        from arenite.runtime.rewrites import Activations, Caches

        reading = Reading(
            *lengths_of(dims, shapes), values or {},
            activations=None if activations is None else Activations(activations),
            cache=None if cache is None else Caches(cache),
        )  # fmt: skip
        built = build_model(path, reading, strategy=strategy)
        pieces = program_pieces(built.assemble())
        self._open_pieces(pieces, path.name, SessionOptions(threads, poison, guard, buffers))
