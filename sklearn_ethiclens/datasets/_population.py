"""A specification -> a population table: which groups there are, who is positive, who is selected; or why it cannot be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, isinf, sqrt
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from sklearn_ethiclens._validation import check_apart, listing, show, sort_labels
from sklearn_ethiclens.datasets._lots import as_label

Floats = NDArray[np.float64]
Group = tuple[Any, ...]

OUTCOMES = ("favorable", "adverse")
DEFAULT_RATE = 0.5  # of positives, and of selections of the reference, where nothing says otherwise
_ROUNDING = 1e-12  # a solved rate this near 0 or 1 is 0 or 1: what is 0/0 must not become a quotient of rounding errors
_AGREES = 1e-9  # two ways to state one number agree


@dataclass(frozen=True, eq=False)
class Population:
    """A table of probabilities by group, true label and decision, with the score that goes with it.

    Parameters
    ----------
    attributes : tuple of str
        Names of the sensitive features.
    groups : tuple of tuple
        One value per attribute, in canonical order (type name, then value).
    shares : ndarray of shape (n_groups,)
        Share of each group; they add up to 1.
    cells : ndarray of shape (n_groups, 2, 2) or (n_groups, 1, 2)
        Probabilities by (y_true, y_pred) within the group; the middle axis has length 1 where there are no labels.
    rates : mapping of str to ndarray of shape (n_groups,)
        ``base_rate``, ``true_positive_rate``, ``false_positive_rate``, as stated or solved; NaN where undefined.
    auc, shift, slope : ndarray of shape (n_groups,)
        The score of each group: its area under the ROC curve, what is added to its log-odds, and what divides them.
    anchor : int
        The group that others were made relative to.
    fixed_reference : bool
        Whether comparisons are with the anchor; else with the group that does best.
    outcome : {"favorable", "adverse"}
        What a positive decision means for a person.
    """

    attributes: tuple[str, ...]
    groups: tuple[Group, ...]
    shares: Floats
    cells: Floats
    rates: Mapping[str, Floats]
    auc: Floats
    shift: Floats
    slope: Floats
    anchor: int
    fixed_reference: bool
    outcome: str

    @property
    def labelled(self) -> bool:
        """Whether there are true labels."""
        return self.cells.shape[1] == 2

    @property
    def joint(self) -> Floats:
        """Probability of each cell over the whole population, of the shape of ``cells``."""
        return self.shares[:, None, None] * self.cells

    @property
    def separation(self) -> Floats:
        """How far apart the scores of positives and negatives are, in standard deviations, by group."""
        return np.asarray(sqrt(2.0) * ndtri(self.auc))

    def position(self, group: Any) -> int:
        """Return the place of a group: a label, or a tuple of one value per attribute."""
        return self.groups.index(_as_group(group, self.groups, len(self.attributes), "group"))

    def frame(self) -> pd.DataFrame:
        """Return one row a group: its values, share, rates and probabilities (of the group) of tp, fp, fn, tn."""
        data: dict[str, Any] = {"share": self.shares, "selection_rate": self.cells[:, :, 1].sum(1)}
        if self.labelled:
            data |= self.rates
            data |= {"auc": self.auc, "calibration_shift": self.shift, "calibration_slope": self.slope}
            data |= {"tp": self.cells[:, 1, 1], "fp": self.cells[:, 0, 1]}
            data |= {"fn": self.cells[:, 1, 0], "tn": self.cells[:, 0, 0]}
        check_apart(self.attributes, data, "the population table")
        groups = {name: pd.Series([group[i] for group in self.groups]) for i, name in enumerate(self.attributes)}
        return pd.DataFrame(groups | data)


def make_population(
    groups: Any,
    *,
    attribute: Any = None,
    base_rate: Any = None,
    true_positive_rate: Any = None,
    false_positive_rate: Any = None,
    selection_rate: Any = None,
    disparate_impact: Any = None,
    equalized_odds_difference: Any = None,
    reference: Any = None,
    auc: Any = 0.8,
    calibration_shift: Any = 0.0,
    calibration_slope: Any = 1.0,
    outcome: str = "favorable",
    labelled: bool = True,
) -> Population:
    """Return the population that a specification describes; the parameters are those of ``BiasInjector``.

    Raises
    ------
    ValueError
        If no population has these numbers: the message says which of them do not fit, and the nearest that would.
    """
    attributes, listed, shares = _read_groups(groups, attribute)
    if not isinstance(labelled, bool | np.bool_):
        raise TypeError(f"labelled must be True or False; got {labelled!r}.")
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome must be one of {OUTCOMES}; got {outcome!r}.")
    anchor = _anchor(reference, attributes, listed, shares, disparate_impact)
    order = canonical_order(listed)
    groups_, shares = tuple(listed[i] for i in order), shares[order]
    where = order.index(anchor)
    wanted = _Wanted(groups_, len(attributes), where, outcome)
    unlabelled = {
        "base_rate": base_rate,
        "true_positive_rate": true_positive_rate,
        "false_positive_rate": false_positive_rate,
        "equalized_odds_difference": equalized_odds_difference,
    }
    if not labelled and any(value is not None for value in unlabelled.values()):
        given = [name for name, value in unlabelled.items() if value is not None]
        raise ValueError(
            f"{listing(given)} need true labels, but labelled=False: leave them out, or set labelled=True."
        )
    odds_gap = wanted.read("equalized_odds_difference", equalized_odds_difference, relative=True)
    # Beside a target relative to the reference, one number for all can only be the reference's own.
    of_reference = equalized_odds_difference is not None
    score = {
        "auc": wanted.read("auc", auc, low=0.5, high=1.0, open_above=True, every=True),
        "shift": wanted.read("calibration_shift", calibration_shift, low=-np.inf, high=np.inf, every=True),
        "slope": wanted.read("calibration_slope", calibration_slope, low=0.0, high=np.inf, open_below=True, every=True),
    }
    arrays = {name: np.array(values, dtype=float) for name, values in score.items()}
    stated = _Stated(
        base_rate=wanted.read("base_rate", base_rate),
        true_positive_rate=wanted.read("true_positive_rate", true_positive_rate, only_reference=of_reference),
        false_positive_rate=wanted.read("false_positive_rate", false_positive_rate, only_reference=of_reference),
        selection_rate=wanted.read("selection_rate", selection_rate, only_reference=disparate_impact is not None),
        disparate_impact=wanted.read("disparate_impact", disparate_impact, high=np.inf, relative=True),
        odds_gap=odds_gap,
    )
    if labelled:
        solved = _solve_labelled(wanted, stated, np.asarray(sqrt(2.0) * ndtri(arrays["auc"])))
        p, t, f = solved.T
        cells = np.stack(
            [np.stack([_times(1 - p, 1 - f), _times(1 - p, f)], -1), np.stack([_times(p, 1 - t), _times(p, t)], -1)], 1
        )
        rates = {"base_rate": p, "true_positive_rate": t, "false_positive_rate": f}
    else:
        r = _solve_unlabelled(wanted, stated)
        cells = np.stack([1 - r, r], -1)[:, None, :]
        rates = {}
    return Population(
        attributes,
        groups_,
        shares,
        cells,
        rates,
        arrays["auc"],
        arrays["shift"],
        arrays["slope"],
        where,
        reference is not None or disparate_impact is not None or equalized_odds_difference is not None,
        outcome,
    )


def _times(weight: Floats, rate: Floats) -> Floats:
    """Return the product; the rate of nobody, which is NaN, has no part in it."""
    return np.where(weight == 0, 0.0, weight * np.where(weight == 0, 0.0, rate))


# ------------------------------------------------------------------------------------------------------------- groups
def _read_groups(groups: Any, attribute: Any) -> tuple[tuple[str, ...], list[Group], Floats]:
    """Return attribute names, the groups as tuples in the order listed, and their shares."""
    if isinstance(groups, Mapping):
        inner = [isinstance(value, Mapping | list | tuple) for value in groups.values()]
        if inner and all(inner):
            return _cross(groups, attribute)
        labels, shares = list(groups), _shares("groups", groups)
    elif isinstance(groups, Sequence | np.ndarray | pd.Index | pd.Series) and not isinstance(groups, str | bytes):
        labels = list(groups)
        shares = np.full(len(labels), 1 / max(len(labels), 1))
    else:
        raise TypeError(
            f"groups must be a sequence of labels, a mapping of label to share, or of attribute to such a mapping; got "
            f"{groups!r:.80}."
        )
    joint = bool(labels) and all(isinstance(label, tuple) for label in labels)
    listed: list[Group] = [
        tuple(as_label(value) for value in label) if joint else (as_label(label),) for label in labels
    ]
    widths = {len(group) for group in listed}
    if len(widths) > 1:
        raise ValueError(f"the groups hold different numbers of attributes: {sorted(widths)}.")
    width = widths.pop() if widths else 1
    if attribute is None:
        names: tuple[str, ...] = ("group",) if width == 1 else tuple(f"group_{i}" for i in range(width))
    else:
        if not isinstance(attribute, str | Sequence | np.ndarray | pd.Index):
            raise TypeError(f"attribute must be a name, or one for each value of a group; got {attribute!r}.")
        names = (attribute,) if isinstance(attribute, str) else tuple(map(as_label, attribute))
    if len(names) != width or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"attribute must name the {width} attribute(s) of groups, each once; got {attribute!r}.")
    _check_distinct(listed)
    return names, listed, shares


def _cross(groups: Mapping[Any, Any], attribute: Any) -> tuple[tuple[str, ...], list[Group], Floats]:
    """Return the groups of independent attributes: every combination, with the product of the shares."""
    if attribute is not None:
        raise ValueError(f"attribute must be left out where groups names the attributes; got {attribute!r}.")
    levels, shares = [], []
    for name, values in groups.items():
        if not isinstance(name, str):
            raise TypeError(f"the attributes in groups must be text; got {name!r}.")
        try:
            _, listed, share = _read_groups(values, None)
        except (TypeError, ValueError) as error:
            raise type(error)(f"the values of {name!r}: {error}") from error
        if len(listed[0]) != 1:
            raise ValueError(f"groups: the values of {name!r} must be single labels; got {listing(listed)}.")
        levels.append([value for (value,) in listed])
        shares.append(share)
    crossed = np.ones(())
    for share in shares:
        crossed = np.multiply.outer(crossed, share)
    return tuple(groups), list(product(*levels)), crossed.ravel()


def _shares(name: str, groups: Mapping[Any, Any]) -> Floats:
    for label, share in groups.items():
        if not _is_number(share) or not 0 < share <= 1:
            raise ValueError(f"{name}: the share of {label!r} must be a number in (0, 1]; got {share!r}.")
    total = sum(groups.values())
    if groups and abs(total - 1) > _AGREES:
        raise ValueError(f"{name}: the shares must add up to 1; they add up to {float(total):.6g}.")
    return np.array([float(share) for share in groups.values()]) / float(total or 1)


def _check_distinct(groups: Sequence[Group]) -> None:
    if len(groups) < 2:
        found = [group[0] if len(group) == 1 else group for group in groups]
        raise ValueError(f"groups must hold at least two groups; got {listing(found)}.")
    for group in groups:
        if not all(isinstance(value, Hashable) for value in group):
            raise TypeError(f"groups must be text, numbers or booleans; got {group!r}.")
    if len(set(groups)) < len(groups):
        twice = next(group for group in groups if groups.count(group) > 1)
        raise ValueError(f"groups: {show(twice)!r} stands more than once.")


def canonical_order(groups: Sequence[Group]) -> list[int]:
    """Return the order of the groups by their values, the first attribute first."""
    ranks = [
        {value: i for i, value in enumerate(sort_labels(list(dict.fromkeys(column))))}
        for column in zip(*groups, strict=True)
    ]
    return sorted(range(len(groups)), key=lambda i: tuple(rank[v] for rank, v in zip(ranks, groups[i], strict=True)))


def _as_group(value: Any, groups: Sequence[Group], width: int, name: str) -> Group:
    """Return a group by what a caller calls it: a tuple of values, or the bare label of one attribute."""
    candidates: list[Group] = [(as_label(value),)] if width == 1 else []
    if isinstance(value, tuple):
        candidates.append(tuple(as_label(part) for part in value))
    for candidate in candidates:
        try:
            if candidate in groups:
                return candidate
        except ValueError:  # an array among the values compares elementwise
            break
    known = [group[0] if width == 1 else group for group in groups]
    raise ValueError(f"{name} must be one of {listing(known)}; got {value!r}.")


def _anchor(
    reference: Any, attributes: tuple[str, ...], groups: list[Group], shares: Floats, disparate_impact: Any
) -> int:
    """Return the place of the group that others are made relative to."""
    width = len(attributes)
    if isinstance(reference, Mapping):
        if set(reference) != set(attributes):
            raise ValueError(
                f"reference must give a value for each of the attributes {listing(attributes)}; got {dict(reference)!r}."
            )
        reference = tuple(reference[name] for name in attributes)
    if reference is not None:
        return groups.index(_as_group(reference, groups, width, "reference"))
    candidates = np.ones(len(groups), dtype=bool)
    if isinstance(disparate_impact, Mapping):
        named = {_as_group(key, groups, width, "disparate_impact: a group") for key in disparate_impact}
        candidates = np.array([group not in named for group in groups])
        if not candidates.any():
            raise ValueError(
                "disparate_impact names every group: leave out the reference, or say which it is by reference=."
            )
    return int(np.argmax(np.where(candidates, shares, -1.0)))


# -------------------------------------------------------------------------------------------------- what was asked for
def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_) and value == value


@dataclass(frozen=True)
class _Stated:
    """What the specification says, one value or None per group."""

    base_rate: list[float | None]
    true_positive_rate: list[float | None]
    false_positive_rate: list[float | None]
    selection_rate: list[float | None]
    disparate_impact: list[float | None]
    odds_gap: list[float | None]


@dataclass(frozen=True)
class _Wanted:
    """Reads parameters that are one number, or one per group."""

    groups: tuple[Group, ...]
    width: int
    anchor: int
    outcome: str

    def name(self, i: int) -> str:
        """What a message calls a group."""
        return f"group {show(self.groups[i])!r}"

    def read(
        self,
        name: str,
        value: Any,
        *,
        low: float = 0.0,
        high: float = 1.0,
        open_below: bool = False,
        open_above: bool = False,
        relative: bool = False,
        only_reference: bool = False,
        every: bool = False,
    ) -> list[float | None]:
        """Return the value for each group, None where nothing is said.

        ``relative``: a comparison with the reference, which has none itself. ``only_reference``: one number is the
        reference's. ``every``: each group needs one.
        """
        found: list[float | None] = [None] * len(self.groups)
        if isinstance(value, Mapping):
            for key, one in value.items():
                group = _as_group(key, self.groups, self.width, f"{name}: a group")
                if one is not None:
                    found[self.groups.index(group)] = self._number(
                        f"{name} of {key!r}", one, low, high, open_below, open_above
                    )
        elif value is not None:
            number = self._number(name, value, low, high, open_below, open_above)
            for i in range(len(found)):
                if (i != self.anchor) if relative else (not only_reference or i == self.anchor):
                    found[i] = number
        if relative and found[self.anchor] is not None:
            raise ValueError(
                f"{name} compares with the reference, which is {show(self.groups[self.anchor])!r}; it cannot be given for it."
            )
        if every and None in found:
            raise ValueError(
                f"{name} must be a number, or one for every group; none for {self.name(found.index(None))}."
            )
        return found

    @staticmethod
    def _number(name: str, value: Any, low: float, high: float, open_below: bool, open_above: bool) -> float:
        left = "(" if open_below or isinf(low) else "["
        bounds = f"{left}{low:g}, {high:g}{')' if open_above or isinf(high) else ']'}"
        if not _is_number(value):
            raise ValueError(
                f"{name} must be a number in {bounds}, or a mapping of group to number; got {value!r:.80}."
            )
        number = float(value)
        inside = (low < number if open_below else low <= number) and (number < high if open_above else number <= high)
        if not inside or not isfinite(number):
            raise ValueError(f"{name} must lie in {bounds}; got {value!r}.")
        return number

    def selection_from_ratio(self, i: int, ratio: float, reference_rate: float) -> float:
        """Return the selection rate that has a disparate impact against the reference's."""
        adverse = self.outcome == "adverse"
        favored = 1 - reference_rate if adverse else reference_rate
        if favored <= 0:
            raise ValueError(
                f"disparate_impact cannot be {ratio:g}: the rate of the favourable decision is 0 in the reference "
                f"{show(self.groups[self.anchor])!r}, so the ratio is undefined. Give it another selection_rate."
            )
        rate = ratio * favored
        if rate > 1 + _ROUNDING:
            raise ValueError(
                f"disparate_impact {ratio:g} of the reference's favourable rate {favored:g} asks {self.name(i)} for a rate of "
                f"{rate:.6g}, above 1. At most {1 / favored:.6g} is possible with this reference; or lower its rate to "
                f"{1 / ratio:.6g}."
            )
        return 1 - min(rate, 1.0) if adverse else min(rate, 1.0)


def by_group(population: Population, name: str, value: Any, default: float) -> dict[Group, float]:
    """Return a rate in [0, 1] for each group: one number is that of all but the anchor, which then has the default."""
    wanted = _Wanted(population.groups, len(population.attributes), population.anchor, population.outcome)
    read = wanted.read(name, value)
    if not isinstance(value, Mapping):
        read[population.anchor] = None
    return {group: default if one is None else one for group, one in zip(population.groups, read, strict=True)}


# ------------------------------------------------------------------------------------------------------------- solving
def _solve_unlabelled(wanted: _Wanted, stated: _Stated) -> Floats:
    """Return the selection rate of each group."""
    own = stated.selection_rate[wanted.anchor]
    reference_rate = DEFAULT_RATE if own is None else own
    rates = np.full(len(wanted.groups), reference_rate)
    for i in range(len(wanted.groups)):
        rate = _target_rate(wanted, stated, i, reference_rate)
        if rate is not None:
            rates[i] = rate
    return rates


def _target_rate(wanted: _Wanted, stated: _Stated, i: int, reference_rate: float) -> float | None:
    """Return the selection rate that is asked of a group, directly or by its disparate impact; None if neither is."""
    ratio, rate = stated.disparate_impact[i], stated.selection_rate[i]
    if ratio is None:
        return rate
    implied = wanted.selection_from_ratio(i, ratio, reference_rate)
    if rate is not None and abs(rate - implied) > _AGREES:
        raise ValueError(
            f"{wanted.name(i)}: selection_rate {rate:g} contradicts disparate_impact {ratio:g}, which makes it {implied:.6g}. "
            f"Leave one of them out."
        )
    return implied


def _solve_labelled(wanted: _Wanted, stated: _Stated, separation: Floats) -> Floats:
    """Return base rate, true and false positive rate of each group, of shape (n_groups, 3)."""
    anchor = wanted.anchor
    solved = np.zeros((len(wanted.groups), 3))
    solved[anchor] = _Equation(wanted, stated, anchor, separation[anchor], None, stated.selection_rate[anchor]).solve()
    own = solved[anchor]
    reference_rate = _selection(*own)
    for i in range(len(wanted.groups)):
        if i != anchor:
            rate = _target_rate(wanted, stated, i, reference_rate)
            solved[i] = _Equation(wanted, stated, i, separation[i], own, rate).solve()
            _check_odds_gap(wanted, stated.odds_gap[i], i, solved[i], own)
    return solved


def _selection(p: float, t: float, f: float) -> float:
    return (p * t if p else 0.0) + ((1 - p) * f if p != 1 else 0.0)


def _check_odds_gap(wanted: _Wanted, gap: float | None, i: int, solved: Floats, own: Floats) -> None:
    if gap is None:
        return
    has = np.max(np.abs(solved[1:] - own[1:]))
    if np.isnan(has) or abs(has - gap) > _AGREES:
        what = (
            "is undefined: a group has no positives or no negatives"
            if np.isnan(has)
            else f"is {has:.6g} with the rates given"
        )
        raise ValueError(
            f"{wanted.name(i)}: equalized_odds_difference {gap:g} cannot be had; it {what}. Leave it out, or leave out "
            f"true_positive_rate, false_positive_rate or selection_rate of the group."
        )


class _Equation:
    """One group: ``selection = p TPR + (1 - p) FPR``, solved for what is not given.

    What the group is not given it takes from the reference; what the reference is not given is ``DEFAULT_RATE``.
    """

    def __init__(
        self,
        wanted: _Wanted,
        stated: _Stated,
        i: int,
        separation: float,
        reference: Floats | None,
        selection: float | None,
    ) -> None:
        self.who = wanted.name(i)
        self.p, self.t, self.f = (
            stated.base_rate[i],
            stated.true_positive_rate[i],
            stated.false_positive_rate[i],
        )
        self.r = selection
        self.taken = False  # whether the selection rate was not given, but taken for want of it
        self.by_ratio = stated.disparate_impact[i]
        self.gap = stated.odds_gap[i]
        self.separation = separation
        self.reference = reference

    def solve(self) -> tuple[float, float, float]:
        p = self._base_rate()
        t, f = self.t, self.f
        if self.r is None and t is None and f is None and self.gap is not None:
            t = self._below_reference(self.gap)
        if self.r is None and (t is None or f is None):
            if self.reference is not None:
                t = self._inherit(t, 1, "true_positive_rate", p > 0)
                f = self._inherit(f, 2, "false_positive_rate", p < 1)
            else:
                nobody = (p == 0 and f is not None) or (p == 1 and t is not None)
                self.r, self.taken = (None, False) if nobody else (DEFAULT_RATE, True)
        if p == 0 or p == 1:
            return self._one_class(p, t, f)
        if t is not None and f is not None:
            return self._agreeing(p, t, f)
        assert self.r is not None
        if t is None and f is None:
            t, f = self._cut_of_score(p) if self.gap is None else self._at_gap(p, self.gap)
        elif f is None:
            assert t is not None
            f = self._other(p, t, "true_positive_rate", "false_positive_rate", p, 1 - p)
        else:
            t = self._other(p, f, "false_positive_rate", "true_positive_rate", 1 - p, p)
        return p, t, f

    def _base_rate(self) -> float:
        if self.p is not None:
            return self.p
        if self.t is not None and self.f is not None and self.r is not None and abs(self.t - self.f) > _ROUNDING:
            p = _snap((self.r - self.f) / (self.t - self.f))
            if not 0 <= p <= 1:
                low, high = sorted((self.t, self.f))
                raise ValueError(
                    f"{self.who}: no base_rate gives {self._of_rate()} with true_positive_rate {self.t:g} and "
                    f"false_positive_rate {self.f:g}: it lies between them for any. The nearest is "
                    f"{min(max(self.r, low), high):.6g}."
                )
            return p
        return DEFAULT_RATE if self.reference is None else float(self.reference[0])

    def _of_rate(self) -> str:
        said = f"selection_rate {self.r:.6g}"
        return said if self.by_ratio is None else f"{said} (of disparate_impact {self.by_ratio:g})"

    def _inherit(self, rate: float | None, place: int, name: str, needed: bool) -> float:
        assert self.reference is not None
        if rate is not None:
            return rate
        inherited = float(self.reference[place])
        if needed and np.isnan(inherited):
            raise ValueError(f"{self.who}: {name} is not given, and undefined in the reference: give it.")
        return inherited

    def _below_reference(self, gap: float) -> float:
        assert self.reference is not None
        own = float(self.reference[1])
        if gap > own + _ROUNDING:
            raise ValueError(
                f"{self.who}: equalized_odds_difference {gap:g} lowers true_positive_rate by as much, but the reference's is "
                f"{own:.6g}: at most {own:.6g} is possible. Raise the reference's, or give both rates by group."
            )
        return _snap(own - gap)

    def _one_class(self, p: float, t: float | None, f: float | None) -> tuple[float, float, float]:
        """Return the rates of a group where all labels are alike: the rate of the other class is nobody's."""
        rate, name = (f, "false_positive_rate") if p == 0 else (t, "true_positive_rate")
        if rate is None:
            rate = self.r
        assert rate is not None
        if self.r is not None and abs(self.r - rate) > _AGREES:
            raise ValueError(
                f"{self.who}: {self._of_rate()} contradicts {name} {rate:g}: with base_rate {p:g} they are one number."
            )
        return (p, float("nan"), rate) if p == 0 else (p, rate, float("nan"))

    def _agreeing(self, p: float, t: float, f: float) -> tuple[float, float, float]:
        rate = _selection(p, t, f)
        if self.r is not None and abs(self.r - rate) > _AGREES:
            raise ValueError(
                f"{self.who}: {self._of_rate()} contradicts base_rate {p:g}, true_positive_rate {t:g} and "
                f"false_positive_rate {f:g}, which make base_rate * TPR + (1 - base_rate) * FPR = {rate:.6g}. Leave one out for "
                f"this group (a mapping names groups), or ask for {rate:.6g}."
            )
        return p, t, f

    def _other(self, p: float, given: float, name: str, other: str, weight: float, rest: float) -> float:
        """Return the rate that, beside the given one, makes up the selection rate."""
        assert self.r is not None
        value = _snap((self.r - weight * given) / rest)
        if not 0 <= value <= 1:
            low, high = weight * given, weight * given + rest
            said = f" (the reference's, taken because {other} is not given either)" if self.taken else ""
            raise ValueError(
                f"{self.who}: {self._of_rate()}{said} cannot be had with base_rate {p:g} and {name} {given:g}: {other} would "
                f"have to be {value:.6g}. The selection rate then lies in [{low:.6g}, {high:.6g}]; the nearest is "
                f"{min(max(self.r, low), high):.6g}."
            )
        return value

    def _cut_of_score(self, p: float) -> tuple[float, float]:
        """Return the rates of those whose score lies above the cut that selects as many as asked for."""
        r, d = self.r, self.separation
        assert r is not None
        if r in (0.0, 1.0) or d == 0:
            return r, r
        cut = brentq(lambda c: p * ndtr(d - c) + (1 - p) * ndtr(-c) - r, -40.0, 40.0 + d, xtol=1e-14, rtol=1e-14)
        t, f = float(ndtr(d - cut)), float(ndtr(-cut))
        if p > 0.5:  # the cut is found to 14 digits; the selection rate is to be met exactly
            t = min(max((r - (1 - p) * f) / p, 0.0), 1.0)
        else:
            f = min(max((r - p * t) / (1 - p), 0.0), 1.0)
        return t, f

    def _at_gap(self, p: float, gap: float) -> tuple[float, float]:
        """Return rates on the line of the selection rate whose larger distance from the reference's is ``gap``."""
        assert self.r is not None
        assert self.reference is not None
        t0, f0 = float(self.reference[1]), float(self.reference[2])
        low, high = max(0.0, (self.r - (1 - p)) / p), min(1.0, self.r / p)

        def others(t: float) -> float:
            return (self.r - p * t) / (1 - p)  # type: ignore[operator]

        def distance(t: float) -> float:
            return max(abs(t - t0), abs(others(t) - f0))

        # Along the line the distance is convex: its least value is where both differences are equal.
        shift = self.r - (p * t0 + (1 - p) * f0)
        ends = [low, high, *(t for t in (t0 + shift,) if low <= t <= high)]
        candidates = [t0 - gap, t0 + gap, *((self.r - (1 - p) * f) / p for f in (f0 - gap, f0 + gap))]
        for t in candidates:
            if low - _ROUNDING <= t <= high + _ROUNDING and abs(distance(t) - gap) <= _AGREES:
                return _snap(t), _snap(others(t))
        least, most = min(map(distance, ends)), max(distance(low), distance(high))
        raise ValueError(
            f"{self.who}: equalized_odds_difference {gap:g} cannot be had with {self._of_rate()} and base_rate {p:g}, against "
            f"the reference's true_positive_rate {t0:.6g} and false_positive_rate {f0:.6g}: it lies in [{least:.6g}, "
            f"{most:.6g}]; the nearest is {min(max(gap, least), most):.6g}."
        )


def _snap(value: float) -> float:
    """Return a solved rate; what differs from 0 or 1 by rounding only is 0 or 1."""
    for end in (0.0, 1.0):
        if abs(value - end) <= _ROUNDING:
            return end
    return value
