"""NAME_test.c: a program that runs the model on known inputs and checks the outputs."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.runtime.cexport.base.layout import Component, CPort, Interface
from arenite.runtime.cexport.base.options import ROTATION, Vectors
from arenite.runtime.cexport.base.text import elements, number
from arenite.runtime.cexport.files import storage

Check: TypeAlias = tuple[Interface, Vectors | None]
"""A model, and what is checked of it."""


def files(
    component: Component, checks: Sequence[Sequence[Check]], *, is_fetching: bool = False
) -> dict[str, str]:
    """Return the test program.

    Args:
        component: What it runs.
        checks: For each of the sizes that are tested, the models in the order that they run in.
        is_fetching: Whether a run fetches weights: the test does so from an array.
    """
    lines = _lines(component, checks, is_fetching=is_fetching)
    return {f"{component.name}_test.c": "\n".join(lines) + "\n"}


def _lines(
    component: Component, checks: Sequence[Sequence[Check]], *, is_fetching: bool
) -> Iterator[str]:
    name, macro = component.name, component.macro
    all_checks = [check for some in checks for check in some]
    references = dict.fromkeys(each.reference for _, each in all_checks if each is not None)
    yield f"/* Runs {name} on known inputs and checks its outputs. Define {macro}_TEST_NO_MAIN to"
    yield f"   call {name}_test yourself. */"
    if not references:
        yield "/* No reference computed outputs: the test only runs the model. */"
    else:
        yield f"/* Outputs by {' and '.join(references)}. */"
    yield f'#include "{name}.h"'
    yield ""
    if any(each is not None and _needs_difference(at, each) for at, each in all_checks):
        yield "#include <math.h>"
    yield f"#if defined(ARDUINO) && !defined({macro}_TEST_NO_MAIN)"
    yield f"#define {macro}_TEST_NO_MAIN /* its builder compiles every file of a library */"
    yield "#endif"
    yield f"#ifndef {macro}_TEST_NO_MAIN"
    yield "#include <stdio.h>"
    yield "#endif"
    yield "#include <string.h>"
    if is_fetching:
        yield f"#ifndef {macro}_TEST_NO_MAIN"
        yield f'#include "{name}_external.h"'
        yield "#endif"
    yield ""
    for index, some in enumerate(checks):
        for at, found in some:
            if found is not None:
                yield from _arrays(at, found, _suffix(index))
    yield "#ifdef __cplusplus"
    yield 'extern "C"'
    yield "#endif"
    arena = component.models[0].arena_parameter
    yield f"int {name}_test({arena});"
    yield ""
    yield "/* Return how many elements of outputs are wrong, or -1 if the model does not run. */"
    yield f"int {name}_test({arena})"
    yield "{"
    yield "    int wrong = 0;"
    for index, some in enumerate(checks):
        yield from _runs(some, _suffix(index))
    yield "    return wrong;"
    yield "}"
    yield ""
    yield from (
        f"#ifndef {macro}_TEST_NO_MAIN",
        *storage.defined(component),
        "int main(void)",
        "{",
        f"    const int wrong = {name}_test({storage.address(component)});",
        f'    printf("{name}: %d wrong\\n", wrong);',
        "    return wrong != 0;",
        "}",
        "#endif",
    )


def _suffix(index: int) -> str:
    """Return what the names of arrays end with, for further sizes."""
    return f"_at_{index}" if index else ""


def _arrays(interface: Interface, vectors: Vectors, suffix: str) -> Iterator[str]:
    name = interface.name
    for each in interface.inputs:
        yield from _array(
            f"{name}_given_{each.name}{suffix}", each, vectors.inputs[each.port.name]
        )
    for each in interface.outputs:
        arrays = [outputs[each.port.name] for outputs in vectors.outputs]
        symbol = f"{name}_expected_{each.name}{suffix}"
        if each.is_counted:
            sizes = [array.size for array in arrays]
            yield f"static const int32_t {symbol}_elements[] = {{{', '.join(map(str, sizes))}}};"
            yield ""
            most = max(1, *sizes)
            arrays = [np.pad(array.reshape(-1), (0, most - array.size)) for array in arrays]
        yield from _array(symbol, each, np.stack(arrays))


def _runs(checks: Sequence[Check], suffix: str) -> Iterator[str]:
    """Yield the runs of all models at some sizes, and the checks of their outputs."""
    yield from (f"    {interface.name}_reset(arena);" for interface, _ in checks)
    counts = [1 if vectors is None else len(vectors.outputs) for _, vectors in checks]
    indent = "    "
    is_tested = any(vectors is not None for _, vectors in checks)
    if is_tested:
        yield f"    for (int32_t run = 0; run < {min(counts)}; ++run) {{"
        indent *= 2
    for interface, vectors in checks:
        for each in interface.inputs:
            if vectors is None:
                place = _place(interface, "input", each)
                yield f"{indent}memset({place}, 0, {each.tensor.size});"
            else:
                yield from _rotated(interface, each, suffix)
        yield from _counts(interface, indent)
        yield f"{indent}if ({interface.name}_run(arena{_arguments(interface)}) != 0)"
        yield f"{indent}    return -1;"
        if vectors is not None:
            for each in interface.outputs:
                yield from _comparison(interface, each, vectors, suffix)
    for interface, vectors in checks:  # what is kept is there when all have run
        if vectors is not None:
            for each in interface.kept:
                yield from _comparison(interface, each, vectors, suffix)
    if is_tested:
        yield "    }"


def _arguments(interface: Interface, count: str = "&n_") -> str:
    """Return the arguments of a run behind the arena, or of functions that return lengths."""
    return "".join(
        f", {count}{name}" if dimension.counted_by else f", {interface.sizes[dimension.name]}"
        for dimension, name in zip(interface.dimensions, interface.parameters, strict=True)
    )


def _counts(interface: Interface, indent: str) -> Iterator[str]:
    """Yield the variables that a run writes its counts to."""
    for dimension, name in zip(interface.dimensions, interface.parameters, strict=True):
        if dimension.counted_by:
            yield f"{indent}int32_t n_{name} = 0;"


def _array(symbol: str, port: CPort, array: NDArray[Any]) -> Iterator[str]:
    yield f"static const {port.c_type} {symbol}[{array.size}] = {{"
    yield elements(array)
    yield "};"
    yield ""


def _place(interface: Interface, kind: str, port: CPort) -> str:
    """Return the call that returns where an input or an output lies."""
    sizes = [str(interface.sizes[name]) for name in interface.given] if port.is_moved else []
    return f"{interface.name}_{kind}_{port.name}({', '.join(['arena', *sizes])})"


def _rotated(interface: Interface, port: CPort, suffix: str) -> Iterator[str]:
    """Yield the copy of an input, rotated by some elements more with every run."""
    name = interface.name
    count = port.tensor.num_elements
    yield f"        for (int32_t i = 0; i < {count}; ++i)"
    yield f"            {_place(interface, 'input', port)}[i] ="
    yield f"                {name}_given_{port.name}{suffix}[(i + run * {ROTATION}) % {count}];"


def _needs_difference(interface: Interface, vectors: Vectors) -> bool:
    return vectors.units > 0 or any(each.c_type == "float" for each in interface.outputs)


def _comparison(interface: Interface, port: CPort, vectors: Vectors, suffix: str) -> Iterator[str]:
    name, count = interface.name, str(port.tensor.num_elements)
    found = f"{_place(interface, 'output', port)}[i]"
    symbol = f"{name}_expected_{port.name}{suffix}"
    stride = count
    if port.is_counted:
        arrays = [outputs[port.port.name] for outputs in vectors.outputs]
        stride, count = str(max(1, *(each.size for each in arrays))), f"{symbol}_elements[run]"
        made = f"{name}_output_{port.name}_elements({_arguments(interface, 'n_')[2:]})"
        yield f"        wrong += {made} != {count};"
    expected = f"{symbol}[run * {stride} + i]"
    yield f"        for (int32_t i = 0; i < {count}; ++i)"
    difference = f"fabsf((float){found} - (float){expected})"
    if port.c_type == "float":
        arrays = [outputs[port.port.name] for outputs in vectors.outputs]
        scale = max(float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in arrays)
        most = number(max(scale, 1e-30) * vectors.share)
        yield f"            wrong += !({difference} <= {most} || {found} == {expected} ||"
        yield f"                       ({found} != {found} && {expected} != {expected}));"
    elif vectors.units:
        yield f"            wrong += !({difference} <= {number(float(vectors.units))});"
    else:
        yield f"            wrong += {found} != {expected};"
