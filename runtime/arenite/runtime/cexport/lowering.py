"""From a model to the program that C kernels run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

import numpy as np

from arenite.planner import Array, DType, Port, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Operator
from arenite.planner.programs import Names, OperatorSet
from arenite.runtime.cexport.blocks_in_floats import with_floats_for_blocks
from arenite.runtime.cexport.hybrid_in_floats import in_floats
from arenite.runtime.cexport.steps.attention import AttentionApart
from arenite.runtime.cexport.steps.convolution import UnbufferedTransposedConv2D, UnpackedMatMul
from arenite.runtime.cexport.steps.counting import SuppressionByHeap
from arenite.runtime.cexport.steps.hybrid import quantise_operands
from arenite.runtime.cexport.steps.recurrent import UnbufferedGru, UnbufferedLstm, UnbufferedRnn
from arenite.runtime.operators.attention import Attention
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.convolution import TransposedConv2D
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.linear import MatMul
from arenite.runtime.operators.loops import throughout
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.operators.recurrent import Gru, Lstm, Rnn
from arenite.runtime.operators.special import NonMaxSuppression
from arenite.runtime.rewrites.attention import fuse_attention
from arenite.runtime.rewrites.fusing import fold_pads, without_unread


@dataclass(frozen=True, slots=True)
class Signed:
    """A program without quantised bytes that have no sign.

    Attributes:
        shifted: The tensors that had no sign; they are stored less 128.
    """

    program: Program
    shifted: frozenset[str]


def lower_for_c(model: Program) -> Program:
    """Lower a model to our operators, its filters as the model has them.

    Raises:
        ModelError: It has an operator that has no translation.
    """
    if model.operator_set is OperatorSet.TFLITE:
        from arenite.runtime.lowering.tflite.model import lower_tflite

        lowered = lower_tflite(model, means_as_pools=False, keeps_bytes=True)
        asymmetric = _asymmetric(model)

        def own(program: Program) -> Program:
            made = _for_kernels(fuse_attention(_products_of_bytes(program)))
            return _with_copied_outputs(quantise_operands(made, asymmetric))

        return throughout(lowered, own)
    from arenite.runtime.lowering.onnx.model import lower_onnx

    lowered = with_floats_for_blocks(lower_onnx(model))
    return _with_copied_outputs(_for_kernels(fuse_attention(lowered)))


def lower_hybrid_for_runtime(model: Program) -> Program:
    """Lower a TFLite model for our runtime; it rounds what layers with weights of bytes read.

    It does so as the C kernels do. Our runtime itself takes such weights as floats.

    Raises:
        ModelError: It has an operator that has no translation.
    """
    from arenite.runtime.lowering.tflite.model import lower_tflite

    asymmetric = _asymmetric(model)
    return throughout(
        lower_tflite(model, keeps_bytes=True),
        lambda program: in_floats(quantise_operands(program, asymmetric)),
    )


def _asymmetric(model: Program) -> frozenset[str]:
    """Return the matrix products that round floats to bytes with a zero point."""
    from arenite.planner.importers.tflite import steps_of
    from arenite.runtime.lowering.tflite.translation import options_of

    return frozenset(
        step.name for step in steps_of(model) if options_of(step).get("AsymmetricQuantizeInputs")
    )


def _for_kernels(program: Program) -> Program:
    """Return the program with what the C kernels do in another way than those of the runtime."""
    steps = tuple(
        replace(step, operator=_OF_KERNELS[type(step.operator)](**_fields(step.operator)))
        if type(step.operator) in _OF_KERNELS
        else step
        for step in program.steps
    )
    return fold_pads(replace(program, steps=steps))


_OF_KERNELS: Final[Mapping[type, type[RuntimeOperator]]] = {
    Attention: AttentionApart, Gru: UnbufferedGru, Lstm: UnbufferedLstm, MatMul: UnpackedMatMul,
    NonMaxSuppression: SuppressionByHeap, Rnn: UnbufferedRnn,
    TransposedConv2D: UnbufferedTransposedConv2D,
}  # fmt: skip


def _products_of_bytes(program: Program) -> Program:
    """Return the program with products of int8 matrices where it multiplies them as floats.

    TensorFlow Lite's kernels multiply the integers.
    """
    converts = {s.outputs[0]: s for s in program.steps if type(s.operator) is Convert}
    uses = Counter(name for step in program.steps for name in step.reads)
    uses.update(program.output_tensors)
    uses.update(each.alias.tensor for each in program.tensors.values() if each.alias is not None)
    steps = {step.name: step for step in program.steps}
    for last in converts.values():
        product = next((s for s in program.steps if last.inputs[0] in s.outputs), None)
        if product is None or type(product.operator) is not MatMul or uses[last.inputs[0]] > 1:
            continue
        before = [converts.get(name) for name in product.inputs]
        inputs = tuple(step.inputs[0] for step in before if step is not None)
        types = {program.tensors[name].dtype for name in (*inputs, *last.outputs)}
        if None in before or types != {DType.INT8}:
            continue
        steps[product.name] = replace(product, inputs=inputs, outputs=last.outputs)
        del steps[last.name]
        uses.subtract(product.inputs)
    unread = {step.name for name, step in converts.items() if uses[name] == 0}
    kept = tuple(step for step in steps.values() if step.name not in unread)
    return without_unread(replace(program, steps=kept))


def _with_copied_outputs(program: Program) -> Program:
    """Return the program with a copy in the arena of each constant that is an output of it."""
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    tensors, steps, ports = dict(program.tensors), list(program.steps), list[Port]()
    for port in program.outputs:
        tensor = tensors[port.tensor]
        if tensors[program.root(tensor.name)[0]].kind is TensorKind.CONSTANT:
            name = names.take(f"{tensor.name}/copy")
            move = Move(shape=(tensor.num_elements,), input_strides=(1,), output_strides=(1,))
            tensors[name] = replace(tensor, name=name, kind=TensorKind.OUTPUT, alias=None)
            steps.append(Step(name, Copy(moves=(move,)), (tensor.name,), (name,)))
            port = replace(port, tensor=name)
        ports.append(port)
    return replace(program, tensors=tensors, steps=tuple(steps), outputs=tuple(ports))


def _fields(operator: Operator) -> dict[str, Any]:
    assert is_dataclass(operator)
    return {each.name: getattr(operator, each.name) for each in fields(operator)}


def is_unsigned(tensor: Tensor) -> bool:
    """Tell whether a tensor is of quantised bytes without a sign."""
    return tensor.dtype is DType.UINT8 and tensor.quantisation is not None


def signed(program: Program, *, is_inner: bool = False) -> Signed:
    """Return the program with a sign for every quantised byte, as the kernels take them.

    Bytes less 128 stand for the same numbers when their zero point is less by 128 too. Inputs
    and outputs keep their type: a step converts them, in place where it may.

    Args:
        program: A lowered program.
        is_inner: Whether a step runs it, with inputs and outputs that have a sign too.
    """
    shifted = {name for name, tensor in program.tensors.items() if is_unsigned(tensor)}
    if not shifted:
        return Signed(program, frozenset())
    return _Signing(program, shifted, is_inner=is_inner).signed()


class _Signing:
    def __init__(self, program: Program, shifted: set[str], *, is_inner: bool) -> None:
        self._is_inner = is_inner
        self._program = program
        self._shifted = shifted
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])
        self._tensors = {n: _shift(t) if n in shifted else t for n, t in program.tensors.items()}
        self._constants: dict[str, Array] = {
            name: (array ^ np.uint8(0x80)).view(np.int8) if name in shifted else array
            for name, array in program.constants.items()
        }

    def signed(self) -> Signed:
        program = self._program
        before = [self._input(port) for port in program.inputs]
        after = [self._output(port) for port in program.outputs]
        steps = [
            *(step for _, step in before if step is not None),
            *map(self._step, program.steps),
            *(step for _, step in after if step is not None),
        ]
        made = replace(
            program,
            tensors=self._tensors,
            steps=tuple(steps),
            inputs=tuple(port for port, _ in before),
            outputs=tuple(port for port, _ in after),
            constants=self._constants,
        )
        return Signed(made, frozenset(self._shifted))

    def _step(self, step: Step) -> Step:
        """Return the step; what it fills its output with is shifted like that."""
        operator = step.operator
        if not isinstance(operator, Copy) or not operator.fill:
            return step
        if step.outputs[0] not in self._shifted:
            return step
        fill = bytes(byte ^ 0x80 for byte in operator.fill)
        return replace(step, operator=replace(operator, fill=fill))

    def _input(self, port: Port) -> tuple[Port, Step | None]:
        if port.tensor not in self._shifted or self._is_inner:
            return port, None
        outer = self._outer(port.tensor, TensorKind.INPUT)
        own = self._tensors[port.tensor]
        self._tensors[port.tensor] = replace(own, kind=TensorKind.ACTIVATION)
        step = Step(self._names.take(f"{port.tensor}/signed"), Convert(), (outer,), (port.tensor,))
        return replace(port, tensor=outer), step

    def _output(self, port: Port) -> tuple[Port, Step | None]:
        if port.tensor not in self._shifted or self._is_inner:
            return port, None
        outer = self._outer(port.tensor, TensorKind.OUTPUT)
        own = self._tensors[port.tensor]
        if own.kind is TensorKind.OUTPUT:
            self._tensors[port.tensor] = replace(own, kind=TensorKind.ACTIVATION)
        step = Step(
            self._names.take(f"{port.tensor}/unsigned"), Convert(), (port.tensor,), (outer,)
        )
        return replace(port, tensor=outer), step

    def _outer(self, name: str, kind: TensorKind) -> str:
        tensor = self._program.tensors[name]
        outer = self._names.take(f"{name}/outside")
        self._tensors[outer] = replace(tensor, name=outer, kind=kind, alias=None)
        return outer


def _shift(tensor: Tensor) -> Tensor:
    stated = tensor.quantisation
    assert stated is not None
    quantisation = replace(stated, zero_point=stated.zero_point - 128)
    return replace(tensor, dtype=DType.INT8, quantisation=quantisation)
