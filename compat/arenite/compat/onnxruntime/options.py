"""Options of sessions and runs; those that Arenite has no use for are kept and ignored."""

import logging
from enum import IntEnum
from typing import NoReturn

from arenite.compat.onnxruntime.capi.onnxruntime_pybind11_state import (
    NotImplemented as Unsupported,
)

_log = logging.getLogger(__name__)


class GraphOptimizationLevel(IntEnum):
    """Accepted; Arenite always optimises."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted; steps run in sequence."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """Accepted; Arenite orders the steps by the memory that they take."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Entries:
    """Settings by name."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._entries: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{self._owner} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions:
    """Options of a session: `intra_op_num_threads` and free dimensions have an effect."""

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries = _Entries("SessionOptions")
        self._lengths: dict[str, int] = {}

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Fix a free dimension."""
        self._lengths[dim_name] = int(dim_value)

    @property
    def fixed_lengths(self) -> dict[str, int]:
        """Lengths of the free dimensions that are fixed, by name."""
        return dict(self._lengths)

    def add_session_config_entry(self, config_key: str, config_value: str) -> None:
        """Keep a setting; it has no effect."""
        self._entries.set(config_key, config_value)

    def get_session_config_entry(self, config_key: str) -> str:
        """Return a setting that was kept.

        Raises:
            RuntimeError: There is none of that name.
        """
        return self._entries.get(config_key)

    def add_provider(self, provider: str, provider_options: dict[str, str]) -> None:
        """Note an execution provider; steps run on the CPU."""
        if provider != "CPUExecutionProvider":
            _log.warning("%s is not available; the model runs on the CPU", provider)

    def has_providers(self) -> bool:
        """Tell that none was added."""
        return False

    def register_custom_ops_library(self, library_path: str) -> NoReturn:
        """Refuse a library of operators."""
        self._refuse(f"register_custom_ops_library({library_path!r})")

    def add_initializer(self, name: str, ortvalue: object) -> NoReturn:
        """Refuse an initialiser from outside of the model."""
        self._refuse(f"add_initializer({name!r})")

    def add_external_initializers(self, names: object, values: object) -> NoReturn:
        """Refuse initialisers from outside of the model."""
        self._refuse("add_external_initializers")

    def add_external_initializers_from_files_in_memory(self, *_: object) -> NoReturn:
        """Refuse initialisers from outside of the model."""
        self._refuse("add_external_initializers_from_files_in_memory")

    def add_free_dimension_override_by_denotation(
        self, dim_denotation: str, dim_value: int
    ) -> NoReturn:
        """Refuse a length by denotation."""
        self._refuse("add_free_dimension_override_by_denotation")

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"SessionOptions.{what} is unsupported by Arenite")


class RunOptions:
    """Options of a run; none has an effect."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries = _Entries("RunOptions")

    def add_run_config_entry(self, config_key: str, config_value: str) -> None:
        """Keep a setting; it has no effect."""
        self._entries.set(config_key, config_value)

    def get_run_config_entry(self, config_key: str) -> str:
        """Return a setting that was kept.

        Raises:
            RuntimeError: There is none of that name.
        """
        return self._entries.get(config_key)
