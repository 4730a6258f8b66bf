"""Lowest heights by trying every order, and the records live at each step by definition."""

from arenite.planner.placement.problem import Problem


def lowest_height(problem: Problem) -> int:
    """Return the height of a lowest plan.

    Take a lowest plan and place its movable records in the order of their offsets, each at
    the lowest aligned offset that those before it and the fixed ones leave. By induction
    none lies higher than in the plan: what it meets lay below it there and lies no higher
    now, or is fixed. So some order gives a lowest plan. Orders that are no lower than the
    best so far are cut short.
    """
    records = problem.records
    fixed = tuple(
        (index, record.offset) for index, record in enumerate(records) if record.offset is not None
    )
    ground = max((offset + records[index].size for index, offset in fixed), default=0)
    best = ground + sum(record.size + record.alignment for record in records)

    def extend(placed: tuple[tuple[int, int], ...], height: int) -> None:
        nonlocal best
        if height >= best:
            return
        left = set(range(len(records))) - {index for index, _ in placed}
        if not left:
            best = height
        for index in sorted(left):
            record = records[index]
            blocks = sorted(
                (offset, offset + records[other].size)
                for other, offset in placed
                if records[other].start < record.end and record.start < records[other].end
            )
            offset = 0
            for low, high in blocks:
                if low < offset + record.size and offset < high:
                    offset = -(-high // record.alignment) * record.alignment
            extend((*placed, (index, offset)), max(height, offset + record.size))

    extend(fixed, ground)
    return best if records else 0


def lowest_height_by_offsets(problem: Problem) -> int:
    """Return the height of a lowest plan of records with outlines, by trying every offset.

    The argument above does not hold for them: where two interlock, neither lies below.
    """
    records = problem.records
    cells = [
        {
            (stair.offset + byte, step)
            for stair in record.stairs
            for byte in range(stair.size)
            for step in range(stair.start, stair.end)
        }
        for record in records
    ]

    def fits(index: int, taken: frozenset[tuple[int, int]], height: int) -> bool:
        if index == len(records):
            return True
        record = records[index]
        for offset in range(0, height - record.size + 1, record.alignment):
            own = {(offset + byte, step) for byte, step in cells[index]}
            if not own & taken and fits(index + 1, taken | own, height):
                return True
        return False

    height = max((record.size for record in records), default=0)
    while not fits(0, frozenset(), height):
        height += 1
    return height


def profiles(problem: Problem) -> list[list[int]]:
    """Return the indices live at each step, largest first, equal sizes by index."""
    records = problem.records
    return [
        sorted(
            (i for i, record in enumerate(records) if record.start <= step < record.end),
            key=lambda i: -records[i].size,
        )
        for step in range(problem.num_steps)
    ]


def positional_maxima_of(problem: Problem) -> list[int]:
    """Return the largest of all sizes that come first in a profile, second, and so on."""
    sizes = [[problem.records[i].size for i in profile] for profile in profiles(problem)]
    ranks = range(max(map(len, sizes), default=0))
    return [max(ranked[rank] for ranked in sizes if rank < len(ranked)) for rank in ranks]
