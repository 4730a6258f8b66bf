"""A program file at one size of its range, by the file alone.

Nothing here knows how programs are made: which lengths, offsets and numbers of steps are
expressions, and of what, follows from the tables that `docs/program-file.md` and the schema state.
"""

from collections.abc import Iterator, Mapping, MutableSequence
from typing import Any, TypeAlias

Root: TypeAlias = Mapping[str, Any]


def root_at(root: Root, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the root table with the lengths, offsets and numbers that it has at some sizes.

    Turns are those of the highest sizes; rows, and tables of an image's rows, go on behind those
    that there are.

    Args:
        sizes: Values of all its dimensions.

    Cost: O(tensors + expressions + the moves of copies whose numbers depend on sizes).
    """
    values = _values(root, sizes)
    tensors = [dict(each) for each in root["tensors"]]
    for each in root.get("axes", ()):
        tensor = tensors[each.get("tensor", 0)]
        shape = list(tensor["shape"])
        shape[each.get("axis", 0)] = values[each.get("expression", 0)]
        tensor["shape"] = shape
    for each in root.get("offsets", ()):
        tensors[each.get("tensor", 0)]["offset"] = values[each.get("expression", 0)]
    steps = list(root["steps"])
    numbers: dict[int, dict[int, int]] = {}
    for each in root.get("numbers", ()):
        of_step = numbers.setdefault(each.get("step", 0), {})
        of_step[each.get("number", 0)] = values[each.get("expression", 0)]
    for index, found in numbers.items():
        steps[index] = _with_numbers(steps[index], found)
    return {**root, "tensors": tensors, "steps": steps}


def _values(root: Root, sizes: Mapping[str, int]) -> list[int]:
    """Return the values of the expressions."""
    names = [each["name"] for each in root.get("dimensions", ())]
    values: list[int] = []
    for each in root.get("expressions", ()):
        operation, a, b = each.get("operation", "constant"), each.get("a", 0), each.get("b", 0)
        if operation == "constant":
            values.append(a)
        elif operation == "dimension":
            values.append(sizes[names[a]])
        elif operation == "add":
            values.append(values[a] + values[b])
        elif operation == "multiply":
            values.append(values[a] * values[b])
        elif operation == "divide":
            values.append(values[a] // values[b])
        else:
            values.append((max if operation == "maximum" else min)(values[a], values[b]))
    return values


def _with_numbers(step: Root, found: Mapping[int, int]) -> dict[str, Any]:
    """Return a step with other numbers, counted as the schema says."""
    kernel = {
        name: list(value) if isinstance(value, list) else value
        for name, value in step["kernel"].items()
    }
    if step["kernel_type"] == "Copy":
        kernel["moves"] = [
            {name: list(each) if isinstance(each, list) else each for name, each in move.items()}
            for move in kernel["moves"]
        ]
        places = list(_of_moves(kernel["moves"]))
    else:
        places = [(kernel.get("padding", []), side) for side in range(4)]
        if step["kernel_type"] == "Pool2D":
            places += [(kernel["window"], 0), (kernel["window"], 1)]
    for number, value in found.items():
        if number < len(places):  # tiles of a convolution are no rows
            holder, key = places[number]
            holder[key] = value
    return {**step, "kernel": kernel}


def _of_moves(
    moves: list[dict[str, Any]],
) -> Iterator[tuple[MutableSequence[int] | dict[str, Any], Any]]:
    """Yield where each number of some moves stands."""
    for move in moves:
        axes = range(len(move.get("shape", ())))
        yield from ((move["shape"], axis) for axis in axes)
        yield move, "input_start"
        yield from ((move["input_strides"], axis) for axis in axes)
        yield move, "output_start"
        yield from ((move["output_strides"], axis) for axis in axes)
