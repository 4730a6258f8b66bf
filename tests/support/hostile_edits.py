"""Edits that make the program of `MANY_KINDS` lie, and why each is refused."""

from collections.abc import Callable
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A part of the program, as the schema's JSON."""


def step(root: Json, kind: str) -> Json:
    """The first step of a kind."""
    return next(each for each in root["steps"] if each["kernel_type"] == kind)


def kernel(root: Json, kind: str) -> Json:
    """What the first step of a kind is told."""
    return step(root, kind)["kernel"]


def move(root: Json) -> Json:
    """The first move of the first copy."""
    return kernel(root, "Copy")["moves"][0]


def rank(root: Json) -> int:
    """The number of its axes."""
    return len(move(root)["shape"])


def constant(root: Json) -> int:
    """The index of a tensor among the weights."""
    return next(i for i, each in enumerate(root["tensors"]) if each["place"] == "weights")


def external(model: int, runtime: str = "onnxruntime") -> Json:
    """An operator of another runtime in place of ours."""
    return {
        "kernel_type": "External",
        "kernel": {
            "runtime": runtime, "model": model, "input_names": ["x"], "output_names": ["y"],
        },
    }  # fmt: skip


# What lies, how, and the words of the refusal.
EDITS: dict[str, tuple[Callable[[Json], object], str]] = {
    # The arena and the weights.
    "an arena beyond measure": (
        lambda r: r["memories"][0].update(size=2**62), "of 4611686018427387904 B is beyond"),
    "a smaller arena": (
        lambda r: r["memories"][0].update(size=64), "outside the 64 B of its place"),
    "an arena of nothing": (
        lambda r: r["memories"][0].update(size=0), "outside the 0 B of its place"),
    "other weights": (lambda r: r.update(weights_size=1), "the program expects 1"),
    "weights beyond measure": (
        lambda r: r.update(weights_size=2**63), "the program expects 9223372036854775808"),
    # Tensors.
    "a tensor behind the arena": (
        lambda r: r["tensors"][0].update(offset=2**40), "'x' lies at bytes 1099511627776 to"),
    "a tensor whose end overflows": (
        lambda r: r["tensors"][0].update(offset=2**64 - 4), "'x' lies at bytes 18446744073709551"),
    "a tensor between elements": (
        lambda r: r["tensors"][0].update(offset=2), "'x' lies at byte 2, between two of its"),
    "a tensor beyond measure": (
        lambda r: r["tensors"][0].update(shape=[2**40, 2**40]), "'x' is too large"),
    "a tensor of many axes": (
        lambda r: r["tensors"][0].update(shape=[1] * 40), "'x' has 40 axes"),
    "a tensor of a type to come": (
        lambda r: r["tensors"][0].update(type=99), "'x' has an unknown type or place"),
    "a tensor at a place to come": (
        lambda r: r["tensors"][0].update(place=9), "'x' has an unknown type or place"),
    "a tensor behind the weights": (
        lambda r: r["tensors"][constant(r)].update(offset=2**40), "outside the 10240 B"),
    "a scale of zero": (
        lambda r: r["tensors"][0].update(scales=[0.0]), "'x' has a scale that is not above 0"),
    "a scale below zero": (
        lambda r: r["tensors"][0].update(scales=[-1.0]), "'x' has a scale that is not above 0"),
    "many scales": (
        lambda r: r["tensors"][0].update(scales=[1.0, 2.0], axis=3), "'x' has 2 scales"),
    "scales of an axis that is not there": (
        lambda r: r["tensors"][0].update(scales=[1.0, 2.0], axis=4), "'x' has 2 scales"),
    "a zero point that no element is": (
        lambda r: r["tensors"][0].update(scales=[1.0], zero_point=2**20), "'x' has a zero point"),
    "a code in the arena": (
        lambda r: r["tensors"][0].update(coded_size=16), "'x' is coded, and no constant"),
    "a code of integers": (
        lambda r: r["tensors"][constant(r)].update(coded_size=16, type="int8"), "is coded, and"),
    "a code that is none": (
        lambda r: r["tensors"][constant(r)].update(coded_size=16),
        "weights that are damaged: they are of another version"),
    "a code behind the weights": (
        lambda r: r["tensors"][constant(r)].update(coded_size=2**40), "outside the 10240 B"),
    # Operands of steps.
    "an input that is not there": (
        lambda r: r["steps"][0].update(inputs=[99999, 1, -1]), "'c': an input is tensor 99999"),
    "an input before the first": (
        lambda r: r["steps"][0].update(inputs=[-2, 1, -1]), "'c': an input is tensor -2"),
    "an input left out": (
        lambda r: r["steps"][0].update(inputs=[-1, 1, -1]), "a required input is missing"),
    "an output that is not there": (
        lambda r: r["steps"][0].update(outputs=[-1]), "'c': an output is tensor -1"),
    "an output among the weights": (
        lambda r: r["steps"][0].update(outputs=[constant(r)]), "step 'c' writes a constant"),
    "no inputs": (lambda r: r["steps"][0].update(inputs=[]), "too few or too many inputs"),
    "no outputs": (lambda r: r["steps"][0].update(outputs=[]), "no output or too many"),
    "an input that is made later": (
        lambda r: r["steps"][0].update(inputs=[step(r, "Pool2D")["outputs"][0], 1, -1]),
        "in no record that is live at step 0"),
    "a model that is not there": (
        lambda r: r["steps"][0].update(external(4000)), "'c': its model is tensor 4000 of"),
    # Ports and states.
    "a port without its tensor": (
        lambda r: r["inputs"][0].update(tensor=4000), "input 'x' is tensor 4000"),
    "a port before the first tensor": (
        lambda r: r["outputs"][0].update(tensor=-1), "output 'y' is tensor -1"),
    "a port of another shape": (
        lambda r: r["inputs"][0].update(shape=[1, 3, 16, 15]), "'x' has a shape that is not its"),
    "a port of another rank": (
        lambda r: r["inputs"][0].update(shape=[1, 3, 256]), "'x' has another rank"),
    "a permutation with a repeat": (
        lambda r: r["inputs"][0].update(permutation=[0, 1, 1, 3]), "'x' has a shape that is not"),
    "a permutation of more axes": (
        lambda r: r["inputs"][0].update(permutation=[0, 2, 3, 200]), "'x' has a shape that is"),
    "a port twice": (lambda r: r["inputs"].append(r["inputs"][0]), "'x' has a duplicate name"),
    "an input among the weights": (
        lambda r: r["inputs"][0].update(tensor=constant(r)), "input 'x' is a constant"),
    "a state that is not there": (
        lambda r: r["states"].append({"tensor": 4000}), "a state is tensor 4000 of"),
    "a state among the weights": (
        lambda r: r["states"].append({"tensor": constant(r)}), "a state is a constant"),
    "a start that is not there": (
        lambda r: r["states"].append({"tensor": 0, "initial": 4000}), "of a state is tensor 4000"),
    "a start of another size": (
        lambda r: r["states"].append({"tensor": 0, "initial": constant(r)}),
        "not a constant of its size"),
    "a start in the arena": (
        lambda r: r["states"].append({"tensor": 0, "initial": 0}), "not a constant of its size"),
    # Records.
    "a record that ends first": (
        lambda r: r["records"][0].update(start=3, end=3), "record 'x' lives at steps 3 to 3 of"),
    "a record that outlives the steps": (
        lambda r: r["records"][0].update(end=2**32 - 1), "'x' lives at steps 0 to 4294967295 of"),
    "a record without bytes": (
        lambda r: r["records"][0].update(size=0), "record 'x' lies outside the"),
    "a record larger than the arena": (
        lambda r: r["records"][0].update(size=2**63), "record 'x' lies outside the"),
    "a record whose end overflows": (
        lambda r: r["records"][0].update(offset=2**64 - 64), "record 'x' lies outside the"),
    "a record that dies early": (
        lambda r: r["records"][0].update(end=1, start=0, size=64), "'x' lies in no record"),
    "a record that is missing": (
        lambda r: r["records"].pop(0), "'x' lies in no record that is live at step 0"),
    "records on each other": (
        lambda r: [each.update(offset=0) for each in r["records"]], "shares bytes with another"),
    # What steps are told.
    "groups of none": (
        lambda r: kernel(r, "Conv2D").update(groups=0), "groups and channels do not fit"),
    "groups that channels do not divide by": (
        lambda r: kernel(r, "Conv2D").update(groups=3), "groups and channels do not fit"),
    "strides of none": (
        lambda r: kernel(r, "Conv2D").update(strides=[0, 0]), "a window, stride or dilation is 0"),
    "strides beyond measure": (
        lambda r: kernel(r, "Conv2D").update(strides=[2**31] * 2), "a number is too large"),
    "dilations of none": (
        lambda r: kernel(r, "Conv2D").update(dilations=[0, 0]), "stride or dilation is 0"),
    "padding beyond measure": (
        lambda r: kernel(r, "Conv2D").update(padding=[2**31] * 4), "a number is too large"),
    "padding that does not fit": (
        lambda r: kernel(r, "Conv2D").update(padding=[0] * 4), "the windows do not make the rows"),
    "limits the wrong way round": (
        lambda r: kernel(r, "Conv2D").update(min=1.0, max=-1.0), "its min is above its max"),
    "a pool of other windows": (
        lambda r: kernel(r, "Pool2D").update(window=[5, 5]), "the windows do not make the rows"),
    "a pool of no windows": (
        lambda r: kernel(r, "Pool2D").update(window=[0, 0]), "stride or dilation is 0"),
    "a pool of a kind to come": (
        lambda r: kernel(r, "Pool2D").update(kind=9), "(Pool2D): its kind is unknown"),
    "a list too short": (
        lambda r: kernel(r, "Pool2D").update(window=[2]), "a list of numbers has the wrong"),
    "a function to come": (
        lambda r: kernel(r, "Unary").update(function=99), "(Unary): its function is unknown"),
    "a function of two to come": (
        lambda r: kernel(r, "Binary").update(function=99), "(Binary): no kernel runs it"),
    "a reduction to come": (
        lambda r: kernel(r, "Reduce").update(function=99), "(Reduce): no kernel runs it"),
    "a move that begins outside": (
        lambda r: move(r).update(output_start=10**6), "a move reaches outside its tensor"),
    "a move that begins beyond measure": (
        lambda r: move(r).update(input_start=2**63), "a move begins outside"),
    "a move that leads before": (
        lambda r: move(r).update(input_strides=[-1] * rank(r)),
        "a move reaches outside its tensor"),
    "a move that overflows": (
        lambda r: move(r).update(shape=[2**63] * rank(r)), "a move is too large"),
    "a stride that overflows": (
        lambda r: move(r).update(input_strides=[-(2**63)] * rank(r)), "a move is too large"),
    "a move without its strides": (
        lambda r: move(r).update(output_strides=[]), "a move has a shape without strides"),
    "a move of another operand": (
        lambda r: move(r).update(input=7), "a move names a tensor that the step does not have"),
    "a move to another operand": (
        lambda r: move(r).update(output=7), "a move names a tensor that the step does not have"),
    "a fill of two elements": (
        lambda r: kernel(r, "Copy").update(fill=[0] * 8), "its fill is not one element"),
    "a table that leads outside": (
        lambda r: kernel(r, "Resize2D").update(
            row_low=[99] * len(kernel(r, "Resize2D")["row_low"])),
        "an index table points outside the input"),
    "a table too short": (
        lambda r: kernel(r, "Resize2D").update(row_low=[0]), "an index table must have one entry"),
    "weights without their rows": (
        lambda r: kernel(r, "Resize2D").update(row_weight=[0.5]),
        "an index table must have one entry"),
    "axes beyond the rank": (
        lambda r: kernel(r, "Reduce").update(axes=[9]), "an axis is out of range"),
    "an axis twice": (
        lambda r: kernel(r, "Reduce").update(axes=[1, 1]), "an axis is out of range"),
}  # fmt: skip
