"""The results of every strategy on a model: the data behind tables, pages and baselines."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from arenite.pipeline.base.ranges import Touched, dimensions_as_json
from arenite.pipeline.report.frontier import Frontier
from arenite.planner import Diagnosis, Plan, Source, StrategyKind, TensorKind, diagnose


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The verified plan of a strategy, and its time.

    Attributes:
        seconds: Wall-clock time.
    """

    strategy: str
    kind: StrategyKind
    plan: Plan
    seconds: float
    interrupted: bool = False

    @property
    def height(self) -> int:
        """Bytes of the arena."""
        return self.plan.height


@dataclass(frozen=True, slots=True)
class SkippedStrategy:
    """A strategy that gave no valid plan.

    Attributes:
        wrong: Whether it failed or gave a plan that breaks a rule.
    """

    strategy: str
    kind: StrategyKind
    reason: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class PeerResult:
    """The arena of another tool for the model, by its own records.

    Attributes:
        arena: Bytes; None where it has no answer.
    """

    peer: str
    arena: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Constants of one layer.

    Attributes:
        operator: Name of the first operator that reads them.
        size: Bytes.
    """

    operator: str
    label: str
    size: int


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that could not be compared.

    Attributes:
        model: As it was asked for.
    """

    model: str
    error: str


@dataclass(frozen=True, slots=True)
class AtSizes:
    """The plans of one size of a range, beside the plan for all of it.

    Attributes:
        touched: What the plan for all sizes, the lowest of the strategies, takes at this size.
        lower_bound: Bytes that every plan for this size alone needs.
        heights: Of plans for this size alone, by strategy; some have none.
    """

    touched: Touched
    lower_bound: int
    heights: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """Return it as its part of `--json`."""
        heights = dict(self.heights)
        return {**self.touched.as_json(), "lower_bound": self.lower_bound, "heights": heights}


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A model, read for a target, and the results of every strategy on it.

    Attributes:
        model: As it was asked for.
        source: The program and its records, without a capacity.
        results: In the order of the table of strategies.
        skipped: The strategies without a plan, in the same order.
        peers: Other tools, where they were asked.
        phrase: Target and order, in a few words.
        note: On the choice of the target.
        frontier: The arenas in bands of rows, if requested and smaller.
        sizes: What single sizes of a range take, from the lowest to the highest.
    """

    model: str
    source: Source
    results: tuple[StrategyResult, ...]
    skipped: tuple[SkippedStrategy, ...] = ()
    peers: tuple[PeerResult, ...] = ()
    target: str = ""
    order: str = ""
    phrase: str = ""
    note: str | None = None
    frontier: Frontier | None = None
    sizes: tuple[AtSizes, ...] = ()

    @property
    def naive(self) -> int:
        """Bytes without any reuse."""
        return self.source.problem.naive

    @property
    def best_bound(self) -> int:
        """The highest bound proved by any strategy, or else the problem's own."""
        return sum(self._best_bounds)

    @property
    def _best_bounds(self) -> tuple[int, ...]:
        proved = [result.plan.lower_bounds for result in self.results]
        return tuple(map(max, zip(self.source.problem.lower_bounds, *proved, strict=True)))

    @property
    def winner(self) -> StrategyResult | None:
        """The lowest plan; of several, that of the strategy earliest in the table."""
        return min(self.results, key=lambda result: result.height, default=None)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The limit of the peak; None for a file that only lists records."""
        if self.source.program is None:
            return None
        return diagnose(self.source.program, self.source.problem)

    def proved(self, result: StrategyResult) -> bool:
        """Tell whether some strategy proved that no plan is lower in any memory."""
        return result.plan.heights == self._best_bounds

    def as_json(self) -> dict[str, object]:
        """Return the figures, offsets excluded."""
        diagnosis, winner = self.diagnosis, self.winner
        return {
            "model": self.model,
            "digest": self.source.digest,
            "num_records": len(self.source.problem.records),
            "naive": self.naive,
            "lower_bound": self.source.problem.lower_bound,
            "best_bound": self.best_bound,
            "advice": None if diagnosis is None else diagnosis.advice,
            "results": [self._result_as_json(result) for result in self.results],
            "skipped": [
                {"strategy": each.strategy, "reason": each.reason} for each in self.skipped
            ],
            "peers": list(map(asdict, self.peers)),
            "target": self.target,
            "order": self.order,
            "height": None if winner is None else winner.height,
            "frontier": self.frontier and [point.as_json() for point in self.frontier.points],
            "dimensions": dimensions_as_json(self.source.dimensions),
            "sizes": [each.as_json() for each in self.sizes],
        }

    def _result_as_json(self, result: StrategyResult) -> dict[str, object]:
        objects = result.plan.objects
        return {
            "strategy": result.strategy,
            "kind": result.kind.value,
            "height": result.height,
            "seconds": result.seconds,
            "optimal": self.proved(result),
            "interrupted": result.interrupted,
            "objects": objects
            and {
                "number": len(objects.sizes),
                "total": objects.total,
                "lower_bound": objects.lower_bound,
            },
        }


def layer_weights(source: Source) -> tuple[LayerWeights, ...]:
    """Return the constants of each layer, the largest first; shared ones count once."""
    program = source.program
    if program is None:
        return ()
    counted: set[str] = set()
    layers: list[LayerWeights] = []
    for step in program.steps:
        roots = {program.root(name)[0] for name in step.reads}
        own = {r for r in roots if program.tensors[r].kind is TensorKind.CONSTANT} - counted
        counted |= own
        if size := sum(program.tensors[name].size for name in own):
            layers.append(LayerWeights(step.name, step.operator.label, size))
    return tuple(sorted(layers, key=lambda layer: -layer.size))
