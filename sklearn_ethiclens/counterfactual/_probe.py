"""CounterfactualProbe: a transformer that sets a sensitive feature to another value and keeps all else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from warnings import warn

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_ethiclens._validation import (
    MISSING,
    Column,
    as_scalar,
    check_aligned,
    column_list,
    encode_column,
    frame_columns,
    listing,
)
from sklearn_ethiclens.counterfactual._asking import Support, audit_probe
from sklearn_ethiclens.counterfactual._audit import CounterfactualAudit
from sklearn_ethiclens.counterfactual._columns import (
    Attribute,
    change,
    column_at,
    find_attributes,
    positions,
    read,
)
from sklearn_ethiclens.counterfactual._scorer import ProbeScorer
from sklearn_ethiclens.counterfactual._strategies import Context, get_strategy
from sklearn_ethiclens.exceptions import ActiveProbeWarning, StaleColumnWarning
from sklearn_ethiclens.inference._resampling import as_seed

__all__ = ["CounterfactualProbe"]

_DISCRETE_LEVELS = 1000  # a text column with more values than this, or than a tenth of its rows, is no category
_EVIDENCE = 5  # rows a value must have before a column that is constant in it counts as derived
_SLIP = 1e-3  # of the count under independence: a pair below it is an error of entry (Adult has one female husband)


class CounterfactualProbe(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that sets sensitive features to other values: one row in, one row out, all else as it was.

    It works on raw features, before any encoder. ``transform`` makes one intervention, ``counterfactuals`` goes through all
    values, ``audit`` asks what a model does with them. What it finds is about the model's use of the attribute itself: a
    model that never reads it passes, whatever it does to groups through other features.

    Parameters
    ----------
    sensitive_features : None, str, int, list of them, or mapping, default=None
        Column name(s) or position(s). ``{"race": ["race_Black", "race_White"]}`` is a one-hot block, flipped jointly: its
        values are its columns, and a row without a 1 has a missing value. None: nothing is changed.
    to : None, "swap", "next", value, mapping, or dict per column, default="swap"
        What ``transform`` sets. None: nothing (a passive step). "swap": the other of two values. "next": the next one in
        order, the first after the last. A value: do(A = value). A mapping: from value to value. A dict whose keys are
        sensitive features: any of these for each; those not named stay.
    strategy : {"flip", "transport", "adjust"}, default="flip"
        What else moves; each assumes something, see ``STRATEGIES``. "flip": nothing. "transport": every feature, to the
        value of the same rank in the other group. "adjust": the ``descendants``, predicted anew.
    recompute : mapping of column to callable, optional
        Columns that follow from others: ``f(X_new)`` returns the column. They are computed anew after each change.
    descendants : list of column names or positions, optional
        For ``strategy="adjust"``: the features that the attribute changes.
    handle_unknown : {"error", "ignore"}, default="error"
        With values not seen in ``fit``. "ignore": such rows stay (under do(A = value) they are set), and such targets are
        allowed where the column's type can hold them.
    max_values : int, default=20
        Numbers with more distinct values are a measurement: they need an explicit target, and any number is one.
    random_state : int, RandomState, Generator or None, default=None
        Seed of "transport" and "adjust" (each row's draw depends on the row and the seed, not on its place) and of the
        search for proxies.

    Attributes
    ----------
    values_ : dict of name to list
        The values seen in ``fit``, in order.
    stale_ : dict of name to list
        Columns constant within each value, and so derived from it, that would not change with it.
    n_features_in_, feature_names_in_
        As of any transformer.

    Warns
    -----
    ActiveProbeWarning
        ``fit_transform`` changed rows that a model is about to be fitted on: the check then measures nothing. Use
        ``to=None`` while fitting and ``set_params`` afterwards, or ``make_pipeline(probe.fit(X), FrozenEstimator(model))``.
    StaleColumnWarning
        A column follows from a sensitive feature and is not in ``recompute``.

    Notes
    -----
    Missing values stay missing. Rows keep their index and order, columns their type.

    References
    ----------
    Kusner, Loftus, Russell, Silva (2017), Counterfactual Fairness, for what a causal model would add; Black, Yeom,
    Fredrikson (2020), FlipTest.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"SEX": [1, 2, 1], "income": [3.0, 4.0, 5.0]}, index=[5, 6, 7])
    >>> CounterfactualProbe("SEX").fit(X).transform(X)
       SEX  income
    5    2     3.0
    6    1     4.0
    7    2     5.0
    """

    def __init__(
        self,
        sensitive_features=None,
        *,
        to="swap",
        strategy="flip",
        recompute=None,
        descendants=None,
        handle_unknown="error",
        max_values=20,
        random_state=None,
    ):
        self.sensitive_features = sensitive_features
        self.to = to
        self.strategy = strategy
        self.recompute = recompute
        self.descendants = descendants
        self.handle_unknown = handle_unknown
        self.max_values = max_values
        self.random_state = random_state

    # --------------------------------------------------------------------------------------------------------- fitting
    def fit(self, X, y=None):
        """Learn the values of the sensitive features, what goes with them, and which columns follow from them.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            pandas, polars or pyarrow frame, or array.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        if self.handle_unknown not in ("error", "ignore"):
            raise ValueError(f"handle_unknown must be 'error' or 'ignore'; got {self.handle_unknown!r}.")
        if isinstance(self.max_values, bool) or not isinstance(self.max_values, int) or self.max_values < 2:
            raise ValueError(f"max_values must be a whole number of at least 2; got {self.max_values!r}.")
        strategy = get_strategy(self.strategy)
        X = self._checked(X, reset=True)
        names = frame_columns(X)
        self._names = list(range(X.shape[1])) if names is None else names
        self._attributes = find_attributes(self.sensitive_features, X, self.max_values)
        self.values_ = {name: list(a.values) for name, a in self._attributes.items()}
        self._seed = as_seed(self.random_state)
        own = {j for a in self._attributes.values() for j in a.columns}
        self._recomputed = {self._column(c, "recompute"): f for c, f in (self.recompute or {}).items()}
        descendants = [] if self.descendants is None else column_list(self.descendants)
        moved = tuple(self._column(c, "descendants") for c in descendants)
        for what, chosen in (("recompute", self._recomputed), ("descendants", moved)):
            taken = [self._names[j] for j in chosen if j in own]
            if taken:
                raise ValueError(f"{what} names {listing(taken)}, which are sensitive features themselves.")
        if bool(moved) != (self.strategy == "adjust"):
            raise ValueError(
                f"descendants are the columns that strategy='adjust' predicts anew; got {listing(descendants)} with "
                f"strategy={self.strategy!r}."
            )
        columns = {name: read(X, a) for name, a in self._attributes.items()}
        features = tuple(j for j in range(X.shape[1]) if j not in own and j not in self._recomputed)
        self._strategy = strategy.kind.fit(
            Context(X, self._names, self._attributes, columns, features, moved, self._seed)
        )
        self._look_around(X, columns, moved)
        return self

    def _look_around(self, X, columns: Mapping[Any, Column], moved: tuple[int, ...]):
        """Note which values occur together, and which columns follow from a sensitive feature."""
        self._support: dict[Any, dict[int, Support]] = {name: {} for name in self._attributes}
        self.stale_: dict[Any, list[Any]] = {name: [] for name in self._attributes}
        if not self._attributes:
            return
        codes = {name: positions(columns[name], a.values) for name, a in self._attributes.items()}
        for j in range(X.shape[1]):
            if j in self._recomputed:
                continue
            other = encode_column(column_at(X, j), f"column {self._names[j]!r}")
            levels = other.occurring
            for name, attribute in self._attributes.items():
                if j in attribute.columns or not attribute.countable or len(attribute.values) < 2:
                    continue
                if self._discrete(levels, X.shape[0]):
                    at = positions(other, levels)
                    if MISSING in levels:
                        at[at < 0] = levels.index(MISSING)
                    seen = _occurring_pairs(codes[name], at, len(attribute.values), len(levels))
                    self._support[name][j] = Support(levels, seen)
                if self.strategy != "transport" and j not in moved and _follows(codes[name], other, attribute):
                    self.stale_[name].append(self._names[j])
        for name, stale in self.stale_.items():
            if stale:
                warn(
                    f"{listing(stale)} {'is' if len(stale) == 1 else 'are'} constant within each value of {name!r}, so derived "
                    f"from it, and would not change with it: pass recompute={{{stale[0]!r}: f}}, where f(X_new) returns the "
                    f"column, or what the model reads of {name!r} is changed in part only.",
                    StaleColumnWarning,
                    stacklevel=3,
                )

    def _discrete(self, levels, n_rows: int) -> bool:
        """Tell whether a column holds categories: text, booleans, or a few numbers."""
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels if v is not MISSING):
            return len(levels) <= self.max_values
        return len(levels) <= min(_DISCRETE_LEVELS, max(self.max_values, n_rows // 10))

    def _column(self, column: Any, what: str) -> int:
        """Return where a column stands that a parameter names."""
        if column in self._names:
            return self._names.index(column)
        if isinstance(column, int | np.integer) and -len(self._names) <= column < len(self._names):
            return int(column) % len(self._names)
        raise ValueError(f"{what} names {column!r}, which is not among the columns of X: {listing(self._names, 30)}.")

    def _checked(self, X, *, reset: bool):
        """Return X with its names and number of columns checked; a frame is left as it is."""
        if frame_columns(X) is not None:
            if X.shape[0] == 0:
                raise ValueError("X has 0 rows.")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    # ----------------------------------------------------------------------------------------------------- transforming
    def fit_transform(self, X, y=None, **fit_params):
        """Fit and transform; warn if that changes rows, since it is what a pipeline calls while it is being fitted.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Features.
        y : None
            Ignored.
        **fit_params
            None is taken.

        Returns
        -------
        frame or array
            As :meth:`transform`.
        """
        self.fit(X, y, **fit_params)
        active = [name for name in self._attributes if self._rule(name) is not None]
        if active:
            warn(
                f"the probe changes {listing(active)} of rows that a model may be fitted on: fitted and asked on the same "
                f"changed rows, it cannot show a difference. Fit with to=None and switch on at check time by "
                f"set_params(probe__to=...), or put a fitted probe before FrozenEstimator(model).",
                ActiveProbeWarning,
                stacklevel=2,
            )
        return self.transform(X)

    def transform(self, X):
        """Return X with the sensitive features set as ``to`` says.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Is not modified.

        Returns
        -------
        frame or array
            As X: same rows, index, columns and types. X itself where nothing is changed.

        Raises
        ------
        ValueError
            If a value or a target was not seen in ``fit``, or "swap" has not two values to swap; the message lists the known
            ones.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        active = False
        for name, attribute in self._attributes.items():
            rule = self._rule(name)
            if rule is not None:
                column = read(X, attribute)
                targets = self._targets(attribute, column, rule)
                X = self._set(X, attribute, column, _moves(column, targets))
                active = True
        return _in_container(self._recompute(X) if active else X, self)

    def _rule(self, name: Any) -> Any:
        """Return what ``to`` says of a sensitive feature: None, "swap", "next", a mapping, or a value as a tuple of one."""
        to = self.to
        if isinstance(to, Mapping):
            known = self._called()
            if to and all(_hashable_in(key, known) for key in to):
                to = next((rule for key, rule in to.items() if known[key] == name), None)
            elif len(self._attributes) > 1:
                raise ValueError(
                    f"to={to!r} must say which sensitive feature it is of, as in {{{next(iter(self._attributes))!r}: ...}}; "
                    f"there are {listing(list(self._attributes))}."
                )
        if to is None or (isinstance(to, str) and to in ("swap", "next")):
            return to
        if isinstance(to, Mapping):
            return {as_scalar(key): as_scalar(value) for key, value in to.items()}
        return (as_scalar(to),)

    def _called(self) -> dict[Any, Any]:
        """Return the sensitive features by all they can be called: their name, and what the parameter calls them."""
        called = {name: name for name in self._attributes}
        if not isinstance(self.sensitive_features, Mapping) and self.sensitive_features is not None:
            called |= dict(zip(column_list(self.sensitive_features), self._attributes, strict=True))
        return called

    def _targets(self, attribute: Attribute, column: Column, rule: Any) -> list[Any]:
        """Return what each level of a column is set to; the level itself where it stays."""
        values, free = attribute.values, attribute.measured or self.handle_unknown == "ignore"
        if isinstance(rule, str):
            rule = _pairs(attribute, rule, self.max_values)
        given = list(rule.values()) + list(rule) if isinstance(rule, Mapping) else list(rule)
        unknown = [v for v in given if v not in values and not (free and (not attribute.one_hot))]
        if unknown:
            raise ValueError(
                f"{attribute.name!r} has no value {unknown[0]!r} in the rows of fit; known are {attribute.known()}."
            )
        strange = [v for v in column.occurring if v is not MISSING and v not in values]
        if strange and not free:
            raise ValueError(
                f"{attribute.name!r} holds values not seen in fit: {listing(strange)}; known are {attribute.known()}. Pass "
                f"handle_unknown='ignore' to leave such rows as they are."
            )
        levels = column.levels
        if isinstance(rule, Mapping):
            return [rule.get(level, level) if level is not MISSING else level for level in levels]
        return [rule[0] if level is not MISSING else level for level in levels]

    def _set(self, X, attribute: Attribute, column: Column, moves):
        """Return X with a sensitive feature changed in some rows, and what the strategy moves with it."""
        updates = dict(self._strategy.move(X, attribute, column, moves)) if moves else {}
        for i, j in enumerate(attribute.columns):
            if attribute.one_hot:
                at = {value: k for k, value in enumerate(attribute.values)}
                changes = [(mask, _indicator(at[value] == i, X, j)) for mask, value in moves]
            else:
                changes = list(moves)
            if changes:
                updates[j] = changes
        return change(X, updates)

    def _recompute(self, X):
        """Return X with the derived columns computed anew."""
        for j, function in self._recomputed.items():
            values = function(X)
            native = nw.from_native(values, series_only=True, pass_through=True)
            values = np.array(native.to_list(), dtype=object) if isinstance(native, nw.Series) else np.asarray(values)
            if values.shape != (X.shape[0],):
                raise ValueError(
                    f"recompute[{self._names[j]!r}] must return one value a row, {X.shape[0]} of them; got an array of "
                    f"shape {values.shape}."
                )
            X = change(X, {j: [(np.ones(X.shape[0], dtype=bool), values)]})
        return X

    # -------------------------------------------------------------------------------------------------- counterfactuals
    def counterfactuals(self, X) -> Iterator[tuple[Any, Any, Any]]:
        """Yield every alternative: the name of the sensitive feature, the value, and X under do(feature = value).

        One feature at a time; all rows each time. An explicit value or mapping in ``to`` restricts the alternatives to its
        targets.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Is not modified.

        Yields
        ------
        (name, value, frame or array)
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        for name, attribute in self._attributes.items():
            column = read(X, attribute)
            for value, targets in self._alternatives(attribute, column):
                changed = self._set(X, attribute, column, _moves(column, targets))
                yield name, value, _in_container(self._recompute(changed), self)

    def _alternatives(self, attribute: Attribute, column: Column) -> Iterator[tuple[Any, list[Any]]]:
        """Yield each target value, and what each level of a column is set to."""
        rule = self._rule(attribute.name)
        if isinstance(rule, Mapping):
            for value in dict.fromkeys(rule.values()):
                yield value, self._targets(attribute, column, {k: v for k, v in rule.items() if v == value})
            return
        if isinstance(rule, tuple):
            yield rule[0], self._targets(attribute, column, rule)
            return
        if not attribute.countable:
            raise _uncountable(attribute, self.max_values)
        for value in attribute.values:
            targets = self._targets(attribute, column, (value,))
            known = set(attribute.values)
            yield value, [t if level in known else level for level, t in zip(column.levels, targets, strict=True)]

    # ------------------------------------------------------------------------------------------------------------ asking
    def audit(self, estimator, X, y=None, *, threshold=0.0, pos_label=None) -> CounterfactualAudit:
        """Return what a model does with the sensitive features themselves.

        Each alternative value costs one prediction of the rows that change, never one a row.

        Parameters
        ----------
        estimator : classifier
            Fitted; ``predict_proba`` or ``decision_function`` gives score changes, ``predict`` alone gives decisions only.
        X : frame or array of shape (n_rows, n_features)
            Raw features, as the estimator takes them.
        y : array-like of shape (n_rows,), optional
            True labels: the flip rates among those who are positive and negative are then given too.
        threshold : float, default=0.0
            A score changes where it moves by more than this.
        pos_label : label, optional
            The positive label; guessed only for {0, 1}, {-1, 1} and booleans. Other labels count as one.

        Returns
        -------
        CounterfactualAudit

        Warns
        -----
        AttributeUnusedWarning
            No decision and no score changes: the model does not read the attribute. The strongest proxies are named.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if not self._attributes:
            raise ValueError("nothing to audit: give sensitive_features=<column of X> to CounterfactualProbe.")
        if y is not None:
            check_aligned({"X": X if isinstance(X, pd.DataFrame) else np.empty(X.shape[0]), "y": y})
        return audit_probe(self, estimator, X, y, threshold=threshold, pos_label=pos_label)

    def scorer(self, statistic="flip_rate", *, threshold=0.0, pos_label=None) -> ProbeScorer:
        """Return a scorer for cross-validation and search: minus the statistic, weighted over the pairs of values.

        Parameters
        ----------
        statistic : {"flip_rate", "to_positive", "to_negative", "score_change_rate", "mean_absolute_change", "max_change"}
            A column of the audit's table.
        threshold, pos_label
            As in :meth:`audit`.

        Returns
        -------
        ProbeScorer
            ``scorer(estimator, X, y=None)``, greater is better, picklable. A probe that is not fitted is fitted on each X.
            Score accuracy beside it: a model that decides alike for everybody never flips. NaN, with a
            :class:`FairnessScoringWarning`, where it does.
        """
        return ProbeScorer(self, statistic, threshold=threshold, pos_label=pos_label)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# -------------------------------------------------------------------------------------------------------------- moving
def _pairs(attribute: Attribute, rule: str, max_values: int) -> dict[Any, Any]:
    """Return "swap" or "next" as a mapping."""
    values = attribute.values
    if not attribute.countable:
        raise _uncountable(attribute, max_values)
    if rule == "swap" and len(values) != 2:
        raise ValueError(
            f"to='swap' needs two values, but {attribute.name!r} has {len(values)}: {attribute.known()}. Say which one to set, "
            f"as in to={{{attribute.name!r}: {values[0] if values else None!r}}}, or use to='next'; audit() goes through all."
        )
    return dict(zip(values, values[1:] + values[:1], strict=True))


def _uncountable(attribute: Attribute, max_values: int) -> ValueError:
    low = attribute.values[0]
    return ValueError(
        f"{attribute.name!r} has {attribute.known()}, more than max_values={max_values}: give an explicit target, as in "
        f"to={{{attribute.name!r}: {low!r}}}, or cut it into bands first."
    )


def _moves(column: Column, targets: list[Any]) -> list[tuple[NDArray[np.bool_], Any]]:
    """Return the rows that change, by the value they get."""
    wanted: dict[Any, list[int]] = {}
    for i, (level, target) in enumerate(zip(column.levels, targets, strict=True)):
        if level is not MISSING and level != target:
            wanted.setdefault(target, []).append(i)
    moves = []
    for value, levels in wanted.items():
        table = np.zeros(len(column.levels), dtype=bool)
        table[levels] = True
        mask = table[column.codes]
        if mask.any():
            moves.append((mask, value))
    return moves


def _indicator(one: bool, X: Any, j: int) -> Any:
    """Return 1 or 0 as a column holds it."""
    levels = [v for v in encode_column(column_at(X, j), "the block").occurring if v is not MISSING]
    return type(levels[0])(one) if levels else int(one)


def _hashable_in(key: Any, known: Mapping[Any, Any]) -> bool:
    return not isinstance(key, bool) and key in known


def _occurring_pairs(codes: NDArray[Any], other: NDArray[Any], n: int, m: int) -> NDArray[np.bool_]:
    """Return which pairs of values occur: more often than a slip of the pen, where thousands were to be expected."""
    known = codes >= 0
    table = np.bincount(codes[known] * m + other[known], minlength=n * m).reshape(n, m)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / max(table.sum(), 1)
    return table > _SLIP * expected


def _follows(codes: NDArray[Any], other: Column, attribute: Attribute) -> bool:
    """Tell whether a column is constant within each value, in at least two values of some rows, and not throughout."""
    known = codes >= 0
    if np.unique(other.codes[:1000][known[:1000]]).size > len(attribute.values):
        return False
    first = np.zeros(len(attribute.values), dtype=np.int64)
    first[codes[known][::-1]] = other.codes[known][::-1]
    if not np.array_equal(first[codes[known]], other.codes[known]):
        return False
    rows = np.bincount(codes[known], minlength=len(attribute.values))
    return np.unique(first[rows >= _EVIDENCE]).size > 1


def _in_container(X: Any, probe: CounterfactualProbe) -> Any:
    """Return a frame as the library that ``set_output`` asks for; left to scikit-learn, polars columns become objects."""
    wanted = getattr(probe, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
    if frame_columns(X) is None or wanted not in ("pandas", "polars"):
        return X
    frame = nw.from_native(X, eager_only=True)
    if wanted == "pandas":
        return X if isinstance(X, pd.DataFrame) else frame.to_pandas()
    return frame.to_polars()
