"""Normalisations by statistics that are computed in the run."""

import math
from collections.abc import Sequence

from arenite.training.expansions.call import Call, NotExpandedError
from arenite.training.graph import Value
from arenite.training.rules.normalisation import WITH_BATCH_STATISTICS


def layer_normalization(call: Call) -> Sequence[Value | None]:
    """LayerNormalization: over the last axes."""
    source = call.input(0)
    axis = int(call.node.attributes.get("axis", -1)) % source.rank
    found = _normalised(call, list(range(axis, source.rank)))
    found = call.graph.times(found, call.input(1))
    bias = call.optional(2)
    return [found if bias is None else call.graph.plus(found, bias)]


def instance_normalization(call: Call) -> Sequence[Value | None]:
    """InstanceNormalization: over the pixels of each channel of each image."""
    source, graph = call.input(0), call.graph
    found = _normalised(call, list(range(2, source.rank)))
    wide = (source.shape[1], *[1] * (source.rank - 2))
    scale, bias = (graph.reshape(call.input(position), wide) for position in (1, 2))
    return [graph.plus(graph.times(found, scale), bias)]


def _normalised(call: Call, axes: list[int]) -> Value:
    graph, source = call.graph, call.input(0)
    epsilon = float(call.node.attributes.get("epsilon", 1e-5))
    centred = graph.minus(source, graph.mean(source, axes))
    variance = graph.mean(graph.times(centred, centred), axes)
    root = graph.unary("Sqrt", graph.plus(variance, graph.scalar(epsilon, source)))
    return graph.over(centred, root)


def gelu(call: Call) -> Sequence[Value | None]:
    """Gelu by its error function."""
    if str(call.node.attributes.get("approximate", "none")) != "none":
        raise NotExpandedError("it is approximated by a Tanh")
    graph, source = call.graph, call.input(0)
    bell = graph.unary("Erf", graph.scaled(source, 1 / math.sqrt(2)))
    half = graph.scaled(graph.plus(bell, graph.scalar(1, source)), 0.5)
    return [graph.times(source, half)]


def batch_normalization(call: Call) -> tuple[Value, Value, Value]:
    """Write a BatchNormalization by the statistics of its batch, and return those too.

    The ordinary operator normalises; only its mean and variance are made in the run.
    """
    graph, source = call.graph, call.input(0)
    axes = [axis for axis in range(source.rank) if axis != 1]
    wide = graph.mean(source, axes)
    centred = graph.minus(source, wide)
    spread = graph.mean(graph.times(centred, centred), axes)
    mean, variance = (graph.reshape(each, (source.shape[1],)) for each in (wide, spread))
    attributes = {
        name: value
        for name, value in call.node.attributes.items()
        if name in ("epsilon", "momentum")
    }
    (result,) = graph.nodes_outputs(
        "BatchNormalization",
        [source, call.input(1), call.input(2), mean, variance],
        [(source.dtype, source.shape)],
        WITH_BATCH_STATISTICS,
        **attributes,
    )
    return result, mean, variance
