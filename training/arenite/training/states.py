"""How a file says that its weights are states.

Each state is an input of the graph that an output replaces for the next run. The file's metadata
name the pairs, so that it stays a plain model for runtimes that know nothing of states: they are
fed the inputs and hand back the outputs. An initialiser of the input's name is the value that the
state starts with; a state without one starts as zeros.
"""

import json
from collections.abc import Mapping
from typing import Final

import onnx

TRAINING_KEY: Final = "arenite.training"
"""Key of the metadata that say what a step trains: JSON of the loss, the optimiser and so on."""


def state_metadata(model: onnx.ModelProto, pairs: Mapping[str, str]) -> None:
    """Write the pairs into a model's metadata: input by input, the output that replaces it."""
    from arenite.planner.importers.onnx import STATES_KEY

    entry = model.metadata_props.add()
    entry.key, entry.value = STATES_KEY, json.dumps(pairs)


def training_metadata(model: onnx.ModelProto, facts: Mapping[str, object]) -> None:
    """Write what the step trains into its metadata."""
    entry = model.metadata_props.add()
    entry.key, entry.value = TRAINING_KEY, json.dumps(facts)
