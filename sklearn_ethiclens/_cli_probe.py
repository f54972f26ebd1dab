"""The command ``probe``: what a model does with sensitive features, for a data set or for a file and a stored model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from pandas.api.types import is_numeric_dtype

from sklearn_ethiclens._cli_common import (
    AllowPickle,
    ModelFile,
    StoredModel,
    Trust,
    check_file,
    check_outputs,
    classes_of,
    color,
    load_model,
    match_label,
    one_line_errors,
    print_text,
    read_rows,
    sha256_of,
    split,
    spoken_warnings,
    width,
)
from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._validation import as_scalar, listing, show
from sklearn_ethiclens.counterfactual import STRATEGIES, CounterfactualAudit, CounterfactualProbe
from sklearn_ethiclens.counterfactual._words import sections
from sklearn_ethiclens.datasets import DATASETS
from sklearn_ethiclens.report._html import page
from sklearn_ethiclens.report._words import label

_NAMES = {"compas": "COMPAS", "german-credit": "German Credit"}
SOURCES = tuple(_NAMES)
SUFFIXES = (".csv", ".parquet")
_COMPAS_NUMBERS = ["age", "priors_count", "length_of_stay", "juv_fel_count", "juv_misd_count"]
MAX_VALUES = 20  # of a column of numbers; with more it is a measurement, and all its values are no list to go through
_TEST_SHARE = 0.3
_MODEL = "LogisticRegression(max_iter=1000), numbers standardised and the rest one-hot"


def probe_command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help=f"{', '.join(SOURCES)}, or a file: .csv or .parquet.")
    ],
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", metavar="COL,COL", help="Columns to set to other values.")
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="COL=VALUE", help="Set a column to this value only; default: to every other one."),
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", help=f"What else moves: {', '.join(STRATEGIES)}.")] = "flip",
    descendants: Annotated[
        list[str] | None, typer.Option("--descendants", metavar="COL,COL", help="What --strategy adjust predicts anew.")
    ] = None,
    model_file: ModelFile = None,
    trust: Trust = None,
    allow_pickle: AllowPickle = False,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COL", help="Column of the true labels; no input of the model.")
    ] = None,
    pos_label: Annotated[str | None, typer.Option("--pos-label", metavar="V", help="The positive label.")] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="A score changes where it moves by more.")] = 0.0,
    max_values: Annotated[int, typer.Option("--max-values", help="Numbers with more values need --to.")] = MAX_VALUES,
    seed: Annotated[int, typer.Option("--seed", help="Of the split, the strategy and the search for proxies.")] = 0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the audit as JSON; - is stdout.")
    ] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as HTML.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Set sensitive features to other values, ask a model again, and print what changes."""
    with one_line_errors():
        check_outputs({"--json": json_file, "--html": html_file}, {"SOURCE": source, "--model": model_file})
        with spoken_warnings(quiet):
            names = split(sensitive, "--sensitive")
            if not names:
                raise ValueError("--sensitive is missing: name the columns to set to other values.")
            asked = _Asked(names, model_file, split(trust, "--trust"), allow_pickle, target, seed)
            rows = _data_set(source, asked) if source in SOURCES else _file(source, asked)
            probe = CounterfactualProbe(
                names,
                to=_targets(to, names, rows.X),
                strategy=strategy,
                descendants=split(descendants, "--descendants") or None,
                max_values=max_values,
                random_state=seed,
            ).fit(rows.X_fit)
            found = probe.audit(
                rows.model,
                rows.X,
                rows.y,
                threshold=threshold,
                pos_label=rows.pos_label if pos_label is None else match_label(pos_label, classes_of(rows.model)),
            ).annotate(**rows.data)
        text = found.to_json() + "\n"
        if json_file == "-":
            print_text(text)
        else:
            if not quiet:
                print_text(found.report("text", width=width(), color=color()))
            if json_file is not None:
                write_whole(Path(json_file), text.encode("utf-8", "backslashreplace"))
        if html_file is not None:
            write_whole(html_file, page([sections(found)]).encode())


# ------------------------------------------------------------------------------------------------------------- sources
@dataclass(frozen=True)
class _Asked:
    """What to probe, and with which model."""

    sensitive: list[str]
    model_file: Path | None
    trust: list[str]
    allow_pickle: bool
    target: str | None
    seed: int


@dataclass(frozen=True)
class _Rows:
    """Rows to probe, the rows whose values are known, and a fitted model."""

    X: pd.DataFrame
    X_fit: pd.DataFrame
    model: Any
    y: pd.Series | None = None
    pos_label: Any = None
    data: dict[str, Any] = field(default_factory=dict)


def _data_set(source: str, asked: _Asked) -> _Rows:
    """Return the held-out part of a data set, and its default model fitted on the rest, sensitive features included."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if asked.model_file is not None or asked.target is not None:
        raise ValueError(f"--model and --target are for files; {source} brings its labels and a model.")
    bunch = DATASETS[source].loader()
    features = bunch.data[_COMPAS_NUMBERS] if source == "compas" else bunch.data
    unknown = [c for c in asked.sensitive if c not in bunch.sensitive_features and c not in bunch.data]
    if unknown:
        raise ValueError(f"{source} has no column {listing(unknown)}; it has {listing(list(bunch.data), 30)}.")
    groups = {
        c: bunch.sensitive_features[c] if c in bunch.sensitive_features else bunch.data[c] for c in asked.sensitive
    }
    X = features.assign(**groups).dropna(subset=[c for c in features if c not in groups])
    y = bunch.target.loc[X.index]
    numbers = list(X.select_dtypes("number").columns)
    words = [c for c in X if c not in numbers]
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000))
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=_TEST_SHARE, random_state=asked.seed, stratify=y)
    how = f"train_test_split(test_size={_TEST_SHARE}, random_state={asked.seed}, stratify=y)"
    return _Rows(
        X_test,
        X_fit,
        model.fit(X_fit, y_fit),
        y_test,
        bunch.pos_label,
        {
            "name": _NAMES[source],
            "model": f"{_MODEL}, on {len(list(X))} features; {how}, probed on the held-out part",
            "sha256": bunch.sha256,
            "notes": [
                f"The model was trained with {', '.join(asked.sensitive)} as input, so that there is a use of it to measure. "
                f"Without, every flip rate is 0 and says nothing."
            ],
        },
    )


def _file(source: str, asked: _Asked) -> _Rows:
    """Return the rows of a file and the model given with it."""
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"SOURCE must be one of {list(SOURCES)} or a file ending in {list(SUFFIXES)}; got {source!r}.")
    if asked.model_file is None:
        raise ValueError(f"--model is missing: {path.name} holds rows, and a fitted classifier must decide on them.")
    check_file(path)
    check_file(asked.model_file)
    frame = read_rows(path)
    needed = [*asked.sensitive, *([asked.target] if asked.target else [])]
    absent = [name for name in needed if name not in frame]
    if absent:
        raise ValueError(f"{path.name} has no column {listing(absent)}; it has {listing(list(frame), 30)}.")
    model = load_model(asked.model_file, asked.trust, asked.allow_pickle)
    X = frame.drop(columns=[asked.target] if asked.target else [])
    wanted, estimator = [str(name) for name in model.inputs(X, path.name)], model.estimator
    further = [name for name in asked.sensitive if name not in wanted]
    return _Rows(
        X[[*wanted, *further]],
        X[[*wanted, *further]],
        _OnItsColumns(estimator, wanted) if further else estimator,
        frame[asked.target] if asked.target else None,
        None,
        {
            "name": path.name,
            "model": model.words,
            "sha256": sha256_of(path),
            "notes": ["Values and pairs of values are known from these rows themselves."],
        },
    )


class _OnItsColumns:
    """A model that is handed the columns it was fitted on only."""

    def __init__(self, model: Any, columns: list[str]) -> None:
        self.model, self.columns = model, columns
        for name in ("predict_proba", "decision_function"):
            if hasattr(model, name):
                setattr(self, name, lambda X, name=name: getattr(self.model, name)(X[self.columns]))
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def predict(self, X: pd.DataFrame) -> Any:
        return self.model.predict(X[self.columns])


# -------------------------------------------------------------------------------------------------- a part of an audit
def counterfactual_part(
    model: StoredModel, X: pd.DataFrame, names: Sequence[str], pos_label: Any, seed: int, lines: Sequence[str] = ()
) -> tuple[Section, CounterfactualAudit | None]:
    """Return what a model does with the sensitive features among its inputs, and which it was not asked about and why.

    Parameters
    ----------
    model : StoredModel
        A fitted classifier.
    X : DataFrame of shape (n_rows, n_features)
        Its inputs.
    names : sequence of str
        The sensitive features.
    pos_label : label
        The positive label of the audit.
    seed : int
        Of the search for proxies.
    lines : sequence of str
        What else the section has to say first.

    Returns
    -------
    section : Section
        For the audit of groups.
    found : CounterfactualAudit or None
        None where it can be asked about none of them.
    """
    reasons = {name: _not_askable(X, name) for name in names}
    askable = [name for name, reason in reasons.items() if not reason]
    not_asked = [f"{label(name)} ({reason})" for name, reason in reasons.items() if reason]
    said = [*lines, *([f"Not asked about: {'; '.join(not_asked)}."] if not_asked else [])]
    if not askable:
        return Section("counterfactuals", "Counterfactuals", tuple(said)), None
    probe = CounterfactualProbe(askable, max_values=MAX_VALUES, random_state=seed).fit(X)
    found = probe.audit(model.estimator, X, pos_label=match_label(show(pos_label), model.classes))
    section = found.annotate(model=model.words).section()
    return replace(section, lines=(*said, *section.lines)), found


def _not_askable(X: pd.DataFrame, name: str) -> str:
    """Return why a model cannot be asked about a column without a target; nothing where it can."""
    if name not in X:
        return "no input of the model, so that nothing changes with it"
    n_values = X[name].nunique()
    if n_values < 2:
        return "the same value in all rows"
    if n_values > MAX_VALUES and is_numeric_dtype(X[name]):
        return f"{n_values} different numbers: name one with probe --to {label(name)}=VALUE"
    return ""


# --------------------------------------------------------------------------------------------------- words into values
def _targets(texts: Sequence[str] | None, names: Sequence[str], X: pd.DataFrame) -> Any:
    """Return ``sex=Female`` as the target of a column; "swap" where nothing is asked for."""
    targets: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise ValueError(f"--to must be COL=VALUE with COL among {listing(list(names))}; got {text!r}.")
        targets[name] = match_label(value, [as_scalar(v) for v in X[name].dropna().unique()])
    return {name: targets.get(name, "swap") for name in names} if targets else "swap"
