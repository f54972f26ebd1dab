"""scikit-learn's own checks of estimators, on the auditor around classifiers of every kind; none is expected to fail.

``drop_sensitive=True`` and ``cv=`` are left to ``test_auditor.py``: the checks fit one feature, plant the bad cell in the column
that is dropped, and hand in arrays with nothing to audit by.
"""

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from sklearn_ethiclens import FairnessAuditor

INNER = [
    LogisticRegression(),
    DecisionTreeClassifier(random_state=0),
    LinearSVC(),
    HistGradientBoostingClassifier(max_iter=2),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small fits: threads that wait for each other on a busy machine would take minutes."""
    with threadpool_limits(1):
        yield


# Bare classifiers warn here too: of feature names and of folds with few rows. The array API is skipped with a warning.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([FairnessAuditor(inner, sensitive_features=s) for inner in INNER for s in (None, 0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
