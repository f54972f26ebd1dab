"""The configuration of an audit on the command line: what it asks for, and the level of single people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from sklearn_ethiclens._audit import Audit
from sklearn_ethiclens._cli_common import StoredModel, check_file, read_rows, sha256_of
from sklearn_ethiclens._frames import check_columns
from sklearn_ethiclens._validation import as_scalar, listing, probability_column, show
from sklearn_ethiclens.compat import AuditConfig, ConfigError, load_config, summary_sections, to_glassalpha
from sklearn_ethiclens.counterfactual import CounterfactualAudit
from sklearn_ethiclens.datasets import DATASETS
from sklearn_ethiclens.individual import consistency_score, matched_pairs

# Options that say where to write, when to fail and what may be loaded; all others say what is audited, as the configuration does.
BESIDE = frozenset(
    {
        "config_file",
        "compat_file",
        "json_file",
        "html_file",
        "pdf_file",
        "markdown_file",
        "card_file",
        "sheet_file",
        "verify",
        "fail_on",
        "quiet",
        "trust",
        "allow_pickle",
    }
)
_RENAMED = {
    "german-credit": {"gender": "sex", "age_group": "age", "credit_risk": "credit"},
    "compas": {"gender": "sex"},
}
_MAX_CATEGORIES = 100  # of a column that is one-hot coded
_WAY_OUT = "metrics.fairness.individual_fairness.distance_metric: mixed"


# ----------------------------------------------------------------------------------------------------- what is asked for
def read_configuration(ctx: Any, path: Path) -> AuditConfig:
    """Return the configuration of a file; refuse options that would contradict it.

    Parameters
    ----------
    ctx : typer.Context
        Of the command, which knows the options that were given.
    path : Path
        Of the YAML file.
    """
    given = [
        parameter.opts[0] if parameter.opts[0].startswith("-") else "SOURCE"
        for parameter in ctx.command.params
        if parameter.name not in BESIDE
        and getattr(ctx.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ValueError(
            f"{' and '.join(given)} cannot be given with --config, which says all that is audited: put it into {path.name}, "
            f"or leave out --config."
        )
    check_file(path)
    config = load_config(path)
    if config.path is None and config.dataset not in DATASETS:
        raise ConfigError(
            f"{config.source}: data.dataset must be one of {list(DATASETS)}, or a .csv or .parquet file; got "
            f"{config.dataset!r}."
        )
    asked = [*config.protected_attributes, *filter(None, [config.target_column])]
    for theirs, ours in _RENAMED.get(config.dataset, {}).items():
        if theirs in asked:
            raise ConfigError(
                f"{config.source}: what GlassAlpha calls {theirs!r} in {config.dataset} is {ours!r} here."
            )
    for key in config.ignored:
        warn(f"{config.source}: {key} has no effect here.", UserWarning, stacklevel=2)
    return config


def check_target(config: AuditConfig, y_true: pd.Series | None) -> None:
    """Refuse a target that is not the label of the data set."""
    own = None if y_true is None else y_true.name
    if config.target_column is not None and config.target_column != own:
        raise ConfigError(
            f"{config.source}: data.target_column must be {own!r}, the label of {config.dataset}, or left out; got "
            f"{config.target_column!r}."
        )


# ------------------------------------------------------------------------------------------------------------- documents
def with_glassalpha(
    made: Audit,
    config: AuditConfig,
    groups: pd.DataFrame,
    y_pred: pd.Series | None,
    model: tuple[StoredModel, pd.DataFrame] | None,
    flips: CounterfactualAudit | None,
) -> tuple[Audit, dict[str, Any]]:
    """Return an audit with the parts that a configuration asks for, and the document in the layout of GlassAlpha.

    Parameters
    ----------
    made : Audit
        Of the groups.
    config : AuditConfig
        What is asked for.
    groups : DataFrame of shape (n_rows, n_attributes)
        The groups audited.
    y_pred : Series of shape (n_rows,)
        The decisions audited, with the same index.
    model : tuple of StoredModel and DataFrame, or None
        The stored classifier and its inputs.
    flips : CounterfactualAudit or None
        What it does with the groups themselves.
    """
    parts: dict[str, Any] = {}
    people: dict[str, Any] = {}
    if config.individual.enabled and y_pred is not None:
        X, y_score, words = _people(config, groups, y_pred, model, made.tally.pos_label)
        people = {"features": [str(name) for name in X], "scores": words}
        parts = _alike(config, _numbers(X, config), y_score, groups) | {"counterfactual": flips}
        why = (
            "there is no model to ask: give a fitted one by model.path"
            if model is None
            else "no protected attribute is an input of the model that can be set to another value"
        )
        parts["reasons"] = parts.get("reasons", {}) | ({} if flips is not None else {"counterfactual_flip": why})
    document = to_glassalpha(made, intervals=config.compute_confidence_intervals, **parts)
    document["individual_fairness"].update(people)
    for section in summary_sections(document):
        made = made.with_section(section)
    return made, document


def as_text(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return documents as strict JSON: one as it is, several as a list."""
    found: Any = documents[0] if len(documents) == 1 else list(documents)
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(config: Path) -> dict[str, str]:
    """Return the name and the SHA-256 of a configuration, for the provenance."""
    return {"name": config.name, "sha256": sha256_of(config)}


# ---------------------------------------------------------------------------------------------------------------- people
def _people(
    config: AuditConfig,
    groups: pd.DataFrame,
    y_pred: pd.Series,
    model: tuple[StoredModel, pd.DataFrame] | None,
    pos_label: Any,
) -> tuple[pd.DataFrame, pd.Series, str]:
    """Return the features that say who is alike, and the scores: given, the model's, or the decisions; and which, in words."""
    if config.path is None:
        bunch = DATASETS[config.dataset].loader()
        frame, known = bunch.data.loc[groups.index], list(bunch.feature_names)
    else:
        frame = read_rows(config.path).set_axis(groups.index)
        known = [str(name) for name in frame]
    labels = (config.target_column, config.prediction_column, config.score_column)
    left_out = {*config.protected_attributes, *map(str, groups), *filter(None, labels)}
    if config.feature_columns is None:
        features = [name for name in known if name not in left_out]
    else:
        features = list(config.feature_columns)
        check_columns(f"{config.source}: data.dataset {config.dataset}", features, list(frame))
    if not features:
        raise ConfigError(f"{config.source}: no column is left to say who is alike; name some in data.feature_columns.")
    if config.score_column is not None:
        return frame[features], frame[config.score_column], f"the scores of {config.score_column}"
    if model is not None and hasattr(model[0].estimator, "predict_proba"):
        stored, inputs = model
        scores = probability_column(
            stored.estimator.predict_proba(inputs), stored.classes, _class_of(stored, pos_label)
        )
        return frame[features], pd.Series(scores, index=groups.index), "the probabilities of the model"
    decided = [as_scalar(value) == pos_label for value in y_pred]
    words = "the decisions, since there are no scores (data.score_column, model.path)"
    return frame[features], pd.Series(np.array(decided, dtype=float), index=groups.index), words


def _class_of(stored: StoredModel, pos_label: Any) -> Any:
    """Return the class of a model that is written as the positive label of the audit."""
    same = [one for one in stored.classes if one == pos_label or show(one) == show(pos_label)]
    return same[0] if same else pos_label


def _numbers(X: pd.DataFrame, config: AuditConfig) -> pd.DataFrame:
    """Return features as the distance takes them: categories one-hot coded, unless it takes any type."""
    if config.individual.distance_metric == "mixed":
        return X
    gaps = [str(name) for name in X if X[name].isna().any()]
    if gaps:
        raise ConfigError(
            f"{config.source}: the distance {config.individual.distance_metric!r} cannot use missing values, which "
            f"{listing(gaps)} have. Take {_WAY_OUT}, which leaves them out pair by pair, or name other data.feature_columns."
        )
    words = [name for name in X if not is_numeric_dtype(X[name]) and not is_datetime64_any_dtype(X[name])]
    many = [str(name) for name in words if X[name].nunique() > _MAX_CATEGORIES]
    if many:
        raise ConfigError(
            f"{config.source}: {listing(many)} hold more than {_MAX_CATEGORIES} different texts each, which are no categories: "
            f"name other data.feature_columns, or take {_WAY_OUT}."
        )
    return pd.get_dummies(X, columns=words, dtype=float) if words else X


def _alike(config: AuditConfig, X: pd.DataFrame, y_score: pd.Series, groups: pd.DataFrame) -> dict[str, Any]:
    """Return the consistency of scores and the matched pairs, or why there are none."""
    asked = config.individual
    common: dict[str, Any] = {
        "metric": asked.distance_metric,
        "max_samples": asked.max_samples,
        "random_state": config.random_seed,
    }
    consistency = consistency_score(
        X,
        y_score,
        method="similar_pairs",
        similarity_percentile=asked.similarity_percentile,
        confidence_level=config.confidence_level,
        n_resamples=config.n_bootstrap,
        **common,
    )
    if len(groups.drop_duplicates()) < 2:
        return {"consistency": consistency, "reasons": {"matched_pairs": "all people are of one group"}}
    threshold = consistency.distance_threshold
    pairs = matched_pairs(
        X,
        y_score,
        groups,
        distance_threshold=threshold if threshold > 0 else None,
        prediction_threshold=asked.prediction_threshold,
        **common,
    )
    return {"consistency": consistency, "matched_pairs": pairs}
