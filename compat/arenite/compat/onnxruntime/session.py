"""ONNX Runtime's session, run by Arenite."""

import json
import logging
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from arenite.compat.cache import Model, RefusedError, made, open_program
from arenite.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    Fail,
    InvalidArgument,
    InvalidProtobuf,
    NoSuchFile,
    RuntimeException,
)
from arenite.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    NotImplemented as Unsupported,
)
from arenite.compat.onnxruntime.options import RunOptions, SessionOptions
from arenite.compat.onnxruntime.values import ELEMENT_TYPES, Array, IOBinding, OrtValue, type_text
from arenite.compat.sizes import Lengths, Programs
from arenite.planner import AreniteError
from arenite.runtime import MAX_THREADS, ProgramError, ResourceError, SessionPort

if TYPE_CHECKING:
    from arenite.compat.onnxruntime.interface import Interface, Port

_log = logging.getLogger(__name__)
_NAMELESS = (None, "?")
"""What exporters write for an axis without a name."""
CPU = "CPUExecutionProvider"
_CAUSE = "Please fix either the inputs/outputs or the model."


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output.

    Attributes:
        name: Its name.
        type: Its type, such as `tensor(float)`.
        shape: For each axis its length, the name of a free dimension, or None.
    """

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model states about itself."""

    custom_metadata_map: dict[str, str] = field(default_factory=dict)
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    graph_name: str = ""
    producer_name: str = ""
    version: int = 2**63 - 1


class InferenceSession:
    """A model that can be run.

    It is built when it is first needed: at once if its inputs have fixed shapes, else by the first
    run, for the sizes of that run. Runs from several threads are done one after another.

    Args:
        path_or_bytes: An ONNX model or its bytes, or an `.arena` file.
        sess_options: Options; `intra_op_num_threads` and fixed free dimensions have an effect.
        providers: Accepted; the model runs on the CPU.
        provider_options: Accepted.

    Raises:
        NoSuchFile: There is no such file.
        InvalidProtobuf: It is no ONNX model.
        NotImplemented: Arenite does not run the model; the reason names what it lacks.
        TypeError: The model is neither a path nor bytes.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: object,
    ) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(
                f"sess_options is a {type(sess_options).__name__}; give SessionOptions"
            )
        self._options = sess_options or SessionOptions()
        for name in ("enable_profiling", "optimized_model_filepath"):
            if getattr(self._options, name):
                _log.warning("%s has no effect: Arenite writes no such file", name)
        self._lock = threading.RLock()
        self.set_providers(providers, provider_options)
        self._model_path: str | None = None
        model = self._model_of(path_or_bytes)
        interface = _interface(model)
        self._meta = ModelMetadata(**interface["meta"])
        self._inputs = [self._argument(each) for each in interface["inputs"]]
        self._outputs = [self._argument(each) for each in interface["outputs"]]
        self._initializers = [self._argument(each) for each in interface["initializers"]]
        self._unranked = {each["name"] for each in interface["inputs"] if not each["is_ranked"]}
        self._free = {each["name"]: _free_axes(each) for each in interface["inputs"]}
        for each in (*self._inputs, *self._outputs):
            _require_tensor(each)
        self._dtypes = {each.name: np.dtype(_dtype_of(each.type)) for each in self._inputs}
        self._output_names = [each.name for each in self._outputs]
        # Of the last run: most runs have the shapes of the one before.
        self._last_shapes: dict[str, tuple[int, ...]] | None = None
        self._last_lengths: Lengths = {}
        self._programs = self._programs_of(model, interface)

    def _model_of(self, given: str | bytes | os.PathLike[str]) -> Model:
        if isinstance(given, bytes | bytearray | memoryview):
            return Model.of(bytes(given), ".onnx")
        if not isinstance(given, str | os.PathLike):
            raise TypeError(f"Unable to load from type '{type(given)}'")
        path = Path(given)
        if not path.is_file():
            raise NoSuchFile(
                f"Load model from {path} failed:Load model {path} failed. File doesn't exist"
            )
        self._model_path = str(path)
        try:
            return Model.of(path, ".onnx")
        except OSError as error:
            raise Fail(f"Load model from {path} failed:{error.strerror}") from error

    def _argument(self, port: "Port") -> NodeArg:
        fixed = self._options.fixed_lengths
        shape = [
            fixed.get(each, each) if isinstance(each, str) else each for each in port["shape"]
        ]
        return NodeArg(port["name"], port["type"], shape)

    def _programs_of(self, model: Model, interface: "Interface") -> Programs:
        """Return the programs; that of a model with fixed shapes is open."""
        folder = model.path.parent if model.path else Path()
        scalars = [
            each.name
            for each in self._inputs
            if self._dtypes[each.name].kind in "iub" and each.shape in ([], [1])
        ]
        # Threads wait for each other at each step, so the rest of the program needs processors.
        default = max(1, len(os.sched_getaffinity(0)) // 2)
        threads = min(self._options.intra_op_num_threads or default, MAX_THREADS)
        programs = Programs(
            model, [folder / each for each in interface["parts"]], threads, scalars,
            frozenset(self._unranked),
        )  # fmt: skip
        shapes = [each.shape for each in self._inputs]
        if self._unranked or not all(isinstance(n, int) for shape in shapes for n in shape):
            return programs
        fixed = {
            each.name: tuple(n for n in each.shape if isinstance(n, int)) for each in self._inputs
        }
        try:
            programs.open_fixed(self._lengths_of(fixed))
        except AreniteError as error:
            # It may have to know the numbers of scalars, which the first run has.
            if not (scalars and isinstance(error, RefusedError)):
                raise _failure(error) from error
        return programs

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initialisers that are inputs; other numbers for them are refused."""
        return list(self._initializers)

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model states about itself."""
        return self._meta

    def get_session_options(self) -> SessionOptions:
        """Return the options."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return the one provider that runs the model."""
        return [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return no options for the one provider."""
        return {CPU: {}}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Accept providers; those that are not available are noted."""
        for each in providers or ():
            name = each if isinstance(each, str) else each[0]
            if name != CPU:
                warnings.warn(
                    f"Specified provider '{name}' is not in available provider names."
                    f"Available providers: '{CPU}'",
                    stacklevel=3,
                )

    def disable_fallback(self) -> None:
        """Do nothing: there is one provider."""

    def enable_fallback(self) -> None:
        """Do nothing: there is one provider."""

    def end_profiling(self) -> str:
        """Return no file: `arenite bench` measures steps."""
        return ""

    def io_binding(self) -> IOBinding:
        """Return a binding of values to inputs and outputs."""
        return IOBinding(self)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Array]:
        """Run the model.

        Args:
            output_names: Outputs to return; all if this is None or empty.
            input_feed: An array for each input, by its name.
            run_options: Accepted.

        Raises:
            ValueError: An input is missing.
            InvalidArgument: A name, a type or a shape is not the model's.
            NotImplemented: Arenite does not run the model at these sizes.
            Fail: The run failed.
        """
        known = self._dtypes
        given = input_feed.keys()
        if missing := [name for name in known if name not in given]:
            raise ValueError(
                f"Required inputs ({missing}) are missing from input feed ({list(given)})."
            )
        if isinstance(output_names, str):
            raise TypeError("run(): incompatible function arguments: give a list of output names")
        for name in output_names or ():
            if name not in self._output_names:
                raise InvalidArgument(f"Invalid output name:{name}")
        arrays: dict[str, Array] = {}
        for name, value in input_feed.items():
            if name not in known:
                self._refuse_input(name)
            arrays[name] = _array(name, value, known[name])
        shapes = {name: array.shape for name, array in arrays.items()}
        with self._lock:
            if shapes != self._last_shapes:
                self._last_lengths = self._lengths_of(shapes)
                self._last_shapes = shapes
            try:
                found = self._programs.run(self._last_lengths, arrays)
            except AreniteError as error:
                raise _failure(error) from error
        return [found[name] for name in output_names or self._output_names]

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run the model on values that are bound.

        Errors are those of `run`, and `RuntimeError` if no output is bound.
        """
        if not iobinding.output_names:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        iobinding.take(self.run(iobinding.output_names, iobinding.inputs, run_options))

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model on values and return values.

        Errors are those of `run`.
        """
        made = self.run(output_names, input_dict_ort_values, run_options)
        return [OrtValue(each) for each in made]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Array], Any, str], None],
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run the model in another thread, which then calls `callback(outputs, data, error)`."""

        def work() -> None:
            made: list[Array] = []
            reason = ""
            try:
                made = self.run(output_names, input_feed, run_options)
            except Exception as error:  # the callback is told
                reason = str(error)
            callback(made, user_data, reason)

        threading.Thread(target=work).start()

    def _refuse_input(self, name: str) -> NoReturn:
        if any(each.name == name for each in self._initializers):
            raise Unsupported(
                f"input {name!r} has an initialiser; Arenite does not support other numbers"
            )
        raise InvalidArgument(f"Invalid input name: {name}")

    def _lengths_of(self, shapes: Mapping[str, tuple[int, ...]]) -> Lengths:
        """Return the lengths of free axes by their names, of inputs of these shapes."""
        lengths: Lengths = {}
        for each in self._inputs:
            self._take_lengths(each, shapes[each.name], lengths)
        return lengths

    def _take_lengths(self, stated: NodeArg, shape: tuple[int, ...], lengths: Lengths) -> None:
        """Check a shape and note the lengths of its free axes by their names."""
        name = stated.name
        if name in self._unranked:
            lengths.update({f"{name}:{axis}": length for axis, length in enumerate(shape)})
            return
        if len(shape) != len(stated.shape):
            raise InvalidArgument(
                f"Invalid rank for input: {name} Got: {len(shape)} Expected: {len(stated.shape)} "
                f"{_CAUSE}"
            )
        wrong = [
            f" index: {axis} Got: {length} Expected: {expected}\n"
            for axis, (length, expected) in enumerate(zip(shape, stated.shape, strict=True))
            if isinstance(expected, int) and length != expected
        ]
        if wrong:
            raise InvalidArgument(
                f"Got invalid dimensions for input: {name} for the following indices\n"
                f"{''.join(wrong)} {_CAUSE}"
            )
        lengths.update({free: shape[axis] for axis, free in self._free[name]})


def _free_axes(port: "Port") -> list[tuple[int, str]]:
    """Return the axes of an input that have no length, with their names."""
    return [
        (axis, f"{port['name']}:{axis}" if each in _NAMELESS else str(each))
        for axis, each in enumerate(port["shape"])
        if not isinstance(each, int)
    ]


def _interface(model: Model) -> "Interface":
    def read(path: Path) -> "Interface":
        found: Interface = json.loads(path.read_text())
        return found

    if model.suffix == Model.ARENA:
        return _interface_of_program(model)
    task = "arenite.compat.onnxruntime.interface:write_interface"
    try:
        return made(model, task, {}, ".interface.json", read)
    except RefusedError as error:
        where = f"Load model from {model.path} failed:" if model.path else "Failed to load model: "
        raise InvalidProtobuf(f"{where}{error}") from error
    except AreniteError as error:
        raise _failure(error) from error


def _failure(error: AreniteError) -> Exception:
    """Return the exception of ONNX Runtime for a failure."""
    if isinstance(error, RefusedError):
        return Unsupported(str(error))
    is_ours = isinstance(error, ProgramError | ResourceError)
    return RuntimeException(str(error)) if is_ours else Fail(str(error))


def _require_tensor(stated: NodeArg) -> None:
    name = stated.type.removeprefix("tensor(").removesuffix(")")
    if name == "string" or name not in ELEMENT_TYPES:
        raise Unsupported(f"{stated.name!r} is {stated.type}, which Arenite does not support")


def _dtype_of(text: str) -> str:
    return ELEMENT_TYPES[text[len("tensor(") : -1]][1]


def _array(name: str, value: object, expected: np.dtype[Any]) -> Array:
    """Return what is fed as an array of the right type."""
    if isinstance(value, np.ndarray) and value.dtype == expected:
        return value
    if isinstance(value, OrtValue):
        value = value.numpy()
    if isinstance(value, list | tuple):
        value = np.asarray(value, expected)
    if isinstance(value, int | float):
        raise RuntimeError(f"Unable to handle object of type {type(value)}")
    if not isinstance(value, np.ndarray | np.generic):
        raise RuntimeError(
            f"Input must be a list of dictionaries or a single numpy array for input '{name}'."
        )
    if value.dtype.kind not in "biufSUO":
        raise RuntimeError(f"Numpy_type {value.dtype.num} can't be converted to MLDataType.")
    if value.dtype != expected:
        raise InvalidArgument(
            f"Unexpected input data type. Actual: ({type_text(value.dtype)}) , "
            f"expected: ({type_text(expected)})"
        )
    return np.asarray(value)


def _interface_of_program(model: Model) -> "Interface":
    """Return the interface of an `.arena` file; its ranges are free dimensions."""
    with open_program(model, {}) as session:
        ranges = {each.name for each in session.dimensions}

        def port(each: SessionPort) -> "Port":
            shape: list[int | str | None] = list(each.shape)
            if ranges:
                shape = [None] * len(shape)
            type_ = type_text(each.dtype)
            return {"name": each.name, "type": type_, "shape": shape, "is_ranked": True}

        return {
            "inputs": [port(each) for each in session.inputs],
            "outputs": [port(each) for each in session.outputs],
            "initializers": [], "meta": {}, "parts": [],
        }  # fmt: skip
