"""NAME_weights.c: the constants, as text or, where they are large, beside a binary file."""

from arenite.runtime.cexport.base.layout import FlashConstants
from arenite.runtime.cexport.base.options import COptions
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
        f"{elements(array)}\n}};\n"
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


def _binary(name: str, constants: FlashConstants) -> dict[str, str | bytes]:
    macro = f"{name.upper()}_WEIGHTS"
    data = bytearray()
    lines: list[str] = []
    for symbol, array in constants.arrays.items():
        data += b"\0" * (-len(data) % 4)
        lines += [
            "__asm__(",
            f'    ".pushsection " {macro}_SECTION "\\n"',
            f'    ".global {symbol}\\n.balign 4\\n{symbol}:\\n"',
            f'    ".incbin \\"" {macro}_FILE "\\", {len(data)}, {array.nbytes}\\n"',
            '    ".popsection\\n");',
        ]
        data += array.astype(array.dtype.newbyteorder("<")).tobytes()
    text = "\n".join(
        [
            "/* The constants are in a binary file, little-endian, which the assembler of GCC or",
            "   Clang includes. */",
            f"#ifndef {macro}_FILE",
            f'#define {macro}_FILE "{name}_weights.bin"',
            "#endif",
            "",
            f"#ifndef {macro}_SECTION",
            f'#define {macro}_SECTION ".rodata.{name}_weights,\\"a\\""',
            "#endif",
            "",
            *lines,
            "",
        ]
    )
    return {f"{name}_weights.c": text, f"{name}_weights.bin": bytes(data)}
