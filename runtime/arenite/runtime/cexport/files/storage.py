"""The arena in C, or the memories that stand in its place: declared, checked and defined."""

from collections.abc import Iterator

from arenite.runtime.cexport.base.layout import CMemory, Component, Interface


def stated(component: Component) -> Iterator[str]:
    """Yield what the header states of them: prefixes of definitions, sizes, and a structure."""
    macro = component.macro
    if not component.memories:
        yield "/* Prefix of the declaration of the arena, such as a section attribute. */"
        yield from _prefix(f"{macro}_ARENA", "")
        return
    yield "/* The memories of a run, in bytes, and prefixes of their definitions. */"
    for each in component.memories:
        if each.region:
            yield f"#define {_macro(component, each)}_BYTES {each.size}"
            section = f'__attribute__((section(".bss.{component.name}_{each.name}")))'
            yield from _prefix(_macro(component, each), section)
    yield "/* Where each of them begins, and each input and output that is yours; inputs are only"
    yield "   read, outputs may be written before they are final. */"
    yield "typedef struct {"
    for each in component.memories:
        size = f"{_macro(component, each)}_BYTES" if each.region else f"{each.size}"
        yield f"    uint8_t *{each.name}; /* {size} bytes, aligned to {each.alignment} */"
    yield f"}} {component.name}_memories;"
    yield ""


def _prefix(name: str, value: str) -> Iterator[str]:
    yield f"#ifndef {name}"
    yield f"#define {name} {value}".rstrip()
    yield "#endif"
    yield ""


def _macro(component: Component, memory: CMemory) -> str:
    return f"{component.macro}_MEMORY_{memory.name.upper()}"


def checked(macro: str, interface: Interface) -> Iterator[str]:
    """Yield what a run begins with: it returns 1 where there is no memory, or none aligned."""
    rights = [("arena", "!=", "NULL")]
    for each in interface.memories:
        rights.append((f"arena->{each.name}", "!=", "NULL"))
        if each.alignment > 1:
            rights.append((f"(uintptr_t)arena->{each.name} % {each.alignment}", "==", "0"))
    if not interface.memories:
        rights.append((f"(uintptr_t)arena % {macro}_ARENA_ALIGN", "==", "0"))
    yield from (f"    {macro}_ASSERT({' '.join(each)});" for each in rights)
    opposite = {"==": "!=", "!=": "=="}
    wrongs = [f"{one} {opposite[relation]} {other}" for one, relation, other in rights]
    yield f"    if ({f' ||{chr(10)}        '.join(wrongs)})"
    yield "        return 1;"


def defined(component: Component) -> Iterator[str]:
    """Yield definitions of them for a program; it hands a run their `address`."""
    name, macro = component.name, component.macro
    if not component.memories:
        yield from _union(f"{macro}_ARENA static", f"{macro}_ARENA_BYTES", f"{name}_arena")
        return
    for each in component.memories:
        if each.region:
            prefix = _macro(component, each)
            yield from _union(f"{prefix} static", f"{prefix}_BYTES", f"{name}_storage_{each.name}")
        else:
            yield from _union("static", str(each.size), f"{name}_storage_{each.name}")
    yield f"static const {name}_memories {name}_arena = {{"
    yield from (f"    {name}_storage_{each.name}.bytes," for each in component.memories)
    yield "};"
    yield ""


def address(component: Component) -> str:
    """Return what a run is handed of the memory that `defined` defines."""
    return f"&{component.name}_arena" if component.memories else f"{component.name}_arena.bytes"


def _union(prefix: str, size: str, name: str) -> Iterator[str]:
    yield f"{prefix} union {{"
    yield f"    uint8_t bytes[{size}];"
    yield "    int64_t aligned;"
    yield f"}} {name};"
    yield ""


def files(component: Component) -> dict[str, str]:
    """Return a part of a linker script that puts each memory into the board's, if any is named."""
    regions = [each for each in component.memories if each.region]
    if not regions:
        return {}
    name = component.name
    lines = [
        "/* Include it in SECTIONS, before .bss. MEMORY has a region of each name. */",
        *(
            f"  .{name}_{each.name} (NOLOAD) : ALIGN(8) {{ *(.bss.{name}_{each.name}) }} > "
            f"{each.name.upper()}"
            for each in regions
        ),
    ]
    return {f"{name}_memories.ld": "\n".join(lines) + "\n"}
