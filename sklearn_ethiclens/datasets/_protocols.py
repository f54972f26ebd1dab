"""Named models and their predictions on the data sets, so that everyone audits the same numbers.

Scikit-learn's estimators are imported where they are used: they take longer to import than the rest of the package.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from sklearn_ethiclens.datasets._acs import N_REPLICATES, fetch_acs_income
from sklearn_ethiclens.datasets._acs_codes import LABELS, label_codes
from sklearn_ethiclens.datasets._compas import fetch_compas
from sklearn_ethiclens.datasets._german_credit import load_german_credit

_COMPAS_FEATURES = ["age", "priors_count", "length_of_stay", "juv_fel_count", "juv_misd_count"]
_ACS_CODES = ["COW", "MAR", "RELP", "SEX", "RAC1P"]  # of few values; a histogram has no room for those of OCCP
_ACS_WEIGHT = "PWGTP"
_FEW_ROWS = 20_000
_PAIR = ("African-American", "Caucasian")
_REFERENCE_SEED = 42


@dataclass(frozen=True, eq=False)
class Protocol:
    """Predictions of a named model, with all that an audit of them needs.

    Parameters
    ----------
    name : str
        What is audited, in a few words.
    data_name : str
        The data set, by its name in ``DATASETS``.
    model : str
        The model, and how its predictions were made.
    y_true, y_pred : Series of shape (n_rows,)
        Labels and predictions, with the same index.
    sensitive_features : DataFrame of shape (n_rows, n_attributes)
        The attributes, with the same index.
    pos_label : str or int
        The positive label.
    outcome : {"favorable", "adverse"}
        What receiving ``pos_label`` means for a person.
    reference : dict or None
        The reference group of each attribute.
    sha256 : str
        SHA-256 of the data file.
    n_rows : int
        Rows audited.
    notes : tuple of str
        What a reader of the numbers must know.
    sample_weight : Series of shape (n_rows,), optional
        Sampling weights, with the same index.
    replicate_weights : DataFrame of shape (n_rows, n_replicates), optional
        Their replicates, with the same index.
    """

    name: str
    data_name: str
    model: str
    y_true: pd.Series
    y_pred: pd.Series
    sensitive_features: pd.DataFrame
    pos_label: str | int
    outcome: str
    reference: dict[str, str] | None
    sha256: str
    n_rows: int
    notes: tuple[str, ...] = ()
    sample_weight: pd.Series | None = None
    replicate_weights: pd.DataFrame | None = None


def german_credit_protocol(*, random_state: int = 0) -> tuple[Protocol, ...]:
    """Return the default audit of German Credit, as a tuple of one: by age, from out-of-fold predictions.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    protocols : tuple of one Protocol
    """
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    bunch = load_german_credit()
    numeric = list(bunch.data.select_dtypes("number").columns)
    categorical = [name for name in bunch.feature_names if name not in numeric]
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), numeric),
            (OneHotEncoder(handle_unknown="ignore"), categorical),
        ),
        LogisticRegression(max_iter=1000),
    )
    return (
        _protocol(
            bunch,
            _out_of_fold(model, bunch.data, bunch.target, random_state),
            name="German Credit by age",
            data_name="german-credit",
            model=(
                "LogisticRegression(max_iter=1000) on all 20 features, age included, numbers standardised and the rest "
                f"one-hot; out-of-fold predictions of StratifiedKFold(5, shuffle=True, random_state={random_state})"
            ),
            notes=(
                "Every row is a granted credit and the label is repayment; bad credits are oversampled, 300 in 1,000.",
                "Sex cannot be recovered from this data (Groemping 2019), so the attribute is age.",
            ),
        ),
    )


def compas_protocol(
    kind: str = "default",
    *,
    random_state: int | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    timeout: float = 30.0,
    url: str | None = None,
) -> tuple[Protocol, ...]:
    """Return the default or the reference audit of COMPAS, one Protocol for each set of rows audited.

    Parameters
    ----------
    kind : {"default", "reference"}, default="default"
        "default": all six races, both attributes, the adverse outcome, out-of-fold predictions; one Protocol.
        "reference": the pinned table, read as if being predicted to reoffend were favourable; two Protocols, race
        among African-American and Caucasian people and sex among all, both from one held-out part.
    random_state : int, default=None
        Seed of the folds, 0 by default. The reference protocol is one split and accepts only 42, its default.
    data_home, download_if_missing, timeout, url
        As in ``fetch_compas``.

    Returns
    -------
    protocols : tuple of Protocol
    """
    if kind not in ("default", "reference"):
        raise ValueError(f"kind must be one of ['default', 'reference']; got {kind!r}.")
    if kind == "reference" and random_state not in (None, _REFERENCE_SEED):
        raise ValueError(
            f"random_state must be {_REFERENCE_SEED} for kind='reference', which is one pinned split; got "
            f"{random_state!r}. Leave it out, or use kind='default'."
        )
    bunch = fetch_compas(data_home=data_home, download_if_missing=download_if_missing, timeout=timeout, url=url)
    if kind == "reference":
        return _compas_reference(bunch)
    return _compas_default(bunch, 0 if random_state is None else random_state)


def _compas_default(bunch: Bunch, random_state: int) -> tuple[Protocol, ...]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = bunch.data[_COMPAS_FEATURES].dropna()
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return (
        _protocol(
            bunch,
            _out_of_fold(model, features, bunch.target.loc[features.index], random_state),
            name="COMPAS by race and sex",
            data_name="compas",
            model=(
                f"LogisticRegression() on {', '.join(_COMPAS_FEATURES)}, standardised; out-of-fold predictions of "
                f"StratifiedKFold(5, shuffle=True, random_state={random_state}). It is not the COMPAS score"
            ),
            notes=(
                f"The favourable outcome is {bunch.favorable_outcome}.",
                "ProPublica's published error rates are of the COMPAS score, on 7,214 unfiltered rows.",
                "Recidivists past the two-year cut-off, 868 of these rows, inflate the base rate (Barenstein 2019).",
            ),
        ),
    )


def _compas_reference(bunch: Bunch) -> tuple[Protocol, ...]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    features = bunch.data[_COMPAS_FEATURES].dropna()
    target = bunch.target.loc[features.index]
    X_train, X_test, y_train, _ = train_test_split(
        features, target, test_size=0.3, random_state=_REFERENCE_SEED, stratify=target
    )
    model = LogisticRegression(max_iter=5000).fit(X_train, y_train)
    predicted = pd.Series(model.predict(X_test), index=X_test.index, name=target.name)
    pair = predicted[bunch.sensitive_features.loc[predicted.index, "race"].isin(_PAIR)]
    words = (
        f"LogisticRegression(max_iter=5000) on {', '.join(_COMPAS_FEATURES)}, unscaled; predictions on the held-out "
        f"part of train_test_split(test_size=.3, random_state={_REFERENCE_SEED}, stratify=y)"
    )
    notes = (
        "Reference protocol: outcome is set to 'favorable', though being predicted to reoffend is not.",
        "Other split seeds give a race ratio of 1.83 to 2.22: the protocol is pinned, not the number.",
    )
    return tuple(
        _protocol(
            bunch,
            part,
            name=name,
            data_name="compas",
            model=words,
            attributes=[attribute],
            outcome="favorable",
            notes=(*notes, note),
        )
        for name, attribute, part, note in (
            ("COMPAS by race, reference protocol", "race", pair, f"Only {' and '.join(_PAIR)} people are audited."),
            ("COMPAS by sex, reference protocol", "sex", predicted, "All six races are audited."),
        )
    )


def acs_income_protocol(
    states: str | Sequence[str] = ("CA",),
    year: int = 2018,
    *,
    random_state: int = 0,
    sample_weight: str | None = None,
    replicate_weights: str | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    timeout: float = 30.0,
    base_url: str | None = None,
) -> tuple[Protocol, ...]:
    """Return the default audit of ACSIncome, as a tuple of one: by sex and race, from out-of-fold predictions.

    The features are codes; the groups are words.

    Parameters
    ----------
    states : str or sequence of str, default=("CA",)
        Postal abbreviations, or "all".
    year : int, default=2018
        The survey, of one year.
    random_state : int, default=0
        Seed of the folds and of the model.
    sample_weight : str, optional
        A column of the file to weigh the audited rows by: "PWGTP", the weight of a person, as a rule. The model is fitted
        without.
    replicate_weights : str, optional
        "PWGTP", with ``sample_weight="PWGTP"``: the survey's own 80 replicates of it, PWGTP1 to PWGTP80, which hold how
        households were drawn.
    data_home, download_if_missing, timeout, base_url
        As in ``fetch_acs``.

    Returns
    -------
    protocols : tuple of one Protocol

    Raises
    ------
    ValueError
        If the file has no such column of weights, or has no replicates of it.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if replicate_weights is not None and not replicate_weights == sample_weight == _ACS_WEIGHT:
        raise ValueError(
            f"replicate_weights of acs-income must be {_ACS_WEIGHT!r}, for PWGTP1 to PWGTP80, with the weight that they are "
            f"replicates of, {_ACS_WEIGHT}, as sample_weight; got {replicate_weights!r} with {sample_weight!r}."
        )
    bunch = fetch_acs_income(
        states,
        year,
        weights=replicate_weights is not None,
        data_home=data_home,
        download_if_missing=download_if_missing,
        timeout=timeout,
        base_url=base_url,
    )
    if sample_weight is not None and sample_weight not in bunch.frame:
        raise ValueError(
            f"acs-income has no column {sample_weight!r} to weigh rows by; a person's weight is PWGTP, and PWGTP1 to PWGTP80 are "
            f"its replicates."
        )
    unknown = []
    for name in bunch.sensitive_features:
        bunch.sensitive_features[name], strange = label_codes(bunch.sensitive_features[name])
        if strange:
            rows = ", ".join(f"{code} ({n:,})" for code, n in strange.items())
            unknown.append(f"{name} has codes without a word, by rows: {rows}.")
    bunch.reference = {name: LABELS[name][code] for name, code in bunch.reference.items()}
    model = HistGradientBoostingClassifier(categorical_features=_ACS_CODES, random_state=random_state)
    # Threads that wait for one another cost more than they save on few rows, a hundredfold on a busy machine.
    with threadpool_limits(1 if len(bunch.data) < _FEW_ROWS else None, user_api="openmp"):
        predicted = _out_of_fold(model, bunch.data, bunch.target, random_state)
    title = bunch.DESCR.partition("\n")[0]
    return (
        _protocol(
            bunch,
            predicted,
            name=f"{title}, by sex and race",
            data_name="acs-income",
            model=(
                f"HistGradientBoostingClassifier(random_state={random_state}) on all {len(bunch.feature_names)} features, "
                f"sex and race included, {', '.join(_ACS_CODES)} as categories; out-of-fold predictions of "
                f"StratifiedKFold(5, shuffle=True, random_state={random_state})"
            ),
            notes=(
                f"{bunch.n_read:,} rows were read and {len(bunch.target):,} are left after folktables' filter of working "
                "adults.",
                f"The favourable outcome is {bunch.favorable_outcome}, of that year.",
                _said_of_weights(sample_weight, replicate_weights),
                *unknown,
            ),
            sample_weight=None if sample_weight is None else bunch.frame[sample_weight],
            replicate_weights=None if replicate_weights is None else bunch.replicate_weights,
        ),
    )


def _said_of_weights(sample_weight: str | None, replicate_weights: str | None) -> str:
    if sample_weight is None:
        return "Rows are counted unweighted: the rates are those of the sample, not of the population."
    drawn = (
        "as independent draws"
        if replicate_weights is None
        else f"and variances are those of its replicates, {replicate_weights}1 to {replicate_weights}{N_REPLICATES}"
    )
    return f"Rows are weighted by {sample_weight} {drawn}; the model is fitted without weights."


def _out_of_fold(model: Any, X: pd.DataFrame, y: pd.Series, random_state: int) -> pd.Series:
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(5, shuffle=True, random_state=random_state)
    return pd.Series(cross_val_predict(model, X, y, cv=folds), index=y.index, name=y.name)


def _protocol(
    bunch: Bunch,
    y_pred: pd.Series,
    *,
    name: str,
    data_name: str,
    model: str,
    notes: tuple[str, ...],
    attributes: list[str] | None = None,
    outcome: str | None = None,
    sample_weight: pd.Series | None = None,
    replicate_weights: pd.DataFrame | None = None,
) -> Protocol:
    """Take from the bunch what belongs to the predicted rows."""
    groups = bunch.sensitive_features if attributes is None else bunch.sensitive_features[attributes]
    return Protocol(
        name=name,
        data_name=data_name,
        model=model,
        y_true=bunch.target.loc[y_pred.index],
        y_pred=y_pred,
        sensitive_features=groups.loc[y_pred.index],
        pos_label=bunch.pos_label,
        outcome=bunch.outcome if outcome is None else outcome,
        reference={attribute: bunch.reference[attribute] for attribute in groups.columns},
        sha256=bunch.sha256,
        n_rows=len(y_pred),
        notes=notes,
        sample_weight=None if sample_weight is None else sample_weight.loc[y_pred.index],
        replicate_weights=None if replicate_weights is None else replicate_weights.loc[y_pred.index],
    )
