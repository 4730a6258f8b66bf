"""The records of a model as TensorFlow Lite Micro places them in its arena's head.

Sizes and offsets are multiples of 16. A graph input ends at its last use and may be
overwritten then, an output lives to the end, and variables are left out: they lie in the
arena's tail. The scratch of kernels is in no file; it is measured with the
interpreter (`arenite.runtime.targets.tflm.measure`).

The plan has the tensors of all subgraphs, one subgraph behind the other. Resource variables lie in
the tail, and so do their handles: `VAR_HANDLE` points its output there when it is prepared.

Source: tflite-micro, docs/memory_management.md, and pull request 1195 for several subgraphs.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from arenite.planner import Plan, Problem, Program, Step, TensorKind, liveness, verify
from arenite.planner.errors import UnsupportedModelError, about_file
from arenite.planner.files import read_model
from arenite.planner.importers.tflite import read_tflite_model
from arenite.planner.operators import Imported
from arenite.runtime.targets.tflm.model_file import ModelFile

ALIGNMENT: Final = 16
LEFT_TO_INTERPRETER: Final = -1
_MAX_OFFSET: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TflmModel:
    """A model and its file.

    Attributes:
        path: The file.
        program: Its subgraphs, unfolded; tensors may share storage.
        tensor_indexes: Number in the plan of each tensor.
        operators: For each step that is an operator of the file its subgraph and index there.
        file: Contents of the file.
    """

    path: Path
    program: Program
    tensor_indexes: Mapping[str, int]
    operators: Mapping[str, tuple[int, int]]
    file: ModelFile

    def problem(self, scratch: Mapping[str, int] | None = None) -> Problem:
        """Return the records to place.

        Args:
            scratch: Bytes that kernels ask for while they run, by step name.
        """
        program = self.with_scratch(scratch or {})
        problem = liveness(program, alignment=ALIGNMENT)
        in_head = tuple(
            record
            for record in problem.records
            if record.name not in program.tensors
            or program.tensors[record.name].kind is not TensorKind.STATE
        )
        return replace(problem, records=in_head)

    def with_scratch(self, scratch: Mapping[str, int]) -> Program:
        """Return the program, its steps asking for so many bytes of scratch, by their names."""
        steps = tuple(_with_scratch(s, scratch.get(s.name, 0)) for s in self.program.steps)
        return replace(self.program, steps=steps)

    def offsets(self, problem: Problem, plan: Plan) -> tuple[int, ...]:
        """Return the plan as the interpreter reads it: one offset for each tensor.

        Constants and variables are left to the interpreter. Unused tensors lie at 0: it
        reserves bytes for them all the same, side by side if they are not planned.

        Raises:
            InvalidPlanError: The plan is wrong; the interpreter would not notice.
            UnsupportedModelError: An offset is beyond the format.
        """
        verify(problem, plan)
        places = {
            tensor: offset + self.program.root(tensor)[1]
            for record, offset in zip(problem.records, plan.offsets, strict=True)
            for tensor in record.tensors
        }
        return self.numbered(places, plan.height)

    def numbered(self, places: Mapping[str, int], height: int) -> tuple[int, ...]:
        """Return such offsets.

        Args:
            places: The offset of each planned tensor, by name.
            height: Bytes of the plan.

        Raises:
            UnsupportedModelError: An offset is beyond the format.
        """
        if height > _MAX_OFFSET:
            raise UnsupportedModelError(
                self.program.name,
                f"height {height} B exceeds {_MAX_OFFSET} B, the limit of the plan format",
                path=self.path,
            )
        result = [0] * self.file.num_tensors
        for tensor, index in self.tensor_indexes.items():
            result[index] = places.get(tensor, LEFT_TO_INTERPRETER)
        return tuple(result)


def read_tflm_model(path: Path) -> TflmModel:
    """Return the model.

    Raises:
        ModelError: It is damaged or cannot be planned.
        MissingDependencyError: A package to read it is absent.
    """
    model = read_tflite_model(path)
    with about_file(path):
        file = ModelFile(read_model(path))
        indexes = {name: file.number(*place) for name, place in model.locations.items()}
        twice = [name for name, count in Counter(indexes.values()).items() if count > 1]
        if twice:
            name = next(name for name, index in indexes.items() if index == twice[0])
            raise UnsupportedModelError(
                name, "its subgraph is called by two operators, supported: one"
            )
        return TflmModel(path, model.program, indexes, model.operators, file)


def tflm_problem(path: Path) -> Problem:
    """Return the records of the head of TensorFlow Lite Micro's arena, without kernel scratch.

    Raises:
        ModelError: The model is damaged or cannot be planned.
        MissingDependencyError: A package to read it is absent.
    """
    return read_tflm_model(path).problem()


def _with_scratch(step: Step, scratch: int) -> Step:
    assert isinstance(step.operator, Imported)
    return replace(step, operator=replace(step.operator, reserve=scratch))
