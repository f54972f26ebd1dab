"""Intervals and tests of estimates that are correlated, as rates of groups in the same clusters are.

Variances and covariances come in as numbers: from a survey design, by linearisation or from replicates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, stdtr

from sklearn_ethiclens.inference._intervals import Bounds, FloatArray

__all__ = ["WaldTestResult", "mover_interval", "satterthwaite", "t_test", "wald_f_test"]

_SINGULAR = 1e-10


class WaldTestResult(NamedTuple):
    """F statistic, its two degrees of freedom, and p-value."""

    statistic: float
    dof: int
    dof_denominator: float
    pvalue: float


def mover_interval(
    coefficients: npt.ArrayLike, estimates: npt.ArrayLike, bounds: Bounds, correlation: npt.ArrayLike
) -> Bounds:
    """Interval for a sum of correlated estimates times coefficients, from their own intervals.

    Distances from the estimates to the ends of their intervals stand for standard errors, on each side of the sum those
    that lead there.

    Parameters
    ----------
    coefficients : array-like of shape (k,)
        1 and -1 for a difference, 1/2 each for a mean.
    estimates : array-like of shape (k, ...)
    bounds : Bounds of arrays of shape (k, ...)
        Their intervals, of one confidence level.
    correlation : array-like of shape (k, k, ...)
        Of the estimates; 1 on the diagonal.

    Returns
    -------
    Bounds
        Arrays of shape (...); NaN where an interval is.

    References
    ----------
    Zou and Donner (2008), Statistics in Medicine 27:1693-1702.

    Examples
    --------
    Distances 3 below and 4 above: without correlation 5 in all, with a correlation of 1 they are taken off each other.

    >>> ends = Bounds(np.array([7.0, 2.0]), np.array([13.0, 9.0]))
    >>> for r in (0.0, 1.0):
    ...     low, high = mover_interval([1, -1], [10.0, 5.0], ends, [[1, r], [r, 1]])
    ...     print(f"{low:.1f} {high:.1f}")
    0.0 9.2
    4.0 5.0
    """
    c = np.asarray(coefficients, dtype=np.float64)
    theta, r = np.asarray(estimates, dtype=np.float64), np.asarray(correlation, dtype=np.float64)
    c = c.reshape(c.shape + (1,) * (theta.ndim - 1))
    below, above = theta - bounds.low, bounds.high - theta
    value = (c * theta).sum(0)
    ends = []
    for down, up in ((below, above), (above, below)):
        reach = c * np.where(c > 0, down, up)
        squared = np.einsum("i...,ij...,j...->...", reach, r, reach)
        ends.append(np.sqrt(np.maximum(squared, 0.0)))
    return Bounds((value - ends[0])[()], (value + ends[1])[()])


@np.errstate(divide="ignore", invalid="ignore")
def satterthwaite(variances: npt.ArrayLike, dofs: npt.ArrayLike, most: float) -> FloatArray:
    """Degrees of freedom of a sum of variances, at most those of the design; sums are over the first axis.

    Examples
    --------
    >>> print(satterthwaite([1.0, 1.0], [10.0, 10.0], 100.0))
    20.0
    """
    v, dof = np.asarray(variances, dtype=np.float64), np.asarray(dofs, dtype=np.float64)
    own = v.sum(0) ** 2 / (v**2 / dof).sum(0)
    return np.asarray(np.fmin(own, most))


@np.errstate(divide="ignore", invalid="ignore")
def t_test(difference: npt.ArrayLike, variance: npt.ArrayLike, dof: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two-sided test that a difference is 0, by Student's t.

    Parameters
    ----------
    difference, variance, dof : array-like
        Broadcast.

    Returns
    -------
    statistic, pvalue : ndarray
        0 and 1 where difference and variance are 0; NaN where only the variance is.

    Examples
    --------
    >>> statistic, pvalue = t_test(0.2, 0.01, 10)
    >>> print(f"{statistic:.1f} {pvalue:.4f}")
    2.0 0.0734
    """
    d, v, dof = (np.asarray(part, dtype=np.float64) for part in (difference, variance, dof))
    statistic = np.where((d == 0) & (v == 0), 0.0, d / np.sqrt(np.where(v > 0, v, np.nan)))
    return statistic[()], (2 * stdtr(dof, -np.abs(statistic)))[()]


def wald_f_test(values: npt.ArrayLike, covariance: npt.ArrayLike, dof: float) -> WaldTestResult:
    """Test that several correlated estimates are equal: Wald's statistic, with F as its law.

    Parameters
    ----------
    values : array-like of shape (k,)
    covariance : array-like of shape (k, k)
    dof : float
        Of the covariance: units less strata, or replicates less one.

    Returns
    -------
    WaldTestResult
        ``W (dof - q + 1) / (q dof)`` with q = k - 1 contrasts, on q and dof - q + 1 degrees of freedom; NaN with fewer than
        two estimates, a covariance that is singular, or more contrasts than degrees of freedom.

    References
    ----------
    Korn and Graubard (1990), American Statistician 44:270-276 (the adjusted Wald test).

    Examples
    --------
    Two estimates: the square of t.

    >>> result = wald_f_test([0.3, 0.1], [[0.005, 0.0], [0.0, 0.005]], 10)
    >>> print(f"{result.statistic:.1f} {result.dof} {result.dof_denominator:.0f} {result.pvalue:.4f}")
    4.0 1 10 0.0734
    """
    theta, sigma = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    q = max(theta.size - 1, 0)
    rest = dof - q + 1
    nothing = WaldTestResult(float("nan"), q, float(rest), float("nan"))
    if not q or rest <= 0 or not (np.isfinite(theta).all() and np.isfinite(sigma).all()):
        return nothing
    contrast = np.hstack([np.eye(q), -np.ones((q, 1))])
    gaps, spread = contrast @ theta, contrast @ sigma @ contrast.T
    eigenvalues = np.linalg.eigvalsh(spread)
    if eigenvalues[0] <= _SINGULAR * eigenvalues[-1]:
        return nothing
    wald = float(gaps @ np.linalg.solve(spread, gaps))
    statistic = wald * rest / (q * dof)
    return WaldTestResult(statistic, q, float(rest), float(fdtrc(q, rest, statistic)))
