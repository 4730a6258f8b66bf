"""The table of targets: being in it is enough to be offered, planned and verified."""

from typing import Final

from arenite.pipeline.targets.arenite import Arenite
from arenite.pipeline.targets.base import Target
from arenite.pipeline.targets.c import C
from arenite.pipeline.targets.foreign import Litert, Onnxruntime, Tflm
from arenite.pipeline.targets.generic import Generic

GENERIC: Final = Generic()
ARENITE: Final = Arenite()
C_SOURCE: Final = C()

_IN_ORDER: tuple[Target, ...] = (
    GENERIC, ARENITE, Tflm(), Litert(), Onnxruntime(), C_SOURCE,
)  # fmt: skip

TARGETS: Final[dict[str, Target]] = {target.name: target for target in _IN_ORDER}
"""By name, in the order of the help."""
