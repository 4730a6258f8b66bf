"""NAME_weights.c: the constants, as text or, where they are large, beside a binary file."""

from collections.abc import Mapping

import numpy as np

from arenite.planner import Array
from arenite.runtime.cexport.base.external import ExternalWeights
from arenite.runtime.cexport.base.layout import FlashConstants
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.base.orders import InstructionSet, Orders, little_endian
from arenite.runtime.cexport.base.text import TYPES, elements

_OPEN = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
_CLOSE = "#ifdef __cplusplus\n}\n#endif\n"


def declarations(constants: FlashConstants) -> str:
    if not constants.arrays:
        return ""
    lines = [
        f"extern const {TYPES[array.dtype.name]} {name}[{array.size}];"
        for name, array in constants.arrays.items()
    ]
    return f"{_OPEN}{chr(10).join(lines)}\n{_CLOSE}"


def files(name: str, constants: FlashConstants, options: COptions) -> dict[str, str | bytes]:
    """Return the file of the constants, and the binary file if they are large."""
    if constants.num_bytes >= options.large_weights:
        return _binary(name, constants)
    macro = f"{name.upper()}_WEIGHTS"
    definitions = [
        f"{macro} const {TYPES[array.dtype.name]} {symbol}[{array.size}] = {{\n"
        f"{_chosen(array, constants.orders.get(symbol, {}))}\n}};\n"
        for symbol, array in constants.arrays.items()
    ]
    has_specials = any("NAN" in each or "INFINITY" in each for each in definitions)
    parts = [
        "/* Prefix of the definitions of weights, such as a section attribute. */",
        f"#ifndef {macro}\n#define {macro}\n#endif\n",
        *(["#include <math.h>"] if has_specials else []),
        "#include <stdint.h>\n",
        declarations(constants),
        *definitions,
    ]
    return {f"{name}_weights.c": "\n".join(parts)}


def external_files(name: str, weights: ExternalWeights) -> dict[str, str | bytes]:
    """Return what belongs into external flash, and an array of it with which a test does."""
    if not weights.is_used:
        return {}
    array = np.frombuffer(bytes(weights.data), np.uint8)
    others = weights.others
    orders = {each: np.frombuffer(data, np.uint8) for each, data in others.items()}
    chosen = _chosen(array, orders)
    lines = [
        f"/* The bytes of {name}_external.bin as an array for tests, with functions that copy",
        "   from it. A firmware has functions of its own. */",
        f'#include "{name}.h"\n',
        "#include <string.h>\n",
        f"static const uint8_t {name}_external[{array.size}] = {{\n{chosen}\n}};\n",
        f"void {name}_fetch_init(void)\n{{\n}}\n",
        f"void {name}_fetch_start(uint8_t *to, uint32_t offset, uint32_t count)\n{{\n"
        f"    memcpy(to, {name}_external + offset, count);\n}}\n",
        f"void {name}_fetch_wait(void)\n{{\n}}\n",
    ]
    files: dict[str, str | bytes] = {
        f"{name}_external.h": "\n".join(lines), f"{name}_external.bin": bytes(weights.data)
    }  # fmt: skip
    for each, data in others.items():
        files[f"{name}_external_{each.name}.bin"] = data
    return files


def _chosen(array: Array, orders: Orders) -> str:
    """Return the elements of an array, which may be others for some instruction sets."""
    others = {each: elements(other) for each, other in orders.items()}
    return "\n".join(_by_instructions(elements(array), others))


def _by_instructions(text: str, others: Mapping[InstructionSet, str]) -> list[str]:
    """Return a text of portable C beside those for instruction sets."""
    if not others:
        return [text]
    lines: list[str] = []
    for each, other in others.items():
        lines += [f"#{'elif' if lines else 'if'} {each.condition}", other]
    return [*lines, "#else", text, "#endif"]


def _binary(name: str, constants: FlashConstants) -> dict[str, str | bytes]:
    macro = f"{name.upper()}_WEIGHTS"
    data = bytearray()
    lines: list[str] = []

    def included(array: Array) -> str:
        """Add an array to the file, and return the line that includes it."""
        data.extend(b"\0" * (-len(data) % 4))
        line = f'    ".incbin \\"{name}_weights.bin\\", {len(data)}, {array.nbytes}\\n"'
        data.extend(little_endian(array))
        return line

    for symbol, array in constants.arrays.items():
        text = included(array)
        orders = constants.orders.get(symbol, {})
        others = {each: included(other) for each, other in orders.items()}
        lines += [
            "__asm__(",
            f'    ".pushsection " {macro}_SECTION "\\n"',
            f'    ".global {symbol}\\n.balign 4\\n{symbol}:\\n"',
            *_by_instructions(text, others),
            '    ".popsection\\n");',
        ]
    text = "\n".join(
        [
            "/* The constants are in a binary file, little-endian, which the assembler of GCC or",
            "   Clang includes; it looks for it where headers are looked for, by -I. */",
            f"#ifndef {macro}_SECTION",
            f'#define {macro}_SECTION ".rodata.{name}_weights,\\"a\\""',
            "#endif",
            "",
            *lines,
            "",
        ]
    )
    return {f"{name}_weights.c": text, f"{name}_weights.bin": bytes(data)}
