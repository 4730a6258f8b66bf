"""Interpreters of TensorFlow Lite Micro that share an allocator, with the plan of a system."""

from collections.abc import Mapping

import numpy as np

from arenite.pipeline.systems import TflmSystem
from arenite.runtime.targets.tflm import read_tflm_model
from bench.harness.shared_micro import SharedInterpreters


class SharedHead:
    """The arena, and the interpreters of a system.

    Args:
        planned: The system.
        poison: Fills the head at first.
        arena_bytes: Bytes of the arena.
    """

    def __init__(self, planned: TflmSystem, poison: int, arena_bytes: int = 2**26) -> None:
        self._places = {name: planned.shared.places(name) for name in planned.members}
        handed = {each.target for each in planned.system.connections}
        self._ports = {}
        for name in planned.members:
            program = read_tflm_model(planned.system.models[name].path).program
            given = [
                (index, port.name) for index, port in enumerate(program.inputs)
                if f"{name}.{port.name}" not in handed
            ]  # fmt: skip
            self._ports[name] = (
                given,
                [(port.name, program.tensors[port.tensor]) for port in program.outputs],
            )
        self._numbers = {name: number for number, name in enumerate(planned.members)}
        self._made = SharedInterpreters(
            [each.data for each in planned.members.values()], arena_bytes
        )
        self._made.poison(poison, planned.head)

    @property
    def used_bytes(self) -> int:
        """Bytes of the arena that all models take."""
        return self._made.used_bytes

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run a model; what other models hand on lies in the head."""
        given, outputs = self._ports[name]
        found = self._made.run(
            self._numbers[name], {index: inputs[port].tobytes() for index, port in given},
            len(outputs),
        )  # fmt: skip
        return {
            port: np.frombuffer(data, tensor.dtype.label).reshape(tensor.shape)
            for (port, tensor), data in zip(outputs, found, strict=True)
        }

    def tensor(self, model: str, name: str, like: np.ndarray) -> np.ndarray:
        """Return a tensor of a model as it lies in the head now."""
        held = self._made.head(self._places[model][name], like.nbytes)
        return np.frombuffer(held, like.dtype).reshape(like.shape)
