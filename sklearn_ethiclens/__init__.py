"""Audit classifiers for group disparities: rows -> tally -> metrics -> intervals -> verdicts -> report.

>>> from sklearn_ethiclens import audit
>>> sex, decision = ["f", "m"] * 500, [0, 1, 1, 1] * 250
>>> audit(None, decision, sensitive_features={"sex": sex}, metrics=["disparate_impact"]).flagged[0].value
0.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn_ethiclens import datasets, inference, metrics
from sklearn_ethiclens._assess_scores import reliability_table
from sklearn_ethiclens._audit import Audit, audit, audit_tally
from sklearn_ethiclens._auditor import FairnessAuditor
from sklearn_ethiclens._findings import Finding, Headline
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.datasets import fetch_acs, fetch_acs_income, fetch_compas, load_german_credit
from sklearn_ethiclens.metrics import METRICS, SCORE_METRICS
from sklearn_ethiclens.plotting import (
    CounterfactualDisplay,
    DisparityDisplay,
    GroupRatesDisplay,
    ImpossibilityDisplay,
    TradeoffDisplay,
)
from sklearn_ethiclens.policy import POLICIES, Policy, Rule, Verdict
from sklearn_ethiclens.presets import PRESETS
from sklearn_ethiclens.scorers import (
    fairness_scorers,
    make_fairness_scorer,
    pareto_frontier,
    select_pareto,
    select_within,
    stratify_by,
)

if TYPE_CHECKING:
    from sklearn_ethiclens import individual
    from sklearn_ethiclens.counterfactual import CounterfactualAudit, CounterfactualProbe
    from sklearn_ethiclens.datasets import BiasInjector, make_biased_classification

__all__ = [
    "METRICS",
    "MISSING",
    "POLICIES",
    "PRESETS",
    "SCORE_METRICS",
    "Audit",
    "BiasInjector",
    "CounterfactualAudit",
    "CounterfactualDisplay",
    "CounterfactualProbe",
    "DisparityDisplay",
    "FairnessAuditor",
    "Finding",
    "GroupRatesDisplay",
    "Headline",
    "ImpossibilityDisplay",
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
    "reliability_table",
    "select_pareto",
    "select_within",
    "stratify_by",
    "datasets",
    "fetch_acs",
    "fetch_acs_income",
    "fetch_compas",
    "individual",
    "inference",
    "load_german_credit",
    "make_biased_classification",
    "metrics",
]

# Rooms that an audit does not need are imported when first asked for, so that importing the package stays cheap.
_ROOMS = {
    "BiasInjector": "datasets",
    "CounterfactualAudit": "counterfactual",
    "CounterfactualProbe": "counterfactual",
    "make_biased_classification": "datasets",
}


def __getattr__(name: str) -> Any:
    if name == "individual":
        return import_module(f"{__name__}.{name}")
    if name in _ROOMS:
        return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
