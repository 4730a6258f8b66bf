"""Read a TFLite model as a program, with subgraphs unfolded where they are entered.

A subgraph has its own tensors and refers to no others, so its operators can be inserted
into the one order between two steps of ours::

    IF_3/then/enter     reads IF_3's inputs         writes the branch's inputs
    IF_3/then/...       the operators of the branch
    IF_3/else/enter     reads IF_3's inputs         writes the branch's inputs
    IF_3/else/...
    IF_3/exit           reads both branches' outputs, writes IF_3's outputs

    WHILE_5/enter       reads WHILE_5's inputs      writes WHILE_5's outputs
    WHILE_5/cond/enter  reads WHILE_5's outputs     writes the condition's inputs
    WHILE_5/cond/...
    WHILE_5/body/enter  reads WHILE_5's outputs and the verdict, writes the body's inputs
    WHILE_5/body/...
    WHILE_5/exit        reads the body's outputs and WHILE_5's outputs

The lifetimes are right. Of an IF one branch runs: its outputs are kept until the exit,
the operator's inputs until the last branch has read them. A loop runs the same stretch
again, and nothing crosses the way back but the carried values: they lie in the WHILE's
outputs, as in TFLite Micro's kernel, and live from its enter to its exit, while condition
and body rewrite all else each time round. What is live around the operator is live at
every step in between.

To be run, an IF becomes both branches and a choice of their outputs, as no step is skipped::

    IF_3/then/...       read IF_3's inputs
    IF_3/else/...       read IF_3's inputs
    IF_3/0              SELECT_V2 of the verdict and both first outputs, writes IF_3's first output

A WHILE is then one step, which holds its condition and its body as programs of their own: nothing
else is known of how often they run.

TFLite Micro (`MarkAllocationLifetimes`) also counts a scope for each operator entered. It
keeps an operator's inputs and outputs for the whole stretch, which is never less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.planner.errors import ModelError, ModelFormatError, UnsupportedModelError, about_file
from arenite.planner.files import read_model
from arenite.planner.importers.tflite.file import (
    OMITTED,
    FileOperator,
    FileSubgraph,
    FileTensor,
    decode,
)
from arenite.planner.importers.tflite.operators import Loop, SubgraphEntry, tflite_operator
from arenite.planner.importers.tflite.tensors import kinds, notes, tensor_of
from arenite.planner.importers.tflite.variables import ASSIGN, Place, Variable, Variables
from arenite.planner.operators.imported import Imported
from arenite.planner.programs.program import Names, OperatorSet, Port, Program, Step
from arenite.planner.tensors import Tensor, TensorKind

_LOOPS = frozenset({"WHILE", "STABLEHLO_WHILE"})
_MAX_DEPTH = 64
_MAX_UNFOLDED = 2**25
_ENTRY_BYTES = 64


@dataclass(frozen=True, slots=True)
class TfliteModel:
    """A program, and where each of its tensors is in the file.

    Attributes:
        program: The model, subgraphs unfolded.
        locations: For each tensor its subgraph and its index there. Several names lead to
            one place when a subgraph is entered more than once. A state that stands for a
            variable is where the first handle is.
        operators: For each step that is an operator of the file its subgraph and its index
            there.
        variables: The file's description of each state that is a variable.
    """

    program: Program
    locations: Mapping[str, Place]
    operators: Mapping[str, Place]
    variables: Mapping[str, Variable]


def read_tflite_model(path: Path) -> TfliteModel:
    """Return the program of a model, with the place of each tensor in the file.

    Tensors keep their names; the second `x` becomes `x.2`, one without a name
    `tensor_<subgraph>_<index>`. Those of a subgraph are prefixed with its name, those of
    its second entry with `name@2`; constants and variables are one for all entries. A
    step is `CONV_2D_3`: its type and its index.

    Raises:
        ModelFormatError: The file is damaged or no TFLite file.
        UnsupportedModelError: A tensor has no fixed size, or subgraphs are recursive or
            unfold to too many operands.
        MissingDependencyError: The schema package is absent.

    Cost: time and memory O(tensors + operands of the steps) after unfolding.
    """
    with about_file(path):
        return model_of(path.name, decode(read_model(path)))


def model_of(
    name: str,
    subgraphs: tuple[FileSubgraph, ...],
    variables: Variables | None = None,
    *,
    to_run: bool = False,
) -> TfliteModel:
    """Return the model of that name from its decoded subgraphs, the entry first.

    Args:
        variables: Variables to read as states; by default they stay handles without bytes.
        to_run: Whether an IF becomes a choice between the outputs of its branches, and a WHILE
            one step.

    Raises:
        UnsupportedModelError: It is to be run, and has other control flow than IF and WHILE.
    """
    return _Unfolding(subgraphs, variables or Variables(), to_run=to_run).model(name)


@dataclass(frozen=True, slots=True)
class _Scope:
    """One entry of a subgraph: its tensors' names by index, and where it was entered from."""

    subgraph: FileSubgraph
    names: Mapping[int, str]
    ancestors: tuple[int, ...]

    def named(self, indexes: Sequence[int]) -> tuple[str, ...]:
        return tuple("" if index == OMITTED else self.names[index] for index in indexes)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.named([index for index in self.subgraph.inputs if index != OMITTED])

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.named([index for index in self.subgraph.outputs if index != OMITTED])


class _Unfolding:
    """Unfolds the subgraphs of one file into one list of steps."""

    def __init__(
        self, subgraphs: tuple[FileSubgraph, ...], variables: Variables, *, to_run: bool
    ) -> None:
        self._subgraphs = subgraphs
        self._to_run = to_run
        self._variables = variables
        self._operators: dict[str, Place] = {}
        self._tensors: dict[str, Tensor] = {}
        self._steps: list[Step] = []
        self._locations: dict[str, Place] = {}
        self._num_entries: dict[int, int] = {}
        self._names = Names()
        self._lasting: dict[tuple[int, int], Tensor] = {}
        self._kinds: dict[tuple[int, bool], dict[int, TensorKind]] = {}
        self._left = _MAX_UNFOLDED
        # The branches that the operator is in, of its program: the verdict and what it must be.
        self._choices: list[tuple[str, bool]] = []

    def model(self, name: str) -> TfliteModel:
        scope = self._enter(0, ())
        self._unfold(scope, "")
        try:
            program = Program.of(
                name, self._tensors.values(), self._steps, scope.inputs, scope.outputs,
                self._notes(), operator_set=OperatorSet.TFLITE,
            )  # fmt: skip
        except ModelError as error:
            raise ModelFormatError(str(error)) from error
        states = {
            name: self._variables.by_handle[position]
            for name, (index, position) in self._locations.items()
            if index == 0 and position in self._variables.by_handle
        }
        return TfliteModel(program, self._locations, self._operators, states)

    def _enter(
        self,
        index: int,
        ancestors: tuple[int, ...],
        inputs: Sequence[str] | None = None,
        *,
        is_program: bool = False,
    ) -> _Scope:
        """Give the subgraph's tensors the names of a new entry.

        Args:
            inputs: Names of the tensors that its inputs are; None to make tensors of them.
            is_program: Whether its inputs and outputs are those of a program.
        """
        subgraph = self._subgraphs[index]
        label = _label(subgraph, index)
        if index in ancestors:
            raise UnsupportedModelError(label, "recursive subgraphs are unsupported")
        if len(ancestors) == _MAX_DEPTH:
            raise UnsupportedModelError(label, f"subgraphs are nested deeper than {_MAX_DEPTH}")
        entry = self._num_entries[index] = self._num_entries.get(index, 0) + 1
        prefix = "" if index == 0 else f"{label}/" if entry == 1 else f"{label}@{entry}/"
        is_program = is_program or index == 0
        key = index, is_program
        if key not in self._kinds:
            self._kinds[key] = kinds(subgraph, is_first=is_program)
        names = {} if inputs is None else self._bound(subgraph, label, inputs)
        for position, kind in self._kinds[key].items():
            if position not in names:
                names[position] = self._name(index, position, kind, prefix)
        return _Scope(subgraph, names, (*ancestors, index))

    def _bound(self, subgraph: FileSubgraph, label: str, names: Sequence[str]) -> dict[int, str]:
        """Return the name of each input of a subgraph, which is a tensor outside of it."""
        if len(subgraph.inputs) != len(names):
            raise ModelFormatError(
                f"{label}: entered with {len(names)} operands, {len(subgraph.inputs)} expected"
            )
        found = {}
        for position, name in zip(subgraph.inputs, names, strict=True):
            tensor = subgraph.tensors[position]
            inner = tensor_of(tensor.name, tensor, TensorKind.ACTIVATION)
            if not name or (inner.shape, inner.dtype) != (
                self._tensors[name].shape,
                self._tensors[name].dtype,
            ):
                raise UnsupportedModelError(label, f"its input {tensor.name!r} is not {name!r}")
            found[position] = name
        return found

    def _name(self, index: int, position: int, kind: TensorKind, prefix: str) -> str:
        """Return the tensor's name, adding it if this entry has its own."""
        if index == 0:
            position = self._variables.first_handle.get(position, position)
        place = (index, position)
        tensor = self._tensor(index, position)
        if tensor.variable:
            kind = TensorKind.STATE
        stated = prefix + (tensor.name or f"tensor_{index}_{position}")
        self._spend(stated, 0)
        if place in self._lasting:
            lasting = self._lasting[place]
            self._tensors.setdefault(lasting.name, lasting)
            return lasting.name
        name = self._names.take(stated)
        self._tensors[name] = tensor_of(name, tensor, kind)
        self._locations[name] = place
        if kind in (TensorKind.CONSTANT, TensorKind.STATE):
            self._lasting[place] = self._tensors[name]
        return name

    def _tensor(self, index: int, position: int) -> FileTensor:
        """Return the tensor, a handle as the state that it leads to."""
        if index == 0 and position in self._variables.by_handle:
            return self._variables.stated(self._subgraphs[0], position)
        return self._subgraphs[index].tensors[position]

    def _unfold(self, scope: _Scope, prefix: str) -> None:
        index = scope.ancestors[-1]
        for step, operator in enumerate(scope.subgraph.operators):
            name = f"{prefix}{operator.op_type}_{step}"
            inputs, outputs = scope.named(operator.inputs), scope.named(operator.outputs)
            if index == 0 and step in self._variables.skipped:
                continue
            if not operator.entries:
                self._operators[name] = (index, step)
                kind = tflite_operator(operator.op_type, operator.attributes)
                if index == 0 and operator.op_type == ASSIGN and self._variables.by_handle:
                    inputs, outputs = inputs[1:], inputs[:1]
                self._append(name, kind, inputs, outputs)
            elif self._to_run and operator.op_type in _LOOPS:
                self._append_loop(name, operator, scope)
            elif self._to_run:
                self._unfold_choice(name, operator, scope)
            elif operator.op_type in _LOOPS:
                self._unfold_loop(name, operator, scope)
            else:
                ends: tuple[str, ...] = ()
                for entry in operator.entries:
                    ends += self._unfold_entry(name, operator, entry, inputs, scope)
                self._append(f"{name}/exit", Imported(f"{operator.op_type}/exit"), ends, outputs)

    def _unfold_choice(self, name: str, operator: FileOperator, scope: _Scope) -> None:
        """Append both branches of an IF, and the choice of their outputs."""
        if operator.op_type != "IF":
            raise UnsupportedModelError(operator.op_type, "it is planned, but not run")
        verdict, *inputs = scope.named(operator.inputs)
        branches = []
        for role, index in operator.entries:
            self._choices.append((verdict, role == "then"))
            inner = self._enter(index, scope.ancestors, inputs)
            self._unfold(inner, f"{name}/{role}/")
            branches.append(inner.outputs)
            self._choices.pop()
        outputs = scope.named(operator.outputs)
        if any(len(each) != len(outputs) for each in branches):
            raise ModelFormatError(f"{name}: its branches have other outputs than it has")
        for position, (output, *chosen) in enumerate(zip(outputs, *branches, strict=True)):
            choice = tflite_operator("SELECT_V2", {})
            self._append(f"{name}/{position}", choice, (verdict, *chosen), (output,))

    def _append_loop(self, name: str, operator: FileOperator, scope: _Scope) -> None:
        """Append a loop as one step, its condition and its body as programs of their own.

        Both branches of an IF run. A loop in one of them carries whether that is the chosen one,
        and makes no round if it is not: on such values it might never end.
        """
        inputs, outputs = scope.named(operator.inputs), scope.named(operator.outputs)
        if "" in (*inputs, *outputs):
            raise UnsupportedModelError(name, "an omitted carried value is unsupported")
        chosen = self._chosen(name)
        condition, body = (
            self._program_of(name, entry, scope, chosen) for entry in operator.entries
        )
        if chosen is not None:
            inputs = (*inputs, chosen.name)
            outputs = (*outputs, self._add(chosen, f"{chosen.name}/still").name)
        for program, ends in ((condition, 1), (body, len(outputs))):
            given = len(program.inputs), len(program.outputs)
            if len(inputs) != len(outputs) or given != (len(inputs), ends):
                raise ModelFormatError(
                    f"{name}: it carries {len(inputs)} to {len(outputs)} values, but "
                    f"{program.name!r} has {given[0]} inputs and {given[1]} outputs"
                )
        kind = Loop(operator.op_type, condition=condition, body=body)
        self._append(name, kind, inputs, outputs)

    def _chosen(self, name: str) -> Tensor | None:
        """Return whether the branches that a loop is in are chosen, None if it is in none."""
        found: Tensor | None = None
        for verdict, is_chosen in self._choices:
            tensor = self._tensors[verdict]
            if not is_chosen:
                tensor = self._computed("LOGICAL_NOT", f"{name}/other", tensor)
            if found is not None:
                tensor = self._computed("LOGICAL_AND", f"{name}/both", found, tensor)
            found = tensor
        return found

    def _computed(self, op_type: str, wanted: str, *operands: Tensor) -> Tensor:
        """Append an operator that the file does not have."""
        made = self._add(operands[0], wanted)
        inputs = tuple(each.name for each in operands)
        self._append(made.name, tflite_operator(op_type), inputs, (made.name,))
        return made

    def _add(self, like: Tensor, wanted: str, kind: TensorKind = TensorKind.ACTIVATION) -> Tensor:
        """Add a tensor that the file does not have."""
        made = replace(like, name=self._names.take(wanted), kind=kind)
        self._tensors[made.name] = made
        return made

    def _program_of(
        self, name: str, entry: tuple[str, int], scope: _Scope, chosen: Tensor | None
    ) -> Program:
        """Return the program of a subgraph, with tensors and steps of its own.

        Args:
            name: Name of the loop.
            entry: Role and index of the subgraph.
            scope: Where it is entered.
            chosen: Whether the loop may run; a program has it as its last input, if it is given.
        """
        role, index = entry
        outside = self._tensors, self._steps, self._choices
        self._tensors, self._steps, self._choices = {}, [], []
        try:
            inner = self._enter(index, scope.ancestors, is_program=True)
            self._unfold(inner, f"{name}/{role}/")
            inputs, outputs = inner.inputs, inner.outputs
            if chosen is not None:
                own = self._add(chosen, f"{name}/{role}/chosen", TensorKind.INPUT)
                inputs = (*inputs, own.name)
                if role == "body":
                    outputs = (*outputs, own.name)
                else:
                    ends = [self._tensors[each] for each in outputs]
                    both = self._computed("LOGICAL_AND", f"{name}/{role}/both", own, *ends)
                    outputs = (both.name,)
            return Program.of(
                f"{name}/{role}", self._tensors.values(), self._steps, _numbered(inputs),
                _numbered(outputs), operator_set=OperatorSet.TFLITE,
            )  # fmt: skip
        except (ModelFormatError, UnsupportedModelError):
            raise
        except ModelError as error:
            raise ModelFormatError(str(error)) from error
        finally:
            self._tensors, self._steps, self._choices = outside

    def _unfold_loop(self, name: str, operator: FileOperator, scope: _Scope) -> None:
        inputs, carried = scope.named(operator.inputs), scope.named(operator.outputs)
        if "" in carried:
            raise UnsupportedModelError(
                name, "an omitted output of a carried value is unsupported"
            )
        cond, body = operator.entries
        self._append(f"{name}/enter", Imported(f"{operator.op_type}/enter"), inputs, carried)
        verdict = self._unfold_entry(name, operator, cond, carried, scope)
        ends = self._unfold_entry(name, operator, body, carried + verdict, scope)
        self._append(f"{name}/exit", Imported(f"{operator.op_type}/exit"), ends + carried, ())

    def _unfold_entry(
        self,
        name: str,
        operator: FileOperator,
        entry: tuple[str, int],
        inputs: tuple[str, ...],
        scope: _Scope,
    ) -> tuple[str, ...]:
        """Append the steps of one subgraph and return the names of its outputs."""
        role, index = entry
        inner = self._enter(index, scope.ancestors)
        kind = SubgraphEntry(f"{operator.op_type}/{role}/enter", {"subgraph": index})
        self._append(f"{name}/{role}/enter", kind, inputs, inner.inputs)
        self._unfold(inner, f"{name}/{role}/")
        return inner.outputs

    def _append(
        self, name: str, operator: Imported, inputs: tuple[str, ...], outputs: tuple[str, ...]
    ) -> None:
        self._spend(name, len(inputs) + len(outputs))
        self._steps.append(Step(name, operator, inputs, outputs))

    def _spend(self, name: str, num_operands: int) -> None:
        """Limit the operators that subgraphs entering each other unfold to."""
        self._left -= _ENTRY_BYTES + len(name) + 8 * num_operands
        if self._left < 0:
            raise UnsupportedModelError(name, "the subgraphs expand to too many operators")

    def _notes(self) -> tuple[str, ...]:
        in_file = {name: self._tensor(*place) for name, place in self._locations.items()}
        own = {name: each for name, each in self._tensors.items() if name in in_file}
        result = list(notes(own, in_file))
        idle = [
            repr(_label(subgraph, index))
            for index, subgraph in enumerate(self._subgraphs)
            if index not in self._num_entries and index not in self._run_once()
        ]
        if idle:
            result.append(f"unused subgraphs, not planned: {', '.join(idle)}")
        return tuple(result)

    def _run_once(self) -> set[int]:
        """Return the subgraphs of which only the initial values of variables are taken."""
        operators = (self._subgraphs[0].operators[n] for n in self._variables.skipped)
        return {index for operator in operators for _, index in operator.entries}


def _numbered(tensors: Sequence[str]) -> list[Port]:
    """Return ports named by their numbers: the file may name one tensor twice."""
    return [Port(str(number), tensor) for number, tensor in enumerate(tensors)]


def _label(subgraph: FileSubgraph, index: int) -> str:
    return subgraph.name or f"subgraph_{index}"
