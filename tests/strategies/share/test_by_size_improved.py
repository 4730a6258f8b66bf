import math
from collections.abc import Sequence

from hypothesis import given

from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.strategies.share.best_fit import ObjectsBySize
from arenite.strategies.share.by_size_improved import ObjectsBySizeImproved
from support.brute_force import positional_maxima_of
from support.problems import problem_of, problems


@given(problem=problems(max_records=25))
def test_it_is_the_algorithm_written_out_record_by_record(problem: Problem) -> None:
    assert ObjectsBySizeImproved().assign(problem.records) == written_out(problem)


def test_a_record_takes_the_object_that_idles_least_before_it_not_the_tightest() -> None:
    problem = problem_of((9, 0, 2), (8, 0, 4), (7, 0, 1), (7, 5, 6))
    assert ObjectsBySizeImproved().assign(problem.records) == [0, 1, 2, 1]
    assert ObjectsBySize().assign(problem.records) == [0, 1, 2, 2]


def test_all_above_a_positional_maximum_come_before_any_below_it() -> None:
    # The maxima are 9 B and 7 B: 8 B follows 9 B though the 7 B before it come sooner.
    problem = problem_of((9, 0, 1), (7, 0, 1), (7, 2, 4), (8, 3, 5))
    assert ObjectsBySizeImproved().assign(problem.records) == [0, 1, 1, 0]


def written_out(problem: Problem) -> list[int]:
    """Return the assignment by the loop that TFLite's code amounts to."""
    records = problem.records
    maxima = positional_maxima_of(problem)
    stage = [sum(maximum >= record.size for maximum in maxima) for record in records]
    distances: list[list[float]] = [[] for _ in records]
    best: list[float] = [math.inf] * len(records)
    best_object = [-1] * len(records)
    assignment = [-1] * len(records)
    num_objects = 0
    for _ in records:
        left = [i for i in range(len(records)) if assignment[i] < 0]
        index = min(left, key=lambda i: (stage[i], best[i], -records[i].size, i))
        is_new = best[index] == math.inf
        chosen = num_objects if is_new else best_object[index]
        num_objects += is_new
        assignment[index] = chosen
        for i in left:
            if not is_new and distances[i][chosen] == math.inf:
                continue
            distance = distance_in_time(records, index, i)
            if is_new:
                distances[i].append(distance)
            elif distance == math.inf:
                distances[i][chosen] = math.inf
                if best_object[i] == chosen:
                    best[i] = min(distances[i])
                    best_object[i] = distances[i].index(best[i])
            else:
                distances[i][chosen] = min(distances[i][chosen], distance)
            if distance < best[i]:
                best[i], best_object[i] = distance, chosen
    return assignment


def distance_in_time(records: Sequence[UsageRecord], a: int, b: int) -> float:
    if records[a].meets(records[b]):
        return math.inf
    first, second = sorted((records[a], records[b]), key=lambda record: record.start)
    return second.start - first.end + 1
