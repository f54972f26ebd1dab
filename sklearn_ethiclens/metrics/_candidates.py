"""The candidates of a search, read from its ``cv_results_``: performance, disparity, and what disqualifies each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_ethiclens._validation import listing
from sklearn_ethiclens.metrics._comparisons import pareto_efficient
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.metrics._scores import SCORE_METRICS

TALLY_KEY = "tally"  # scores of this prefix are counts, kept for pooling
ONE_CLASS, NO_SCORE = "predicts one class for every row", "a fold could not be scored"


class Candidates:
    """The candidates of a search.

    Parameters
    ----------
    cv_results : mapping
        ``cv_results_`` of any search class.
    performance, disparity : str
        Names of scores in it.

    Attributes
    ----------
    params : list of dict
        Parameters of each candidate.
    performance, performance_std, disparity, disparity_std : ndarray of shape (n_candidates,)
        Means and standard deviations over folds; the disparity without its sign.
    is_ratio : bool
        Whether the disparity is a number to make large, 1 at parity.
    reason : ndarray of str of shape (n_candidates,)
        Why a candidate cannot be chosen; empty if it can.
    """

    def __init__(self, cv_results: Mapping[str, Any], performance: str, disparity: str) -> None:
        for name in (performance, disparity):
            if f"mean_test_{name}" not in cv_results:
                known = [key.removeprefix("mean_test_") for key in cv_results if key.startswith("mean_test_")]
                shown = [name for name in known if not name.startswith(TALLY_KEY)]
                raise ValueError(
                    f"the search has no score {name!r}; it has {listing(shown)}. If every fold failed to score, the "
                    "FairnessScoringWarning says why (error_score='raise' shows it); else score several metrics at once, as in "
                    f"scoring=fairness_scorers([{disparity!r}], sensitive_features=...)."
                )
        self.name = disparity
        self.params = list(cv_results["params"])
        n = len(self.params)
        self.performance, self.performance_std = _mean_and_std(cv_results, performance, n)
        scores, self.disparity_std = _mean_and_std(cv_results, disparity, n)
        self.is_ratio = _reads_ratio(disparity, scores)
        self.disparity = scores if self.is_ratio else np.abs(scores)
        rate, _ = _mean_and_std(cv_results, "selection_rate", n)
        self.reason = np.full(n, "", dtype=object)
        self.reason[np.isnan(self.performance) | np.isnan(scores)] = NO_SCORE
        self.reason[(rate <= 0) | (rate >= 1)] = ONE_CLASS

    @property
    def usable(self) -> Any:
        """Which candidates can be chosen."""
        return self.reason == ""

    @property
    def cost(self) -> Any:
        """The disparity as something to make small."""
        return -self.disparity if self.is_ratio else self.disparity

    def limit_by(self, limits: Any) -> None:
        """Take confidence limits of the pooled folds for the disparity: a fold without a score is no obstacle then."""
        self.disparity = np.asarray(limits, dtype=float)
        unknown = np.isnan(self.performance) | np.isnan(self.disparity)
        self.reason[self.reason == NO_SCORE] = ""
        self.reason[unknown & (self.reason == "")] = NO_SCORE

    def refuse_if_none(self) -> None:
        """Raise if no candidate can be chosen, saying what is wrong with them."""
        if self.usable.any():
            return
        n, one_class = len(self.params), int((self.reason == ONE_CLASS).sum())
        raise ValueError(
            f"none of the {n} candidates can be chosen: {one_class} predict one class for every row, {n - one_class} have no "
            f"score {self.name!r} (a fold could not be judged: see the FairnessScoringWarning, or error_score='raise'; "
            f"stratify_by(y, sensitive_features) makes folds that hold every group)."
        )

    def describe(self, i: int) -> str:
        """Return a candidate in words."""
        return f"{self.params[i]} (performance {self.performance[i]:.4g}, {self.name} {self.disparity[i]:.4g})"

    def best(self, allowed: Any) -> int:
        """Return the best performance among the allowed; ties by the smaller disparity, then by order."""
        order = np.lexsort((np.arange(len(self.params)), self.cost, -self.performance))
        return int(next(i for i in order if allowed[i]))

    def on_frontier(self) -> Any:
        """Tell which candidates no other beats in both; none that cannot be chosen."""
        return pareto_efficient(self.performance, np.where(self.usable, self.cost, np.nan))


def pareto_frontier(cv_results: Mapping[str, Any], *, performance: str, disparity: str) -> pd.DataFrame:
    """Return the candidates of a search with performance, disparity, and which of them no other beats in both.

    Parameters
    ----------
    cv_results : mapping
        ``cv_results_`` of any search class.
    performance, disparity : str
        Names of scores in it.

    Returns
    -------
    DataFrame
        ``params, performance, performance_std, disparity, disparity_std, on_frontier, usable, reason``, best performance
        first, indexed by the position in ``cv_results``. ``disparity`` is without sign (a gap, or a ratio). Candidates with
        a NaN score, or that predict one class, are not usable, not on the frontier, and ``reason`` says which it is.

    Examples
    --------
    >>> results = {"params": [{"C": 1}, {"C": 2}], "mean_test_accuracy": [0.7, 0.8], "mean_test_gap": [-0.1, -0.1]}
    >>> pareto_frontier(results, performance="accuracy", disparity="gap")[["params", "disparity", "on_frontier"]]
         params  disparity  on_frontier
    1  {'C': 2}        0.1         True
    0  {'C': 1}        0.1        False
    """
    return frontier_table(Candidates(cv_results, performance, disparity))


def frontier_table(candidates: Candidates) -> pd.DataFrame:
    """Return candidates as the table of :func:`pareto_frontier`."""
    table = pd.DataFrame(
        {
            "params": candidates.params,
            "performance": candidates.performance,
            "performance_std": candidates.performance_std,
            "disparity": candidates.disparity,
            "disparity_std": candidates.disparity_std,
            "on_frontier": candidates.on_frontier(),
            "usable": candidates.usable,
            "reason": candidates.reason,
        }
    )
    return table.sort_values("performance", ascending=False, kind="stable")


def _mean_and_std(cv_results: Mapping[str, Any], name: str, n: int) -> tuple[Any, Any]:
    """Return mean and standard deviation over folds of a score; NaN where the search has none."""
    blank = np.full(n, np.nan)
    mean, std = (np.asarray(cv_results.get(f"{what}_test_{name}", blank), dtype=float) for what in ("mean", "std"))
    return mean, std


def _reads_ratio(name: str, scores: Any) -> bool:
    """Tell whether a score is a ratio (or a composite score), which is to be large, and not a negated gap."""
    if name in METRICS:
        return METRICS[name].scale == "ratio" or METRICS[name].parity is None
    if name in SCORE_METRICS:
        return SCORE_METRICS[name].greater_is_better
    known = scores[~np.isnan(scores)]
    return name.endswith(("ratio", "impact")) or bool((known > 0).any())
