"""What is damaged, and the commands that are given it."""

import io
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from support.command import main
from support.hostile_models import ONNX_TEXTS, onnx_model, tflite_chains, with_external_data

Files: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Subject:
    """Files of which one is damaged, and what is called with them.

    Attributes:
        name: What is special about it.
        files: All of them by name, whole.
        damaged: The name of the one.
        commands: Lines of arguments; files that start with "o." are written, the damaged one is
            "{}".
        is_slow: Whether the commands start processes and take a second each.
    """

    name: str
    files: Files
    damaged: str
    commands: Sequence[str]
    is_slow: bool = False


_PLANNING = (
    "inspect {}",
    "inspect {} --json --target generic",
    "plan {} -o o.json",
    "plan {} -o o.json --target generic --boundary exclude --map",
    "plan {} --json --order optimal --strategy optimal --time-limit 0.3",
    "plan {} --align 64 --alias all --capacity 2KiB",
    "plan {} --target generic --alias overlap,slices --strategy tvm-hill-climb",
    "compare {} --quick --json",
    "compare {} --quick -o o.html --csv o.csv --markdown o.md --trace o.trace.json",
    "compare {} --strategy best --strategy objects-by-size --time-limit 0.2 --target generic",
    "{}",
)
"""Commands that only plan."""

_BUILDING = (
    "plan {} -o o.json --weights 50%",
    "build {} -o o.arena",
    "build {} -o o.arena --json --code-weights --weights 30%",
    "build {} -o o.arena --code-weights --no-huffman --order greedy",
    "run {} --input all.npz",
    "run {} --input all.npz -o o.npz --poison --profile --json",
)

_FITTING = (
    "fit {} --json --time-limit 1",
    "fit {} --budget 90% -o o.arena --time-limit 1",
    "fit {} --budget 75% --policy greedy-chains -o o.arena --time-limit 1",
)

_FOR_ONNX = (
    *_PLANNING,
    *_BUILDING,
    *_FITTING,
    "train {} -o o.onnx --loss mse",
    "annotate {} -o o.onnx",
    "run {} --input all.npz --trace o.trace.json --threads 2",
    "plan {} -o o.json --target onnxruntime",
    "export {} --to onnxruntime -o o.onnx",
    "export {} --to onnxruntime -o o.onnx --order greedy --json",
)

_COMPRESSING = (
    "compress {} -o o.onnx",
    "compress {} -o o.arena --bits 4 --density 30% --json",
    "compress {} -o o.onnx --channels 50% --half --start density",
    "compress {} -o o.onnx --sensitivity 0.3 --scan o.scan.json",
    "compress {} -o o.onnx --mean-bits 3 --total-density 40%",
    "compress {} -o o.onnx --int8",
)

_FOR_TFLITE = (
    *_PLANNING,
    *_BUILDING,
    *_FITTING,
    "plan {} -o o.json --target tflm",
    "plan {} -o o.json --target litert",
    "export {} --to tflm -o o.tflite --header o.h",
    "export {} --to tflm -o o.tflite --json --strategy optimal --time-limit 0.2",
    "tflm-arena {}",
)

_SLOW = (
    "bench {} --rounds 1 --seconds 0.001",
    "bench {} --rounds 1 --seconds 0.001 --against all",
    "compare {} --strategy greedy-by-size --peers --json",
)
"""These start processes and take a second each."""

_FOR_PROGRAMS = (
    "verify {}",
    "verify {} --json",
    "inspect {}",
    "run {} --input all.npz",
    "run {} --input all.npz -o o.npz --poison --json",
    "run {} --input all.npz --profile --threads 2",
)

_FOR_CSV = (
    *(line for line in _PLANNING if "--target" not in line and "--alias" not in line),
    "plan {} --capacity 100 --strategy optimal --time-limit 0.3",
    "compare {} --json --time-limit 0.1",
)

_CSV = """id,lower,upper,size
a,0,3,32
b,1,4,64
c,2,6,16
d,3,9,128
e,5,9,48
f,8,10,32
"""
_CSV_ALIGNED = """id,lower,upper,size,alignment,offset
first,0,30,32,16,0
"the, second",10,40,64,64,64
third,20,60,16,1,128
"""


def _made(folder: Path, *arguments: str) -> str:
    """Run a command that must succeed, on whole files, and return its standard output."""
    with redirect_stdout(io.StringIO()) as out:
        code = main([part.format(folder) for part in arguments])
    assert code == 0, (arguments, code)
    return out.getvalue()


def _as_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # numpy's stub has a flag among them
    return stream.getvalue()


def _as_npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _png(size: int = 8) -> bytes:
    """Return a picture of three channels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    rows = b"".join(b"\0" + bytes(range(i, i + 3 * size)) for i in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _feeds(shapes: Mapping[str, Sequence[int]]) -> bytes:
    draw = np.random.default_rng(0)
    return _as_npz(
        {key: draw.standard_normal(shape).astype("f4") for key, shape in shapes.items()}
    )


_ONNX_INPUTS: Final[Mapping[str, Mapping[str, Sequence[int]]]] = {
    "layers": {"x": (1, 3, 6, 6)}, "to compress": {"x": (1, 3, 6, 6)},
    "shapes": {"x": (2, 3, 4)}, "branches": {"x": (4,)},
    "quantised": {"x": (1, 2, 4, 4)}, "quantised in the run": {"x": (3, 8)},
    "recurrent": {"x": (3, 1, 4), "h0": (1, 1, 2)}, "attention": {"x": (1, 4, 8)},
    "left to ONNX Runtime": {"x": (1, 2, 2)}, "to stream": {"x": (1, 96)}, "sorted": {"x": (1, 8)},
}  # fmt: skip


def _with_dim(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{line} --dim n=1" for line in lines if "--to tflm" not in line)


def subjects(folder: Path) -> Iterator[Subject]:
    """Yield all, made by the project's own commands where a command makes them.

    Args:
        folder: An empty one, to make them in.
    """
    yield from _models()
    yield from _compressed(folder)
    yield from _plans(folder)
    yield from _programs(folder)
    yield from _inputs(folder)
    yield Subject("records", {"m.csv": _CSV.encode()}, "m.csv", _FOR_CSV)
    yield Subject("records, aligned, with a capacity", {"m.256.csv": _CSV_ALIGNED.encode()},
                  "m.256.csv", _FOR_CSV)  # fmt: skip


def given(models: Sequence[Path], folder: Path) -> Iterator[Subject]:
    """Yield models of the user, and the plan and the program that are made of each.

    Args:
        models: ONNX and TFLite files that run as they are.
        folder: An empty one, to make the others in.
    """
    for model in models:
        name, whole = model.name, model.read_bytes()
        yield Subject(name, {name: whole}, name, (
            "inspect {}", "plan {} -o o.json", "build {} -o o.arena", "run {}", "{}",
        ))  # fmt: skip
        made = f"{{}}/{name}"
        (folder / name).write_bytes(whole)
        _made(folder, "plan", made, "-o", f"{made}.json")
        _made(folder, "build", made, "-o", f"{made}.arena")
        plan, program = f"{name}.json", f"{name}.arena"
        yield Subject(f"plan of {name}", {name: whole, plan: (folder / plan).read_bytes()}, plan,
                      ("verify {}", f"verify {{}} {name}",
                       f"build {name} --plan {{}} -o o.arena"))  # fmt: skip
        yield Subject(f"program of {name}", {program: (folder / program).read_bytes()}, program,
                      ("verify {}", "inspect {}", "run {}"))  # fmt: skip


def _models() -> Iterator[Subject]:
    for name in ONNX_TEXTS:
        inputs = _ONNX_INPUTS.get(name, {})
        files = {"m.onnx": onnx_model(name).SerializeToString(), "all.npz": _feeds(inputs)}
        lines: Sequence[str] = _FOR_ONNX
        if name == "layers":
            lines = _with_dim(_FOR_ONNX)
        if name == "to compress":
            lines = _with_dim(_COMPRESSING)
        yield Subject(f"ONNX, {name}", files, "m.onnx", lines)
        if name in ("layers", "attention"):
            yield Subject(f"ONNX, {name}, measured", files, "m.onnx",
                          _with_dim(_SLOW) if name == "layers" else _SLOW,
                          is_slow=True)  # fmt: skip
    for name, data in tflite_chains().items():
        shape = (1, 4, 3) if name == "LSTM" else (1, 6, 6, 2)
        files = {"m.tflite": data, "all.npz": _feeds({"t0": shape})}
        yield Subject(f"TFLite, {name}", files, "m.tflite", _FOR_TFLITE)
        if name == "floats":
            yield Subject(f"TFLite, {name}, measured", files, "m.tflite", _SLOW, is_slow=True)


def _compressed(folder: Path) -> Iterator[Subject]:
    """Yield a model with external data and one with shared weights."""
    made = folder / "external"
    made.mkdir()
    external = {**with_external_data(made), "all.npz": _feeds(_ONNX_INPUTS["to compress"])}
    lines = _with_dim((*_FOR_ONNX, *_COMPRESSING))
    for name in ("model.onnx", "w.bin"):
        given = [line.replace("{}", "model.onnx") for line in lines]
        yield Subject(f"external data, {name}", external, name, given)
    (folder / "whole.onnx").write_bytes(onnx_model("to compress").SerializeToString())
    _made(folder, "compress", "{}/whole.onnx", "-o", "{}/small.onnx", "--dim", "n=1",
          "--bits", "3", "--density", "50%")  # fmt: skip
    files = {"m.onnx": (folder / "small.onnx").read_bytes(), "all.npz": external["all.npz"]}
    yield Subject("ONNX, compressed", files, "m.onnx", _with_dim(_BUILDING))


def _plans(folder: Path) -> Iterator[Subject]:
    """Yield plan files of several targets."""
    tflite = tflite_chains()["floats"]
    (folder / "m.onnx").write_bytes(onnx_model("attention").SerializeToString())
    (folder / "m.tflite").write_bytes(tflite)
    for target, suffix in (("arenite", "onnx"), ("generic", "onnx"), ("onnxruntime", "onnx"),
                           ("arenite", "tflite"), ("tflm", "tflite")):  # fmt: skip
        model = f"m.{suffix}"
        _made(folder, "plan", f"{{}}/{model}", "-o", "{}/p.json", "--target", target)
        lines = ["verify p.json", f"verify p.json {model} --json"]
        if target == "arenite":
            lines += [f"build {model} -o o.arena --plan p.json",
                      f"run {model} --plan p.json --input all.npz"]  # fmt: skip
        shapes = {"x": (1, 4, 8)} if suffix == "onnx" else {"t0": (1, 6, 6, 2)}
        files = {model: (folder / model).read_bytes(), "p.json": (folder / "p.json").read_bytes(),
                 "all.npz": _feeds(shapes)}  # fmt: skip
        yield Subject(f"plan for {target} of {suffix}", files, "p.json", lines)


def _programs(folder: Path) -> Iterator[Subject]:
    """Yield program files: plain, with coded weights, with streamed weights."""
    (folder / "streamed.onnx").write_bytes(onnx_model("to stream").SerializeToString())
    for name, model, options in (
        ("plain", "small.onnx", ("--dim", "n=1")),
        ("coded", "small.onnx", ("--dim", "n=1", "--code-weights")),
        ("streamed", "streamed.onnx", ("--weights", "80%")),
    ):
        _made(folder, "build", f"{{}}/{model}", "-o", "{}/m.arena", *options)
        whole = (folder / "m.arena").read_bytes()
        kind = "to stream" if name == "streamed" else "to compress"
        files = {"m.arena": whole, "all.npz": _feeds(_ONNX_INPUTS[kind])}
        yield Subject(f"program, {name}", files, "m.arena", _FOR_PROGRAMS)


def _inputs(folder: Path) -> Iterator[Subject]:
    """Yield what commands read beside models."""
    network = onnx_model("to compress")
    draw = np.random.default_rng(1)
    array = draw.standard_normal((1, 3, 6, 6)).astype(np.float32)
    model = {"m.onnx": network.SerializeToString()}
    run = "run m.onnx --dim n=1 --input"
    npz = _as_npz({"x": array})
    samples = _as_npz({"x": np.concatenate([array] * 4), "labels": np.arange(4)})
    labels = "\n".join(f"class {index}" for index in range(4)).encode()
    feeds: Iterator[tuple[str, str, bytes, Sequence[str]]] = iter((
        ("an array", "x.npy", _as_npy(array), [f"{run} {{}}", f"{run} x={{}} --poison"]),
        ("arrays", "x.npz", npz, [f"{run} {{}} -o o.npz"]),
        ("a picture", "x.png", _png(), [f"{run} {{}} --json"]),
        ("labels", "l.txt", labels, [f"{run} x.npy --labels {{}}"]),
        ("samples", "s.npz", samples,
         ["compress m.onnx -o o.onnx --dim n=1 --evaluate {}",
          "compress m.onnx -o o.onnx --dim n=1 --evaluate {} --sensitivity 0.1"]),
    ))  # fmt: skip
    for name, file, data, lines in feeds:
        files = {**model, "x.npy": _as_npy(array), file: data}
        yield Subject(f"input, {name}", files, file, lines)
    yield from _documents(folder, model)


def _documents(folder: Path, model: Files) -> Iterator[Subject]:
    """Yield documents that one command writes and another reads."""
    told = _made(folder, "compress", "{}/whole.onnx", "-o", "{}/o.onnx", "--dim", "n=1",
                 "--sensitivity", "0.3", "--scan", "{}/scan.json", "--json")  # fmt: skip
    yield Subject(
        "is not a file of --scan", {**model, "scan.json": (folder / "scan.json").read_bytes()},
        "scan.json", ["compress m.onnx -o o.onnx --dim n=1 --sensitivity 0.3 --scan {}"],
    )  # fmt: skip
    csv = {"m.csv": _CSV.encode()}
    earlier = {"models": [{"model": "m.csv", "results": [{"strategy": "best", "height": 200}]}]}
    yield Subject(
        "an earlier comparison", {**csv, "old.json": json.dumps(earlier).encode()}, "old.json",
        ["compare m.csv --quick --baseline {} --fail-over 2%",
         "compare m.csv --quick --baseline {} --json"],
    )  # fmt: skip
    yield Subject(
        "results of a compression", {**csv, "c.json": told.encode()}, "c.json",
        ["compare m.csv --quick -o o.html --compression {}"],
    )  # fmt: skip
