"""``matched_pairs``: people of different groups who are alike, and whose scores are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._validation import Column, encode_groups, sensitive_columns, show
from sklearn_ethiclens.individual._consistency import check_whole, pair_distances
from sklearn_ethiclens.individual._features import (
    Features,
    Metric,
    Space,
    check_metric,
    check_rows,
    content_order,
    make_space,
    read_features,
    read_scores,
    starts_of_equal_rows,
)
from sklearn_ethiclens.individual._search import Integers, Neighbours, nearby_order, nearest, ranges
from sklearn_ethiclens.inference._intervals import wilson_interval
from sklearn_ethiclens.inference._pairs import draw_cross_pairs, draw_rows
from sklearn_ethiclens.inference._resampling import as_seed

SAMPLED_PAIRS = 1_000_000
MAX_COMBINATIONS = 60
_GUARD = 1e-12
_CLOSEST = 10  # percent of pairs that are alike where no threshold is given
_TIED_DIGITS = 12
_MAX_EXPANDED = 1 << 21

Floats = NDArray[Any]


def matched_pairs(
    X: Any,
    y_score: Any,
    sensitive_features: Any,
    *,
    distance_threshold: float | None = None,
    prediction_threshold: float = 0.10,
    high_risk_distance: float = 0.10,
    high_risk_difference: float = 0.20,
    n_neighbors: int = 5,
    max_pairs: int = 100_000,
    max_samples: int | None = None,
    metric: Metric = "mixed",
    scale: str | None = "auto",
    categorical_features: Sequence[Any] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 1,
) -> pd.DataFrame:
    """Return pairs of people of different groups who are alike but scored differently, high risk first.

    Each row is compared with its k nearest of every other group; of these, the pairs closer than ``distance_threshold``
    whose scores differ by more than ``prediction_threshold`` are returned. They are cases to look at, one by one. They are no
    rate: ``attrs`` estimate how many such pairs there are in all. A pair is as alike as the distance says, and no more.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_rows, n_features)
        The features that say who is alike. With the sensitive columns among them, pairs of different groups are never quite
        alike; to look for people who differ in nothing else, leave them out.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or decisions 0 and 1.
    sensitive_features : Series, DataFrame, dict or array
        The groups. Of several columns, a group is a combination of their values, and a pair differs in at least one.
    distance_threshold : float, optional
        Pairs are alike below this. By default the distance that the closest 10% of pairs across groups keep to.
    prediction_threshold : float, default=0.10
        Scores are apart above this.
    high_risk_distance, high_risk_difference : float, default=0.10, 0.20
        A pair is high risk if it is closer than the first and its scores differ by more than the second. The default distance is
        meant for ``"mixed"``, which lies in [0, 1].
    n_neighbors : int, default=5
        How many of each other group a row is compared with. Of rows equally far, those whose scores differ more.
    max_pairs : int, default=100_000
        Return at most so many.
    max_samples : int, optional
        Seek the partners of only so many rows, drawn at random; they are sought among all rows.
    metric, scale, categorical_features, n_jobs, random_state, verbose
        As in :func:`consistency_score`.

    Returns
    -------
    DataFrame
        ``individual_a, individual_b`` (index labels of X, else positions), ``distance``, ``prediction_diff``, for each sensitive
        column its values ``<name>_a`` and ``<name>_b``, ``protected_attr_differs``, ``high_risk``; sorted by high risk, then by
        difference, then by distance. ``attrs``:

        ``n_found``
            Pairs found, of which at most ``max_pairs`` are returned.
        ``n_total, n_total_low, n_total_high, estimated``
            All pairs across groups within the thresholds, whether or not among the k nearest; with a 95% Wilson interval
            where estimated from a million pairs.
        ``n_cross_pairs, n_rows, n_sampled, distance_threshold, prediction_threshold, metric, scale, n_neighbors, random_state``
            What it was made of.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": [50, 51, 20], "years": [5, 5, 1]}, index=["Ann", "Bob", "Cid"])
    >>> pairs = matched_pairs(X, [0.4, 0.7, 0.3], pd.Series(["F", "M", "M"], index=X.index, name="sex"), distance_threshold=0.2)
    >>> pairs[["individual_a", "individual_b", "sex_a", "sex_b", "high_risk"]].values.tolist()
    [['Ann', 'Bob', 'F', 'M', True]]
    """
    name, scale = check_metric(metric, scale)
    columns = sensitive_columns(sensitive_features)
    frames = sensitive_features if isinstance(sensitive_features, pd.DataFrame | pd.Series) else None
    n_rows = check_rows(X=X, y_score=y_score, **({"sensitive_features": frames} if frames is not None else columns))
    for value, what in ((n_neighbors, "n_neighbors"), (max_pairs, "max_pairs")):
        check_whole(value, what, 1)
    if max_samples is not None:
        check_whole(max_samples, "max_samples", 1)
    if distance_threshold is not None and not distance_threshold > 0:
        raise ValueError(f"distance_threshold must be above 0 (pairs are alike below it); got {distance_threshold!r}.")
    seed, scores, encoded = as_seed(random_state), read_scores(y_score), encode_groups(columns)
    groups = _combined(encoded, n_rows)
    features = read_features(X, categorical_features)
    order = content_order(features, groups, scores)
    features, scores, groups = features.take(order), scores[order], groups[order]
    space = make_space(features, metric, scale)

    pairs = draw_cross_pairs(groups, SAMPLED_PAIRS, seed)
    distance = pair_distances(space, pairs, n_jobs, verbose)
    if distance_threshold is None:
        known = distance[np.isfinite(distance)]
        cut = float(np.percentile(known, _CLOSEST)) if known.size else 0.0
        distance_threshold = cut + _GUARD * max(1.0, cut) * 2  # "below" takes the closest 10% in
    apart = np.abs(scores[pairs.first] - scores[pairs.second]) > prediction_threshold + _GUARD
    n_within = int(np.count_nonzero((distance < distance_threshold) & apart))
    low, high = wilson_interval(n_within, distance.size)
    share = pairs.total / distance.size

    anchor = np.zeros(n_rows, dtype=bool)
    anchor[draw_rows(n_rows, max_samples, seed)] = True
    runs = _Runs.of(features, groups, scores, anchor)
    thresholds = _Thresholds(
        distance_threshold, prediction_threshold, high_risk_distance, high_risk_difference, max_pairs
    )
    found = _across(space, runs, n_neighbors, thresholds, n_jobs, verbose)
    at_a, at_b = order[found.first], order[found.second]
    values = {
        f"{key}_{side}": _values(column, at)
        for key, column in encoded.items()
        for side, at in (("a", at_a), ("b", at_b))
    }
    frame = pd.DataFrame(
        {
            "individual_a": features.index[found.first],
            "individual_b": features.index[found.second],
            "distance": found.distance,
            "prediction_diff": found.difference,
            **values,
            "protected_attr_differs": np.ones(found.first.size, dtype=bool),
            "high_risk": found.risk,
        }
    )
    frame.attrs.update(
        n_found=found.n_found,
        n_total=round(n_within * share),
        n_total_low=n_within if pairs.exact else int(np.floor(float(low) * pairs.total)),
        n_total_high=n_within if pairs.exact else int(np.ceil(float(high) * pairs.total)),
        estimated=not pairs.exact,
        n_cross_pairs=pairs.total,
        n_rows=n_rows,
        n_sampled=int(anchor.sum()),
        distance_threshold=float(distance_threshold),
        prediction_threshold=prediction_threshold,
        metric=name,
        scale=scale,
        n_neighbors=n_neighbors,
        random_state=seed,
    )
    return frame


def _combined(encoded: dict[str, Column], n_rows: int) -> NDArray[np.intp]:
    """Return one code for each combination of values that occurs."""
    codes = np.zeros(n_rows, dtype=np.intp)
    for column in encoded.values():
        codes = codes * len(column.levels) + column.codes.astype(np.intp)
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    n_groups = int(codes.max()) + 1
    named = " and ".join(repr(name) for name in encoded)
    if n_groups < 2:
        raise ValueError(f"all rows have the same {named}; pairs of different groups need at least two.")
    if n_groups > MAX_COMBINATIONS:
        raise ValueError(
            f"{named} make {n_groups} groups (at most {MAX_COMBINATIONS}), which are compared two by two. Pass fewer columns, "
            f"or merge values."
        )
    return codes


def _values(column: Column, rows: Integers) -> pd.Series:
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = [level if isinstance(level, str | int | float | bool) else show(level) for level in column.levels]
    return pd.Series(levels[column.codes[rows]]).infer_objects()


@dataclass(frozen=True, eq=False)
class _Runs:
    """Rows of equal features and group, which stand together in the order of content, sorted by score: one point each."""

    scores: Floats
    anchor: NDArray[np.bool_]  # whose partners are sought
    starts: Integers
    size: Integers
    group: Integers

    @classmethod
    def of(cls, features: Features, groups: Integers, scores: Floats, anchor: NDArray[np.bool_]) -> _Runs:
        """Return the runs of rows in the order of content."""
        new = np.diff(groups, prepend=-1) != 0
        new[starts_of_equal_rows(features)] = True
        starts = np.flatnonzero(new)
        return cls(scores, anchor, starts, np.diff(np.append(starts, groups.size)), groups[starts])

    def extremes(self, runs: Integers, k: int) -> tuple[Integers, Integers]:
        """Return the k lowest and k highest rows of runs by score, and the position in ``runs`` of each.

        Whatever score they are compared with, the k rows that differ most from it are among them.
        """
        taken = np.minimum(self.size[runs], 2 * k)
        offset, of = ranges(np.zeros_like(taken), taken)
        skipped = np.where(offset >= k, (self.size[runs] - taken)[of], 0)
        return self.starts[runs][of] + offset + skipped, of


class _Thresholds(NamedTuple):
    """When a pair is listed, when it is high risk, and how many are kept."""

    distance: float
    prediction: float
    high_distance: float
    high_difference: float
    max_pairs: int


@dataclass(frozen=True, eq=False)
class _Found:
    """Listed pairs, the most serious first, and how many there were."""

    first: Integers
    second: Integers
    distance: Floats
    difference: Floats
    risk: NDArray[np.bool_]
    n_found: int

    @classmethod
    def ranked(
        cls, first: Any, second: Any, distance: Any, scores: Floats, limits: _Thresholds, n_found: int
    ) -> _Found:
        """Return the pairs in order of concern, at most ``max_pairs`` of them."""
        difference = np.abs(scores[first] - scores[second])
        risk = (distance < limits.high_distance - _GUARD) & (difference > limits.high_difference + _GUARD)
        top = np.lexsort((second, first, distance, -difference, ~risk))[: limits.max_pairs]
        return cls(first[top], second[top], distance[top], difference[top], risk[top], n_found)


def _across(space: Space, runs: _Runs, k: int, limits: _Thresholds, n_jobs: int | None, verbose: int) -> _Found:
    """Return the pairs found as the k nearest of each other group; the first of a pair is of the earlier group."""
    points = space.take(runs.starts)
    wanted = np.logical_or.reduceat(runs.anchor, runs.starts)
    order = nearby_order(points)
    none = np.empty(0, dtype=np.intp)
    found = _Found.ranked(none, none, np.empty(0), runs.scores, limits, 0)

    def consume(block: Neighbours) -> tuple[Integers, Integers, Floats]:
        return _partners(block, runs, k, limits)

    for one, other in combinations(range(int(runs.group.max()) + 1), 2):
        parts = []
        for group, others in ((one, other), (other, one)):
            rows = order[(runs.group[order] == group) & wanted[order]]
            pool = np.flatnonzero(runs.group == others)
            for row, partner, distance in nearest(
                points,
                rows,
                pool,
                k,
                consume,
                limit=limits.distance,
                n_jobs=n_jobs,
                verbose=verbose,
                words="matched pairs",
            ):
                parts.append((row, partner, distance) if group == one else (partner, row, distance))
        first, second, distance = (
            (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else (none, none, none)
        )
        _, once = np.unique(first * runs.scores.size + second, return_index=True)
        found = _Found.ranked(
            np.append(found.first, first[once]),
            np.append(found.second, second[once]),
            np.append(found.distance, distance[once]),
            runs.scores,
            limits,
            found.n_found + once.size,
        )
    return found


def _partners(block: Neighbours, runs: _Runs, k: int, limits: _Thresholds) -> tuple[Integers, Integers, Floats]:
    """Return the pairs of the rows of a block with their k nearest, as far as they are within the thresholds."""
    near = block.distance < limits.distance
    candidate, of = runs.extremes(block.found[near], k)
    owner, length = block.owner[near][of], block.distance[near][of]
    ends = np.searchsorted(owner, np.arange(block.rows.size + 1))
    rows, run = ranges(runs.starts[block.rows], runs.size[block.rows])
    rows, run = rows[runs.anchor[rows]], run[runs.anchor[rows]]
    ahead = np.diff(ends)[run]  # candidates of each row
    parts = []
    for some in np.split(np.arange(rows.size), np.flatnonzero(np.diff(np.cumsum(ahead) // _MAX_EXPANDED)) + 1):
        taken, of_row = ranges(ends[run[some]], ahead[some])
        row, partner, distance = rows[some][of_row], candidate[taken], length[taken]
        difference = np.abs(runs.scores[row] - runs.scores[partner])
        order = np.lexsort((partner, -difference, np.round(distance, _TIED_DIGITS), of_row))
        ranked = of_row[order]
        place = np.arange(ranked.size) - np.searchsorted(ranked, ranked)  # among the partners of a row
        kept = order[(place < k) & (difference[order] > limits.prediction + _GUARD)]
        parts.append((row[kept], partner[kept], distance[kept]))
    row, partner, distance = (np.concatenate(part) for part in zip(*parts, strict=True))
    return row, partner, distance
