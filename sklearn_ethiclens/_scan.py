"""A scan of all well-populated subgroups against everybody else, with p-values and intervals that hold for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import ceil, comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr

from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import listing, show
from sklearn_ethiclens.inference._intervals import newcombe_interval
from sklearn_ethiclens.inference._resampling import collect_cells, draw_tables, seed_of_part
from sklearn_ethiclens.inference._studentised import rate_difference
from sklearn_ethiclens.metrics._rates import (
    RATES,
    Confusion,
    Floats,
    PartOfWeighted,
    WeightedConfusion,
    WeightedReplicates,
)
from sklearn_ethiclens.policy import Policy

COLUMNS = ("subgroup", "rate", "n", "value", "others", "difference", "low", "high", "pvalue_adjusted")
_WORDS = {
    "favorable_rate": "favourable rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
}
_DEPTH = 2  # attributes combined where no number is given
_MOST_DIGITS = 9  # of that number; more than there are attributes means all of them
_LEAST_ROWS, _LEAST_OUTCOMES = 30, 10  # whatever the policy's floors
_LEAST_WORTH = 0.1  # effective rows over rows; below, a few weights carry all, and no bootstrap knows the others
_SHOWN = 10
_MOST_MEMBERSHIPS = 50_000_000
_LARGEST_QUANTILE = 8.0  # beyond, 1 - its tail is 1 in floating point
_BLOCK_VALUES = 1 << 22  # replicates held at once, 32 MiB


class _Subgroups(NamedTuple):
    """The subgroups scanned: their words, which groups of the tally each is made of, and how many were left out."""

    words: tuple[str, ...]
    members: Any  # sparse, of shape (n_subgroups, n_groups)
    n_small: int
    n_same: int


@dataclass(frozen=True)
class _Family:
    """The comparisons made at once: by which rate, of which subgroup, the differences, and their test statistics.

    ``inflation`` makes up for the bootstrap variance of a rate of n rows, which is (n - 1) / n of what it stands for.
    """

    rate: NDArray[np.intp]
    subgroup: NDArray[np.intp]
    difference: Floats
    statistic: Floats
    inflation: Floats


def scan_depth(intersections: Any) -> int | None:
    """Return how many attributes a scan combines: 2 for "scan", k for "scan:k"; None for anything but a scan.

    Raises
    ------
    ValueError
        If what follows "scan" is no whole number of at least 1.
    """
    if not isinstance(intersections, str):
        return None
    word, colon, depth = (part.strip() for part in intersections.partition(":"))
    if word != "scan":
        return None
    if not colon:
        return _DEPTH
    if not depth.isdecimal() or not 0 < len(depth.lstrip("0")) <= _MOST_DIGITS:
        raise ValueError(
            f"intersections='scan:k' combines up to k attributes, a whole number of at least 1; got {intersections!r:.80}."
        )
    return int(depth)


def scan_section(
    tally: Tally, depth: int, *, outcome: str, policy: Policy, seed: int, n_jobs: int | None = None
) -> Section:
    """Return the worst subgroups among all that hold enough rows, each compared with everybody else.

    Subgroups are the values of each attribute and of each combination of up to ``depth`` attributes. Compared are the rate
    of the favourable decision and, with labels, the true and the false positive rate.

    Parameters
    ----------
    tally : Tally
        Counts by group of all attributes to combine.
    depth : int
        Most attributes combined, at least 1.
    outcome : {"favorable", "adverse"}
        What a positive decision means.
    policy : Policy
        Its floors (at least 30 rows, 10 positives, 10 negatives on both sides), level and number of replicates.
    seed : int
        Of the joint bootstrap.
    n_jobs : int, optional
        Threads; the result does not depend on them.

    Returns
    -------
    Section
        "scan", the ten comparisons with the smallest adjusted p-values, larger gaps first where these agree.

    Raises
    ------
    ValueError
        If the combinations are too many to be compared.

    Notes
    -----
    p-values are step-down max-T over all comparisons, from one bootstrap of the cells. Their statistic is the difference over
    its standard error under equal rates: with the own rates' error a subgroup of ten with no event would look certain.
    Replicates of it are widened for the (n - 1) / n by which a bootstrap of n rows varies too little.
    Weighted rows are each worth what they are on average over all, in effective counts: those of a small subgroup's own weights
    would vary too much for the largest of many. Replicates draw the weights, so that the tests know how these vary.
    Intervals are Newcombe's with, in place of the normal quantile, that of the largest absolute deviation of all replicates
    in standard errors of their own: they hold for all comparisons at once. The two may part near the level.

    References
    ----------
    Westfall and Young 1993, Resampling-based multiple testing; Romano and Wolf 2005, Econometrica 73:1237-1282; Cherian and
    Candes 2023, Statistical inference for fairness auditing.
    """
    depth, tally = min(depth, len(tally.attributes)), _occurring(tally)
    floors = {
        "total": max(_LEAST_ROWS, policy.least_rows),
        "positives": max(_LEAST_OUTCOMES, policy.floor("positives")),
        "negatives": max(_LEAST_OUTCOMES, policy.floor("negatives")),
    }
    subgroups = _subgroups(tally, depth, floors["total"], outcome)
    rates = [name for name in _WORDS if tally.labelled or not RATES[name].uses_labels]
    group, others = _sides(tally, subgroups.members, outcome)
    family = _family(group, others, rates, floors)
    value = family.difference
    adjusted, quantile = _joint(tally, subgroups.members, (group, others), family, rates, policy, seed, n_jobs)
    level = 1 - 2 * float(ndtr(-min(quantile, _LARGEST_QUANTILE)))
    order = np.lexsort((-np.abs(value), adjusted))[:_SHOWN]
    rows = []
    for h in order:
        name, s = rates[family.rate[h]], family.subgroup[h]
        low, high = newcombe_interval(
            *(float(part[0]) for part in _counts(group, others, name, [s])), confidence_level=level
        )
        rows.append(
            (
                subgroups.words[s],
                name,
                int(group.rows("total")[s]),
                float(group.rate(name)[s]),
                float(others.rate(name)[s]),
                float(value[h]),
                float(low),
                float(high),
                float(adjusted[h]),
            )
        )
    lines = _lines(tally, depth, subgroups, family, rates, floors, adjusted, policy)
    return Section("scan", "Scan of subgroups", tuple(lines), COLUMNS, tuple(rows))


# ----------------------------------------------------------------------------------------------------------- subgroups
def _occurring(tally: Tally) -> Tally:
    """Return the tally without groups that have no rows."""
    has_rows = np.asarray(tally.rows.any(axis=(1, 2)))
    if has_rows.all():
        return tally
    weights, at = tally.weights, np.flatnonzero(has_rows)
    if weights is not None:  # a group without rows adds nothing to its neighbour
        weights = weights.merge(np.maximum(np.cumsum(has_rows) - 1, 0), at.size)
    groups = tuple(tally.groups[i] for i in at)
    return Tally(tally.attributes, groups, tally.counts[at], tally.pos_label, tally.labels, weights=weights)


def _sides(tally: Tally, members: Any, outcome: str) -> tuple[Confusion, Confusion]:
    """Return the tables of each subgroup, and of everybody else."""

    def apart(tables: NDArray[Any]) -> tuple[Floats, Floats]:
        own = (members @ tables.reshape(len(tables), -1)).reshape(-1, *tables.shape[1:]).astype(float)
        return own, _rest(tables.sum(0), own)

    sums, weights = apart(tally.counts), tally.weights
    if weights is None:
        return Confusion(sums[0], outcome), Confusion(sums[1], outcome)
    rows, squares = apart(weights.rows), apart(weights.squares)
    everybody = tally.counts.sum(0), weights.rows.sum(0), weights.squares.sum(0)
    whole = WeightedConfusion(*everybody, outcome=outcome)
    own, rest = (PartOfWeighted(*tables, whole) for tables in zip(sums, rows, squares, strict=True))
    return own, rest


def _rest(total: Any, own: Floats) -> Floats:
    """Return a total without a part; sums of weights leave rounding where nothing is left."""
    rest: Floats = total - own
    rest[rest < 1e-9 * np.broadcast_to(total, rest.shape)] = 0.0
    return rest


def _subgroups(tally: Tally, depth: int, least: int, outcome: str) -> _Subgroups:
    """Return the subgroups with enough rows inside and outside, each set of people once.

    Of two that part all people in the same way, such as the values of a two-valued attribute, the one with the lower rate of
    the favourable decision stands for both, or the one of fewer attributes.
    """
    n_groups, n_attributes = len(tally.groups), len(tally.attributes)
    n_combinations = sum(comb(n_attributes, size) for size in range(1, depth + 1))
    if n_combinations * n_groups > _MOST_MEMBERSHIPS:
        raise ValueError(
            f"a scan of up to {depth} of the {n_attributes} attributes {listing(tally.attributes)} has {n_combinations} "
            f"combinations over {n_groups} groups, too many: lower k in intersections='scan:k', or give fewer attributes."
        )
    levels = [[group[0] for group in tally.marginal((name,)).groups] for name in tally.attributes]
    ranks = [{value: i for i, value in enumerate(values)} for values in levels]
    codes = [np.array([rank[group[j]] for group in tally.groups]) for j, rank in enumerate(ranks)]
    weight = Confusion(tally.counts.astype(float), outcome)
    size = tally.rows.sum((1, 2))
    n_rows, n_small, n_same = int(size.sum()), 0, 0
    found: dict[bytes, tuple[tuple[int, ...], float, str, NDArray[np.intp]]] = {}
    for chosen in (combo for k in range(1, depth + 1) for combo in combinations(range(n_attributes), k)):
        cells, position = np.unique(
            np.ravel_multi_index([codes[j] for j in chosen], [len(levels[j]) for j in chosen]), return_inverse=True
        )
        rows = np.bincount(position, weights=size)
        rate = np.divide(*(np.bincount(position, weights=weight.count(name)) for name in ("favored", "total")))
        enough = (rows >= least) & (n_rows - rows >= least)
        n_small += int(np.count_nonzero(~enough))
        by_cell = np.argsort(position, kind="stable")
        bounds = np.searchsorted(position[by_cell], np.arange(cells.size + 1))
        for c in np.flatnonzero(enough):
            members = by_cell[bounds[c] : bounds[c + 1]]
            key = _parting(members, n_groups)
            if key in found:
                n_same += 1
                if len(found[key][0]) < len(chosen) or found[key][1] <= rate[c]:
                    continue
            values = np.unravel_index(cells[c], [len(levels[j]) for j in chosen])
            words = " & ".join(
                f"{tally.attributes[j]}={show(levels[j][i])}" for j, i in zip(chosen, values, strict=True)
            )
            found[key] = chosen, float(rate[c]), words, members
    kept = list(found.values())
    row = np.repeat(np.arange(len(kept)), [members.size for *_, members in kept])
    column = np.concatenate([members for *_, members in kept]) if kept else np.empty(0, np.intp)
    matrix = csr_array((np.ones(row.size), (row, column)), shape=(len(kept), n_groups))
    return _Subgroups(tuple(words for _, _, words, _ in kept), matrix, n_small, n_same)


def _parting(members: NDArray[np.intp], n_groups: int) -> bytes:
    """Return what a subgroup and its complement have in common: a digest of who is on the side without the first group."""
    inside = np.zeros(n_groups, dtype=bool)
    inside[members] = True
    return blake2b(np.packbits(inside ^ inside[0]).tobytes(), digest_size=16).digest()


def _family(group: Confusion, others: Confusion, rates: Sequence[str], floors: dict[str, int]) -> _Family:
    """Return the comparisons whose denominators reach the floors on both sides."""
    which, where, differences, statistics, inflations = [], [], [], [], []
    for r, name in enumerate(rates):
        nobs = RATES[name].denominator
        at = np.flatnonzero((group.rows(nobs) >= floors[nobs]) & (others.rows(nobs) >= floors[nobs]))
        counts = _counts(group, others, name, at)
        which.append(np.full(at.size, r))
        where.append(at)
        differences.append(counts[0] / counts[1] - counts[2] / counts[3])
        statistics.append(np.abs(differences[-1]) / _null_error(*counts))
        n1, n2 = np.maximum(counts[1], 2.0), np.maximum(counts[3], 2.0)  # effective rows can be fewer, rows cannot
        inflations.append(np.sqrt((1 / n1 + 1 / n2) / ((n1 - 1) / n1**2 + (n2 - 1) / n2**2)))
    return _Family(*map(np.concatenate, (which, where, differences, statistics, inflations)))


def _counts(group: Confusion, others: Confusion, rate: str, at: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the events and rows that a rate is of: of some subgroups, and of the others; effective ones of weighted rows."""
    (x1, n1), (x2, n2) = group.proportion(rate), others.proportion(rate)
    return x1[at], n1[at], x2[at], n2[at]


@np.errstate(divide="ignore")
def _null_error(x1: Floats, n1: Floats, x2: Floats, n2: Floats) -> Floats:
    """Return the standard error of a difference of rates that are equal; half an event more and less keeps it above 0."""
    x, n = x1 + x2, n1 + n2
    return np.asarray(np.sqrt((x + 0.5) * (n - x + 0.5) / (n + 1) ** 2 * (1 / n1 + 1 / n2)))


# ----------------------------------------------------------------------------------------------------------- resampling
def _joint(
    tally: Tally,
    members: Any,
    sides: tuple[Confusion, Confusion],
    family: _Family,
    rates: Sequence[str],
    policy: Policy,
    seed: int,
    n_jobs: int | None,
) -> tuple[Floats, float]:
    """Return the step-down max-T p-values, and the quantile of the largest deviation at the policy's level.

    The p-values are those of ``max_t_pvalues``, with replicates seen in blocks: of each only the running maxima, from the
    smallest statistic up, are needed.
    """
    statistics, n_resamples = family.statistic, policy.n_resamples
    order = np.argsort(statistics, kind="stable")
    n_groups, n_slots = len(tally.groups), tally.counts[0].size
    table_of, slot_of = np.nonzero(tally.rows.reshape(n_groups, -1))
    width = table_of.size + n_slots * (n_groups + 2 * members.shape[0]) + 4 * statistics.size
    block = min(max(1, _BLOCK_VALUES // width), n_resamples)
    reached, largest = np.zeros(statistics.size, dtype=np.int64), np.full(n_resamples, -np.inf)
    for number, start in enumerate(range(0, n_resamples, block)) if statistics.size else ():
        stop = min(start + block, n_resamples)
        own_seed = seed_of_part(seed, number)
        draws = draw_tables(tally.rows, tally.weights, table_of, slot_of, stop - start, own_seed, n_jobs)
        tables = collect_cells(draws, table_of, slot_of, n_groups, n_slots)
        own = np.stack([members @ table for table in tables])
        drawn = own, _rest(tables.sum(1, keepdims=True), own)
        group, others = (_replicates_of(side, counts) for side, counts in zip(sides, drawn, strict=True))
        under_null, deviation = _deviations(group, others, family, rates)
        running = np.fmax.accumulate(under_null[order], axis=0)
        reached += np.count_nonzero(running >= statistics[order, np.newaxis], axis=1)
        largest[start:stop] = np.fmax.reduce(deviation, axis=0)
    descending = order[::-1]
    adjusted = np.empty(statistics.size)
    adjusted[order] = (1 + reached) / (n_resamples + 1)
    adjusted[descending] = np.maximum.accumulate(adjusted[descending])
    rank = ceil(policy.confidence_level * (n_resamples + 1) - 1e-9)
    return adjusted, float(np.sort(largest)[rank - 1]) if rank <= n_resamples else np.inf


def _replicates_of(side: Confusion, tables: Floats) -> Confusion:
    """Return replicates, of shape (n_slots, n_subgroups, n_resamples), by name."""
    counts = np.moveaxis(tables.reshape(-1, 2, *tables.shape[1:]), (0, 1), (-2, -1))
    return WeightedReplicates(counts, side) if side.weighted else Confusion(counts, side.outcome)


@np.errstate(divide="ignore", invalid="ignore")
def _deviations(group: Confusion, others: Confusion, family: _Family, rates: Sequence[str]) -> tuple[Floats, Floats]:
    """Return how far replicates lie from the estimate: in standard errors under equal rates, and in their own."""
    under_null, own = [], []
    for r, name in enumerate(rates):
        mine = family.rate == r
        counts = _counts(group, others, name, family.subgroup[mine])
        drawn = rate_difference(*counts)
        distance = np.abs(drawn.value - family.difference[mine, np.newaxis])
        under_null.append(distance * family.inflation[mine, np.newaxis] / _null_error(*counts))
        own.append(distance / drawn.standard_error)
    return np.concatenate(under_null), np.concatenate(own)


# --------------------------------------------------------------------------------------------------------------- words
def _lines(
    tally: Tally,
    depth: int,
    subgroups: _Subgroups,
    family: _Family,
    rates: Sequence[str],
    floors: dict[str, int],
    adjusted: Floats,
    policy: Policy,
) -> list[str]:
    n_scanned, n_compared, alpha = len(subgroups.words), family.subgroup.size, 1 - policy.confidence_level
    names = ", ".join(tally.attributes)
    of = f"combinations of up to {depth} of {names}" if depth > 1 else f"values of {names}"
    lines = [
        f"{n_scanned} subgroups ({of}) are each compared with everybody else, by {_join([_WORDS[name] for name in rates])}: "
        f"{n_compared} comparisons.",
        f"Left out: {subgroups.n_small} subgroups that have, or leave, fewer than {floors['total']} rows, and "
        f"{subgroups.n_same} that hold the same people as another, or all people but those.",
    ]
    if tally.weights is not None:
        lines.append("Rates are weighted, and errors allow for the weights; floors and n are of rows as they are.")
        worth = tally.counts.sum() ** 2 / tally.weights.squares.sum()
        if worth < _LEAST_WORTH * tally.n_rows:
            lines.append(
                f"Weights vary so much that the {tally.n_rows} rows are worth {worth:.0f}, too few for the p-values to be "
                f"trusted."
            )
    for r, name in enumerate(rates):
        left_out = n_scanned - int(np.count_nonzero(family.rate == r))
        if left_out:
            nobs = RATES[name].denominator
            lines.append(
                f"Not compared by {_WORDS[name]}, with fewer than {floors[nobs]} {nobs}: {left_out} subgroups."
            )
    if not n_compared:
        return [*lines, "Nothing could be compared."]
    n_found = int(np.count_nonzero(adjusted <= alpha + 1e-12))
    found = f"{n_found} of {n_compared} comparisons have" if n_found else f"None of {n_compared} comparisons has"
    after = "." if n_found else ": the largest gaps, shown below, are no larger than chance explains."
    return [
        *lines,
        f"{found} an adjusted p-value of at most {alpha:.3g}{after}",
        f"p-values are adjusted for all {n_compared} comparisons (step-down max-T, {policy.n_resamples} joint replicates); the "
        f"intervals hold for all of them at once, at {100 * policy.confidence_level:g}%.",
        "A scan is exploratory: what it finds is a question to put to new data, and finding nothing is no proof of parity.",
    ]


def _join(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
