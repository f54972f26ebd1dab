"""ScoreTally: the scores of rows, kept exactly and sorted within group and outcome; what metrics of scores rest on.

Counts of decisions do not hold how scores are spread, so a tally of rows that have scores keeps these beside its counts.
Scores by group and outcome, each sorted, are all that calibration, the Brier score and the area under the curve need, and
sorted runs can be merged: score tallies of disjoint rows add, and groups can be put together. Of weighted rows each score has
its weight beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._validation import numeric_column

__all__ = ["GroupScores", "ScoreBins", "ScoreTally", "bin_edges", "check_scores"]

Floats = NDArray[np.float64]

N_BINS = 10  # equal-width bins over [0, 1], both ends closed
_LARGEST = 1e150
_ROUNDING = 1e-12
_KEYS = ("n", "sum", "sum_of_squares", "weight", "squared_weight")  # of the arrays of bins, as stored
_SMALL_CODES = 1 << 16  # up to here numpy sorts codes by radix


def check_scores(y_score: Any) -> Floats:
    """Return scores as one column of floats, one per row.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Numbers; higher speaks for the positive label. pandas, polars and pyarrow columns are accepted. Probabilities that miss
        [0, 1] by rounding alone, at most 1e-12, are set to its ends.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    ValueError
        If there are several columns, or a score is missing or infinite.
    TypeError
        If the values are no numbers.

    Examples
    --------
    >>> check_scores([0, 0.5, 1])
    array([0. , 0.5, 1. ])
    """
    scores = numeric_column(
        y_score,
        "y_score",
        one="one score per row, of the positive label",
        hint="Pass the column of pos_label: model.predict_proba(X)[:, list(model.classes_).index(pos_label)].",
        booleans=True,
    )
    if not np.isfinite(scores).all():
        missing, infinite = int(np.isnan(scores).sum()), int(np.isinf(scores).sum())
        found = " and ".join(f"{n} {what}" for n, what in ((missing, "missing (NaN)"), (infinite, "infinite")) if n)
        raise ValueError(
            f"y_score is {found} of {scores.size} rows; every row needs a finite score. Drop these rows from all arguments, or "
            f"fill them."
        )
    low, high = (scores.min(), scores.max()) if scores.size else (0.0, 0.0)
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"y_score must hold numbers up to {_LARGEST:g} in size, whose squares are finite; got {max(-low, high):g}."
        )
    if (low < 0 or high > 1) and low >= -_ROUNDING and high <= 1 + _ROUNDING:
        scores = scores.clip(0.0, 1.0)  # probabilities that were summed or divided
    return scores + 0.0  # a copy, in which -0.0 is 0.0


def bin_edges(n_bins: int) -> Floats:
    """Return the edges of equal-width bins over [0, 1]: each the float nearest to k / n_bins, as 0.3 is to 3 / 10.

    ``numpy.linspace`` gives 0.30000000000000004, which puts a score of 0.3 one bin too low.
    """
    return np.arange(n_bins + 1) / n_bins


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The scores of one group.

    Parameters
    ----------
    positives, negatives : ndarray
        Scores of the rows with and without the positive label, each in ascending order.
    probabilities : bool
        Whether all scores, those of other groups included, lie in [0, 1].
    positive_weights, negative_weights : ndarray, optional
        Weight of each of these rows, above 0. None where all rows of the group weigh the same, which is as if they had no
        weights: every number of one group is a ratio of sums.
    """

    positives: Floats
    negatives: Floats
    probabilities: bool = True
    positive_weights: Floats | None = None
    negative_weights: Floats | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.positives.size + self.negatives.size)

    @property
    def weights(self) -> tuple[Floats, Floats] | tuple[()]:
        """Weights of positives and of negatives; empty where they do not differ."""
        if self.positive_weights is None or self.negative_weights is None:
            return ()
        return self.positive_weights, self.negative_weights

    @cached_property
    def totals(self) -> tuple[float, float]:
        """Sum of weights of positives and of negatives: their numbers, where weights do not differ."""
        parts = self.weights or (self.positives.size, self.negatives.size)
        return float(np.sum(parts[0])), float(np.sum(parts[1]))

    @cached_property
    def effective(self) -> tuple[float, float]:
        """Effective positives and negatives (Kish 1965): squared sum of weights over the sum of squares; 0 of none."""
        if not self.weights:
            return self.totals
        kish = [part.sum() ** 2 / np.square(part).sum() if part.size else 0.0 for part in self.weights]
        return float(kish[0]), float(kish[1])

    def binned(self, edges: Floats) -> ScoreBins:
        """Return counts and sums by bins, as :meth:`ScoreTally.binned` of this one group."""
        weights = np.concatenate(self.weights[::-1]) if self.weights else None
        return ScoreTally(
            np.concatenate([self.negatives, self.positives]), np.array([[0, self.negatives.size]]), weights
        ).binned(edges)

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """Sum and sum of squares of the scores of negatives and of positives, of shape (2, 2); weighted."""
        if self.weights:
            pairs = zip((self.negatives, self.positives), self.weights[::-1], strict=True)
            return np.array([[(w * part).sum(), (w * np.square(part)).sum()] for part, w in pairs])
        return np.array([[part.sum(), np.square(part).sum()] for part in (self.negatives, self.positives)])

    @cached_property
    def placements(self) -> tuple[Floats, Floats]:
        """For each positive the weight of the negatives below it, for each negative that of the positives above it.

        Numbers of rows, where weights do not differ. Ties count half.
        """
        if self.weights:
            up_to = [np.append(0.0, np.cumsum(part)) for part in self.weights]
            below, not_above = (
                (sums[np.searchsorted(theirs, own, side="left")] + sums[np.searchsorted(theirs, own, side="right")]) / 2
                for own, theirs, sums in (
                    (self.positives, self.negatives, up_to[1]),
                    (self.negatives, self.positives, up_to[0]),
                )
            )
            return below, up_to[0][-1] - not_above
        m, n = self.positives.size, self.negatives.size
        # Both are sorted, so that each search starts where the last one ended in the cache; and where the positives fall
        # among the negatives says where the negatives fall among the positives.
        left = np.searchsorted(self.negatives, self.positives, side="left")
        right = np.searchsorted(self.negatives, self.positives, side="right")
        not_above = np.cumsum(np.bincount(left, minlength=n + 1))[:n]
        below = np.cumsum(np.bincount(right, minlength=n + 1))[:n]
        return (left + right) / 2, m - (not_above + below) / 2


@dataclass(frozen=True, eq=False, repr=False)
class ScoreBins:
    """Counts, sums and sums of squares of scores by group, bin and outcome: what of scores a stored tally shares.

    Parameters
    ----------
    counts : ndarray of int of shape (n_groups, n_bins, n_outcomes)
        Rows.
    sums, squares : ndarray of shape (n_groups, n_bins, n_outcomes)
        Sums of the scores and of their squares; of weighted rows each times its weight.
    weights, squared_weights : ndarray of shape (n_groups, n_bins, n_outcomes), optional
        Of weighted rows: sums of the weights and of their squares.
    """

    counts: NDArray[np.int64]
    sums: Floats
    squares: Floats
    weights: Floats | None = None
    squared_weights: Floats | None = None

    def __post_init__(self) -> None:
        if (self.weights is None) != (self.squared_weights is None):
            raise ValueError("weights and squared_weights of bins must be given both, or neither.")
        for name in self._names:
            array = np.array(getattr(self, name), dtype=np.int64 if name == "counts" else np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.counts.ndim != 3 or len({getattr(self, name).shape for name in self._names}) > 1:
            raise ValueError(
                f"counts, sums and squares of scores, and of weights, must have one shape (n_groups, n_bins, n_outcomes); got "
                f"{[getattr(self, name).shape for name in self._names]}."
            )

    def __repr__(self) -> str:
        return f"<ScoreBins of {int(self.counts.sum())} rows, {self.n_groups} groups>"

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.counts)

    @property
    def _names(self) -> tuple[str, ...]:
        """The arrays that there are."""
        return ("counts", "sums", "squares") + (() if self.weights is None else ("weights", "squared_weights"))

    @property
    def bins(self) -> ScoreBins:
        """Itself."""
        return self

    @property
    def totals(self) -> NDArray[Any]:
        """Sums of weights by group, bin and outcome: counts, where there are no weights."""
        return self.counts if self.weights is None else self.weights

    @property
    def gaps(self) -> Floats:
        """Positives minus the sum of the scores, of shape (n_groups, n_bins); weighted."""
        gaps: Floats = self.totals[:, :, 1] - self.sums.sum(2)
        return gaps

    def merge(self, position: NDArray[np.intp], n_groups: int) -> ScoreBins:
        """Return the bins with group ``i`` counted as group ``position[i]`` of ``n_groups``."""
        parts = []
        for array in (getattr(self, name) for name in self._names):
            merged = np.zeros((n_groups, *array.shape[1:]), dtype=array.dtype)
            np.add.at(merged, position, array)
            parts.append(merged)
        return ScoreBins(*parts)

    def __add__(self, other: ScoreBins | ScoreTally) -> ScoreBins:
        theirs = other.bins
        if self._names != theirs._names:
            raise ValueError("scores of weighted rows and of unweighted ones do not add.")
        return ScoreBins(*(getattr(self, name) + getattr(theirs, name) for name in self._names))

    def to_dict(self) -> dict[str, Any]:
        """Return the bins as plain JSON types."""
        return {key: getattr(self, name).tolist() for name, key in zip(self._names, _KEYS, strict=False)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ScoreBins:
        """Return the bins that :meth:`to_dict` wrote."""
        return cls(*(data[key] for key in _KEYS if key in data))


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTally:
    """Scores by group and outcome, each run in ascending order.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Runs of (group, outcome), one after the other.
    starts : ndarray of int of shape (n_groups, n_outcomes)
        Where each run starts; outcome 1 is the positive label. One outcome where there are no labels.
    weights : ndarray of shape (n_rows,), optional
        The weight of each row, above 0; rows with one score are in ascending order of it, so that the order they came in does
        not matter.

    Examples
    --------
    >>> tally = ScoreTally.from_rows([0.9, 0.2, 0.7, 0.4], [1, 0, 1, 1], [0, 0, 1, 0], n_groups=2)
    >>> tally.group(0).positives, tally.group(0).negatives
    (array([0.4, 0.9]), array([0.2]))
    >>> tally.merge(np.array([0, 0]), 1).group(0).positives
    array([0.4, 0.7, 0.9])
    """

    scores: Floats
    starts: NDArray[np.int64]
    weights: Floats | None = None

    def __post_init__(self) -> None:
        scores, starts = np.array(self.scores, dtype=np.float64), np.array(self.starts, dtype=np.int64)
        bounds = np.append(starts.ravel(), scores.size)
        if scores.ndim != 1 or starts.ndim != 2 or bounds[0] != 0 or (np.diff(bounds) < 0).any():
            raise ValueError(
                f"starts must be rising positions in scores, of shape (n_groups, n_outcomes) and from 0 on; got shapes "
                f"{scores.shape} and {starts.shape}."
            )
        falls = np.diff(scores) < 0
        falls[bounds[1:-1][(bounds[1:-1] > 0) & (bounds[1:-1] < scores.size)] - 1] = False
        if falls.any() or not np.isfinite(scores).all():
            raise ValueError("scores must be finite, and in ascending order within each group and outcome.")
        if self.weights is not None:
            weights = np.array(self.weights, dtype=np.float64)
            if weights.shape != scores.shape or not ((weights > 0) & np.isfinite(weights)).all():
                raise ValueError(f"weights must be finite and above 0, one for each of {scores.size} scores.")
            weights.setflags(write=False)
            object.__setattr__(self, "weights", weights)
        scores.setflags(write=False)
        starts.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "starts", starts)

    @classmethod
    def from_rows(
        cls, y_score: Any, y_true: Any, groups: Any, *, n_groups: int, weights: Floats | None = None
    ) -> ScoreTally:
        """Return the score tally of rows.

        Parameters
        ----------
        y_score : array-like of shape (n_rows,)
            Scores; checked by :func:`check_scores`.
        y_true : array-like of {0, 1} of shape (n_rows,) or None
            Whether a row has the positive label; None without labels.
        groups : array-like of int of shape (n_rows,)
            Position of each row's group.
        n_groups : int
            Number of groups.
        weights : ndarray of shape (n_rows,), optional
            The weight of each row; rows with a weight of 0 are left out.

        Returns
        -------
        ScoreTally
        """
        scores = check_scores(y_score)
        n_outcomes = 1 if y_true is None else 2
        n_cells = n_groups * n_outcomes
        cell: NDArray[Any] = np.asarray(groups).astype(np.uint16 if n_cells <= _SMALL_CODES else np.int64)
        if y_true is not None:
            cell = np.multiply(cell, 2, dtype=cell.dtype) + np.asarray(y_true).astype(cell.dtype)
        if cell.shape != scores.shape:
            raise ValueError(
                f"y_score, y_true and groups must have one entry per row; got {scores.size} scores and {cell.size} rows."
            )
        if weights is not None:
            used = np.flatnonzero(weights)
            scores, cell, weights = scores[used], cell[used], weights[used]
        counts = np.bincount(cell, minlength=n_cells)
        order = np.argsort(cell, kind="stable")
        scores, weights = scores[order], None if weights is None else weights[order]
        starts = np.cumsum(counts) - counts
        _sort_runs(scores, starts, weights)
        return cls(scores, starts.reshape(n_groups, n_outcomes), weights)

    def __repr__(self) -> str:
        return f"<ScoreTally of {self.scores.size} rows, {self.n_groups} groups>"

    # ------------------------------------------------------------------------------------------------------------ reading
    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.starts)

    @property
    def labelled(self) -> bool:
        """Whether there are outcomes."""
        return self.starts.shape[1] == 2

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows by group and outcome, of shape (n_groups, n_outcomes)."""
        counts: NDArray[np.int64] = np.diff(np.append(self.starts.ravel(), self.scores.size))
        return counts.reshape(self.starts.shape)

    @cached_property
    def probabilities(self) -> bool:
        """Whether all scores lie in [0, 1]."""
        return bool(self.scores.size == 0 or (self.scores.min() >= 0 and self.scores.max() <= 1))

    def group(self, i: int) -> GroupScores:
        """Return the scores of group ``i``, with labels."""
        if not self.labelled:
            raise ValueError("there are no labels: scores cannot be told by outcome.")
        start, middle = self.starts[i]
        stop = self.starts[i + 1, 0] if i + 1 < self.n_groups else self.scores.size
        positives, negatives = self.scores[middle:stop], self.scores[start:middle]
        if self.weights is None or (self.weights[start:stop] == self.weights[start:stop][:1]).all():
            return GroupScores(positives, negatives, self.probabilities)
        return GroupScores(
            positives, negatives, self.probabilities, self.weights[middle:stop], self.weights[start:middle]
        )

    def mean(self) -> Floats:
        """Return the mean score of each group, weighted; NaN of an empty one."""
        counts: NDArray[Any] = self.counts.sum(1)
        weights = np.ones(self.scores.size) if self.weights is None else self.weights
        sums, totals = (
            np.add.reduceat(np.append(part, 0.0), self.starts[:, 0]) for part in (weights * self.scores, weights)
        )
        return np.where(counts > 0, sums, np.nan) / np.where(counts > 0, totals, 1)

    @cached_property
    def bins(self) -> ScoreBins:
        """Counts and sums by ten equal-width bins over [0, 1]; scores outside stand in the outermost bins."""
        return self.binned(bin_edges(N_BINS))

    def binned(self, edges: Floats) -> ScoreBins:
        """Return counts and sums by bins ``[edge, next edge)``, the last one closed.

        Parameters
        ----------
        edges : ndarray of shape (n_bins + 1,)
            In ascending order; the outermost are open to both sides.
        """
        bounds = np.append(self.starts.ravel(), self.scores.size)
        cuts = [
            start + np.searchsorted(self.scores[start:stop], edges[1:-1], side="left")
            for start, stop in pairwise(bounds)
        ]
        lower = np.column_stack([bounds[:-1], np.array(cuts, dtype=np.int64).reshape(bounds.size - 1, -1)])
        upper = np.column_stack([lower[:, 1:], bounds[1:]])
        counts = upper - lower
        some = counts.ravel() > 0
        parts = [self.scores, np.square(self.scores)]
        if self.weights is not None:
            parts = [*(self.weights * part for part in parts), self.weights, np.square(self.weights)]
        arrays: list[NDArray[Any]] = [counts]
        for part in parts:
            sums = np.zeros(counts.size)
            if some.any():  # the runs that hold rows follow one another without a gap, as reduceat wants them
                sums[some] = np.add.reduceat(part, lower.ravel()[some])
            arrays.append(sums)
        shape = (*self.starts.shape, edges.size - 1)
        return ScoreBins(*(np.moveaxis(array.reshape(shape), -1, 1) for array in arrays))

    # ---------------------------------------------------------------------------------------------------------- combining
    def merge(self, position: NDArray[np.intp], n_groups: int) -> ScoreTally:
        """Return the tally with group ``i`` counted as group ``position[i]`` of ``n_groups``.

        Parameters
        ----------
        position : ndarray of int of shape (self.n_groups,)
            Several groups may go to one place; places may stay empty.
        n_groups : int
            Number of groups of the result.

        Returns
        -------
        ScoreTally
        """
        if n_groups == self.n_groups and np.array_equal(position, np.arange(n_groups)):
            return self
        n_outcomes = self.starts.shape[1]
        target = (np.asarray(position)[:, None] * n_outcomes + np.arange(n_outcomes)).ravel()
        order = np.argsort(target, kind="stable")
        counts = np.bincount(target, weights=self.counts.ravel(), minlength=n_groups * n_outcomes).astype(np.int64)
        starts = np.cumsum(counts) - counts

        def moved(rows: Floats) -> Floats:
            sources = np.split(rows, self.starts.ravel()[1:])
            return np.concatenate([sources[i] for i in order])

        scores, weights = moved(self.scores), None if self.weights is None else moved(self.weights)
        _sort_runs(scores, starts, weights)
        return ScoreTally(scores, starts.reshape(n_groups, n_outcomes), weights)

    def __add__(self, other: ScoreTally | ScoreBins) -> ScoreTally | ScoreBins:
        if isinstance(other, ScoreBins):
            return self.bins + other
        if (self.weights is None) != (other.weights is None):
            raise ValueError("scores of weighted rows and of unweighted ones do not add.")
        n = self.n_groups
        both = ScoreTally(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.starts, other.starts + self.scores.size]),
            None if self.weights is None or other.weights is None else np.concatenate([self.weights, other.weights]),
        )
        return both.merge(np.concatenate([np.arange(n), np.arange(n)]), n)

    def __reduce__(self) -> Any:
        return ScoreTally, (self.scores, self.starts, self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return the bins as plain JSON types: single scores are nearly rows, and are not stored."""
        return self.bins.to_dict()


def _sort_runs(scores: Floats, starts: NDArray[np.int64], weights: Floats | None = None) -> None:
    """Sort each run in place, rows with one score by their weight."""
    for start, stop in zip(starts.tolist(), [*starts.tolist()[1:], scores.size], strict=True):
        if weights is None:
            scores[start:stop].sort()
        else:
            order = start + np.lexsort((weights[start:stop], scores[start:stop]))
            scores[start:stop], weights[start:stop] = scores[order], weights[order]
