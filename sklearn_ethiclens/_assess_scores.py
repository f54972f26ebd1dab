"""Scores by group -> findings and a section: calibration, Brier score and area under the curve, with intervals.

Findings of scores are descriptive under every policy: no policy has a limit for them, and a calibrated score can differ
between groups in all the ways that are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from sklearn_ethiclens._findings import Finding, Reference, Section
from sklearn_ethiclens._score_tally import N_BINS, GroupScores, ScoreBins, ScoreTally, bin_edges
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING, check_aligned, check_apart, encode_outcomes, show
from sklearn_ethiclens._weights import check_sample_weight
from sklearn_ethiclens.inference._intervals import Bounds, normal_quantile, wilson_interval
from sklearn_ethiclens.inference._resampling import seed_of_part
from sklearn_ethiclens.inference._scores import (
    LEAST_CLASS,
    CalibrationError,
    WeightedResiduals,
    auc_interval,
    auc_pvalue,
    auc_variance,
    bounded_mean_interval,
    calibration_error_interval,
    mover_difference_interval,
)
from sklearn_ethiclens.inference._tests import adjust_pvalues, chi2_test
from sklearn_ethiclens.metrics._rates import WeightedConfusion, confusion_of
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, ScoreMetric, score_edges, scored_groups
from sklearn_ethiclens.policy import Policy, Verdict

Floats = NDArray[np.float64]

KEY = "scores"
_PEOPLE = ("attribute", "group", "n", "base_rate", "mean_score")
_SHOWN = {  # columns by metric
    "expected_calibration_error": ("ece", "ece_low", "ece_high", "ece_crossfit"),
    "roc_auc": ("auc", "auc_low", "auc_high"),
    "brier_score": ("brier",),
    "calibration_slope": ("slope",),
}
STORED = "Single scores are not stored, so that nothing can be computed of them here."
_NAN = float("nan")
_Interval = tuple[Bounds, str, str]  # ends, method, what to know of the value
_NO_BOUNDS = Bounds(np.asarray(_NAN), np.asarray(_NAN))


class ScoreAssessment(NamedTuple):
    """What scores show: findings, and the section that sums them up."""

    findings: tuple[Finding, ...]
    section: Section


class _Estimate(NamedTuple):
    """A value with its interval; ``reason`` says why there is none, or what to know of it."""

    value: float
    bounds: Bounds
    method: str | None
    reason: str = ""


def assess_scores(
    tally: Tally,
    plan: Sequence[tuple[str, ...]],
    references: Sequence[Reference],
    policy: Policy,
    seed: int,
    metrics: Sequence[str] | None = None,
) -> ScoreAssessment:
    """Return what the scores of a tally show by group.

    Parameters
    ----------
    tally : Tally
        With a ``ScoreTally``.
    plan : sequence of tuple of str
        Attributes and intersections.
    references : sequence of Reference
        The reference of each of them.
    policy : Policy
        Its confidence level, floors and multiplicity; it judges none of this.
    seed : int
        Of the random halves of the cross-fitted calibration error.
    metrics : sequence of str, optional
        Names in ``SCORE_METRICS``; default: all.

    Returns
    -------
    ScoreAssessment
    """
    chosen = [metric for name, metric in SCORE_METRICS.items() if metrics is None or name in metrics]
    reference_of = {r.attribute: r.group for r in references}
    blocks = []
    for number, attributes in enumerate(plan):
        key = attributes[0] if len(attributes) == 1 else attributes
        own_seed = seed_of_part(seed, number)
        blocks.append(_Block(tally.marginal(attributes), reference_of[key], policy, own_seed))
    findings: list[Finding] = []
    method: Literal["holm", "bh"] = "bh" if policy.multiplicity == "bh" else "holm"
    for metric in chosen:
        # One family a metric, over all attributes, as for the metrics of counts.
        family = [(block, row) for block in blocks for row in block.rows(metric)]
        pvalues = np.array([row["pvalue"] for _, row in family])
        adjusted = pvalues if np.isnan(pvalues).all() else adjust_pvalues(pvalues, method)
        findings += [
            Finding(attribute=block.key, pvalue_adjusted=float(p), **row)
            for (block, row), p in zip(family, adjusted, strict=True)
        ]
    order = {block.key: i for i, block in enumerate(blocks)}
    findings.sort(key=lambda f: order[f.attribute])  # by attribute, as the other findings; a stable sort
    return ScoreAssessment(tuple(findings), _section(blocks, policy, chosen))


class _Block:
    """One attribute or intersection: its groups' scores, read metric by metric."""

    def __init__(self, tally: Tally, reference: Any, policy: Policy, seed: int) -> None:
        self.tally, self.policy, self.seed = tally, policy, seed
        self.key: Any = tally.attributes[0] if len(tally.attributes) == 1 else tally.attributes
        self.labels = [group[0] if len(group) == 1 else group for group in tally.groups]
        self.total = tally.rows.sum((1, 2))
        self.at = self.labels.index(reference)
        self.groups = scored_groups(tally) if tally.labelled else []
        self._estimates: dict[str, list[_Estimate]] = {}

    # ------------------------------------------------------------------------------------------------------- estimates
    @cached_property
    def calibration(self) -> CalibrationError:
        """Calibration errors of all groups."""
        assert isinstance(self.tally.scores, ScoreTally)
        scores = self.tally.scores
        # Groups whose rows weigh the same are as those of rows without weights, to the last digit.
        bins = scores.bins if scores.weights is None else replace(scores, weights=None).bins
        weighted = {i: _residuals(group.scores) for i, group in enumerate(self.groups) if group.scores.weights}
        return calibration_error_interval(
            bins.counts,
            bins.sums,
            bins.squares,
            confidence_level=self.policy.confidence_level,
            seed=self.seed,
            weighted=weighted,
        )

    @cached_property
    def auc_variances(self) -> list[float]:
        """DeLong's variance of each group; NaN where a class has too few rows for it, effective ones if weighted."""
        return [
            auc_variance(*group.scores.placements, *group.scores.weights)
            if min(group.scores.effective) >= LEAST_CLASS
            else _NAN
            for group in self.groups
        ]

    def estimates(self, metric: ScoreMetric) -> list[_Estimate]:
        """Return a group metric of each group."""
        if metric.name not in self._estimates:
            self._estimates[metric.name] = [self._estimate(metric, i) for i in range(len(self.groups))]
        return self._estimates[metric.name]

    def _estimate(self, metric: ScoreMetric, i: int) -> _Estimate:
        if why := metric.why_undefined(self.groups[i]):
            return _Estimate(_NAN, _NO_BOUNDS, None, f"{show(self.labels[i])} has {why}")
        bounds, method, words = _INTERVALS[metric.name](self, i)
        return _Estimate(metric.value(self.groups[i]), bounds, method, words)

    def _calibration_error(self, i: int) -> _Interval:
        error = self.calibration
        words = f"cross-fitted point {error.crossfit[i]:.3g}, biased downward; this one is biased upward"
        return Bounds(error.low[i], error.high[i]), "cross-fitted", words

    def _auc(self, i: int) -> _Interval:
        group, level = self.groups[i], self.policy.confidence_level
        sizes = group.scores.effective
        # Few heavy rows make a variance uncertain, the more so that of the smaller class.
        dof = min(sizes) - 1 if group.scores.weights and min(sizes) >= LEAST_CLASS else np.inf
        return *auc_interval(group.auc, self.auc_variances[i], *sizes, confidence_level=level, dof=dof), ""

    def _brier_score(self, i: int) -> _Interval:
        group, level = self.groups[i], self.policy.confidence_level
        bounds = bounded_mean_interval(group.brier, group.brier_variance, group.effective_rows, confidence_level=level)
        return bounds, "normal, Wilson-widened", ""

    def _in_the_large(self, i: int) -> _Interval:
        """Return the mean score minus the interval of the base rate, whose spread is that of the residuals."""
        group, level = self.groups[i], self.policy.confidence_level
        rows = group.effective_rows
        rate = bounded_mean_interval(group.base_rate, group.residual_variance, rows, confidence_level=level)
        return Bounds(group.mean_score - rate.high, group.mean_score - rate.low), "normal, Wilson-widened", ""

    def _slope(self, i: int) -> _Interval:
        fit = self.groups[i].recalibration
        level, method = self.policy.confidence_level, "Wald"
        half = float(normal_quantile(level)) * fit.standard_error
        if self.groups[i].scores.weights:
            dof, method = max(self.groups[i].effective_rows - 2, 1.0), "Wald, sandwich"
            half = float(stdtrit(dof, (1 + level) / 2)) * fit.standard_error
        return Bounds(np.asarray(fit.slope - half), np.asarray(fit.slope + half)), method, ""

    def _difference(self, metric: ScoreMetric, i: int) -> _Estimate:
        own = SCORE_METRICS[metric.name.removesuffix("_difference")]
        here, there = self.estimates(own)[i], self.estimates(own)[self.at]
        if left_out := self._left_out(i):
            return _Estimate(_NAN, _NO_BOUNDS, None, left_out)
        if np.isnan(here.value) or np.isnan(there.value):
            reasons = dict.fromkeys(e.reason for e in (here, there) if np.isnan(e.value))
            return _Estimate(_NAN, _NO_BOUNDS, None, " and ".join(reasons))
        bounds = mover_difference_interval(here.value, here.bounds, there.value, there.bounds)
        return _Estimate(here.value - there.value, bounds, f"MOVER ({here.method})")

    def _left_out(self, i: int) -> str:
        """Return why the policy compares a group with none; empty if it does not leave it out."""
        if not self.policy.min_share:
            return ""
        known = [MISSING not in group for group in self.tally.groups]
        if not known[i]:
            return "unknown category: counted, not compared"
        share = self.total[i] / max(1, self.total[known].sum())
        return (
            "" if share >= self.policy.min_share - 1e-12 else f"left out: under {self.policy.min_share:.0%} of the rows"
        )

    # ------------------------------------------------------------------------------------------------------------ rows
    def rows(self, metric: ScoreMetric) -> list[dict[str, Any]]:
        """Return the fields of the findings of a metric, but for what depends on other attributes."""
        pair = metric.kind == "pair"
        rows = []
        for i in range(len(self.labels)):
            if pair and i == self.at:
                continue
            if not self.tally.labelled:
                found = _Estimate(_NAN, _NO_BOUNDS, None, "no labels")
            else:
                found = self._difference(metric, i) if pair else self.estimates(metric)[i]
            sides = [i, self.at] if pair else [i]
            pvalue = self._pvalue(i) if metric.name == "roc_auc_difference" and not np.isnan(found.value) else _NAN
            rows.append(
                {
                    "group": self.labels[i],
                    "reference": self.labels[self.at] if pair else None,
                    "metric": metric.name,
                    "value": found.value,
                    "low": float(found.bounds.low),
                    "high": float(found.bounds.high),
                    "method": found.method,
                    "pvalue": pvalue,
                    "test": None if np.isnan(pvalue) else "z",
                    "n": int(self.total[i]),
                    "n_reference": int(self.total[self.at]) if pair else None,
                    "denominators": self._denominators(metric, sides),
                    "power": _NAN,
                    "minimum_detectable": _NAN,
                    "threshold": None,
                    "verdict": None if self.tally.labelled else Verdict.INSUFFICIENT_DATA,
                    "reason": "; ".join(filter(None, [found.reason, self._floor_words(metric, sides)])),
                }
            )
        return rows

    def _denominators(self, metric: ScoreMetric, sides: list[int]) -> dict[str, Any]:
        if not self.tally.labelled:
            return {}
        counts = {name: tuple(self.groups[i].count(name) for i in sides) for name in metric.denominators}
        return {name: count if len(count) > 1 else count[0] for name, count in counts.items()}

    def _floor_words(self, metric: ScoreMetric, sides: list[int]) -> str:
        """Return which counts are below what the policy would judge from; all the more, this is descriptive."""
        if not self.tally.labelled:
            return ""
        words = [
            f"{show(self.labels[i])} has {count} {'rows' if name == 'total' else name} (floor {floor})"
            for name in ("total", "positives", "negatives")
            if (floor := self.policy.floor(name))
            for i in sides
            if (count := self.groups[i].count(name)) < floor
        ]
        return f"{', '.join(words)}: descriptive" if words else ""

    def _pvalue(self, i: int) -> float:
        pair = [(self.groups[j].auc, self.auc_variances[j]) for j in (i, self.at)]
        return auc_pvalue(*pair[0], *pair[1])


_INTERVALS: Mapping[str, Callable[[_Block, int], _Interval]] = {
    "expected_calibration_error": _Block._calibration_error,
    "roc_auc": _Block._auc,
    "brier_score": _Block._brier_score,
    "calibration_in_the_large": _Block._in_the_large,
    "calibration_slope": _Block._slope,
}


def _residuals(scores: GroupScores) -> WeightedResiduals:
    """Return the rows of a group in which weights differ, as the calibration error reads them."""
    both = np.concatenate([scores.positives, scores.negatives])
    bins = np.searchsorted(bin_edges(N_BINS)[1:-1], both, side="right")
    residual = np.concatenate([1 - scores.positives, -scores.negatives])
    return WeightedResiduals(residual, np.concatenate(scores.weights), bins)


# ------------------------------------------------------------------------------------------------------------- section
def _section(blocks: Sequence[_Block], policy: Policy, chosen: Sequence[ScoreMetric]) -> Section:
    if not all(block.tally.labelled for block in blocks):
        return Section(KEY, "Scores", ("There are no labels: scores cannot be compared with what came true.",))
    lines = [f"Scores are described, not judged. Intervals are {100 * policy.confidence_level:g}%."]
    if blocks[0].tally.weights is not None:
        lines.append("Rows are weighted: n counts them, all other numbers weigh them.")
    if not blocks[0].groups[0].probabilities:
        lines.append("Scores outside [0, 1] are no probabilities: calibration and Brier score are undefined.")
    elif any(metric.name == "expected_calibration_error" for metric in chosen):
        lines.append(
            f"ece, the expected calibration error over {N_BINS} equal-width bins, is biased upward, the more so the fewer rows a "
            "group has; ece_crossfit is biased downward. The interval runs around both."
        )
    differing = [show(block.key) for block in blocks if _base_rates_differ(block, policy)]
    if differing:
        lines.append(
            f"Base rates differ by {', '.join(differing)}. A score that is calibrated in every group then cannot also have "
            "equal error rates, unless it predicts without error (Kleinberg et al. 2016)."
        )
    shown = [SCORE_METRICS[name] for name in _SHOWN if name in {metric.name for metric in chosen}]
    columns = (*_PEOPLE, *(column for metric in shown for column in _SHOWN[metric.name]))
    return Section(KEY, "Scores by group", tuple(lines), columns, tuple(row for b in blocks for row in _rows(b, shown)))


def _rows(block: _Block, shown: Sequence[ScoreMetric]) -> list[tuple[Any, ...]]:
    rows = []
    for i, group in enumerate(block.groups):
        cells: list[Any] = [show(block.key), show(block.labels[i]), group.n, group.base_rate, group.mean_score]
        for metric in shown:
            found = block.estimates(metric)[i]
            columns = [found.value, float(found.bounds.low), float(found.bounds.high)]
            if metric.name == "expected_calibration_error":
                columns.append(_NAN if np.isnan(found.value) else float(block.calibration.crossfit[i]))
            cells += columns[: len(_SHOWN[metric.name])]
        rows.append(tuple(cells))
    return rows


def _base_rates_differ(block: _Block, policy: Policy) -> bool:
    """Tell whether the chi-square test of equal base rates rejects."""
    if sum(group.n > 0 for group in block.groups) < 2:
        return False
    test = chi2_test(*confusion_of(block.tally).proportion("base_rate"))
    return bool(test.pvalue < 1 - policy.confidence_level)


# --------------------------------------------------------------------------------------------------------- reliability
def reliability_table(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    pos_label: Any = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return one row a bin of scores: how many rows, the mean score, and the share that came true, with its interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_score : array-like of shape (n_samples,)
        Probabilities of the positive label, in [0, 1].
    sensitive_features : Series, array, dict of arrays or frame, optional
        The group of each row; several columns are read as their intersection. All groups share the bins.
    sample_weight : array-like of shape (n_samples,), optional
        Sampling weights: mean scores and observed rates are weighted, intervals are those of effective rows. ``n`` is rows;
        rows with a weight of 0 are left out. Quantiles are of rows, whatever they weigh.
    n_bins : int, default=10
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width over [0, 1], or of equal numbers of rows; quantiles that coincide make one bin.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.
    confidence_level : float, default=0.95
        Of Wilson's intervals.

    Returns
    -------
    DataFrame
        The sensitive features, if any, then ``bin_low, bin_high, n, mean_score, observed_rate, low, high``. Bins are
        ``[bin_low, bin_high)``, the last one closed; those without rows have ``n`` 0 and NaN.

    Raises
    ------
    ValueError
        If a score lies outside [0, 1], or rows cannot be matched.

    Examples
    --------
    >>> reliability_table([1, 0, 1, 1], [0.2, 0.3, 0.8, 1.0], n_bins=2)[["bin_low", "n", "mean_score", "observed_rate"]]
       bin_low  n  mean_score  observed_rate
    0      0.0  2        0.25            0.5
    1      0.5  2        0.90            1.0
    """
    if sensitive_features is None:
        check_aligned({"y_true": y_true, "y_score": y_score, "sample_weight": sample_weight})
        truth, _ = encode_outcomes(y_true, pos_label)
        weights = None if sample_weight is None else check_sample_weight(sample_weight)
        one = np.zeros(truth.size, dtype=np.intp)
        scores: Any = ScoreTally.from_rows(y_score, truth, one, n_groups=1, weights=weights)
        groups: dict[str, list[Any]] = {}
    else:
        tally = Tally.from_predictions(
            y_true,
            y_true,
            y_score=y_score,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        scores = tally.scores
        groups = {name: [group[k] for group in tally.groups] for k, name in enumerate(tally.attributes)}
    return _reliability(scores, groups, n_bins, strategy, confidence_level)


def reliability_of(
    tally: Tally, *, n_bins: int = N_BINS, strategy: str = "uniform", confidence_level: float = 0.95
) -> pd.DataFrame:
    """Return the table of :func:`reliability_table` from a tally that has scores.

    A tally read back from JSON has its scores in ten equal-width bins, and no others can be made of them.

    Raises
    ------
    ValueError
        If there are no scores, no labels, no probabilities, or not these bins.
    """
    if tally.scores is None:
        raise ValueError("there are no scores: pass y_score, the probabilities of pos_label, when auditing.")
    if not tally.labelled:
        raise ValueError("there are no labels: scores cannot be compared with what came true.")
    groups = {name: [group[k] for group in tally.groups] for k, name in enumerate(tally.attributes)}
    return _reliability(tally.scores, groups, n_bins, strategy, confidence_level)


def _reliability(
    scores: ScoreTally | ScoreBins,
    groups: Mapping[str, list[Any]],
    n_bins: int,
    strategy: str,
    confidence_level: float,
) -> pd.DataFrame:
    if isinstance(scores, ScoreBins):
        if (n_bins, strategy) != (N_BINS, "uniform"):
            raise ValueError(
                f"scores read back from JSON stand in {N_BINS} bins of equal width; got n_bins={n_bins!r} and "
                f"strategy={strategy!r}. Other bins need the rows."
            )
        edges, bins = bin_edges(N_BINS), scores
        rows, sums = bins.totals.sum(2), bins.sums.sum(2)
        slack = 1e-9 * max(1.0, float(rows.max(initial=0.0)))
        if (sums < edges[:-1] * rows - slack).any() or (sums > edges[1:] * rows + slack).any():
            raise ValueError("y_score must hold probabilities, from 0 to 1; some of the stored scores lie outside.")
    else:
        if not scores.probabilities:
            raise ValueError(
                f"y_score must hold probabilities, from 0 to 1; got scores from {scores.scores.min():.6g} to "
                f"{scores.scores.max():.6g}. Calibrate them first, for example with "
                f"sklearn.calibration.CalibratedClassifierCV."
            )
        edges = score_edges(scores.scores, n_bins, strategy)
        bins = scores.binned(edges)
    counts, totals = bins.counts.sum(2).ravel(), bins.totals.sum(2).ravel()
    positives = bins.totals[:, :, 1].ravel()
    effective: Any = (positives, counts)
    if bins.weights is not None and bins.squared_weights is not None:
        # Bins as groups in which all are selected: their base rates have effective counts.
        parts = (part.reshape(-1, 2) for part in (bins.weights, bins.counts, bins.squared_weights))
        weight, rows_of, square = (np.stack([np.zeros_like(part), part], axis=-1) for part in parts)
        effective = WeightedConfusion(weight, rows_of, square).proportion("base_rate")
    low, high = wilson_interval(*effective, confidence_level=confidence_level)
    filled = np.where(counts > 0, totals, np.nan)
    n_edges = edges.size - 1
    data: dict[str, Any] = {
        "bin_low": np.tile(edges[:-1], scores.n_groups),
        "bin_high": np.tile(edges[1:], scores.n_groups),
        "n": counts,
        "mean_score": bins.sums.sum(2).ravel() / filled,
        "observed_rate": positives / filled,
        "low": low,
        "high": high,
    }
    check_apart(list(groups), data, "the reliability table")
    people = {name: [v for v in values for _ in range(n_edges)] for name, values in groups.items()}
    return pd.DataFrame(people | data)
