"""Caches of an ONNX file: inputs that an output continues, such as past and present keys.

Exporters of decoders write them in pairs: `past_key_values.0.key` of P tokens goes in, and
`present.0.key` of P + S tokens comes out, which the caller feeds back. Where the dimension P grows
(`0..255+`), such a pair is found by the operator that reads one and makes the other, or else by
the names. Beside them other pairs of these names and of one shape, such as the last samples of a
convolution, are states that a run replaces.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import onnx

from arenite.planner.errors import BindingError
from arenite.planner.importers.onnx.binding import Binding
from arenite.planner.importers.onnx.states import States
from arenite.planner.sizes import Expression


def with_caches(states: States, graph: onnx.GraphProto, binding: Binding) -> States:
    """Return the states of a file, with the caches that its growing dimensions make of inputs.

    Args:
        states: The states that the file itself names; those that grow are no longer among them.
        graph: The graph.
        binding: Its inputs, with every dimension known.

    Raises:
        BindingError: No output continues an input that grows.

    Cost: O(nodes + inputs).
    """
    growing = {Expression.of(each.size): each.name for each in binding.ranges if each.grows}
    if not growing:
        return states
    inputs = {
        name: growing[length]
        for name, each in binding.inputs.items()
        for length in map(Expression.of, each.shape)
        if length in growing
    }
    outputs = {value.name for value in graph.output}
    made = dict(_by_operators(graph, inputs, outputs))
    named = dict(_by_names(binding.inputs, outputs))
    stated = states.replaced_by
    continued: dict[str, str] = {}
    for name, dimension in inputs.items():
        present = stated.get(name) or made.get(name) or named.get(name)
        if present is None:
            raise BindingError(
                dimension,
                f"grows, but no output continues input {name!r}, which has it; leave out the + "
                "of its range, or name the output in the metadata 'arenite.states'",
            )
        continued[name] = present
    taken = {*continued.values(), *stated.values()}
    fixed = {
        name: new
        for name, new in named.items()
        if name not in inputs and name not in stated and new not in taken
    }
    kept = {name: new for name, new in stated.items() if name not in continued}
    return replace(states, replaced_by={**kept, **fixed}, continued_by=continued)


def _by_operators(
    graph: onnx.GraphProto, inputs: Iterable[str], outputs: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield pairs that one operator reads and makes; of several, in their order."""
    inputs, outputs = set(inputs), set(outputs)
    for node in graph.node:
        read = [name for name in node.input if name in inputs]
        written = [name for name in node.output if name in outputs]
        if read and len(read) == len(written):
            yield from zip(read, written, strict=True)


def _by_names(inputs: Iterable[str], outputs: set[str]) -> Iterator[tuple[str, str]]:
    for name in inputs:
        for old in ("past_key_values", "past"):
            present = name.replace(old, "present", 1)
            if present != name and present in outputs:
                yield name, present
                break
