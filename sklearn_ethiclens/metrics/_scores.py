"""The catalogue of metrics of scores: calibration, Brier score and area under the curve, of groups and of comparisons.

They read the sorted scores of a group (:class:`GroupScores`), where the metrics of ``METRICS`` read its counts of decisions.
To add one, write an entry in ``SCORE_METRICS`` and a row of hand-worked numbers in its test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from sklearn_ethiclens._score_tally import N_BINS, GroupScores, ScoreTally, bin_edges, check_scores
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING, check_aligned, encode_outcomes, show
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.metrics._comparisons import choose_reference
from sklearn_ethiclens.metrics._definitions import ALIASES, METRICS, Kind, Metric, get_metric
from sklearn_ethiclens.metrics._functions import reference_position
from sklearn_ethiclens.metrics._rates import EMPTY, confusion_of

Floats = NDArray[np.float64]

STRATEGIES = ("uniform", "quantile")
_NEWTON_STEPS = 50
_STEP_HALVINGS = 30
_CONVERGED = 1e-10
_LEAST_FREEDOM = 0.01  # of a residual: one minus its leverage


# ------------------------------------------------------------------------------------------------------ of one group
class Recalibration(NamedTuple):
    """Logistic regression of the outcome on the log-odds of its score; NaN and the reason where there is none."""

    intercept: float
    slope: float
    standard_error: float
    reason: str


class ScoredGroup:
    """What metrics read of a group's scores, each computed once.

    Parameters
    ----------
    scores : GroupScores
        Sorted scores of the positives and of the negatives, with their weights if they have any: every number is then
        weighted but ``n``, ``positives`` and ``negatives``, which are rows.
    """

    def __init__(self, scores: GroupScores) -> None:
        self.scores = scores
        self.probabilities = scores.probabilities
        self.n, self.positives, self.negatives = scores.n, scores.positives.size, scores.negatives.size
        self.total = sum(scores.totals)  # of the weights; n without

    def count(self, name: str) -> int:
        """Return the rows that a denominator counts."""
        return {"total": self.n, "positives": self.positives, "negatives": self.negatives}[name]

    @cached_property
    def effective_rows(self) -> float:
        """Kish's effective number of rows; that of rows, where weights do not differ."""
        if not self.scores.weights:
            return self.n
        return float(self.total**2 / sum(np.square(part).sum() for part in self.scores.weights))

    @cached_property
    def base_rate(self) -> float:
        """Share of positives."""
        return self.scores.totals[0] / self.total if self.n else float("nan")

    @cached_property
    def mean_score(self) -> float:
        """Mean score."""
        return float(self.scores.sums[:, 0].sum()) / self.total if self.n else float("nan")

    @cached_property
    def residual_variance(self) -> float:
        """Variance of outcome minus score (divisor n); of weighted rows as :meth:`_spread` has it."""
        if self.scores.weights:
            return self._spread(1 - self.scores.positives, -self.scores.negatives, self.base_rate - self.mean_score)
        return max(0.0, self.brier - (self.base_rate - self.mean_score) ** 2) if self.n else float("nan")

    @cached_property
    def brier(self) -> float:
        """Mean squared difference of outcome and score."""
        (_, below), (above, above_squared) = self.scores.sums
        squares = float(below + self.scores.totals[0] - 2 * above + above_squared)
        return max(0.0, squares) / self.total if self.n else float("nan")

    def _spread(self, positives: Floats, negatives: Floats, mean: float) -> float:
        """Return the variance of a weighted mean, linearised, times the effective number of rows.

        The mean of the squared deviations with the *squares* of the weights, so that it may stand where that of unweighted rows
        stands over their number: sum w^2 (x - mean)^2 / (sum w)^2 is this over (sum w)^2 / sum w^2.
        """
        squares = [np.square(part) for part in self.scores.weights]
        deviations = [np.square(part - mean) for part in (positives, negatives)]
        spread = sum((w * d).sum() for w, d in zip(squares, deviations, strict=True))
        return float(spread / sum(w.sum() for w in squares))

    @cached_property
    def brier_variance(self) -> float:
        """Variance of the squared differences (divisor n); of weighted rows as :meth:`_spread` has it."""
        if not self.n:
            return float("nan")
        if self.scores.weights:
            return self._spread(np.square(1 - self.scores.positives), np.square(self.scores.negatives), self.brier)
        squares = [np.square(np.square(part)).sum() for part in (self.scores.negatives, 1 - self.scores.positives)]
        return max(0.0, float(sum(squares)) / self.n - self.brier**2)

    @cached_property
    def auc(self) -> float:
        """Share of pairs of a positive and a negative in which the positive scores higher, ties half."""
        if not self.positives or not self.negatives:
            return float("nan")
        placements, (above, below) = self.scores.placements[0], self.scores.totals
        weighted = self.scores.weights[0] * placements if self.scores.weights else placements
        return min(1.0, float(weighted.sum()) / (above * below))

    @cached_property
    def recalibration(self) -> Recalibration:
        """The logistic fit; asked for where all scores are probabilities."""
        return recalibrate(self.scores.positives, self.scores.negatives, *self.scores.weights)

    def calibration_error(self, edges: Floats) -> float:
        """Return the expected calibration error over bins."""
        return float(np.abs(self.scores.binned(edges).gaps).sum()) / self.total if self.n else float("nan")


def recalibrate(
    positives: Floats,
    negatives: Floats,
    positive_weights: Floats | None = None,
    negative_weights: Floats | None = None,
) -> Recalibration:
    """Return the logistic regression of the outcome on the log-odds of its score.

    Parameters
    ----------
    positives, negatives : ndarray
        Probabilities of rows with and without the positive label, each in ascending order.
    positive_weights, negative_weights : ndarray, optional
        Their weights. The standard error is then that of a sandwich, with each residual over one minus its leverage; without,
        that of the information.

    Returns
    -------
    Recalibration
        With intercept 0 and slope 1 the score is calibrated; with a slope below 1 it is too extreme. NaN where a score is
        exactly 0 or 1 (its log-odds are infinite), where all scores are equal, and where the classes do not overlap (the
        slope is then infinite).

    References
    ----------
    Cox (1958), Biometrika 45:562-565; Van Calster et al. (2019), BMC Medicine 17:230; Binder (1983), International
    Statistical Review 51:279-292 (weights).

    Examples
    --------
    Two scores, .2 and .8, and both met exactly, one in five and four in five:

    >>> round(recalibrate(np.array([0.2, 0.8, 0.8, 0.8, 0.8]), np.array([0.2, 0.2, 0.2, 0.2, 0.8])).slope, 6)
    1.0
    """
    if not positives.size or not negatives.size:
        return _no_fit(EMPTY["negatives" if positives.size else "positives"])
    lowest, highest = min(positives[0], negatives[0]), max(positives[-1], negatives[-1])
    if lowest <= 0 or highest >= 1:
        n = sum(int(np.count_nonzero((part <= 0) | (part >= 1))) for part in (positives, negatives))
        return _no_fit(f"{n} scores of exactly 0 or 1, whose log-odds are infinite")
    if lowest == highest:
        return _no_fit("one score for all rows")
    if negatives[-1] <= positives[0] or positives[-1] <= negatives[0]:
        return _no_fit("classes that do not overlap, so that no finite slope fits best")
    weights = None
    if positive_weights is not None and negative_weights is not None:
        weights = np.concatenate([negative_weights, positive_weights])
        weights = weights / weights.mean()
    return _fit(np.concatenate([logit(negatives), logit(positives)]), negatives.size, weights)


def _no_fit(reason: str) -> Recalibration:
    return Recalibration(float("nan"), float("nan"), float("nan"), reason)


class _Likelihood:
    """Log-likelihood of a logistic regression with its first two derivatives, from one exponential a row."""

    def __init__(self, x: Floats, n_negatives: int, weights: Floats | None, intercept: float, slope: float) -> None:
        eta = intercept + slope * x
        small = np.exp(-np.abs(eta))  # of the less likely outcome over the likelier; never overflows
        small_share = small / (1 + small)
        missed = np.where(eta >= 0, small_share, 1 - small_share)  # 1 - fitted
        weight = small_share * (1 - small_share)
        missed[:n_negatives] -= 1
        if weights is None:
            self.value = float(eta[n_negatives:].sum() - np.maximum(eta, 0.0).sum() - np.log1p(small).sum())
        else:
            likelihood = -np.maximum(eta, 0.0) - np.log1p(small)
            likelihood[n_negatives:] += eta[n_negatives:]
            self.value = float((weights * likelihood).sum())
            missed, weight = weights * missed, weights * weight
        self.missed, self.weight = missed, weight
        weighted = weight * x
        # Sums, not dot products: these start the threads of a linear algebra library for a few rows.
        self.gradient = np.array([missed.sum(), (missed * x).sum()])
        cross = weighted.sum()
        self.information = np.array([[weight.sum(), cross], [cross, (weighted * x).sum()]])

    @property
    def determinant(self) -> float:
        """Determinant of the information; 0 where the fit has run off to infinity."""
        (a, b), (_, d) = self.information
        return float(a * d - b * b)

    def sandwich(self, x: Floats) -> float:
        """Return the variance of the slope that does not take the weights for numbers of rows.

        Of weighted rows the information says how much weight there is, and not how many rows. Residuals of few or heavy rows are
        too small, since these draw the fit towards themselves: each is divided by one minus its leverage, as a jackknife does.
        """
        (a, b), (_, d) = self.information
        leverage = self.weight * (d - 2 * b * x + a * x * x) / self.determinant
        influence = self.missed * (a * x - b) / self.determinant
        return float(np.square(influence / np.maximum(1 - leverage, _LEAST_FREEDOM)).sum())


def _fit(x: Floats, n_negatives: int, weights: Floats | None = None) -> Recalibration:
    """Return the fit by Newton's method; the likelihood is concave, so that a halved step always rises."""
    intercept, slope = 0.0, 1.0
    here = _Likelihood(x, n_negatives, weights, intercept, slope)
    for _ in range(_NEWTON_STEPS):
        if not here.determinant > 0:
            break
        (a, b), (_, d) = here.information
        step = np.array([[d, -b], [-b, a]]) @ here.gradient / here.determinant
        if np.abs(step).max() < _CONVERGED * (1 + abs(slope) + abs(intercept)):
            variance = here.information[0, 0] / here.determinant if weights is None else here.sandwich(x)
            return Recalibration(intercept, slope, float(np.sqrt(variance)), "")
        for _ in range(_STEP_HALVINGS):
            there = _Likelihood(x, n_negatives, weights, intercept + float(step[0]), slope + float(step[1]))
            if there.value >= here.value - 1e-12 * abs(here.value):
                break
            step = step / 2
        intercept, slope, here = intercept + float(step[0]), slope + float(step[1]), there
    return _no_fit("a logistic fit that did not converge")


# ----------------------------------------------------------------------------------------------------------- catalogue
@dataclass(frozen=True)
class ScoreMetric:
    """One entry of the catalogue of metrics of scores.

    Parameters
    ----------
    name : str
        The field's name; one shared with scikit-learn has its definition.
    kind : {"group", "pair"}
        A number of one group, or of a group against the reference.
    function : callable
        ``function(scored_group)``, or ``function(scored_group, scored_reference)`` for a pair; NaN where undefined.
    formula : str
        In words or symbols; ``y`` is 1 for the positive label, ``s`` the score.
    denominators : tuple of str
        The counts it divides by: they give its undefined case and its floors.
    low, high : float
        Its range.
    parity : float or None
        Its value when groups are treated alike; None for a number that is no comparison.
    ideal : float
        Its value for a perfect score; the worst group is the one farthest from it.
    source : str
        Paper or library it comes from.
    scale : {"difference", "score"}
        How it is read and drawn.
    probabilities : bool
        Whether it needs scores in [0, 1].
    note : str
        When it misleads.
    otherwise : str
        When it is undefined though no denominator is empty.
    problem : callable, optional
        ``problem(scored_group)`` says which of those cases a group is in, in words that follow "has"; empty if in none.

    Examples
    --------
    >>> group = GroupScores(positives=np.array([0.4, 0.9]), negatives=np.array([0.2, 0.6]))
    >>> SCORE_METRICS["roc_auc"](group)
    0.75
    >>> round(SCORE_METRICS["calibration_in_the_large"](group), 4)  # 2.1 / 4 - 2 / 4
    0.025
    """

    name: str
    kind: Kind
    function: Callable[..., float]
    formula: str
    denominators: tuple[str, ...]
    low: float
    high: float
    parity: float | None
    ideal: float
    source: str
    scale: Literal["difference", "score"]
    probabilities: bool = True
    note: str = ""
    otherwise: str = ""
    problem: Callable[[ScoredGroup], str] | None = None

    @property
    def greater_is_better(self) -> bool:
        """Whether a greater value is better, up to the end of its range; else the one nearest to ``ideal`` is."""
        return self.ideal == self.high

    @property
    def undefined(self) -> str:
        """When it is NaN, in words."""
        empty = "a group has " + " or ".join(EMPTY[name] for name in self.denominators)
        outside = "a score is outside [0, 1]" if self.probabilities else ""
        return "; ".join(filter(None, [empty, outside, self.otherwise]))

    def __call__(self, scores: GroupScores, reference: GroupScores | None = None) -> float:
        """Return the metric of a group's scores; for a pair, of a group's and the reference's."""
        given = [ScoredGroup(one) for one in (scores, reference) if one is not None]
        if len(given) != (2 if self.kind == "pair" else 1):
            raise TypeError(
                f"{self.name} is a {self.kind} metric: it takes {1 + (self.kind == 'pair')} group(s) of scores."
            )
        return self.value(*given)

    def value(self, *groups: ScoredGroup) -> float:
        """Return the metric of groups, NaN where it is undefined."""
        if any(self.why_undefined(group) for group in groups):
            return float("nan")
        return float(self.function(*groups))

    def why_undefined(self, group: ScoredGroup) -> str:
        """Return why a group has no such number, in words that follow "has"; empty if it has one."""
        empty = [EMPTY[name] for name in self.denominators if group.count(name) == 0]
        if empty:
            return " and ".join(empty)
        if self.probabilities and not group.probabilities:
            return "scores outside [0, 1], here or in another group, which are no probabilities"
        return "" if self.problem is None else self.problem(group)


_BINS = bin_edges(N_BINS)
_CLASSES = ("positives", "negatives")


def _gap(of: Callable[[ScoredGroup], float]) -> Callable[[ScoredGroup, ScoredGroup], float]:
    return lambda group, reference: of(group) - of(reference)


def _in_the_large(group: ScoredGroup) -> float:
    return group.mean_score - group.base_rate


def _entries() -> list[ScoreMetric]:
    inf = float("inf")
    calibration = "Guo et al. 2017"
    return [
        ScoreMetric(
            "expected_calibration_error",
            "group",
            lambda group: group.calibration_error(_BINS),
            f"sum over {N_BINS} equal-width bins of [0, 1] of n_b / n |mean y - mean s|",
            ("total",),
            0,
            1,
            None,
            0.0,
            calibration,
            "score",
            note="Biased upward: small groups look badly calibrated. Its interval and the cross-fitted point are not.",
        ),
        ScoreMetric(
            "brier_score",
            "group",
            lambda group: group.brier,
            "mean (y - s)^2",
            ("total",),
            0,
            1,
            None,
            0.0,
            "Brier 1950; scikit-learn",
            "score",
            note="It mixes calibration with how predictable a group is: base rates alone move it.",
        ),
        ScoreMetric(
            "roc_auc",
            "group",
            lambda group: group.auc,
            "share of pairs of a positive and a negative in which the positive scores higher, ties half",
            _CLASSES,
            0,
            1,
            None,
            1.0,
            "Hanley and McNeil 1982; scikit-learn",
            "score",
            probabilities=False,
            note="Within a group only: it does not see that a group as a whole scores lower.",
        ),
        ScoreMetric(
            "calibration_in_the_large",
            "group",
            _in_the_large,
            "mean s - mean y",
            ("total",),
            -1,
            1,
            None,
            0.0,
            "Cox 1958; Van Calster et al. 2019",
            "score",
            note="Above 0: the positive label is predicted more often than it occurs.",
        ),
        ScoreMetric(
            "calibration_slope",
            "group",
            lambda group: group.recalibration.slope,
            "slope of the logistic regression of y on the log-odds of s",
            _CLASSES,
            -inf,
            inf,
            None,
            1.0,
            "Cox 1958; Van Calster et al. 2019",
            "score",
            note="Below 1: scores too extreme. Above 1: too moderate.",
            otherwise="a score is exactly 0 or 1, all are equal, or the classes do not overlap",
            problem=lambda group: group.recalibration.reason,
        ),
        ScoreMetric(
            "roc_auc_difference",
            "pair",
            _gap(lambda group: group.auc),
            "roc_auc of the group minus that of the reference",
            _CLASSES,
            -1,
            1,
            0.0,
            0.0,
            "DeLong et al. 1988",
            "difference",
            probabilities=False,
        ),
        ScoreMetric(
            "brier_score_difference",
            "pair",
            _gap(lambda group: group.brier),
            "brier_score of the group minus that of the reference",
            ("total",),
            -1,
            1,
            0.0,
            0.0,
            "Brier 1950",
            "difference",
            note="Base rates alone move it.",
        ),
        ScoreMetric(
            "calibration_in_the_large_difference",
            "pair",
            _gap(_in_the_large),
            "calibration_in_the_large of the group minus that of the reference",
            ("total",),
            -2,
            2,
            0.0,
            0.0,
            "Cox 1958; Van Calster et al. 2019",
            "difference",
        ),
    ]


SCORE_METRICS: Mapping[str, ScoreMetric] = MappingProxyType({m.name: m for m in _entries()})
"""The catalogue of metrics of scores by name."""


def metric_kind(name: str) -> Kind:
    """Return whether a metric of either catalogue is a number of one group, of a pair or of all groups."""
    return SCORE_METRICS[name].kind if name in SCORE_METRICS else METRICS[name].kind


def find_metric(name: str) -> Metric | ScoreMetric:
    """Return the entry of a name in either catalogue.

    Raises
    ------
    ValueError
        If there is none; the message lists the names that look alike.
    """
    if isinstance(name, str) and name in SCORE_METRICS:
        return SCORE_METRICS[name]
    if isinstance(name, str) and (name in METRICS or name in ALIASES):
        return get_metric(name)
    near = get_close_matches(str(name), [*METRICS, *ALIASES, *SCORE_METRICS], n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"metric must be a name in METRICS or SCORE_METRICS; got {name!r}.{hint}")


# ---------------------------------------------------------------------------------------------------- above the median
def above_median(y_score: Any) -> NDArray[np.int64]:
    """Return which scores lie above the median of all: 1 where they do, else 0.

    The decision behind the *scoring rate* of New York City's Local Law 144: where a tool gives scores and no decisions, the rate
    of a category is the share of its scores above the median of the full sample.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Finite numbers; higher is better for a person.

    Returns
    -------
    ndarray of {0, 1} of shape (n_rows,)
        Scores equal to the median are not above it.

    Raises
    ------
    ValueError
        If there are no scores, or one is missing or infinite.
    TypeError
        If the values are no numbers.

    References
    ----------
    6 RCNY 5-300 and 5-301(c).

    Examples
    --------
    The median of four is halfway between the two in the middle, here 2.5, then 3:

    >>> above_median([1, 2, 3, 4]).tolist(), above_median([1, 3, 3, 4]).tolist()
    ([0, 0, 1, 1], [0, 0, 0, 1])
    """
    scores = check_scores(y_score)
    if not scores.size:
        raise ValueError("y_score is empty: there is no median.")
    return (scores > _last_not_above(scores)).astype(np.int64)


def median_score(scores: ScoreTally) -> float:
    """Return the median of all scores of a tally."""
    return float(np.median(scores.scores))


def above_median_counts(scores: ScoreTally) -> NDArray[np.int64]:
    """Return how many scores of each group lie above the median of all, of shape (n_groups,).

    Parameters
    ----------
    scores : ScoreTally
        With at least one score.
    """
    above = np.append(0, np.cumsum(scores.scores > _last_not_above(scores.scores)))
    runs = np.append(scores.starts[:, 0], scores.scores.size)
    return np.diff(above[runs])


def _last_not_above(scores: Floats) -> float:
    """Return the lower of the two scores in the middle: greater ones are above the median, which may be no score itself."""
    at = (scores.size - 1) // 2
    return float(np.partition(scores, at)[at])


# ---------------------------------------------------------------------------------------------------------- comparisons
def scored_groups(tally: Tally) -> list[ScoredGroup]:
    """Return what metrics read of the scores of each group of a tally."""
    if not isinstance(tally.scores, ScoreTally):
        raise ValueError("the tally holds no scores: make it with y_score, Tally.from_predictions(..., y_score=...).")
    return [ScoredGroup(tally.scores.group(i)) for i in range(len(tally.groups))]


def worst_of_scores(
    metric: ScoreMetric, tally: Tally, *, reference: Any = None, outcome: str = "favorable"
) -> tuple[float, str]:
    """Return the comparison farthest from parity, or the group farthest from the ideal.

    Parameters
    ----------
    metric : ScoreMetric
        A catalogue entry.
    tally : Tally
        With labels and scores.
    reference : label or tuple of labels, optional
        The group compared with; default: the highest rate of the favourable decision.
    outcome : {"favorable", "adverse"}
        What a positive decision means.

    Returns
    -------
    float
        NaN where no group, or no pair, has a value.
    str
        Which groups are undefined, and why; empty if none is.
    """
    groups = scored_groups(tally)
    blank = [
        f"{show(label)} has {why}"
        for label, group in zip(tally.groups, groups, strict=True)
        if (why := metric.why_undefined(group))
    ]
    if metric.kind == "group":
        values = np.array([metric.value(group) for group in groups])
    else:
        if reference is None:
            confusion = confusion_of(tally, outcome)
            known = np.array([MISSING not in group for group in tally.groups])
            at = choose_reference(confusion.rate("favorable_rate"), confusion.rows("total"), known, known)
        else:
            at = reference_position(tally.groups, reference, tally.attributes)
        values = np.array([metric.value(group, groups[at]) for i, group in enumerate(groups) if i != at])
    if np.isnan(values).all():
        return float("nan"), "; ".join(blank) or "one group only"
    return float(values[np.nanargmax(np.abs(values - metric.ideal))]), "; ".join(blank)


# ---------------------------------------------------------------------------------------------------------------- bins
def score_edges(scores: Floats, n_bins: int, strategy: str) -> Floats:
    """Return the edges of bins: of equal width over [0, 1], or of equal numbers of rows, those that coincide once.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        At least one.
    n_bins : int
        At least 1.
    strategy : {"uniform", "quantile"}
        As in scikit-learn's ``calibration_curve``.

    Returns
    -------
    ndarray of shape (n_bins + 1,) or shorter
        Where scores repeat, quantiles coincide and there are fewer bins.
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number, at least 1; got {n_bins!r}.")
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {STRATEGIES}; got {strategy!r}.")
    if strategy == "uniform":
        return bin_edges(int(n_bins))
    edges = np.unique(np.quantile(scores, np.arange(n_bins + 1) / n_bins))
    return np.repeat(edges, 2) if edges.size == 1 else edges


def expected_calibration_error(
    y_true: Any, y_score: Any, *, n_bins: int = 10, strategy: str = "uniform", pos_label: Any = None
) -> float:
    """Return the expected calibration error of probabilities.

    The mean over rows of how far the share of positives in a row's bin is from the mean probability there. 0 says that
    probabilities mean what they say, bin by bin. It is biased upward: absolute gaps do not cancel, so that few rows or many
    bins make a calibrated score look wrong. :func:`audit` gives its interval by group.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_score : array-like of shape (n_samples,)
        Probabilities of the positive label.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width over [0, 1], or of equal numbers of rows; quantiles that coincide make one bin. Bins are
        ``[low, high)``, the last one closed: each row is in exactly one, a probability of exactly 0 or 1 too.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    float
        In [0, 1]; NaN with an ``UndefinedMetricWarning`` where a score lies outside [0, 1].

    References
    ----------
    Guo et al. 2017, On calibration of modern neural networks.

    Examples
    --------
    Two rows at 0 that are positive, a gap of 1; two near 1 with rate 0.5 and mean 0.975, a gap of 0.475:

    >>> expected_calibration_error([1, 1, 0, 1], [0.0, 0.0, 1.0, 0.95])
    0.7375
    """
    check_aligned({"y_true": y_true, "y_score": y_score})
    truth, _ = encode_outcomes(y_true, pos_label)
    tally = ScoreTally.from_rows(y_score, truth, np.zeros(truth.size, dtype=np.intp), n_groups=1)
    edges = score_edges(tally.scores, n_bins, strategy)
    metric, group = SCORE_METRICS["expected_calibration_error"], ScoredGroup(tally.group(0))
    if why := metric.why_undefined(group):
        warn(f"{metric.name} is undefined: there are {why}.", UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    return group.calibration_error(edges)
