"""Metrics: the catalogue ``METRICS`` of counts, with a plain function for each comparison, and ``SCORE_METRICS`` of scores.

A plain function takes rows and returns the comparison with the reference that is farthest from parity:

>>> from sklearn_ethiclens import metrics
>>> y_true, y_pred, sex = [1, 0, 1, 1, 0], [1, 1, 1, 0, 0], ["m", "m", "f", "f", "f"]
>>> round(metrics.disparate_impact(y_true, y_pred, sensitive_features=sex), 4)
0.3333
>>> metrics.statistical_parity_difference(y_true, y_pred, sensitive_features=sex, reference="f") > 0
True

A catalogue entry takes counts ``[[tn, fp], [fn, tp]]``:

>>> metrics.METRICS["false_positive_rate"]([[3, 1], [2, 6]])
0.25
"""

from sklearn_ethiclens.metrics._comparisons import (
    calculate_disparate_impact,
    calculate_equalized_odds_difference,
    calculate_statistical_parity_difference,
    composite_band,
    composite_bias_score,
    compute_composite_bias_score,
    flip_flop,
    shortfall,
)
from sklearn_ethiclens.metrics._definitions import ALIASES, METRICS, Metric, generalized_entropy, get_metric
from sklearn_ethiclens.metrics._functions import plain_function
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, ScoreMetric, above_median, expected_calibration_error

_PLAIN = [m.name for m in METRICS.values() if m.kind != "group" and m.name != "composite_bias_score"]
globals().update({name: plain_function(name) for name in _PLAIN})

__all__ = [
    "ALIASES",
    "METRICS",
    "SCORE_METRICS",
    "Metric",
    "ScoreMetric",
    "above_median",
    "calculate_disparate_impact",
    "calculate_equalized_odds_difference",
    "calculate_statistical_parity_difference",
    "composite_band",
    "composite_bias_score",
    "compute_composite_bias_score",
    "expected_calibration_error",
    "flip_flop",
    "generalized_entropy",
    "get_metric",
    "shortfall",
    *_PLAIN,
]
