"""Which rows may change and at what rate; the rows that do; and the moments of a sum over them, in closed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._validation import MISSING, Column, as_scalar, listing, sort_labels
from sklearn_ethiclens.datasets._rows import Positions

Rates = dict[Any, Any]  # group -> rate, or group -> {label: rate}
Moments = tuple[float, float]  # mean and variance


class Stratum(NamedTuple):
    """Rows that change with one rate: each with that probability, or exactly that share of them."""

    rows: Positions
    rate: float


# --------------------------------------------------------------------------------------------------------------- rates
def plan_rates(
    rate: Any, group: Any, groups: tuple[Any, ...], labels: tuple[Any, ...] | None, default: float | None = None
) -> Rates:
    """Return the rate of each named group, or its rates by label.

    Parameters
    ----------
    rate : float, mapping of group to rate, or mapping of label to rate; or None
        None takes the default, or the rates that ``group`` maps to.
    group : label, list of labels, or mapping of label to rate (or to rates by label); or None
        None names all groups.
    groups, labels : tuple
        Those that occur. Without labels, there are no rates by label.
    default : float or None
        The rate where none is given; None refuses.
    """
    if isinstance(group, Mapping):
        if not group:
            raise ValueError("group is an empty mapping; name a group at least.")
        if rate is not None:
            raise ValueError("group maps groups to rates already; leave rate out, or name the groups as a list.")
        return {
            known(name, groups, "group"): _by_label(value, labels) if isinstance(value, Mapping) else as_rate(value)
            for name, value in group.items()
        }
    named = list(groups) if group is None else named_groups(group, groups)
    if rate is None:
        if default is None:
            raise ValueError("rate is missing: the share of the rows that change, between 0 and 1.")
        rate = default
    if not isinstance(rate, Mapping):
        return dict.fromkeys(named, as_rate(rate))
    keys = [as_label(key) for key in rate]
    of_groups = bool(keys) and all(key in groups for key in keys)
    of_labels = bool(keys) and labels is not None and all(key in labels for key in keys)
    if of_groups and of_labels:
        raise ValueError(
            f"the keys of rate, {listing(keys)}, are groups and labels at once. Say which: group={{group: rate}}, or "
            f"group={{group: {{label: rate}}}}."
        )
    if of_labels:
        by_label = _by_label(rate, labels)
        return dict.fromkeys(named, by_label)
    if of_groups:
        outside = [key for key in keys if key not in named]
        if outside:
            raise ValueError(f"rate has the groups {listing(outside)}, which group={listing(named)} leaves out.")
        return {key: as_rate(value) for key, value in zip(keys, rate.values(), strict=True)}
    also = "" if labels is None else f" or labels, {listing(list(labels))}"
    raise ValueError(f"the keys of rate must be groups, {listing(list(groups))}{also}; got {listing(keys)}.")


def as_rate(rate: Any) -> float:
    """Return a rate between 0 and 1, or refuse."""
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
        raise ValueError(f"rate must be a number between 0 and 1, or a mapping to such numbers; got {rate!r}.")
    return float(rate)


def named_groups(group: Any, groups: tuple[Any, ...]) -> list[Any]:
    """Return one group, or several, as a list in canonical order; refuse unknown ones."""
    several = isinstance(group, list | tuple | set | frozenset | np.ndarray | pd.Index | pd.Series)
    named = {known(one, groups, "group") for one in (group if several else [group])}
    if not named:
        raise ValueError(f"group is empty; name one of {listing(list(groups))}.")
    return sort_labels(list(named))


def known(value: Any, among: tuple[Any, ...], argument: str) -> Any:
    """Return a label as it occurs; None, NaN and pandas.NA name the missing bucket."""
    label = as_label(value)
    for one in among:
        if one is label or (one is not MISSING and label is not MISSING and one == label):
            return one
    raise ValueError(f"{argument} must be one of {listing(list(among))}; got {label!r}.")


def as_label(value: Any) -> Any:
    """Return a label as a plain scalar; None, NaN, NaT and pandas.NA are the missing bucket."""
    if value is None or value is MISSING or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return MISSING
    return as_scalar(value)


def _by_label(rates: Mapping[Any, Any], labels: tuple[Any, ...] | None) -> dict[Any, float]:
    if labels is None:
        raise ValueError(f"rates by label are for kind='label' and kind='selection', with y; got {dict(rates)!r}.")
    if not rates:
        raise ValueError(f"the rates by label are empty; name one of {listing(list(labels))}.")
    return {known(label, labels, "label"): as_rate(value) for label, value in rates.items()}


def strata_of(plan: Rates, groups: Column, eligible: NDArray[np.bool_], labels: Column | None = None) -> list[Stratum]:
    """Return the rows of each group (and label) that may change, with their rate."""
    found = []
    for group, rate in plan.items():
        in_group = eligible & (groups.codes == groups.levels.index(group))
        if not isinstance(rate, Mapping):
            found.append(Stratum(np.flatnonzero(in_group), rate))
        elif labels is not None:
            for label, one in rate.items():
                found.append(Stratum(np.flatnonzero(in_group & (labels.codes == labels.levels.index(label))), one))
    return found


# ---------------------------------------------------------------------------------------------------------------- rows
def choose(strata: Iterable[Stratum], n_rows: int, exact: bool, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows change.

    One uniform number a row decides, whatever the groups and rates: the rows of a lower rate are among those of a
    higher one, and an injection into one group does not move the draws of another.
    """
    lots = rng.random(n_rows)
    chosen = np.zeros(n_rows, dtype=bool)
    for rows, rate in strata:
        if exact:
            chosen[rows[np.argsort(lots[rows], kind="stable")[: n_exact(rate, rows.size)]]] = True
        else:
            chosen[rows[lots[rows] < rate]] = True
    return chosen


def n_exact(rate: float, n_rows: int) -> int:
    """Return the exact number of rows: ``rate * n_rows``, rounded, halves to even."""
    return round(round(rate * n_rows, 9))  # .35 * 30 is 10.499999999999998


def sum_over_chosen(
    strata: Iterable[Stratum], values: NDArray[np.float64], exact: bool, noise: NDArray[np.float64] | None = None
) -> Moments:
    """Return mean and variance of the sum of ``values`` over the rows that change.

    Parameters
    ----------
    strata : iterable of Stratum
        They do not overlap.
    values : ndarray of shape (n_rows,)
        What each row adds if it changes.
    exact : bool
        False: each row changes with the probability ``rate``, on its own, so that the variance is
        ``rate (1 - rate) sum(values**2)``. True: k of n rows, drawn without replacement (Cochran 1977, 2.5):
        ``k (n - k) / n * s**2`` with the sample variance ``s**2`` of the values.
    noise : ndarray of shape (n_rows,), optional
        The variance of what a row adds, where that is itself random.
    """
    mean = variance = 0.0
    for rows, rate in strata:
        n, given = rows.size, values[rows]
        if n == 0:
            continue
        share = n_exact(rate, n) / n if exact else rate
        mean += share * float(given.sum())
        spread = float(given.var(ddof=1)) * n if exact and n > 1 else 0.0 if exact else float((given**2).sum())
        variance += share * (1 - share) * spread
        if noise is not None:
            variance += share * float(noise[rows].sum())
    return mean, variance
