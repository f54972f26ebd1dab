"""Policies: everything that is judged, by name and frozen; intervals and values -> verdicts.

A policy holds the reference choice, the rules with their thresholds, the interval method, multiplicity and floors. Every
field can be overridden:

>>> strict = get_policy("ethiclens").replace(thresholds={"equalized_odds_difference": 0.05}, n_resamples=5000)
>>> strict.rule("equalized_odds_difference").maximum
0.05
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from math import ceil, inf, isfinite, isnan
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from sklearn_ethiclens.inference._intervals import check_fraction
from sklearn_ethiclens.inference._resampling import METHODS, check_n_resamples
from sklearn_ethiclens.metrics._comparisons import above, below
from sklearn_ethiclens.metrics._definitions import METRICS, Metric, get_metric
from sklearn_ethiclens.metrics._rates import EMPTY

__all__ = ["POLICIES", "Policy", "Rule", "Verdict", "get_policy"]

Basis = Literal["interval", "simultaneous", "point", "gap", "significance"]
ReferenceChoice = Literal["highest_rate", "first", "highest_value"]
Multiplicity = Literal["holm", "bh", "max-t"]
IntervalMethod = Literal["auto", "bca", "percentile"]


class Verdict(StrEnum):
    """What a policy says of one finding, or of an audit.

    ``FLAGGED``: beyond the threshold, with statistical support where the policy asks for it. ``CLEARED``: the interval
    lies wholly inside. ``INCONCLUSIVE``: it straddles. ``INSUFFICIENT_DATA``: below a floor, or no labels.
    ``UNDEFINED``: 0/0.
    """

    FLAGGED = "FLAGGED"
    CLEARED = "CLEARED"
    INCONCLUSIVE = "INCONCLUSIVE"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"
    UNDEFINED = "UNDEFINED"


@dataclass(frozen=True)
class Rule:
    """One metric, what is acceptable, and on what it is judged.

    Parameters
    ----------
    metric : str
        A name in ``METRICS`` of a comparison: of two groups, or over all of them.
    minimum, maximum : float, optional
        The acceptable range, ends included; parity lies within it.
    basis : {"interval", "simultaneous", "point", "gap", "significance"}
        "interval": flagged if the interval lies wholly outside the range. "simultaneous": that, and the test that the true
        value is within the range rejects after adjustment for everything judged. "point": the value alone. "gap": the
        absolute value is outside and the signed interval excludes 0. "significance": the value is outside and the test
        of equal rates rejects; one of the two alone is inconclusive. A "gap" is a difference, and "significance" is that of
        one rate.
    absolute : bool
        Whether the range is of the absolute value.
    elevated : float, optional
        From here on up to ``maximum`` a point is neither cleared nor flagged, and the audit's status fails all the same; only
        with basis "point".

    Raises
    ------
    ValueError
        For a rule that cannot judge: of a metric that compares nothing, on a basis that it does not have, or with limits that
        parity is outside of, or everything inside.
    """

    metric: str
    minimum: float | None = None
    maximum: float | None = None
    basis: Basis = "interval"
    absolute: bool = False
    elevated: float | None = None

    def __post_init__(self) -> None:
        metric = get_metric(self.metric)
        object.__setattr__(self, "metric", metric.name)
        if metric.kind == "group":
            raise ValueError(f"{metric.name} is a value of one group, no comparison: it cannot have a rule.")
        if self.minimum is None and self.maximum is None:
            raise ValueError(f"the rule for {self.metric} needs a minimum or a maximum.")
        for name in ("minimum", "maximum", "elevated"):
            object.__setattr__(self, name, _limit_of(self.metric, name, getattr(self, name)))
        if self.basis not in get_args(Basis):
            raise ValueError(f"basis must be one of {get_args(Basis)}; got {self.basis!r}.")
        if self.basis == "gap" and self.maximum is None:
            raise ValueError(f"the rule for {self.metric} judges a gap, which needs a maximum.")
        low = -inf if self.minimum is None else self.minimum
        high = inf if self.maximum is None else self.maximum
        if not low <= high:
            raise ValueError(f"minimum must not exceed maximum; got {self.minimum!r} and {self.maximum!r}.")
        self._refuse_other_basis(metric)
        self._refuse_senseless_limits(metric)

    def _refuse_other_basis(self, metric: Metric) -> None:
        """Refuse a basis that the metric does not have."""
        if self.basis == "gap" and metric.scale != "difference":
            raise ValueError(
                f"a gap is a difference; {metric.name} is a {metric.scale}. Use basis='interval', or the difference of the rate."
            )
        of_one_rate = len(metric.rates) == 1 and metric.rates[0] != "f1" and not metric.name.startswith("theil")
        if self.basis == "significance" and not of_one_rate:
            raise ValueError(
                f"basis 'significance' is of the test that two proportions are equal; {metric.name} is no comparison of one "
                f"proportion. Use basis='interval'."
            )
        tested = metric.kind == "pair" and (of_one_rate or metric.name == "equalized_odds_difference")
        if self.basis == "simultaneous" and not tested:
            raise ValueError(
                f"basis 'simultaneous' tests limits on the ratio or difference of one proportion, and on "
                f"equalized_odds_difference; {metric.name} has no such test and could never be flagged. Use basis='interval'."
            )
        if self.basis == "simultaneous" and self.maximum == 0 and (self.absolute or metric.low == 0):
            raise ValueError(
                f"basis 'simultaneous' cannot test a maximum of 0: every gap of {metric.name} lies beyond it. Give the largest "
                f"gap that is acceptable, such as 0.01."
            )
        if self.elevated is not None and self.basis != "point":
            raise ValueError(f"elevated is of points; the rule for {metric.name} has the basis {self.basis!r}.")
        if self.elevated is not None and (self.maximum is None or self.elevated > self.maximum):
            raise ValueError(f"elevated must not exceed maximum; got {self.elevated!r} and {self.maximum!r}.")

    def _refuse_senseless_limits(self, metric: Metric) -> None:
        """Refuse a range that parity is outside of, so that all is flagged, or that nothing can leave."""
        largest = max(-metric.low, metric.high) if self.absolute else metric.high
        percent = max(abs(limit) for limit in (self.minimum, self.maximum) if limit is not None)
        hint = f" Did you mean {percent / 100:g}?" if 1 < percent <= 100 else ""
        if metric.parity is not None and not (
            (self.minimum is None or self.minimum <= metric.parity)
            and (self.maximum is None or self.maximum >= metric.parity)
        ):
            raise ValueError(
                f"the rule {self.describe()!r} would flag parity, which is {metric.parity:g}: a minimum lies at or below it, a "
                f"maximum at or above.{hint}"
            )
        if self.maximum is not None and self.minimum is None and self.maximum > largest:
            raise ValueError(
                f"the rule {self.describe()!r} would never flag: {metric.name} is at most {largest:g}.{hint}"
            )

    @property
    def threshold(self) -> float:
        """The limit that is named in a finding."""
        limit = self.minimum if self.minimum is not None else self.maximum
        assert limit is not None
        return limit

    def describe(self) -> str:
        """Return the rule in words."""
        name = f"|{self.metric}|" if self.absolute else self.metric
        limits = [
            f">= {self.minimum:g}" if self.minimum is not None else "",
            f"<= {self.maximum:g}" if self.maximum is not None else "",
        ]
        return f"{name} {' and '.join(filter(None, limits))}"

    def judge(self, value: float, low: float, high: float, *, significant: bool | None = None) -> tuple[Verdict, str]:
        """Return the verdict on a defined value, and the reason in words.

        Parameters
        ----------
        value, low, high : float
            The estimate and its interval; NaN ends where there is none.
        significant : bool, optional
            Whether the test rejects that the rule's basis asks for; None if it could not be made.
        """
        if self.absolute:
            value, low, high = abs(value), max(0.0, low, -high), max(abs(low), abs(high))
        if self.basis == "point":
            return self._judge_point(value)
        if self.basis == "significance":
            return self._judge_significance(value, significant)
        if isnan(low) or isnan(high):
            return Verdict.INCONCLUSIVE, "no valid interval"
        if self.basis == "gap":
            return self._judge_gap(value, low, high)
        if self._outside(high, low):
            if self.basis == "simultaneous" and not significant:
                return Verdict.INCONCLUSIVE, f"the interval lies {self._passed(high)}, but not after adjustment"
            return Verdict.FLAGGED, f"the interval lies {self._passed(high)}"
        if self._inside(low, high):
            return Verdict.CLEARED, f"the interval lies inside {self.describe()}"
        return Verdict.INCONCLUSIVE, f"the interval holds {self._limit(low):g}"

    def _limit(self, end: float) -> float:
        """Return the limit that a value passed, or that an interval from it upwards holds."""
        if self.minimum is not None and below(end, self.minimum):
            return self.minimum
        return self.maximum if self.maximum is not None else self.threshold

    def _passed(self, end: float) -> str:
        """Return which limit a value passed, and to which side."""
        limit = self._limit(end)
        return f"{'below' if end < limit else 'above'} {limit:g}"

    def _outside(self, upper: float, lower: float) -> bool:
        """Tell whether all between two ends is outside the range."""
        return (self.minimum is not None and below(upper, self.minimum)) or (
            self.maximum is not None and above(lower, self.maximum)
        )

    def _inside(self, lower: float, upper: float) -> bool:
        return not (
            (self.minimum is not None and below(lower, self.minimum))
            or (self.maximum is not None and above(upper, self.maximum))
        )

    def _judge_point(self, value: float) -> tuple[Verdict, str]:
        if self._outside(value, value):
            return Verdict.FLAGGED, f"the value lies {self._passed(value)} (uncertainty ignored)"
        if self.elevated is not None and not below(value, self.elevated):
            return (
                Verdict.INCONCLUSIVE,
                f"elevated: between {self.elevated:g} and {self.threshold:g} (uncertainty ignored)",
            )
        return Verdict.CLEARED, f"the value lies inside {self.describe()} (uncertainty ignored)"

    def _judge_gap(self, value: float, low: float, high: float) -> tuple[Verdict, str]:
        assert self.maximum is not None
        excludes_zero = low > 0 or high < 0
        if above(abs(value), self.maximum) and excludes_zero:
            return Verdict.FLAGGED, f"the gap is above {self.maximum:g} and its interval excludes 0"
        if not above(max(abs(low), abs(high)), self.maximum):
            return Verdict.CLEARED, f"the interval lies inside +-{self.maximum:g}"
        return Verdict.INCONCLUSIVE, f"the interval holds {'0' if not excludes_zero else format(self.maximum, 'g')}"

    def _judge_significance(self, value: float, significant: bool | None) -> tuple[Verdict, str]:
        if significant is None:
            return Verdict.INCONCLUSIVE, "no test could be made"
        outside = self._outside(value, value)
        where = self._passed(value) if outside else f"inside {self.describe()}"
        said = f"the value lies {where}; the difference is {'' if significant else 'not '}significant (unadjusted test)"
        if outside and significant:
            return Verdict.FLAGGED, said
        return (Verdict.INCONCLUSIVE if outside or significant else Verdict.CLEARED), said


@dataclass(frozen=True)
class Policy:
    """What is judged, and how.

    Parameters
    ----------
    name, description, source : str
        What it is called, what it does in a sentence, and where it comes from.
    rules : tuple of Rule
        The judged metrics; every other metric of the catalogue is descriptive.
    reference : {"highest_rate", "first", "highest_value"}
        The group compared with where none is given: the highest rate of the favourable decision above the floor, the
        first in canonical order, or for each metric the group where it is highest.
    method : {"bca", "percentile", "auto"}
        Interval method. "auto": the one that holds its level, by metric: Wilson, Newcombe, Miettinen-Nurminen, for largest
        gaps and means their combinations, BCa for what is no rate or gap of rates.
    confidence_level : float
        Of the intervals.
    n_resamples : int
        Bootstrap replicates.
    multiplicity : {"holm", "bh", "max-t"}
        Adjustment of the tests that decide under a "simultaneous" rule, over everything judged, and of the p-values of
        equal rates over all comparisons of a metric. "max-t" is of the joint bootstrap, for the tests that decide;
        p-values of equal rates then have Holm's.
    floors : mapping of str to int
        By denominator ("total", "positives", "negatives", "selected", "rejected"): the least count that is judged, in both
        groups of a comparison; "rows" is the least number of rows whatever the metric.
    min_share : float
        Groups with a smaller share of the rows are listed but left out of comparisons.
    size_notes, intersection_size_notes : tuple of (int, str)
        Words for groups with fewer rows than this.

    Examples
    --------
    >>> POLICIES["four_fifths"].rule("demographic_parity_ratio").describe()
    'demographic_parity_ratio >= 0.8'
    """

    name: str
    description: str
    source: str = ""
    rules: tuple[Rule, ...] = ()
    reference: ReferenceChoice = "highest_rate"
    method: str = "bca"
    confidence_level: float = 0.95
    n_resamples: int = 2000
    multiplicity: str = "holm"
    floors: Mapping[str, int] = field(default_factory=dict)
    min_share: float = 0.0
    size_notes: tuple[tuple[int, str], ...] = ()
    intersection_size_notes: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if self.method not in get_args(IntervalMethod):
            raise ValueError(f"method must be one of {(*METHODS, 'auto')}; got {self.method!r}.")
        check_fraction(self.confidence_level, "confidence_level")
        check_n_resamples(self.n_resamples)
        if self.multiplicity not in get_args(Multiplicity):
            raise ValueError(f"multiplicity must be 'holm', 'bh' or 'max-t'; got {self.multiplicity!r}.")
        if self.reference not in ("highest_rate", "first", "highest_value"):
            raise ValueError(f"reference must be 'highest_rate', 'first' or 'highest_value'; got {self.reference!r}.")
        known = sorted([*EMPTY, "rows"])
        unknown = sorted(set(self.floors) - set(known))
        if unknown:
            raise ValueError(f"floors must be named by {known}; got {unknown}.")
        for name, floor in self.floors.items():
            if not isinstance(floor, int | np.integer) or isinstance(floor, bool) or floor < 0:
                raise ValueError(f"floors must be whole numbers of at least 0; got {name!r}: {floor!r}.")
        if not isinstance(self.min_share, Real) or isinstance(self.min_share, bool) or not 0 <= self.min_share < 1:
            raise ValueError(f"min_share must be a share in [0, 1); got {self.min_share!r}.")
        if not isinstance(self.rules, list | tuple):
            raise TypeError(f"rules must be a tuple of Rule objects; got {self.rules!r}.")
        object.__setattr__(self, "rules", tuple(self.rules))
        _refuse_repeated(self.rules)
        self._refuse_few_replicates()
        object.__setattr__(self, "floors", MappingProxyType(dict(self.floors)))

    def _refuse_few_replicates(self) -> None:
        """Refuse a max-T adjustment whose smallest p-value, one in all replicates and the data, is above the level."""
        level = (1 - self.confidence_level) / 2
        if self.judges_together and self.multiplicity == "max-t" and (self.n_resamples + 1) * level < 1 - 1e-9:
            raise ValueError(
                f"n_resamples={self.n_resamples} can flag nothing at confidence_level={self.confidence_level:g}: the smallest "
                f"p-value of max-T is 1 / (n_resamples + 1), and {level:.3g} is asked for. Take at least "
                f"{ceil(1 / level - 1 - 1e-9)} replicates, or multiplicity='holm'."
            )

    def __hash__(self) -> int:
        return hash((self.name, self.rules, self.n_resamples, tuple(sorted(self.floors.items()))))

    def __reduce__(self) -> Any:
        return Policy.from_dict, (self.to_dict(),)

    @property
    def ignores_uncertainty(self) -> bool:
        """Whether it judges on points, by design."""
        return any(rule.basis == "point" for rule in self.rules)

    @property
    def judges_together(self) -> bool:
        """Whether it adjusts its flags for everything that is judged."""
        return any(rule.basis == "simultaneous" for rule in self.rules)

    @property
    def least_rows(self) -> int:
        """The rows a group needs to be compared by selection rates, and to be chosen as reference."""
        return max(self.floors.get("total", 0), self.floors.get("rows", 0))

    def floor(self, denominator: str) -> int:
        """Return the least count of a denominator that is judged; 0 if there is none."""
        return self.least_rows if denominator == "total" else self.floors.get(denominator, 0)

    def rule(self, metric: str) -> Rule | None:
        """Return the rule of a metric; None if it is descriptive."""
        return next((rule for rule in self.rules if rule.metric == metric), None)

    def replace(
        self, *, thresholds: Mapping[str, float] | None = None, direction: str | None = None, **changes: Any
    ) -> Policy:
        """Return the policy with some of it changed.

        Parameters
        ----------
        thresholds : mapping of metric to float, optional
            New limits of judged metrics; a metric without a rule gets one on its interval.
        direction : {"below", "both"}, optional
            Whether a ratio is judged for under-selection only, or also above 1 / threshold (.80 - 1.25).
        **changes
            Other fields, by name.

        Returns
        -------
        Policy
        """
        unknown = sorted(set(changes) - {f.name for f in fields(self)})
        if unknown:
            raise TypeError(f"a policy has no {unknown}; it has {sorted(f.name for f in fields(self))}.")
        given = changes.pop("rules", self.rules)
        if not isinstance(given, list | tuple):
            raise TypeError(f"rules must be a tuple of Rule objects; got {given!r}.")
        _refuse_repeated(given)
        rules = {rule.metric: rule for rule in given}
        if thresholds is not None and not isinstance(thresholds, Mapping):
            raise TypeError(
                f"thresholds must map a metric to its limit, as {{'disparate_impact': 0.9}}; got {thresholds!r}."
            )
        for name, asked in (thresholds or {}).items():
            metric = get_metric(name)
            if metric.kind == "group" or metric.parity is None:
                raise ValueError(f"{metric.name} is no comparison with a parity value; it cannot have a threshold.")
            old, limit = rules.get(metric.name), _limit_of(metric.name, "threshold", asked)
            if limit is None:
                raise ValueError(
                    f"thresholds of {metric.name} must be a number; got None. Leave it out to keep the policy's."
                )
            if metric.scale == "ratio":
                both = old is not None and old.maximum is not None
                limits: dict[str, Any] = {"minimum": limit, "maximum": 1 / limit if both and limit > 0 else None}
            else:
                limits = {"maximum": limit}
                if old is not None and old.elevated is not None and old.elevated > limit:
                    limits["elevated"] = None  # nothing is left between the two
            signed = metric.scale == "difference" and metric.low < 0
            rules[metric.name] = replace(old, **limits) if old else Rule(metric.name, absolute=signed, **limits)
        if direction is not None:
            if direction not in ("below", "both"):
                raise ValueError(f"direction must be 'below' or 'both'; got {direction!r}.")
            for name, rule in rules.items():
                if rule.minimum is not None:
                    rules[name] = replace(
                        rule, maximum=1 / rule.minimum if direction == "both" and rule.minimum > 0 else None
                    )
        return replace(self, rules=tuple(rules.values()), **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain JSON types."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {
            "rules": [asdict(rule) for rule in self.rules],
            "floors": dict(self.floors),
            "size_notes": [list(note) for note in self.size_notes],
            "intersection_size_notes": [list(note) for note in self.intersection_size_notes],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """Return the policy that :meth:`to_dict` wrote."""
        notes = {name: tuple(map(tuple, data[name])) for name in ("size_notes", "intersection_size_notes")}
        return cls(**{**data, **notes, "rules": tuple(Rule(**rule) for rule in data["rules"])})


def _limit_of(metric: str, name: str, limit: Any) -> float | None:
    """Return a limit as a plain float, which can be stored; None where there is none."""
    if limit is None:
        return None
    if not isinstance(limit, Real | np.number) or isinstance(limit, bool) or not isfinite(limit):
        raise ValueError(f"the rule for {metric} has the {name} {limit!r}; it must be a finite number.")
    return float(limit) if not isinstance(limit, int) else limit


def _refuse_repeated(rules: Sequence[Rule]) -> None:
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(
                f"rules must hold Rule objects, such as Rule('disparate_impact', minimum=0.8); got {rule!r}."
            )
    metrics = [rule.metric for rule in rules]
    repeated = sorted({metric for metric in metrics if metrics.count(metric) > 1})
    if repeated:
        raise ValueError(f"a metric has at most one rule; {repeated} have more.")


# ------------------------------------------------------------------------------------------------------------- named
_ALL = (
    Policy(
        "ethiclens",
        "Flags a disparate impact whose interval lies below .80 and an equalized-odds difference whose interval lies above "
        ".10, with floors on both groups.",
        "the EthicLens methodology",
        (Rule("disparate_impact", minimum=0.80), Rule("equalized_odds_difference", maximum=0.10)),
        floors={"total": 100, "positives": 30, "negatives": 30, "selected": 30, "rejected": 30},
    ),
    Policy(
        "calibrated",
        "The limits of ethiclens, judged so that all flags of an audit together are false in 2.5% of audits: intervals that "
        "hold their level, max-T adjustment over everything judged, a reference chosen from the data allowed for.",
        "the methods measured in the documentation's page on statistics",
        (
            Rule("disparate_impact", minimum=0.80, basis="simultaneous"),
            Rule("equalized_odds_difference", maximum=0.10, basis="simultaneous"),
        ),
        method="auto",
        multiplicity="max-t",
        floors={"rows": 30, "positives": 10, "negatives": 10},
    ),
    Policy(
        "assessor",
        "Point thresholds: disparate impact at least .80; parity, equal-opportunity and FPR gaps under .05 acceptable, to "
        ".10 elevated (the status fails), above concerning. Ignores uncertainty.",
        "a practitioner's checklist",
        (
            Rule("disparate_impact", minimum=0.80, basis="point"),
            Rule("statistical_parity_difference", maximum=0.10, basis="point", absolute=True, elevated=0.05),
            Rule("equal_opportunity_difference", maximum=0.10, basis="point", elevated=0.05),
            Rule("false_positive_rate_balance", maximum=0.10, basis="point", elevated=0.05),
        ),
        reference="first",
        size_notes=((30, "fewer than 30 rows"),),
    ),
    Policy(
        "glassalpha",
        "Flags a gap to the group with the highest value that is above .10 (equal opportunity .05) and whose interval "
        "excludes 0.",
        "GlassAlpha",
        (
            Rule("selection_rate_difference", maximum=0.10, basis="gap"),
            Rule("true_positive_rate_difference", maximum=0.05, basis="gap"),
            Rule("false_positive_rate_difference", maximum=0.10, basis="gap"),
        ),
        reference="highest_value",
        method="percentile",
        n_resamples=1000,
        floors={"rows": 30},
        size_notes=(
            (10, "ERROR: fewer than 10 rows, no conclusion"),
            (30, "fewer than 30 rows, descriptive only"),
            (100, "fewer than 100 rows, limited power"),
        ),
    ),
    Policy(
        "four_fifths",
        "Smallest over largest selection rate at least .80, TPR gap and FPR gap at most .10, over all groups. Ignores "
        "uncertainty.",
        "the four-fifths rule of thumb as testing guides state it",
        (
            Rule("demographic_parity_ratio", minimum=0.80, basis="point"),
            Rule("equalized_odds_tpr_gap", maximum=0.10, basis="point"),
            Rule("equalized_odds_fpr_gap", maximum=0.10, basis="point"),
        ),
        intersection_size_notes=((50, "fewer than 50 rows in an intersection (50 to 100 are advised)"),),
    ),
    Policy(
        "eeoc",
        "Flags an impact ratio below four fifths that is also significant (two standard deviations, or Fisher's exact test "
        "where an expected count is below 5); one of the two alone is inconclusive.",
        "Uniform Guidelines 1978, 29 CFR 1607.4 D, and Questions and Answers 1979; under rescission as of 2026",
        (Rule("disparate_impact", minimum=0.80, basis="significance"),),
    ),
    Policy(
        "ll144",
        "Impact ratios against the most selected category; categories under 2% of the rows are listed and left out of the "
        "ratio. Judges nothing: the rule sets no threshold.",
        "New York City Local Law 144 of 2021; 6 RCNY 5-300 to 5-304",
        min_share=0.02,
    ),
)

FLIP_BANDS: Mapping[str, float] = MappingProxyType({"pass": 0.0, "investigate": 0.05, "audit": 0.10})
# Where each band of a counterfactual flip rate begins.

POLICIES: Mapping[str, Policy] = MappingProxyType({policy.name: policy for policy in _ALL})
"""The named policies."""


def get_policy(policy: str | Policy) -> Policy:
    """Return a policy given by name, or as it is.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str) and policy in POLICIES:
        return POLICIES[policy]
    raise ValueError(f"policy must be a Policy or one of {sorted(POLICIES)}; got {policy!r}.")


def overall_verdict(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the verdict of an audit from those of its judged findings; None if the policy judges nothing.

    Flagged if any finding is; else inconclusive if any straddles; else insufficient if any could not be judged.
    """
    found = set(verdicts)
    if not found:
        return None
    if found & {Verdict.FLAGGED, Verdict.INCONCLUSIVE}:
        return Verdict.FLAGGED if Verdict.FLAGGED in found else Verdict.INCONCLUSIVE
    return Verdict.CLEARED if found == {Verdict.CLEARED} else Verdict.INSUFFICIENT_DATA


def judged_metrics(policy: Policy) -> list[str]:
    """Return the metrics that a policy judges, in the order of the catalogue."""
    return [name for name in METRICS if policy.rule(name)]
