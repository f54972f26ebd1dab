"""Estimates of a log ratio and of a difference of rates with their standard errors, defined wherever counts are.

For multiplicity over a joint bootstrap: the statistic of a sample and of its replicates must be the same function, and
finite at 0 and at all successes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Estimates", "log_ratio", "rate_difference", "smoothed_variance"]

Floats = npt.NDArray[np.float64]


class Estimates(NamedTuple):
    """Estimates and their standard errors, arrays of one shape."""

    value: Floats
    standard_error: Floats


@np.errstate(divide="ignore", invalid="ignore")
def log_ratio(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Estimates:
    """Log of the ratio of two rates with Katz's standard error; NaN where a denominator is 0.

    1/2 is added to counts and rows where the formula would give nothing (Walter 1975): no success on a side, or nothing
    but successes on both.

    Parameters
    ----------
    x1, n1, x2, n2 : ndarray of one shape (or broadcasting)
        Successes and rows of a group, and of the one compared with.

    Examples
    --------
    >>> import numpy as np
    >>> value, error = log_ratio(*map(np.array, ([50.0], [100.0], [50.0], [100.0])))
    >>> print(f"{value[0]:.4f} {error[0] ** 2:.4f}")  # 1/50 - 1/100 + 1/50 - 1/100
    0.0000 0.0200
    """
    silent = (x1 == 0) | (x2 == 0) | ((x1 == n1) & (x2 == n2))
    if silent.any():
        added = np.where(silent & (n1 > 0) & (n2 > 0), 0.5, 0.0)
        x1, n1, x2, n2 = x1 + added, n1 + added, x2 + added, n2 + added
    return Estimates(np.log(x1 * n2 / (n1 * x2)), np.sqrt(1 / x1 - 1 / n1 + 1 / x2 - 1 / n2))


@np.errstate(divide="ignore", invalid="ignore")
def rate_difference(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Estimates:
    """Difference of two rates with a standard error that is above 0 at 0 and at all successes; NaN where there are no rows.

    The variance is that of rates with half a success and half a failure added.

    Parameters
    ----------
    x1, n1, x2, n2 : ndarray of one shape (or broadcasting)
        Successes and rows of a group, and of the one compared with.

    Examples
    --------
    >>> import numpy as np
    >>> value, error = rate_difference(*map(np.array, ([0.0], [9.0], [0.0], [9.0])))
    >>> print(f"{value[0]:.4f} {error[0] ** 2:.6f}")  # 2 (0.05 x 0.95) / 9
    0.0000 0.010556
    """
    return Estimates(x1 / n1 - x2 / n2, np.sqrt(smoothed_variance(x1, n1) + smoothed_variance(x2, n2)))


def smoothed_variance(x: Floats, n: Floats) -> Floats:
    """Return the variance of a rate with half a success and half a failure added."""
    variance, size = x + 0.5, n + 1
    variance *= size - variance
    size *= size  # in place: memory costs as much as the arithmetic
    size *= n
    variance /= size
    return variance
