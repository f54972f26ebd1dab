"""Counts -> rates: a confusion table read as named counts and as the rates made of them; 0/0 is NaN."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OUTCOMES = ("favorable", "adverse")


class Rate(NamedTuple):
    """A proportion: two named counts, and what to say when the lower one is empty."""

    numerator: str
    denominator: str
    uses_labels: bool


EMPTY = {
    "total": "no rows",
    "positives": "no positive y_true",
    "negatives": "no negative y_true",
    "selected": "no positive y_pred",
    "rejected": "no negative y_pred",
    "f1_denominator": "no positive y_true and no positive y_pred",
}

RATES = {
    "selection_rate": Rate("selected", "total", uses_labels=False),
    "favorable_rate": Rate("favored", "total", uses_labels=False),
    "base_rate": Rate("positives", "total", uses_labels=True),
    "true_positive_rate": Rate("tp", "positives", uses_labels=True),
    "false_positive_rate": Rate("fp", "negatives", uses_labels=True),
    "false_negative_rate": Rate("fn", "positives", uses_labels=True),
    "true_negative_rate": Rate("tn", "negatives", uses_labels=True),
    "precision": Rate("tp", "selected", uses_labels=True),
    "negative_predictive_value": Rate("tn", "rejected", uses_labels=True),
    "false_discovery_rate": Rate("fp", "selected", uses_labels=True),
    "false_omission_rate": Rate("fn", "rejected", uses_labels=True),
    "accuracy": Rate("correct", "total", uses_labels=True),
    "f1": Rate("f1_numerator", "f1_denominator", uses_labels=True),
}


def divide(numerator: Any, denominator: Any) -> Floats:
    """Return the quotient; where the denominator is 0 it is undefined: NaN, never 0, 1 or infinity.

    Examples
    --------
    >>> divide([1.0, 0.0, 1.0], [4.0, 0.0, 0.0])
    array([0.25,  nan,  nan])
    """
    denominator = np.asarray(denominator, dtype=float)
    with np.errstate(invalid="ignore"):
        return np.asarray(numerator, dtype=float) / np.where(denominator == 0, np.nan, denominator)


class Confusion:
    """A table ``counts[..., y_true, y_pred]`` by the names of its cells and margins, each computed once.

    Parameters
    ----------
    counts : ndarray of shape (..., 2, 2) or (..., 1, 2)
        Index 1 is the positive label. With a middle axis of length 1 there are no true labels: what needs them is NaN.
    outcome : {"favorable", "adverse"}
        What a positive decision means for a person; ``favored`` counts those who got the favourable one.
    """

    def __init__(self, counts: NDArray[Any], outcome: str = "favorable") -> None:
        self._counts = counts
        self.labelled = counts.shape[-2] == 2
        self.outcome = outcome
        self._kept: dict[str, Floats] = {}

    def count(self, name: str) -> Floats:
        """Return a named count, of shape (...)."""
        if name not in self._kept:
            self._kept[name] = self._compute(name)
        return self._kept[name]

    def _compute(self, name: str) -> Floats:
        c = self._counts
        if name == "favored":
            return self.count("selected" if self.outcome == "favorable" else "rejected")
        if name in ("selected", "rejected"):
            j = int(name == "selected")
            return c[..., 0, j] + c[..., 1, j] if self.labelled else c[..., 0, j]
        if name == "total":
            return self.count("selected") + self.count("rejected")
        if not self.labelled:
            return np.full(c.shape[:-2], np.nan)
        if name in ("tn", "fp", "fn", "tp"):
            i, j = divmod(("tn", "fp", "fn", "tp").index(name), 2)
            return c[..., i, j]
        if name in ("positives", "negatives"):
            i = int(name == "positives")
            return c[..., i, 0] + c[..., i, 1]
        if name == "correct":
            return c[..., 0, 0] + c[..., 1, 1]
        if name == "f1_numerator":
            return 2 * c[..., 1, 1]
        if name == "f1_denominator":
            return self.count("positives") + self.count("selected")
        raise KeyError(name)

    def rate(self, name: str) -> Floats:
        """Return a named rate, of shape (...); NaN where its denominator is empty or needs labels there are none of."""
        key = "rate:" + name
        if key not in self._kept:
            rate = RATES[name]
            with np.errstate(invalid="ignore"):  # a proportion of nothing is 0/0: NaN as it stands
                self._kept[key] = np.true_divide(self.count(rate.numerator), self.count(rate.denominator))
        return self._kept[key]

    def take(self, index: Any) -> Confusion:
        """Return the tables at an index of the first axis, sharing what has been computed."""
        return _Taken(self, index)


class _Taken(Confusion):
    """Some of the tables of another confusion; what the other has computed is taken from it, not computed again."""

    def __init__(self, source: Confusion, index: Any) -> None:
        self._source, self._index = source, index
        self.labelled, self.outcome = source.labelled, source.outcome
        self._kept = {}

    def count(self, name: str) -> Floats:
        return self._source.count(name)[self._index]

    def rate(self, name: str) -> Floats:
        if name not in self._kept:
            self._kept[name] = self._source.rate(name)[self._index]
        return self._kept[name]
