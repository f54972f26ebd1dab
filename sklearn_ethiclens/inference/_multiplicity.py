"""Multiplicity from a joint bootstrap: step-down max-T, which knows how the statistics move together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["max_t_pvalues"]

Floats = npt.NDArray[np.float64]


def max_t_pvalues(statistics: npt.ArrayLike, replicates: npt.ArrayLike) -> Floats:
    """p-values adjusted for looking at all statistics at once (step-down max-T).

    The largest statistic is compared with the distribution of the largest of all, the next with that of the largest of
    the rest, and so on; adjusted p-values never fall on the way. Rejecting where they are at most alpha keeps the chance of
    any false rejection at alpha, asymptotically, whichever hypotheses are true. Statistics that move together cost
    less than Holm's adjustment takes for them.

    Parameters
    ----------
    statistics : array-like of shape (n_hypotheses,)
        Studentised; large values speak against a hypothesis. NaN: not tested.
    replicates : array-like of shape (n_hypotheses, n_resamples)
        The same of bootstrap samples, centred at the sample's own estimate, from one draw for all hypotheses. NaN, where
        a replicate is undefined, never is the largest.

    Returns
    -------
    ndarray of shape (n_hypotheses,)
        In (0, 1]; at least ``1 / (n_resamples + 1)``. NaN where not tested.

    References
    ----------
    Westfall and Young 1993, Resampling-based multiple testing, algorithm 2.8; Romano and Wolf 2005, Econometrica
    73:1237-1282.

    Examples
    --------
    Of four replicates the larger of two reaches 2 once, and the second alone reaches 1 once:

    >>> max_t_pvalues([2.0, 1.0], [[0.0, 2.5, 0.0, 0.0], [0.5, 0.0, 1.5, 0.0]])
    array([0.4, 0.4])
    """
    observed = np.asarray(statistics, dtype=float)
    drawn = np.asarray(replicates, dtype=float)
    if observed.ndim != 1 or drawn.ndim != 2 or drawn.shape[0] != observed.size or not drawn.shape[1]:
        raise ValueError(
            "replicates must have one row a statistic and at least one column; got statistics of shape "
            f"{observed.shape} and replicates of shape {drawn.shape}."
        )
    return step_down(observed, drawn)


def step_down(observed: Floats, rows: Sequence[Floats] | Floats) -> Floats:
    """Return the p-values of :func:`max_t_pvalues`, of replicates in rows that need not lie in one array."""
    adjusted = np.full(observed.size, np.nan)
    order = np.argsort(observed)  # NaN last
    order = order[: np.count_nonzero(~np.isnan(observed))]
    n_resamples = rows[0].size if len(rows) else 0
    largest = np.full(n_resamples, -np.inf)
    for k in order:  # from the smallest up, so that the largest of the rest is kept in one row
        largest = np.fmax(largest, rows[k])
        adjusted[k] = (1 + np.count_nonzero(largest >= observed[k])) / (n_resamples + 1)
    descending = order[::-1]
    adjusted[descending] = np.maximum.accumulate(adjusted[descending])
    return adjusted
