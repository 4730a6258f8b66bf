"""NAME.h: sizes, places of inputs and outputs, and the functions."""

from collections.abc import Iterator

from arenite.runtime.cexport.files.source import About
from arenite.runtime.cexport.interface import CPort, Interface
from arenite.runtime.cexport.literals import comment, number


def text(interface: Interface, about: About) -> str:
    """Return the header."""
    return "\n".join(_lines(interface, about)) + "\n"


def _lines(interface: Interface, about: About) -> Iterator[str]:
    name, macro = interface.name, interface.macro
    refused = "" if about.extension is None else ",\n   or 2 where CMSIS-NN refuses a step"
    yield from about.banner()
    yield f"#ifndef {macro}_H"
    yield f"#define {macro}_H"
    yield ""
    yield "#include <stdint.h>"
    yield ""
    yield "/* The arena: all memory that a run takes, but for the stack. */"
    yield f"#define {macro}_ARENA_BYTES {interface.arena_bytes}"
    yield f"#define {macro}_ARENA_ALIGN {interface.alignment}"
    yield f"#define {macro}_NUM_STEPS {interface.num_steps}"
    yield f'#define {macro}_PLAN_DIGEST "{about.plan_digest}"'
    yield f'#define {macro}_ROUNDING "{about.options.rounding}"'
    if about.extension is not None:
        yield "/* CMSIS-NN, 7.0.0 or later, runs what it has kernels for, in working memory for"
        yield "   this extension of the processor. */"
        yield f'#define {macro}_KERNELS "cmsis-nn"'
        yield f'#define {macro}_EXTENSION "{about.extension}"'
    yield ""
    for kind, ports in (("INPUT", interface.inputs), ("OUTPUT", interface.outputs)):
        yield f"#define {macro}_NUM_{kind}S {len(ports)}"
        for each in ports:
            yield from _macros(each, f"{macro}_{kind}_{each.name.upper()}")
        yield ""
    yield from (
        "/* What a declaration of the arena may begin with, such as a section of the linker's. */",
        f"#ifndef {macro}_ARENA",
        f"#define {macro}_ARENA",
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* Run the model once. Inputs must be written before each run: their place may be used",
        "   again within it. What the model keeps lies in the arena, so that several arenas are",
        "   several instances. Returns 0, or 1 for an arena that is null or not aligned"
        f"{refused}. */",
        f"int {name}_run(uint8_t *arena);",
        "",
        "/* Set what is kept from one run to the next to what it starts from. Call it before the",
        "   first run; it does nothing where nothing is kept. */",
        f"void {name}_reset(uint8_t *arena);",
        f"#define {macro}_HAS_STATES {int(interface.has_states)}",
        "",
    )
    for kind, ports in (("input", interface.inputs), ("output", interface.outputs)):
        for each in ports:
            yield from _accessor(name, kind, each)
    yield from ("#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {macro}_H */")


def _macros(port: CPort, prefix: str) -> Iterator[str]:
    tensor, stated = port.tensor, port.tensor.quantisation
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    order = ""
    if port.port.axes is not None:
        order = f", stored with the model's axes in the order {list(port.port.axes)}"
    yield f"/* {comment(port.port.name)}: {tensor.dtype.label} {shape}{order}. */"
    yield f"#define {prefix}_OFFSET {port.offset}"
    yield f"#define {prefix}_BYTES {tensor.size}"
    yield f"#define {prefix}_ELEMENTS {tensor.num_elements}"
    yield f"#define {prefix}_RANK {len(tensor.shape)}"
    yield f"#define {prefix}_DIMS {{{', '.join(map(str, tensor.shape)) or '1'}}}"
    if stated is not None and len(stated.scales) == 1:
        yield f"#define {prefix}_SCALE {number(float(stated.scales[0]))}"
        yield f"#define {prefix}_ZERO_POINT {stated.zero_point}"


def _accessor(name: str, kind: str, port: CPort) -> Iterator[str]:
    macro = f"{name.upper()}_{kind.upper()}_{port.name.upper()}_OFFSET"
    through = "" if port.c_type in ("int8_t", "uint8_t") else "(void *)"
    yield f"static inline {port.c_type} *{name}_{kind}_{port.name}(uint8_t *arena)"
    yield "{"
    yield f"    return ({port.c_type} *){through}(arena + {macro});"
    yield "}"
    yield ""
