"""NAME_test.c: a program that runs the model on known inputs and checks the outputs."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from arenite.runtime.cexport.base.layout import CPort, Interface
from arenite.runtime.cexport.base.options import Vectors
from arenite.runtime.cexport.base.text import elements, number


def files(interface: Interface, vectors: Vectors | None) -> dict[str, str]:
    """Return the test program."""
    return {f"{interface.name}_test.c": "\n".join(_lines(interface, vectors)) + "\n"}


def _lines(interface: Interface, vectors: Vectors | None) -> Iterator[str]:
    name, macro = interface.name, interface.macro
    yield f"/* Runs {name} on known inputs and checks its outputs. Define {macro}_TEST_NO_MAIN to"
    yield f"   call {name}_test yourself. */"
    if vectors is None:
        yield "/* No reference was there to compute outputs: it only runs. */"
    else:
        yield f"/* Outputs by {vectors.reference}. */"
    yield f'#include "{name}.h"'
    yield ""
    if vectors is not None and vectors.tolerance:
        yield "#include <math.h>"
    yield f"#if defined(ARDUINO) && !defined({macro}_TEST_NO_MAIN)"
    yield f"#define {macro}_TEST_NO_MAIN /* its builder compiles every file of a library */"
    yield "#endif"
    yield f"#ifndef {macro}_TEST_NO_MAIN"
    yield "#include <stdio.h>"
    yield "#endif"
    yield "#include <string.h>"
    yield ""
    if vectors is not None:
        for each in interface.inputs:
            yield from _array(f"{name}_given_{each.name}", each, vectors.inputs[each.port.name])
        for each in interface.outputs:
            yield from _array(
                f"{name}_expected_{each.name}", each, vectors.outputs[each.port.name]
            )
    yield "#ifdef __cplusplus"
    yield 'extern "C"'
    yield "#endif"
    yield f"int {name}_test(uint8_t *arena);"
    yield ""
    yield "/* Return how many elements of outputs are wrong, or -1 if the model does not run. */"
    yield f"int {name}_test(uint8_t *arena)"
    yield "{"
    yield "    int wrong = 0;"
    yield f"    {name}_reset(arena);"
    for each in interface.inputs:
        place = f"{name}_input_{each.name}(arena)"
        if vectors is None:
            yield f"    memset({place}, 0, {each.tensor.size});"
        else:
            yield f"    memcpy({place}, {name}_given_{each.name}, {each.tensor.size});"
    yield f"    if ({name}_run(arena) != 0)"
    yield "        return -1;"
    if vectors is not None:
        for each in interface.outputs:
            yield from _comparison(name, each, vectors.tolerance)
    yield "    return wrong;"
    yield "}"
    yield ""
    yield from (
        f"#ifndef {macro}_TEST_NO_MAIN",
        f"{macro}_ARENA static union {{",
        f"    uint8_t bytes[{macro}_ARENA_BYTES];",
        "    int64_t aligned;",
        "} arena;",
        "",
        "int main(void)",
        "{",
        f"    const int wrong = {name}_test(arena.bytes);",
        f'    printf("{name}: %d wrong\\n", wrong);',
        "    return wrong != 0;",
        "}",
        "#endif",
    )


def _array(symbol: str, port: CPort, array: NDArray[Any]) -> Iterator[str]:
    yield f"static const {port.c_type} {symbol}[{port.tensor.num_elements}] = {{"
    yield elements(array)
    yield "};"
    yield ""


def _comparison(name: str, port: CPort, tolerance: float) -> Iterator[str]:
    found, expected = f"{name}_output_{port.name}(arena)", f"{name}_expected_{port.name}"
    yield f"    for (int i = 0; i < {port.tensor.num_elements}; ++i)"
    if not tolerance:
        yield f"        wrong += {found}[i] != {expected}[i];"
        return
    difference = f"fabsf((float){found}[i] - (float){expected}[i])"
    if port.c_type == "float":
        yield (
            f"        wrong += !({difference} <= {number(tolerance)} + {number(tolerance)} * "
            f"fabsf({expected}[i]));"
        )
    else:
        yield f"        wrong += !({difference} <= {number(tolerance)});"
