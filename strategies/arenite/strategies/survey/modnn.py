"""Spill the tensor that is read last, and fetch in order of use as soon as there is room."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.strategies.schedules.offload_prefetch import OffloadPrefetch
from arenite.strategies.schedules.spilling import Fetching


@dataclass(frozen=True, slots=True)
class MoDNN(OffloadPrefetch):
    """Spill the tensor that is read last; fetch the earliest deadline first when there is room.

    The choice of convolution algorithms and of smaller batches has no counterpart here.
    """

    name: ClassVar[str] = "modnn"
    source: ClassVar[str] = "Chen et al. 2018, moDNN, DATE; 2019, IEEE TPDS 30(3)"
    decides: ClassVar[str] = "which tensors are spilled, by next use, back as soon as they fit"
    fetching: ClassVar[Fetching] = Fetching.WITH_ROOM
