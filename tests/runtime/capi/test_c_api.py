import random
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base import Reading
from arenite.pipeline.making.building import build_model
from arenite.pipeline.targets.compiling import lower_model
from arenite.planner.placement import strategy
from arenite.planner.programs.costs import LEAST
from arenite.planner.sizes import Dimension
from arenite.runtime import Session
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import Activations
from arenite.strategies import find, find_policy
from support.banded_programs import Network, Sliding, in_bands
from support.c_library import environment, install, run
from support.caches import compiled
from support.detectors import YOLO
from support.edited_programs import apart, edited_file
from support.ranged_programs import range_of
from support.running import build
from support.tiny_onnx import parse, save, with_random_weights
from support.tiny_programs import accumulator, classifier
from support.trading import CARRIED, assembled, step_file, traded
from support.two_memories import FAST, in_two_memories

TWO_LAYERS = """(float[1,3,16,16] x) => (y) <float[8,3,3,3] w, float[8,8,3,3] v>
{ c = Conv<pads=[1,1,1,1]>(x, w) s = Sigmoid(c) d = Conv<pads=[1,1,1,1]>(s, v) y = Add(d, s) }"""
ATTENTION = """(float[1,40,SIZE] q, float[1,200,SIZE] k, float[1,200,SIZE] v) => (y)
{ y = com.microsoft.MultiHeadAttention<num_heads=1>(q, k, v) }"""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")
ARGUMENT, FILE, FORMAT, VERSION, MEMORY, FORKED, SIZE, STATES = 1, 2, 3, 4, 6, 8, 9, 10


@pytest.fixture(scope="session")
def prefix() -> Path:
    return install()


@pytest.fixture(scope="session")
def check(prefix, tmp_path_factory):
    program = tmp_path_factory.mktemp("capi") / "check"
    flags = run(["pkg-config", "--cflags", "--libs", "arenite"], env=environment(prefix))
    source = Path(__file__).with_name("check.c")
    run(["gcc", *STRICT, source, "-o", program, *flags.stdout.split()])

    def call(*arguments: object) -> str:
        command = [program, *map(str, arguments)]
        return run(command, env=environment(prefix)).stdout

    return call


def lines(text: str) -> dict[str, tuple[int, str]]:
    found = (line.split("\t") for line in text.splitlines())
    return {label: (int(status), message) for label, status, message in found}


def random_image(session: Session) -> np.ndarray:
    port = session.inputs[0]
    numbers = np.random.default_rng(1).standard_normal(port.shape)
    return (numbers * 50 if port.dtype.kind == "i" else numbers).astype(port.dtype)


@pytest.mark.parametrize("way", ["file", "memory", "arena", "threads", "arena threads"])
@pytest.mark.parametrize("quantised", [False, True])
def test_every_way_in_gives_the_outputs_of_python(check, tmp_path, way, quantised):
    path = classifier(tmp_path, quantised=quantised)
    session = Session(path)
    image = random_image(session)
    image.tofile(tmp_path / "in")
    printed = check(way, path, tmp_path / "in", tmp_path / "out")
    expected = session.run({"image": image})["classes"]
    found = np.fromfile(tmp_path / "out", expected.dtype).reshape(expected.shape)
    np.testing.assert_array_equal(found, expected)
    assert "counted 1\n" in printed  # the counter is in force
    assert "allocations 0\n" in printed
    assert ("inside 1\n" in printed) == ("arena" in way)


@pytest.mark.parametrize("way", ["file", "arena", "threads"])
def test_a_program_of_halves_gives_the_outputs_of_python(check, tmp_path, way):
    path = tmp_path / "halves.arena"
    model = save(tmp_path, with_random_weights(parse(TWO_LAYERS)))
    build_model(model, Reading(activations=Activations.FP16)).write(path)
    with Session(path) as session:
        image = random_image(session)
        expected = session.run({"x": image})["y"]
    image.tofile(tmp_path / "in")
    printed = check(way, path, tmp_path / "in", tmp_path / "out")
    result = np.fromfile(tmp_path / "out", expected.dtype).reshape(expected.shape)
    np.testing.assert_array_equal(result, expected)
    assert "allocations 0\n" in printed


def test_a_program_of_two_memories_takes_memory_of_the_caller(check, tmp_path):
    compiled = in_two_memories(save(tmp_path, with_random_weights(parse(TWO_LAYERS))))
    path = tmp_path / "two.arena"
    plan = strategy.run(find("best"), compiled.source.problem)
    write_assembly(path, compiled.assemble(plan))
    session = Session(path)
    image = random_image(session)
    image.tofile(tmp_path / "in")
    printed = check("buffers", path, tmp_path / "in", tmp_path / "out")
    expected = session.run({"x": image})["y"]
    found = np.fromfile(tmp_path / "out", expected.dtype).reshape(expected.shape)
    np.testing.assert_array_equal(found, expected)
    height, fast = plan.heights
    assert f"memory {FAST.name} {fast + 128} {FAST.alignment} 1\n" in printed
    assert f"held {height + fast + 2 * 128} " in printed
    assert "allocations 0\n" in printed


@pytest.mark.parametrize("way", ["file", "buffers"])
def test_a_program_that_spills_runs_as_it_does_in_python(check, tmp_path, way):
    lowered = lower_model(save(tmp_path, with_random_weights(parse(CARRIED))))
    path = tmp_path / "moving.arena"
    found = traded(lowered, find_policy("offload-prefetch"), LEAST)
    write_assembly(path, assembled(lowered, found))
    with Session(path) as session:
        image = random_image(session)
        expected = session.run({"x": image})["y"]
        spilled = session.memories[1]
    image.tofile(tmp_path / "in")
    printed = check(way, path, tmp_path / "in", tmp_path / "out")
    result = np.fromfile(tmp_path / "out", expected.dtype).reshape(expected.shape)
    np.testing.assert_array_equal(result, expected)
    assert "allocations 0\n" in printed
    beside = 2 * 128 + spilled.size if way == "buffers" else 128
    assert f"held {found.height + beside} " in printed


def test_a_program_in_bands_runs_as_it_does_in_python(check, prefix, tmp_path):
    network = Network((14, 6, 4))
    network.conv(24, Sliding((3, 3), padding=(1, 1, 1, 1)))
    network.depthwise(Sliding((3, 3), strides=(2, 2)))
    network.product(5)
    path = tmp_path / "banded.arena"
    path.write_bytes(network.file(in_bands(network, [2]), scatter=random.Random(0)))
    session = Session(path)
    image = random_image(session)
    image.tofile(tmp_path / "in")
    expected = session.run({"x": image})["y"]
    printed = check("file", path, tmp_path / "in", tmp_path / "out")
    assert np.fromfile(tmp_path / "out", np.float32).tolist() == expected.ravel().tolist()
    assert "allocations 0\n" in printed
    command = [prefix / "bin/arenite-run", path, "--input", tmp_path / "in"]
    done = run([*command, "--output", tmp_path / "again", "--threads", "2"])
    assert np.fromfile(tmp_path / "again", np.float32).tolist() == expected.ravel().tolist()
    assert f"arena    {session.arena_bytes + 128} B" in done.stdout


@pytest.mark.parametrize("way", ["file", "arena threads"])
def test_a_loop_runs_as_it_does_in_python(check, tmp_path, way):
    pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
    from support.tiny_loops import beside, nested_deep

    (tmp_path / "m.tflite").write_bytes(beside().model)
    path = build(tmp_path / "m.tflite", tmp_path)
    with Session(path) as session:
        image = random_image(session)
        (expected,) = session.run({"x": image}).values()
    image.tofile(tmp_path / "in")
    printed = check(way, path, tmp_path / "in", tmp_path / "out")
    assert np.fromfile(tmp_path / "out", np.float32).tolist() == expected.ravel().tolist()
    assert "allocations 0\n" in printed
    (tmp_path / "m.tflite").write_bytes(nested_deep(2))

    def lie(root):
        inner = root["inner"][1]["inner"][0]
        inner["tensors"][0]["offset"] = 1 << 30

    path.write_bytes(edited_file(build(tmp_path / "m.tflite", tmp_path), lie))
    status, text = lines(check("open", path))["file"]
    assert status == FORMAT
    assert "outside" in text


def test_shapes_are_the_models_and_strides_the_storages(check, tmp_path):
    path = classifier(tmp_path, quantised=True)
    random_image(Session(path)).tofile(tmp_path / "in")
    printed = check("file", path, tmp_path / "in", tmp_path / "out").splitlines()
    assert printed[1] == "input image int8 1:768 3:1 16:48 16:3 0.02 5"
    assert printed[2] == "output classes int8 1:10 1:10 1:10 10:1 0.00390625 -128"


def test_reset_lets_states_start_anew(check, tmp_path):
    np.arange(4, dtype=np.float32).tofile(tmp_path / "in")
    check("file", accumulator(tmp_path), tmp_path / "in", tmp_path / "out")
    assert np.fromfile(tmp_path / "out", np.float32).tolist() == [1, 2, 3, 4]


def test_a_file_that_is_missing_is_named(check, tmp_path):
    found = lines(check("open", tmp_path / "no.arena"))
    assert found["file"][0] == FILE
    assert "no.arena: No such file" in found["file"][1]
    assert found["model"][0] == 0


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        (lambda data: b"", FORMAT, "at least 32"),
        (lambda data: b"PK" + data[2:], FORMAT, "not a program file"),
        (lambda data: data[:8] + struct.pack("<I", 9) + data[12:], VERSION, "version 9"),
        (lambda data: data[:5000], FORMAT, "truncated|weights"),
        (lambda data: data[:32] + bytes(200) + data[232:], FORMAT, "damaged"),
        (lambda data: data[:16] + b"\xff" * 16 + data[32:], FORMAT, "truncated"),
    ],
    ids=["empty", "magic", "version", "truncated", "zeros", "extents"],
)
def test_a_file_that_is_wrong_is_refused(check, tmp_path, change, status, text):
    path = classifier(tmp_path, quantised=True)
    wrong = tmp_path / "wrong.arena"
    wrong.write_bytes(change(path.read_bytes()))
    found = lines(check("open", wrong))
    for way in ("file", "memory"):
        assert found[way][0] == status
        assert re.search(text, found[way][1])


def test_damaged_bytes_never_crash(check, tmp_path):
    data = classifier(tmp_path, quantised=True).read_bytes()
    (program_size,) = struct.unpack_from("<Q", data, 16)
    generator = np.random.default_rng(3)
    for case in range(30):
        damaged = bytearray(data)
        for place in generator.integers(32, 32 + program_size, 4):
            damaged[place] = generator.integers(256)
        path = tmp_path / f"{case}.arena"
        path.write_bytes(damaged)
        found = lines(check("open", path))
        assert found["file"][0] in (0, FORMAT)
        assert found["memory"] == found["file"]


def test_misuse_returns_a_status_and_a_text(check, tmp_path):
    found = lines(check("misuse", classifier(tmp_path, quantised=False)))
    assert found.pop("nothing") == (1, "unknown")
    expected = dict.fromkeys(found, ARGUMENT)
    expected["arena misaligned"] = expected["arena too small"] = MEMORY
    expected["buffer misaligned"] = expected["buffer too small"] = MEMORY
    # Callers of other versions, whose structs are shorter or longer, are served.
    for label in ("older options", "newer options", "newer memory"):
        assert found[label] == (0, "")
        expected[label] = 0
    assert {label: status for label, (status, _) in found.items()} == expected
    assert all(message for status, message in found.values() if status != 0)
    assert "null" in found["run null"][1]
    assert "the model needs" in found["arena too small"][1]
    assert "'image' has 3072 B; the array has 1" in found["feed another size"][1]


def test_threads_do_not_follow_into_a_child(check, tmp_path):
    found = lines(check("forked", classifier(tmp_path, quantised=False)))
    assert {label: status for label, (status, _) in found.items()} == {
        "run": FORKED, "feed": FORKED, "own": 0, "own run": 0
    }  # fmt: skip
    assert "create sessions in the child" in found["run"][1]


def test_the_library_exports_the_header_and_nothing_else(prefix):
    listed = run(["nm", "-D", "--defined-only", prefix / "lib" / "libarenite.so"]).stdout
    exported = {line.split()[-1].split("@")[0] for line in listed.splitlines()} - {"ARENITE_2"}
    declared = set(
        re.findall(r"ARENITE_API .*?(arenite_\w+)\(", (prefix / "include/arenite.h").read_text())
    )
    assert exported == declared


def test_versions_are_those_of_the_project_and_the_header(check):
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"', project, re.MULTILINE)
    assert check() == f"{version[1]} 2\n"


def test_the_runner_writes_the_outputs_of_python(prefix, tmp_path):
    path = classifier(tmp_path, quantised=True)
    session = Session(path)
    image = random_image(session)
    image.tofile(tmp_path / "in")
    done = run(
        [prefix / "bin/arenite-run", path, "--input", tmp_path / "in",
         "--output", tmp_path / "out", "--runs", "3", "--threads", "2"]
    )  # fmt: skip
    expected = session.run({"image": image})["classes"]
    assert np.fromfile(tmp_path / "out", np.int8).tolist() == expected.ravel().tolist()
    assert re.search(r"memory   \d+ KiB", done.stdout)
    assert f"arena    {session.arena_bytes + 128} B" in done.stdout
    assert f"top [{expected.argmax()}]" in done.stdout


def test_an_installation_elsewhere_is_found_there(prefix, tmp_path):
    run(["cmake", "--install", prefix.parent, "--prefix", tmp_path])
    flags = run(["pkg-config", "--cflags", "--libs", "arenite"], env=environment(tmp_path)).stdout
    assert str(prefix) not in flags
    include, library = (Path(each[2:]) for each in flags.split()[:2])
    assert (include / "arenite.h").samefile(tmp_path / "include" / "arenite.h")
    assert library.samefile(tmp_path / "lib")


def test_a_session_is_resized_without_allocations(check, tmp_path):
    build, assembly = range_of(tmp_path, "text")
    path, fixed = tmp_path / "ranged.arena", tmp_path / "fixed.arena"
    write_assembly(path, assembly)
    write_assembly(fixed, build(9))
    session = Session(fixed)
    x = random_image(session)
    x.tofile(tmp_path / "in")
    found = lines(check("resize", path, 9, tmp_path / "in", tmp_path / "out"))
    expected = session.run({"x": x})["y"]
    assert (tmp_path / "out").read_bytes() == expected.tobytes()
    assert found["n"] == (0, "2 40 1 of 1")
    assert found["allocations"] == (0, "0")
    assert found["size"] == (0, f"9 0, {x.nbytes} B in, {expected.nbytes} B out")
    assert {label: status for label, (status, _) in found.items() if status} == {
        "second": ARGUMENT, "short": ARGUMENT, "above": SIZE, "huge": SIZE, "none": ARGUMENT,
        "null": ARGUMENT,
    }  # fmt: skip
    assert found["above"][1] == "dimension 'n' is 41; its range is 2 to 40"
    assert found["none"][1] == "the model has 1 dimensions; 0 sizes are given"


def test_a_session_takes_the_turns_of_a_subrange(check, tmp_path):
    model = parse("""(float[1,3,h,h] x) => (y) <float[32,3,3,3] a, float[8,32,3,3] b> {
        p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p)
        y = Conv<pads=[1,1,1,1], strides=[2,2]>(q, b) }""")
    dims = {"h": Dimension("h", 9, 249)}
    built = build_model(save(tmp_path, with_random_weights(model)), Reading(dims=dims))
    assert built.subranges
    path = tmp_path / "both.arena"
    built.write(path)
    with Session(path) as session:
        session.resize(h=9)
        x = random_image(session)
        x.tofile(tmp_path / "in")
        expected = session.run({"x": x})["y"]
    found = lines(check("resize", path, 9, tmp_path / "in", tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == expected.tobytes()
    assert found["allocations"] == (0, "0")


def test_states_grow_without_allocations_and_are_saved(check, tmp_path):
    path = tmp_path / "cache.arena"
    write_assembly(path, apart(compiled(tmp_path)))
    found = lines(check("grow", path))
    assert found["p"] == (0, "to 9, grows 1")
    assert found["allocations"] == (0, "0")
    assert found["held"] == (0, "10, 0 of the first, largest 20")
    assert found["stale"][0] == SIZE
    assert found["stale"][1].startswith("states have grown to 10 rows of dimension 'p': set the")
    assert found["full"][0] == SIZE
    assert "hold 10 rows of dimension 'p'; a run begins with at most 9" in found["full"][1]
    assert found["still"] == (0, "10")
    assert found["short"][0] == ARGUMENT
    assert found["loaded"] == (0, f"10 of {96 + 8 + 10 * 16} B")
    assert found["cut"] == (0, "3, largest 20")
    assert found["damaged"] == (STATES, "the saved states are damaged")
    assert found["reset"] == (0, "0")


def test_the_runner_takes_sizes(prefix, tmp_path):
    _, assembly = range_of(tmp_path, "text")
    write_assembly(tmp_path / "ranged.arena", assembly)
    command = [prefix / "bin/arenite-run", tmp_path / "ranged.arena"]
    assert "output   y: float32 1x9x16" in run([*command, "--size", "n=9"]).stdout
    assert "size     n: 40 of 2 to 40" in run(command).stdout
    for wrong, text in (
        ("n=41", "dimension 'n' is 41; its range is 2 to 40"), ("n=", "not a number"),
        ("m=3", "names no dimension"), ("n", "names no dimension"),
    ):  # fmt: skip
        done = subprocess.run(
            [*command, "--size", wrong], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert text in done.stderr


def test_the_runner_states_the_sizes_that_a_run_counts(prefix, tmp_path):
    path = build(save(tmp_path, parse(YOLO)), tmp_path)
    command = [prefix / "bin/arenite-run", path]
    said = run(command).stdout
    (rows,) = re.findall(r"output   y: float32 (\d+)x7", said)
    assert f"size     kept: {rows} of 0 to 30, counted" in said
    done = subprocess.run(
        [*command, "--size", "kept=3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "names a dimension that each run counts" in done.stderr


def test_the_runner_helps_on_standard_output(prefix):
    done = run([prefix / "bin/arenite-run", "--help"])
    assert done.stdout.startswith("usage: arenite-run MODEL.arena")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "usage"),
        (["no.arena"], 1, "No such file"),
        (["{model}", "--runs", "0"], 2, "from 1"),
        (["{model}", "--input", "{model}"], 1, "not this file's"),
        (["{model}", "--input"], 2, "usage"),
    ],
)
def test_the_runner_says_what_is_wrong(prefix, tmp_path, arguments, status, text):
    model = str(classifier(tmp_path, quantised=True))
    command = [prefix / "bin/arenite-run", *(each.format(model=model) for each in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert text in done.stderr


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("float", 40_960),
        ("quantised", 32_768),
        ("training step", 49_152),
        ("attention, heads of 64", 24_576),
        ("attention, heads of 256", 49_152),
    ],
)
def test_the_stack_of_a_run_is_bounded(check, tmp_path, kind, most):
    path = classifier(tmp_path, quantised=True)
    if kind != "quantised":
        text = TWO_LAYERS
        if kind.startswith("attention"):
            size = kind.rpartition(" ")[2]
            text = ATTENTION.replace("SIZE", size)
        network = with_random_weights(parse(text, microsoft=True))
        model = step_file(tmp_path) if kind == "training step" else save(tmp_path, network)
        path = tmp_path / "model.arena"
        build_model(model).write(path)
    assert 0 < int(check("stack", path)) <= most


def test_the_runner_writes_as_much_as_a_run_finds(prefix, tmp_path):
    path = build(
        save(tmp_path, parse("(float[4,5] x) => (int64[2,n] y) {y = NonZero(x)}")), tmp_path
    )
    x = np.zeros((4, 5), np.float32)
    x[[1, 3], [2, 0]] = 1
    x.tofile(tmp_path / "in")
    files = ["--input", tmp_path / "in", "--output", tmp_path / "out"]
    printed = run([prefix / "bin/arenite-run", path, *files]).stdout
    assert "output   y: int64 2x2" in printed
    assert np.fromfile(tmp_path / "out", np.int64).tolist() == [1, 3, 2, 0]
