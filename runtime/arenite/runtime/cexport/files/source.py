"""NAME.h and NAME.c: what callers see; kernels, layers and the steps in their order."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from arenite.planner import Step
from arenite.planner.programs import Section, SectionKind
from arenite.planner.sizes import Dimension
from arenite.runtime.cexport import kernels
from arenite.runtime.cexport.base.layout import ArenaLayout, Component, CPort, Interface
from arenite.runtime.cexport.base.options import Extension, Rounding
from arenite.runtime.cexport.base.ranges import SizeVariables
from arenite.runtime.cexport.base.text import comment, number
from arenite.runtime.cexport.files import storage
from arenite.runtime.cexport.files.weights import declarations
from arenite.runtime.cexport.steps.writer import CFileParts
from arenite.runtime.operators.movement import LoadWeights

_FUNCTIONS = (
    "ceil", "cos", "erf", "exp", "expm1", "fabs", "floor", "fmax", "fmin", "log", "log1p", "pow",
    "rint", "round", "sin", "sqrt", "tanh",
)  # fmt: skip
_MATHEMATICS = re.compile(rf"\b(?:INFINITY|NAN|(?:{'|'.join(_FUNCTIONS)})f)\b")
"""What only <math.h> declares: functions of floats, and names of numbers that are none."""
_COPIES = re.compile(r"\bmem(?:cpy|move|set)\(")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What files say of where they come from.

    Attributes:
        model: File name of the model.
        model_digest: SHA-256 of it.
        plan_digest: SHA-256 of the plan.
        rounding: How products of integers are rounded.
        extension: Of the processor that CMSIS-NN runs steps on; None if it runs none.
    """

    model: str
    model_digest: str
    plan_digest: str
    rounding: Rounding
    extension: Extension | None = None

    def banner(self) -> Iterator[str]:
        """Yield the comment that a file begins with."""
        yield f"/* {comment(self.model)}, written as C by Arenite; do not edit."
        yield f"   Model {self.model_digest}"
        yield f"   Plan  {self.plan_digest} */"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an export takes on a Cortex-M4, compiled by GCC 12.2 with -O2.

    Attributes:
        code_bytes: Bytes of instructions and of structures of layers in flash.
        cycles: Of a run; None if they are not estimated.
    """

    code_bytes: int
    cycles: int | None


@dataclass(frozen=True, slots=True)
class StepCalls:
    """A step and its calls of kernels, or all turns of a program of which steps run in bands.

    Attributes:
        step: The step; the first of a run of turns.
        calls: Calls of kernels.
        turns: How many there are; 0 if it is a step.
        table: Name of the table of the turns.
    """

    step: Step
    calls: tuple[str, ...]
    turns: int = 0
    table: str = ""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """What a run of a model does.

    Attributes:
        interface: What callers see of the model.
        steps: Its steps, or all its turns.
        sizes: Definitions of the variables that the calls name.
    """

    interface: Interface
    steps: tuple[StepCalls, ...]
    sizes: tuple[str, ...] = ()

    @property
    def is_loading(self) -> bool:
        """Whether it brings weights into the arena."""
        return any(isinstance(each.step.operator, LoadWeights) for each in self.steps)


def text(
    component: Component,
    about: Provenance,
    layout: ArenaLayout,
    written: CFileParts,
    models: Sequence[ModelCalls],
) -> str:
    """Return NAME.c: kernels, layers and the steps of each model in their order."""
    return "\n".join(_lines(component, about, layout, written, models)) + "\n"


def _lines(
    component: Component,
    about: Provenance,
    layout: ArenaLayout,
    written: CFileParts,
    models: Sequence[ModelCalls],
) -> Iterator[str]:
    name, macro = component.name, component.macro
    resets = [list(_resets(layout, written, each.interface)) for each in models]
    bundle = kernels.bundle(written.kernels)
    calls = [call for each in models for step in each.steps for call in step.calls]
    yield from about.banner()
    yield f'#include "{name}.h"'
    yield ""
    yield "#include <stddef.h>"
    yield from _libraries(written, bundle, [*(line for each in resets for line in each), *calls])
    yield ""
    yield from _hooks(macro)
    for feature in kernels.features_of(bundle):
        is_on = feature in written.features
        if feature == "SINGLE_ROUNDING":
            is_on = written.rounding == "single"
        if feature == "HALVES_TO_EVEN":
            is_on = written.rounding == "even"
        yield f"#define {feature} {int(is_on)}"
    yield ""
    yield bundle
    yield declarations(written.constants)
    yield from written.functions
    yield from written.layers
    yield from written.inner
    for model, reset in zip(models, resets, strict=True):
        yield ""
        is_fetching = written.external.is_used and model.is_loading
        yield from _run(component, model, is_fetching=is_fetching)
        yield ""
        yield f"void {model.interface.name}_reset({model.interface.arena_parameter})"
        yield "{"
        yield from (f"    {line}" for line in reset or ["(void)arena;"])
        yield "}"


def _run(component: Component, model: ModelCalls, *, is_fetching: bool) -> Iterator[str]:
    """Yield the function that runs a model once.

    Args:
        component: What it belongs to.
        model: The model.
        is_fetching: Whether it fetches weights.
    """
    interface, macro = model.interface, component.macro
    pairs = list(zip(interface.dimensions, interface.variables, strict=True))
    arguments = _arguments(interface, interface.variables, "to_")
    yield f"int {interface.name}_run({interface.arena_parameter}{arguments})"
    yield "{"
    yield from storage.checked(macro, interface)
    for dimension, variable in pairs:
        if dimension.counted_by:
            continue
        yield f"    if ({_outside(dimension, variable)})"
        yield "        return 3;"
    counts = [variable for dimension, variable in pairs if dimension.counted_by]
    yield from (f"    int32_t {variable} = 0;" for variable in counts)
    yield from (f"    {line}" for line in model.sizes)
    if is_fetching:
        yield f"    {component.name}_fetch_init();"
    for index, each in enumerate(model.steps, interface.steps.start):
        if each.turns:
            yield f"    for (int32_t turn = 0; turn < {each.turns}; ++turn) {{"
            yield from (f"        {call}" for call in each.calls)
            first = f"{interface.steps.start} + " if interface.steps.start else ""
            yield f"        {macro}_STEP({first}{each.table}[turn].step);"
            yield "    }"
            continue
        yield f"    /* {index}: {each.step.operator.label} {comment(each.step.name)} */"
        yield from (f"    {call}" for call in each.calls)
        yield f"    {macro}_STEP({index});"
    for variable in counts:
        yield f"    if (to_{variable} != NULL)"
        yield f"        *to_{variable} = {variable};"
    yield "    return 0;"
    yield "}"


def _arguments(interface: Interface, names: Sequence[str], to: str = "") -> str:
    """Return the arguments of a run behind the arena: sizes, and where it puts its counts.

    Args:
        interface: States the dimensions.
        names: Names of their arguments.
        to: What the names of counts begin with.
    """
    return "".join(
        f", int32_t *{to}{name}" if dimension.counted_by else f", int32_t {name}"
        for dimension, name in zip(interface.dimensions, names, strict=True)
    )


def _outside(dimension: Dimension, name: str) -> str:
    """Return the condition that a size is outside its range, or between its steps."""
    found = f"{name} < {dimension.low} || {name} > {dimension.high}"
    if dimension.step != 1:
        found += f" || ({name} - {dimension.low}) % {dimension.step} != 0"
    return found


def _libraries(written: CFileParts, bundle: str, calls: Sequence[str]) -> Iterator[str]:
    """Yield what is included of C's own library."""
    text = "\n".join([bundle, *written.functions, *written.layers, *written.inner, *calls])
    if "FLT_MAX" in text:
        yield "#include <float.h>"
    if _MATHEMATICS.search(text):
        yield "#include <math.h>"
    if _COPIES.search(text):
        yield "#include <string.h>"


def _hooks(macro: str) -> Iterator[str]:
    yield from (
        f"/* {macro}_STEP(i) runs after step i: feed a watchdog or yield there. */",
        f"#ifndef {macro}_STEP",
        f"#define {macro}_STEP(i) ((void)0)",
        "#endif",
        "",
        f"#ifndef {macro}_ASSERT",
        f"#define {macro}_ASSERT(condition) ((void)0)",
        "#endif",
        "",
        "/* A compile-time check. */",
        "#if defined(__cplusplus) && __cplusplus >= 201103L",
        f"#define {macro}_CHECK(name, condition) static_assert(condition, #name)",
        "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
        f"#define {macro}_CHECK(name, condition) _Static_assert(condition, #name)",
        "#else",
        f"#define {macro}_CHECK(name, condition) typedef char name[(condition) ? 1 : -1]",
        "#endif",
        f"{macro}_CHECK({macro.lower()}_bytes_have_8_bits, (unsigned char)~0u == 255);",
        f"{macro}_CHECK({macro.lower()}_ints_have_32_bits, sizeof(int) >= 4);",
        f"{macro}_CHECK({macro.lower()}_shifts_keep_signs, (-2 >> 1) == -1);",
        f"{macro}_CHECK({macro.lower()}_arena_has_a_size, {macro}_ARENA_BYTES <= 2147483647);",
        "/* Limits of the board in bytes, if you define them. */",
        f"#ifdef {macro}_RAM_LIMIT",
        f"{macro}_CHECK({macro.lower()}_arena_and_stack_fit_ram,",
        f"    {macro}_ARENA_BYTES + {macro}_STACK_BYTES <= {macro}_RAM_LIMIT);",
        "#endif",
        f"#ifdef {macro}_FLASH_LIMIT",
        f"{macro}_CHECK({macro.lower()}_weights_and_code_fit_flash,",
        f"    {macro}_WEIGHT_BYTES + {macro}_CODE_BYTES <= {macro}_FLASH_LIMIT);",
        "#endif",
        "",
    )


def _resets(layout: ArenaLayout, written: CFileParts, interface: Interface) -> Iterator[str]:
    """Yield what sets the states of a model to what they start from."""
    program = layout.program
    for name in interface.states:
        tensor = program.tensors[name]
        if not tensor.size:
            continue
        place = layout.at(layout.offset(name))
        initial = program.initial.get(name)
        array = np.zeros(1, np.int8) if initial is None else program.constants[initial]
        data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        if (data == data[0]).all():
            yield f"memset({place}, {int(data[0])}, {tensor.size});"
        else:
            symbol = written.constants.add(array, "initial")
            yield f"memcpy({place}, {symbol}, {tensor.size});"


STACK = 640
"""Bytes of stack that a run takes at most; `make test-mcu` measures it."""
CMSIS_NN_STACK = 1024
"""The same where steps run in CMSIS-NN."""


def header(
    component: Component, about: Provenance, written: CFileParts, estimate: Estimate
) -> str:
    """Return NAME.h: sizes, places of inputs and outputs, and the functions."""
    return "\n".join(_header_lines(component, about, written, estimate)) + "\n"


_FETCHING = """\
/* Functions of yours, by which a run fetches weights from external flash, one fetch at a time. It
   calls `init` when it begins, `start` for the bytes [offset, offset + count) of the file
   modelname_external.bin, and `wait` before it reads them: `start` copies them, or begins a
   transfer that `wait` awaits. `to` is in the arena, aligned to 4 bytes.@orders@ */
void modelname_fetch_init(void);
void modelname_fetch_start(uint8_t *to, uint32_t offset, uint32_t count);
void modelname_fetch_wait(void);
"""

_COUNTS = """
   Counts of the run are written to where pointers show; NULL for one that you do not need."""


def _header_lines(
    component: Component, about: Provenance, written: CFileParts, estimate: Estimate
) -> Iterator[str]:
    macro = component.macro
    yield from about.banner()
    yield f"#ifndef {macro}_H"
    yield f"#define {macro}_H"
    yield ""
    yield "#include <stdint.h>"
    yield ""
    yield "/* The arena: all memory of a run except the stack. */"
    yield f"#define {macro}_ARENA_BYTES {component.arena_bytes}"
    yield f"#define {macro}_ARENA_ALIGN {component.alignment}"
    yield "/* The stack of a run, compiled with -Os: at most so many bytes. */"
    yield f"#define {macro}_STACK_BYTES {STACK if about.extension is None else CMSIS_NN_STACK}"
    yield "/* Constants in flash. */"
    yield f"#define {macro}_WEIGHT_BYTES {written.constants.num_bytes}"
    yield "/* Instructions and layers in flash, and cycles of a run: estimates for a Cortex-M4 and"
    yield "   gcc -O2. */"
    yield f"#define {macro}_CODE_BYTES {estimate.code_bytes}"
    if estimate.cycles is not None:
        yield f"#define {macro}_CYCLES {estimate.cycles}"
    if written.external.is_used:
        yield f"/* Weights in external flash: {component.name}_external.bin. */"
        yield f"#define {macro}_EXTERNAL_BYTES {written.external.num_bytes}"
    yield f"#define {macro}_NUM_STEPS {component.num_steps}"
    yield f'#define {macro}_PLAN_DIGEST "{about.plan_digest}"'
    yield f'#define {macro}_ROUNDING "{about.rounding}"'
    if about.extension is not None:
        yield "/* Kernels of CMSIS-NN, 7.0.0 or later, with scratch for this extension of the"
        yield "   processor. */"
        yield f'#define {macro}_KERNELS "cmsis-nn"'
        yield f'#define {macro}_EXTENSION "{about.extension}"'
    yield ""
    for interface in component.models:
        yield from _ranges(interface)
        for kind, ports in (("INPUT", interface.inputs), ("OUTPUT", interface.outputs)):
            yield f"#define {interface.macro}_NUM_{kind}S {len(ports)}"
            for each in ports:
                yield from _macros(each, f"{interface.macro}_{kind}_{each.name.upper()}")
            yield ""
    yield from storage.stated(component)
    yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif", "")
    if written.external.is_used:
        files = (
            f"\n   On {each.processors} the file is modelname_external_{each.name}.bin."
            for each in written.external.others
        )
        fetching = _FETCHING.replace("@orders@", "".join(files))
        yield from fetching.replace("modelname", component.name).splitlines()
    if component.schedule is not None:
        yield from _schedule(component, component.schedule)
    for interface in component.models:
        yield from _functions(component, interface, about)
    yield from ("#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {macro}_H */")


def _functions(component: Component, interface: Interface, about: Provenance) -> Iterator[str]:
    """Yield the functions of a model."""
    name, macro = interface.name, interface.macro
    refused = "" if about.extension is None else ",\n   or 2 where CMSIS-NN refuses a step"
    outside = ""
    if any(not each.counted_by for each in interface.dimensions):
        outside = ",\n   or 3 for a size outside its range or between its steps"
    counts = _COUNTS if any(each.counted_by for each in interface.dimensions) else ""
    if interface.stage is None:
        yield "/* Run the model once. A run may overwrite the inputs: write them before each run."
    else:
        steps = f"{interface.steps.start} to {interface.steps.stop - 1}"
        yield f"/* Run {comment(interface.stage.name)} once: steps {steps}."
        yield "   Write its inputs just before, when the models before it have run."
        yield from (f"   {line}" for line in _lasting(component, interface))
    yield from (
        "   States are in the arena, so several arenas are several instances of the model.",
        f"   Returns 0, or 1 for an arena that is null or not aligned{refused}{outside}."
        f"{counts} */",
        f"int {name}_run({interface.arena_parameter}"
        f"{_arguments(interface, interface.parameters)});",
        "",
        "/* Set the states to their initial values: call it before the first run. A model without",
        "   states needs no call. */",
        f"void {name}_reset({interface.arena_parameter});",
        f"#define {macro}_HAS_STATES {int(interface.has_states)}",
        "",
    )
    for kind, ports in (("input", interface.inputs), ("output", interface.outputs)):
        for each in ports:
            yield from _accessor(interface, kind, each)
            if each.shape:
                yield from _sizes(interface, kind, each)


def _schedule(component: Component, schedule: Section) -> Iterator[str]:
    """Yield the comment that states which orders the arena was planned for."""
    yield "/* Run the models in an order that this schedule allows, no other was planned for:"
    yield f"   {comment(str(schedule))}"
    if any(each.kind is SectionKind.AT_ONCE for each in schedule.sections()):
        yield "   Models of a section at_once may run on threads of their own, or one of them in"
        yield f"   the macro {component.macro}_STEP of another. */"
    else:
        yield "   Only one runs at a time. */"
    yield ""


def _lasting(component: Component, interface: Interface) -> Iterator[str]:
    """Yield how long each output of a model of a system stays."""
    assert interface.stage is not None
    kept = {port.name for port in interface.kept}
    for port in interface.outputs:
        output = f"{interface.stage.name}.{port.port.name}"
        readers = [
            comment(each.stage.name)
            for each in component.models
            if each.stage is not None and output in each.stage.reads
        ]
        until = "until inputs of another model are written"
        if readers:
            until = f"until {' and '.join(readers)} ran or stays out"
        if port.name in kept:
            until = "until the schedule ends"
        yield f"Output {comment(port.port.name)} stays {until}."


def _macros(port: CPort, prefix: str) -> Iterator[str]:
    tensor, stated = port.tensor, port.tensor.quantisation
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    order = ""
    if port.port.axes is not None:
        order = f", stored with the model's axes in the order {list(port.port.axes)}"
    highest = " at the highest sizes" if port.shape else ""
    yield f"/* {comment(port.port.name)}: {tensor.dtype.label} {shape}{highest}{order}. */"
    yield f"#define {prefix}_OFFSET {int(port.offset)}"
    yield f"#define {prefix}_BYTES {tensor.size}"
    yield f"#define {prefix}_ELEMENTS {tensor.num_elements}"
    yield f"#define {prefix}_RANK {len(tensor.shape)}"
    yield f"#define {prefix}_DIMS {{{', '.join(map(str, tensor.shape)) or '1'}}}"
    if stated is not None and len(stated.scales) == 1:
        yield f"#define {prefix}_SCALE {number(float(stated.scales[0]))}"
        yield f"#define {prefix}_ZERO_POINT {stated.zero_point}"


def _accessor(interface: Interface, kind: str, port: CPort) -> Iterator[str]:
    """Yield the function that returns where a port lies, at the sizes of a run if that depends."""
    name = interface.name
    variables = SizeVariables(interface.dimensions, interface.parameters)
    sizes = tuple(interface.given.values()) if port.is_moved else ()
    place = f"{name.upper()}_{kind.upper()}_{port.name.upper()}_OFFSET"
    if port.is_moved:
        place = variables.of(port.offset)
    through = "" if port.c_type in ("int8_t", "uint8_t") else "(void *)"
    arguments = ", ".join([interface.arena_parameter, *(f"int32_t {each}" for each in sizes)])
    yield f"static inline {port.c_type} *{name}_{kind}_{port.name}({arguments})"
    line = f"return ({port.c_type} *){through}({port.base} + {place});"
    yield from _body(sizes, [*variables.lines, line])


def _ranges(interface: Interface) -> Iterator[str]:
    """Yield the ranges of the dimensions."""
    for kind, title, names in (
        ("SIZE", "Sizes of a run: the arena is for the highest ones.", ("low", "high", "step")),
        ("COUNT", "What a run counts, and the highest that it may be.", ("high",)),
    ):
        found = [
            (dimension, parameter)
            for dimension, parameter in zip(
                interface.dimensions, interface.parameters, strict=True
            )
            if bool(dimension.counted_by) == (kind == "COUNT")
        ]
        if found:
            yield f"/* {title} */"
            for dimension, parameter in found:
                prefix = f"{interface.macro}_{kind}_{parameter.upper()}"
                for name in names:
                    yield f"#define {prefix}_{name.upper()} {getattr(dimension, name)}"
            yield ""


def _sizes(interface: Interface, kind: str, port: CPort) -> Iterator[str]:
    """Yield functions that return the lengths of a port at the sizes of a run."""
    given = ", ".join(f"int32_t {each}" for each in interface.parameters)
    prefix = f"{interface.name}_{kind}_{port.name}"
    elements = math.prod(port.shape)
    for name, size in (("elements", elements), ("bytes", port.tensor.dtype.num_bytes(elements))):
        variables = SizeVariables(interface.dimensions, interface.parameters)
        lines = [f"return {variables.of(size)};"]
        yield f"static inline int32_t {prefix}_{name}({given})"
        yield from _body(interface.parameters, [*variables.lines, *lines])
    variables = SizeVariables(interface.dimensions, interface.parameters)
    lines = [f"dims[{axis}] = {variables.of(size)};" for axis, size in enumerate(port.shape)]
    yield f"static inline void {prefix}_dims(int32_t *dims, {given})"
    yield from _body(interface.parameters, [*variables.lines, *lines])


def _body(parameters: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    text = "\n".join(lines)
    yield "{"
    for name in parameters:
        if not re.search(rf"\b{name}\b", text):
            yield f"    (void){name};"
    yield from (f"    {line}" for line in lines)
    yield "}"
    yield ""
