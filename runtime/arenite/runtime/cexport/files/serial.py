"""NAME_serial.h: an application's turn, the bytes of the inputs in, a line for each output out."""

from collections.abc import Iterator

from arenite.runtime.cexport.base.layout import Component, CPort, Interface
from arenite.runtime.cexport.files import storage


def files(component: Component) -> dict[str, str]:
    """Return the header that the applications of all systems share."""
    address = storage.address(component)
    arena = component.models[0].arena_parameter
    text = _TEXT.replace("@arena@\n", "\n".join(storage.defined(component)) + "\n")
    text = text.replace("@parameter@", arena).replace("@address@", address)
    for mark, lines in (
        ("    @begin@\n", [f"{each.name}_reset(arena);" for each in component.models]),
        ("    @turn@\n", [line for each in component.models for line in ("{", *_turn(each), "}")]),
    ):
        text = text.replace(mark, "".join(f"    {line}\n" for line in lines))
    text = text.replace("modelname", component.name).replace("MODELNAME", component.macro)
    return {f"{component.name}_serial.h": text}


def _turn(interface: Interface) -> Iterator[str]:
    """Yield the turn of a model: its inputs, its run, its outputs."""
    for each in interface.inputs:
        size = f"{interface.macro}_INPUT_{each.name.upper()}_BYTES"
        place = f"{interface.name}_input_{each.name}({_place(interface, each)})"
        yield f"modelname_receive((uint8_t *){place}, {size}, receive);"
    arguments = []
    for dimension, name in zip(interface.dimensions, interface.variables, strict=True):
        if dimension.counted_by:
            yield f"int32_t {name} = 0;"
            arguments.append(f"&{name}")
        else:
            arguments.append(str(dimension.high))
    call = ", ".join(["arena", *arguments])
    yield f"failure = {interface.name}_run({call});"
    yield "if (failure != 0)"
    yield "    return failure;"
    yield from _outputs(interface)


def _outputs(interface: Interface) -> Iterator[str]:
    for each in interface.outputs:
        port = f"{interface.name}_output_{each.name}"
        best = f"count > 0 ? {_number(interface, each)} : 0.0f"
        yield "{"
        yield f"    const {each.c_type} *values = {port}({_place(interface, each)});"
        yield f"    const int32_t count = {_count(interface, each)};"
        yield "    int32_t label = 0;"
        yield "    for (int32_t i = 1; i < count; ++i)"
        yield "        label = values[i] > values[label] ? i : label;"
        yield f'    modelname_send_text("{each.name} ", send);'
        yield "    modelname_send_number(label, send);"
        yield "    send(' ');"
        yield f"    modelname_send_thousandths({best}, send);"
        yield "    send('\\n');"
        yield "}"


def _place(interface: Interface, port: CPort) -> str:
    """Return the arguments of the function that returns where a port lies."""
    highest = {each.name: each.high for each in interface.dimensions}
    sizes = [str(highest[name]) for name in interface.given] if port.is_moved else []
    return ", ".join(["arena", *sizes])


def _count(interface: Interface, port: CPort) -> str:
    """Return how many elements an output has."""
    if not port.is_counted:
        return f"{interface.macro}_OUTPUT_{port.name.upper()}_ELEMENTS"
    sizes = [
        name if dimension.counted_by else str(dimension.high)
        for dimension, name in zip(interface.dimensions, interface.variables, strict=True)
    ]
    return f"{interface.name}_output_{port.name}_elements({', '.join(sizes)})"


def _number(interface: Interface, port: CPort) -> str:
    """Return the number that the element of the label stands for."""
    stated = port.tensor.quantisation
    if stated is None or len(stated.scales) != 1:
        return "(float)values[label]"
    prefix = f"{interface.macro}_OUTPUT_{port.name.upper()}"
    return f"(float)(values[label] - {prefix}_ZERO_POINT) * {prefix}_SCALE"


_TEXT = """\
/* A turn of the applications in examples/: they read the bytes of the inputs, run the model and
   write a line for each output: its name, the index of its largest element and the number that
   this element stands for. */
#ifndef MODELNAME_SERIAL_H
#define MODELNAME_SERIAL_H

#include "modelname.h"

static inline void modelname_receive(uint8_t *to, int32_t count, uint8_t (*receive)(void))
{
    for (int32_t i = 0; i < count; ++i)
        to[i] = receive();
}

static inline void modelname_send_text(const char *text, void (*send)(char))
{
    while (*text != 0)
        send(*text++);
}

static inline void modelname_send_number(int32_t number, void (*send)(char))
{
    char digits[10];
    int32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        send(digits[--count]);
}

static inline void modelname_send_thousandths(float number, void (*send)(char))
{
    int32_t whole, part;
    if (number < 0.0f) {
        send('-');
        number = -number;
    }
    if (!(number < 2.0e6f)) {
        modelname_send_text("large", send);
        return;
    }
    whole = (int32_t)(number * 1000.0f + 0.5f);
    part = whole % 1000;
    modelname_send_number(whole / 1000, send);
    send('.');
    send((char)('0' + part / 100));
    send((char)('0' + part / 10 % 10));
    send((char)('0' + part % 10));
}

@arena@
/* Prepare the arena for the first turn. */
static inline void modelname_begin(void)
{
    @parameter@ = @address@;
    @begin@
}

/* Return 0, or what the run that fails returns. `receive` waits for a byte. */
static inline int modelname_serve(uint8_t (*receive)(void), void (*send)(char))
{
    @parameter@ = @address@;
    int failure;
    @turn@
    return 0;
}

#endif
"""
