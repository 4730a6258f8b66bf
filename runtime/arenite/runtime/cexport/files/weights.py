"""NAME_weights.c: the constants, as text or, where they are large, beside a binary file."""

import numpy as np

from arenite.planner import Array
from arenite.runtime.cexport.base.external import ExternalWeights
from arenite.runtime.cexport.base.layout import FlashConstants
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.base.text import TYPES, elements

HAS_VECTORS = "defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)"
"""Condition of processors with vectors, as the kernels have it."""
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
        f"{_chosen(array, constants.of_vectors.get(symbol))}\n}};\n"
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
    array, of_vectors = (
        np.frombuffer(bytes(each), np.uint8) for each in (weights.data, weights.of_vectors)
    )
    chosen = _chosen(array, of_vectors)
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
    if weights.has_vectors:
        files[f"{name}_external_mve.bin"] = bytes(weights.of_vectors)
    return files


def _chosen(array: Array, of_vectors: Array | None) -> str:
    """Return the elements of an array, which may be others on a processor with vectors."""
    text = elements(array)
    if of_vectors is None or np.array_equal(array, of_vectors):
        return text
    return f"#if {HAS_VECTORS}\n{elements(of_vectors)}\n#else\n{text}\n#endif"


def _binary(name: str, constants: FlashConstants) -> dict[str, str | bytes]:
    macro = f"{name.upper()}_WEIGHTS"
    data = bytearray()
    lines: list[str] = []

    def included(array: Array) -> str:
        """Add an array to the file, and return the line that includes it."""
        data.extend(b"\0" * (-len(data) % 4))
        line = f'    ".incbin \\"{name}_weights.bin\\", {len(data)}, {array.nbytes}\\n"'
        data.extend(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return line

    for symbol, array in constants.arrays.items():
        file = [included(array)]
        if symbol in constants.of_vectors:
            of_vectors = included(constants.of_vectors[symbol])
            file = [f"#if {HAS_VECTORS}", of_vectors, "#else", *file, "#endif"]
        lines += [
            "__asm__(",
            f'    ".pushsection " {macro}_SECTION "\\n"',
            f'    ".global {symbol}\\n.balign 4\\n{symbol}:\\n"',
            *file,
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
