"""What a wheel must hold, checked where it is installed: `python tests/installed_wheel.py`.

`cibuildwheel` runs it. It takes the package from the environment, never from the checkout.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import arenite.runtime

FORMATS = {"click", "flatbuffers", "google", "onnx", "onnxruntime", "rich", "tflite"}
FILES = (
    "_core.pyi", "_schema.pyi", "py.typed", "targets/onnxruntime/_allocator.pyi",
    "cexport/kernels/conv_s8.c", "cexport/kernels/common.h",
)  # fmt: skip


def main() -> None:
    session = arenite.Session  # loads what running a program takes
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not FORMATS & loaded, f"importing the session brought {FORMATS & loaded}"
    package = Path(arenite.runtime.__file__ or "").parent
    missing = [name for name in FILES if not (package / name).is_file()]
    assert not missing, f"{package} lacks {missing}"

    from support.tiny_programs import classifier

    with tempfile.TemporaryDirectory() as folder:
        for quantised, least in ((False, 0.99), (True, 0.9)):
            with session(classifier(Path(folder), quantised=quantised)) as opened:
                port = opened.inputs[0]
                scores = opened.run({port.name: np.ones(port.shape, port.dtype)})["classes"]
            share = scores.sum() if not quantised else (scores.astype(int) + 128).sum() / 256
            assert least <= share <= 2 - least, f"the classes sum to {share}"


if __name__ == "__main__":
    main()
