"""A population table -> the exact value of every metric. Written from the definitions, apart from ``METRICS``.

This is the oracle that the audit is held against, so nothing here is shared with the rooms that compute estimates: each
formula stands a second time, in terms of probabilities. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit, ndtr

from sklearn_ethiclens._validation import listing, show
from sklearn_ethiclens.datasets._lots import as_label
from sklearn_ethiclens.datasets._population import Floats, Group, Population, canonical_order

N_BINS = 10
_TAIL = 9.0  # standard deviations; what lies beyond has probability 1e-19
_SINGLE_RATES = (
    "selection_rate",
    "base_rate",
    "true_positive_rate",
    "false_positive_rate",
    "false_negative_rate",
    "true_negative_rate",
    "precision",
    "negative_predictive_value",
    "false_discovery_rate",
    "false_omission_rate",
    "accuracy",
    "f1",
)
_OVERALL = (
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equalized_odds_tpr_gap",
    "equalized_odds_fpr_gap",
    "equalized_odds_ratio",
)
_SCORE_SINGLE = (
    "roc_auc",
    "brier_score",
    "expected_calibration_error",
    "calibration_in_the_large",
    "calibration_slope",
)
_SCORE_PAIRS = ("roc_auc_difference", "brier_score_difference", "calibration_in_the_large_difference")


# ------------------------------------------------------------------------------------------------------- one group
def _over(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, NaN where there is no whole."""
    return np.where(whole == 0, np.nan, part / np.where(whole == 0, 1.0, whole))


def group_truth(cells: Floats, outcome: str) -> dict[str, Floats]:
    """Return every number of a single group.

    Parameters
    ----------
    cells : ndarray of shape (n_groups, 2, 2) or (n_groups, 1, 2)
        Probabilities by (y_true, y_pred) within each group.
    outcome : {"favorable", "adverse"}
        What a positive decision means for a person.

    Returns
    -------
    dict of str to ndarray of shape (n_groups,)
    """
    selected, rejected = cells[:, :, 1].sum(1), cells[:, :, 0].sum(1)
    favored = selected if outcome == "favorable" else rejected
    if cells.shape[1] == 1:
        unknown = np.full(selected.shape, np.nan)
        names = (*_SINGLE_RATES, "balanced_accuracy", "theil_index")
        return dict.fromkeys(names, unknown) | {"selection_rate": selected, "favorable_rate": favored}
    tn, fp, fn, tp = cells[:, 0, 0], cells[:, 0, 1], cells[:, 1, 0], cells[:, 1, 1]
    tpr, tnr = _over(tp, tp + fn), _over(tn, tn + fp)
    return {
        "selection_rate": selected,
        "favorable_rate": favored,
        "base_rate": tp + fn,
        "true_positive_rate": tpr,
        "false_positive_rate": _over(fp, fp + tn),
        "false_negative_rate": _over(fn, fn + tp),
        "true_negative_rate": tnr,
        "precision": _over(tp, tp + fp),
        "negative_predictive_value": _over(tn, tn + fn),
        "false_discovery_rate": _over(fp, tp + fp),
        "false_omission_rate": _over(fn, tn + fn),
        "accuracy": tp + tn,
        "f1": _over(2 * tp, 2 * tp + fp + fn),
        "balanced_accuracy": (tpr + tnr) / 2,
        "theil_index": _theil(tp + tn, fp),
    }


def _theil(correct: Floats, twice: Floats) -> Floats:
    """Return E[b/m log(b/m)] of the benefit b: 0 for a false negative, 1 where the decision is right, 2 for a false positive."""
    mean = correct + 2 * twice
    safe = np.where(mean == 0, 1.0, mean)
    return np.where(mean == 0, np.nan, correct / safe * np.log(1 / safe) + twice * 2 / safe * np.log(2 / safe))


# -------------------------------------------------------------------------------------------------------- two groups
def pair_truth(group: Mapping[str, Floats], reference: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return every comparison of groups with a reference, elementwise; NaN where a side is, or a ratio's reference is 0."""
    found: dict[str, Floats] = {}
    for name in _SINGLE_RATES:
        found[f"{name}_difference"] = group[name] - reference[name]
        found[f"{name}_ratio"] = _over(group[name], reference[name])
    r, r0 = group["favorable_rate"], reference["favorable_rate"]
    d_tpr, d_fpr = found["true_positive_rate_difference"], found["false_positive_rate_difference"]
    found["disparate_impact"] = _over(r, r0)
    found["statistical_parity_difference"] = r - r0
    found["equalized_odds_difference"] = np.where(abs(d_tpr) > abs(d_fpr), abs(d_tpr), abs(d_fpr)) + 0 * d_tpr
    found["average_odds_difference"] = 0.5 * d_tpr + 0.5 * d_fpr
    found["average_odds_error"] = 0.5 * abs(d_tpr) + 0.5 * abs(d_fpr)
    found["equal_opportunity_difference"] = abs(d_tpr)
    found["predictive_parity_difference"] = abs(group["precision"] - reference["precision"])
    found["false_positive_rate_balance"] = abs(d_fpr)
    found["theil_index_difference"] = group["theil_index"] - reference["theil_index"]
    # min(DI, 1/DI) is the smaller rate over the larger; a ratio that is undefined has no score.
    folded = np.where(np.isnan(found["disparate_impact"]), np.nan, _over(np.minimum(r, r0), np.maximum(r, r0)))
    found["composite_bias_score"] = (
        0.40 * folded + 0.35 * (1 - abs(r - r0)) + 0.25 * (1 - found["equalized_odds_difference"])
    )
    return found


# -------------------------------------------------------------------------------------------------------- all groups
def overall_truth(groups: Mapping[str, Floats]) -> dict[str, float]:
    """Return the numbers of all groups at once, over those where the rate is defined; NaN if there are not two."""
    extremes = {}
    for name in ("favorable_rate", "true_positive_rate", "false_positive_rate"):
        known = groups[name][~np.isnan(groups[name])]
        extremes[name] = (known.min(), known.max()) if known.size >= 2 else (np.nan, np.nan)
    gap = {name: float(high - low) for name, (low, high) in extremes.items()}
    share = {name: float(low / high) if high else float("nan") for name, (low, high) in extremes.items()}
    ratios = share["true_positive_rate"], share["false_positive_rate"]
    return {
        "demographic_parity_difference": gap["favorable_rate"],
        "demographic_parity_ratio": share["favorable_rate"],
        "equalized_odds_tpr_gap": gap["true_positive_rate"],
        "equalized_odds_fpr_gap": gap["false_positive_rate"],
        "equalized_odds_ratio": float("nan") if any(v != v for v in ratios) else min(ratios),
    }


# ------------------------------------------------------------------------------------------------------------ scores
@dataclass(frozen=True)
class ScoreTable:
    """What the exact score metrics need of each finest group; sums of these are those of any union of groups.

    ``positive[g, b]`` and ``score[g, b]`` are the expected share of positives and the expected score in bin ``b``;
    ``squared[g]`` is the expected squared distance of score and label; the log-odds are normal within group and label.
    """

    positive: Floats
    score: Floats
    squared: Floats
    base_rate: Floats
    location: Floats  # of shape (n_groups, 2): by label
    spread: Floats
    shift: Floats
    slope: Floats


def score_table(population: Population) -> ScoreTable:
    """Return the expectations of the score: normal probabilities, and integrals over a normal density (to 1e-11)."""
    from scipy.integrate import quad_vec

    p, d = population.rates["base_rate"], population.separation
    shift, stretch = population.shift, 1 / population.slope
    mixed = (p > 0) & (p < 1)
    odds = logit(np.where(mixed, p, 0.5))
    # The calibrated log-odds are logit p + d (z - d/2), with z of mean 0 for negatives and d for positives.
    centre = np.stack([odds - d**2 / 2, odds + d**2 / 2], -1)
    location = shift[:, None] + stretch[:, None] * centre
    spread = stretch * d
    edges = logit(np.linspace(0, 1, N_BINS + 1))
    weight = np.stack([1 - p, p], -1)[:, :, None]
    varies = np.broadcast_to((spread > 0)[:, None, None], (*location.shape, N_BINS))
    safe = np.where(spread > 0, spread, 1.0)[:, None, None]
    z = np.clip((edges - location[:, :, None]) / safe, -_TAIL, _TAIL)
    low, width = z[:, :, :-1], np.diff(z, axis=-1)

    def moments(u: float) -> Floats:
        at = low + u * width
        value = expit(location[:, :, None] + safe * at)
        density = width * np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
        return np.stack([value * density, (value - _LABEL) ** 2 * density])

    integrals, _ = quad_vec(moments, 0.0, 1.0, epsabs=1e-13, epsrel=0.0, norm="max")
    mass = np.diff(ndtr(z), axis=-1)
    constant = expit(location)[:, :, None]  # where positives and negatives have one and the same score
    held = np.floor(np.minimum(constant * N_BINS, N_BINS - 1)) == np.arange(N_BINS)
    mass = np.where(varies, mass, held)
    first = np.where(varies, integrals[0], held * constant)
    second = np.where(varies, integrals[1], held * (constant - _LABEL) ** 2)
    positive = (weight * mass)[:, 1]
    score = (weight * first).sum(1)
    # A calibrated score is, in every bin, what happens: no integral can say it more exactly.
    score = np.where(((shift == 0) & (stretch == 1))[:, None], positive, score)
    squared = (weight * second).sum((1, 2))
    certain = np.arange(N_BINS) == N_BINS - 1  # the score of a group that is all positive is 1, all negative 0
    positive = np.where(mixed[:, None], positive, p[:, None] * certain)
    score = np.where(mixed[:, None], score, p[:, None] * certain)
    return ScoreTable(positive, score, np.where(mixed, squared, 0.0), p, location, spread, shift, population.slope)


_LABEL = np.array([0.0, 1.0])[None, :, None]


def score_truth(table: ScoreTable, shares: Floats, members: NDArray[np.intp], n: int) -> dict[str, Floats]:
    """Return the exact score metrics of unions of groups.

    Parameters
    ----------
    table : ScoreTable
        Of the finest groups.
    shares : ndarray of shape (n_finest,)
        Their shares.
    members : ndarray of shape (n_finest,)
        Which of the ``n`` unions each belongs to.
    n : int
        Number of unions.

    Returns
    -------
    dict of str to ndarray of shape (n,)
    """
    belongs = np.zeros((n, shares.size))
    belongs[members, np.arange(shares.size)] = shares
    belongs /= belongs.sum(1, keepdims=True)
    positive, score = belongs @ table.positive, belongs @ table.score
    auc = np.full(n, np.nan)
    for i, weights in enumerate(belongs):
        own = np.flatnonzero(weights)
        ones, zeros = weights[own] * table.base_rate[own], weights[own] * (1 - table.base_rate[own])
        if ones.sum() > 0 and zeros.sum() > 0:
            auc[i] = ones @ _above(table, own) @ zeros / (ones.sum() * zeros.sum())
    return {
        "roc_auc": auc,
        "brier_score": belongs @ table.squared,
        "expected_calibration_error": np.abs(positive - score).sum(1),
        "calibration_in_the_large": score.sum(1) - positive.sum(1),
        "calibration_slope": np.array([_slope(table, weights) for weights in belongs]),
    }


def _slope(table: ScoreTable, weights: Floats) -> float:
    """Return the slope of the logistic regression of the label on the log-odds of the score, in a union of groups.

    Of one group, or of groups distorted alike, it is the parameter itself. Else it is where the expected log-likelihood, an
    integral over the normal densities, has its maximum: by Newton's method.
    """
    own = np.flatnonzero(weights)
    p, location, spread = table.base_rate[own], table.location[own], table.spread[own]
    # A score of exactly 0 or 1, or one and the same for everybody, has no slope.
    if not ((p > 0) & (p < 1)).all() or (not spread.any() and np.ptp(location) == 0):
        return float("nan")
    shift, slope = table.shift[own], table.slope[own]
    if np.ptp(shift) == 0 and np.ptp(slope) == 0:
        return float(slope[0])
    # The trapezoidal rule on a normal density converges exponentially once the logistic curve is resolved.
    z, step = np.linspace(-_TAIL, _TAIL, int(2 * _TAIL * max(50.0, 2.5 * spread.max())) + 1, retstep=True)
    density = np.exp(-(z**2) / 2) * step / np.sqrt(2 * np.pi)
    mass = ((weights[own][:, None] * np.stack([1 - p, p], -1))[:, :, None] * density).ravel()
    odds = (location[:, :, None] + spread[:, None, None] * z).ravel()
    sign = np.broadcast_to(2 * _LABEL - 1, (own.size, 2, z.size)).ravel()
    return _fit_slope(odds, sign, mass / mass.sum())


def _fit_slope(odds: Floats, sign: Floats, mass: Floats) -> float:
    """Return the slope of the logistic regression of labels -1 and 1, by Newton's method with step halving."""
    centre = float(mass @ odds)
    scale = float(np.sqrt(mass @ (odds - centre) ** 2))
    x = (odds - centre) / scale
    positive = float(mass @ (sign > 0))
    fit = np.array([np.log(positive / (1 - positive)), 0.0])

    def likelihood(at: Floats) -> float:
        return float(mass @ log_expit(sign * (at[0] + at[1] * x)))

    reached = likelihood(fit)
    for _ in range(200):
        away = sign * mass * expit(-sign * (fit[0] + fit[1] * x))
        chance = expit(fit[0] + fit[1] * x)
        curve = mass * chance * (1 - chance)
        gradient = np.array([away.sum(), away @ x])
        off = curve @ x
        change = np.linalg.solve(np.array([[curve.sum(), off], [off, curve @ x**2]]), gradient)
        while likelihood(fit + change) < reached - 1e-15 and np.abs(change).max() > 1e-14:
            change = change / 2
        fit = fit + change
        reached = likelihood(fit)
        if np.abs(change).max() <= 1e-12 * max(1.0, float(np.abs(fit).max())):
            return float(fit[1] / scale)
    raise RuntimeError("the calibration slope of groups put together did not converge; ask for single groups.")


def _above(table: ScoreTable, own: NDArray[np.intp]) -> Floats:
    """Return the probability that a positive of one group scores above a negative of another, ties by half."""
    p, location = table.base_rate[own], table.location[own]
    one, zero = np.where(p == 1, np.inf, location[:, 1]), np.where(p == 0, -np.inf, location[:, 0])
    # Groups that are all of one label score 0 or 1 whatever is drawn.
    spread = np.where((p > 0) & (p < 1), table.spread[own], 0.0)
    distance = one[:, None] - zero[None, :]
    scale = np.hypot(spread[:, None], spread[None, :])
    tied = (distance > 0) + 0.5 * (distance == 0)
    return np.where(scale > 0, ndtr(distance / np.where(scale > 0, scale, 1.0)), tied)


# ------------------------------------------------------------------------------------------------------------- truth
class Truth(Mapping[str, Any]):
    """The exact value of every metric in a population: of each group, each comparison, and all groups at once.

    A mapping of metric name to value: to a number for what is of all groups at once, to a dict of group to number
    otherwise (comparisons are with the reference). Of crossed attributes these are the finest groups; ``value`` and
    ``frame`` give single attributes too. What is undefined is NaN.

    Rates, their comparisons and the areas under the ROC curve are closed forms of the population table; ``brier_score``, and
    the scores in ``expected_calibration_error`` and ``calibration_in_the_large`` where they are miscalibrated, are
    one-dimensional integrals over a normal density, to 1e-10. ``calibration_slope`` is the parameter within a group, and the
    maximum of such an integral where groups distorted differently are put together.

    Parameters
    ----------
    population : Population
        The table.

    Examples
    --------
    >>> from sklearn_ethiclens.datasets import BiasInjector
    >>> truth = BiasInjector(["F", "M"], selection_rate=0.5, disparate_impact=0.6, reference="M").truth
    >>> round(truth["statistical_parity_difference"]["F"], 12)
    -0.2
    >>> round(truth.value("disparate_impact", "M", reference="F"), 4)
    1.6667
    """

    def __init__(self, population: Population) -> None:
        self._population = population
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._scores: ScoreTable | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return self._population.attributes

    @property
    def reference(self) -> dict[str, Any]:
        """The reference of each attribute, as ``audit(reference=...)`` takes it."""
        return {name: self._part((name,)).label(self._part((name,)).reference) for name in self.attributes}

    def value(self, metric: str, group: Any = None, reference: Any = None, *, attribute: Any = None) -> float:
        """Return one exact value.

        Parameters
        ----------
        metric : str
            A name in ``METRICS`` or ``SCORE_METRICS``.
        group : label or tuple of labels, optional
            The group. None: for a number of one group, everyone; for a comparison, the only other group there is.
        reference : label or tuple of labels, optional
            For a comparison, the other side; default: the reference of the population.
        attribute : str or sequence of str, optional
            The attribute(s) the groups are of; default: all of them crossed.

        Returns
        -------
        float
            NaN where undefined.

        Raises
        ------
        ValueError
            If there is no such metric, group or attribute, or more than one group it could mean.
        """
        self._check(metric)
        part = self._part(self._attributes(attribute))
        if metric in _OVERALL:
            if group is not None or reference is not None:
                raise ValueError(f"{metric} is of all groups at once; leave out group and reference.")
            return part.overall()[metric]
        if not self._is_pair(metric):
            if reference is not None:
                raise ValueError(f"{metric} is of one group; leave out reference.")
            if group is None:
                return float(self._everyone().of_groups(self._needs_scores(metric))[metric][0])
            return float(part.of_groups(self._needs_scores(metric))[metric][part.position(group, "group")])
        other = part.reference if reference is None else part.position(reference, "reference")
        if group is None:
            rest = [i for i in range(len(part.groups)) if i != other]
            if len(rest) > 1:
                raise ValueError(
                    f"{metric} compares a group with the reference; pass group, one of {listing(part.labels(rest))}."
                )
            at = rest[0]
        else:
            at = part.position(group, "group")
        return float(part.of_pairs(other, self._needs_scores(metric))[metric][at])

    def frame(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row a value: attribute, group, reference, metric, value; as ``Audit.frame`` names them.

        Crossed attributes stand after the single ones, as ``sex & race`` with tuples as groups. What is of all groups at
        once has neither group nor reference.

        Parameters
        ----------
        metrics : sequence of str, optional
            Names; default: all.
        """
        for name in metrics or ():
            self._check(name)
        wanted = set(self if metrics is None else metrics)
        rows: list[tuple[Any, ...]] = []
        for names in self._levels():
            part, attribute = self._part(names), show(names)
            scores = any(map(self._needs_scores, wanted))
            labels = part.labels(range(len(part.groups)))
            for name, values in part.of_groups(scores).items():
                if name in wanted:
                    rows += [(attribute, group, None, name, float(v)) for group, v in zip(labels, values, strict=True)]
            for name, values in part.of_pairs(part.reference, scores).items():
                if name in wanted:
                    rows += [
                        (attribute, labels[i], labels[part.reference], name, float(v))
                        for i, v in enumerate(values)
                        if i != part.reference
                    ]
            rows += [(attribute, None, None, name, v) for name, v in part.overall().items() if name in wanted]
        data: dict[str, Any] = {}
        for i, column in enumerate(("attribute", "group", "reference", "metric")):
            cells = np.empty(len(rows), dtype=object)
            cells[:] = [row[i] for row in rows]
            data[column] = pd.Series(cells, dtype=object)
        data["value"] = np.array([row[-1] for row in rows], dtype=float)
        return pd.DataFrame(data)

    # ------------------------------------------------------------------------------------------------------- mapping
    def __getitem__(self, metric: str) -> Any:
        if metric not in self._names():
            raise KeyError(metric)
        part = self._part(self.attributes)
        if metric in _OVERALL:
            return part.overall()[metric]
        if self._is_pair(metric):
            values = part.of_pairs(part.reference, self._needs_scores(metric))[metric]
            keep = [i for i in range(len(part.groups)) if i != part.reference]
        else:
            values, keep = part.of_groups(self._needs_scores(metric))[metric], list(range(len(part.groups)))
        return {part.label(i): float(values[i]) for i in keep}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Truth):
            return NotImplemented
        return self.frame().equals(other.frame())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        population = self._population
        reference = ", ".join(f"{name}={show(value)}" for name, value in self.reference.items())
        of = f"{len(population.groups)} groups of {show(self.attributes)}"
        return f"<Truth of {of}: {len(self)} metrics, reference {reference}>"

    # --------------------------------------------------------------------------------------------------------- parts
    def _names(self) -> dict[str, None]:
        single = (*_SINGLE_RATES, "favorable_rate", "balanced_accuracy", "theil_index")
        return dict.fromkeys([*single, *_PAIRS, *_OVERALL, *(_SCORE_NAMES if self._population.labelled else ())])

    def _check(self, metric: str) -> None:
        if metric not in self._names():
            near = get_close_matches(str(metric), list(self._names()), n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(f"metric must be a name that the truth knows; got {metric!r}.{hint}")

    @staticmethod
    def _needs_scores(metric: str) -> bool:
        return metric in _SCORE_NAMES

    @staticmethod
    def _is_pair(metric: str) -> bool:
        return metric in _PAIRS or metric in _SCORE_PAIRS

    def _attributes(self, attribute: Any) -> tuple[str, ...]:
        if attribute is None:
            return self.attributes
        names = (attribute,) if isinstance(attribute, str) else tuple(attribute)
        if not names or not set(names) <= set(self.attributes):
            raise ValueError(f"attribute must be among {listing(self.attributes)}; got {attribute!r}.")
        return names

    def _levels(self) -> list[tuple[str, ...]]:
        single: list[tuple[str, ...]] = [(name,) for name in self.attributes]
        return single if len(single) == 1 else [*single, self.attributes]

    def _everyone(self) -> _Part:
        return self._part(())

    def _part(self, names: tuple[str, ...]) -> _Part:
        if names not in self._parts:
            self._parts[names] = _Part(self, names)
        return self._parts[names]

    def scores(self) -> ScoreTable:
        """Return the expectations of the score, computed once."""
        if self._scores is None:
            self._scores = score_table(self._population)
        return self._scores


class _Part:
    """The population by some of its attributes."""

    def __init__(self, truth: Truth, names: tuple[str, ...]) -> None:
        population = truth._population
        self._truth, self._population = truth, population
        where = [population.attributes.index(name) for name in names]
        keys = [tuple(group[i] for i in where) for group in population.groups]
        distinct = list(dict.fromkeys(keys))
        self.groups: list[Group] = [distinct[i] for i in canonical_order(distinct)]
        place = {key: i for i, key in enumerate(self.groups)}
        self.members = np.array([place[key] for key in keys], dtype=np.intp)
        self.shares = np.bincount(self.members, population.shares, len(self.groups))
        if len(self.groups) == len(keys):
            order = np.argsort(self.members)
            self.cells = population.cells[order]
        else:
            summed = np.zeros((len(self.groups), *population.cells.shape[1:]))
            np.add.at(summed, self.members, population.joint)
            self.cells = summed / self.shares[:, None, None]
        self._values = group_truth(self.cells, population.outcome)
        self._scores: dict[str, Floats] | None = None
        self.reference = self._choose_reference(where)

    def _choose_reference(self, where: list[int]) -> int:
        population = self._population
        if population.fixed_reference:
            anchor = population.groups[population.anchor]
            return self.groups.index(tuple(anchor[i] for i in where))
        favored = self._values["favorable_rate"]
        best = favored >= favored.max() - 1e-12
        return int(np.argmax(np.where(best, self.shares, -1.0)))

    def label(self, i: int) -> Any:
        group = self.groups[i]
        return group[0] if len(group) == 1 else group

    def labels(self, which: Any) -> list[Any]:
        return [self.label(i) for i in which]

    def position(self, group: Any, name: str) -> int:
        group = tuple(map(as_label, group)) if isinstance(group, tuple) else as_label(group)
        for i, known in enumerate(self.groups):
            if (isinstance(group, tuple) and known == group) or (len(known) == 1 and known[0] == group):
                return i
        raise ValueError(f"{name} must be one of {listing(self.labels(range(len(self.groups))))}; got {group!r}.")

    def of_groups(self, scores: bool) -> dict[str, Floats]:
        if not scores or not self._population.labelled:
            return self._values
        if self._scores is None:
            self._scores = score_truth(self._truth.scores(), self._population.shares, self.members, len(self.groups))
        return self._values | self._scores

    def of_pairs(self, reference: int, scores: bool) -> dict[str, Floats]:
        groups = self.of_groups(scores)
        found = pair_truth(groups, {name: values[[reference]] for name, values in groups.items()})
        for pair in _SCORE_PAIRS if scores and self._population.labelled else ():
            name = pair.removesuffix("_difference")
            found[pair] = groups[name] - groups[name][reference]
        return found

    def overall(self) -> dict[str, float]:
        return overall_truth(self._values)


_PAIRS = tuple(pair_truth(*[group_truth(np.full((1, 1, 2), 0.5), "favorable")] * 2))
_SCORE_NAMES = (*_SCORE_SINGLE, *_SCORE_PAIRS)
