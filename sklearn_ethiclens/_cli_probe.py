"""The command ``probe``: what a model does with sensitive features, for a data set or for a file and a stored model."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from sklearn_ethiclens._cli_common import (
    arrow,
    color,
    one_line_errors,
    print_text,
    read_csv,
    split,
    spoken_warnings,
    width,
)
from sklearn_ethiclens._validation import as_scalar, listing, show
from sklearn_ethiclens.counterfactual import STRATEGIES, CounterfactualAudit, CounterfactualProbe
from sklearn_ethiclens.datasets import DATASETS
from sklearn_ethiclens.datasets._download import write_whole

_NAMES = {"compas": "COMPAS", "german-credit": "German Credit"}
SOURCES = tuple(_NAMES)
SUFFIXES = (".csv", ".parquet")
_COMPAS_NUMBERS = ["age", "priors_count", "length_of_stay", "juv_fel_count", "juv_misd_count"]
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
    model_file: Annotated[
        Path | None, typer.Option("--model", metavar="FILE", help="A fitted classifier: .skops, or .pkl; for files.")
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option("--trust", metavar="TYPE,TYPE", help="Types a .skops file may hold beside the known."),
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Load a pickle: it can run any code, so only your own.")
    ] = False,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COL", help="Column of the true labels; no input of the model.")
    ] = None,
    pos_label: Annotated[str | None, typer.Option("--pos-label", metavar="V", help="The positive label.")] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="A score changes where it moves by more.")] = 0.0,
    max_values: Annotated[int, typer.Option("--max-values", help="Numbers with more values need --to.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Of the split, the strategy and the search for proxies.")] = 0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the audit as JSON; - is stdout.")
    ] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as HTML.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Set sensitive features to other values, ask a model again, and print what changes."""
    with one_line_errors():
        with spoken_warnings(quiet):
            names = split(sensitive)
            if not names:
                raise ValueError("--sensitive is missing: name the columns to set to other values.")
            asked = _Asked(names, model_file, split(trust), allow_pickle, target, seed)
            rows = _data_set(source, asked) if source in SOURCES else _file(source, asked)
            probe = CounterfactualProbe(
                names,
                to=_targets(to, names, rows.X),
                strategy=strategy,
                descendants=split(descendants) or None,
                max_values=max_values,
                random_state=seed,
            ).fit(rows.X_fit)
            found = probe.audit(
                rows.model,
                rows.X,
                rows.y,
                threshold=threshold,
                pos_label=rows.pos_label if pos_label is None else _match(pos_label, _classes(rows.model)),
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
            write_whole(html_file, _page(found).encode("utf-8", "backslashreplace"))


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
    for one in (path, asked.model_file):
        if not one.is_file():
            raise ValueError(f"there is no file {one}.")
    frame = _read(path)
    needed = [*asked.sensitive, *([asked.target] if asked.target else [])]
    absent = [name for name in needed if name not in frame]
    if absent:
        raise ValueError(f"{path.name} has no column {listing(absent)}; it has {listing(list(frame), 30)}.")
    model, digest = _load_model(asked.model_file, asked)
    X = frame.drop(columns=[asked.target] if asked.target else [])
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is not None:
        lacking = [name for name in wanted if name not in X]
        if lacking:
            raise ValueError(f"the model was fitted on {listing(lacking)}, which {path.name} does not have.")
        X = X[[*wanted, *(name for name in asked.sensitive if name not in wanted)]]
        model = model if list(X) == list(wanted) else _OnItsColumns(model, list(wanted))
    with path.open("rb") as file:
        data = hashlib.file_digest(file, "sha256").hexdigest()
    return _Rows(
        X,
        X,
        model,
        frame[asked.target] if asked.target else None,
        None,
        {
            "name": path.name,
            "model": f"{type(getattr(model, 'model', model)).__name__} of {asked.model_file.name} (sha256 {digest[:12]})",
            "sha256": data,
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


def _read(path: Path) -> pd.DataFrame:
    """Return a file's rows; in a CSV only an empty cell is missing, so that a group called NA stays a group."""
    if path.suffix.lower() == ".parquet":
        arrow("pyarrow")
        return pd.read_parquet(path, engine="pyarrow")
    return read_csv(path)


def _load_model(path: Path, asked: _Asked) -> tuple[Any, str]:
    """Return a model and the SHA-256 of its file; types that skops does not know are refused unless trusted by name."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if path.suffix.lower() == ".skops":
        try:
            skops = import_module("skops.io")
        except ImportError as error:
            raise ImportError("reading .skops needs skops: pip install skops") from error
        refused = [name for name in skops.get_untrusted_types(data=content) if name not in asked.trust]
        if refused:
            raise ValueError(
                f"{path.name} holds types that are not known to be safe: {listing(refused)}. If you know where the file is "
                f"from, pass --trust {','.join(refused)}."
            )
        return skops.loads(content, trusted=skops.get_untrusted_types(data=content)), digest
    if path.suffix.lower() not in (".pkl", ".pickle", ".joblib"):
        raise ValueError(f"--model must be a .skops file, or .pkl, .pickle or .joblib; got {path.name!r}.")
    if not asked.allow_pickle:
        raise ValueError(
            f"{path.name} is a pickle, which can run any code when it is loaded: store the model with skops.io.dump, or pass "
            f"--allow-pickle if it is your own."
        )
    if path.suffix.lower() == ".joblib":
        return import_module("joblib").load(path), digest
    try:
        return pickle.loads(content), digest
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError) as error:
        raise ValueError(f"{path.name} cannot be loaded: {error}.") from error


def _classes(model: Any) -> list[Any]:
    found = getattr(model, "classes_", None)
    return [] if found is None else [as_scalar(label) for label in found]


# --------------------------------------------------------------------------------------------------- words into values
def _match(text: str, values: Sequence[Any]) -> Any:
    """Return the value that is written so, else the number that the text spells, else the text."""
    same = [value for value in values if show(value) == text or str(value) == text]
    if same:
        return same[0]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _targets(texts: Sequence[str] | None, names: Sequence[str], X: pd.DataFrame) -> Any:
    """Return ``sex=Female`` as the target of a column; "swap" where nothing is asked for."""
    targets: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise ValueError(f"--to must be COL=VALUE with COL among {listing(list(names))}; got {text!r}.")
        targets[name] = _match(value, [as_scalar(v) for v in X[name].dropna().unique()])
    return {name: targets.get(name, "swap") for name in names} if targets else "swap"


# ------------------------------------------------------------------------------------------------------------- output
def _page(found: CounterfactualAudit) -> str:
    name = escape(str(found.provenance["data"].get("name", "")))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Counterfactuals of {name}</title></head>\n'
        f"<body>\n{found.report('html')}\n</body>\n</html>\n"
    )
