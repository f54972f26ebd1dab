"""CounterfactualProbe against scikit-learn's own checks of a transformer."""

import pytest
from sklearn.utils.estimator_checks import check_set_output_transform, parametrize_with_checks

from sklearn_ethiclens.counterfactual import CounterfactualProbe

PROBES = [
    CounterfactualProbe(),
    CounterfactualProbe(0, to=None),
    CounterfactualProbe(0, to=1.0),
    CounterfactualProbe({"a": 0}, to=1.0),
]
# An active probe warns in fit_transform by design, and columns of the checks' data can follow from one another.
QUIET = (
    "ignore::sklearn_ethiclens.exceptions.ActiveProbeWarning",
    "ignore::sklearn_ethiclens.exceptions.StaleColumnWarning",
)


@pytest.mark.filterwarnings(*QUIET)
@parametrize_with_checks(PROBES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings(*QUIET)
@pytest.mark.parametrize("probe", PROBES, ids=str)
def test_set_output_check(probe):
    check_set_output_transform("CounterfactualProbe", probe)
