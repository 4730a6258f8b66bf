"""Read an ONNX model.

Every dimension is bound and every operator typed in one pass over the nodes; what is known before
the run, such as the shape arithmetic that exporters emit, becomes constant.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import onnx

from arenite.planner.errors import SizeError, UnsupportedModelError, about_file
from arenite.planner.importers.onnx.binding import Binding, bind, fix_inputs
from arenite.planner.importers.onnx.caches import with_caches
from arenite.planner.importers.onnx.call import TiedError, text
from arenite.planner.importers.onnx.control_flow import walk_if, walk_loop, walk_scan
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.order import live_steps
from arenite.planner.importers.onnx.states import States, placed, take_states
from arenite.planner.importers.onnx.values import Constants
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.operators.imported import Imported
from arenite.planner.operators.operator import Operands
from arenite.planner.programs.program import OperatorSet, Program, Step
from arenite.planner.rewrites.noops import drop_noops
from arenite.planner.sizes import Dimension, Expression, Length
from arenite.planner.tensors import Tensor, TensorKind

_CONTROL_FLOW = {"If": walk_if, "Loop": walk_loop, "Scan": walk_scan}
_HIDDEN = {"If": "the branch it takes", "Loop": "its body", "Scan": "its body"}


_NO_DIMS: Mapping[str, Length] = MappingProxyType({})
_NO_SHAPES: Mapping[str, tuple[Length, ...]] = MappingProxyType({})
_NO_VALUES: Mapping[str, float] = MappingProxyType({})


def read_onnx(
    path: Path,
    *,
    dims: Mapping[str, Length] = _NO_DIMS,
    shapes: Mapping[str, tuple[Length, ...]] = _NO_SHAPES,
    values: Mapping[str, float] = _NO_VALUES,
    weights: bool = False,
) -> Program:
    """Return the program of an ONNX model.

    Weights are read only when asked for. An If whose condition is known is replaced by the
    branch taken; other control flow stays one step, whose scratch holds what the larger of its
    subgraphs has live at once, and a note says so.

    Args:
        path: An ONNX file, operator set 7 or later; external data lie beside it.
        dims: Values or ranges of free dimensions by name; one without a name goes by its input
            and axis, such as `input:0`. A value may be an expression of other dimensions.
        shapes: Whole shapes of inputs by name, of values and ranges.
        values: Inputs fixed at a value, in all elements, by name: constants then, no inputs of
            the program, and an If that depends on them becomes one branch.
        weights: Whether large constants, and whatever any operator computes from constants,
            are available. Needed to run the model, not to size it.

    Where a dimension grows (`0..255+`), inputs that have it are caches of the program, and other
    pairs of past and present by their names are states.

    Raises:
        ModelFormatError: The file cannot be read or is not a valid ONNX model.
        UnsupportedModelError: A tensor has no size, or none that is known before the run.
        UnboundDimensionError: A free dimension has no value.
        BindingError: `dims`, `shapes` or `values` does not fit the model.
        SizeError: A length is not known for all sizes of a range.
        MissingDependencyError: The package onnx is absent, or onnxruntime where the model
            has operators that onnx does not define.
    """
    ties: dict[str, int] = {}
    with about_file(path):
        while True:
            model = load_model(path)
            states = take_states(model, values)
            binding = bind(model.graph, dims, shapes, ties)
            states = with_caches(states, model.graph, binding)
            try:
                return _read(model, states, binding, path, values, ties, weights=weights)
            except TiedError as error:
                if error.dimension in ties:
                    raise
                ties[error.dimension] = error.size


def _read(
    model: onnx.ModelProto,
    states: States,
    binding: Binding,
    path: Path,
    values: Mapping[str, float],
    ties: Mapping[str, int],
    *,
    weights: bool,
) -> Program:
    fix_inputs(model.graph, binding.inputs, values)
    fixed = {name: binding.inputs[name] for name in values}
    binding = binding.without(values)

    def walk_of(*, counts: bool) -> tuple[Walk, list[Step]]:
        walk = Walk(model, binding, _CONTROL_FLOW, path.parent, weights=weights, counts=counts)
        return walk, walk.run(fixed)

    uncounted = []
    try:
        walk, walked = walk_of(counts=weights)
    except TiedError:
        raise
    except (SizeError, UnsupportedModelError) as error:
        # Bounds may suffice where a rule is missing, and counts where a size has no bound.
        try:
            walk, walked = walk_of(counts=not weights)
        except (SizeError, UnsupportedModelError):
            raise error from None
        if weights:
            uncounted = [f"sizes that depend on data cannot be run: {error.reason}"]
    outputs = tuple(dict.fromkeys(output.name for output in model.graph.output))
    steps = live_steps(walked, [*outputs, *(each.counted_by for each in walk.dimensions)])
    tensors = _tensors(walk, steps, tuple(binding.inputs), outputs, states)
    num_live = len(steps)
    tensors, steps = placed(states, tensors, steps, walk.dialect)
    constants = [tensor.name for tensor in tensors if tensor.kind is TensorKind.CONSTANT]
    sized = walk.ranged.sized if walk.ranged else {}
    program = Program.of(
        path.stem,
        tensors,
        steps,
        [name for name in binding.inputs if name not in states.replaced_by],
        [name for name in outputs if name not in {*states.replaced_by.values()}],
        [
            *(
                f"dimension {name!r} is {text(size)}, as operators require"
                for name, size in ties.items()
            ),
            *_notes(walk, steps, walk.num_dead + len(walked) - num_live),
            *uncounted,
        ],
        operator_set=OperatorSet.ONNX,
        constants=Constants(walk.values, [*constants, *states.initial.values()], sized),
        initial=states.initial,
        dimensions=_dimensions(walk, binding, tensors),
        caches=states.continued_by,
    )
    return drop_noops(program)


def _dimensions(walk: Walk, binding: Binding, tensors: Sequence[Tensor]) -> tuple[Dimension, ...]:
    """Return the dimensions of the inputs, and those that steps count."""
    counted = walk.dimensions[len(binding.ranges) :]
    lengths = {n for each in tensors for n in map(Expression.of, each.shape)}
    used = {name for each in lengths for name in each.names}
    return (*binding.ranges, *(each for each in counted if each.name in used))


def _tensors(
    walk: Walk,
    steps: Sequence[Step],
    inputs: Sequence[str],
    outputs: Sequence[str],
    states: States,
) -> list[Tensor]:
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(walk.constants, TensorKind.CONSTANT))
    kinds.update(dict.fromkeys(inputs, TensorKind.INPUT))
    kinds.update(dict.fromkeys(states.replaced_by, TensorKind.STATE))
    used = [name for step in steps for name in (*step.reads, *step.writes)]
    return [
        Tensor(name, *walk.types[name], kinds.get(name, TensorKind.ACTIVATION))
        for name in dict.fromkeys((*inputs, *used, *outputs))
    ]


def _notes(walk: Walk, steps: Sequence[Step], num_dead: int) -> list[str]:
    notes = [
        f"{step.operator.label} {step.name!r}: {_HIDDEN[step.operator.label]} needs at most "
        f"{step.operator.scratch(Operands((), ())):,} B, its scratch in a plan of the graph as "
        "written; where ONNX Runtime runs it, that lies outside the arena"
        for step in steps
        if step.operator.label in _HIDDEN
    ]
    notes += [
        f"{step.operator.label} {step.name!r}: the size of its output depends on data; planned at "
        f"its upper bound, {', '.join(f'{name!r} of {walk.types[name]}' for name in step.writes)}"
        for step in steps
        if isinstance(step.operator, Imported) and step.operator.is_bound
    ]
    if walk.num_folded:
        notes.append(f"operators removed because their outputs are constants: {walk.num_folded}")
    if num_dead:
        notes.append(f"operators removed because no output depends on them: {num_dead}")
    return notes
