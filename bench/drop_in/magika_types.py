"""magika: types of four files."""
# packages: magika==1.0.3

import sys

import numpy as np
from magika import Magika
from measured import measure

FILES = (
    b"import os\nprint(os.getcwd())\n" * 40,
    b"<html><body><p>text</p></body></html>" * 30,
    b'{"a": [1, 2, 3], "b": "c"}' * 40,
    open(sys.executable, "rb").read(),  # noqa: PTH123, SIM115
)


def call(magika):
    found = [magika.identify_bytes(each) for each in FILES]
    return {
        "labels": np.array([str(each.output.label) for each in found]),
        "scores": [each.score for each in found],
    }


measure(Magika, call)
