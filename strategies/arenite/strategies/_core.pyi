from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias

class Fit(Enum):
    FIRST = ...
    BEST = ...
    BEST_TFLITE_CPU = ...
    TOP = ...

class Records:
    def __init__(
        self,
        starts: Sequence[int],
        ends: Sequence[int],
        sizes: Sequence[int],
        alignments: Sequence[int],
        fixed: Sequence[int],
    ) -> None: ...
    def __len__(self) -> int: ...

BandReads: TypeAlias = tuple[int, Sequence[int], Sequence[int], bool]
BandStep: TypeAlias = tuple[int, int, int, int, Sequence[BandReads]]
BandTimes: TypeAlias = tuple[float, float, float, float]

class Bands:
    def __init__(
        self,
        sizes: Sequence[int],
        rows: Sequence[int],
        steps: Sequence[BandStep],
        times: Sequence[BandTimes],
    ) -> None: ...
    def walk(
        self,
        start: int,
        stop: int,
        rows: int,
        inner_rows: int,
        consumed: Sequence[int],
        kept: Sequence[int],
        carried: int,
        limit: int,
    ) -> tuple[int, int, float]: ...
    def turns(
        self, start: int, stop: int, rows: int, inner_rows: int
    ) -> list[tuple[int, int, int]]: ...

def place_in_order(records: Records, order: Sequence[int], fit: Fit) -> list[int]: ...
def minimise(
    records: Records,
    offsets: Sequence[int],
    lower_bound: int,
    goal: int,
    stop_at_goal: bool,
    seed: int,
    max_nodes: int,
    watch: Callable[[list[int], int, int], bool],
) -> tuple[list[int], int]: ...
def place_outlined(
    records: Records,
    outlines: Sequence[Sequence[int]],
    orders: Sequence[Sequence[int]],
    lower_bound: int,
    seed: int,
    max_work: int,
    watch: Callable[[list[int], int], bool],
) -> list[int]: ...

class OrderProblem:
    def __init__(
        self,
        predecessors: Sequence[Sequence[int]],
        scratch: Sequence[int],
        sizes: Sequence[int],
        writers: Sequence[int],
        touchers: Sequence[Sequence[int]],
        kept: Sequence[bool],
        replaceable: Sequence[Sequence[int]],
    ) -> None: ...
    def least_peak(self) -> int: ...
    def peak_of(self, order: Sequence[int]) -> int: ...

class OrderResult:
    order: list[int]
    peak: int
    def __init__(self) -> None: ...
    @property
    def optimal(self) -> bool: ...

def beam_order(
    problem: OrderProblem,
    width: int,
    max_bytes: int,
    max_work: int,
    should_stop: Callable[[], bool],
) -> OrderResult: ...
def exact_order(
    problem: OrderProblem,
    incumbent: OrderResult,
    max_states: int,
    max_bytes: int,
    should_stop: Callable[[], bool],
) -> OrderResult: ...
