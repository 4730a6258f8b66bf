"""The table of targets: being in it is enough to be offered, planned and verified."""

from typing import Final

from arenite.cli.targets.arenite import Arenite
from arenite.cli.targets.base import Target
from arenite.cli.targets.c import C
from arenite.cli.targets.generic import Generic
from arenite.cli.targets.litert import Litert
from arenite.cli.targets.onnxruntime import Onnxruntime
from arenite.cli.targets.tflm import Tflm

GENERIC: Final = Generic()
ARENITE: Final = Arenite()
C_SOURCE: Final = C()

_IN_ORDER: tuple[Target, ...] = (
    GENERIC, ARENITE, Tflm(), Litert(), Onnxruntime(), C_SOURCE,
)  # fmt: skip

TARGETS: Final[dict[str, Target]] = {target.name: target for target in _IN_ORDER}
"""By name, in the order of the help."""
