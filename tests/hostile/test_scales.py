"""Scales that are far apart: what is no number is stored as the lowest, not as whatever comes."""

import numpy as np
import pytest

from arenite.runtime import Session
from support.one_step import Given, one_step


@pytest.mark.parametrize(("source", "result", "expected"), [(1.0, 1.0, 0), (3e38, 1e-38, -128)])
def test_nothing_times_infinity_is_the_lowest(source, result, expected):
    image = Given((1, 4, 4, 32), "int8", scales=[source])
    mean = Given((1, 1, 1, 32), "int8", scales=[result])
    kernel = {"function": "mean", "axes": [1, 2]}
    data = b"".join(one_step("Reduce", kernel, [image], [mean], scratch=4096))
    with Session.of_pieces([data], "far apart") as session:
        made = session.run({"i0": np.zeros((1, 4, 4, 32), np.int8)})["o0"]
    assert (made == expected).all()
