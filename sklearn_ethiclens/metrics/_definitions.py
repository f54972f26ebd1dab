"""The catalogue: every metric with its formula, range, parity value, undefined case and source.

To add a metric, write one entry in ``METRICS`` (a function of a confusion, or of a group's and the reference's) and a row
of hand-worked numbers in its test; auditor, scorers, reports and the command line read the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from sklearn_ethiclens.metrics._comparisons import composite, difference, largest_gap, ratio, smallest_ratio
from sklearn_ethiclens.metrics._rates import EMPTY, OUTCOMES, RATES, Confusion, Floats

Kind = Literal["group", "pair", "overall"]


@dataclass(frozen=True)
class Metric:
    """One entry of the catalogue.

    Parameters
    ----------
    name : str
        The field's name; one shared with fairlearn or AIF360 has that library's definition for two groups.
    kind : {"group", "pair", "overall"}
        A number of one group, of a group against the reference, or of all groups at once.
    function : callable
        ``function(confusion)``, or ``function(confusion, reference_confusion)`` for a pair; elementwise, NaN where
        undefined.
    formula : str
        In words or symbols; ``r`` is the selection rate, ``d`` a difference group minus reference.
    rates : tuple of str
        The rates it is made of: they give its denominators, floors and test.
    low, high : float
        Its range.
    parity : float or None
        Its value when groups are treated alike; None for a number that is no comparison.
    source : str
        Paper, rule or library it comes from.
    scale : {"ratio", "difference", "rate", "score"}
        How it is read and drawn.
    by_outcome : bool
        Whether it reads the favourable event, so that ``outcome="adverse"`` turns it over.
    note : str
        When it misleads.
    otherwise : str
        When it is undefined though no denominator is empty and no reference rate 0.

    Examples
    --------
    >>> METRICS["true_positive_rate"]([[3, 1], [2, 6]])
    0.75
    >>> METRICS["disparate_impact"]([[6, 4]], [[2, 8]])
    0.5
    """

    name: str
    kind: Kind
    function: Callable[..., Floats]
    formula: str
    rates: tuple[str, ...]
    low: float
    high: float
    parity: float | None
    source: str
    scale: Literal["ratio", "difference", "rate", "score"]
    by_outcome: bool = False
    note: str = ""
    otherwise: str = ""

    @property
    def uses_labels(self) -> bool:
        """Whether it needs true labels."""
        return any(RATES[rate].uses_labels for rate in self.rates)

    @property
    def denominators(self) -> tuple[str, ...]:
        """The counts it divides by."""
        return tuple(dict.fromkeys(RATES[rate].denominator for rate in self.rates))

    @property
    def undefined(self) -> str:
        """When it is NaN, in words."""
        empty = " or ".join(EMPTY[name] for name in self.denominators)
        also = "the reference rate is 0" if self.scale == "ratio" else self.otherwise
        return f"a group has {empty}" + (f"; {also}" if also else "")

    def __call__(self, counts: Any, reference_counts: Any = None, *, outcome: str = "favorable") -> Any:
        """Return the metric of counts.

        Parameters
        ----------
        counts : array-like of shape (..., 2, 2) or (..., 1, 2)
            Counts by (y_true, y_pred), index 1 positive; an "overall" metric reads the axis before as the groups.
        reference_counts : array-like of the same shape, optional
            The reference's counts, for a pair.
        outcome : {"favorable", "adverse"}
            What a positive decision means for a person.

        Returns
        -------
        float or ndarray
        """
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {OUTCOMES}; got {outcome!r}.")
        arrays = [Confusion(np.asarray(c, dtype=float), outcome) for c in (counts, reference_counts) if c is not None]
        if len(arrays) != (2 if self.kind == "pair" else 1):
            raise TypeError(
                f"{self.name} is a {self.kind} metric: it takes {1 + (self.kind == 'pair')} table(s) of counts."
            )
        value = self.function(*arrays)
        return float(value) if np.ndim(value) == 0 else value


# ------------------------------------------------------------------------------------------------- functions of counts
def generalized_entropy(counts: Any, alpha: float = 1.0) -> Any:
    """Return the generalized entropy index of the benefits ``y_pred - y_true + 1``, in closed form from counts.

    Benefits are 0 (fn), 1 (correct) and 2 (fp). ``alpha=1`` is the Theil index, ``alpha=2`` half the squared
    coefficient of variation, ``alpha=0`` the mean log deviation.

    Parameters
    ----------
    counts : array-like of shape (..., 2, 2)
        Counts by (y_true, y_pred).
    alpha : float, default=1.0
        Weight of large benefits.

    Returns
    -------
    float or ndarray
        At least 0; NaN where there are no rows or no benefit at all, and with ``alpha <= 0`` where one benefit is 0.

    References
    ----------
    Speicher et al. 2018, A unified approach to quantifying algorithmic unfairness.

    Examples
    --------
    >>> round(generalized_entropy([[2, 1], [1, 1]]), 4)
    0.2773
    """
    confusion = counts if isinstance(counts, Confusion) else Confusion(np.asarray(counts, dtype=float))
    value = _generalized_entropy(confusion, alpha)
    return float(value) if value.ndim == 0 else value


def _generalized_entropy(c: Confusion, alpha: float = 1.0) -> Floats:
    n, fp, fn = c.count("total"), c.count("fp"), c.count("fn")
    with np.errstate(divide="ignore", invalid="ignore"):
        benefits = n + fp
        benefits -= fn  # in place: memory costs as much as the arithmetic
        mean = benefits / n
        if alpha == 1:  # without a benefit there is no false positive: 0/0, undefined as it stands
            value = 2 * np.log(2) * fp
            value /= benefits
            value -= np.log(mean)
            return np.asarray(value)
        if alpha == 0:
            value = np.where(fn > 0, np.nan, np.log(mean) - np.log(2) * fp / n)
        else:
            power = (n - fp - fn + fp * 2.0**alpha) / mean**alpha + (
                np.where(fn > 0, np.inf, 0.0) if alpha < 0 else 0.0
            )
            value = (power / n - 1) / (alpha * (alpha - 1))
    return np.where(np.isfinite(value), value, np.nan)


def _theil_index(c: Confusion) -> Floats:
    return c.computed("theil_index", _generalized_entropy)


def _rate(name: str) -> Callable[[Confusion], Floats]:
    return lambda c: c.rate(name)


def _compare(comparison: Callable[[Floats, Floats], Floats], name: str) -> Callable[[Confusion, Confusion], Floats]:
    return lambda a, b: comparison(a.rate(name), b.rate(name))


def _absolute(name: str) -> Callable[[Confusion, Confusion], Floats]:
    return lambda a, b: np.abs(difference(a.rate(name), b.rate(name)))


def _gap(a: Confusion, b: Confusion, name: str) -> Floats:
    return difference(a.rate(name), b.rate(name))


def _balanced_accuracy(c: Confusion) -> Floats:
    return (c.rate("true_positive_rate") + c.rate("true_negative_rate")) / 2


def _equalized_odds(a: Confusion, b: Confusion) -> Floats:
    return np.maximum(np.abs(_gap(a, b, "true_positive_rate")), np.abs(_gap(a, b, "false_positive_rate")))


def _average_odds(a: Confusion, b: Confusion) -> Floats:
    return (_gap(a, b, "true_positive_rate") + _gap(a, b, "false_positive_rate")) / 2


def _average_odds_error(a: Confusion, b: Confusion) -> Floats:
    return (np.abs(_gap(a, b, "true_positive_rate")) + np.abs(_gap(a, b, "false_positive_rate"))) / 2


def _composite(a: Confusion, b: Confusion) -> Floats:
    favorable = a.rate("favorable_rate"), b.rate("favorable_rate")
    return composite(ratio(*favorable), difference(*favorable), _equalized_odds(a, b))


# ----------------------------------------------------------------------------------------------------------- catalogue
_ALL_FN = "every row of a group is a false negative"
_BOTH_ODDS = ("true_positive_rate", "false_positive_rate")

_RATE_FORMULAS = {
    "selection_rate": ("(tp + fp) / n", "fairlearn"),
    "favorable_rate": ("share who receive the favourable decision", "UGESP 1978, 29 CFR 1607.4 D"),
    "base_rate": ("(tp + fn) / n", "AIF360"),
    "true_positive_rate": ("tp / (tp + fn)", "fairlearn; Hardt et al. 2016"),
    "false_positive_rate": ("fp / (fp + tn)", "fairlearn; Hardt et al. 2016"),
    "false_negative_rate": ("fn / (tp + fn)", "fairlearn; Chouldechova 2017"),
    "true_negative_rate": ("tn / (fp + tn)", "fairlearn"),
    "precision": ("tp / (tp + fp)", "scikit-learn; Chouldechova 2017"),
    "negative_predictive_value": ("tn / (tn + fn)", "Berk et al. 2021"),
    "false_discovery_rate": ("fp / (tp + fp)", "AIF360"),
    "false_omission_rate": ("fn / (tn + fn)", "AIF360"),
    "accuracy": ("(tp + tn) / n", "scikit-learn; Berk et al. 2021"),
    "f1": ("2 tp / (2 tp + fp + fn)", "scikit-learn"),
}


def _rate_entries() -> list[Metric]:
    entries = []
    for name, (formula, source) in _RATE_FORMULAS.items():
        turns = name == "favorable_rate"
        entries.append(
            Metric(name, "group", _rate(name), formula, (name,), 0, 1, None, source, "rate", by_outcome=turns)
        )
        if turns:  # its difference and ratio are statistical_parity_difference and disparate_impact
            continue
        entries.append(
            Metric(
                f"{name}_difference",
                "pair",
                _compare(difference, name),
                f"{name} of the group minus that of the reference",
                (name,),
                -1,
                1,
                0.0,
                source,
                "difference",
            )
        )
        entries.append(
            Metric(
                f"{name}_ratio",
                "pair",
                _compare(ratio, name),
                f"{name} of the group over that of the reference",
                (name,),
                0,
                np.inf,
                1.0,
                source,
                "ratio",
            )
        )
    return entries


def _named_entries() -> list[Metric]:
    benefit = ("accuracy",)  # the Theil index needs labels and rows; its denominator is n
    return [
        Metric(
            "balanced_accuracy",
            "group",
            _balanced_accuracy,
            "(true_positive_rate + true_negative_rate) / 2",
            ("true_positive_rate", "true_negative_rate"),
            0,
            1,
            None,
            "scikit-learn",
            "rate",
        ),
        Metric(
            "theil_index",
            "group",
            _theil_index,
            "2 ln2 fp / (n mu) - ln mu, mu = (n + fp - fn) / n, of the benefit y_pred - y_true + 1",
            benefit,
            0,
            np.inf,
            None,
            "Speicher et al. 2018; AIF360",
            "score",
            otherwise=_ALL_FN,
        ),
        Metric(
            "disparate_impact",
            "pair",
            _compare(ratio, "favorable_rate"),
            "r of the group over r of the reference, r the rate of the favourable decision",
            ("favorable_rate",),
            0,
            np.inf,
            1.0,
            "UGESP 1978, 29 CFR 1607.4 D (four-fifths rule); AIF360 disparate_impact_ratio",
            "ratio",
            by_outcome=True,
            note="A ratio of small rates is unstable; read it beside the difference.",
        ),
        Metric(
            "statistical_parity_difference",
            "pair",
            _compare(difference, "favorable_rate"),
            "r of the group minus r of the reference, r the rate of the favourable decision",
            ("favorable_rate",),
            -1,
            1,
            0.0,
            "Dwork et al. 2012; AIF360",
            "difference",
            by_outcome=True,
        ),
        Metric(
            "equalized_odds_difference",
            "pair",
            _equalized_odds,
            "max(|d true_positive_rate|, |d false_positive_rate|)",
            _BOTH_ODDS,
            0,
            1,
            0.0,
            "Hardt et al. 2016; fairlearn",
            "difference",
            note="A maximum of absolutes is biased upward in small samples; the signed gaps stand beside it.",
        ),
        Metric(
            "average_odds_difference",
            "pair",
            _average_odds,
            "(d true_positive_rate + d false_positive_rate) / 2",
            _BOTH_ODDS,
            -1,
            1,
            0.0,
            "Bellamy et al. 2018; AIF360",
            "difference",
            note="Signed gaps of opposite sign cancel.",
        ),
        Metric(
            "average_odds_error",
            "pair",
            _average_odds_error,
            "(|d true_positive_rate| + |d false_positive_rate|) / 2",
            _BOTH_ODDS,
            0,
            1,
            0.0,
            "AIF360",
            "difference",
        ),
        Metric(
            "equal_opportunity_difference",
            "pair",
            _absolute("true_positive_rate"),
            "|d true_positive_rate|",
            ("true_positive_rate",),
            0,
            1,
            0.0,
            "Hardt et al. 2016; fairlearn",
            "difference",
            note="AIF360's is signed: that is true_positive_rate_difference.",
        ),
        Metric(
            "predictive_parity_difference",
            "pair",
            _absolute("precision"),
            "|d precision|",
            ("precision",),
            0,
            1,
            0.0,
            "Chouldechova 2017",
            "difference",
            note="Parity of precision at one threshold; it is not calibration.",
        ),
        Metric(
            "false_positive_rate_balance",
            "pair",
            _absolute("false_positive_rate"),
            "|d false_positive_rate|",
            ("false_positive_rate",),
            0,
            1,
            0.0,
            "Chouldechova 2017 (predictive equality)",
            "difference",
        ),
        Metric(
            "theil_index_difference",
            "pair",
            lambda a, b: difference(_theil_index(a), _theil_index(b)),
            "theil_index of the group minus that of the reference",
            benefit,
            -np.inf,
            np.inf,
            0.0,
            "Speicher et al. 2018",
            "difference",
            otherwise=_ALL_FN,
        ),
        Metric(
            "composite_bias_score",
            "pair",
            _composite,
            "0.40 min(DI, 1/DI) + 0.35 (1 - |SPD|) + 0.25 (1 - |EO|)",
            ("favorable_rate", *_BOTH_ODDS),
            0,
            1,
            None,
            "a convenience for triage; no legal standard",
            "score",
            by_outcome=True,
            note="Higher is a smaller disparity. Weights are a convention.",
        ),
        Metric(
            "demographic_parity_difference",
            "overall",
            lambda c: largest_gap(c.rate("favorable_rate")),
            "largest minus smallest rate of the favourable decision over the groups",
            ("favorable_rate",),
            0,
            1,
            0.0,
            "fairlearn",
            "difference",
            by_outcome=True,
        ),
        Metric(
            "demographic_parity_ratio",
            "overall",
            lambda c: smallest_ratio(c.rate("favorable_rate")),
            "smallest over largest rate of the favourable decision over the groups",
            ("favorable_rate",),
            0,
            1,
            1.0,
            "fairlearn",
            "ratio",
            by_outcome=True,
        ),
        Metric(
            "equalized_odds_tpr_gap",
            "overall",
            lambda c: largest_gap(c.rate("true_positive_rate")),
            "largest minus smallest true_positive_rate over the groups",
            ("true_positive_rate",),
            0,
            1,
            0.0,
            "fairlearn",
            "difference",
        ),
        Metric(
            "equalized_odds_fpr_gap",
            "overall",
            lambda c: largest_gap(c.rate("false_positive_rate")),
            "largest minus smallest false_positive_rate over the groups",
            ("false_positive_rate",),
            0,
            1,
            0.0,
            "fairlearn",
            "difference",
        ),
        Metric(
            "equalized_odds_ratio",
            "overall",
            lambda c: np.minimum(smallest_ratio(c.rate(_BOTH_ODDS[0])), smallest_ratio(c.rate(_BOTH_ODDS[1]))),
            "the smaller of two min/max ratios over the groups: of true_positive_rate and of false_positive_rate",
            _BOTH_ODDS,
            0,
            1,
            1.0,
            "fairlearn",
            "ratio",
        ),
    ]


METRICS: Mapping[str, Metric] = MappingProxyType({m.name: m for m in [*_rate_entries(), *_named_entries()]})
"""The catalogue of metrics by name."""

# An alias keeps the name that another library or rule uses for the same number.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "average_absolute_odds_difference": "average_odds_error",
        "demographic_parity": "demographic_parity_difference",
        "equal_opportunity": "equal_opportunity_difference",
        "equalized_odds": "equalized_odds_difference",
        "predictive_parity": "predictive_parity_difference",
        "predictive_equality": "false_positive_rate_balance",
        "adverse_impact_ratio": "disparate_impact",
    }
)


def why_undefined(metric: Metric, confusion: Confusion, index: int) -> str:
    """Return which denominators of a metric are empty for a group, in words; empty if none is."""
    if metric.uses_labels and not confusion.labelled:
        return "no labels"
    return " and ".join(EMPTY[name] for name in metric.denominators if confusion.count(name)[index] == 0)


def get_metric(name: str) -> Metric:
    """Return the catalogue entry of a name or alias.

    Raises
    ------
    ValueError
        If there is none; the message lists the names that look alike.
    """
    if isinstance(name, str) and (key := ALIASES.get(name, name)) in METRICS:
        return METRICS[key]
    near = get_close_matches(str(name), [*METRICS, *ALIASES], n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"metric must be a name in METRICS; got {name!r}.{hint}")
