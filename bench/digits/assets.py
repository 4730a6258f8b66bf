"""The networks as files: dense, compressed, and compressed with the weights restored."""

import json
from collections.abc import Mapping
from pathlib import Path

from arenite.compression import unpack, with_constants
from arenite.planner.files import write_atomically
from digits.data import num_wrong
from digits.networks import num_bytes
from digits.recipes import DigitsRecipe, first_fold


def write_assets(folder: Path, recipes: Mapping[str, DigitsRecipe]) -> None:
    """Write three files for each network, and `digits.json` with their sizes and errors.

    They are those of the first fold that each is measured on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = {}
    for network, recipe in recipes.items():
        split, dense, compressed = first_fold(recipe)
        name = f"digits-{network}"
        restored = with_constants(dense, unpack(compressed.container))
        for file, model in ((f"{name}.onnx", dense), (f"{name}-compressed.onnx", restored)):
            write_atomically(folder / file, model.SerializeToString())
        write_atomically(folder / f"{name}.weights", compressed.container)
        facts[name] = {
            "seed": recipe.seeds[0],
            "num_held_out": len(split.held_out["labels"]),
            "num_wrong_dense": num_wrong(dense, split.held_out),
            "num_wrong_compressed": num_wrong(compressed.model, split.held_out),
            "dense_bytes": num_bytes(dense),
            "container_bytes": len(compressed.container),
        }
    write_atomically(folder / "digits.json", (json.dumps(facts, indent=2) + "\n").encode())
