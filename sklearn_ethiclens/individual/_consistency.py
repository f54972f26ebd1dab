"""``consistency_score``: 1 minus how far the scores of alike people are apart, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.individual._blocks import in_blocks
from sklearn_ethiclens.individual._features import (
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
from sklearn_ethiclens.individual._similarity import read_similarity, scan_similar
from sklearn_ethiclens.inference._intervals import check_fraction
from sklearn_ethiclens.inference._pairs import Pairs, draw_pairs, draw_rows, resampled_means
from sklearn_ethiclens.inference._resampling import as_seed, check_n_resamples

BANDS = ((0.90, "excellent"), (0.80, "good"), (0.70, "warning"))
_GUARD = 1e-12  # .1 + .2 is no reason to miss a threshold, nor a tie
_TIED = 1e-9
_PAIR_BLOCK = 1 << 15
_ANCHORS = 256  # rows in the blocks from which pairs are drawn for a distance that only takes blocks

Floats = NDArray[Any]


@dataclass(frozen=True)
class ConsistencyResult:
    """A consistency score, its interval, and the convention it follows; ``float(result)`` is the score.

    Attributes
    ----------
    score : float
        1 - ``mean_difference``, in [0, 1]; 1 where alike people have equal scores.
    low, high : float
        Interval by resampling rows; NaN where the score is.
    band : str
        "excellent" from .90, "good" from .80, "warning" from .70, else "fail"; "undefined" without a score. Of the score,
        not of the interval: look at both.
    convention : str
        In words: who was compared with whom.
    method : str
        "neighbors" or "similar_pairs".
    metric, scale : str or None
        Of the distance.
    n_rows, n_compared : int
        Rows given, and rows whose consistency was measured: fewer with ``max_samples``, or where rows have no feature in
        common with any other.
    n_similar_pairs : int
        Ordered pairs of a row and its neighbour, or similar pairs; an estimate if ``estimated``.
    mean_difference, max_difference : float
        Of the compared scores; the maximum is over the pairs looked at.
    distance_threshold : float
        Largest distance (least similarity) of a similar pair; NaN for neighbours.
    n_pairs : int
        Pairs looked at; 0 for neighbours.
    estimated : bool
        Whether pairs or rows were drawn rather than all looked at.
    degenerate : bool
        All replicates are equal: the interval has no width, which is no proof of certainty.
    confidence_level : float
        Of the interval.
    n_resamples, random_state : int
        Replicates, and the seed of all draws.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> result = consistency_score(X, [0.2, 0.4, 0.9, 0.9], n_neighbors=1)
    >>> round(float(result), 3), result.band
    (0.9, 'excellent')
    """

    score: float
    low: float
    high: float
    band: str
    convention: str
    method: str
    metric: str | None
    scale: str | None
    n_rows: int
    n_compared: int
    n_similar_pairs: int
    mean_difference: float
    max_difference: float
    distance_threshold: float
    n_pairs: int
    estimated: bool
    degenerate: bool
    confidence_level: float
    n_resamples: int
    random_state: int

    def __float__(self) -> float:
        return self.score

    def __str__(self) -> str:
        return (
            f"consistency {self.score:.3f} [{self.low:.3f}, {self.high:.3f}], {self.band}: {self.convention}; "
            f"{self.n_compared:,} of {self.n_rows:,} rows, {self.n_similar_pairs:,} similar pairs"
            f"{' (estimated)' if self.estimated else ''}, seed {self.random_state}"
        )


@dataclass(frozen=True)
class _Measured:
    """What a method found: the mean difference, and what each row adds to it."""

    mean: float
    largest: float
    influence: Floats
    convention: str
    n_compared: int
    n_similar: int
    threshold: float = float("nan")
    n_pairs: int = 0
    estimated: bool = False


def consistency_score(
    X: Any,
    y_score: Any,
    *,
    method: str = "neighbors",
    n_neighbors: int = 5,
    include_self: bool = False,
    metric: Metric = "mixed",
    scale: str | None = "auto",
    categorical_features: Sequence[Any] | None = None,
    similarity: Any = None,
    similarity_percentile: float = 90,
    similarity_threshold: float = 0.9,
    max_pairs: int = 1_000_000,
    max_samples: int | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 1,
) -> ConsistencyResult:
    r"""Consistency: 1 minus the mean difference between the scores of people who are alike.

    ``"neighbors"`` is :math:`1 - \frac1n \sum_i |y_i - \frac1k \sum_{j \in N_k(i)} y_j|` of Zemel et al. (2013).
    ``"similar_pairs"`` is :math:`1 - \operatorname{mean} |y_i - y_j|` over similar pairs. A high score says that scores vary
    smoothly over the features. It does not say that groups are treated alike: a model may be consistent and closed to a
    group. And it is only as good as the distance: features that should not count make unlike people alike.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_rows, n_features)
        The features that say who is alike (pandas, polars, pyarrow, numpy). Sensitive columns among them are the caller's choice.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or decisions 0 and 1.
    method : {"neighbors", "similar_pairs"}, default="neighbors"
        Who is compared.
    n_neighbors : int, default=5
        k. Where rows are equally far, at the k-th distance, their mean counts: the order of rows never matters.
    include_self : bool, default=False
        Count each row as its own nearest neighbour, as AIF360's ``consistency_score`` does (with ``metric="euclidean"`` and
        ``scale=None``). It raises the score: by a fifth of the way to 1 for k = 5, where neighbours are unrelated.
    metric : {"mixed", "euclidean", "mahalanobis"} or callable, default="mixed"
        The distance; see :mod:`sklearn_ethiclens.individual`.
    scale : {"auto", "range", "robust", "standard", None}, default="auto"
        How numbers are scaled: by their range ("mixed"), by the range of their central 95% with what is beyond set to its ends
        ("robust"), by their standard deviation ("euclidean", callable), or not ("mahalanobis" scales itself).
    categorical_features : list, optional
        Columns (of an array: positions) whose numbers are codes.
    similarity : array or sparse matrix of shape (n_rows, n_rows), or callable, optional
        Similarities in place of a distance, for ``"similar_pairs"``: pairs above ``similarity_threshold`` are similar. See
        :func:`similarity_violations`.
    similarity_percentile : float, default=90
        Similar are the closest (100 - this)% of pairs.
    similarity_threshold : float, default=0.9
        For ``similarity``.
    max_pairs : int, default=1_000_000
        Where there are more pairs, the percentile and the mean are estimated from that many, drawn at random.
    max_samples : int, optional
        Measure only so many rows, drawn at random. Their neighbours are still sought among all rows, so that the score is no
        less close; for similar pairs, both are drawn.
    confidence_level : float, default=0.95
        Of the interval.
    n_resamples : int, default=1000
        Replicates.
    n_jobs : int, optional
        Threads; the result is the same, to the byte.
    random_state : int, Generator or None, default=0
        Seed of all draws; None draws one, which the result states.
    verbose : int, default=1
        A bar on a terminal for what takes over two seconds; 0 is silent.

    Returns
    -------
    ConsistencyResult

    Notes
    -----
    The interval resamples rows by what each adds to the mean: its own difference, and, to first order, its share in the
    differences of the rows whose neighbour it is. Drawing whole data sets with replacement is not valid here: a row drawn
    twice is its own nearest neighbour (Abadie and Imbens 2008). Who is whose neighbour, and the
    scale of the features, are taken as given: where extreme values move a range from sample to sample, ``scale="robust"`` or
    ``"standard"`` is steadier.

    Coverage of 95% intervals, in 400 simulated samples of 100 and 400 of 400 rows each (Monte-Carlo error: 1 to 2 points), with
    two or five normal features, two log-normal ones, or numbers and categories, and scores that follow a feature, decisions
    drawn with that probability, or scores of no relation to the features. Over neighbours: 95 to 100%, rather too wide. Over
    similar pairs: 93 to 99%, but less where scores follow features whose range moves: 88% (five normal features, 400 rows), 85%
    and 73% (log-normal, 100 and 400 rows; 88 to 92% with ``scale="robust"`` or ``"standard"``). Close to a score of 1 they cover
    less: with one decision in 50 positive, 70 to 85% at 100 rows and 89 to 96% at 400.

    References
    ----------
    Zemel, Wu, Swersky, Pitassi and Dwork 2013, Learning Fair Representations. Gower 1971, A general coefficient of
    similarity. Abadie and Imbens 2008, On the failure of the bootstrap for matching estimators.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": [10, 11, 50, 52], "job": ["a", "a", "b", "b"]})
    >>> float(consistency_score(X, [0, 1, 1, 1], n_neighbors=1))
    0.5
    """
    if method not in ("neighbors", "similar_pairs"):
        raise ValueError(f"method must be 'neighbors' or 'similar_pairs'; got {method!r}.")
    name, scale = check_metric(metric, scale)
    check_fraction(confidence_level, "confidence_level")
    check_n_resamples(n_resamples)
    n_rows = check_rows(X=X, y_score=y_score)
    check_whole(n_neighbors, "n_neighbors", 1)
    check_whole(max_pairs, "max_pairs", 1)
    if max_samples is not None:
        check_whole(max_samples, "max_samples", 2)
    if not 0 <= similarity_percentile < 100:
        raise ValueError(f"similarity_percentile must be in [0, 100); got {similarity_percentile!r}.")
    seed, scores = as_seed(random_state), read_scores(y_score)
    if similarity is not None:
        if method != "similar_pairs":
            raise ValueError("similarity says which pairs are similar: pass it with method='similar_pairs'.")
        measured = _over_similarity(similarity, scores, X, similarity_threshold, max_samples, seed, n_jobs, verbose)
        name, scale = "similarity", None
    else:
        features = read_features(X, categorical_features)
        order = content_order(features, scores)
        features, scores = features.take(order), scores[order]
        space = make_space(features, metric, scale)
        if method == "neighbors":
            if n_neighbors > n_rows - (not include_self):
                others = "rows" if include_self else "other rows"
                raise ValueError(
                    f"n_neighbors must be at most the number of {others}, {n_rows - (not include_self)}; got {n_neighbors}."
                )
            measured = _over_neighbours(
                space,
                scores,
                starts_of_equal_rows(features),
                n_neighbors,
                include_self,
                max_samples,
                seed,
                n_jobs,
                verbose,
            )
        else:
            measured = _over_pairs(space, scores, similarity_percentile, max_pairs, max_samples, seed, n_jobs, verbose)
    return _result(measured, n_rows, method, name, scale, confidence_level, n_resamples, seed)


def _result(
    measured: _Measured,
    n_rows: int,
    method: str,
    metric: str,
    scale: str | None,
    confidence_level: float,
    n_resamples: int,
    seed: int,
) -> ConsistencyResult:
    score, low, high, degenerate = 1 - measured.mean, np.nan, np.nan, False
    if np.isnan(score):
        warn(
            f"consistency is undefined: there are no similar pairs ({measured.convention}).",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    else:
        means = score - resampled_means(measured.influence, n_resamples, seed)
        tail = (1 - confidence_level) / 2
        low, high = np.clip(np.quantile(means, [tail, 1 - tail]), 0.0, 1.0)
        degenerate = bool(np.ptp(means) <= 2 * _GUARD)
        if degenerate:
            low = high = score
    return ConsistencyResult(
        score=float(score),
        low=float(low),
        high=float(high),
        band=band_of(score),
        convention=measured.convention,
        method=method,
        metric=metric,
        scale=scale,
        n_rows=n_rows,
        n_compared=measured.n_compared,
        n_similar_pairs=measured.n_similar,
        mean_difference=float(measured.mean),
        max_difference=float(measured.largest),
        distance_threshold=measured.threshold,
        n_pairs=measured.n_pairs,
        estimated=measured.estimated,
        degenerate=degenerate,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        random_state=seed,
    )


def band_of(score: float) -> str:
    """Return the word for a score.

    Examples
    --------
    >>> [band_of(score) for score in (0.95, 0.90, 0.80, 0.70, 0.69)]
    ['excellent', 'excellent', 'good', 'warning', 'fail']
    """
    if np.isnan(score):
        return "undefined"
    return next((word for floor, word in BANDS if score >= floor - _GUARD), "fail")


def check_whole(value: Any, name: str, least: int) -> None:
    """Refuse what is no whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


# ----------------------------------------------------------------------------------------------------------- neighbours
def _over_neighbours(
    space: Space,
    scores: Floats,
    starts: Integers,
    k: int,
    include_self: bool,
    max_samples: int | None,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> _Measured:
    """Compare each row with the mean of its k nearest.

    Rows with equal features are searched for once, as one point of that weight: data of few distinct rows cost nothing, and
    ties are met as a whole.
    """
    n = scores.size
    weight = np.diff(np.append(starts, n))
    point = np.repeat(np.arange(starts.size), weight)
    total = np.add.reduceat(scores, starts)
    drawn = np.zeros(n, dtype=bool)
    drawn[draw_rows(n, max_samples, seed)] = True
    blank = np.isinf(space.between(starts, starts)) if space.missing else np.zeros(starts.size, dtype=bool)
    measured = drawn & ~blank[point]  # a row without any feature is like no other, nor like itself

    alike = weight - (not include_self)  # rows with the same features, at distance 0
    wanted = np.maximum(k - alike, 0)  # rows still to be found elsewhere
    nearby = np.zeros(starts.size)  # the sum of their scores
    taken = np.zeros(starts.size)  # how many were found
    # What each point adds to the differences of others: by unit of score, and at all.
    in_differences = np.zeros((2, starts.size))
    sought = np.logical_or.reduceat(measured, starts) & (wanted > 0)

    def means_of(rows: Integers, owner: Integers, nearby: Floats, taken: Floats) -> tuple[Floats, Floats]:
        """The mean of the neighbours of rows, given the sums over those found elsewhere; and how many they are."""
        own, count = scores[rows], alike[owner] + taken
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (total[owner] - own * (not include_self) + nearby) / count
        return np.where(np.abs(mean - own) <= _GUARD, own, mean), count

    def consume(block: Neighbours) -> tuple[Any, ...]:
        owner, rows = block.owner, block.rows
        shares, count = _shares(block, owner, weight[block.found], wanted[rows])
        summed = np.bincount(owner, shares * total[block.found], minlength=rows.size)
        members, of = ranges(starts[rows], weight[rows])
        mean, count_of = means_of(members, rows[of], summed[of], count[of])
        slope, offset = _passed_on(mean, scores[members], measured[members], count_of, k)
        by_row = np.bincount(of, slope, minlength=rows.size)
        at_all = np.bincount(of, offset, minlength=rows.size)
        return rows, summed, count, block.found, shares * by_row[owner], shares * at_all[owner]

    if sought.any():
        points = space.take(starts)
        order, everywhere = nearby_order(points), np.arange(starts.size)
        for rows, summed, count, found, by_score, at_all in nearest(
            points, order[sought[order]], everywhere, k, consume, n_jobs=n_jobs, verbose=verbose
        ):
            nearby[rows], taken[rows] = summed, count
            np.add.at(in_differences[0], found, by_score)
            np.add.at(in_differences[1], found, at_all)

    mean, count = means_of(np.arange(n), point, nearby[point], taken[point])
    undefined = (drawn & blank[point]) | (measured & (count == 0))
    measured &= ~undefined
    n_measured, difference = int(measured.sum()), np.abs(scores - mean)
    if undefined.any():
        warn(
            f"{int(undefined.sum())} rows have no feature in common with any other row and are left out.",
            UndefinedMetricWarning,
            stacklevel=4,
        )
    who = "included (AIF360)" if include_self else "excluded (Zemel et al. 2013)"
    words = f"each row with the mean of its {k} nearest, itself {who}"
    if not n_measured:
        return _Measured(np.nan, np.nan, np.zeros(n), words, 0, 0)
    average = float(difference[measured].mean())

    # What each row adds: its own difference, and its share in the differences of those whose neighbour it is.
    slope, offset = _passed_on(mean, scores, measured, count, k)
    by_score = np.add.reduceat(slope, starts)[point] - slope * (not include_self) + in_differences[0][point]
    at_all = np.add.reduceat(offset, starts)[point] - offset * (not include_self) + in_differences[1][point]
    if k == 1:
        influence = at_all - average * by_score
    else:  # the neighbour's score is part of the mean it is held against, which takes 1/k from its variance
        influence = (scores * by_score - at_all) * np.sqrt(k / (k - 1))
    influence[measured] += difference[measured] - average
    influence *= n / n_measured
    return _Measured(
        average,
        float(difference[measured].max()),
        influence,
        words,
        n_measured,
        n_measured * k,
        estimated=n_measured < n - int(undefined.sum()),
    )


def _passed_on(
    mean: Floats, scores: Floats, measured: NDArray[np.bool_], count: Floats, k: int
) -> tuple[Floats, Floats]:
    """Return what a row passes on to each of its neighbours: a factor of the neighbour's score, and an offset.

    Its difference changes with the score of a neighbour by the sign of the difference over the number of neighbours, seen from
    their mean. A single neighbour is its own mean: it takes the difference itself, less the average.
    """
    known = measured & (count > 0)
    gap = np.where(known, np.nan_to_num(mean) - scores, 0.0)
    each = np.divide(1.0, count, out=np.zeros(scores.size), where=known)
    if k == 1:
        return each, each * np.abs(gap)
    slope = np.sign(gap) * each
    return slope, slope * np.nan_to_num(mean)


def _shares(block: Neighbours, owner: Integers, weight: Integers, wanted: Integers) -> tuple[Floats, Floats]:
    """Return how many rows of each found point count, and how many count in all, so that they make up the wanted number.

    Points at the distance where the number is reached share what is left of it, by their weight.
    """
    n_rows = block.rows.size
    if not owner.size:
        return np.empty(0), np.zeros(n_rows)
    running = np.cumsum(weight)
    before = np.concatenate([[0], running])[block.bounds[:-1]]
    reached = running - before[owner] >= wanted[owner]
    last = np.full(n_rows, np.inf)
    np.minimum.at(last, owner[reached], block.distance[reached])
    tolerance = _TIED * np.where(np.isfinite(last), last, 0.0) + _GUARD
    closer = block.distance < (last - tolerance)[owner]
    tied = ~closer & (block.distance <= (last + tolerance)[owner])
    n_closer = np.bincount(owner, weight * closer, minlength=n_rows)
    n_tied = np.bincount(owner, weight * tied, minlength=n_rows)
    share = np.divide(wanted - n_closer, n_tied, out=np.zeros(n_rows), where=n_tied > 0)
    return closer + tied * share[owner], np.where(n_tied > 0, wanted, n_closer)


# -------------------------------------------------------------------------------------------------------- similar pairs
def _over_pairs(
    space: Space,
    scores: Floats,
    percentile: float,
    max_pairs: int,
    max_samples: int | None,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> _Measured:
    """Compare the closest pairs, out of all or of those drawn."""
    n = scores.size
    chosen = draw_rows(n, max_samples, seed)
    pairs = draw_pairs(chosen.size, max_pairs, seed)
    pairs = pairs._replace(first=chosen[pairs.first], second=chosen[pairs.second])
    distance = pair_distances(space, pairs, n_jobs, verbose)
    words = f"the closest {100 - percentile:g}% of pairs"
    known = np.isfinite(distance)
    if not known.any():
        return _Measured(np.nan, np.nan, np.zeros(n), words, 0, 0, n_pairs=distance.size)
    share = 100 - percentile
    cuts = np.percentile(distance if known.all() else distance[known], [0.9 * share, share, min(100.0, 1.1 * share)])
    inner, threshold, outer = map(float, cuts)
    similar = distance <= threshold + _GUARD * max(1.0, threshold)
    first, second = pairs.first[similar], pairs.second[similar]
    difference = np.abs(scores[first] - scores[second])
    average = float(difference.mean())
    # The threshold moves with the sample: at its edge, pairs of the difference found there come in and go out.
    edge = (distance >= inner) & (distance <= outer)
    edge = edge if edge.any() else similar
    at_edge = float(np.abs(scores[pairs.first[edge]] - scores[pairs.second[edge]]).mean())
    added = (difference - at_edge) * (chosen.size / difference.size)
    influence: Floats = np.bincount(first, added, minlength=n) + np.bincount(second, added, minlength=n)
    looked_at = np.bincount(pairs.first[known], minlength=n) + np.bincount(pairs.second[known], minlength=n)
    influence = influence - looked_at * ((average - at_edge) * chosen.size / int(known.sum()))
    return _Measured(
        average,
        float(difference.max()),
        influence[chosen],
        words,
        chosen.size,
        round(float(similar.mean()) * pairs.total),
        threshold,
        distance.size,
        not pairs.exact or chosen.size < n,
    )


def pair_distances(space: Space, pairs: Pairs, n_jobs: int | None, verbose: int) -> Floats:
    """Return the distance of each pair, block by block."""
    distance = np.empty(pairs.first.size)
    blocks = [slice(start, start + _PAIR_BLOCK) for start in range(0, distance.size, _PAIR_BLOCK)]

    def work(block: slice) -> None:
        first, second = pairs.first[block], pairs.second[block]
        if space.function is None:
            distance[block] = space.between(first, second)
        else:
            distance[block] = _by_function(space, first, second)

    for _ in in_blocks(work, blocks, n_jobs=n_jobs, verbose=verbose, words="pairs"):
        pass
    return distance


def _by_function(space: Space, first: Integers, second: Integers) -> Floats:
    """Return the distances of pairs by a function that takes blocks: each row with its partners, one call a row."""
    order = np.argsort(first, kind="stable")
    distance = np.empty(first.size)
    for part in np.split(order, np.flatnonzero(np.diff(first[order])) + 1):
        distance[part] = space.block(first[part[:1]], second[part])[0]
    return distance


# ----------------------------------------------------------------------------------------------------------- similarity
def _over_similarity(
    similarity: Any,
    scores: Floats,
    X: Any,
    threshold: float,
    max_samples: int | None,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> _Measured:
    """Compare all pairs that the caller's similarity says are alike."""
    blocks = read_similarity(similarity, scores.size, X)
    chosen = draw_rows(scores.size, max_samples, seed)
    found = scan_similar(blocks, scores, chosen, threshold, None, 0, n_jobs, verbose)
    words = f"pairs of similarity above {threshold:g}"
    n_pairs = chosen.size * (chosen.size - 1) // 2
    sampled = chosen.size < scores.size
    share = scores.size * (scores.size - 1) / (2 * n_pairs)
    if not found.n_similar:
        return _Measured(np.nan, np.nan, np.zeros(chosen.size), words, chosen.size, 0, threshold, n_pairs, sampled)
    average = found.total / found.n_similar
    influence = (found.by_row - average * found.similar_by_row) * (chosen.size / found.n_similar)
    n_similar = round(found.n_similar * share)
    return _Measured(average, found.largest, influence, words, chosen.size, n_similar, threshold, n_pairs, sampled)
