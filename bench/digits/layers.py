"""Statistics of compressed layers, as in the tables of Deep Compression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from arenite.compression import pack
from harness.tables import table


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, its bias aside.

    Attributes:
        name: Of the layer.
        num_weights: How many it has.
        kept: Share of them that are not zero.
        bits: Of an index without coding, that of zero included where there are zeros.
        entropy_bits: Of the values of those that are kept.
        size: Bytes in the container.
    """

    name: str
    num_weights: int
    kept: float
    bits: int
    entropy_bits: float
    size: int

    @property
    def rate(self) -> float:
        """Bytes in the container to those as 32-bit floats."""
        return self.size / (4 * self.num_weights)


def layers_of(weights: Mapping[str, NDArray[np.float32]]) -> list[Layer]:
    """Return the layers of compressed weights; biases count as layers."""
    return [_layer(name, each) for name, each in weights.items()]


def _layer(name: str, weights: NDArray[np.float32]) -> Layer:
    _, counts = np.unique(weights[weights != 0], return_counts=True)
    shares = counts / counts.sum()
    return Layer(
        name,
        weights.size,
        float(np.count_nonzero(weights) / weights.size),
        max(1, (np.unique(weights).size - 1).bit_length()),
        float(-(shares * np.log2(shares)).sum()),
        len(pack({name: weights})) - len(pack({})),
    )


def layer_table(title: str, layers: Sequence[Layer]) -> Table:
    """Return the layers for people, with their totals."""
    count, size = sum(each.num_weights for each in layers), sum(each.size for each in layers)
    kept = sum(each.kept * each.num_weights for each in layers) / count
    rows = [
        (
            each.name, f"{each.num_weights:,}", f"{each.kept:.1%}", str(each.bits),
            f"{each.entropy_bits:.2f}", f"{each.size:,}", f"{each.rate:.2%}",
        )
        for each in layers
    ]  # fmt: skip
    return table(
        title,
        ("layer", "weights", "kept", "bits", "entropy", "bytes", "rate"),
        rows,
        footer=(
            "all", f"{count:,}", f"{kept:.1%}", "", "", f"{size:,}", f"{size / (4 * count):.2%}",
        ),
    )  # fmt: skip
