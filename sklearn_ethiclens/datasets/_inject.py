"""A known bias put into real rows: which rows changed, and what the change is expected to do, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.special import expit, logit, ndtr, ndtri, owens_t
from scipy.stats import rankdata
from sklearn.utils import Bunch

from sklearn_ethiclens._validation import (
    Column,
    _check_group_count,
    _encode_label_column,
    _positive_label,
    check_aligned,
    encode_column,
    frame_columns,
    listing,
    sensitive_columns,
)
from sklearn_ethiclens.datasets._lots import (
    Rates,
    Stratum,
    choose,
    named_groups,
    plan_rates,
    strata_of,
    sum_over_chosen,
)
from sklearn_ethiclens.datasets._rows import (
    as_rows,
    cells,
    column_at,
    copied,
    gaps,
    n_columns,
    numbers,
    position_of,
    row_labels,
    take,
    with_column,
    written,
)
from sklearn_ethiclens.inference._resampling import as_seed

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_EXPECTED = ["group", "column", "quantity", "before", "after", "se"]
_CHANGES = ["position", "group", "column", "change", "before", "after"]


# ----------------------------------------------------------------------------------------------------------- interface
def inject(
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    kind: str = "label",
    rate: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    y_score: Any = None,
    pos_label: Any = None,
    exact: bool = False,
    random_state: Any = 0,
    **options: Any,
) -> Bunch:
    """Return the rows with a known bias put in, which of them changed, and the effect to expect.

    An audit of the result should find that effect: a tool that does not, or a mitigation that "repairs" data nobody
    touched, is wrong. The bias comes on top of whatever the rows hold already.

    Parameters
    ----------
    X : frame or array of shape (n_rows, n_features)
        pandas, polars, pyarrow or numpy; also scipy sparse, where no column of it is written. Never modified.
    y : array-like of shape (n_rows,), optional
        Labels. Needed by ``kind="label"`` and by rates by label.
    sensitive_features : str, int or array-like of shape (n_rows,)
        The group of each row: the name or position of a column of X, or the values. Rows without a value are the group
        ``MISSING``; None, NaN and pandas.NA name it.
    kind : {"label", "selection", "measurement", "proxy", "score"}, default="label"
        * ``"label"`` flips labels. Option ``direction``: ``"to_negative"`` (default), ``"to_positive"`` or ``"both"``;
          ``neg_label``, the label to flip to where it does not occur.
        * ``"selection"`` removes rows.
        * ``"measurement"`` changes columns of X: ``columns`` (a name or position, or a list of them) and just one of
          ``noise`` (the standard deviation of normal noise, in standard deviations of the column), ``shift`` (an
          amount), ``scale`` (a factor) and ``missing=True`` (completely at random within the group). Missing values stay
          missing. Columns change independently of each other.
        * ``"proxy"`` makes membership of ``group`` (one group, or several as one) readable from a column. Options
          ``strength``, the correlation with membership, in (-1, 1), and ``column``. A new name (default ``"proxy"``;
          an array gets a last column) adds a normal column; a column of X is strengthened by moving the members by a
          constant, to just that correlation. Takes no ``rate``.
        * ``"score"`` shifts ``y_score``. Options ``shift``; ``link``: ``"logit"`` (default; scores stay within [0, 1],
          and 0 and 1 stay what they are) or ``"identity"``; ``threshold`` (default .5): selected is
          ``y_score >= threshold``.
    rate : float or mapping, optional
        The probability that an eligible row changes, in [0, 1]; with a mapping, by group, or (label, selection) by
        label. 0 changes nothing, 1 every eligible row. Measurement and score have the default 1.
    group : label, list of labels or mapping, optional
        Whose rows may change; None is everybody, so that a rate is then noise and no disparity. A mapping of group to rate,
        or to ``{label: rate}``, says both.
    sample_weight : array-like of shape (n_rows,), optional
        Kept in step with the rows. Shares, means and their standard errors in ``expected`` are then weighted.
    y_score : array-like of shape (n_rows,), optional
        Scores; shifted by ``kind="score"``, otherwise kept in step.
    pos_label : label, optional
        The positive label, where y is not 0/1, -1/1 or boolean.
    exact : bool, default=False
        False: each row changes by its own lot, with probability ``rate``. True: just ``round(rate * n)`` rows of each
        group (and label, where rates are by label) do. For a new proxy: the correlation is exact in these rows.
    random_state : int, RandomState, Generator or None, default=0
        The same integer changes the same rows, whatever the container. A lower rate changes a part of those rows.
    **options
        Those of the kind, as above.

    Returns
    -------
    bunch : Bunch
        * ``X``, ``y``, ``sensitive_features``, ``sample_weight``, ``y_score``: as they came (lists as arrays), index and
          types kept. ``sensitive_features`` are the true groups, also where a measurement changed that column.
        * ``kept``: ndarray, the positions of the rows that remain, to bring along whatever else there is of them.
        * ``changed``: Index, the labels of the rows that changed or were removed; positions, for arrays.
        * ``changes``: DataFrame, one row a changed cell or removed row, indexed by its label: position, group, column,
          change, before, after.
        * ``expected``: DataFrame, one row a group and quantity: the value ``before`` in these rows, the expected value
          ``after``, and ``se``, the standard deviation of the realised value over injections into the *same* rows.
          Ratios (whatever is a share or mean of rows that remain) and variances are first-order (delta method) values.
          NaN: undefined, or (``se`` of an exact proxy's AUC) no closed form.
        * ``kind``.

    Raises
    ------
    ValueError
        For an unknown group, label, column or option value, a column that cannot hold its new values, or if no row
        would remain.
    TypeError
        For an option of another kind, or a container that cannot be written.

    Notes
    -----
    In a group with base rate p, flipping positives with rate r gives the base rate ``p (1 - r)`` with variance
    ``p r (1 - r) / n``, and flipping both ways gives ``p (1 - r1) + (1 - p) r0``. Thinning with rate r keeps 1 - r of the
    group; it leaves its base rate alone unless rates differ by label. A proxy of strength c, for a share q of members,
    separates them with AUC ``Phi(c / sqrt(2 q (1 - q) (1 - c**2)))``.

    References
    ----------
    Mehrabi, N. et al. (2021). A survey on bias and fairness in machine learning. ACM Computing Surveys 54(6), for the
    kinds. Cochran, W. G. (1977). Sampling Techniques, 3rd ed., for the variances.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_ethiclens.datasets import inject
    >>> X = pd.DataFrame({"sex": ["f", "m", "f", "m"], "income": [1, 2, 3, 4]}, index=[40, 11, 7, 29])
    >>> y = pd.Series([1, 1, 0, 0], index=X.index, name="granted")
    >>> biased = inject(X, y, sensitive_features="sex", kind="label", group="f", rate=1.0)
    >>> biased.y.to_dict()
    {40: 0, 11: 1, 7: 0, 29: 0}
    >>> biased.changed.to_list()
    [40]

    Half of the women who were granted are expected to be left so with rate .5:

    >>> half = inject(X, y, sensitive_features="sex", kind="label", group="f", rate=0.5)
    >>> half.expected.query("quantity == 'base_rate'")[["group", "before", "after"]].to_dict("list")
    {'group': ['f', 'm'], 'before': [0.5, 0.5], 'after': [0.25, 0.5]}
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {list(_KINDS)}; got {kind!r}.")
    apply, names = _KINDS[kind]
    unknown = [name for name in options if name not in names]
    if unknown:
        raise TypeError(f"kind={kind!r} takes the options {sorted(names)}; got {unknown}.")
    rows = _read(X, y, sensitive_features, sample_weight, y_score, pos_label)
    if not isinstance(exact, bool | np.bool_):
        raise TypeError(f"exact must be True or False; got {exact!r}.")
    draw = _Draw(rate, group, bool(exact), np.random.default_rng(as_seed(random_state)))
    done = apply(rows, draw, **options)
    keep = done.kept
    parts = {"X": rows.X, "y": rows.y, "sample_weight": rows.raw_weight, "y_score": rows.y_score} | done.parts
    parts["sensitive_features"] = rows.sensitive
    if keep is None:
        parts = {name: copied(part) for name, part in parts.items()}
    else:
        parts = {name: None if part is None else take(part, keep) for name, part in parts.items()}
    changes = _frame_of_changes(done.changes, rows)
    return Bunch(
        **parts,
        kept=np.arange(rows.n) if keep is None else keep,
        changed=rows.index[np.unique(changes["position"])],
        changes=changes,
        expected=pd.DataFrame(done.expected, columns=_EXPECTED),
        kind=kind,
    )


def resample(X: Any, y: Any, injection: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return X and y after an injection, as the step ``fit_resample(X, y)`` of an imbalanced-learn pipeline does.

    Whatever holds the parameters keeps them as one dict, so that it can be set and cloned::

        class Step(BaseEstimator):
            def __init__(self, injection=None):
                self.injection = injection
            def fit_resample(self, X, y):
                return resample(X, y, self.injection)

    Parameters
    ----------
    X : frame or array of shape (n_rows, n_features)
        The features.
    y : array-like of shape (n_rows,)
        Labels.
    injection : mapping
        Keywords of :func:`inject`, such as ``{"sensitive_features": "sex", "kind": "selection", "group": "f", "rate": .5}``.
        ``sensitive_features`` names a column of X (or its position), since a pipeline hands on nothing else that is
        aligned with the rows of a fold.

    Returns
    -------
    X_resampled, y_resampled
        As they came, fewer of them after ``kind="selection"``.

    Raises
    ------
    TypeError
        If ``injection`` is no mapping, or has what belongs to rows (y_score, sample_weight, values of groups).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ethiclens.datasets import resample
    >>> X, y = np.array([[0.0, 5], [1, 6], [1, 7]]), np.array([0, 1, 1])
    >>> resample(X, y, {"sensitive_features": 0, "kind": "selection", "group": 1, "rate": 1.0})
    (array([[0., 5.]]), array([0]))
    """
    if not isinstance(injection, Mapping):
        raise TypeError(f"injection must be a mapping of keywords of inject; got {injection!r}.")
    of_rows = sorted({"X", "y", "y_score", "sample_weight"} & set(injection))
    if of_rows:
        raise TypeError(f"injection has {of_rows}, which belong to rows: a pipeline hands on X and y only. Use inject.")
    column = injection.get("sensitive_features")
    if isinstance(column, bool) or not isinstance(column, str | int | np.integer):
        raise TypeError(
            f"injection['sensitive_features'] must be the name or the position of a column of X, so that it can be found in "
            f"every fold; got {type(column).__name__}."
        )
    biased = inject(X, y, **injection)
    return biased.X, biased.y


def normal_score_shift(shift: float, *, selection_rate: float, share: float) -> Bunch:
    """Return what a shift of normal scores does to selection by one cutoff: the closed form behind ``kind="score"``.

    Scores are N(0, 1), those of the shifted group N(shift, 1); the highest are selected, by one cutoff for all (De Corte
    and Lievens 2003). Scores whose logit is normal with standard deviation s are the same case, with shift / s.

    Parameters
    ----------
    shift : float
        In standard deviations; negative lowers the group's scores.
    selection_rate : float
        Share selected of all, in (0, 1).
    share : float
        Share of the shifted group among all, in (0, 1).

    Returns
    -------
    bunch : Bunch
        ``cutoff``, ``selection_rate`` (of the shifted group), ``selection_rate_reference`` (of the others), and their
        ``disparate_impact`` and ``statistical_parity_difference``, shifted against others.

    Raises
    ------
    ValueError
        If the shift is not finite, or a share is not strictly between 0 and 1.

    References
    ----------
    De Corte, W. and Lievens, F. (2003). A practical procedure to estimate the quality and the adverse impact of
    single-stage selection decisions. International Journal of Selection and Assessment 11(1).

    Examples
    --------
    >>> from sklearn_ethiclens.datasets import normal_score_shift
    >>> effect = normal_score_shift(-0.15, selection_rate=0.25, share=0.3)
    >>> print(f"{effect.cutoff:.4f} {effect.disparate_impact:.4f}")
    0.6311 0.8234
    """
    if not np.isfinite(shift):
        raise ValueError(f"shift must be finite; got {shift!r}.")
    for name, value in (("selection_rate", selection_rate), ("share", share)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")

    # The smaller of the two shares, selected or not, is the one that is known to full precision.
    sign, tail = (-1, selection_rate) if selection_rate <= 0.5 else (1, 1 - selection_rate)

    def excess(cutoff: float) -> float:
        return float(share * ndtr(sign * (cutoff - shift)) + (1 - share) * ndtr(sign * cutoff)) / tail - 1

    # All unshifted, or all shifted, would need one of these two; the mixture's cutoff lies between them.
    alone = sign * float(ndtri(tail))
    low, high = sorted((alone, alone + shift))
    cutoff = float(brentq(excess, low - 1e-6, high + 1e-6, xtol=1e-13))
    shifted, others = float(ndtr(shift - cutoff)), float(ndtr(-cutoff))
    return Bunch(
        cutoff=cutoff,
        selection_rate=shifted,
        selection_rate_reference=others,
        disparate_impact=shifted / others if others > 0 else float("nan"),
        statistical_parity_difference=shifted - others,
    )


# ------------------------------------------------------------------------------------------------------------- reading
@dataclass(frozen=True)
class _Rows:
    """The rows as they came, and read: groups, labels and weights, by position."""

    X: Any
    y: Any
    sensitive: Any
    raw_weight: Any
    y_score: Any
    pos_label: Any
    n: int
    groups: Column
    labels: Column | None
    weight: Floats
    index: pd.Index

    @property
    def group_masks(self) -> dict[Any, Mask]:
        return {group: self.groups.codes == self.groups.levels.index(group) for group in self.groups.occurring}

    def positive(self) -> Mask | None:
        """Return which labels are positive; None where that is not beyond doubt and was not said."""
        if self.labels is None:
            return None
        found = self.labels.occurring
        plain = any(all(isinstance(v, bool | int | float) and v in pair for v in found) for pair in ((0, 1), (-1, 1)))
        if self.pos_label is None and not plain:
            return None
        label = _positive_label(list(found), self.pos_label, "y")
        return np.array([level == label for level in self.labels.levels])[self.labels.codes]


@dataclass(frozen=True)
class _Draw:
    """Whom to change, and chance."""

    rate: Any
    group: Any
    exact: bool
    rng: np.random.Generator

    def plan(self, rows: _Rows, *, by_label: bool = False, default: float | None = None) -> Rates:
        labels = rows.labels.occurring if by_label and rows.labels is not None else None
        return plan_rates(self.rate, self.group, rows.groups.occurring, labels, default)

    def choose(self, strata: list[Stratum], n_rows: int) -> Mask:
        return choose(strata, n_rows, self.exact, self.rng)


@dataclass(frozen=True)
class _Done:
    """What an injection did: the parts it replaced, the rows it kept (None: all), its changes, and what to expect."""

    parts: dict[str, Any]
    changes: list[tuple[NDArray[np.intp], str, str, list[Any], list[Any]]]
    expected: list[tuple[Any, str, str, float, float, float]]
    kept: NDArray[np.intp] | None = None


def _read(X: Any, y: Any, sensitive: Any, weight: Any, y_score: Any, pos_label: Any) -> _Rows:
    if X is None:
        raise ValueError("X is missing: the rows to put a bias into.")
    X, y, weight, y_score = (
        as_rows(part, name) for part, name in ((X, "X"), (y, "y"), (weight, "sample_weight"), (y_score, "y_score"))
    )
    if isinstance(sensitive, str | int | np.integer) and not isinstance(sensitive, bool):
        j = position_of(sensitive, X, "sensitive_features")
        name, sensitive = str(sensitive), copied(column_at(X, j))
    else:
        names = frame_columns(X) or []
        listed = isinstance(sensitive, list | tuple) and all(
            isinstance(name, str) and name in names for name in sensitive
        )
        if listed and sensitive and len(sensitive) != len(cast(Any, X)):
            raise ValueError(
                f"sensitive_features must be the name of one column, or its values; got the names {listing(list(sensitive))}. "
                f"Pass one name, or for groups of several columns their values joined."
            )
        if isinstance(sensitive, tuple) and sensitive in names:
            raise ValueError(
                f"sensitive_features={sensitive!r} is a name of several levels: pass its values, X[{sensitive!r}]."
            )
        columns = sensitive_columns(sensitive)
        if len(columns) > 1:
            raise ValueError(
                f"sensitive_features has the columns {listing(list(columns))}; a bias is put into groups of one. Join them, "
                f"for example sex + ' & ' + race."
            )
        name, sensitive = next(iter(columns)), as_rows(sensitive, "sensitive_features")
        if isinstance(sensitive, Mapping):
            sensitive = as_rows(columns[name], "sensitive_features")
    aligned = {"X": range(cast(Any, X).shape[0]) if issparse(X) else X, "y": y, "sensitive_features": sensitive}
    n = check_aligned(aligned | {"sample_weight": weight, "y_score": y_score})
    said = f"sensitive feature {name!r}"
    groups = encode_column(sensitive, said)
    _check_group_count(said, groups.occurring)
    for part, argument in ((weight, "sample_weight"), (y_score, "y_score")):
        if part is not None and n_columns(part) > 1:
            raise ValueError(
                f"{argument} must be one column; it has {n_columns(part)}. Of predict_proba, pass the one of pos_label."
            )
    weights = np.ones(n) if weight is None else numbers(weight, 0, "sample_weight")
    if not (weights >= 0).all() or not weights.any():
        raise ValueError("sample_weight must hold numbers of 0 and more, not all of them 0; none may be missing.")
    labels = None if y is None else _labels(y)
    return _Rows(X, y, sensitive, weight, y_score, pos_label, n, groups, labels, weights, row_labels(X, y, sensitive))


def _labels(y: Any) -> Column | None:
    """Return the labels as codes; None for numbers that are no labels (a regression target passes through)."""
    column = encode_column(y, "y")
    if any(isinstance(level, float) and not level.is_integer() for level in column.levels):
        return None
    return _encode_label_column(y, "y")


def _frame_of_changes(changes: list[Any], rows: _Rows) -> pd.DataFrame:
    at = np.concatenate([np.asarray(position, dtype=np.intp) for position, *_ in changes] or [np.empty(0, np.intp)])
    table: dict[str, Any] = {"position": at, "group": pd.Series([rows.groups.levels[c] for c in rows.groups.codes[at]])}
    table["column"] = [column for position, column, *_ in changes for _ in position]
    table["change"] = [word for position, _, word, *_ in changes for _ in position]
    for i, name in ((3, "before"), (4, "after")):
        table[name] = pd.Series([value for change in changes for value in change[i]], dtype=object)
    table["group"] = table["group"].astype(object)
    frame = pd.DataFrame(table, columns=_CHANGES)
    frame.index = rows.index[at]
    return frame


# --------------------------------------------------------------------------------------------------------------- label
def _label_bias(rows: _Rows, draw: _Draw, *, direction: str | None = None, neg_label: Any = None) -> _Done:
    if rows.labels is None:
        raise ValueError("kind='label' needs y: labels, one per row.")
    found = list(rows.labels.occurring)
    if len(found) > 2:
        raise ValueError(
            f"kind='label' flips two labels; y holds {len(found)}: {listing(found)}. Make it binary first."
        )
    positive_label = _positive_label(found, rows.pos_label, "y")
    positive = np.array([level == positive_label for level in rows.labels.levels])[rows.labels.codes]
    plan = draw.plan(rows, by_label=True)
    by_label = any(isinstance(rate, Mapping) for rate in plan.values())
    if by_label and direction is not None:
        raise ValueError(f"the rates by label say the direction already; leave direction={direction!r} out.")
    directions = {"to_negative": positive, "to_positive": ~positive, "both": np.ones(rows.n, dtype=bool)}
    direction = direction or "to_negative"
    if direction not in directions:
        raise ValueError(f"direction must be one of {list(directions)}; got {direction!r}.")
    if by_label and not all(isinstance(rate, Mapping) for rate in plan.values()):
        raise ValueError("group must map every group to a rate, or every group to rates by label; got both.")
    eligible = directions["both"] if by_label else directions[direction]
    strata = strata_of(plan, rows.groups, eligible, rows.labels)
    at = np.flatnonzero(draw.choose(strata, rows.n))
    new = np.empty(at.size, dtype=object)
    if at.size:
        negative_label = _negative_label(rows, found, positive_label, neg_label) if positive[at].any() else None
        new[:] = [negative_label if flip else positive_label for flip in positive[at]]
    name = str(getattr(rows.y, "name", None) or "y")
    y = written(rows.y, at, new, "y")
    before, after = cells(rows.y, at), cells(y, at)
    value = positive.astype(float)
    expected = _expected_means(rows, strata, draw.exact, "y", {"base_rate": (value, 1 - value)})
    changes = [(at, name, "flipped", before, after)]
    return _Done({"y": y}, changes, _n_changed(rows, strata, draw.exact) + expected)


def _negative_label(rows: _Rows, found: list[Any], positive_label: Any, given: Any) -> Any:
    """Return the label a positive one is flipped to: the other one that occurs, or that the column's type has."""
    others = [label for label in found if label != positive_label]
    if others:
        return others[0]
    if given is not None:
        return given
    declared = getattr(getattr(rows.y, "dtype", None), "categories", None)
    levels = (
        [False, True]
        if isinstance(positive_label, bool)
        else list(declared)
        if declared is not None
        else [0, 1]
        if positive_label == -1
        else []
    )
    others = [label for label in levels if label != positive_label]
    if len(others) != 1:
        raise ValueError(f"y holds the label {positive_label!r} only; pass neg_label to say what it is flipped to.")
    return others[0]


def _n_changed(rows: _Rows, strata: list[Stratum], exact: bool, column: str = "rows") -> list[Any]:
    """Return how many rows of each group change: a count, unweighted."""
    expected = []
    for group, mask in rows.group_masks.items():
        mean, variance = sum_over_chosen(strata, mask.astype(float), exact)
        expected.append((group, column, "n_changed", 0.0, mean, np.sqrt(variance)))
    return expected


def _expected_means(
    rows: _Rows, strata: list[Stratum], exact: bool, column: str, quantities: Mapping[str, tuple[Floats, Floats]]
) -> list[Any]:
    """Return weighted means by group before and after chosen rows take a new value; nothing is lost, nothing random."""
    expected = []
    for group, mask in rows.group_masks.items():
        share = np.where(mask, rows.weight, 0.0)
        total = share.sum()
        for quantity, (old, new) in quantities.items():
            before = _ratio(float(share @ old), total)
            moved, variance = sum_over_chosen(strata, share * (new - old), exact)
            after = before + _ratio(moved, total)
            expected.append((group, column, quantity, before, after, _ratio(np.sqrt(variance), total)))
    return expected


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator > 0 else float("nan")


# ----------------------------------------------------------------------------------------------------------- selection
def _selection_bias(rows: _Rows, draw: _Draw) -> _Done:
    strata = strata_of(draw.plan(rows, by_label=True), rows.groups, np.ones(rows.n, dtype=bool), rows.labels)
    gone = draw.choose(strata, rows.n)
    if gone.all():
        raise ValueError(f"all {rows.n} rows would be removed; lower rate, or name the groups that lose rows.")
    at = np.flatnonzero(gone)
    nothing = [None] * at.size
    expected = _n_changed(rows, strata, draw.exact)
    everybody = np.ones(rows.n, dtype=bool)
    positive = rows.positive()
    for group, mask in rows.group_masks.items():
        inside = mask.astype(float)
        lost, variance = sum_over_chosen(strata, rows.weight * inside, draw.exact)
        total = float(rows.weight @ inside)
        kept = (1 - _ratio(lost, total), _ratio(np.sqrt(variance), total))
        expected.append((group, "rows", "kept_share", 1.0, *kept))
        expected.append((group, "rows", "group_share", *_remaining(rows, strata, draw.exact, everybody, inside)))
        if positive is not None:
            rate = _remaining(rows, strata, draw.exact, mask, positive.astype(float))
            expected.append((group, "y", "base_rate", *rate))
    return _Done({}, [(at, "rows", "removed", nothing, nothing)], expected, kept=np.flatnonzero(~gone))


def _remaining(rows: _Rows, strata: list[Stratum], exact: bool, mask: Mask, values: Floats) -> tuple[float, ...]:
    """Return the weighted mean before and after the loss of rows, and its standard error: a linearised ratio."""
    weight = np.where(mask, rows.weight, 0.0)
    before = _ratio(float(weight @ values), float(weight.sum()))
    total = float(weight.sum()) - sum_over_chosen(strata, weight, exact)[0]
    if total <= 1e-12 * weight.sum():
        return before, float("nan"), float("nan")
    after = (float(weight @ values) - sum_over_chosen(strata, weight * values, exact)[0]) / total
    variance = sum_over_chosen(strata, weight * (values - after), exact)[1]
    return before, after, float(np.sqrt(variance)) / total


# --------------------------------------------------------------------------------------------------------- measurement
def _measurement_bias(
    rows: _Rows,
    draw: _Draw,
    *,
    columns: Any = None,
    noise: Any = None,
    shift: Any = None,
    scale: Any = None,
    missing: Any = None,
) -> _Done:
    if missing is not None and not isinstance(missing, bool):
        raise ValueError(f"missing must be True or False; got {missing!r}. The share of missing values is rate.")
    given = {name: value for name, value in (("noise", noise), ("shift", shift), ("scale", scale)) if value is not None}
    if len(given) + bool(missing) != 1:
        said = [*given, *(["missing"] if missing else [])]
        raise ValueError(f"kind='measurement' takes just one of noise, shift, scale and missing; got {said or 'none'}.")
    effect, size = next(iter(given.items()), ("missing", 0.0))
    size = _finite(size, effect)
    if effect == "noise" and size < 0:
        raise ValueError(f"noise is a standard deviation, 0 or more; got {size!r}.")
    if columns is None:
        raise ValueError("kind='measurement' needs columns: the name or position of what is mismeasured, or a list.")
    listed = columns if isinstance(columns, list | tuple) else [columns]
    at = [position_of(column, rows.X, "columns") for column in listed]
    if not at or len(set(at)) < len(at):
        raise ValueError(f"columns must name at least one column of X, each once; got {listed!r}.")
    plan = draw.plan(rows, default=1.0)
    X, changes, expected = rows.X, [], []
    names = frame_columns(rows.X)
    for j in at:
        name = str(j if names is None else names[j])
        X, change, effects = _mismeasure(rows, draw, plan, X, j, name, effect, size)
        changes.append(change)
        expected += effects
    return _Done({"X": X}, changes, expected)


def _mismeasure(
    rows: _Rows, draw: _Draw, plan: Rates, X: Any, j: int, name: str, effect: str, size: float
) -> tuple[Any, Any, list[Any]]:
    """Return X with one column changed, its changes, and the effects to expect."""
    said = f"column {name!r}"
    present = ~gaps(X, j)
    strata = strata_of(plan, rows.groups, present)
    idle = (effect, size) in (("noise", 0.0), ("shift", 0.0), ("scale", 1.0))
    chosen = np.zeros(rows.n, dtype=bool) if idle else draw.choose(strata, rows.n)
    at = np.flatnonzero(chosen)
    if effect == "missing":
        new_X = written(X, at, None, said, j)
        change = (at, name, "made missing", cells(X, at, j), cells(new_X, at, j))
        expected = _n_changed(rows, strata, draw.exact, name)
        return (
            new_X,
            change,
            expected + _expected_missing(rows, strata, draw.exact, name, _numbers_or_none(X, j), present),
        )
    old = numbers(X, j, said)
    spread = float(np.nanstd(old)) if present.any() else 0.0
    new = {"noise": old, "shift": old + size, "scale": old * size}[effect]
    sd = spread * size if effect == "noise" else 0.0
    realised = new + sd * draw.rng.standard_normal(rows.n) if effect == "noise" else new
    new_X = written(X, at, realised[at], said, j)
    word = {"noise": "noise added", "shift": "shifted", "scale": "scaled"}[effect]
    moved = chosen & (numbers(new_X, j, said) != old)  # 0 scaled is 0
    at = np.flatnonzero(moved)
    change = (at, name, word, cells(X, at, j), cells(new_X, at, j))
    return new_X, change, _expected_moments(rows, strata, draw.exact, name, old, new, sd)


def _numbers_or_none(X: Any, j: int) -> Floats | None:
    """Return a column's numbers, None where it holds none: text can be missing, but has no mean."""
    column = encode_column(column_at(X, j), "column")
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in column.occurring[:2])
    try:
        return numbers(X, j, "column") if numeric else None
    except TypeError:
        return None


def _expected_missing(
    rows: _Rows, strata: list[Stratum], exact: bool, name: str, values: Floats | None, present: Mask
) -> list[Any]:
    absent = (~present).astype(float)
    expected = _expected_means(rows, strata, exact, name, {"missing_share": (absent, np.ones(rows.n))})
    if values is None:
        return expected
    known = np.where(present, values, 0.0)
    for group, mask in rows.group_masks.items():
        mean = _remaining(rows, strata, exact, mask & present, known)
        expected.append((group, name, "mean", *mean))
        variance = _remaining(rows, strata, exact, mask & present, (known - mean[0]) ** 2)
        # The variance about the realised mean is smaller by the variance of that mean.
        expected.append((group, name, "variance", variance[0], variance[1] - mean[2] ** 2, variance[2]))
    return expected


def _expected_moments(
    rows: _Rows, strata: list[Stratum], exact: bool, name: str, old: Floats, new: Floats, sd: float
) -> list[Any]:
    """Return mean and variance (ddof=0) by group where chosen rows become ``new`` plus normal noise of that sd."""
    expected = []
    present = ~np.isnan(old)
    x, moved = np.where(present, old, 0.0), np.where(present, new, 0.0)
    for group, mask in rows.group_masks.items():
        weight = np.where(mask & present, rows.weight, 0.0)
        total = float(weight.sum())
        share = weight / total if total > 0 else np.full(rows.n, np.nan)
        before = float(share @ x)
        step, variance = sum_over_chosen(strata, share * (moved - x), exact, (share * sd) ** 2)
        after = before + step
        expected.append((group, name, "mean", before, after, np.sqrt(variance)))
        # E mean(x'^2) about the expected mean, less the variance of the mean: exact. Its error is first-order.
        around, noisy = (x - after) ** 2, (moved - after) ** 2 + sd**2
        wobble = share**2 * (4 * (moved - after) ** 2 * sd**2 + 2 * sd**4)
        gain, error = sum_over_chosen(strata, share * (noisy - around), exact, wobble)
        spread = float(share @ around) + gain - variance
        expected.append((group, name, "variance", float(share @ (x - before) ** 2), spread, np.sqrt(error)))
    return expected


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return float(value)


# --------------------------------------------------------------------------------------------------------------- proxy
def _proxy_bias(rows: _Rows, draw: _Draw, *, strength: Any = None, column: Any = None) -> _Done:
    if draw.rate is not None:
        raise ValueError(
            f"kind='proxy' takes strength, the correlation with membership, and no rate; got rate={draw.rate!r}."
        )
    if strength is None or not -1 < _finite(strength, "strength") < 1:
        raise ValueError(f"strength must be a correlation strictly between -1 and 1; got {strength!r}.")
    strength = float(strength)
    if draw.group is None or isinstance(draw.group, Mapping):
        raise ValueError(f"kind='proxy' needs group: the label, or list of labels, it tells; got {draw.group!r}.")
    members = named_groups(draw.group, rows.groups.occurring)
    inside = np.isin(rows.groups.codes, [rows.groups.levels.index(member) for member in members])
    who = members[0] if len(members) == 1 else tuple(members)
    names = frame_columns(rows.X)
    new_name = column is None or (isinstance(column, str) and names is not None and column not in names)
    if new_name:
        return _new_proxy(rows, draw, strength, "proxy" if column is None else column, inside, who)
    return _stronger_proxy(rows, draw, strength, position_of(column, rows.X, "column"), inside, who)


def _standardised(inside: Mask, who: Any) -> Floats:
    share = inside.mean()
    if share in (0, 1):
        raise ValueError(f"every row belongs to {who!r}, so that there is no membership to tell.")
    return np.asarray((inside - share) / np.sqrt(share * (1 - share)))


def _new_proxy(rows: _Rows, draw: _Draw, strength: float, name: str, inside: Mask, who: Any) -> _Done:
    names = frame_columns(rows.X)
    if names is not None and name in names:
        raise ValueError(f"X has a column {name!r} already; pass column={name!r} to strengthen it, or another name.")
    member = _standardised(inside, who)
    rest = draw.rng.standard_normal(rows.n)
    if draw.exact:
        rest -= rest.mean() + member * (rest @ member) / rows.n
        spread = rest.std()
        if spread < 1e-9:
            raise ValueError(f"an exact correlation needs more rows than {rows.n}.")
        rest /= spread
    values = strength * member + np.sqrt(1 - strength**2) * rest
    n_inside, n_outside = int(inside.sum()), int((~inside).sum())
    q = inside.mean()
    h = strength / np.sqrt(2 * q * (1 - q) * (1 - strength**2))
    auc = float(ndtr(h))
    # P(two members both above an outsider), of the bivariate normal with correlation 1/2 (Owen 1956).
    both = auc - 2 * float(owens_t(h, 1 / np.sqrt(3)))
    variance = auc * (1 - auc) + (n_inside + n_outside - 2) * (both - auc**2)
    auc_se = float("nan") if draw.exact else float(np.sqrt(variance / (n_inside * n_outside)))
    error = 0.0 if draw.exact else (1 - strength**2) * np.sqrt((1 - strength**2 / 2) / rows.n)
    nan = float("nan")
    label = name if names is not None else str(rows.X.shape[1])
    expected = [
        (who, label, "correlation", nan, strength, error),
        (who, label, "auc", nan, auc, auc_se),
    ]
    return _Done({"X": with_column(rows.X, name, values)}, [], expected)


def _stronger_proxy(rows: _Rows, draw: _Draw, strength: float, j: int, inside: Mask, who: Any) -> _Done:
    """Move the members of a group by the one constant that makes the correlation what is asked for."""
    names = frame_columns(rows.X)
    name = str(j if names is None else names[j])
    said = f"column {name!r}"
    old = numbers(rows.X, j, said)
    present = ~np.isnan(old)
    spread = float(old[present].std()) if present.any() else 0.0
    if spread == 0:
        raise ValueError(f"{said} is constant, so that no correlation can be set; add a new column instead.")
    member = _standardised(inside[present], who)
    now = float((old[present] - old[present].mean()) @ member) / (spread * present.sum())
    if 1 - now**2 < 1e-12:
        raise ValueError(f"{said} is a function of the membership of {who!r} already (correlation {now:.6f}).")
    # x = now z + e with e of variance 1 - now^2; with a z + e the correlation is a / sqrt(a^2 + 1 - now^2).
    wanted = strength * np.sqrt((1 - now**2) / (1 - strength**2))
    q = inside[present].mean()
    step = (wanted - now) * spread / np.sqrt(q * (1 - q))
    at = np.flatnonzero(inside & present) if abs(wanted - now) > 1e-15 else np.empty(0, dtype=np.intp)
    X = written(rows.X, at, old[at] + step, said, j)
    new = np.where(inside, old + step, old)
    expected = [(who, name, "correlation", now, strength, 0.0)]
    before, after = (_auc(values[present], inside[present]) for values in (old, new))
    expected.append((who, name, "auc", before, after, 0.0))
    return _Done({"X": X}, [(at, name, "shifted", cells(rows.X, at, j), cells(X, at, j))], expected)


def _auc(values: Floats, inside: Mask) -> float:
    n, m = int(inside.sum()), int((~inside).sum())
    return float((rankdata(values)[inside].sum() - n * (n + 1) / 2) / (n * m))


# --------------------------------------------------------------------------------------------------------------- score
def _score_bias(rows: _Rows, draw: _Draw, *, shift: Any = None, link: str = "logit", threshold: Any = 0.5) -> _Done:
    if rows.y_score is None:
        raise ValueError("kind='score' needs y_score: the scores to shift, one per row.")
    if shift is None:
        raise ValueError("kind='score' needs shift: the amount added to the scores, on the scale of link.")
    shift, threshold = _finite(shift, "shift"), _finite(threshold, "threshold")
    if link not in ("logit", "identity"):
        raise ValueError(f"link must be 'logit' or 'identity'; got {link!r}.")
    old = numbers(rows.y_score, 0, "y_score")
    if np.isnan(old).any():
        raise ValueError(f"y_score is missing in {int(np.isnan(old).sum())} of {rows.n} rows; drop these rows.")
    eligible = np.ones(rows.n, dtype=bool)
    if link == "logit":
        if ((old < 0) | (old > 1)).any():
            raise ValueError(
                f"y_score must lie in [0, 1] for link='logit'; it ranges from {old.min():.6g} to {old.max():.6g}. Pass "
                f"probabilities, or link='identity'."
            )
        eligible = (old > 0) & (old < 1)  # certainty has no finite logit, and stays
        new = np.where(eligible, expit(logit(np.where(eligible, old, 0.5)) + shift), old)
    else:
        new = old + shift
    everywhere = np.flatnonzero(eligible)
    new = numbers(written(rows.y_score, everywhere, new[everywhere], "y_score"), 0, "y_score")  # as its type rounds
    strata = strata_of(draw.plan(rows, default=1.0), rows.groups, eligible)
    at = np.flatnonzero(draw.choose(strata, rows.n)) if shift else np.empty(0, dtype=np.intp)
    y_score = written(rows.y_score, at, new[at], "y_score")
    at = at[numbers(y_score, 0, "y_score")[at] != old[at]]
    selected = (old >= threshold).astype(float), (new >= threshold).astype(float)
    quantities = {"mean": (old, new), "selection_rate": selected}
    expected = _expected_means(rows, strata, draw.exact, "y_score", quantities)
    change = (at, "y_score", "shifted", cells(rows.y_score, at), cells(y_score, at))
    return _Done({"y_score": y_score}, [change], expected)


_KINDS: Mapping[str, tuple[Callable[..., _Done], frozenset[str]]] = {
    "label": (_label_bias, frozenset({"direction", "neg_label"})),
    "selection": (_selection_bias, frozenset()),
    "measurement": (_measurement_bias, frozenset({"columns", "noise", "shift", "scale", "missing"})),
    "proxy": (_proxy_bias, frozenset({"strength", "column"})),
    "score": (_score_bias, frozenset({"shift", "link", "threshold"})),
}
