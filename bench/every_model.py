"""Every model there is, planned, built, loaded, run and compared: what `build` writes must run.

    python bench/every_model.py [--json] [MODEL or FOLDER ...]

Each model goes through `plan`, `verify` and `build` as on the command line; the file is loaded and
run, twice, since states are kept; and the outputs are compared with those of ONNX Runtime or
LiteRT. Each is in a process of its own, so that none harms the others. A model that `build`
refuses with a reason is not wrong; it fails if a command ends in anything but a result or a
reason, if a file was written that does not run, or if the outputs differ. Without arguments the
models are every network inside the package `onnx`, those of `bench/zoo`, and those in
`../shared/models`, where present.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
from rich.table import Table

from harness import ProcessError, bench, emit, in_fresh_process, note, parser, table
from harness.inputs import shared_onnx, shared_tflite
from harness.trial import FAILURES, Trial, Verdict, trial_of
from zoo import CELLS, MEDIAPIPE, NETWORKS

_SUFFIXES = (".onnx", ".tflite")
_PACKAGED = Path(onnx.__file__).parent / "backend" / "test" / "data"


def default_models(folder: Path) -> Iterator[Path]:
    """Yield the models that are there, those of the zoo written to a folder."""
    yield from models_in(_PACKAGED)
    for name, build in {**NETWORKS, **CELLS, **MEDIAPIPE}.items():
        path = folder / f"{name}.onnx"
        onnx.save(build(), path)
        yield path
        path.unlink()
    yield from shared_onnx()
    yield from shared_tflite()


def models_in(path: Path) -> list[Path]:
    """Return the models of a folder and the folders in it, or the one that is named."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES)


def tried(model: Path) -> Trial:
    """Return what became of a model, in a process of its own."""
    try:
        return in_fresh_process(trial_of, model)
    except ProcessError as error:
        return Trial(label(model), Verdict.CRASHED, reason=str(error))


def label(model: Path) -> str:
    """Return a name for a model: those of the package `onnx` are all called model.onnx."""
    return model.parent.name if model.stem == "model" else model.stem


def shown(trials: Sequence[Trial]) -> Table:
    """Return the rows for people."""
    counts = Counter(each.verdict for each in trials)
    return table(
        "What became of each model",
        ("model", "verdict", "steps", "arena, B", "difference", "why"),
        (
            (
                each.model,
                str(each.verdict),
                ", ".join(f"{count} {backend}" for backend, count in each.steps.items()),
                f"{each.arena_bytes:,}",
                "" if each.difference is None else f"{each.difference:.0e}",
                each.reason,
            )
            for each in trials
        ),
        num_names=2,
        caption=", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each]),
    )


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Try all models and return 1 if one fails."""
    options = parser(__doc__, models="every network of the onnx package, the zoo and ../shared")
    parsed = options.parse_args(arguments)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as folder:
        named = (each for path in parsed.models for each in models_in(path))
        for model in named if parsed.models else default_models(Path(folder)):
            trial = tried(model)
            trials.append(trial)
            if trial.verdict in FAILURES:
                note(f"{trial.model}: {trial.verdict}: {trial.reason}")
    emit(parsed, trials, shown(trials))
    return int(any(each.verdict in FAILURES for each in trials))


if __name__ == "__main__":
    sys.exit(main())
