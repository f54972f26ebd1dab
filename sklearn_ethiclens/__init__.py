"""Audit classifiers for group disparities: rows -> tally -> metrics -> intervals -> verdicts -> report.

>>> from sklearn_ethiclens import audit
>>> sex, decision = ["f", "m"] * 500, [0, 1, 1, 1] * 250
>>> audit(None, decision, sensitive_features={"sex": sex}, metrics=["disparate_impact"]).flagged[0].value
0.5
"""

from sklearn_ethiclens import datasets, individual, inference, metrics
from sklearn_ethiclens._audit import Audit, audit, audit_tally
from sklearn_ethiclens._auditor import FairnessAuditor
from sklearn_ethiclens._findings import Finding, Headline
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.counterfactual import CounterfactualAudit, CounterfactualProbe
from sklearn_ethiclens.datasets import fetch_compas, load_german_credit
from sklearn_ethiclens.metrics import METRICS
from sklearn_ethiclens.plotting import TradeoffDisplay
from sklearn_ethiclens.policy import POLICIES, Policy, Rule, Verdict
from sklearn_ethiclens.scorers import (
    fairness_scorers,
    make_fairness_scorer,
    pareto_frontier,
    select_pareto,
    select_within,
    stratify_by,
)

__all__ = [
    "METRICS",
    "MISSING",
    "POLICIES",
    "Audit",
    "CounterfactualAudit",
    "CounterfactualProbe",
    "FairnessAuditor",
    "Finding",
    "Headline",
    "Policy",
    "Rule",
    "Tally",
    "TradeoffDisplay",
    "Verdict",
    "__version__",
    "audit",
    "audit_tally",
    "fairness_scorers",
    "make_fairness_scorer",
    "pareto_frontier",
    "select_pareto",
    "select_within",
    "stratify_by",
    "datasets",
    "fetch_compas",
    "individual",
    "inference",
    "load_german_credit",
    "metrics",
]
