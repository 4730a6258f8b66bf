"""TVM's greedy by conflicts: the record that meets most first, each above all it meets."""

from dataclasses import dataclass
from typing import ClassVar

from arenite.strategies.place.tvm_greedy import TvmGreedy


@dataclass(frozen=True, slots=True)
class TvmByConflicts(TvmGreedy):
    """Place records by conflicts, size and name, all descending; gaps are never used."""

    name: ClassVar[str] = "tvm-by-conflicts"
    source: ClassVar[str] = "TVM 0.14, USMP greedy_by_conflicts"
    size_first: ClassVar[bool] = False
