"""The optimised graph, its nodes in an order that is the same in every process.

ONNX Runtime's optimiser keeps nodes in tables sorted by address, so the nodes that it adds
come in another order in every process, and with them a run's allocations. So the optimiser
runs once, into a file; there we sort the nodes by what they read alone, and the session is
made of that file without optimising again.

ONNX Runtime sorts once more, depth first from the nodes without readers; of two it takes
the later in the file first. A file that names the nodes from the last to the first is
therefore run as we want it. Subgraphs have to stand in an order that can run; there the node
to be taken first comes as late as it may.
"""

import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arenite.planner.errors import UnsupportedModelError, needing
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime.targets.onnxruntime.library import (
    ALL_OPTIMISATIONS,
    HostedSession,
    Library,
    StatusError,
    value_names,
)

if TYPE_CHECKING:
    import onnx

_OPTIMISED: Final = "optimised.onnx"
_CONFIG: Final = {
    b"session.disable_prepacking": b"1",
    b"session.optimized_model_external_initializers_file_name": b"weights",
    b"session.optimized_model_external_initializers_min_size_in_bytes": b"1024",
}
"""Nothing is to run, and weights that the orders share are written once and then mapped."""


class SettledModel:
    """An optimised model in one or two orders.

    Attributes:
        files: One for each order, the first that of the longest branches first, the second
            the other way round. Empty if ONNX Runtime cannot optimise into a file.

    Args:
        library: ONNX Runtime's.
        model: The model file, or its bytes.

    Raises:
        MissingDependencyError: The package onnx is absent.
    """

    def __init__(self, library: Library, model: Path | bytes) -> None:
        with needing("onnx", "onnx", "running a model in ONNX Runtime"):
            import onnx
        folder = Path(tempfile.mkdtemp(prefix="arenite-onnxruntime-"))
        self.close = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.files: Sequence[Path] = ()
        try:
            inputs = _optimise(library, model, folder / _OPTIMISED)
        except StatusError:
            return  # a session of the model itself reports the error
        optimised = onnx.load(folder / _OPTIMISED, load_external_data=False)
        drop_unfed_inputs(optimised.graph, inputs)
        written: dict[bytes, Path] = {}
        for name, deepest_first in (("deep", True), ("shallow", False)):
            settle(optimised.graph, deepest_first=deepest_first)
            written.setdefault(
                optimised.SerializeToString(deterministic=True), folder / f"{name}.onnx"
            )
        for data, path in written.items():
            path.write_bytes(data)
        self.files = tuple(written.values())


def settle(graph: "onnx.GraphProto", *, deepest_first: bool, is_inner: bool = False) -> None:
    """Sort the nodes, and those of subgraphs, so that a session runs them in a known order.

    They run depth first from those without readers, in the order of the outputs.

    Args:
        graph: The graph; its order and the names of its tensors do not matter.
        deepest_first: Of what a node reads, make that first which most nodes in a row lead
            to; else last. Ties go by the place among the operands.
        is_inner: It is a subgraph.

    Cost: O(n log n) for n operands.
    """
    from arenite.planner.importers.onnx import node_reads, subgraphs

    nodes = list(graph.node)
    for node in nodes:
        for subgraph in subgraphs(node):
            settle(subgraph, deepest_first=deepest_first, is_inner=True)
    writers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    sources = [
        list(dict.fromkeys(writers[name] for name in node_reads(node) if name in writers))
        for node in nodes
    ]
    read = {index for each in sources for index in each}
    ends = dict.fromkeys(writers[o.name] for o in graph.output if o.name in writers)
    roots = [index for index in ends if index not in read]
    # A node that reaches no output has no say: it runs last, as it stands in the file.
    roots += [index for index in range(len(nodes)) if index not in read and index not in ends]
    depths: dict[int, int] = {}
    for index in _postorder(roots, sources):
        depths[index] = 1 + max((depths[each] for each in sources[index]), default=0)
    sign = -1 if deepest_first else 1
    wanted = [sorted(each, key=lambda index: sign * depths[index]) for each in sources]
    if is_inner:
        order = _postorder(roots[::-1], [each[::-1] for each in wanted])
    else:
        order = reversed(list(_postorder(roots, wanted)))
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)


def _postorder(roots: Sequence[int], sources: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield each node after its sources, those of the first root first."""
    entered: set[int] = set()
    pending = [(index, False) for index in reversed(roots)]
    while pending:
        index, is_left = pending.pop()
        if is_left:
            yield index
        elif index not in entered:
            entered.add(index)
            pending.append((index, True))
            pending += [(each, False) for each in reversed(sources[index]) if each not in entered]


def drop_unfed_inputs(graph: "onnx.GraphProto", names: Collection[str]) -> None:
    """Drop unused inputs, which weights that were folded away leave behind."""
    needed = {*names, *(weight.name for weight in graph.initializer)}
    kept = [value for value in graph.input if value.name in needed]
    del graph.input[:]
    graph.input.extend(kept)


def _optimise(library: Library, model: Path | bytes, destination: Path) -> Sequence[str]:
    """Write the optimised model and return the names of its inputs.

    Raises:
        StatusError: ONNX Runtime refuses the model, or cannot write it.
    """
    options = library.made("CreateSessionOptions")
    try:
        library.call("SetSessionLogSeverityLevel", options, FATAL)
        library.call("SetSessionGraphOptimizationLevel", options, ALL_OPTIMISATIONS)
        library.call("SetIntraOpNumThreads", options, 1)
        library.call("DisableCpuMemArena", options)
        library.call("SetOptimizedModelFilePath", options, os.fsencode(destination))
        for key, value in _CONFIG.items():
            library.call("AddSessionConfigEntry", options, key, value)
        session = library.created(model, options)
        try:
            return value_names(library, session, "Input")
        finally:
            library.release("ReleaseSession", session)
    finally:
        library.release("ReleaseSessionOptions", options)


_log = logging.getLogger(__name__)


class HostedOrders:
    """The orders of a model, each of which runs alike in every process.

    Where ONNX Runtime cannot write the optimised model there is one order,
    its own; a plan for that may not hold in another process.

    Args:
        library: ONNX Runtime's.
        model: The model file, or its bytes.
        optimise: Let ONNX Runtime rewrite the graph, as it does by default.
        num_threads: Number of threads of the kernels.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model.
        UnexpectedRuntimeError: The library cannot serve a planned session.
        MissingDependencyError: The package onnx is absent.
    """

    def __init__(
        self, library: Library, model: Path | bytes, *, optimise: bool, num_threads: int
    ) -> None:
        self._library = library
        self._model = model
        self._optimise = optimise
        self._num_threads = num_threads
        self._settled = SettledModel(library, model) if optimise else None
        self._first: HostedSession | None = self._opened_first()

    def __len__(self) -> int:
        return max(1, len(self._settled.files)) if self._settled else 1

    def session(self, index: int) -> HostedSession:
        """Return a session that runs the nodes in an order; two at once are never kept here."""
        first, self._first = self._first, None
        if index == 0 and first is not None:
            return first
        return self._opened(index)

    def close(self) -> None:
        """Give back the disk space; no further sessions can be made, those made live on."""
        if self._settled is not None:
            self._settled.close()

    def _opened_first(self) -> HostedSession:
        try:
            return self._opened(0)
        except UnsupportedModelError as error:
            if self._settled is None:
                raise
            self._settled = None
            session = self._opened(0)
            _log.warning("a plan may not hold in another process: %s", error)
            return session

    def _opened(self, index: int) -> HostedSession:
        files = self._settled.files if self._settled is not None else ()
        return HostedSession(
            self._library,
            files[index] if files else self._model,
            optimise=self._optimise and not files,
            num_threads=self._num_threads,
            origin=self._model,
        )
