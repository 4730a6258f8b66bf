"""Write a program as C source: a network without an interpreter, each tensor at its offset.

The kernels are C files under `kernels/`. What an exported model needs of them is copied into it.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.cexport.bands import has_kernel_by_rows
    from arenite.runtime.cexport.base.errors import FailedExportError, NotExportedError
    from arenite.runtime.cexport.base.layout import CMemory, Interface
    from arenite.runtime.cexport.base.options import COptions, Extension, Rounding, Vectors
    from arenite.runtime.cexport.base.text import component_name, identifier
    from arenite.runtime.cexport.compiled import CompiledForC, LoweredForC
    from arenite.runtime.cexport.export import CExport, export_c
    from arenite.runtime.cexport.folder import check_folder, write_folder
    from arenite.runtime.cexport.host_test import HostTest, run_on_host
    from arenite.runtime.cexport.kernels.costs import CYCLES_OF_DECODING
    from arenite.runtime.cexport.lowering import (
        Signed,
        is_unsigned,
        lower_for_c,
        lower_hybrid_for_runtime,
        signed,
    )
    from arenite.runtime.cexport.reference import rounds, vectors
    from arenite.runtime.cexport.steps.cmsis_nn_operators import for_cmsis_nn
    from arenite.runtime.cexport.steps.hybrid import QuantiseRows
    from arenite.runtime.cexport.windows import fetch_weights, windowed, with_windows
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "CYCLES_OF_DECODING", "CExport", "CMemory", "COptions", "CompiledForC", "Extension",
    "FailedExportError", "HostTest", "Interface", "LoweredForC", "NotExportedError",
    "QuantiseRows", "Rounding", "Signed", "Vectors", "check_folder", "component_name", "export_c",
    "fetch_weights", "for_cmsis_nn", "has_kernel_by_rows", "identifier", "is_unsigned",
    "lower_for_c", "lower_hybrid_for_runtime", "rounds", "run_on_host", "signed", "vectors",
    "windowed", "with_windows", "write_folder",
]  # fmt: skip
