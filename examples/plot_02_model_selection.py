"""
Choosing a model under a bounded disparity
==========================================

Which model is the best among those whose disparity stays within a bound, and what does the bound cost in accuracy?
German Credit by age; then COMPAS by race, if its file is at hand.
"""

# %%
# The attribute is a column of X that the pipeline drops: the model never sees the age band, the scorer does. The folds hold
# each combination of label and group in its share, since only 149 of 1,000 people are under 25.
import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ethiclens import (
    FairnessAuditor,
    fairness_scorers,
    fetch_compas,
    load_german_credit,
    pareto_frontier,
    select_within,
    stratify_by,
)
from sklearn_ethiclens.plotting import TradeoffDisplay

data = load_german_credit()
X = data.data.assign(band=data.sensitive_features["age"])
X_train, X_test, y_train, y_test = train_test_split(
    X, data.target, test_size=0.3, random_state=0, stratify=data.target + X["band"]
)
numbers = [name for name in X.select_dtypes("number") if name != "age"]
words = ["checking_status", "credit_history", "savings", "employment", "housing", "purpose"]
model = make_pipeline(
    make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words)),
    LogisticRegression(max_iter=1000),
)

# %%
# Lead with the refit callable. ``select_within`` takes the best accuracy among the candidates with a gap of approval rates of
# at most 0.10; it refuses candidates that approve everyone (their gap of 0 says nothing), and raises if none is left, where
# a search on the gap alone would hand back such a model, or its first candidate.
GAP = "selection_rate_difference"
scoring = fairness_scorers(
    [GAP, "equalized_odds_difference"], sensitive_features="band", pos_label="good", groups=["age < 25", "age >= 25"]
)
search = GridSearchCV(
    model,
    {
        "logisticregression__C": np.logspace(-3, 1, 5),
        "logisticregression__class_weight": [None, "balanced"],
    },
    scoring=scoring,
    refit=select_within(0.10, disparity=GAP, performance="accuracy"),
    cv=stratify_by(y_train, X_train["band"], n_splits=5, shuffle=True, random_state=0),
)
with np.errstate(all="ignore"):
    import warnings

    from sklearn_ethiclens.exceptions import FairnessScoringWarning

    with warnings.catch_warnings():
        # The strongest penalties approve everyone, and the search says that their scores are NaN: that is expected here.
        warnings.simplefilter("ignore", FairnessScoringWarning)
        warnings.filterwarnings("ignore", message="One or more of the test scores are non-finite")
        search.fit(X_train, y_train)
print("chosen:", search.best_params_)
