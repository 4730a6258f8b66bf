"""Program files whose program lies: each is refused for the reason that is said."""

import pytest

from arenite.runtime import ProgramError, UnwritableProgramError
from support.edited_programs import edited, load
from support.hostile_edits import EDITS, kernel


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
