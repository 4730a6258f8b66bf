"""Every model and every operator there is: planned, built, loaded, run and compared."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from bench.harness.contest import Asked, Row, contest, note, option
from bench.harness.inputs import shared_onnx, shared_tflite
from bench.harness.measuring import ProcessError, in_fresh_process
from bench.harness.trial import FAILURES, Trial, Verdict, trial_of
from bench.zoo import CELLS, MEDIAPIPE, NETWORKS

_PACKAGED = Path(onnx.__file__).parent / "backend" / "test" / "data"


@contest(
    {"The outcome of each model": {
        "model": "", "verdict": "", "steps": "", "arena, B": "", "difference": ".0e", "why": "",
    }},
    models="every network of the onnx package, the zoo and ../shared",
)  # fmt: skip
def every_model(asked: Asked) -> Iterator[Row]:
    """Every model there is, planned, built, loaded, run and compared.

    Each model, or model of a folder, goes through `plan`, `verify` and `build` as on the command
    line; the file is loaded and run twice, since states are kept; outputs are compared with those
    of ONNX Runtime or LiteRT. Each has a process of its own. A model that `build` refuses with a
    reason is not wrong; a command that ends otherwise, a file that does not run and other outputs
    are.
    """

    def models() -> Iterator[Path]:
        yield from models_in(_PACKAGED)
        for name, build in {**NETWORKS, **CELLS, **MEDIAPIPE}.items():
            path = asked.folder / f"{name}.onnx"
            onnx.save(build(), path)
            yield path
            path.unlink()
        yield from shared_onnx()
        yield from shared_tflite()

    named = (each for path in asked.models for each in models_in(path))
    counts: Counter[Verdict] = Counter()
    for model in named if asked.models else models():
        trial = tried(model)
        counts[trial.verdict] += 1
        claim = f"{trial.model}: {trial.verdict}: {trial.reason}"
        asked.require(trial.verdict not in FAILURES, claim)
        yield {
            "model": trial.model, "verdict": str(trial.verdict),
            "steps": ", ".join(f"{count} {backend}" for backend, count in trial.steps.items()),
            "arena, B": trial.arena_bytes, "difference": trial.difference, "why": trial.reason,
        }  # fmt: skip
    note(", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each]))


def models_in(path: Path) -> list[Path]:
    """Return the models of a folder and the folders in it, or the one that is named."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in (".onnx", ".tflite"))


def tried(model: Path) -> Trial:
    """Return the trial of a model in a process of its own."""
    try:
        return in_fresh_process(trial_of, model)
    except ProcessError as error:
        name = model.parent.name if model.stem == "model" else model.stem
        return Trial(name, Verdict.CRASHED, reason=str(error))


@contest(
    {"Cases of one operator": {"result": "", "cases": ""}},
    options=[option("--write", type=Path, metavar="PAGE", help="write the page here")],
)
def operator_table(asked: Asked) -> Iterator[Row]:
    """Every operator of ONNX and TFLite: imported, planned, and run by us or another, or refused.

    Each case is a model of one operator that goes through import, planning, assembly and a run,
    and whose outputs are compared: with the expectations of the onnx package's backend tests, with
    ONNX Runtime, or with LiteRT. `--write docs/operators.md` writes the page; it takes two
    minutes.
    """
    from bench.sweep.onnx_cases import onnx_cases, onnx_operators, text_cases
    from bench.sweep.outcome import Result, outcome_of
    from bench.sweep.page import written_page
    from bench.sweep.tflite_cases import tflite_cases

    cases = (*onnx_cases(), *text_cases(), *tflite_cases())
    outcomes = [outcome_of(case, asked.folder) for case in cases]
    for each in outcomes:
        asked.require(each.result is not Result.WRONG, f"{each.case.name}: {each.reason}")
    for operator in sorted(set(onnx_operators()) - {each.case.operator for each in outcomes}):
        asked.require(False, f"{operator}: there is no case of it")
    if asked.given.write is not None:
        asked.given.write.write_text(written_page(outcomes))
    counts = Counter(each.result for each in outcomes)
    for result in Result:
        yield {"result": str(result), "cases": counts[result]}
