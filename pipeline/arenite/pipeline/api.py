"""The functions of `import arenite`: a model to a plan, a program, a budget, a comparison."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.placing import configured
from arenite.pipeline.base.reading import Reading, StatedDims, StatedShapes, lengths_of
from arenite.pipeline.comparison.comparing import Comparison, Task, compare_each
from arenite.pipeline.comparison.model_files import find_model_files, readings_of
from arenite.pipeline.making.building import Built, build_by_plan, build_model
from arenite.pipeline.making.fitted import FittedFrontier, FittedModel, fit_model
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.hops import StreamedModel, axis_of, hop_of, stream_model
from arenite.pipeline.making.one_budget import OneBudget
from arenite.pipeline.making.planning import PlannedModel, plan_model
from arenite.pipeline.making.programs import code_of
from arenite.planner import Boundary, Budget, Strategy
from arenite.planner.sizes import Sizes
from arenite.planner.units import parse_size
from arenite.runtime.rewrites import Activations, Caches, Hops, Kernels, Padding, WeightBudget
from arenite.strategies import find, known

ModelPath: TypeAlias = Path | str
Size: TypeAlias = int | str
"""Bytes, or a text such as `256KiB`."""


def plan(
    model: ModelPath,
    *,
    strategy: str | Strategy = "best",
    target: str | None = None,
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    capacity: Size | None = None,
    activations: str | None = None,
    cache: str | None = None,
    time_limit_s: float | None = None,
    seed: int | None = None,
) -> PlannedModel:
    """Plan the memory of a model: an offset for every tensor in one arena.

    Args:
        model: An ONNX or TFLite model, or a CSV of records.
        strategy: Places the tensors: a name that `arenite strategies` lists, or a strategy.
        target: Runtime whose memory is planned: `arenite`, `generic`, `tflm`, `litert`,
            `onnxruntime` or `c`; by default ours where it runs the model, else `generic`.
        order: Orders the operators: `best` by default, `given` for the model's own order.
        dims: Values of free dimensions by name, or ranges: `{"seq": "1..512"}`, with a step
            `"64..512:64"`. The plan then holds for all sizes of the range. A dimension may be a
            sum of others: `"past+seq"`.
        shapes: Shapes of inputs by name, ranges among them: `(1, 3, "32..1080", "32..1920")`.
        values: Inputs fixed at a value, by name.
        capacity: Most bytes that the arena may take; None for no limit.
        activations: Type that results and weights are stored as: `fp16` or `fp32`.
        cache: Type that caches of keys and values that grow are stored as: `fp16`, `int8` or
            `fp32`.
        time_limit_s: Seconds after which a search keeps its best result; None for no limit.
        seed: Seed of a strategy that draws random numbers.

    Raises:
        ModelError: The model cannot be read, or not for all sizes of a range.
        PlanError: There is no plan.
        UnknownStrategyError: There is no strategy or order of that name.
    """
    reading = _reading(
        dims, shapes, values, target=target, order=order, activations=activations, cache=cache,
        time_limit_s=time_limit_s,
    )  # fmt: skip
    return plan_model(
        Path(model),
        reading,
        strategy=_strategy(strategy, seed, time_limit_s),
        capacity=None if capacity is None else _bytes(capacity),
    )


def build(
    model: ModelPath,
    output: ModelPath,
    *,
    plan: ModelPath | None = None,
    strategy: str | Strategy = "best",
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    capacity: Size | None = None,
    weights: Size | None = None,
    code_weights: bool = False,
    activations: str | None = None,
    cache: str | None = None,
    whole: bool = False,
    time_limit_s: float | None = None,
) -> Built:
    """Build a model, its plan and its weights into one `.arena` file.

    The other arguments are those of `plan`.

    Args:
        output: The file to write.
        plan: A plan file to build by; by default a plan is made.
        weights: Most bytes of weights that are resident in a run, or a share such as `50%`; the
            others are streamed from the file. None for all.
        code_weights: Compress weights that share few values.
        whole: Run every step whole. By default steps that hand each other more than a cache holds
            run in bands of rows where that costs nothing.

    Raises:
        ModelError: The model cannot be read or run.
        PlanError: There is no plan.
        OutputError: The file cannot be written.
    """
    reading = _reading(
        dims, shapes, values, order=order, weights=weights, activations=activations, cache=cache,
        time_limit_s=time_limit_s,
    )  # fmt: skip
    if plan is not None:
        built = build_by_plan(Path(model), Path(plan), reading)
    else:
        built = build_model(
            Path(model),
            reading,
            strategy=_strategy(strategy, None, time_limit_s),
            capacity=None if capacity is None else _bytes(capacity),
            is_whole=whole,
        )
    built.write(Path(output), code_of() if code_weights else None)
    return built


def stream(
    model: ModelPath,
    output: ModelPath,
    *,
    axis: str,
    hop: int | str,
    rate: float | None = None,
    padding: str = "window",
    strategy: str | Strategy = "best",
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    capacity: Size | None = None,
    kernels: str = "quick",
    time_limit_s: float | None = None,
) -> StreamedModel:
    """Build a model over time into an `.arena` file whose runs take the rows of a hop.

    A session of it keeps the rows that the next run needs. Outputs are those of the window that
    ends at the hop, once a window has been read; of an output with an axis of time only the new
    rows are made. `Session.reset` begins a new stream. The other arguments are those of `build`.

    Args:
        axis: Input and axis of time, from 0, such as `frames:1`.
        hop: New rows at each run, or their time such as `20ms`.
        rate: Rows a second, for a time.
        padding: What padding along the axis belongs to: `window`, outputs are those of the model;
            `stream`, it is there once, at the start of the stream.
        kernels: Those of convolutions; with `direct` floats are those of whole windows to the bit.

    Raises:
        NotStreamedError: The model cannot run on that stream.
        ValueError: An argument is not of its form.
        ModelError: The model cannot be read or run.
        PlanError: There is no plan.
        OutputError: The file cannot be written.
    """
    reading = _reading(dims, shapes, values, order=order, time_limit_s=time_limit_s)
    hops = Hops(*axis_of(axis), hop_of(str(hop), rate), Padding(padding))
    found = stream_model(
        Path(model),
        replace(reading, hops=hops),
        strategy=_strategy(strategy, None, time_limit_s),
        capacity=None if capacity is None else _bytes(capacity),
        kernels=Kernels(kernels),
    )
    found.built.write(Path(output))
    return found


def fit(
    model: ModelPath,
    budget: Size | None = None,
    *,
    slowdown: float | None = None,
    policy: str | None = None,
    boundary: str = "include",
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    weights: Size | None = None,
    activations: str | None = None,
    cache: str | None = None,
    time_limit_s: float | None = None,
) -> FittedModel:
    """Fit a model into a budget of memory at the least predicted price in time.

    The other arguments are those of `plan` and `build`.

    Args:
        budget: Most bytes that the arena may take, or a share of the whole such as `50%`.
        weights: As for `build`; or `rest`: the budget then covers the arena and the resident
            weights, others are loaded in each run, and a share is one of both.
        slowdown: Most of the predicted time over that of the whole program, less 1: 0.1 for 10 %.
        policy: Policy that recomputes and spills in the place of bands of rows.
        boundary: `exclude` leaves inputs and outputs to the caller: the budget does not count
            them, and they lie in a memory of their own, `caller`.

    Raises:
        ModelError: The model cannot be read or run.
        UnmetBudgetError: The budget cannot be met.
        SlowdownError: The budget can be met, but takes too long.
        OptionsError: Neither a budget nor a slowdown is given.
    """
    if budget is None and slowdown is None:
        raise OptionsError("fit takes a budget or a slowdown; fit_frontier shows all sizes")
    reading = _reading(
        dims, shapes, values, boundary=boundary, order=order, weights=weights,
        activations=activations, cache=cache, time_limit_s=time_limit_s,
    )  # fmt: skip
    wanted = None if budget is None else Budget.parse(str(budget))
    if reading.weight_budget is not None and reading.weight_budget.is_rest:
        if wanted is None or slowdown is not None or policy is not None:
            raise OptionsError("weights='rest' takes a budget, and no slowdown and policy")
        return OneBudget(Path(model), reading).within(wanted)
    return fit_model(Fitting(Path(model), reading), wanted, slowdown=slowdown, policy=policy)


def fit_frontier(
    model: ModelPath,
    *,
    boundary: str = "include",
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    weights: Size | None = None,
    activations: str | None = None,
    cache: str | None = None,
    time_limit_s: float | None = None,
) -> FittedFrontier:
    """Return the time that each size of the arena costs, from the whole program to the least.

    Arguments and errors are those of `fit`.
    """
    reading = _reading(
        dims, shapes, values, boundary=boundary, order=order, weights=weights,
        activations=activations, cache=cache, time_limit_s=time_limit_s,
    )  # fmt: skip
    fitting = Fitting(Path(model), reading)
    return FittedFrontier(fitting, tuple(fitting.frontier()))


def compare(
    models: ModelPath | Iterable[ModelPath],
    *,
    strategies: Sequence[str] | None = None,
    target: str | None = None,
    order: str | None = None,
    dims: StatedDims | None = None,
    shapes: StatedShapes | None = None,
    values: Mapping[str, float] | None = None,
    bands: bool = True,
    sizes: Sequence[Sizes] = (),
    processes: int | None = None,
    time_limit_s: float = 5.0,
) -> Comparison:
    """Compare strategies on models; a model that cannot be read is among the failures.

    Several models are planned in processes of their own, so a script that compares them starts
    below `if __name__ == "__main__":`. The other arguments are those of `plan`; each model takes
    the names that it has.

    Args:
        models: Models, or folders of models.
        strategies: Names of strategies; all by default.
        bands: Also find the frontier of memory against time in bands of rows.
        sizes: Sizes of a range, `{"seq": 64}`, that get plans of their own beside the one for all;
            five along the range by default. `sizes` of a report has what each takes.
        processes: Most models that are planned at once; by default the number of processors.
        time_limit_s: Seconds after which each search keeps its best result.

    Raises:
        UnknownStrategyError: There is no strategy of that name.
        NoModelsError: A folder holds no model.
    """
    given = [models] if isinstance(models, Path | str) else models
    paths = list(find_model_files(map(Path, given)))
    reading = _reading(dims, shapes, values, target=target, order=order, time_limit_s=time_limit_s)
    wanted = {find(name).name for name in strategies or ()} or set(known())
    chosen = tuple(
        configured(each, time_limit_s=time_limit_s)
        for each in known().values()
        if each.name in wanted
    )
    tasks = [
        Task(path, each, chosen, with_bands=bands, sizes=tuple(sizes))
        for path, each in zip(paths, readings_of(reading, paths), strict=True)
    ]
    found = dict(compare_each(tasks, num_processes=processes))
    return Comparison(tuple(found[index] for index in sorted(found)))


def _reading(
    dims: StatedDims | None,
    shapes: StatedShapes | None,
    values: Mapping[str, float] | None,
    *,
    target: str | None = None,
    boundary: str = "include",
    order: str | None = None,
    weights: Size | None = None,
    activations: str | None = None,
    cache: str | None = None,
    time_limit_s: float | None = None,
) -> Reading:
    return Reading(
        *lengths_of(dims, shapes),
        values or {},
        Boundary(boundary),
        order_name=order,
        target=target,
        weight_budget=None if weights is None else WeightBudget.parse(str(weights)),
        activations=None if activations is None else Activations(activations),
        cache=None if cache is None else Caches(cache),
        limits=SearchLimits(time_limit_s),
    )


def _strategy(strategy: str | Strategy, seed: int | None, time_limit_s: float | None) -> Strategy:
    found = find(strategy) if isinstance(strategy, str) else strategy
    return configured(found, seed=seed, time_limit_s=time_limit_s)


def _bytes(size: Size) -> int:
    return size if isinstance(size, int) else parse_size(size)
