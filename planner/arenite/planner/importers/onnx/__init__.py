"""ONNX: the format is known in this package and nowhere else."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.importers.onnx.binding import (
        bind,
        fixed_arrays,
        fixed_feeds,
        fixed_model,
        open_names,
        stated_name,
    )
    from arenite.planner.importers.onnx.external_data import MOST_BYTES, check_files, embed
    from arenite.planner.importers.onnx.file import load_model, normal_domain, opset_versions
    from arenite.planner.importers.onnx.inference import NodeChecker
    from arenite.planner.importers.onnx.node import Dialect, Origin
    from arenite.planner.importers.onnx.operator_models import operator_model
    from arenite.planner.importers.onnx.operators import FORMER_ATTRIBUTES, onnx_operator
    from arenite.planner.importers.onnx.order import constant_names, node_reads, subgraphs
    from arenite.planner.importers.onnx.reader import read_onnx
    from arenite.planner.importers.onnx.states import STATES_KEY, States, placed, take_states
    from arenite.planner.importers.onnx.types import (
        TensorType,
        numpy_dtype,
        write_dtype,
        write_type,
    )
    from arenite.planner.importers.onnx.values import Constants
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "FORMER_ATTRIBUTES", "MOST_BYTES", "STATES_KEY", "Constants", "Dialect", "NodeChecker",
    "Origin", "States", "TensorType", "bind", "check_files", "constant_names", "embed",
    "fixed_arrays", "fixed_feeds", "fixed_model", "load_model", "node_reads", "normal_domain",
    "numpy_dtype", "onnx_operator", "open_names", "operator_model", "opset_versions", "placed",
    "read_onnx", "stated_name", "subgraphs", "take_states", "write_dtype", "write_type",
]  # fmt: skip
