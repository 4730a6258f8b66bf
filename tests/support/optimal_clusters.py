"""The exact optimum of k-means in one dimension, for small problems."""

import numpy as np


def least_squared_error(weights: np.ndarray, num_clusters: int) -> float:
    """Return the least sum of squared distances to so many means, by dynamic programming.

    Clusters of the optimum are runs of the sorted weights, so the last one begins somewhere and
    the rest is the optimum of what is before it.
    """
    ordered = np.sort(weights.astype(np.float64).reshape(-1))
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    squares = np.concatenate(([0.0], np.cumsum(ordered**2)))

    def error(begin: int, end: int) -> float:
        total = sums[end] - sums[begin]
        return max(0.0, float(squares[end] - squares[begin] - total * total / (end - begin)))

    count = ordered.size
    best = [0.0] + [float("inf")] * count
    for _ in range(num_clusters):
        best = [0.0] + [
            min(best[begin] + error(begin, end) for begin in range(end))
            for end in range(1, count + 1)
        ]
    return best[count]
