"""Pairs and triples of trained models in every order, on poisoned memory."""

import itertools

import numpy as np
import pytest

from arenite.pipeline.making.programs import random_array
from arenite.pipeline.session import Session
from arenite.pipeline.systems import SystemDescription, SystemModel, plan_system
from arenite.planner.programs import Section, SectionKind
from arenite.runtime import System
from support.shared_material import shared


@pytest.mark.parametrize(
    "names",
    [
        ("mww_okay_nabu", "kws_ref_model"),
        ("mww_okay_nabu", "micro_speech_quantized"),
        ("person_detect", "kws_ref_model"),
        ("vww_96_int8", "kws_ref_model"),
        ("person_detect", "mww_okay_nabu", "kws_ref_model"),
        ("mp_palm_detection_lite", "face_landmark"),
        ("face_detection_front", "face_landmark", "iris_landmark"),
    ],
)
def test_real_models_compute_the_same_in_every_order(tmp_path, names):
    models = {name: SystemModel(shared(f"models/tflite/{name}.tflite")) for name in names}
    schedule = Section(SectionKind.ANY_ORDER, names)
    planned = plan_system(SystemDescription("system", models, schedule))
    planned.write(tmp_path / "system.arena")
    assert max(planned.alone.values()) <= planned.height < sum(planned.alone.values())
    assert planned.optimal
    generator = np.random.default_rng(0)
    given, expected = {}, {}
    for name, model in models.items():
        with Session(model.path) as session:
            given[name] = {
                port.name: random_array(generator, port.dtype, port.shape)
                for port in session.inputs
            }
            expected[name] = session.run(given[name])
    with System(tmp_path / "system.arena", poison=0xFF) as system:
        for order in itertools.permutations(names):
            system.finish()
            system.reset()
            for name in order:
                found = system[name].run(given[name])
                for key, array in expected[name].items():
                    np.testing.assert_array_equal(found[key], array)
