"""Programs with false facts or operands that do not fit: each is refused for the reason said."""

from dataclasses import replace

import pytest

from arenite.runtime import ProgramError, UnwritableProgramError
from support.edited_programs import edited, load
from support.hostile_edits import EDITS, kernel
from support.hostile_steps import CASES, SOUND, changed


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_step_runs(name):
    load(SOUND[name].to_bytes())


@pytest.mark.parametrize("name", SOUND)
def test_a_step_without_operands_is_refused(name):
    for lacking in ({"inputs": ()}, {"outputs": ()}):
        data = replace(SOUND[name], **lacking).to_bytes()
        with pytest.raises(ProgramError, match=r"too few|no output"):
            load(data)


@pytest.mark.parametrize("name", SOUND)
def test_a_step_with_its_first_input_left_out_is_refused(name):
    data = replace(SOUND[name], inputs=(None, *SOUND[name].inputs[1:])).to_bytes()
    with pytest.raises(ProgramError, match="a required input is missing"):
        load(data)


@pytest.mark.parametrize("name", CASES)
def test_operands_that_do_not_fit_are_refused(name):
    which, changes, reason = CASES[name]
    data = changed(SOUND[which], changes).to_bytes()
    with pytest.raises(ProgramError) as caught:
        load(data)
    assert reason in str(caught.value)


@pytest.mark.parametrize("name", EDITS)
def test_a_program_that_lies_is_refused(assembly, name):
    edit, reason = EDITS[name]
    data = edited(assembly, edit)
    with pytest.raises(ProgramError) as caught:
        load(data)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "edit",
    [
        lambda r: r.update(weights_sise=64),
        lambda r: r["tensors"][0].update(at=2),
        lambda r: kernel(r, "Conv2D").update(stride=[0, 0]),
        lambda r: r["tensors"][0].update(shape=[-1]),
    ],
)
def test_a_misspelt_edit_is_no_refusal(assembly, edit):
    with pytest.raises(UnwritableProgramError, match="not a program"):
        edited(assembly, edit)
