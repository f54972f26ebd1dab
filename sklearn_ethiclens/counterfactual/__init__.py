"""What a model does with a sensitive feature itself: the probe, its strategies, and the audit it makes."""

from sklearn_ethiclens.counterfactual._audit import CounterfactualAudit, PairFinding
from sklearn_ethiclens.counterfactual._paired_tally import PairedTally
from sklearn_ethiclens.counterfactual._probe import CounterfactualProbe
from sklearn_ethiclens.counterfactual._scorer import ProbeScorer
from sklearn_ethiclens.counterfactual._strategies import STRATEGIES, Strategy

__all__ = [
    "STRATEGIES",
    "CounterfactualAudit",
    "CounterfactualProbe",
    "PairFinding",
    "PairedTally",
    "ProbeScorer",
    "Strategy",
]
