"""Run a training step in stock ONNX Runtime, and keep its states from one run to the next."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
from numpy.typing import NDArray

from arenite.planner.errors import FileError, ModelFormatError, about_file
from arenite.planner.importers.onnx import load_model, take_states
from arenite.planner.quiet_onnxruntime import quiet_options

Array: TypeAlias = NDArray[Any]
StepInputs: TypeAlias = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Type and shape of the inputs of a step by name, its states left out."""


class StateFileError(FileError):
    """A file of states does not fit the step, or cannot be read."""


class StepInputError(FileError):
    """The inputs of a training step do not fit it."""


class StepEngine(Protocol):
    """Runs a training step and keeps its states."""

    @property
    def inputs(self) -> StepInputs:
        """Type and shape of the inputs besides the states, by name."""

    @property
    def states(self) -> Mapping[str, Array]:
        """The current states; writing to an array changes the state."""

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, and return the outputs besides the states."""


class StepRunner:
    """A training step and its states in ONNX Runtime.

    Attributes:
        states: The current states by name.
        inputs: Type and shape of the inputs besides the states, by name.
        outputs: Names of the outputs besides the states.

    Args:
        path: A model of ONNX whose metadata name its states.
        threads: Number of threads of the kernels.

    Raises:
        ModelFormatError: It cannot be read, or has no states.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        model = load_model(path)
        with about_file(path):
            taken = take_states(model, {})
            if not taken.replaced_by:
                raise ModelFormatError(
                    "the model has no states to train; `arenite train` makes a step that has"
                )
            self._replaced_by = dict(taken.replaced_by)
            self.inputs: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
            self.states = self._first_states(model, taken.initial)
            self._model, self._threads = model, threads
            self._session: Any = None
        ends = {*self._replaced_by.values()}
        self.outputs = tuple(o.name for o in model.graph.output if o.name not in ends)

    def _first_states(
        self, model: onnx.ModelProto, initial: Mapping[str, str]
    ) -> dict[str, Array]:
        tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        found: dict[str, Array] = {}
        for value in model.graph.input:
            stated = value.type.tensor_type
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(stated.elem_type))
            shape = tuple(axis.dim_value for axis in stated.shape.dim)
            if value.name in initial:
                array = onnx.numpy_helper.to_array(tensors[initial[value.name]])
                found[value.name] = np.array(array)  # one that can be written to
            elif value.name in self._replaced_by:
                found[value.name] = np.zeros(shape, dtype)
            else:
                self.inputs[value.name] = dtype, shape
        unread = {*initial.values()}
        kept = [tensor for tensor in model.graph.initializer if tensor.name not in unread]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        return found

    def _load(self) -> Any:
        options = quiet_options("running a training step", num_threads=self._threads)
        import onnxruntime

        try:
            return onnxruntime.InferenceSession(
                self._model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's own classes are all but Exception itself
            reason = " ".join(str(error).split())
            raise ModelFormatError(f"rejected by ONNX Runtime: {reason}") from error

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, keep the new states, and return the other outputs by name.

        Raises:
            ModelFormatError: ONNX Runtime does not take the step.
            MissingDependencyError: ONNX Runtime is absent.
        """
        if self._session is None:
            self._session = self._load()
        names = [*self.outputs, *self._replaced_by.values()]
        made = dict(zip(names, self._session.run(names, {**feeds, **self.states}), strict=True))
        self.states = {state: made.pop(new) for state, new in self._replaced_by.items()}
        return made


@contextmanager
def stock_engine(path: Path) -> Iterator[StepRunner]:
    """Open the file of a training step in ONNX Runtime."""
    yield StepRunner(path)


def fitted_feeds(feeds: Mapping[str, Array], inputs: StepInputs) -> dict[str, Array]:
    """Return the feeds of a run: the inputs of the step, in their types.

    Raises:
        StepInputError: An input is missing, or has another shape.
    """
    found: dict[str, Array] = {}
    for name, (dtype, shape) in inputs.items():
        if name not in feeds:
            raise StepInputError(f"input {name!r} of the step is missing; given: {[*feeds]}")
        found[name] = np.asarray(feeds[name], dtype)
        if found[name].shape != shape:
            raise StepInputError(
                f"input {name!r} has shape {list(found[name].shape)}; the step takes {list(shape)}"
            )
    return found


def restore(states: Mapping[str, Array], saved: Mapping[str, Array]) -> None:
    """Write saved values into states; states without a saved value stay as they are.

    Args:
        states: Arrays by name, which are written to.
        saved: The values to write.

    Raises:
        StateFileError: There is no such state, or its type or shape differs.
    """
    for name, array in saved.items():
        if name not in states:
            known = ", ".join(map(repr, list(states)[:6])) + (" ..." if len(states) > 6 else "")
            raise StateFileError(f"the step has no state {name!r}; its states: {known}")
        now = states[name]
        if (array.dtype, array.shape) != (now.dtype, now.shape):
            raise StateFileError(
                f"{name!r} is {array.dtype} {list(array.shape)}, where the step has {now.dtype} "
                f"{list(now.shape)}"
            )
    for name, array in saved.items():
        states[name][...] = array


class Batches:
    """Batches cut out of arrays along their first axis; after the last comes the first.

    Args:
        arrays: Samples by name of the input: those of one batch or of several.
        inputs: Type and shape of the inputs of the step.

    Raises:
        StepInputError: An input is missing or unknown, or an array does not fit.
    """

    def __init__(self, arrays: Mapping[str, Array], inputs: StepInputs) -> None:
        wrong = {*arrays} ^ {*inputs}
        if wrong:
            wanted = ", ".join(
                f"{name}={dtype} {'x'.join(map(str, shape)) or 'scalar'}"
                for name, (dtype, shape) in inputs.items()
            )
            raise StepInputError(
                f"{', '.join(map(repr, sorted(wrong)))} missing or unknown; the step takes "
                f"{wanted}"
            )
        self._inputs = inputs
        self._arrays: dict[str, Array] = {}
        counts: dict[str, int] = {}
        for name, (dtype, shape) in inputs.items():
            array = np.asarray(arrays[name])
            if array.dtype != dtype and array.dtype.kind in "iu" and dtype.kind == "i":
                array = array.astype(dtype)
            if not shape and array.size == 1:
                array = array.reshape(()).astype(dtype)
            fits = array.dtype == dtype and array.shape[1:] == shape[1:]
            if shape and fits and shape[0]:
                counts[name], rest = divmod(array.shape[0], shape[0])
                fits = not rest and counts[name] > 0
            if not fits or array.ndim != len(shape):
                raise StepInputError(
                    f"{name!r} is {array.dtype} {list(array.shape)}, where the step takes {dtype} "
                    f"{list(shape)}, or several of those along the first axis"
                )
            self._arrays[name] = array
        self.count = max(counts.values(), default=1)
        for name, count in counts.items():
            if count not in (1, self.count):
                raise StepInputError(
                    f"{name!r} has {count} batches where another input has {self.count}"
                )

    def __getitem__(self, number: int) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name, (_, shape) in self._inputs.items():
            array = self._arrays[name]
            if shape and array.shape[0] != shape[0]:
                start = number % self.count * shape[0]
                array = array[start : start + shape[0]]
            found[name] = array
        return found
