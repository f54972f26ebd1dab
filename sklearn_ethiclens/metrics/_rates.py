"""Counts -> rates: a confusion table read as named counts and as the rates made of them; 0/0 is NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from sklearn_ethiclens._design import SurveyDesign
from sklearn_ethiclens._tally import Tally

Floats = NDArray[np.float64]

OUTCOMES = ("favorable", "adverse")
_EQUAL = 1e-9  # relative; less than this apart, weights are equal
_NO_VARIANCE = 1e-10  # of the variance of simple random rows: a design effect below is rounding, not precision


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

    def shared(self, rate: str, groups: NDArray[np.intp], at: int, *, ratio: bool = False) -> Any:
        """Return the standard error of comparisons with a group over that of independent rates; 1 unless they share units.

        Parameters
        ----------
        rate : str
            A name in ``RATES``.
        groups : ndarray of int of shape (n,)
            Those compared.
        at : int
            The group compared with.
        ratio : bool, default=False
            Whether the comparison is the log ratio, else the difference.
        """
        return 1.0

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
    counts, rows, squares : ndarray of shape (..., n_outcomes, 2)
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


class PartOfWeighted(WeightedConfusion):
    """Tables that are parts of larger ones, with effective counts by what a row of those is worth.

    The few weights of a part say too little of how much they vary, and where they happen to be alike too much is made of them.

    Parameters
    ----------
    counts, rows, squares : ndarray of shape (..., n_outcomes, 2)
        As of :class:`WeightedConfusion`.
    whole : Confusion
        The larger tables, of a shape that the first axes of the parts begin with.
    """

    def __init__(self, counts: NDArray[Any], rows: NDArray[Any], squares: NDArray[Any], whole: Confusion) -> None:
        super().__init__(counts, rows, squares, whole.outcome)
        self._whole = whole

    def _effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        _, size = self._whole.effective(numerator, denominator)
        worth = np.fmin(divide(size, self._whole.rows(denominator)), 1.0)
        rows = self.rows(denominator)
        nobs = rows * np.where(rows > 0, worth.reshape(worth.shape + (1,) * (rows.ndim - worth.ndim)), 0.0)
        return np.where(rows > 0, divide(self.count(numerator), self.count(denominator)), 0.0) * nobs, nobs


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

    def shared(self, rate: str, groups: NDArray[np.intp], at: int, *, ratio: bool = False) -> Any:
        sample = self._sample.shared(rate, groups, at, ratio=ratio)
        return sample if np.ndim(sample) == 0 else sample[:, None]


class DesignConfusion(WeightedConfusion):
    """Sums of weights by name, with the covariances that a survey design gives what is made of them.

    Variances are linearised: those of the sum over units of what each adds to a statistic (Taylor; Binder 1983).

    Parameters
    ----------
    counts, rows, squares : ndarray of shape (n_groups, n_outcomes, 2)
        As of :class:`WeightedConfusion`; of unweighted rows all three are the numbers of rows.
    design : SurveyDesign
        Of these cells.
    outcome : {"favorable", "adverse"}
        As of :class:`Confusion`.
    confidence_level : float
        That effective counts are for: few units make a rate less certain, by Student's t, the more so at a high level.
    """

    def __init__(
        self,
        counts: NDArray[Any],
        rows: NDArray[Any],
        squares: NDArray[Any],
        design: SurveyDesign,
        outcome: str = "favorable",
        confidence_level: float = 0.95,
    ) -> None:
        super().__init__(counts.astype(float), rows, squares.astype(float), outcome)
        self.design, self._level = design, confidence_level
        n_groups, n_slots = len(counts), counts[0].size
        blocks = n_groups, n_slots, n_groups, n_slots
        own = np.arange(n_groups)
        self._covariance = design.covariance.reshape(blocks)
        self._of_units = None if design.squares is None else design.squares.reshape(blocks)[own, :, own, :]
        self._slots = Confusion(np.eye(n_slots).reshape(n_slots, *counts.shape[1:]), outcome)
        self._sizes: dict[tuple[str, str], tuple[Floats, Floats]] = {}

    # ------------------------------------------------------------------------------------------------------- linearised
    @np.errstate(divide="ignore", invalid="ignore")
    def gradient(self, numerator: str, denominator: str) -> Floats:
        """Return the derivatives of each group's proportion by its cells, of shape (n_groups, n_cells); NaN without rows."""
        total = self.count(denominator)[:, None]
        share = self.count(numerator)[:, None] / total
        part = self._slots.count(numerator), self._slots.count(denominator)
        gradient: Floats = (part[0] - share * part[1]) / np.where(total == 0, np.nan, total)
        return gradient

    def rate_gradient(self, rate: str) -> Floats:
        """Return :meth:`gradient` of a named rate."""
        return self.gradient(RATES[rate].numerator, RATES[rate].denominator)

    def covariance(
        self, first: Floats, groups: NDArray[np.intp], second: Floats, others: NDArray[np.intp] | int
    ) -> Floats:
        """Return the covariance of statistics of groups with statistics of others.

        Parameters
        ----------
        first, second : ndarray of shape (n_groups, n_cells)
            Their derivatives by the cells of their group.
        groups, others : ndarray of int of shape (n,)
            Which pairs.

        Returns
        -------
        ndarray of shape (n,)
        """
        groups, others = np.broadcast_arrays(groups, others)
        return np.asarray(
            np.einsum("ni,nij,nj->n", first[groups], self._covariance[groups, :, others, :], second[others])
        )

    def variance(self, gradient: Floats) -> Floats:
        """Return the variance of each group's statistic, of shape (n_groups,)."""
        every = np.arange(len(gradient))
        return np.maximum(self.covariance(gradient, every, gradient, every), 0.0)

    def units(self, denominator: str) -> Floats:
        """Return in how many units, in effect, the rows of a count lie: Kish's number of the units' sums; NaN if unknown."""
        total = self.count(denominator)
        if self._of_units is None:
            return np.full(total.shape, np.nan)
        part = self._slots.count(denominator)
        return divide(total**2, np.einsum("i,gij,j->g", part, self._of_units, part))

    def dof(self, denominator: str) -> Floats:
        """Return the degrees of freedom of each group's variance: of the design, but no more than its units less one."""
        units = self.units(denominator)
        return np.fmin(float(self.design.dof), np.maximum(units - 1, 1.0))

    # --------------------------------------------------------------------------------------------------- effective sizes
    def size(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        """Return each group's proportion, and so many simple random rows that it would have the same variance.

        NaN rows where the design gives it no variance, as when a group lies in one unit. Where it is 0 or 1 it has none of
        first order; the units that its rows lie in then count as one row each, or Kish's number of rows stands in.
        """
        key = numerator, denominator
        if key not in self._sizes:
            self._sizes[key] = self._size(*key)
        return self._sizes[key]

    @np.errstate(divide="ignore", invalid="ignore")
    def _size(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        total = self.count(denominator)
        share = self.count(numerator) / np.where(total == 0, np.nan, total)
        kish = total**2 / self._squares.count(denominator)
        variance, simple = self.variance(self.gradient(numerator, denominator)), share * (1 - share)
        size = np.where(variance > _NO_VARIANCE * simple / kish, simple / variance, np.nan)
        size = np.where(simple <= 1e-12, np.fmin(kish, self.units(denominator)), size)
        return share, np.where(total == 0, 0.0, size)

    def at_level(
        self, numerator: str, denominator: str, groups: NDArray[np.intp], confidence_level: Any
    ) -> tuple[Floats, Floats]:
        """Return the counts of a proportion of groups to compute its interval of a level from.

        They are those of :meth:`size`, made fewer by ``(z / t)**2`` (Korn and Graubard 1998): Wilson's interval then has
        Student's t in place of z.

        Parameters
        ----------
        numerator, denominator : str
            Named counts.
        groups : ndarray of int of shape (n,)
            The groups; one may stand several times.
        confidence_level : float or ndarray of shape (n,)
            In (0, 1).
        """
        share, size = (part[groups] for part in self.size(numerator, denominator))
        tail = (1 - np.asarray(confidence_level)) / 2
        nobs = size * (ndtri(tail) / stdtrit(self.dof(denominator)[groups], tail)) ** 2
        return np.where(size == 0, 0.0, share * nobs), nobs

    def _effective(self, numerator: str, denominator: str) -> tuple[Floats, Floats]:
        return self.at_level(numerator, denominator, np.arange(len(self._counts)), self._level)

    # ------------------------------------------------------------------------------------------------------- comparisons
    @np.errstate(divide="ignore", invalid="ignore")
    def correlation(
        self, first: Floats, groups: NDArray[np.intp], second: Floats, others: NDArray[np.intp] | int
    ) -> Floats:
        """Return the correlations of pairs as :meth:`covariance` takes them; 0 where one of both has no variance."""
        scale = np.sqrt(self.variance(first)[groups] * self.variance(second)[others])
        shared = np.where(scale > 0, self.covariance(first, groups, second, others) / scale, 0.0)
        return np.clip(np.nan_to_num(shared), -1.0, 1.0)

    @np.errstate(divide="ignore", invalid="ignore")
    def shared(self, rate: str, groups: NDArray[np.intp], at: int, *, ratio: bool = False) -> Any:
        gradient, value = self.rate_gradient(rate), self.rate(rate)
        scale = np.where(value > 0, value, np.nan) if ratio else np.ones(value.shape)
        apart = self.variance(gradient) / scale**2
        apart = apart[groups] + apart[at]
        together = apart - 2 * self.covariance(gradient, groups, gradient, at) / (scale[groups] * scale[at])
        factor = np.where(apart > 0, together / np.where(apart > 0, apart, 1.0), 1.0)
        factor = np.where(np.isnan(apart), 1.0, factor)
        return np.sqrt(np.where(factor > _NO_VARIANCE, factor, np.nan))  # none: what both share is all there is


def confusion_of(tally: Tally, outcome: str = "favorable", confidence_level: float = 0.95) -> Confusion:
    """Return the tables of a tally by name, weighted where its rows are, and with the covariances of its design.

    Effective counts of a design are for intervals of the confidence level.
    """
    if tally.design is not None:
        squares = tally.counts if tally.weights is None else tally.weights.squares
        return DesignConfusion(tally.counts, tally.rows, squares, tally.design, outcome, confidence_level)
    if tally.weights is None:
        return Confusion(tally.counts.astype(float), outcome)
    return WeightedConfusion(tally.counts, tally.rows, tally.weights.squares, outcome)
