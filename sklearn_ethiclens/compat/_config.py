"""The configuration of an audit as GlassAlpha writes it in YAML: read, validated key by key, turned into a policy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from math import isfinite
from os import PathLike
from pathlib import Path
from reprlib import Repr
from typing import Any, NamedTuple

from sklearn_ethiclens._frames import SUFFIXES
from sklearn_ethiclens._validation import listing
from sklearn_ethiclens.metrics._definitions import METRICS
from sklearn_ethiclens.policy import POLICIES, Policy, Rule

BASE = POLICIES["glassalpha"]
DISTANCES = ("euclidean", "mahalanobis", "mixed")
OUTCOMES = ("favorable", "adverse")
_LARGEST_GAP = 0.10  # of a metric that the policy has no rule for

# What a name in metrics.fairness.metrics judges: signed gaps to the group with the highest value.
FAIRNESS_METRICS: Mapping[str, tuple[str, ...]] = {
    "demographic_parity": ("selection_rate_difference",),
    "equal_opportunity": ("true_positive_rate_difference",),
    "predictive_equality": ("false_positive_rate_difference",),
    "equalized_odds": ("true_positive_rate_difference", "false_positive_rate_difference"),
    "predictive_parity": ("precision_difference",),
    "selection_rate": ("selection_rate_difference",),
    "tpr": ("true_positive_rate_difference",),
    "recall": ("true_positive_rate_difference",),
    "fpr": ("false_positive_rate_difference",),
    "precision": ("precision_difference",),
    "accuracy": ("accuracy_difference",),
    **{m.name: (m.name,) for m in METRICS.values() if m.kind == "pair" and m.scale == "difference" and m.low == -1},
}
_DEFAULT_METRICS = ("demographic_parity", "equal_opportunity", "predictive_equality")


class ConfigError(ValueError):
    """A configuration that cannot be followed; the message names every key that is wrong, what was found and expected."""


# --------------------------------------------------------------------------------------------------------- the result
@dataclass(frozen=True)
class IndividualConfig:
    """What is asked at the level of single people: ``metrics.fairness.individual_fairness``.

    Parameters
    ----------
    enabled : bool
        False without the section; True with it, unless it says otherwise.
    distance_metric : {"euclidean", "mahalanobis", "mixed"}
        "mixed" is Gower's distance, for features of any type; for the others categories are one-hot coded.
    similarity_percentile : float
        In [0, 100): similar are the closest (100 - this)% of pairs.
    prediction_threshold : float
        In [0, 1]: scores of matched people are apart above this.
    max_samples : int or None
        Compare only so many people, drawn at random.
    """

    enabled: bool = False
    distance_metric: str = "euclidean"
    similarity_percentile: float = 90
    prediction_threshold: float = 0.10
    max_samples: int | None = None


@dataclass(frozen=True)
class AuditConfig:
    """A validated configuration; made by :func:`load_config` or :func:`read_config`.

    Attributes
    ----------
    source : str
        Its name in messages: that of the file.
    dataset : str
        A data set by its name here (``german_credit`` is "german-credit"), or the path of a file as given.
    path : Path or None
        Of the file, relative ones taken from the folder of the configuration; None for a data set.
    target_column, prediction_column, score_column : str or None
        Columns of the true labels, the decisions and the scores.
    protected_attributes : tuple of str
        Columns of the groups.
    intersections : tuple of tuple of str
        Combinations of them.
    feature_columns : tuple of str or None
        What says who is alike; None: all columns but those of groups, labels, decisions and scores.
    pos_label : label or None
        The positive label.
    outcome : {"favorable", "adverse"} or None
        What receiving it means for a person; None: as the data set has it, or favourable.
    bands : mapping of str to tuple
        Where to cut columns of numbers into groups.
    metrics : tuple of str
        What is judged.
    thresholds : mapping of str to float
        The largest gap, by name in ``metrics``; the others have the policy's.
    compute_confidence_intervals : bool
        Whether the JSON has them. They are computed in any case, since nothing is flagged without.
    n_bootstrap : int
        Replicates.
    confidence_level : float
        Of the intervals.
    individual : IndividualConfig
        Consistency, matched pairs and flips.
    model_path : Path or None
        A stored classifier.
    random_seed : int
        Of all draws.
    ignored : tuple of str
        Keys that are known and have no effect here.

    Examples
    --------
    >>> config = read_config({"data": {"dataset": "german_credit", "protected_attributes": ["age"]}})
    >>> config.dataset, [rule.describe() for rule in config.policy.rules][0]
    ('german-credit', 'selection_rate_difference <= 0.1')
    """

    source: str
    dataset: str
    path: Path | None = None
    target_column: str | None = None
    prediction_column: str | None = None
    score_column: str | None = None
    protected_attributes: tuple[str, ...] = ()
    intersections: tuple[tuple[str, ...], ...] = ()
    feature_columns: tuple[str, ...] | None = None
    pos_label: Any = None
    outcome: str | None = None
    bands: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    metrics: tuple[str, ...] = _DEFAULT_METRICS
    thresholds: Mapping[str, float] = field(default_factory=dict)
    compute_confidence_intervals: bool = True
    n_bootstrap: int = BASE.n_resamples
    confidence_level: float = BASE.confidence_level
    individual: IndividualConfig = field(default_factory=IndividualConfig)
    model_path: Path | None = None
    random_seed: int = 0
    ignored: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """The policy "glassalpha" with these metrics, thresholds, replicates and confidence level.

        A metric without a threshold keeps the policy's; one that the policy has no rule for has 0.10.
        """
        limits: dict[str, float] = {}
        for name in self.metrics:
            for metric in FAIRNESS_METRICS[name]:
                own = BASE.rule(metric)
                usual = _LARGEST_GAP if own is None or own.maximum is None else own.maximum
                if name in self.thresholds or metric not in limits:
                    limits[metric] = float(self.thresholds.get(name, usual))
        rules = tuple(Rule(name, maximum=limits[name], basis="gap") for name in METRICS if name in limits)
        return BASE.replace(rules=rules, n_resamples=self.n_bootstrap, confidence_level=self.confidence_level)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as :func:`read_config` takes it, with everything that was left to a default."""
        individual = {name: getattr(self.individual, name) for name in IndividualConfig.__dataclass_fields__}
        return {
            "data": {
                "dataset": self.dataset if self.path is None else str(self.path),
                "target_column": self.target_column,
                "prediction_column": self.prediction_column,
                "score_column": self.score_column,
                "protected_attributes": list(self.protected_attributes),
                "intersections": ["*".join(names) for names in self.intersections],
                "feature_columns": None if self.feature_columns is None else list(self.feature_columns),
                "pos_label": self.pos_label,
                "outcome": self.outcome,
                "bands": {name: list(cuts) for name, cuts in self.bands.items()},
            },
            "metrics": {
                "fairness": {
                    "metrics": list(self.metrics),
                    "compute_confidence_intervals": self.compute_confidence_intervals,
                    "n_bootstrap": self.n_bootstrap,
                    "confidence_level": self.confidence_level,
                    "thresholds": dict(self.thresholds),
                    "individual_fairness": individual,
                }
            },
            "model": {"path": None if self.model_path is None else str(self.model_path)},
            "reproducibility": {"random_seed": self.random_seed},
        }


# ------------------------------------------------------------------------------------------------------------- values
_WRONG = object()


class _Leaf(NamedTuple):
    """A key that holds a value: what is expected, in words, and the reader, which gives ``_WRONG`` for anything else."""

    expected: str
    read: Callable[[Any], Any]


def _text(value: Any) -> Any:
    return value if isinstance(value, str) and value.strip() else _WRONG


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else _WRONG


def _label(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else _WRONG


def _names(value: Any) -> Any:
    if not isinstance(value, list | tuple) or any(_text(name) is _WRONG for name in value):
        return _WRONG
    return tuple(dict.fromkeys(name.strip() for name in value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _whole(least: int) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, int) and not isinstance(value, bool) and value >= least else _WRONG


def _within(inside: Callable[[float], bool]) -> Callable[[Any], Any]:
    return lambda value: value if _is_number(value) and inside(value) else _WRONG


def _one_of(known: tuple[str, ...]) -> _Leaf:
    return _Leaf(f"one of {listing(known)}", lambda value: value if value in known else _WRONG)


def _limits(value: Any) -> Any:
    wrong = not isinstance(value, Mapping) or any(
        not isinstance(name, str) or not _is_number(limit) or not 0 <= limit <= 1 for name, limit in value.items()
    )
    return _WRONG if wrong else dict(value)


def _cuts(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _WRONG
    for name, cuts in value.items():
        if (
            not isinstance(name, str)
            or not isinstance(cuts, list | tuple)
            or not cuts
            or not all(map(_is_number, cuts))
        ):
            return _WRONG
        if any(low >= high for low, high in pairwise(cuts)):
            return _WRONG
    return {name: tuple(cuts) for name, cuts in value.items()}


_COLUMN = _Leaf("the name of a column, as text", _text)
_COLUMNS = _Leaf("a list of column names, as text", _names)
SCHEMA: Mapping[str, Any] = {
    "audit_profile": _Leaf("text", _text),
    "data": {
        "dataset": _Leaf(
            "the name of a data set, such as german_credit, or the path of a .csv or .parquet file", _text
        ),
        "target_column": _COLUMN,
        "prediction_column": _COLUMN,
        "score_column": _COLUMN,
        "protected_attributes": _COLUMNS,
        "intersections": _Leaf('a list of texts such as "gender*race"', _names),
        "feature_columns": _COLUMNS,
        "pos_label": _Leaf("one label", _label),
        "outcome": _one_of(OUTCOMES),
        "bands": _Leaf("a mapping of a column to rising numbers, such as {age: [25, 40]}", _cuts),
    },
    "metrics": {
        "fairness": {
            "metrics": _Leaf("a list of names of metrics", _names),
            "compute_confidence_intervals": _Leaf("true or false", _flag),
            "n_bootstrap": _Leaf("a whole number of at least 100", _whole(100)),
            "confidence_level": _Leaf("a number between 0 and 1, such as 0.95", _within(lambda v: 0 < v < 1)),
            "thresholds": _Leaf(
                "a mapping of a metric to its largest gap in [0, 1], such as {demographic_parity: 0.1}", _limits
            ),
            "individual_fairness": {
                "enabled": _Leaf("true or false", _flag),
                "distance_metric": _one_of(DISTANCES),
                "similarity_percentile": _Leaf("a number in [0, 100), such as 90", _within(lambda v: 0 <= v < 100)),
                "prediction_threshold": _Leaf("a number in [0, 1], such as 0.1", _within(lambda v: 0 <= v <= 1)),
                "max_samples": _Leaf("a whole number of at least 2", _whole(2)),
            },
        },
    },
    "model": {"path": _Leaf("the path of a stored classifier", _text)},
    "reproducibility": {"random_seed": _Leaf("a whole number of at least 0", _whole(0))},
}
_NO_TRAINING = (
    "no model is trained here: give the decisions by data.prediction_column, or a fitted classifier by model.path."
)
_ELSEWHERE = {"model.type": _NO_TRAINING, "model.family": _NO_TRAINING, "model.params": _NO_TRAINING}
_NO_EFFECT = ("audit_profile",)


def _paths(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, part in schema.items():
        yield prefix + key
        if isinstance(part, Mapping):
            yield from _paths(part, f"{prefix}{key}.")


KEYS = tuple(_paths(SCHEMA))
"""Every key that is known, from the top, joined by dots."""


# ------------------------------------------------------------------------------------------------------------ reading
def load_config(path: str | PathLike[str]) -> AuditConfig:
    """Return the configuration of a YAML file.

    Parameters
    ----------
    path : str or path
        Of the file, in UTF-8. Paths in it are relative to its folder.

    Returns
    -------
    AuditConfig
        Its ``policy``, ``intersections`` and ``random_seed`` are what :func:`sklearn_ethiclens.audit` takes.

    Raises
    ------
    ConfigError
        A ``ValueError`` that names every key that is unknown, missing, of the wrong type or out of range.
    ImportError
        Without PyYAML.
    OSError
        If the file cannot be read.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(f"path must be the path of a file; got {path!r}. read_config takes a mapping.")
    path = Path(path)
    try:
        yaml: Any = import_module("yaml")
    except ImportError as error:
        raise ImportError(
            "reading a configuration needs PyYAML: pip install 'sklearn-ethiclens[config]'. read_config takes a mapping "
            "instead."
        ) from error
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error

    base: Any = yaml.SafeLoader
    name = path.name

    class Loader(base):
        """A loader that keeps no key silently in place of an earlier one."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if isinstance(key, Hashable):
                    if key in seen:
                        line = key_node.start_mark.line + 1
                        raise ConfigError(f"{name}, line {line}: the key {key!r} stands twice; keep one.")
                    seen.add(key)
            return super().construct_mapping(node, deep=deep)

    try:
        found = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path.name}{where} is not YAML: {getattr(error, 'problem', None) or error}.") from error
    except RecursionError as error:
        raise ConfigError(f"{path.name} nests lists or mappings too deeply to be a configuration.") from error
    return read_config(found, folder=path.parent, source=path.name)


def read_config(
    found: Any, *, folder: str | PathLike[str] | None = None, source: str = "the configuration"
) -> AuditConfig:
    """Return the configuration of nested mappings, as YAML gives them.

    Parameters
    ----------
    found : mapping
        The keys of the file, nested. A value of None is as if the key were absent.
    folder : str or path, optional
        Where relative paths start; default: the working directory.
    source : str
        What it is called in messages.

    Returns
    -------
    AuditConfig

    Raises
    ------
    ConfigError
        A ``ValueError`` that names every key that is unknown, missing, of the wrong type or out of range.

    Examples
    --------
    >>> read_config({"data": {"dataset": "german_credit", "protected_atributes": ["age"]}})
    Traceback (most recent call last):
    ...
    sklearn_ethiclens.compat._config.ConfigError: the configuration: unknown key data.protected_atributes. Did you mean \
data.protected_attributes?
    """
    problems: list[str] = []
    given = dict(_walk(found, SCHEMA, "", problems))
    _raise(source, problems)
    folder = Path() if folder is None else Path(folder)
    dataset = given.get("data.dataset")
    if dataset is None:
        raise ConfigError(f"{source}: data.dataset is missing: name a data set, such as german_credit, or a file.")
    is_file = Path(dataset).suffix.lower() in SUFFIXES
    if not is_file and ("/" in dataset or "\\" in dataset or Path(dataset).suffix):
        problems.append(f"data.dataset must be {SCHEMA['data']['dataset'].expected}; got {dataset!r}.")
    problems += _of_file(given, dataset) if is_file else _of_data_set(given, dataset)
    intersections = _intersections(given, problems)
    metrics, thresholds = _judged(given, problems)
    _raise(source, problems)
    individual = {
        name: given[key]
        for name in IndividualConfig.__dataclass_fields__
        if (key := f"metrics.fairness.individual_fairness.{name}") in given
    }
    model_path = given.get("model.path")
    config = AuditConfig(
        source=source,
        dataset=dataset if is_file else dataset.strip().lower().replace("_", "-"),
        path=folder / dataset if is_file else None,
        intersections=intersections,
        metrics=metrics,
        thresholds=thresholds,
        individual=IndividualConfig(**({"enabled": bool(individual)} | individual)),
        model_path=None if model_path is None else folder / model_path,
        random_seed=given.get("reproducibility.random_seed", 0),
        ignored=tuple(key for key in _NO_EFFECT if key in given),
        **{key.rpartition(".")[2]: value for key, value in given.items() if key in _AS_IS},
    )
    try:
        _ = config.policy
    except ValueError as error:
        raise ConfigError(f"{source}: metrics.fairness: {error}") from error
    return config


_AS_IS = (
    "data.target_column",
    "data.prediction_column",
    "data.score_column",
    "data.protected_attributes",
    "data.feature_columns",
    "data.pos_label",
    "data.outcome",
    "data.bands",
    "metrics.fairness.compute_confidence_intervals",
    "metrics.fairness.n_bootstrap",
    "metrics.fairness.confidence_level",
)


def _raise(source: str, problems: list[str]) -> None:
    if problems:
        raise ConfigError(f"{source}: {' '.join(problems)}")


def _walk(found: Any, schema: Mapping[str, Any], path: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield each key that is given, joined by dots, with its value; note what is wrong."""
    if found is None:
        return
    if not isinstance(found, Mapping):
        where = path.removesuffix(".") or "it"
        problems.append(f"{where} must hold the keys {listing(list(schema))}; got {_said(found)}.")
        return
    for key, value in found.items():
        here = f"{path}{key}"
        if key not in schema:
            problems.append(_unknown(here, schema, path))
        elif isinstance(schema[key], Mapping):
            yield from _walk(value, schema[key], f"{here}.", problems)
        elif value is not None:
            read = schema[key].read(value)
            if read is _WRONG:
                problems.append(f"{here} must be {schema[key].expected}; got {_said(value)}.{_hint(value)}")
            else:
                yield here, read


def _unknown(here: str, schema: Mapping[str, Any], path: str) -> str:
    """Return that a key is unknown, with the nearest that is known: beside it, else anywhere."""
    if here in _ELSEWHERE:
        return f"{here} has no place here: {_ELSEWHERE[here]}"
    last = here.removeprefix(path)
    near = [f"{path}{name}" for name in get_close_matches(last, list(schema), n=1)]
    if not near:
        names = {known.rpartition(".")[2]: known for known in reversed(KEYS)}
        near = [names[name] for name in get_close_matches(last, list(names), n=1, cutoff=0.7)]
    if near:
        return f"unknown key {here}. Did you mean {near[0]}?"
    return (
        f"unknown key {here}; known {'at the top' if not path else f'in {path[:-1]}'} are {listing(list(schema), 30)}."
    )


_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother = 3, 8, 8, 60, 60


def _said(value: Any) -> str:
    """Return what was found, cut short, with its type in the words of YAML."""
    kinds = {
        bool: "a boolean",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a mapping",
    }
    text = _SHORT.repr(value)  # never all of it: anchors let a small file hold a huge value
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({kinds.get(type(value), type(value).__name__)})"


def _hint(value: Any) -> str:
    """Return what to do about a value that YAML reads as no text though it looks like one."""
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, bool) for one in values):
        return " YAML reads yes, no, on and off as booleans: put them in quotes where text is meant."
    return ""


# --------------------------------------------------------------------------------------------- what fits with what
def _of_file(given: Mapping[str, Any], dataset: str) -> Iterator[str]:
    if not given.get("data.protected_attributes"):
        yield f"data.protected_attributes is missing: name the columns of {dataset} that hold the groups."
    if "data.prediction_column" not in given and "model.path" not in given:
        yield (
            f"data.prediction_column is missing: name the column of {dataset} that holds the decisions. No model is trained "
            f"here; model.path may name a fitted one instead."
        )


def _of_data_set(given: Mapping[str, Any], dataset: str) -> Iterator[str]:
    for key in ("data.prediction_column", "data.score_column", "data.pos_label"):
        if key in given:
            yield f"{key} is for files; {dataset} brings its labels and decisions. Leave it out."


def _intersections(given: Mapping[str, Any], problems: list[str]) -> tuple[tuple[str, ...], ...]:
    attributes = given.get("data.protected_attributes", ())
    found = []
    for text in given.get("data.intersections", ()):
        names = tuple(name.strip() for name in text.split("*"))
        unknown = [name for name in names if attributes and name not in attributes]
        if len(names) < 2 or len(set(names)) < len(names) or not all(names):
            problems.append(
                f"data.intersections must combine different attributes by *, such as 'gender*race'; got {text!r}."
            )
        elif unknown:
            problems.append(
                f"data.intersections names {listing(unknown)}, not among data.protected_attributes {listing(attributes)}."
            )
        else:
            found.append(names)
    return tuple(dict.fromkeys(found))


def _judged(given: Mapping[str, Any], problems: list[str]) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return the metrics that are judged and the thresholds that are given; note unknown and contradicting ones."""
    thresholds = given.get("metrics.fairness.thresholds", {})
    listed = given.get("metrics.fairness.metrics")
    if listed is not None and not listed:
        problems.append("metrics.fairness.metrics is empty: name what to judge, or leave the key out.")
    metrics = tuple(dict.fromkeys([*_DEFAULT_METRICS, *thresholds])) if listed is None else listed
    for key, names in (("metrics", metrics if listed is not None else ()), ("thresholds", thresholds)):
        for name in names:
            if name not in FAIRNESS_METRICS:
                near = get_close_matches(name, list(FAIRNESS_METRICS), n=1)
                hint = (
                    f" Did you mean {near[0]}?" if near else f" Known are {listing(list(FAIRNESS_METRICS)[:12], 12)}."
                )
                problems.append(f"metrics.fairness.{key} names {name!r}, which is no metric here.{hint}")
            elif key == "thresholds" and name not in metrics:
                problems.append(
                    f"metrics.fairness.thresholds names {name!r}, which is not among metrics.fairness.metrics: list it there, "
                    f"or leave the threshold out."
                )
    limits: dict[str, tuple[str, float]] = {}
    for name, limit in thresholds.items():
        for metric in FAIRNESS_METRICS.get(name, ()):
            other, value = limits.setdefault(metric, (name, limit))
            if value != limit:
                problems.append(
                    f"metrics.fairness.thresholds gives {other} {value:g} and {name} {limit:g}, but both limit {metric}."
                )
    return metrics, dict(thresholds)
