"""The functions of testing guides: a ratio, two gaps, metrics by group, and a gate that judges points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np

from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.metrics._definitions import METRICS, why_undefined
from sklearn_ethiclens.metrics._functions import zero_in_all
from sklearn_ethiclens.metrics._rates import Confusion, confusion_of
from sklearn_ethiclens.policy import Rule, Verdict
from sklearn_ethiclens.report._words import label

_BY_GROUP = {"accuracy": "accuracy", "precision": "precision", "recall": "true_positive_rate", "f1": "f1"}
_DIGITS = 4  # of a value in the summary


def demographic_parity_ratio(groups: Any, y_pred: Any, *, pos_label: Any = None) -> float:
    """Return the smallest selection rate of any group over the largest.

    It is a point and says nothing of its uncertainty: with 20 people a group, ratios below 0.8 are common where nothing differs.
    :func:`sklearn_ethiclens.audit` gives the interval.

    Parameters
    ----------
    groups : Series, array, dict of arrays or frame with n_rows rows
        The group of each row; of several columns, their combinations.
    y_pred : array-like of shape (n_rows,)
        Decisions (labels, not scores).
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    float
        In [0, 1], 1 at parity. NaN, with an ``UndefinedMetricWarning`` that says why, with fewer than two groups or where
        nobody is selected.

    Raises
    ------
    ValueError, TypeError
        If rows cannot be matched or labels are ambiguous, as in :func:`sklearn_ethiclens.audit`.

    References
    ----------
    fairlearn's ``demographic_parity_ratio``; UGESP 1978, 29 CFR 1607.4 D (four-fifths rule).

    Examples
    --------
    Half of A and a quarter of B are selected:

    >>> demographic_parity_ratio(list("AAAABBBB"), [1, 1, 0, 0, 1, 0, 0, 0])
    0.5
    """
    return _value(_tally(groups, None, y_pred, pos_label), "demographic_parity_ratio")


def equalized_odds_gap(groups: Any, y_true: Any, y_pred: Any, *, pos_label: Any = None) -> tuple[float, float]:
    """Return the largest differences between groups in true and in false positive rates.

    Two points, biased upward in small samples: a maximum of gaps is above 0 where nothing differs. No interval of such a
    maximum is valid near parity; :func:`sklearn_ethiclens.audit` has those of the signed differences.

    Parameters
    ----------
    groups : Series, array, dict of arrays or frame with n_rows rows
        The group of each row; of several columns, their combinations.
    y_true : array-like of shape (n_rows,)
        True labels.
    y_pred : array-like of shape (n_rows,)
        Decisions (labels, not scores).
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    tpr_gap, fpr_gap : float
        In [0, 1], 0 at parity. NaN, with an ``UndefinedMetricWarning`` that names the groups, where fewer than two groups
        have positive (negative) labels; with more, those without are named and left out.

    Raises
    ------
    ValueError, TypeError
        If rows cannot be matched or labels are missing or ambiguous.

    References
    ----------
    Hardt et al. 2016, Equality of Opportunity in Supervised Learning; fairlearn's ``equalized_odds_difference`` is the larger
    of the two.

    Examples
    --------
    Both with label 1 in A are selected, one of two in B; none with label 0:

    >>> equalized_odds_gap(list("AAAABBBB"), [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0])
    (0.5, 0.0)
    """
    tally = _labelled(groups, y_true, y_pred, pos_label)
    return _value(tally, "equalized_odds_tpr_gap"), _value(tally, "equalized_odds_fpr_gap")


def compute_subgroup_metrics(
    groups: Any, y_true: Any, y_pred: Any, *, pos_label: Any = None
) -> dict[Any, dict[str, Any]]:
    """Return accuracy, precision, recall, F1 and the number of rows of each group.

    Parameters
    ----------
    groups : Series, array, dict of arrays or frame with n_rows rows
        The group of each row; of several columns, their combinations.
    y_true : array-like of shape (n_rows,)
        True labels.
    y_pred : array-like of shape (n_rows,)
        Decisions (labels, not scores).
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    dict
        By group, in canonical order: ``accuracy, precision, recall, f1`` (float in [0, 1]; NaN where a denominator is empty,
        with an ``UndefinedMetricWarning`` that names it) and ``count`` (int). Of several columns the keys are tuples; rows
        without a group are one, ``sklearn_ethiclens.MISSING``.

    Raises
    ------
    ValueError, TypeError
        If rows cannot be matched or labels are missing or ambiguous.

    References
    ----------
    Definitions of scikit-learn's ``accuracy_score``, ``precision_score``, ``recall_score`` and ``f1_score``, with
    ``zero_division=nan``.

    Examples
    --------
    >>> found = compute_subgroup_metrics(list("AAAABBBB"), [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0])
    >>> found["B"]["accuracy"], found["B"]["precision"], found["B"]["recall"], found["B"]["count"]
    (0.75, 1.0, 0.5, 4)
    """
    tally = _labelled(groups, y_true, y_pred, pos_label)
    confusion = confusion_of(tally)
    values = {name: METRICS[key].function(confusion) for name, key in _BY_GROUP.items()}
    blank = []
    for name, key in _BY_GROUP.items():
        blank += [f"{name} of {who}" for who in _undefined(tally, confusion, key)]
    if blank:
        warn(f"undefined, shown as NaN: {'; '.join(blank)}.", UndefinedMetricWarning, stacklevel=2)
    found: dict[Any, dict[str, Any]] = {}
    for i, (group, n) in enumerate(zip(tally.groups, confusion.rows("total").tolist(), strict=True)):
        row: dict[str, Any] = {name: float(column[i]) for name, column in values.items()}
        found[group[0] if len(group) == 1 else group] = {**row, "count": int(n)}
    return found


# -------------------------------------------------------------------------------------------------------------- the gate
@dataclass(frozen=True, slots=True)
class FairnessCheck:
    """One number, its threshold, and whether it keeps to it.

    Parameters
    ----------
    name : str
        "demographic_parity_ratio", "equalized_odds_tpr_gap", "equalized_odds_fpr_gap" or "disparate_impact_ratio".
    value : float
        NaN where undefined.
    threshold : float
        The least ratio, or the largest gap, that passes; equality passes.
    passed : bool or None
        None where there is no value: neither passed nor failed.
    reason : str
        Why there is no value, or which groups were left out of it; empty otherwise.
    """

    name: str
    value: float
    threshold: float
    passed: bool | None
    reason: str = ""

    def __str__(self) -> str:
        mark = {True: "PASS", False: "FAIL", None: "N/A "}[self.passed]
        value = "undefined" if self.passed is None else _beside(self.value, self.threshold)
        why = f"; {self.reason}" if self.reason else ""
        limit = f"{self.threshold:.2f}" if round(self.threshold, 2) == self.threshold else f"{self.threshold:g}"
        return f"[{mark}] {self.name}: {value} (threshold: {limit}{why})"


@dataclass(frozen=True)
class FairnessAuditResult:
    """What :func:`audit_fairness` found: four checks of points, with no regard to uncertainty.

    Parameters
    ----------
    checks : tuple of FairnessCheck
        All four.
    tally : Tally
        The counts they rest on: ``audit_tally(result.tally)`` audits them with intervals.
    """

    checks: tuple[FairnessCheck, ...]
    tally: Tally

    @property
    def passed(self) -> bool:
        """Whether every check was made and passed: what could not be assessed has not passed."""
        return all(check.passed is True for check in self.checks)

    @property
    def failures(self) -> tuple[FairnessCheck, ...]:
        """The checks that keep :attr:`passed` from being True: those that failed, and those that could not be made."""
        return tuple(check for check in self.checks if check.passed is not True)

    @property
    def unassessed(self) -> tuple[FairnessCheck, ...]:
        """Those of :attr:`failures` that have no value; their ``reason`` says why."""
        return tuple(check for check in self.checks if check.passed is None)

    def summary(self) -> str:
        """Return "Fairness audit: PASSED" or "FAILED", and a line for each check."""
        return "\n".join([f"Fairness audit: {'PASSED' if self.passed else 'FAILED'}", *(f"  {c}" for c in self.checks)])

    def __str__(self) -> str:
        return self.summary()


def audit_fairness(
    groups: Any,
    y_true: Any,
    y_pred: Any,
    dp_threshold: float = 0.80,
    eo_tpr_threshold: float = 0.10,
    eo_fpr_threshold: float = 0.10,
    *,
    di_threshold: float | None = None,
    pos_label: Any = None,
) -> FairnessAuditResult:
    """Return whether the selection ratio and the gaps in error rates keep to thresholds, as testing guides check it.

    It judges points and ignores uncertainty, by design of those guides: in small groups it fails models that treat groups
    alike, and passes others by luck. :func:`sklearn_ethiclens.audit` judges intervals, and says where there are too few rows
    to judge at all; use that where something depends on the answer.

    Parameters
    ----------
    groups : Series, array, dict of arrays or frame with n_rows rows
        The group of each row; of several columns, their combinations.
    y_true : array-like of shape (n_rows,) or None
        True labels. With None both gaps are without a value, so that the audit does not pass.
    y_pred : array-like of shape (n_rows,)
        Decisions (labels, not scores).
    dp_threshold : float, default=0.80
        The least ratio of selection rates, in [0, 1].
    eo_tpr_threshold, eo_fpr_threshold : float, default=0.10
        The largest gap in true, and in false, positive rates, in [0, 1].
    di_threshold : float, optional
        Of ``disparate_impact_ratio``: the lowest selection rate against the group that is selected most, which is the number of
        ``demographic_parity_ratio`` by its other name. Default: ``dp_threshold``.
    pos_label : label, optional
        The positive label; guessed only for {0, 1}, {-1, 1} and booleans.

    Returns
    -------
    FairnessAuditResult
        ``.passed``, ``.failures`` and ``.summary()``. A check without a value is neither passed nor failed: its line is
        marked ``[N/A ]`` with the reason, ``.passed`` is False, and it is among ``.failures`` as well as among
        ``.unassessed``. Of three or more groups, those for which a rate is undefined are named and left out; the check is of
        the others.

    Raises
    ------
    ValueError, TypeError
        If rows cannot be matched, labels are ambiguous, or a threshold would fail parity or can fail nothing.

    Examples
    --------
    >>> result = audit_fairness(list("AAAABBBB"), [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 0, 0])
    >>> result.passed, [check.name for check in result.failures]
    (False, ['demographic_parity_ratio', 'equalized_odds_tpr_gap', 'disparate_impact_ratio'])
    >>> print(result.summary())
    Fairness audit: FAILED
      [FAIL] demographic_parity_ratio: 0.5000 (threshold: 0.80)
      [FAIL] equalized_odds_tpr_gap: 0.5000 (threshold: 0.10)
      [PASS] equalized_odds_fpr_gap: 0.0000 (threshold: 0.10)
      [FAIL] disparate_impact_ratio: 0.5000 (threshold: 0.80)
    """
    for name, limit in (
        ("dp_threshold", dp_threshold),
        ("eo_tpr_threshold", eo_tpr_threshold),
        ("eo_fpr_threshold", eo_fpr_threshold),
        ("di_threshold", dp_threshold if di_threshold is None else di_threshold),
    ):
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not 0 <= limit <= 1:
            raise ValueError(f"{name} must be a number in [0, 1], such as 0.8 for four fifths; got {limit!r}.")
    rules = {
        "demographic_parity_ratio": Rule("demographic_parity_ratio", minimum=dp_threshold, basis="point"),
        "equalized_odds_tpr_gap": Rule("equalized_odds_tpr_gap", maximum=eo_tpr_threshold, basis="point"),
        "equalized_odds_fpr_gap": Rule("equalized_odds_fpr_gap", maximum=eo_fpr_threshold, basis="point"),
        "disparate_impact_ratio": Rule(
            "disparate_impact", minimum=dp_threshold if di_threshold is None else di_threshold, basis="point"
        ),
    }
    tally = _tally(groups, y_true, y_pred, pos_label)
    return FairnessAuditResult(tuple(_check(tally, name, rule) for name, rule in rules.items()), tally)


def _check(tally: Tally, name: str, rule: Rule) -> FairnessCheck:
    value, why = _measure(tally, rule.metric)
    if np.isnan(value):
        return FairnessCheck(name, value, float(rule.threshold), None, why)
    verdict, _ = rule.judge(value, np.nan, np.nan)
    return FairnessCheck(name, value, float(rule.threshold), verdict is Verdict.CLEARED, f"left out: {why}" * bool(why))


def _beside(value: float, threshold: float) -> str:
    """Return a value to four decimals, or to as many as tell it from its threshold."""
    for digits in range(_DIGITS, 10):
        if (round(value, digits) == round(threshold, digits)) == (abs(value - threshold) < 1e-9):
            return f"{value:.{digits}f}"
    return f"{value:.{_DIGITS}f}"


# ------------------------------------------------------------------------------------------------------------ measuring
def _tally(groups: Any, y_true: Any, y_pred: Any, pos_label: Any) -> Tally:
    """Return the tally of rows whose groups are called so where they bring no name."""
    nested = isinstance(groups, list | tuple) and bool(groups) and isinstance(groups[0], list | tuple)
    plain = (isinstance(groups, list | tuple) and not nested) or (isinstance(groups, np.ndarray) and groups.ndim == 1)
    named = {"groups": groups} if plain else groups
    return Tally.from_predictions(y_true, y_pred, sensitive_features=named, pos_label=pos_label)


def _labelled(groups: Any, y_true: Any, y_pred: Any, pos_label: Any) -> Tally:
    if y_true is None:
        raise ValueError("y_true is missing: error rates need the true labels. demographic_parity_ratio does without.")
    return _tally(groups, y_true, y_pred, pos_label)


def _value(tally: Tally, name: str) -> float:
    """Return a metric of all groups, with a warning about what is undefined."""
    value, why = _measure(tally, name)
    if why:
        state = "undefined" if np.isnan(value) else "taken over the other groups"
        warn(f"{name} is {state}: {why}.", UndefinedMetricWarning, stacklevel=3)
    return value


def _measure(tally: Tally, name: str) -> tuple[float, str]:
    """Return a metric of all groups, and for which groups it is undefined, or why it is altogether."""
    metric, confusion = METRICS[name], confusion_of(tally)
    if len(tally.groups) < 2:
        return float("nan"), "one group only"
    if metric.uses_labels and not tally.labelled:
        return float("nan"), "no labels"
    function: Callable[..., Any] = metric.function
    if metric.kind == "pair":
        highest = int(np.argmax(confusion.rate("favorable_rate")))
        value = float(np.min(function(confusion, confusion.take([highest]))))
    else:
        value = float(function(confusion))
    blank = _undefined(tally, confusion, name)
    if np.isnan(value) and not blank:
        blank = [zero_in_all(metric, confusion)]
    return value, "; ".join(blank)


def _undefined(tally: Tally, confusion: Confusion, name: str) -> list[str]:
    """Return the groups for which a metric is undefined, each with the reason."""
    whys = (why_undefined(METRICS[name], confusion, i) for i in range(len(tally.groups)))
    return [f"{label(g[0] if len(g) == 1 else g)} ({why})" for g, why in zip(tally.groups, whys, strict=True) if why]
