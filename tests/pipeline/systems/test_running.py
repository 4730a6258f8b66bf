"""Several models in one arena: the same outputs as in arenas of their own, or a typed error."""

import itertools

import numpy as np
import pytest

from arenite.pipeline.making.programs import random_array
from arenite.pipeline.session import Session
from arenite.pipeline.systems import SystemFileError, plan_system
from arenite.runtime import InputShapeError, ProgramError, SizeRangeError, StageOrderError, System
from arenite.runtime.operators import Copy
from support.small_systems import CONNECTED, write_ranged_system, write_system
from support.tiny_onnx import parse, save, with_random_weights

THREE = '"detector", { maybe = ["landmarks"] }, { maybe = ["iris"] }'
POISONS = [None, 0x00, 0xFF]


def alone(path, name, inputs):
    with Session(path.parent / f"{name}.onnx") as session:
        return session.run(inputs)


def inputs_of(system, name, seed=0):
    generator = np.random.default_rng(seed)
    return {
        key: random_array(generator, port.dtype, port.shape)
        for key, port in system[name].inputs.items()
    }


@pytest.fixture(scope="module")
def connected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connected")
    names = ("detector", "landmarks", "iris")
    path = write_system(folder, THREE, *names, more=CONNECTED, keep="detector.boxes")
    planned = plan_system(path)
    planned.write(folder / "system.arena")
    return path, planned


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("rounds", [("detector", "landmarks", "iris"), ("detector", "iris")])
def test_models_compute_the_same_as_alone(connected, rounds, poison):
    path, planned = connected
    with System(path.with_suffix(".arena"), poison=poison) as system:
        assert system.arena_bytes == planned.height < sum(planned.alone.values())
        for seed in range(2):
            system.finish()
            made = {}
            for name in rounds:
                given = inputs_of(system, name, seed)
                found = system[name].run(given)
                crop = {} if name == "detector" else {"crop": made["crop"]}
                for key, expected in alone(path, name, {**given, **crop}).items():
                    np.testing.assert_array_equal(found[key], expected)
                made |= found
                if name not in ("detector", "landmarks"):
                    continue
                if name == "detector" and "landmarks" not in rounds:
                    system["landmarks"].skip()
            kept = system["detector"].outputs["boxes"].view
            np.testing.assert_array_equal(kept, made["boxes"])


def test_what_is_handed_on_is_not_copied(connected):
    path, planned = connected
    program = planned.built.compiled.program
    crop = next(port.tensor for port in program.outputs if port.name == "detector.crop")
    assert program.root("landmarks/crop") == program.root("iris/crop") == program.root(crop)
    assert not any(isinstance(step.operator, Copy) for step in program.steps)
    assert [stage.reads for stage in program.system.stages] == [
        (), ("detector.crop",), ("detector.crop",)
    ]  # fmt: skip
    assert planned.optimal
    with System(path.with_suffix(".arena")) as system:
        assert list(system["landmarks"].inputs) == ["scale"]
        assert not system["iris"].inputs


def test_what_is_stored_in_another_order_of_axes_is_copied_by_a_step(tmp_path):
    path = write_system(
        tmp_path, '"detector", "negative"', "detector", "negative",
        more='[[connect]]\nfrom = "detector.crop"\nto = "negative.crop"',
    )  # fmt: skip
    planned = plan_system(path)
    planned.write(tmp_path / "system.arena")
    (note,) = planned.built.compiled.program.notes
    assert note.startswith("copy of detector.crop for negative.crop")
    with System(tmp_path / "system.arena", poison=0xFF) as system:
        crop = system["detector"].run(inputs_of(system, "detector"))["crop"]
        np.testing.assert_array_equal(system["negative"].run()["negative"], abs(crop))


def test_runs_that_would_destroy_something_are_refused(connected):
    path, _ = connected
    with System(path.with_suffix(".arena")) as system:
        with pytest.raises(StageOrderError, match="run 'detector' first"):
            system["iris"].run()
        system["detector"].run(inputs_of(system, "detector"))
        with pytest.raises(StageOrderError, match="'landmarks' has not read; run or skip that"):
            system["iris"].run()
        system["landmarks"].start(inputs_of(system, "landmarks"))
        assert not system["landmarks"].advance(1)
        with pytest.raises(StageOrderError, match="'landmarks', which is not done"):
            system["detector"].run(inputs_of(system, "detector"))
        system["landmarks"].skip()
        system["iris"].run()
        with pytest.raises(StageOrderError, match="not there; run 'detector' first"):
            system["iris"].run()
        with pytest.raises(StageOrderError, match="call start"):
            system["iris"].advance(1)


def test_a_schedule_runs_by_its_conditions(connected):
    path, _ = connected
    with System(path.with_suffix(".arena")) as system:
        inputs = {"detector": inputs_of(system, "detector"),
                  "landmarks": lambda system: inputs_of(system, "landmarks")}  # fmt: skip
        assert list(system.run(inputs)) == ["detector", "landmarks", "iris"]
        found = system.run(inputs, {"landmarks": lambda _: False})
        assert list(found) == ["detector", "iris"]
        crop = {"crop": found["detector"]["crop"]}
        np.testing.assert_array_equal(found["iris"]["gaze"], alone(path, "iris", crop)["gaze"])


def test_a_session_of_all_models_runs_each_once(connected):
    path, _ = connected
    with Session(path.with_suffix(".arena"), poison=0xFF) as session:
        generator = np.random.default_rng(1)
        given = {
            port.name: random_array(generator, port.dtype, port.shape) for port in session.inputs
        }
        found = session.run(given)
        boxes = alone(path, "detector", {"image": given["detector.image"]})
        np.testing.assert_array_equal(found["detector.boxes"], boxes["boxes"])
        inputs = {"crop": boxes["crop"], "scale": given["landmarks.scale"]}
        points = alone(path, "landmarks", inputs)["points"]
        np.testing.assert_array_equal(found["landmarks.points"], points)
        with pytest.raises(StageOrderError, match="run them by System"):
            session.invoke()


@pytest.mark.parametrize("order", [*itertools.permutations(["detector", "iris", "speech"])])
def test_any_order_keeps_what_is_to_be_kept(tmp_path, order):
    names = '"detector", "iris", "speech"'
    path = write_system(
        tmp_path, f"{{ any_order = [{names}] }}", "detector", "iris", "speech", keep="iris.gaze"
    )
    plan_system(path).write(tmp_path / "system.arena")
    with System(tmp_path / "system.arena", poison=0xFF) as system:
        made = {}
        for name in order:
            given = inputs_of(system, name)
            made[name] = system[name].run(given)
            for key, expected in alone(path, name, given).items():
                np.testing.assert_array_equal(made[name][key], expected)
        np.testing.assert_array_equal(system["iris"].outputs["gaze"].view, made["iris"]["gaze"])


def test_models_at_once_run_in_slices_and_on_threads(tmp_path):
    path = write_system(
        tmp_path, '{ at_once = ["speech", "detector"] }, "iris"', "speech", "detector", "iris",
        more='[[connect]]\nfrom = "detector.crop"\nto = "iris.crop"',
    )  # fmt: skip
    planned = plan_system(path)
    planned.write(tmp_path / "system.arena")
    assert planned.height >= planned.alone["speech"]
    assert planned.optimal
    with System(tmp_path / "system.arena", poison=0xFF) as system:
        given = {name: inputs_of(system, name) for name in ("speech", "detector")}
        words = alone(path, "speech", given["speech"])["words"]
        system["speech"].start(given["speech"])
        done = False
        while not done:
            boxes = system["detector"].run(given["detector"])["boxes"]
            system["iris"].skip()
            done = system["speech"].advance(1)
        np.testing.assert_array_equal(system["speech"].outputs["words"].view, words)
        for _ in range(5):
            found = system.run(given)
            np.testing.assert_array_equal(found["speech"]["words"], words)
            np.testing.assert_array_equal(found["detector"]["boxes"], boxes)


@pytest.mark.parametrize("kind", ["any_order", "at_once"])
def test_models_have_sizes_of_their_own(tmp_path, kind):
    path = write_ranged_system(tmp_path, kind)
    planned = plan_system(path)
    planned.write(tmp_path / "system.arena")
    assert kind == "at_once" or planned.height < sum(planned.alone.values())
    generator = np.random.default_rng(0)

    def given(length):
        return {"x": generator.standard_normal((1, 4, length, 6)).astype(np.float32)}

    with (
        Session(tmp_path / "short.onnx", dims={"n": "1..40"}) as short,
        Session(tmp_path / "long.onnx", dims={"n": "2..60:2"}) as long,
        System(tmp_path / "system.arena", poison=0xFF) as system,
    ):
        alone = {"short": short, "long": long}
        for order in (("short", "long"), ("long", "short")):
            for lengths in ({"short": 40, "long": 60}, {"short": 1, "long": 44},
                            {"short": 7, "long": 2}):  # fmt: skip
                system.finish()
                for name in order:
                    inputs = given(lengths[name])
                    expected = alone[name].run(inputs)["y"]
                    np.testing.assert_array_equal(system[name].run(inputs)["y"], expected)
                    if name == "short":
                        kept = expected
                np.testing.assert_array_equal(system["short"].outputs["y"].view, kept)
        with pytest.raises(SizeRangeError, match=r"long\.x:2"):
            system["long"].start(given(3))
        with pytest.raises(InputShapeError):
            system["long"].start({"x": np.zeros((1, 4, 6), np.float32)})
        if kind == "any_order":  # a refused start leaves the sizes as they are
            system.finish()
            system["long"].run(given(60))
            system["long"].start(given(60))
            with pytest.raises(StageOrderError):
                system["short"].start(given(5))
            assert system["short"].inputs["x"].shape == (1, 4, 7, 6)


LAYERS = """(float[1,32,8,8] x) => (y) <float[64,32,3,3] w, float[32,64,3,3] v>
{ c = Conv<pads=[1,1,1,1]>(x, w) r = Relu(c) y = Conv(r, v) }"""


@pytest.mark.parametrize("schedule", ["any_order", "at_once"])
@pytest.mark.parametrize("loading", ["in-turn", "beside"])
def test_models_stream_weights_into_the_arena_that_they_share(tmp_path, loading, schedule):
    lines = [f'schedule = [{{ {schedule} = ["one", "other"] }}]']
    for seed, name in enumerate(("one", "other")):
        save(tmp_path, with_random_weights(parse(LAYERS), seed)).rename(tmp_path / f"{name}.onnx")
        weights = f'weights = "30%,{loading}"'
        lines += [f"[models.{name}]", f'path = "{name}.onnx"', weights]
    path = tmp_path / "system.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    held = plan_system(path).write(tmp_path / "system.arena")
    assert held.weights_resident < 0.1 * held.weights
    with System(tmp_path / "system.arena", poison=0xFF) as system:
        given = {name: inputs_of(system, name) for name in system}
        expected = {name: alone(path, name, given[name])["y"] for name in system}
        for name in ("one", "other", "other", "one"):
            np.testing.assert_array_equal(system[name].run(given[name])["y"], expected[name])
        if schedule == "at_once":
            system["one"].start(given["one"])
            while not system["one"].advance(1):
                found = system["other"].run(given["other"])["y"]
                np.testing.assert_array_equal(found, expected["other"])
            np.testing.assert_array_equal(system["one"].outputs["y"].view, expected["one"])


def test_weights_that_fit_no_budget_are_refused(tmp_path):
    path = write_system(tmp_path, '"detector"', "detector")
    path.write_text(path.read_text() + '\nweights = "1%"')
    with pytest.raises(SystemFileError, match="model 'detector' has weights='1%', which need at"):
        plan_system(path)


def test_a_repeated_model_finds_its_input_again(tmp_path):
    path = write_system(
        tmp_path, '"detector", { repeat = ["landmarks"] }', "detector", "landmarks",
        more='[[connect]]\nfrom = "detector.crop"\nto = "landmarks.crop"',
    )  # fmt: skip
    plan_system(path).write(tmp_path / "system.arena")
    with System(tmp_path / "system.arena", poison=0x00) as system:
        crop = system["detector"].run(inputs_of(system, "detector"))["crop"]
        for seed in range(3):
            given = inputs_of(system, "landmarks", seed)
            found = system["landmarks"].run(given)
            expected = alone(path, "landmarks", {**given, "crop": crop})["points"]
            np.testing.assert_array_equal(found["points"], expected)


def test_a_single_model_is_no_system(tmp_path):
    from arenite.pipeline import build

    model = save(tmp_path, parse("(float[2] x) => (y) {y = Neg(x)}"))
    build(model, tmp_path / "one.arena")
    with pytest.raises(ProgramError, match="has a single model"):
        System(tmp_path / "one.arena")
