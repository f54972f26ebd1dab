"""What the presets' tables share: groups of a tally, whose rate is the highest, and findings by whom they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._findings import Finding
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING, show
from sklearn_ethiclens.inference._intervals import wilson_interval
from sklearn_ethiclens.metrics._rates import Confusion, Floats

Key = tuple[str, str, str]


def labels_of(tally: Tally) -> list[Any]:
    """Return the groups as they are named: the value of a single attribute, else the tuple of values."""
    return [group[0] if len(group) == 1 else group for group in tally.groups]


def known_groups(tally: Tally) -> NDArray[np.bool_]:
    """Tell which groups have no missing value."""
    return np.array([MISSING not in group for group in tally.groups])


def whole(tally: Tally) -> Tally:
    """Return the tally of all rows as one group."""
    position = np.zeros(len(tally.groups), dtype=np.intp)
    weights = None if tally.weights is None else tally.weights.merge(position, 1)
    counts = tally.counts.sum(0, keepdims=True) if weights is None else weights.sums
    scores = None if tally.scores is None else tally.scores.merge(position, 1)
    return Tally(("all",), (("all rows",),), counts, tally.pos_label, tally.labels, scores=scores, weights=weights)


def with_interval(confusion: Confusion, rate: str, confidence_level: float) -> tuple[Floats, Floats, Floats]:
    """Return a rate by group with the ends of Wilson's interval, as ``Audit.rates`` has them."""
    low, high = wilson_interval(*confusion.proportion(rate), confidence_level=confidence_level)
    return confusion.rate(rate), np.asarray(low), np.asarray(high)


def findings_by(findings: Sequence[Finding]) -> Mapping[Key, Finding]:
    """Return findings by attribute, group and metric."""
    return {(show(f.attribute), repr(f.group), f.metric): f for f in findings}


def triple(finding: Finding | None) -> tuple[float | None, float | None, float | None]:
    """Return value and ends of the interval of a finding; None of one that was not asked for."""
    return (None, None, None) if finding is None else (finding.value, finding.low, finding.high)


def favorable_event(audit: Any) -> str:
    """Return the decision that is favourable, in words."""
    event = audit.tally.pos_label
    words = repr(event) if isinstance(event, str) else show(event)
    return f"{'' if audit.outcome == 'favorable' else 'not '}receiving {words}"
