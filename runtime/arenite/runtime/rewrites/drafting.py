"""A program under construction that takes the place of another, step by step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from arenite.planner import Alias, Array, DType, Program, Quantisation, Step, Tensor, TensorKind
from arenite.planner.programs import Names
from arenite.planner.sizes import same, same_lengths
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.fusing import without_unread

Shape: TypeAlias = tuple[int, ...]


class ProgramDraft:
    """The steps so far, with tensors and constants of the program and new ones.

    Args:
        program: The program that it takes the place of.
    """

    def __init__(self, program: Program) -> None:
        self._old = program
        self._tensors = dict(program.tensors)
        self._constants = dict(program.constants)
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])
        self._steps: list[Step] = []
        self._dropped: set[str] = set()
        self._read_as: dict[str, str] = {}

    def keep(self, step: Step) -> None:
        """Add a step of the program."""
        names = tuple(self._read_as.get(name, name) for name in step.inputs)
        self._steps.append(step if names == step.inputs else replace(step, inputs=names))

    def drop(self, step: str) -> None:
        """Leave out a step of the program, kept or not."""
        self._dropped.add(step)

    def put_off(self, output: str) -> None:
        """Move the step that makes a tensor behind those so far, if none of these reads it."""
        made = [index for index, step in enumerate(self._steps) if output in step.writes]
        if len(made) != 1:
            return
        step = self._steps[made[0]]
        later = self._steps[made[0] + 1 :]
        roots = {self._root(name) for name in step.writes}
        reads = {self._root(name) for name in step.reads}
        is_read = any(self._root(name) in roots for each in later for name in each.reads)
        changes = any(self._root(name) in reads for each in later for name in each.writes)
        if not is_read and not changes and not step.operator.fixes_order:
            self._steps.append(self._steps.pop(made[0]))

    def _root(self, name: str) -> str:
        alias = self._tensors[name].alias
        return name if alias is None else alias.tensor

    def emit(
        self,
        operator: RuntimeOperator,
        inputs: tuple[str, ...],
        hint: str,
        shape: Shape,
        dtype: DType = DType.FLOAT32,
        quantisation: Quantisation | None = None,
    ) -> str:
        """Add a step and return its output, which is named like `hint`."""
        name = self._names.take(hint)
        self._tensors[name] = Tensor(name, dtype, shape, quantisation=quantisation)
        self._steps.append(Step(self._names.take(name), operator, inputs, (name,)))
        return name

    def emit_in_place(
        self, operator: RuntimeOperator, inputs: tuple[str, ...], output: str, shape: Shape
    ) -> None:
        """Add a step that makes a tensor of the program, of as many elements in another shape."""
        old = self._tensors[output]
        if same_lengths(old.shape, shape):
            self._steps.append(Step(self._names.take(output), operator, inputs, (output,)))
        elif old.kind is TensorKind.ACTIVATION or (
            old.kind is TensorKind.OUTPUT and output not in self._old.output_tensors
        ):
            self._tensors[output] = replace(old, shape=shape)
            self._read_as[output] = self.view(output, 0, old.shape)
            self._steps.append(Step(self._names.take(output), operator, inputs, (output,)))
        else:
            made = self.emit(operator, inputs, output, shape, old.dtype, old.quantisation)
            move = Move(shape=(old.num_elements,), input_strides=(1,), output_strides=(1,))
            self._steps.append(
                Step(self._names.take(output), Copy(moves=(move,)), (made,), (output,))
            )

    def constant(self, array: Array, hint: str, quantisation: Quantisation | None = None) -> str:
        """Add a constant and return its name."""
        name = self._names.take(hint)
        self._constants[name] = array
        dtype = DType.of_label(array.dtype.name)
        self._tensors[name] = Tensor(
            name, dtype, array.shape, TensorKind.CONSTANT, quantisation=quantisation
        )
        return name

    def view(self, root: str, start: int, shape: Shape) -> str:
        """Return the tensor that is the elements of a storage from a first one on."""
        whole = self._tensors[root]
        if same(start, 0) and same_lengths(whole.shape, shape):
            return root
        name = self._names.take(f"{root}/view")
        offset = start * (whole.dtype.bits // 8)
        kind = TensorKind.CONSTANT if whole.kind is TensorKind.CONSTANT else TensorKind.ACTIVATION
        self._tensors[name] = replace(
            whole, name=name, shape=shape, kind=kind, alias=Alias(root, offset)
        )
        return name

    def sliced(self, name: str, group: int, groups: int, axis: int = 0) -> str:
        """Return a constant of a group's share of an axis of another; "" of ""."""
        if not name:
            return name
        whole = self._tensors[name]
        axis %= len(whole.shape)
        count = whole.shape[axis] // groups
        share = slice(group * count, (group + 1) * count)
        made = self.constant(self._constants[name][(slice(None),) * axis + (share,)], name)
        given = _share(whole.quantisation, group, groups, axis)
        shape = (*whole.shape[:axis], count, *whole.shape[axis + 1 :])
        self._tensors[made] = replace(whole, name=made, shape=shape, quantisation=given)
        return made

    def share(self, name: str, group: int, groups: int) -> str:
        """Return a group's share of the first axis of a tensor, where it lies; "" of ""."""
        if not name:
            return name
        root, offset = self._old.root(name)
        whole = self._tensors[name]
        shape = (whole.shape[0] // groups, *whole.shape[1:])
        start = offset // (whole.dtype.bits // 8) + group * (whole.num_elements // groups)
        part = self.view(root, start, shape)
        self._tensors[part] = replace(
            self._tensors[part], quantisation=_share(whole.quantisation, group, groups)
        )
        return part

    def shape(self, name: str) -> Shape:
        return self._tensors[name].shape

    def finished(self) -> Program:
        """Return the program, without steps that nothing needs."""
        steps = tuple(step for step in self._steps if step.name not in self._dropped)
        program = replace(self._old, tensors=self._tensors, constants=self._constants, steps=steps)
        return without_unread(_without_unread_steps(_without_equal_views(program)))


def _share(
    given: Quantisation | None, group: int, groups: int, axis: int = 0
) -> Quantisation | None:
    """Return the quantisation of a group's share of an axis."""
    if given is None or len(given.scales) == 1 or given.axis != axis:
        return given
    count = len(given.scales) // groups
    return replace(given, scales=given.scales[group * count : (group + 1) * count])


def _without_equal_views(program: Program) -> Program:
    """Return the program with every view of a whole tensor, of its shape, replaced by that."""
    wholes: Mapping[str, str] = {
        name: tensor.alias.tensor
        for name, tensor in program.tensors.items()
        if tensor.alias is not None
        and same(tensor.alias.offset, 0)
        and same_lengths(tensor.shape, program.tensors[tensor.alias.tensor].shape)
    }
    written = {name for step in program.steps for name in step.writes}
    steps = (
        replace(
            step,
            inputs=tuple(
                name if name in written else wholes.get(name, name) for name in step.inputs
            ),
        )
        for step in program.steps
    )
    return replace(program, steps=tuple(steps))


def _without_unread_steps(program: Program) -> Program:
    """Return the program without steps of which nothing reads a result."""
    needed = {program.root(name)[0] for name in program.output_tensors}
    needed |= program.state_storages
    kept: list[Step] = []
    for step in reversed(program.steps):
        roots = {program.root(name)[0] for name in step.writes}
        counts = isinstance(step.operator, RuntimeOperator) and step.operator.counts
        if counts or roots & needed or not roots:
            kept.append(step)
            needed.update(program.root(name)[0] for name in step.reads)
    return replace(program, steps=tuple(reversed(kept)))
