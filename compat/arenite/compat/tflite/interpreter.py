"""`Interpreter` of LiteRT and TFLite, run by our sessions.

    >>> from arenite.compat.tflite import Interpreter
    >>> interpreter = Interpreter(model_path="model.tflite")

Classes, arguments, indices of tensors, errors and the first words of their texts are those of
`ai_edge_litert.interpreter`, which was `tflite_runtime.interpreter` before.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arenite.compat.cache import Model, open_program
from arenite.compat.tflite.delegates import OpResolverType
from arenite.compat.tflite.file import (
    TYPE_NAMES,
    Array,
    Details,
    ProgramPorts,
    Signature,
    TfliteFile,
)
from arenite.compat.tflite.programs import Programs, Shape
from arenite.compat.tflite.signature import SignatureRunner
from arenite.planner import AreniteError
from arenite.runtime import MAX_THREADS, Session, SessionForkedError

_TFLITE = ".tflite"


class Interpreter:
    """A TFLite model that can be run, one inference at a time.

    The model is built once and kept (`arenite.compat.cache`). Views that `tensor` returns may be
    kept over `invoke`. The other arguments of LiteRT's class are accepted and have no effect.

    Args:
        model_path: A TFLite file, or an `.arena` file, whose tensors are numbered inputs first.
        model_content: The bytes of a TFLite file, in the place of `model_path`.
        experimental_delegates: Ignored, with a warning.
        num_threads: Number of threads that run kernels, at most that of the processors; 1 by
            default.
        experimental_op_resolver_type: Any `OpResolverType`; our kernels run the model.
        experimental_preserve_all_tensors: Keep the results of all operators for `get_tensor`.

    Raises:
        ValueError: The model cannot be read, has an operator that nothing runs, or an argument is
            wrong. A model with open lengths other than the first is built by `allocate_tensors`.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[object] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
    ) -> None:
        if not isinstance(experimental_op_resolver_type, OpResolverType):
            raise ValueError(
                f"Unrecognized passed in op resolver type: {experimental_op_resolver_type}"
            )
        self._threads = _threads(num_threads)
        if model_path and model_content:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if not model_path and not model_content:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if experimental_delegates:
            warnings.warn("delegates are ignored: Arenite runs the operators", stacklevel=2)
        # The shapes of inputs that were resized, and the session for those of the last allocation.
        self._shapes: dict[int, Shape] = {}
        self._session: Session | None = None
        self._feeds: dict[int, Array] = {}
        self._is_ready = False
        self._stated: TfliteFile | ProgramPorts
        try:
            self._read(Path(model_path) if model_path else model_content)
            if experimental_preserve_all_tensors and isinstance(self._stated, TfliteFile):
                content, outputs = self._stated.with_all_results()
                self._model = Model.of(content, _TFLITE)
                self._outputs = {index: place for place, index in enumerate(outputs)}
            self._programs = Programs(self._model, self._threads)
            if isinstance(self._stated, TfliteFile) and not self._has_open_lengths():
                self._session = self._open()
        except OSError as error:
            raise ValueError(f"Could not open '{model_path}'. {error.strerror}") from error
        except AreniteError as error:
            raise ValueError(str(error)) from error

    def _read(self, given: Path | bytes | None) -> None:
        if not isinstance(given, bytes | Path):
            raise TypeError(f"model_content is a {type(given).__name__}; give bytes")
        self._model = Model.of(given, _TFLITE)
        if self._model.suffix == Model.ARENA:
            self._session = open_program(self._model, {}, threads=self._threads)
            self._stated = ProgramPorts(self._session)
        else:
            self._stated = TfliteFile(given)
        self._inputs = {index: self._stated.details(index) for index in self._stated.inputs()}
        self._outputs = {index: place for place, index in enumerate(self._stated.outputs())}

    def _has_open_lengths(self) -> bool:
        """Tell whether other lengths than the first are open: those in the file mean nothing."""
        return any((each["shape_signature"][1:] < 0).any() for each in self._inputs.values())

    def _open(self) -> Session:
        """Return a session for the present shapes of the inputs."""
        names = {
            index: each["name"] or f"tensor_0_{index}" for index, each in self._inputs.items()
        }
        shapes = {name: self._shape(index) for index, name in names.items()}
        resized = {names[index] for index in self._shapes}
        return self._programs.open(shapes, resized)

    def allocate_tensors(self) -> None:
        """Make the interpreter ready to run, for the present shapes of the inputs.

        Raises:
            RuntimeError: The model does not take these shapes, or cannot be run.
        """
        if self._is_ready:
            return
        try:
            self._session = self._session or self._open()
        except AreniteError as error:
            raise RuntimeError(str(error)) from error
        ports = self._session.inputs
        self._feeds = {
            index: feed
            if (feed := self._feeds.get(index)) is not None and feed.shape == port.shape
            else np.zeros(port.shape, port.dtype)
            for index, port in zip(self._inputs, ports, strict=True)
        }
        self._fed = dict(zip((port.name for port in ports), self._feeds.values(), strict=True))
        self._is_ready = True

    def resize_tensor_input(
        self,
        input_index: int,
        tensor_size: Sequence[int] | Array,
        strict: bool = False,  # as LiteRT's
    ) -> None:
        """Set the shape of an input; `allocate_tensors` builds the model for it.

        Args:
            input_index: Index of the tensor.
            tensor_size: The shape.
            strict: Refuse lengths that `shape_signature` states, where it is not -1.

        Raises:
            RuntimeError: There is no such input, or `strict` refuses the shape.
            ValueError: The shape has not one axis.
        """
        self._require_integer(input_index)
        if np.ndim(tensor_size) != 1:
            raise ValueError(f"Shape should be 1D instead of {np.ndim(tensor_size)}.")
        shape = tuple(int(each) for each in tensor_size)
        if input_index not in self._inputs:
            raise RuntimeError(f"tensor {input_index} is not an input: it cannot be resized")
        if any(length < 0 for length in shape):
            raise RuntimeError(f"tensor {input_index} cannot have the shape {shape}")
        stated = self._inputs[input_index]
        signature = tuple(stated["shape_signature"].tolist())
        if strict and not _fits(shape, signature):
            raise RuntimeError(
                f"Attempting to resize tensor {input_index} to {shape}: ResizeInputTensorStrict "
                f"only allows mutating unknown dimensions identified by -1 in {signature}"
            )
        if shape != self._shape(input_index):
            self._shapes[input_index] = shape
            if shape == tuple(stated["shape"]):
                del self._shapes[input_index]
            self._session, self._is_ready = None, False
            self._feeds.pop(input_index, None)

    def _shape(self, index: int) -> Shape:
        return self._shapes.get(index) or tuple(self._inputs[index]["shape"].tolist())

    def get_input_details(self) -> list[Details]:
        """Return a description of each input: name, index, shape, type, quantisation."""
        return [self._get_tensor_details(index, 0) for index in self._stated.inputs()]

    def get_output_details(self) -> list[Details]:
        """Return a description of each output.

        Their shapes follow those of the inputs once these are allocated.
        """
        return [self._get_tensor_details(index, 0) for index in self._stated.outputs()]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """Return a description of each tensor.

        Raises:
            ValueError: There is no such subgraph.
        """
        if not 0 <= subgraph_index < self._stated.num_subgraphs:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model, which has "
                f"{self._stated.num_subgraphs} subgraphs."
            )
        count = self._stated.num_tensors(subgraph_index)
        return [self._get_tensor_details(index, subgraph_index) for index in range(count)]

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int = 0) -> Details:
        self._check(tensor_index, subgraph_index)
        found = self._stated.details(int(tensor_index), subgraph_index)
        is_fixed = (found["shape_signature"] >= 0).all()
        if subgraph_index == 0 and tensor_index in self._shapes:
            found["shape"] = np.array(self._shapes[tensor_index], np.int32)
        elif subgraph_index == 0 and tensor_index in self._outputs and self._is_ready:
            found["shape"] = np.array(self._view(tensor_index).shape, np.int32)
        if is_fixed:
            found["shape_signature"] = found["shape"].copy()
        return found

    def _get_op_details(self, op_index: int) -> Details:
        operators = self._stated.operators()
        if not 0 <= op_index < len(operators):
            raise ValueError(f"Invalid node index {op_index}: the model has {len(operators)}")
        return operators[op_index]

    def _get_ops_details(self) -> list[Details]:
        return self._stated.operators()

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return self._stated.num_subgraphs

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy a value into an input.

        Args:
            tensor_index: Index of the tensor.
            value: An array of its type and shape.

        Raises:
            ValueError: There is no such tensor, it is not allocated, or has another type or shape.
        """
        target = self._feeds.get(tensor_index)
        if target is None:
            self._check(tensor_index, 0)
            if tensor_index in self._inputs:
                raise ValueError(
                    "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors()"
                )
            target = self._view(tensor_index)
        array = np.asarray(value)
        refusal = None
        if array.dtype != target.dtype:
            kinds = [TYPE_NAMES.get(each.dtype, str(each.dtype)) for each in (array, target)]
            name = self._stated.details(tensor_index)["name"]
            refusal = (
                f"Got value of type {kinds[0]} but expected type {kinds[1]} for input "
                f"{tensor_index}, name: {name} "
            )
        elif array.ndim != target.ndim:
            refusal = (
                f"Dimension mismatch. Got {array.ndim} but expected {target.ndim} for input "
                f"{tensor_index}."
            )
        elif array.shape != target.shape:
            pairs = enumerate(zip(array.shape, target.shape, strict=True))
            axis, (got, wanted) = next(each for each in pairs if each[1][0] != each[1][1])
            refusal = (
                f"Dimension mismatch. Got {got} but expected {wanted} for dimension {axis} of "
                f"input {tensor_index}."
            )
        elif not target.flags.writeable:
            refusal = f"Tensor {tensor_index} is a constant."
        if refusal is not None:
            raise ValueError(f"Cannot set tensor: {refusal}")
        target[...] = array

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a copy of an input, an output or a constant.

        Results of other operators are kept with `experimental_preserve_all_tensors` alone.

        Raises:
            ValueError: There is no such tensor, or it holds nothing.
        """
        if subgraph_index:
            self._check(tensor_index, subgraph_index)
            found = self._stated.constant(tensor_index, subgraph_index)
            if found is None:
                raise ValueError(
                    f"subgraph {subgraph_index} is not run: of its tensors only constants are held"
                )
            return found.copy()[()]
        copied = np.array(self._view(tensor_index), order="C")
        return copied if copied.ndim else copied[()]

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that gives a view of a tensor, to read or to write inputs."""
        return lambda: self._view(tensor_index)

    def invoke(self) -> None:
        """Run the model once.

        Raises:
            RuntimeError: `allocate_tensors` was not called since the last resize.
        """
        if not self._is_ready or self._session is None:
            raise RuntimeError("Invoke called on model that is not ready: call allocate_tensors()")
        try:
            self._session.run(self._fed, copy=False)
        except SessionForkedError:  # a child of the process, where its threads are not
            self._session, self._is_ready = None, False
            self.allocate_tensors()
            self.invoke()

    def reset_all_variables(self) -> None:
        """Set the variables of the model to what they hold before its first run."""
        if self._session is not None:
            self._session.reset()

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures, by key."""
        return self._stated.signatures

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs of each signature, by its key."""
        return {
            key: {"inputs": list(each.inputs), "outputs": list(each.outputs)}
            for key, each in self.signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a function that runs the model with inputs and outputs by name.

        Args:
            signature_key: Key of the signature; None if the model has just one.

        Raises:
            ValueError: There is no such signature, or it runs another subgraph than the first.
        """
        if signature_key is None:
            known = self.signatures
            if len(known) != 1:
                raise ValueError(
                    f"SignatureDef signature_key is None and model has {len(known)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(known))
        return SignatureRunner(self, signature_key)

    @staticmethod
    def _require_integer(index: int) -> None:
        if not isinstance(index, int | np.integer):
            raise TypeError(f"tensor_index is a {type(index).__name__}; give an integer")

    def _check(self, index: int, subgraph: int) -> None:
        """Check that there is a tensor.

        Raises:
            ValueError: There is none of this index.
        """
        self._require_integer(index)
        if not 0 <= subgraph < self._stated.num_subgraphs:
            raise ValueError(
                f"Invalid subgraph index {subgraph} exceeds max subgraph index "
                f"{self._stated.num_subgraphs}"
            )
        count = self._stated.num_tensors(subgraph)
        if not 0 <= index < count:
            raise ValueError(f"Invalid tensor index {index} exceeds max tensor index {count}")

    def _view(self, index: int) -> Array:
        """Return the memory of a tensor.

        Raises:
            ValueError: It has none, or there is no such tensor.
        """
        found = self._feeds.get(index)
        if found is None and self._is_ready and self._session and index in self._outputs:
            found = self._session.outputs[self._outputs[index]].view
        if found is not None:
            return found
        self._check(index, 0)
        found = self._stated.constant(index)
        if found is not None:
            return found
        if index in self._inputs or not self._is_ready or self._session is None:
            raise ValueError("Tensor data is null. Run allocate_tensors() first")
        name = self._stated.details(index)["name"]
        if name in self._session.states:
            return self._session.states[name]
        raise ValueError(
            f"tensor {index}, {name!r}, is neither an input nor an output: its memory is used by "
            "others; give experimental_preserve_all_tensors=True to keep it"
        )


class InterpreterWithCustomOps(Interpreter):
    """`Interpreter` without operators of the caller's own.

    Args:
        custom_op_registerers: Libraries that register kernels: none can be given.
        options: Arguments of `Interpreter`.

    Raises:
        ValueError: Kernels are given.
    """

    def __init__(self, custom_op_registerers: Sequence[object] = (), **options: Any) -> None:
        if custom_op_registerers:
            raise ValueError("custom_op_registerers are unsupported: leave them out")
        super().__init__(**options)


def _fits(shape: Shape, signature: Shape) -> bool:
    """Tell whether a shape has the lengths that a signature states."""
    return len(shape) == len(signature) and all(
        known in (-1, length) for known, length in zip(signature, shape, strict=True)
    )


def _threads(stated: int | None) -> int:
    if stated is None:
        return 1
    if not isinstance(stated, int):
        raise ValueError("type of num_threads should be int")
    if stated < 1:
        raise ValueError("num_threads should >= 1")
    return min(int(stated), MAX_THREADS)
