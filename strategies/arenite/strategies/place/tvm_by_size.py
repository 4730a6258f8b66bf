"""TVM's greedy by size: the largest record first, each above all it meets."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.strategies.place.tvm_greedy import TvmGreedy


@dataclass(frozen=True, slots=True)
class TvmBySize(TvmGreedy):
    """Place records by size, conflicts and name, all descending; gaps are never used."""

    name: ClassVar[str] = "tvm-by-size"
    source: ClassVar[str] = "TVM 0.14, USMP greedy_by_size"
    size_first: ClassVar[bool] = True
