"""Counts -> rates: a confusion table read as named counts and as the rates made of them; 0/0 is NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._tally import Tally

Floats = NDArray[np.float64]

OUTCOMES = ("favorable", "adverse")
_EQUAL = 1e-9  # relative; less than this apart, weights are equal


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
        if name == "errors":
            return c[..., 0, 1] + c[..., 1, 0]
        if name == "hits_and_errors":
            return self.count("tp") + self.count("errors")
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

    def computed(self, name: str, function: Callable[[Confusion], Floats]) -> Floats:
        """Return what a function makes of each table, of shape (...), computed once under this name."""
        if name not in self._kept:
            self._kept[name] = function(self)
        return self._kept[name]

    @property
    def weighted(self) -> bool:
        """Whether the counts are sums of weights."""
        return False

    def rows(self, name: str) -> Floats:
        """Return how many rows a named count is of: the count itself, unless rows are weighted."""
        return self.count(name)

    def squares_of(self, name: str) -> Floats:
        """Return the sum of squared weights behind a named count: the count itself, unless rows are weighted."""
        return self.count(name)

    def effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        """Return the counts of a proportion to compute its interval from, each of shape (...).

        Of rows they are the named counts. Of weighted rows they are those of so many unweighted rows that the variance of
        the proportion is the same (Korn and Graubard 1998).
        """
        return self.count(numerator), self.count(denominator)

    def proportion(self, name: str) -> tuple[Floats, Floats]:
        """Return the counts of a named rate to compute its interval from, as :meth:`effective` has them."""
        return self.effective(RATES[name].numerator, RATES[name].denominator)

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

    def computed(self, name: str, function: Callable[[Confusion], Floats]) -> Floats:
        return self._source.computed(name, function)[self._index]

    @property
    def weighted(self) -> bool:
        return self._source.weighted

    def rows(self, name: str) -> Floats:
        return self._source.rows(name)[self._index]

    def squares_of(self, name: str) -> Floats:
        return self._source.squares_of(name)[self._index]

    def effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        count, nobs = self._source.effective(numerator, denominator)
        return count[self._index], nobs[self._index]


class WeightedConfusion(Confusion):
    """Sums of weights by name, with the numbers of rows and the sums of squared weights behind them.

    Parameters
    ----------
    counts, rows, squares : ndarray of shape (n_groups, n_outcomes, 2)
        Sums of weights, rows, and sums of squared weights.
    outcome : {"favorable", "adverse"}
        As of :class:`Confusion`.
    """

    def __init__(
        self, counts: NDArray[Any], rows: NDArray[Any], squares: NDArray[Any], outcome: str = "favorable"
    ) -> None:
        super().__init__(counts, outcome)
        self._rows = Confusion(rows.astype(float), outcome)
        self._squares = Confusion(squares, outcome)
        self._proportions: dict[tuple[str, str], tuple[Floats, Floats]] = {}

    @property
    def weighted(self) -> bool:
        return True

    def rows(self, name: str) -> Floats:
        return self._rows.count(name)

    def squares_of(self, name: str) -> Floats:
        return self._squares.count(name)

    def effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        key = numerator, denominator
        if key not in self._proportions:
            self._proportions[key] = self._effective(*key)
        return self._proportions[key]

    @np.errstate(divide="ignore", invalid="ignore")
    def _effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        with_event, total = self.count(numerator), self.count(denominator)
        squares_with, squares = self._squares.count(numerator), self._squares.count(denominator)
        p = with_event / total
        variance = ((1 - p) ** 2 * squares_with + p**2 * (squares - squares_with)) / total**2
        kish = total**2 / squares
        size = np.where((p > 0) & (p < 1), p * (1 - p) / variance, kish)
        count, nobs = p * size, size
        rows_with, rows = self._rows.count(numerator), self._rows.count(denominator)
        equal = np.abs(kish - rows) <= _EQUAL * rows  # then weights say nothing, and counts are whole
        count, nobs = np.where(equal, rows_with, count), np.where(equal, rows, nobs)
        return np.where(total == 0, 0.0, count), np.where(total == 0, 0.0, nobs)


class WeightedReplicates(Confusion):
    """Replicates of sums of weights; proportions have the sample's effective size for each unit of weight.

    Parameters
    ----------
    counts : ndarray of shape (n_groups, ..., n_outcomes, 2)
        Replicates.
    sample : Confusion
        What they are replicates of.
    """

    def __init__(self, counts: NDArray[Any], sample: Confusion) -> None:
        super().__init__(counts, sample.outcome)
        self._sample = sample

    @property
    def weighted(self) -> bool:
        return True

    def effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        count, nobs = self.count(numerator), self.count(denominator)
        _, size = self._sample.effective(numerator, denominator)
        scale = divide(size, self._sample.count(denominator))
        scale = scale.reshape(scale.shape + (1,) * (nobs.ndim - scale.ndim))
        return count * scale, nobs * scale


def confusion_of(tally: Tally, outcome: str = "favorable") -> Confusion:
    """Return the tables of a tally by name, weighted where its rows are."""
    if tally.weights is None:
        return Confusion(tally.counts.astype(float), outcome)
    return WeightedConfusion(tally.counts, tally.rows, tally.weights.squares, outcome)
