"""Systems as C source, beside each of their models as C source in an arena of its own."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import CRequest, write_c
from arenite.pipeline.making.schedule_checks import OverwrittenOutputError, SharedAtOnceError
from arenite.pipeline.systems import SystemFileError, exporting, write_system_c
from arenite.planner import AreniteError, Budget, Memory
from arenite.planner.programs import CostedMemory, Section, SectionKind
from arenite.planner.sizes import Dimension
from arenite.runtime.cexport.export import CExport
from arenite.runtime.rewrites import WeightBudget
from arenite.strategies import BandsLimitError, find
from support import tflite_networks as networks
from support.exported_c import Machine, best_order, compiled, drawn, exported
from support.small_systems import CONNECTED, write_ranged_system, write_system
from support.tiny_onnx import parse, save


def system_of(path: Path, budget: str | None = None, **options) -> CExport:
    if budget is not None:
        options["budget"] = Budget.parse(budget)
    request = CRequest(path, path.with_name("c"), Reading(), find("best"), None, **options)
    return write_system_c(request).export


class Running:
    """A system in one arena, and each of its models in one of its own."""

    def __init__(self, path: Path, export: CExport, folder: Path, poison: int, *flags: str):
        self.export = export
        self.models = {each.stage.name: each for each in export.component.models}
        self.machine = Machine.of(export, compiled(export, folder / "all", *flags))
        self.machine.arena[:] = poison
        self.machine.reset()
        self.poison = poison
        self.alone = {}
        for name in self.models:
            file = next(path.parent.glob(f"{name}.*"))
            alone = exported(file, order=best_order())
            self.alone[name] = Machine.of(alone, compiled(alone, folder / name))
        self.made: dict[str, dict[str, np.ndarray]] = {}

    def run(self, name: str, seed: int, **handed: np.ndarray) -> None:
        """Run a model in both arenas, on the same inputs, and compare all bits."""
        number = list(self.models).index(name)
        given = drawn(self.export, seed, number)
        found = self.machine.run(given, model=number)
        expected = self.alone[name].run({**given, **handed})
        self.made[name] = expected
        self.assert_there(name, found)

    def assert_there(self, name: str, found: dict[str, np.ndarray] | None = None) -> None:
        """Check that all outputs of a model are what it made."""
        found = found or self.machine.outputs(self.models[name])
        for key, array in self.made[name].items():
            assert found[key].tobytes() == array.tobytes(), (name, key)

    def poison_all_but(self, *outputs: str) -> None:
        """Fill the arena but for some outputs, MODEL.OUTPUT."""
        kept = np.zeros(self.machine.arena.size, bool)
        for output in outputs:
            model, _, name = output.partition(".")
            port = next(p for p in self.models[model].outputs if p.port.name == name)
            kept[port.offset : port.offset + port.tensor.size] = True
        self.machine.arena[~kept] = self.poison


@pytest.mark.parametrize("poison", [0x00, 0xFF])
@pytest.mark.parametrize("has_landmarks", [True, False])
def test_what_is_handed_on_and_kept_lies_where_it_was_made(tmp_path, has_landmarks, poison):
    path = write_system(
        tmp_path, '"detector", { maybe = ["landmarks"] }, "iris"', "detector", "landmarks", "iris",
        more=CONNECTED, keep="detector.boxes",
    )  # fmt: skip
    export = system_of(path)  # its own test has passed
    running = Running(path, export, tmp_path / "made", poison)
    assert [len(each.inputs) for each in export.component.models] == [1, 1, 0]
    for seed in range(2):
        running.poison_all_but()
        running.run("detector", seed)
        boxes, crop = (running.made["detector"][key] for key in ("boxes", "crop"))
        running.poison_all_but("detector.boxes", "detector.crop")
        if has_landmarks:
            running.run("landmarks", seed, crop=crop)
            running.poison_all_but("detector.boxes", "detector.crop")
        running.run("iris", seed, crop=crop)
        running.poison_all_but("detector.boxes")
        kept = running.machine.outputs(running.models["detector"])["boxes"]
        assert kept.tobytes() == boxes.tobytes()


@pytest.mark.parametrize("order", [*itertools.permutations(["detector", "iris", "speech"])])
def test_models_run_in_any_order(tmp_path, order):
    names = '"detector", "iris", "speech"'
    path = write_system(
        tmp_path, f"{{ any_order = [{names}] }}", "detector", "iris", "speech", keep="iris.gaze"
    )
    running = Running(path, system_of(path, is_tested=False), tmp_path / "made", 0xFF)
    kept: tuple[str, ...] = ()
    for seed, name in enumerate(order):
        running.poison_all_but(*kept)
        running.run(name, seed)
        kept += ("iris.gaze",) if name == "iris" else ()
    running.assert_there("iris")


@pytest.mark.parametrize("budget", [None, "60%"])
def test_one_model_runs_between_the_steps_of_another(tmp_path, budget):
    path = write_system(tmp_path, '{ at_once = ["speech", "detector"] }', "speech", "detector")
    export = system_of(path, budget)
    count = export.component.models[0].num_steps
    hook = f"-DSYSTEM_STEP(i)=(void)((i) < {count} && system_detector_run(arena))"
    running = Running(path, export, tmp_path / "made", 0xFF, hook)
    for seed in range(3):
        running.run("speech", seed)
    assert "may run on threads of their own" in export.files["system.h"].decode()


def test_bytes_and_states_are_those_of_each_model_alone(tmp_path):
    lines = ['schedule = [{ any_order = ["classifier", "keyword"] }]']
    for name in ("classifier", "keyword"):
        (tmp_path / f"{name}.tflite").write_bytes(getattr(networks, name)())
        lines += [f"[models.{name}]", f'path = "{name}.tflite"']
    path = tmp_path / "system.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    export = system_of(path)
    running = Running(path, export, tmp_path / "made", 0xFF)
    assert [each.has_states for each in export.component.models] == [False, True]
    sizes = [each.export.arena_bytes for each in running.alone.values()]
    assert max(sizes) <= export.arena_bytes < sum(sizes)
    for seed, name in enumerate(["keyword", "classifier", "keyword", "keyword", "classifier"]):
        running.run(name, seed)


def test_a_model_that_is_there_twice_takes_kernels_and_weights_once(tmp_path):
    path = write_system(tmp_path, '"detector"', "detector")
    one = system_of(path, is_tested=False)
    path.write_text(
        "".join(f'[models.{name}]\npath = "detector.onnx"\n' for name in ("left", "right"))
    )
    two = system_of(path, is_tested=False)
    assert two.weight_bytes == one.weight_bytes
    text = two.files["system.c"].decode()
    assert text.count("KERNEL conv_f32(") == 1
    assert {each.name for each in two.component.models} == {"system_left", "system_right"}


def test_plans_that_do_not_hold_for_the_schedule_are_refused(tmp_path, monkeypatch):
    def kept(*arguments):
        found = join(*arguments)
        first, last = found.system.stages
        stages = (replace(first, keeps=("detector.crop",)), last)
        return replace(found, system=replace(found.system, stages=stages))

    def at_once(*arguments):
        found = join(*arguments)
        section = Section(SectionKind.AT_ONCE, tuple(found.system.schedule.stages()))
        return replace(found, system=replace(found.system, schedule=section))

    def in_turn(strategy, program, *rest):
        section = Section(SectionKind.SEQUENCE, tuple(program.system.schedule.stages()))
        system = replace(program.system, schedule=section)
        return place(strategy, replace(program, system=system), *rest)

    join, place = exporting.join, exporting.place_apart
    path = write_system(tmp_path, '"detector", "speech"', "detector", "speech")
    monkeypatch.setattr(exporting, "join", kept)
    with pytest.raises(OverwrittenOutputError, match="it is kept"):
        system_of(path)
    monkeypatch.setattr(exporting, "join", at_once)
    monkeypatch.setattr(exporting, "place_apart", in_turn)
    with pytest.raises(SharedAtOnceError):
        system_of(path)
    assert not (tmp_path / "c").exists()


def test_each_model_runs_at_sizes_of_its_own(tmp_path):
    path = write_ranged_system(tmp_path, "any_order")
    export = system_of(path)  # its own test has passed, at three sizes
    machine = Machine.of(export, compiled(export, tmp_path / "all"))
    readings = {
        "short": Reading(dims={"n": Dimension("n", 1, 40)}),
        "long": Reading(shapes={"x": (1, 4, Dimension("x:2", 2, 60, 2), 6)}),
    }
    alone = {}
    for name, reading in readings.items():
        made = exported(tmp_path / f"{name}.onnx", order=best_order(), reading=reading)
        alone[name] = Machine.of(made, compiled(made, tmp_path / name))
    random = np.random.default_rng(3)
    names = [each.stage.name for each in export.component.models]
    kept = None
    for name, size in [("short", 17), ("long", 60), ("long", 2), ("short", 40), ("long", 24)]:
        interface = export.component.models[names.index(name)]
        ours, theirs = (
            {each.name: size for each in dimensions}
            for dimensions in (interface.dimensions, alone[name].export.interface.dimensions)
        )
        given = {"x": random.standard_normal((1, size, 6, 4)).astype(np.float32)}
        found = machine.run(given, ours, names.index(name))["y"]
        assert found.tobytes() == alone[name].run(given, theirs)["y"].tobytes(), (name, size)
        if name == "short":
            kept = interface.at(ours), found
        else:
            assert machine.outputs(kept[0])["y"].tobytes() == kept[1].tobytes()


def test_models_run_in_bands_to_meet_a_budget(tmp_path):
    path = write_system(
        tmp_path, '"detector", { maybe = ["landmarks"] }, "speech"', "detector", "landmarks",
        "speech", more="\n".join(CONNECTED.splitlines()[:4]),
    )  # fmt: skip
    whole = system_of(path, is_tested=False)
    export = system_of(path, "62%", is_tested=False)
    assert export.arena_bytes <= 0.62 * whole.arena_bytes
    tables = [name for name in ("detector", "speech")
              if f"system_{name}_turns[]" in export.files["system.c"].decode()]  # fmt: skip
    assert tables == ["detector", "speech"]
    running = Running(path, export, tmp_path / "made", 0xFF)
    for seed in range(2):
        running.run("detector", seed)
        running.run("landmarks", seed, crop=running.made["detector"]["crop"])
        running.run("speech", seed)
    with pytest.raises(BandsLimitError, match="the budget is 100 B, the least arena that bands"):
        system_of(path, "100")


def test_models_lie_in_several_memories(tmp_path):
    memories = [CostedMemory(Memory("fast", 12_000)), CostedMemory(Memory("slow"), 4.0, 6.0)]
    path = write_system(
        tmp_path, '"detector", { maybe = ["landmarks"] }, "iris"', "detector", "landmarks", "iris",
        more=CONNECTED, keep="detector.boxes",
    )  # fmt: skip
    export = system_of(path, memories=memories)  # its own test has passed
    assert [each.region for each in export.component.memories] == ["fast", "slow"]
    assert export.component.memories[0].size <= 12_000
    header = export.files["system.h"].decode()
    assert "int system_iris_run(const system_memories *arena);" in header
    path = write_system(tmp_path, '{ at_once = ["detector", "iris"] }', "detector", "iris")
    with pytest.raises(SystemFileError, match="models that run at_once share one memory"):
        system_of(path, memories=memories)
    ranged = write_ranged_system(tmp_path, "any_order")
    with pytest.raises(OptionsError, match=r"memories take one size: short\.n=1\.\.40 is a range"):
        system_of(ranged, memories=memories)


def test_ways_to_round_that_differ_are_refused(tmp_path):
    (tmp_path / "a.tflite").write_bytes(networks.classifier())
    save(
        tmp_path,
        parse(
            "(float[1,4] x) => (y) <float s = {0.1}, int8 z = {0}> {q = QuantizeLinear(x, s, z) "
            "y = DequantizeLinear(q, s, z)}"
        ),
    ).rename(tmp_path / "b.onnx")
    path = tmp_path / "system.toml"
    path.write_text('[models.a]\npath = "a.tflite"\n[models.b]\npath = "b.onnx"\n')
    with pytest.raises(OptionsError, match="'a' double, 'b' even; choose one by --rounding"):
        system_of(path)
    assert system_of(path, rounding="double", is_tested=False).rounding == "double"


def fetching_system(folder: Path, schedule: str, *, weights: str = "40%") -> Path:
    """Write a system of two models, equal but for their names, whose weights are fetched."""
    lines = [f"schedule = [{schedule}]"]
    for name in ("one", "other"):
        (folder / f"{name}.tflite").write_bytes(networks.tower())
        lines += [f"[models.{name}]", f'path = "{name}.tflite"', f'weights = "{weights}"']
    path = folder / "system.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_models_fetch_their_weights_into_the_one_arena(tmp_path):
    path = fetching_system(tmp_path, '{ any_order = ["one", "other"] }')
    export = system_of(path)  # its own test has passed, by functions that copy from an array
    reading = Reading(weight_budget=WeightBudget.parse("40%"))
    alone = CRequest(tmp_path / "one.tflite", tmp_path / "alone", reading, find("best"), None)
    single = write_c(alone).export
    assert export.external_bytes == single.external_bytes > 0  # equal weights once
    assert export.weight_bytes == single.weight_bytes
    assert export.arena_bytes == single.arena_bytes
    text = export.files["system.c"].decode()
    assert text.count("    system_fetch_init();") == 2
    assert "system_external.bin" in export.files


def test_a_model_with_resident_weights_fetches_nothing(tmp_path):
    path = fetching_system(tmp_path, '{ at_once = ["one", "other"] }')
    stated = path.read_text().replace('weights = "40%"', "", 1)
    path.write_text(stated)
    export = system_of(path)
    text = export.files["system.c"].decode()
    assert text.count("    system_fetch_init();") == 1


@pytest.mark.parametrize(
    ("schedule", "options", "words"),
    [
        ('{ at_once = ["one", "other"] }', {}, "'one' and 'other' run at_once and both have"),
        ('"one", "other"', {"budget": "50%"}, "'one' has weights='40%': .* excludes --budget"),
    ],
)
def test_fetches_that_would_meet_are_refused(tmp_path, schedule, options, words):
    with pytest.raises(AreniteError, match=words):
        system_of(fetching_system(tmp_path, schedule), **options)
