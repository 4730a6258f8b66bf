"""Sizes that are expressions of named dimensions.

A model for a range of sizes is imported once. Each of its lengths is then a `Size`: an integer,
the length where all dimensions have their highest value, that carries an expression. Arithmetic
with integers keeps it, so code that computes with lengths need not know of it; a plain integer is
the ordinary case. `int(size)`, numpy and floating point drop the expression.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.sizes.dimension import (
        MOST_POINTS,
        Dimension,
        Length,
        every_value,
        first_sizes,
        highest_sizes,
        length_text,
        lowest_sizes,
        read_lengths,
        require_inside,
    )
    from arenite.planner.sizes.expressions import Expression, Sizes, Tree
    from arenite.planner.sizes.ranges import Ranges, bounds
    from arenite.planner.sizes.size import (
        Size,
        at,
        depends,
        largest,
        same,
        same_lengths,
        smallest,
        with_sizes,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "MOST_POINTS", "Dimension", "Expression", "Length", "Ranges", "Size", "Sizes", "Tree", "at",
    "bounds", "depends", "every_value", "first_sizes", "highest_sizes", "largest", "length_text",
    "lowest_sizes", "read_lengths", "require_inside", "same", "same_lengths", "smallest",
    "with_sizes",
]  # fmt: skip
