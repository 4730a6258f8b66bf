"""Operators of TFLite with many operands, options of their own kind, or subgraphs."""

from flatbuffers import flexbuffers

from sweep.tflite_file import Operator, Tensor
from sweep.tflite_operands import ROWS, STEPS, integers, numbers, scalar, x


def convolution(
    code: str, shape: tuple[int, ...], weights: Tensor, result: Tensor, kind: str
) -> Operator:
    """Return a convolution with a bias."""
    bias = numbers(result.shape[-1])
    return Operator(code, (x(*shape), weights, bias), (result,), (kind, STEPS))


def lstm(code: str, units: int = 4, size: int = 3) -> Operator:
    """Return an LSTM over a sequence."""
    gates = [numbers(units, size) for _ in range(4)]
    recurrent = [numbers(units, units) for _ in range(4)]
    biases = [numbers(units) for _ in range(4)]
    state = Tensor((2, units), is_variable=True)
    inputs = (
        x(2, 5, size), *gates, *recurrent, None, None, None, *biases, None, None, state, state,
        None, None, None, None,
    )  # fmt: skip
    return Operator(
        code,
        inputs,
        (x(2, 5, units),),
        ("UnidirectionalSequenceLSTMOptions", {"fusedActivationFunction": 4}),
    )


def rnn(code: str, source: Tensor, result: Tensor, kind: str) -> Operator:
    """Return a recurrent layer with a state."""
    state = Tensor((2, 4), is_variable=True)
    inputs = (source, numbers(4, 3), numbers(4, 4), numbers(4), state)
    return Operator(code, inputs, (result,), (kind, {"fusedActivationFunction": 4}))


def svdf() -> Operator:
    """Return an SVDF layer."""
    state = Tensor((2, 10 * 6), is_variable=True)
    inputs = (x(2, 7), numbers(10, 7), numbers(10, 6), numbers(5), state)
    return Operator("SVDF", inputs, (x(2, 5),), ("SVDFOptions", {"rank": 2}))


def nms(code: str) -> Operator:
    """Return a suppression of boxes that overlap."""
    inputs = (x(6, 4), x(6), scalar(4), scalar(0.5, "float32"), scalar(0.1, "float32"))
    found, count = x(4, dtype="int32"), Tensor((), "int32")
    if code.endswith("V4"):
        return Operator(code, inputs, (found, count), ("NonMaxSuppressionV4Options", {}))
    return Operator(
        code,
        (*inputs, scalar(0.0, "float32")),
        (found, x(4), count),
        ("NonMaxSuppressionV5Options", {}),
    )


def segments(code: str) -> Operator:
    """Return a reduction of the rows of each segment."""
    ids, kind = integers(0, 2, 1, 2), "".join(each.title() for each in code.split("_"))
    return Operator(code, (ROWS, ids, scalar(3)), (x(3, 9),), (f"{kind}Options", {}))


def control(code: str) -> Operator:
    """Return an operator that enters subgraphs."""
    body = Operator("ABS", (ROWS,), (ROWS,))
    if code == "IF":
        condition = Tensor((), "bool")
        return Operator(
            code,
            (condition, ROWS),
            (ROWS,),
            ("IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}),
            (body, Operator("NEG", (ROWS,), (ROWS,))),
        )
    if code in ("CALL_ONCE", "CALL"):
        options = ("CallOnceOptions", {"initSubgraphIndex": 1})
        return Operator(
            code,
            (ROWS,),
            (ROWS,),
            options if code == "CALL_ONCE" else ("CallOptions", {"subgraph": 1}),
            (body,),
        )
    if code == "STABLEHLO_COMPOSITE":
        return Operator(
            code,
            (ROWS,),
            (ROWS,),
            ("StableHLOCompositeOptions", {"decompositionSubgraphIndex": 1}),
            (body,),
        )
    value = Tensor((), "float32")
    test = Operator("LESS", (value, scalar(3.0, "float32")), (Tensor((), "bool"),))
    kind = "WhileOptions" if code == "WHILE" else "StablehloWhileOptions"
    return Operator(
        code,
        (value,),
        (value,),
        (kind, {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}),
        (test, Operator("EXP", (value,), (value,))),
    )


def detection_options() -> bytes:
    """Return the options of a detector's last step."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in (
            ("max_detections", 1),  # of rows without one LiteRT leaves the bytes as they were
            ("max_classes_per_detection", 1),
            ("num_classes", 2),
        ):
            builder.Key(name)
            builder.Int(value)
        for name, number in (
            ("nms_score_threshold", 0.1),
            ("nms_iou_threshold", 0.5),
            ("y_scale", 10.0),
            ("x_scale", 10.0),
            ("h_scale", 5.0),
            ("w_scale", 5.0),
        ):
            builder.Key(name)
            builder.Float(number)
    return bytes(builder.Finish())
