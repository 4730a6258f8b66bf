"""Networks on scikit-learn's digits, compressed, beside their dense selves and small dense ones.

    python bench/digits_compression.py [--json] [--quick | --write-assets FOLDER] [NETWORK ...]

Each fold trains a dense network, compresses it with its own dense self as teacher, and trains a
small dense network of about as many bytes with the same teacher, rounded to int8. Errors are
those on the tenth of the digits that was held out. All bytes of the container count: weights,
codebooks, biases, names and shapes. Exits with 1 if a network is less than 35 times smaller on the
mean of the folds, or if the 95 % interval of the mean difference reaches a loss of 0.3 points.

The recipes are in `digits/comparison.py`.
"""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from harness import bench, emit, note, parser


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a compressed network is not what it must be."""
    from arenite.compression import weights_of
    from digits.assets import write_assets
    from digits.comparison import RECIPES, folds, rows, shown
    from digits.layers import layer_table, layers_of
    from digits.recipes import first_fold

    options = parser(__doc__)
    options.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(RECIPES))
    options.add_argument("--quick", action="store_true", help="an epoch of each kind, two folds")
    options.add_argument("--write-assets", type=Path, metavar="FOLDER")
    parsed = options.parse_args(arguments)
    if unknown := set(parsed.networks) - RECIPES.keys():
        options.error(f"no network is called {', '.join(sorted(unknown))}")
    recipes = {name: RECIPES[name] for name in parsed.networks or RECIPES}
    if parsed.quick:
        recipes = {name: each.shortened() for name, each in recipes.items()}
    if parsed.write_assets:
        write_assets(parsed.write_assets, recipes)
        return 0
    found = []
    for network, recipe in recipes.items():
        measured = []
        for fold in islice(folds(recipe), 2 if parsed.quick else None):
            measured.append(fold)
            note(f"{network}: fold {len(measured)}")
        found += rows(network, measured)
    layers = []
    if not parsed.json:
        for network, recipe in recipes.items():
            weights = weights_of(first_fold(recipe)[2].model)
            layers.append(layer_table(f"{network}, first fold", layers_of(weights)))
    emit(parsed, found, shown(found), *layers)
    return int(not all(row.holds for row in found if row.variant == "compressed"))


if __name__ == "__main__":
    sys.exit(main())
