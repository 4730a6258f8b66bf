"""Checkmate's integer program in OR-tools; needs `ortools`, and is imported when it is used."""

from typing import Any

from ortools.linear_solver import pywraplp

from arenite.strategies.schedules.work import Work


class Model:
    """Steps computed (R), tensors kept (S) and freed (F) in every stage, within a limit.

    Source: Jain et al. 2020, arXiv 1910.02653, equations 1 to 9.
    """

    def __init__(self, work: Work, limit: int, chosen: frozenset[int]) -> None:
        self._work = work
        self._limit = limit
        num_steps = work.num_steps
        self._sizes = [
            sum(work.sizes[each] for each in its if each in chosen and work.makers[each] == step)
            for step, its in enumerate(work.writes)
        ]
        self._before = [
            sorted(
                {work.makers[each] for each in its if each in chosen and work.makers[each] < step}
            )
            for step, its in enumerate(work.reads)
        ]
        self._after: list[list[int]] = [[] for _ in range(num_steps)]
        for step, before in enumerate(self._before):
            for each in before:
                self._after[each].append(step)
        last = {each: step for step, its in enumerate(work.reads) for each in its}
        self._lasting = [0] * num_steps
        for storage, size in enumerate(work.sizes):
            if storage not in chosen:
                first = max(0, work.makers[storage])
                end = num_steps - 1 if work.is_kept[storage] else last.get(storage, first)
                for stage in range(first, end + 1):
                    self._lasting[stage] += size

    def relaxed(self) -> dict[tuple[int, int], float] | None:
        """Return the tensors that the relaxation keeps; None if the limit cannot be met."""
        return self._solve(pywraplp.Solver.CreateSolver("GLOP"))

    def exact(self, most_nodes: int) -> dict[tuple[int, int], float] | None:
        """Return the tensors that the best schedule keeps; None if none is found in time."""
        solver = pywraplp.Solver.CreateSolver("SCIP")
        solver.SetSolverSpecificParametersAsString(f"limits/nodes = {most_nodes}")
        return self._solve(solver)

    def _solve(self, solver: Any) -> dict[tuple[int, int], float] | None:
        work, num_steps = self._work, self._work.num_steps
        computed, kept = {}, {}
        for stage in range(num_steps):
            for step in range(stage + 1):
                computed[stage, step] = solver.IntVar(0, 1, "")
            for step in range(stage):
                kept[stage, step] = solver.IntVar(0, 1, "")
        total = sum(work.seconds) or 1.0
        solver.Minimize(
            solver.Sum([work.seconds[step] / total * var for (_, step), var in computed.items()])
        )
        for stage in range(num_steps):
            solver.Add(computed[stage, stage] == 1)
            for step in range(stage):
                earlier = computed[stage - 1, step]
                if step < stage - 1:
                    earlier = earlier + kept[stage - 1, step]
                solver.Add(kept[stage, step] <= earlier)
                if not work.may_repeat[step] or work.closed_by[step] <= stage:
                    solver.Add(computed[stage, step] == 0)
            for step in range(stage + 1):
                for before in self._before[step]:
                    solver.Add(
                        computed[stage, step] <= computed[stage, before] + kept[stage, before]
                    )
            self._limit_memory(solver, computed, kept, stage)
        if solver.Solve() not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            return None
        return {place: float(var.solution_value()) for place, var in kept.items()}

    def _limit_memory(self, solver: Any, computed: Any, kept: Any, stage: int) -> None:
        work = self._work
        scale = 1 / self._limit
        used = solver.Sum([self._sizes[i] * scale * kept[stage, i] for i in range(stage)])
        used += self._lasting[stage] * scale
        for step in range(stage + 1):
            load = solver.NumVar(0, 1 - work.scratch[step] * scale, "")
            solver.Add(load == used + self._sizes[step] * scale * computed[stage, step])
            freed = []
            for each in (*self._before[step], step):
                free = solver.IntVar(0, 1, "")
                later = [after for after in self._after[each] if step < after <= stage]
                hazards = 1 - computed[stage, step]
                hazards += solver.Sum([computed[stage, after] for after in later])
                if stage + 1 < work.num_steps:
                    hazards += kept[stage + 1, each]
                most = 2 + len(later)
                solver.Add(1 - free <= hazards)
                solver.Add(hazards <= most * (1 - free))
                freed.append(self._sizes[each] * scale * free)
            used = load - solver.Sum(freed)
