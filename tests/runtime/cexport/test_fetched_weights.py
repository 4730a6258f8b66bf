"""Weights that are fetched into the arena by functions of the caller."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import CRequest, write_c
from arenite.planner import Budget, Memory
from arenite.planner.programs import CostedMemory
from arenite.runtime.cexport.export import CExport
from arenite.runtime.cexport.windows import windowed
from arenite.runtime.rewrites import WeightBudget, WeightBudgetError
from arenite.strategies import find
from support import tflite_networks as networks
from support.exported_c import WARNINGS, Machine, compiled, drawn, exported, written
from support.quantised_chain import mobile

TRANSFER = """
#include "tiny.h"
#include <stdlib.h>
#include <string.h>

static const uint8_t flash[] = {
#include "flash.inc"
};
static uint8_t *place;
static uint32_t begin, size;

void tiny_fetch_init(void)
{
    place = NULL;
}

/* A transfer that ends when it is awaited; until then its place holds noise. */
void tiny_fetch_start(uint8_t *to, uint32_t offset, uint32_t count)
{
    if (place != NULL || offset + count > sizeof flash)
        abort();
    memset(to, 0x5a, count);
    place = to;
    begin = offset;
    size = count;
}

void tiny_fetch_wait(void)
{
    if (place == NULL)
        abort();
    memcpy(place, flash + begin, size);
    place = NULL;
}
"""


@pytest.fixture(params=[mobile, networks.classifier])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(request.param())
    return path


def fetching(path: Path, weights: str, **options: object) -> CExport:
    reading = Reading(weight_budget=WeightBudget.parse(weights))
    request = CRequest(
        path, path.with_name("c"), reading, find("best"), "tiny",
        **{"rounding": None, "is_tested": False, **options},
    )  # fmt: skip
    return write_c(request).export


def transfer(export: CExport, folder: Path) -> Path:
    """Return the object of functions that fetch as hardware does."""
    written(export, folder)
    weights = export.files["tiny_external.bin"]
    (folder / "flash.inc").write_text(",".join(map(str, weights)))
    (folder / "transfer.c").write_text(TRANSFER)
    command = ["gcc", *WARNINGS, "-fPIC", "-c", folder / "transfer.c", "-o", folder / "t.o"]
    subprocess.run(command, check=True)
    return folder / "t.o"


@pytest.mark.parametrize("budget", ["1%", "80%,in-turn"])
def test_outputs_are_those_of_resident_weights(path: Path, tmp_path: Path, budget: str) -> None:
    whole = exported(path, name="tiny")
    expected = Machine.of(whole, compiled(whole, tmp_path / "whole"))
    try:
        export = fetching(path, budget, is_tested=True)  # by its own test
    except WeightBudgetError as error:
        export = fetching(path, str(error.least))
    assert export.weight_bytes + export.external_bytes == whole.weight_bytes
    assert export.external_bytes > 0
    objects = [transfer(export, tmp_path / "c")]
    machine = Machine.of(export, compiled(export, tmp_path / "c", objects=objects))
    for seed in range(2):
        inputs = drawn(whole, seed)
        for name, found in machine.run(inputs).items():
            np.testing.assert_array_equal(found, expected.run(inputs)[name])


def test_each_instruction_set_with_an_order_of_its_own_has_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(networks.classifier())
    files = fetching(path, "80%").files
    plain = files["tiny_external.bin"]
    for name, processors in (("mve", "Cortex-M55 and M85"), ("rvv", "RISC-V with vectors")):
        file = f"tiny_external_{name}.bin"
        assert len(files[file]) == len(plain)
        assert files[file] != plain
        assert f"On {processors} the file is {file}." in files["tiny.h"].decode()
    assert "@" not in files["tiny.h"].decode()


def test_a_fetch_begins_as_early_as_the_arena_has_room(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(networks.classifier())
    early, late = (
        fetching(path, budget).files["tiny.c"].decode() for budget in ("80%", "80%,in-turn")
    )
    at_once = re.compile(r"_fetch_start\([^\n]*\n\s*TINY_STEP\(\d+\);\n[^\n]*\n\s*tiny_fetch_wait")
    starts = late.count("_fetch_start(")
    assert len(at_once.findall(late)) == starts > 0
    assert len(at_once.findall(early)) < starts


def test_windows_lie_in_several_memories(path: Path, tmp_path: Path) -> None:
    memories = [CostedMemory(Memory("fast", 4096)), CostedMemory(Memory("slow", 1 << 20), 4, 6)]
    export = fetching(path, "80%", memories=memories)
    assert re.search(r"_fetch_start\(arena->(fast|slow) \+", export.files["tiny.c"].decode())


def test_a_budget_below_what_must_stay_is_refused(path: Path) -> None:
    with pytest.raises(WeightBudgetError, match=r"the weights need at least [\d,]+ B"):
        fetching(path, "1")
    assert not path.with_name("c").exists()


def test_options_that_exclude_fetched_weights_are_named(path: Path) -> None:
    with pytest.raises(OptionsError, match="it excludes --budget"):
        fetching(path, "80%", budget=Budget.parse("80%"))
    with pytest.raises(OptionsError, match="it excludes --kernels cmsis-nn"):
        fetching(path, "80%", extension="dsp")


def test_layers_whose_windows_take_least_come_first(path: Path) -> None:
    from arenite.pipeline.targets.c import lower_model_for_c

    found = windowed(lower_model_for_c(path).program)
    assert found
    assert [each.live for each in found] == sorted(each.live for each in found)
