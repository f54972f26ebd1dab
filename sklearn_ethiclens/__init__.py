"""Audit classifiers for group disparities: rows -> tally -> metrics -> intervals -> verdicts -> report.

>>> from sklearn_ethiclens import audit
>>> found = audit([1, 0, 1, 0] * 50, [1, 0, 0, 0] * 50, sensitive_features={"sex": ["f", "f", "m", "m"] * 50})
>>> found.verdict  # the groups have 50 positives each, but no group selects any of the other's
<Verdict.FLAGGED: 'FLAGGED'>
"""

from sklearn_ethiclens import datasets, inference, metrics
from sklearn_ethiclens._audit import Audit, audit, audit_tally
from sklearn_ethiclens._findings import Finding, Headline
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.datasets import fetch_compas, load_german_credit
from sklearn_ethiclens.metrics import METRICS
from sklearn_ethiclens.policy import POLICIES, Policy, Rule, Verdict

__all__ = [
    "METRICS",
    "MISSING",
    "POLICIES",
    "Audit",
    "Finding",
    "Headline",
    "Policy",
    "Rule",
    "Tally",
    "Verdict",
    "__version__",
    "audit",
    "audit_tally",
    "datasets",
    "fetch_compas",
    "inference",
    "load_german_credit",
    "metrics",
]
