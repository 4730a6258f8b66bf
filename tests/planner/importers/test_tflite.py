import random
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.planner.errors import (
    AreniteError,
    MissingDependencyError,
    ModelFormatError,
    UnsupportedModelError,
)
from arenite.planner.importers.tflite import TfliteModel, read_tflite, read_tflite_model
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import DType, TensorKind
from support import tiny_tflite as tiny_tflite_module
from support.shared_material import shared
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

CHAIN = TinySubgraph(
    tensors=[TinyTensor("x"), TinyTensor("y"), TinyTensor("w", data=bytes(16)), TinyTensor("z")],
    operators=[TinyOperator(Op.ADD, [0, 2], [1]), TinyOperator(Op.RELU, [1], [3])],
    inputs=[0],
    outputs=[3],
)


def load(tmp_path: Path, *subgraphs: TinySubgraph) -> TfliteModel:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(tiny_tflite(*subgraphs))
    return read_tflite_model(path)


def lifetimes(graph: Program) -> dict[str, tuple[int, int]]:
    return {record.name: (record.start, record.end) for record in liveness(graph).records}


def step(graph: Program, name: str) -> int:
    return [operator.name for operator in graph.steps].index(name)


def unary(code: int = Op.RELU, name: str = "", middle: Sequence[TinyTensor] = ()) -> TinySubgraph:
    """One operator from `a` to `b`."""
    tensors = [TinyTensor("a"), TinyTensor("b"), *middle]
    return TinySubgraph(tensors, [TinyOperator(code, [0], [1])], [0], [1], name)


VERDICT = TinySubgraph(
    [TinyTensor("a"), TinyTensor("again", (1,), TensorType.BOOL)],
    [TinyOperator(Op.LESS, [0], [1])],
    [0],
    [1],
    "cond",
)
TWO_STEPS = TinySubgraph(
    [TinyTensor("a"), TinyTensor("mid"), TinyTensor("b")],
    [TinyOperator(Op.RELU, [0], [1]), TinyOperator(Op.TANH, [1], [2])],
    [0],
    [2],
    "body",
)


def calling(code: int, *subgraphs: int, inputs: Sequence[int] = (1,)) -> TinySubgraph:
    """`x` -> `before` -> the operator -> `after` -> `z`, with `kept` from start to end."""
    names = ("x", "before", "after", "kept", "z")
    return TinySubgraph(
        [TinyTensor(name) for name in names],
        [
            TinyOperator(Op.ABS, [0], [1]),
            TinyOperator(Op.NEG, [0], [3]),
            TinyOperator(code, inputs, [2], subgraphs),
            TinyOperator(Op.ADD, [2, 3], [4]),
        ],
        [0],
        [4],
    )


def test_neighbours_in_a_chain_are_live_together_and_others_are_not(tmp_path: Path) -> None:
    graph = load(tmp_path, CHAIN).program
    assert lifetimes(graph) == {"x": (0, 1), "y": (0, 2), "z": (1, 2)}
    assert [operator.name for operator in graph.steps] == ["ADD_0", "RELU_1"]
    assert (graph.input_tensors, graph.output_tensors) == (("x",), ("z",))


def test_an_operator_is_known_by_the_larger_of_both_fields_of_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TinySubgraph(
        [TinyTensor("x"), TinyTensor("y")], [TinyOperator(Op.MUL, [0, 0], [1])], [0], [1]
    )
    for field in ("BuiltinCode", "DeprecatedBuiltinCode"):
        with monkeypatch.context() as patch:
            patch.setattr(tiny_tflite_module, "_code", lambda code, name=field: {name: code})
            (step,) = load(tmp_path, model).program.steps
        assert step.name == "MUL_0"


def test_constants_inside_and_outside_the_flatbuffer_are_never_placed(tmp_path: Path) -> None:
    tensors = [
        TinyTensor("x"),
        TinyTensor("inside", data=bytes(16)),
        TinyTensor("behind", data=(20, 16)),
        TinyTensor("sparse", sparse=True),
        TinyTensor("unwritten"),
        TinyTensor("y"),
    ]
    model = TinySubgraph(tensors, [TinyOperator(Op.ADD_N, range(5), [5])], [0], [5])
    graph = load(tmp_path, model).program
    assert set(lifetimes(graph)) == {"x", "y"}
    assert graph.tensors["behind"].kind is TensorKind.CONSTANT


def test_a_variable_lives_throughout_even_if_nobody_names_it(tmp_path: Path) -> None:
    tensors = [*CHAIN.tensors, TinyTensor("state", variable=True)]
    graph = load(tmp_path, replace(CHAIN, tensors=tensors)).program
    assert graph.tensors["state"].kind is TensorKind.STATE
    assert lifetimes(graph)["state"] == (0, 2)


def test_an_omitted_input_is_an_empty_name(tmp_path: Path) -> None:
    operators = [TinyOperator(Op.ADD, [0, -1], [1]), TinyOperator(Op.RELU, [1], [3])]
    graph = load(tmp_path, replace(CHAIN, operators=operators)).program
    assert graph.steps[0].inputs == ("x", "")


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        (TensorType.FLOAT32, DType.FLOAT32),
        (TensorType.FLOAT16, DType.FLOAT16),
        (TensorType.BFLOAT16, DType.BFLOAT16),
        (TensorType.COMPLEX128, DType.COMPLEX128),
        (TensorType.INT4, DType.INT4),
        (19, DType.INT2),
        (20, DType.UINT4),
        (21, DType.FLOAT8E4M3FN),
        (22, DType.FLOAT8E5M2),
    ],
)
def test_element_types_are_those_of_the_schema(tmp_path: Path, code: int, dtype: DType) -> None:
    tensors = [TinyTensor("x", (3,), code), *CHAIN.tensors[1:]]
    tensor = load(tmp_path, replace(CHAIN, tensors=tensors)).program.tensors["x"]
    assert (tensor.dtype, tensor.shape) == (dtype, (3,))


def test_every_element_type_of_the_schema_package_is_decided(tmp_path: Path) -> None:
    codes = [value for name, value in vars(TensorType).items() if name.isupper()]
    for code in codes:
        tensors = [TinyTensor("x", (3,), code), *CHAIN.tensors[1:]]
        if code in (TensorType.STRING, TensorType.VARIANT):
            with pytest.raises(UnsupportedModelError, match="'x'"):
                load(tmp_path, replace(CHAIN, tensors=tensors))
        else:
            load(tmp_path, replace(CHAIN, tensors=tensors))


def test_a_resource_handle_takes_no_bytes_and_is_noted(tmp_path: Path) -> None:
    tensors = [TinyTensor("x"), TinyTensor("handle", (), TensorType.RESOURCE), TinyTensor("y")]
    operators = [
        TinyOperator(Op.VAR_HANDLE, [], [1]),
        TinyOperator(Op.ASSIGN_VARIABLE, [1, 0], []),
        TinyOperator(Op.READ_VARIABLE, [1], [2]),
    ]
    graph = load(tmp_path, TinySubgraph(tensors, operators, [0], [2])).program
    assert set(lifetimes(graph)) == {"x", "y"}
    assert any("'handle'" in note for note in graph.notes)


def test_constant_strings_are_no_obstacle(tmp_path: Path) -> None:
    words = TinyTensor("words", (2,), TensorType.STRING, data=b"two words")
    tensors = [*CHAIN.tensors[:2], words, CHAIN.tensors[3]]
    assert "words" not in lifetimes(load(tmp_path, replace(CHAIN, tensors=tensors)).program)


def test_sizes_that_the_file_leaves_open_are_noted_by_name(tmp_path: Path) -> None:
    tensors = [
        TinyTensor("x", (1, 8), signature=(-1, 8)),
        TinyTensor("scalar", ()),
        CHAIN.tensors[2],
        TinyTensor("boxes", (), TensorType.FLOAT32, has_rank=False),
    ]
    free, unstated = load(tmp_path, replace(CHAIN, tensors=tensors)).program.notes
    assert "'x' (1, 8)" in free
    assert "'boxes' 4 B" in unstated
    assert "scalar'" not in unstated


def test_names_become_unique_in_the_order_of_the_file(tmp_path: Path) -> None:
    tensors = [TinyTensor("t"), TinyTensor("t"), TinyTensor("t.2", data=b"w"), TinyTensor("")]
    model = load(tmp_path, replace(CHAIN, tensors=tensors))
    assert list(model.program.tensors) == ["t", "t.2", "t.2.2", "tensor_0_3"]
    assert list(model.locations.values()) == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_custom_and_unheard_of_operators_are_named_by_what_the_file_says(tmp_path: Path) -> None:
    operators = [TinyOperator("WHILE", [0], [1]), TinyOperator(9999, [1], [3])]
    graph = load(tmp_path, replace(CHAIN, operators=operators)).program
    assert [operator.name for operator in graph.steps] == ["WHILE_0", "BUILTIN_9999_1"]


def test_both_branches_of_an_if_are_laid_between_its_enters_and_its_exit(tmp_path: Path) -> None:
    model = load(tmp_path, calling(Op.IF, 1, 2), unary(Op.EXP, "then"), unary(Op.LOG, "else"))
    assert [operator.name for operator in model.program.steps] == [
        "ABS_0",
        "NEG_1",
        "IF_2/then/enter",
        "IF_2/then/EXP_0",
        "IF_2/else/enter",
        "IF_2/else/LOG_0",
        "IF_2/exit",
        "ADD_3",
    ]
    assert lifetimes(model.program) == {
        "x": (0, 2),
        "before": (0, 5),
        "kept": (1, 8),
        "then/a": (2, 4),
        "then/b": (3, 7),
        "else/a": (4, 6),
        "else/b": (5, 7),
        "after": (6, 8),
        "z": (7, 8),
    }
    assert model.program.steps[4].operator.attributes == {"subgraph": 2}
    assert model.locations["else/b"] == (2, 1)


@pytest.mark.parametrize("code", [Op.WHILE, Op.STABLEHLO_WHILE])
def test_what_a_loop_carries_lives_from_its_enter_to_its_exit(tmp_path: Path, code: int) -> None:
    graph = load(tmp_path, calling(code, 1, 2), VERDICT, TWO_STEPS).program
    loop = next(o.name for o in graph.steps if "WHILE" in o.name).removesuffix("/enter")
    enter, leave = step(graph, f"{loop}/enter"), step(graph, f"{loop}/exit")
    body = step(graph, f"{loop}/body/enter")
    live = lifetimes(graph)
    assert live["before"] == (0, enter + 1)
    assert live["after"] == (enter, leave + 2)
    assert live["kept"][0] < enter < leave < live["kept"][1]
    assert live["cond/a"] == (enter + 1, enter + 3)
    assert live["cond/again"] == (enter + 2, body + 1)
    assert live["body/a"] == (body, body + 2)
    assert live["body/mid"] == (body + 1, body + 3)
    assert live["body/b"] == (body + 2, leave + 1)


def test_a_carried_value_that_nobody_reads_after_the_loop_lives_to_its_exit(
    tmp_path: Path,
) -> None:
    main = calling(Op.WHILE, 1, 2)
    main = replace(main, operators=[*main.operators[:3], TinyOperator(Op.ADD, [3, 3], [4])])
    graph = load(tmp_path, main, VERDICT, TWO_STEPS).program
    exit_step = step(graph, "WHILE_2/exit")
    assert lifetimes(graph)["after"] == (step(graph, "WHILE_2/enter"), exit_step + 1)


def test_a_loop_that_leaves_out_a_carried_value_is_refused(tmp_path: Path) -> None:
    main = calling(Op.WHILE, 1, 2)
    loop = replace(main.operators[2], outputs=[2, -1])
    main = replace(main, operators=[*main.operators[:2], loop, main.operators[3]])
    with pytest.raises(UnsupportedModelError, match="WHILE_2"):
        load(tmp_path, main, VERDICT, TWO_STEPS)


@pytest.mark.parametrize(
    ("code", "role"), [(Op.CALL_ONCE, "init"), (Op.STABLEHLO_COMPOSITE, "decomposition")]
)
def test_a_called_subgraph_is_laid_where_it_is_called(
    tmp_path: Path, code: int, role: str
) -> None:
    graph = load(tmp_path, calling(code, 1), TWO_STEPS).program
    names = [operator.name.split("/", 1)[-1] for operator in graph.steps]
    assert names[2:6] == [f"{role}/enter", f"{role}/RELU_0", f"{role}/TANH_1", "exit"]
    assert lifetimes(graph)["body/b"] == (4, 6)


def test_a_second_entry_has_tensors_of_its_own_but_the_same_variables(tmp_path: Path) -> None:
    inner = unary(Op.RELU, "twin", [TinyTensor("state", variable=True)])
    model = load(tmp_path, calling(Op.IF, 1, 1), inner)
    assert [name for name, place in model.locations.items() if place == (1, 0)] == [
        "twin/a",
        "twin@2/a",
    ]
    assert [name for name, place in model.locations.items() if place == (1, 2)] == ["twin/state"]
    assert lifetimes(model.program)["twin/state"] == (0, 8)


def test_subgraphs_that_nobody_enters_are_noted(tmp_path: Path) -> None:
    notes = load(tmp_path, CHAIN, unary(name="training"), unary()).program.notes
    assert any("'training', 'subgraph_2'" in note for note in notes)


def test_a_subgraph_that_enters_itself_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"'again': recursive subgraphs"):
        load(tmp_path, calling(Op.CALL_ONCE, 1), replace(calling(Op.CALL_ONCE, 1), name="again"))


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    nest = [calling(Op.CALL_ONCE, index + 1) for index in range(1000)]
    with pytest.raises(UnsupportedModelError, match="nested deeper"):
        load(tmp_path, *nest, CHAIN)


def test_subgraphs_that_multiply_are_refused_before_memory_runs_out(tmp_path: Path) -> None:
    doubling = [calling(Op.IF, index + 1, index + 1) for index in range(40)]
    with pytest.raises(UnsupportedModelError, match="too many operators"):
        load(tmp_path, *doubling, CHAIN)


def rewired(**changes: object) -> TinySubgraph:
    return replace(CHAIN, **changes)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (rewired(inputs=[4]), "subgraph 0: input tensor 4 is out of range, the file has 4"),
        (rewired(outputs=[-2]), "subgraph 0: output tensor -2 is out of range"),
        (
            rewired(operators=[TinyOperator(Op.ADD, [0], [99])]),
            "subgraph 0, operator 0: output tensor 99 is out of range",
        ),
        (
            rewired(operators=[TinyOperator(Op.ADD, [0], [3], code_index=7)]),
            "subgraph 0, operator 0: operator code 7 is out of range",
        ),
        (
            rewired(tensors=[TinyTensor("x", buffer=9), *CHAIN.tensors[1:]]),
            "subgraph 0, tensor 0: buffer 9 is out of range",
        ),
        (
            rewired(tensors=[TinyTensor("x", (4, -1)), *CHAIN.tensors[1:]]),
            r"subgraph 0, tensor 0: negative dimension in the shape \(4, -1\)",
        ),
        (
            rewired(tensors=[TinyTensor("x", (1,) * 65), *CHAIN.tensors[1:]]),
            "subgraph 0, tensor 0: 65 dimensions, at most 64",
        ),
        (
            rewired(tensors=[TinyTensor("x", (2**31 - 1,) * 3), *CHAIN.tensors[1:]]),
            "tensor 'x': the shape .* is too large",
        ),
        (
            rewired(tensors=[TinyTensor("x", type=77), *CHAIN.tensors[1:]]),
            "tensor 'x': element type 77 is unknown",
        ),
        (
            rewired(tensors=[TinyTensor("x", data=(8, 2**40)), *CHAIN.tensors[1:]]),
            "buffer 1: ends at byte 1099511627784",
        ),
        (rewired(operators=[TinyOperator(-3, [0], [3])]), "built-in operator -3 is unknown"),
        (
            rewired(operators=[*CHAIN.operators, TinyOperator(Op.RELU, [0], [2])]),
            "'RELU_2' writes 'w', which is written already",
        ),
        (rewired(operators=CHAIN.operators[::-1]), "reads 'y' before it is written"),
        (rewired(operators=[CHAIN.operators[0]] * 2), "writes 'y', which is written already"),
        (
            calling(Op.IF, 1, 5),
            "subgraph 0, operator 2: then subgraph 1 is out of range, the file has 1",
        ),
        (calling(Op.WHILE), "subgraph 0, operator 2: options of WHILE are missing"),
    ],
)
def test_an_index_or_length_out_of_range_is_refused_where_it_stands(
    tmp_path: Path, model: TinySubgraph, complaint: str
) -> None:
    with pytest.raises(ModelFormatError, match=complaint):
        load(tmp_path, model)


def test_a_file_without_subgraphs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="holds no subgraph"):
        load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0TFL", b"\x08\0\0\0ONNX" + bytes(64)])
def test_a_file_without_the_identifier_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=r"not a TFLite model: .* not b'TFL3'"):
        read_tflite(path)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path: Path, without) -> None:
    without("tflite")
    with pytest.raises(MissingDependencyError) as caught:
        load(tmp_path, CHAIN)
    assert caught.value.extra == "tflite"


def damaged(data: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    mutant = bytearray(data)
    kind = seed % 4
    if kind == 0:
        return bytes(mutant[: rng.randrange(len(mutant))])
    if kind == 1:
        position = rng.randrange(8, len(mutant))
        mutant[position] ^= 1 << rng.randrange(8)
    else:
        position = 4 * rng.randrange(2, len(mutant) // 4)
        extreme = rng.choice([0, -1, 2**31 - 1, -(2**31), rng.randrange(len(mutant))])
        struct.pack_into("<i", mutant, position, extreme)
    return bytes(mutant)


def test_a_damaged_file_gives_a_graph_or_an_error_of_ours_and_quickly(tmp_path: Path) -> None:
    data = tiny_tflite(
        calling(Op.WHILE, 1, 2), VERDICT, TWO_STEPS, metadata={"min_runtime_version": b"1.5.0"}
    )
    path = tmp_path / "damaged.tflite"
    refused = 0
    begin = time.process_time()
    for seed in range(800):
        path.write_bytes(damaged(data, seed))
        try:
            assert isinstance(read_tflite(path), Program)
        except AreniteError:
            refused += 1
    assert 200 < refused < 800
    assert time.process_time() - begin < 20


def test_a_vector_longer_than_the_file_is_refused_unread(tmp_path: Path) -> None:
    name = b"long" * 8
    data = tiny_tflite(rewired(tensors=[TinyTensor(name.decode()), *CHAIN.tensors[1:]]))
    shape = struct.pack("<ii", 1, 16)
    assert shape in data
    path = tmp_path / "long.tflite"
    path.write_bytes(data.replace(shape, struct.pack("<ii", 2**31 - 1, 16)))
    with pytest.raises(ModelFormatError, match="dimensions"):
        read_tflite(path)


def test_entries_that_share_one_table_are_refused_before_they_fill_memory(tmp_path: Path) -> None:
    crowd = [TinyTensor("name" * 1000, (1,) * 64)] * 100_000
    with pytest.raises(ModelFormatError, match="exceed the size of the file"):
        load(tmp_path, TinySubgraph(crowd, [], [0], [0]))


BOUNDS = {
    "audio_preprocessor_int8": (12_128, 2_096),
    "deeplabv3_mnv2_dm05_pascal_quant": (31_525_574, 7_631_920),
    "hello_world_float": (136, 128),
    "hello_world_int8": (34, 32),
    "keyword_scrambled": (718, 288),
    "kws_ref_model": (72_642, 16_000),
    "micro_speech_quantized": (7_928, 5_968),
    "mnist_lstm_float": (7_696, 5_376),
    "mobilenet_v1_0.5_160_quant": (1_366_715, 307_200),
    "person_detect": (241_030, 55_296),
    "pretrainedResnet": (471_632, 196_608),
    "pretrainedResnet_quant": (117_908, 49_152),
    "split_concat": (1_280, 768),
    "tf2_mobilenet_v2_1.0_224_ptq": (7_200_836, 1_505_280),
    "vww_96_float": (1_038_864, 221_184),
    "vww_96_int8": (259_716, 55_296),
}
"""Sum of the sizes and lower bound of each model without its variables, which TFLite
Micro keeps beside the plan.
"""


@pytest.mark.parametrize("name", BOUNDS)
def test_real_models_have_the_sizes_measured_elsewhere(name: str) -> None:
    graph = read_tflite(shared(f"models/tflite/{name}.tflite"))
    placed = [t for t in graph.tensors.values() if t.kind is not TensorKind.CONSTANT]
    state = [t for t in placed if t.kind is TensorKind.STATE]
    naive = sum(t.size for t in placed) - sum(t.size for t in state)
    lower_bound = liveness(graph, alignment=16).lower_bound - sum(t.size for t in state)
    assert (naive, lower_bound) == BOUNDS[name]


def test_every_model_at_hand_is_read_with_a_place_for_every_tensor() -> None:
    models = sorted(shared("models/tflite").glob("*.tflite"))
    assert models
    for path in models:
        model = read_tflite_model(path)
        assert set(model.locations) == set(model.program.tensors)
        assert len(set(model.locations.values())) == len(model.locations)
