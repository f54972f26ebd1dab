"""What the auditor costs beside what it wraps, as ratios measured in one run.

    python tests/benchmarks/bench_auditor.py

Times are CPU seconds on one thread. What is compared is run in turns, and the medians of these turns are compared.
``predict``: 1 million rows of 10 features; the auditor and the classifier it wraps predict the same rows.
``cv=5``: fitting the auditor with ``cv=5`` less fitting it without, over ``cross_val_predict`` with the same folds.
Hashing the rows is part of both fits; the audit itself is made when ``audit_`` is first read; both are shown on their
own. COMPAS is read from ``$SKLEARN_ETHICLENS_DATA``.
"""

from __future__ import annotations

import warnings
from statistics import median
from typing import Any

import numpy as np
from _timing import in_turns
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from sklearn_ethiclens import FairnessAuditor, audit_tally, fetch_compas
from sklearn_ethiclens._auditor import _hash_rows

TEXT = ["age_cat", "c_charge_degree"]
NUMBERS = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "length_of_stay"]


def of_predict() -> list[tuple[str, float, float, float, str]]:
    """Return the time that predict of 1 million rows takes, and what the auditor adds to it."""
    X, y = make_classification(1_000_000, 10, random_state=0)
    X[:, 0] = X[:, 0] > 0
    rows = []
    for inner in (LogisticRegression(), HistGradientBoostingClassifier(max_iter=20, random_state=0)):
        turns = 31 if isinstance(inner, LogisticRegression) else 9
        auditor = FairnessAuditor(inner, sensitive_features=0).fit(X[:20_000], y[:20_000])
        calls = {"alone": lambda: auditor.estimator_.predict(X), "wrapped": lambda: auditor.predict(X)}  # noqa: B023
        alone, wrapped = in_turns(calls, turns).values()
        added = median(np.subtract(wrapped, alone))
        rows.append((f"predict, {type(inner).__name__}", median(alone), added, added / median(alone), "<= 0.01"))
        own = FairnessAuditor(Nothing(), sensitive_features=0).fit(X[:100], y[:100])
        calls = {"alone": lambda: own.estimator_.predict(X), "wrapped": lambda: own.predict(X)}  # noqa: B023
        bare, through = in_turns(calls, 1000).values()
        exact = median(through) - median(bare)
        rows.append(
            ("  the auditor's own work, around nothing", median(alone), exact, exact / median(alone), "<= 0.01")
        )
    return rows


class Nothing(LogisticRegression):
    """Predicts without work, so that the auditor's own shows."""

    def predict(self, X):
        """Return what it is given."""
        return X


def of_folds() -> list[tuple[str, float, float, float, str]]:
    """Return the time of a cross-validation, and what the audit of its predictions adds to it."""
    compas = fetch_compas()
    X, y = compas.data, compas.target
    big, big_y = make_classification(50_000, 20, random_state=0)
    big[:, 0] = big[:, 0] > 0
    text = OneHotEncoder(handle_unknown="ignore")
    logistic = make_pipeline(
        make_column_transformer((StandardScaler(), NUMBERS), (text, TEXT)), LogisticRegression(max_iter=1000)
    )
    boosting = make_pipeline(
        make_column_transformer(("passthrough", NUMBERS), (OrdinalEncoder(), TEXT)),
        HistGradientBoostingClassifier(random_state=0),
    )
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    works: list[tuple[str, Any, Any, Any, Any, int]] = [
        ("COMPAS, logistic pipeline", logistic, X, y, "race", 9),
        ("COMPAS, boosting pipeline", boosting, X, y, "race", 5),
        ("50,000 x 20, logistic pipeline", plain, big, big_y, 0, 9),
        ("50,000 x 20, boosting", HistGradientBoostingClassifier(random_state=0), big, big_y, 0, 3),
    ]
    rows = []
    for name, inner, features, labels, column, turns in works:
        auditor = FairnessAuditor(inner, sensitive_features=column, cv=5, pos_label=max(labels))
        without = FairnessAuditor(inner, sensitive_features=column)
        auditor.fit(features, labels)
        tally, options = auditor.audit_.tally, auditor._audit_options()
        validated, whole, fitted, hashed, audited = in_turns(
            {
                "validated": lambda: cross_val_predict(inner, features, labels, cv=5),  # noqa: B023
                "whole": lambda: auditor.fit(features, labels),  # noqa: B023
                "fitted": lambda: without.fit(features, labels),  # noqa: B023
                "hashed": lambda: _hash_rows(features),  # noqa: B023
                "audited": lambda: audit_tally(tally, **options),  # noqa: B023
            },
            turns,
        ).values()
        base = median(validated)
        added = median(np.subtract(np.subtract(whole, fitted), validated))
        rows.append((f"cv=5, {name}: all", base, added, added / base, "<= 0.05"))
        rows.append(
            ("  reading audit_ the first time, 2,000 replicates", base, median(audited), median(audited) / base, "")
        )
        rows.append(("  beside it, in any fit: hashing the rows", base, median(hashed), median(hashed) / base, ""))
    return rows


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':46s} {'base, s':>10s} {'added, s':>10s} {'ratio':>9s}   limit")
    with threadpool_limits(1):
        for measure in (of_predict, of_folds):
            for words, base, added, ratio, limit in measure():
                print(f"{words:46s} {base:10.4f} {added:10.6f} {ratio:9.5f}   {limit}", flush=True)


if __name__ == "__main__":
    main()
