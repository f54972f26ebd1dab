"""Plain metric functions with scikit-learn's signature: one number from rows, the comparison farthest from parity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from warnings import warn

import numpy as np

from sklearn_ethiclens._tally import Group, Tally
from sklearn_ethiclens._validation import MISSING, as_scalar, listing, show
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.metrics._comparisons import choose_reference, distance_from_parity
from sklearn_ethiclens.metrics._definitions import METRICS, Metric, why_undefined
from sklearn_ethiclens.metrics._rates import OUTCOMES, Confusion, confusion_of

_DOC = """Return {kind_words}.

``{formula}``. Several sensitive features are read as their intersection.{note}

Parameters
----------
y_true : array-like of shape (n_samples,){or_none}
    True labels.
y_pred : array-like of shape (n_samples,)
    Decisions (labels, not scores).
sensitive_features : Series, array, dict of arrays or frame
    The group of each row.
reference : label or tuple of labels, optional
    The group compared with{reference_words}.
pos_label : label, optional
    The positive label; guessed only for {{0, 1}}, {{-1, 1}} and booleans.
outcome : {{"favorable", "adverse"}}, default="favorable"
    What receiving ``pos_label`` means for a person{outcome_words}.
sample_weight : array-like of shape (n_samples,), optional
    Sampling weights: how many people each row stands for, at least 0. Rows with a weight of 0 are left out.

Returns
-------
float
    In [{low}, {high}], {parity} at parity. NaN with an ``UndefinedMetricWarning`` that names the group where {undefined}.

References
----------
{source}
"""


def reference_position(groups: tuple[Group, ...], reference: Any, attributes: tuple[str, ...]) -> int:
    """Return the position of a given reference group.

    Parameters
    ----------
    groups : tuple of tuple
        The groups of a tally.
    reference : label or tuple of labels
        One value per attribute.
    attributes : tuple of str
        Their names, for the message.

    Raises
    ------
    ValueError
        If no group has that value; the message lists those there are.
    """
    wanted = tuple(map(as_scalar, reference)) if isinstance(reference, tuple | list) else (as_scalar(reference),)
    if wanted in groups:
        return groups.index(wanted)
    known = [group[0] if len(attributes) == 1 else group for group in groups]
    said = wanted[0] if len(wanted) == 1 else wanted
    raise ValueError(f"reference of {' & '.join(attributes)} must be one of {listing(known, 30)}; got {said!r}.")


def worst_comparison(metric: Metric, tally: Tally, *, reference: Any = None, outcome: str = "favorable") -> float:
    """Return the value farthest from parity of a pair metric, or the one value of an overall metric.

    Parameters
    ----------
    metric : Metric
        A catalogue entry of kind "pair" or "overall".
    tally : Tally
        Counts by group.
    reference : label or tuple of labels, optional
        The group compared with; default: the highest rate of the favourable decision, ties by size, then by order, never
        the missing bucket.
    outcome : {"favorable", "adverse"}
        What a positive decision means.

    Returns
    -------
    float
        NaN, with a warning that says why, where nothing can be compared.
    """
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome must be one of {OUTCOMES}; got {outcome!r}.")
    if metric.uses_labels and not tally.labelled:
        raise ValueError(f"{metric.name} needs y_true; got y_true=None.")
    confusion = confusion_of(tally, outcome)
    defined_alone = np.isfinite(np.sum([confusion.rate(rate) for rate in metric.rates], axis=0))
    blank = [
        f"{show(group)} ({why_undefined(metric, confusion, i)})"
        for i, group in enumerate(tally.groups)
        if not defined_alone[i]
    ]
    if metric.kind == "overall":
        value = float(metric.function(confusion))
    else:
        value, zero = _worst_pair(metric, tally, confusion, reference)
        blank += zero
    if np.isnan(value) and not blank:
        blank = ["one group only" if len(tally.groups) < 2 else metric.otherwise or zero_in_all(metric, confusion)]
    if blank:
        state = "undefined" if np.isnan(value) else "taken over the other groups"
        warn(f"{metric.name} is {state}: {'; '.join(blank)}.", UndefinedMetricWarning, stacklevel=4)
    return value


def _worst_pair(metric: Metric, tally: Tally, confusion: Confusion, reference: Any) -> tuple[float, list[str]]:
    if reference is None:
        eligible = np.array([MISSING not in group for group in tally.groups])
        position = choose_reference(confusion.rate("favorable_rate"), confusion.rows("total"), eligible, eligible)
    else:
        position = reference_position(tally.groups, reference, tally.attributes)
    others = [i for i in range(len(tally.groups)) if i != position]
    values = metric.function(confusion.take(others), confusion.take([position]))
    zero = []
    if metric.scale == "ratio" and np.isnan(values).all() and confusion.rate(metric.rates[0])[position] == 0:
        none_at_all = not np.nan_to_num(confusion.rate(metric.rates[0])).any()
        reference_only = f"{metric.rates[0]} is 0 in the reference {show(tally.groups[position])}"
        zero = [zero_in_all(metric, confusion) if none_at_all else reference_only]
    if np.isnan(values).all():
        return float("nan"), zero
    if metric.parity is None:  # a score of the comparison: the lowest is the worst
        return float(np.nanmin(values)), zero
    return float(values[np.nanargmax(distance_from_parity(values, metric.parity))]), zero


def zero_in_all(metric: Metric, confusion: Confusion) -> str:
    """Return that a rate is 0 in every group, in words."""
    selected = metric.rates[0] == "selection_rate" or (
        metric.rates[0] == "favorable_rate" and confusion.outcome == "favorable"
    )
    return "no group has any selected row" if selected else f"{metric.rates[0]} is 0 in every group"


def plain_function(name: str) -> Callable[..., float]:
    """Return the plain function of a catalogue entry of kind "pair" or "overall"."""
    metric = METRICS[name]

    def function(
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        reference: Any = None,
        pos_label: Any = None,
        outcome: str = "favorable",
        sample_weight: Any = None,
    ) -> float:
        tally = Tally.from_predictions(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        return worst_comparison(metric, tally, reference=reference, outcome=outcome)

    pair = metric.kind == "pair"
    words = "the comparison with the reference farthest from parity" if pair else "one number of all groups"
    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__  # where it is public, so that it pickles
    function.__doc__ = _DOC.format(
        kind_words=f"{name.replace('_', ' ')}: {words}",
        formula=metric.formula,
        note=f" {metric.note}" if metric.note else "",
        or_none="" if metric.uses_labels else " or None",
        reference_words=(
            "; default: the group with the highest rate of the favourable decision (ties: the larger)"
            if pair
            else "; not used here, where all groups count alike"
        ),
        outcome_words="" if metric.by_outcome else "; it decides only the default reference",
        low=f"{metric.low:g}",
        high=f"{metric.high:g}",
        parity=metric.parity if metric.parity is not None else "1",
        undefined=metric.undefined,
        source=metric.source,
    )
    return function
