"""ProbeScorer: how little a model changes its answers, as a score for cross-validation and search."""

from __future__ import annotations

from typing import Any
from warnings import warn

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_ethiclens._validation import listing
from sklearn_ethiclens.counterfactual._asking import audit_probe
from sklearn_ethiclens.exceptions import FairnessScoringWarning

__all__ = ["ProbeScorer"]

STATISTICS = ("flip_rate", "to_positive", "to_negative", "score_change_rate", "mean_absolute_change", "max_change")


class ProbeScorer:
    """A scorer made by :meth:`CounterfactualProbe.scorer`; greater is better, 0 is the best."""

    def __init__(self, probe: Any, statistic: str, *, threshold: float, pos_label: Any) -> None:
        if statistic not in STATISTICS:
            raise ValueError(f"statistic must be one of {listing(STATISTICS)}; got {statistic!r}.")
        self.probe, self.statistic, self.threshold, self.pos_label = probe, statistic, threshold, pos_label

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the score of a fitted estimator.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : frame or array of shape (n_rows, n_features)
            Features, as the search holds them.
        y : ignored
            Nothing here depends on true labels.

        Returns
        -------
        float
        """
        probe = self.probe if hasattr(self.probe, "values_") else clone(self.probe).fit(X)
        found = audit_probe(
            probe, estimator, probe._checked(X, reset=False), None, self.threshold, self.pos_label, search_proxies=False
        )
        counts = found.tally.counts
        reason = ""
        if not counts.sum():
            reason = "no row has an alternative value"
        elif not counts[:, 1, :].any() and not counts[:, :, 1].any():
            reason = "every row is decided negative"
        elif not counts[:, 0, :].any() and not counts[:, :, 0].any():
            reason = "every row is decided positive"
        if reason:
            warn(f"{self!r} is NaN: {reason}.", FairnessScoringWarning, stacklevel=2)
            return float("nan")
        values = np.array([getattr(pair, self.statistic) for pair in found.pairs])
        return -float(np.average(values, weights=[pair.n for pair in found.pairs]))

    def get_metadata_routing(self) -> MetadataRequest:
        """Return that nothing is requested."""
        return MetadataRequest(owner=self)

    def _accept_sample_weight(self) -> bool:
        return False

    def __sklearn_clone__(self) -> ProbeScorer:
        return self

    def __repr__(self) -> str:
        return f"ProbeScorer({self.statistic!r}, {self.probe!r}, greater_is_better: -{self.statistic})"
