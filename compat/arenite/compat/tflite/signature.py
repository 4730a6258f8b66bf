"""A signature of a model: a function with inputs and outputs by name."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from arenite.compat.tflite.file import Details, Signature


class Runs(Protocol):
    """What a signature calls of its interpreter."""

    @property
    def signatures(self) -> Mapping[str, Signature]: ...
    def resize_tensor_input(self, input_index: int, tensor_size: Any) -> None: ...
    def allocate_tensors(self) -> None: ...
    def set_tensor(self, tensor_index: int, value: Any) -> None: ...
    def invoke(self) -> None: ...
    def get_tensor(self, tensor_index: int) -> Any: ...
    def get_input_details(self) -> list[Details]: ...
    def get_output_details(self) -> list[Details]: ...


class SignatureRunner:
    """A signature of an interpreter, called with the inputs by name.

    Args:
        interpreter: The interpreter.
        signature_key: Key of the signature.

    Raises:
        ValueError: There is no such signature, or it runs another subgraph than the first.
    """

    def __init__(self, interpreter: Runs, signature_key: str) -> None:
        known = interpreter.signatures
        if signature_key not in known:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')
        self._interpreter = interpreter
        self._signature = known[signature_key]
        self._subgraph_index = self._signature.subgraph  # which tools of LiteRT read
        if self._subgraph_index:
            raise ValueError(
                f"signature {signature_key!r} runs subgraph {self._subgraph_index}: only the "
                "first subgraph can be run"
            )

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        """Run the model on arrays whose shapes it takes.

        Args:
            inputs: An array for each input.

        Returns:
            A copy of each output, by name.

        Raises:
            ValueError: An input is missing, or there is none of a name, or it has another type.
            RuntimeError: The model does not take these shapes.
        """
        wanted, interpreter = self._signature.inputs, self._interpreter
        if len(inputs) != len(wanted):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, expected "
                f"{len(wanted)} vs provided {len(inputs)}"
            )
        for name, value in inputs.items():
            if name not in wanted:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            interpreter.resize_tensor_input(wanted[name], np.shape(value))
        interpreter.allocate_tensors()
        for name, value in inputs.items():
            interpreter.set_tensor(wanted[name], value)
        interpreter.invoke()
        outputs = self._signature.outputs
        return {name: interpreter.get_tensor(index) for name, index in outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """Return a description of each input, by name."""
        return _by_name(self._signature.inputs, self._interpreter.get_input_details())

    def get_output_details(self) -> dict[str, Details]:
        """Return a description of each output, by name."""
        return _by_name(self._signature.outputs, self._interpreter.get_output_details())


def _by_name(tensors: Mapping[str, int], described: Sequence[Details]) -> dict[str, Details]:
    by_index = {each["index"]: each for each in described}
    return {name: by_index[index] for name, index in tensors.items()}
