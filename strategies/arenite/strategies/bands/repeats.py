"""Cheap steps that run once for each reader, so that no result of theirs is kept whole.

Attention needs all keys and values before its first row. The norm that queries, keys and values
are made of would be kept for all three; made again for each, it exists in a few rows at a time.
Keys and values, which are kept whole and made one after the other, share it.
"""

from collections import Counter
from dataclasses import replace

from arenite.planner import Program, Step, TensorKind
from arenite.planner.programs import Names, row_step


def repeat_cheap_steps(program: Program) -> tuple[Program, dict[str, str]]:
    """Return the program with cheap steps repeated for their readers, and whose copies steps are.

    Readers that follow one another and whose results are needed whole share a copy.

    Cheap is a step without multiply-adds that can run row by row and reads, apart from constants,
    one tensor, no state, and not the result of another cheap step with several readers. The names
    of the copies are those of the result, and what they are copies of is given by name; of nothing
    if there is no cheap step with several readers.
    """
    readers = Counter(name for step in program.steps for name in step.reads)
    kept = {*program.output_tensors, *_viewed(program)}
    repeated: dict[str, Step] = {}
    for step in program.steps:
        if (
            len(step.writes) == 1
            and readers[step.outputs[0]] > 1
            and step.outputs[0] not in kept
            and repeated.keys().isdisjoint(step.reads)
            and _is_cheap(program, step)
        ):
            repeated[step.outputs[0]] = step
    if not repeated:
        return program, {}
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    tensors = dict(program.tensors)
    steps: list[Step] = []
    seen: set[str] = set()
    copies: dict[str, str] = {}
    again: dict[str, str] = {}  # by what steps read, what the last one with a whole result reads
    whole = _needed_whole(program)
    for step in program.steps:
        if step.outputs and step.outputs[0] in repeated:
            continue  # until it is read
        again = {name: again[name] for name in step.reads if name in again and step.name in whole}
        for name in step.reads:
            maker = repeated.get(name)
            if maker is None or name in again:
                continue
            again[name] = name
            if name in seen:
                again[name] = names.take(f"{name}/again")
                tensors[again[name]] = replace(tensors[name], name=again[name])
                copy = names.take(f"{maker.name}/again")
                copies[copy] = maker.name
                maker = replace(maker, name=copy, outputs=(again[name],))
            seen.add(name)
            steps.append(maker)
        inputs = tuple(again.get(name, name) for name in step.inputs)
        steps.append(replace(step, inputs=inputs))
        again = again if step.name in whole else {}
    return _with_late_rows(replace(program, tensors=tensors, steps=tuple(steps))), copies


def _viewed(program: Program) -> frozenset[str]:
    """Return the names of the tensors that others are views of."""
    aliases = (each.alias for each in program.tensors.values())
    return frozenset(each.tensor for each in aliases if each is not None)


def _with_late_rows(program: Program) -> Program:
    """Return the program with each step right before the only one that reads its rows."""
    viewed = _viewed(program)
    readers: dict[str, list[Step]] = {}
    for step in program.steps:
        for name in step.reads:
            readers.setdefault(name, []).append(step)
    order = list(program.steps)
    places = {step.name: index for index, step in enumerate(order)}
    for index in reversed(range(len(order))):
        step = order[index]
        reading = readers.get(step.outputs[0], []) if len(step.writes) == 1 else []
        is_alone = len(reading) == 1 and step.outputs[0] not in viewed
        if not is_alone or not _reads_rows(program, reading[0], step):
            continue
        end = places[reading[0].name]
        order[index:end] = [*order[index + 1 : end], step]
        places.update((each.name, at) for at, each in enumerate(order[index:end], index))
    return replace(program, steps=tuple(order))


def _needed_whole(program: Program) -> frozenset[str]:
    """Return the names of the steps by rows of whose results no step reads some rows at a time."""
    found = [row_step(program, step) for step in program.steps]
    in_rows = {reads.tensor for each in found if each is not None for reads in each.reads}
    return frozenset(
        each.step.name for each in found if each is not None and each.result.name not in in_rows
    )


def _reads_rows(program: Program, reader: Step, step: Step) -> bool:
    """Tell whether a step reads the rows of another's result, which may run as late as it.

    What needs an operand whole does not: that would be kept longer.
    """
    made = row_step(program, step)
    if step.operator.fixes_order or made is None:
        return False
    in_rows = {reads.tensor for reads in made.reads}
    if not all(
        name in in_rows or program.tensors[name].kind is TensorKind.CONSTANT for name in step.reads
    ):
        return False
    found = row_step(program, reader)
    storages = {program.root(name)[0] for name in step.reads}
    return (
        found is not None
        and any(each.tensor == step.outputs[0] for each in found.reads)
        and storages.isdisjoint(program.state_storages)
    )


def _is_cheap(program: Program, step: Step) -> bool:
    operands = program.operands(step)
    kinds = [
        each.kind
        for each in operands.inputs
        if each is not None and each.kind is not TensorKind.CONSTANT
    ]
    return (
        step.operator.repeatable
        and len(kinds) == 1
        and TensorKind.STATE not in kinds
        and step.operator.multiply_adds(operands) == 0
        and row_step(program, step) is not None
    )
