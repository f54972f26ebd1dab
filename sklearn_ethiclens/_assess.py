"""Tally and policy -> findings: every metric of every group and comparison, with interval, test, floors and verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import repeat
from math import isnan
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sklearn_ethiclens._calibrated import (
    CALIBRATED,
    Collected,
    Evidence,
    adjusted_pvalues,
    calibrated_rule,
    closed_form,
    examine,
    has_closed_form,
    is_of_rates,
    limits_of,
    meets_floors,
    rivals,
    stepwise_pvalues,
)
from sklearn_ethiclens._design_forms import global_test, rate_test
from sklearn_ethiclens._findings import Assessment, Finding, Headline, Reference, new_findings
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING, show
from sklearn_ethiclens.inference._gap_intervals import absolute_bounds
from sklearn_ethiclens.inference._intervals import Bounds, normal_quantile
from sklearn_ethiclens.inference._poisson import GROUPS, PoissonTables
from sklearn_ethiclens.inference._power import minimum_detectable_difference, power_two_proportions
from sklearn_ethiclens.inference._resampling import (
    BootstrapBounds,
    bootstrap_bounds,
    collect_cells,
    draw_tables,
    leave_one_out,
    pair_leave_one_out,
    seed_of_part,
    weigh_draws,
    weighted_leave_one_out,
)
from sklearn_ethiclens.inference._tests import (
    TwoProportionTestResult,
    adjust_pvalues,
    chi2_test,
    two_proportion_test,
    two_proportion_ztest,
)
from sklearn_ethiclens.inference._units import draw_totals, draw_units, unit_acceleration
from sklearn_ethiclens.metrics._comparisons import above, choose_reference, composite_band, flip_flop
from sklearn_ethiclens.metrics._definitions import METRICS, Metric, why_undefined
from sklearn_ethiclens.metrics._functions import reference_position
from sklearn_ethiclens.metrics._rates import (
    RATES,
    Confusion,
    DesignConfusion,
    Floats,
    WeightedReplicates,
    confusion_of,
)
from sklearn_ethiclens.policy import Policy, Rule, Verdict

POWER_GAP = 0.10  # the gap whose power is stated
_JOINT_CELLS = 4096  # up to here one draw serves all attributes; beyond, each is drawn on its own
_MANY_NUMBERS = 20  # more look like a measurement; 60 are refused at the door
_BATCH_VALUES = 1 << 21  # replicates held at once, 16 MiB
_TILE = 32  # groups whose replicates stay in the processor's cache from one metric to the next
_ADJUSTMENTS = {"max-t": "max-T", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_COMPOSED = ("disparate_impact", "statistical_parity_difference", "equalized_odds_difference")

_Denominator = tuple[str, list[int], int | None]  # by name: the count of each group, and of the reference


@dataclass
class _Rows:
    """The findings of one metric on one attribute, as columns."""

    metric: Metric
    attributes: tuple[str, ...]
    groups: list[Any]
    references: list[Any]
    values: Floats
    low: Floats
    high: Floats
    methods: list[str | None]
    reasons: list[str]
    verdicts: list[Verdict | None]
    problems: list[Verdict | None]
    n: list[int]
    n_reference: list[int | None]
    denominators: list[_Denominator]
    pvalue: Floats = field(default_factory=lambda: np.empty(0))
    tests: list[str | None] = field(default_factory=list)
    power: Floats = field(default_factory=lambda: np.empty(0))
    detectable: Floats = field(default_factory=lambda: np.empty(0))
    limit_pvalue: Floats = field(default_factory=lambda: np.empty(0))
    calibrated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """How a tally is assessed."""

    outcome: str
    plan: tuple[tuple[str, ...], ...]
    reference: Mapping[tuple[str, ...], Any]
    policy: Policy
    metrics: tuple[str, ...]
    seed: int
    n_jobs: int | None = None


def assess(tally: Tally, settings: Settings) -> Assessment:
    """Return what a tally shows under a policy.

    Parameters
    ----------
    tally : Tally
        Counts by group of all attributes.
    settings : Settings
        Attributes and intersections, references, metrics, policy (with method, level and replicates), seed.

    Returns
    -------
    Assessment
    """
    policy = settings.policy
    blocks = [_Margin(*tally._marginal(attributes), settings) for attributes in settings.plan]
    critical = float(normal_quantile(policy.confidence_level))
    tested = policy.judges_together or any(block.evidence.promising(critical) for block in blocks)
    table_of, slot_of = _occupied(tally)
    together = table_of.size <= _JOINT_CELLS  # as all tallies with a survey design are
    needed = tested or any(block.resampled for block in blocks)
    joint = _draw(tally, table_of, slot_of, settings, settings.seed) if together and needed else np.empty(0)
    for number, block in enumerate(blocks):
        source: _Joint | _Streams | None = None
        if needed and together:
            source = _Joint(block.tally, joint, block.position[table_of], slot_of)
        elif needed:
            seed = seed_of_part(settings.seed, number)
            source = _Streams(block.tally, settings, seed, keep=tested and not block.reference.given)
        block.resample(source, tested)
    for block, pvalues in zip(blocks, _limit_pvalues(blocks, policy, tested), strict=True):
        block.judge(pvalues)
    rows = [block_rows for block in blocks for block_rows in block.rows]
    return Assessment(
        findings=cache(partial(_findings, rows, policy)),  # once, for all audits made of it
        undefined=tuple(_undefined(rows)),
        tests=tuple(test for block in blocks for test in block.tests),
        references=tuple(block.reference for block in blocks),
        composite=_composite_headline(blocks),
        minimum_disparate_impact=_minimum_headline(blocks),
        notes=tuple(note for block in blocks for note in block.notes),
    )


def _limit_pvalues(blocks: Sequence[_Margin], policy: Policy, tested: bool) -> list[dict[tuple[str, int], float]]:
    """Return, by attribute, the adjusted p-value of each (metric, group) that its limits are kept; none if not needed."""
    evidence = [block.evidence for block in blocks]
    if policy.judges_together and policy.multiplicity != "max-t":
        rules = {rule.metric: rule for rule in policy.rules}
        return stepwise_pvalues(evidence, [block.confusion for block in blocks], rules, policy.multiplicity)
    return adjusted_pvalues(evidence) if tested else [{} for _ in blocks]


def _occupied(tally: Tally) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the group, and the place in its table, of each cell that has rows."""
    table_of, slot_of = np.nonzero(tally.counts.reshape(len(tally.groups), -1))
    return table_of, slot_of


def _draw(tally: Tally, table_of: NDArray[np.intp], slot_of: NDArray[np.intp], settings: Settings, seed: int) -> Floats:
    """Return bootstrap counts, or sums of weights, of the cells that have rows."""
    if tally.design is not None:
        return _draw_design(tally, table_of, slot_of, settings, seed)
    n_resamples, n_jobs = settings.policy.n_resamples, settings.n_jobs
    return draw_tables(tally.rows, tally.weights, table_of, slot_of, n_resamples, seed, n_jobs)


def _draw_design(
    tally: Tally, table_of: NDArray[np.intp], slot_of: NDArray[np.intp], settings: Settings, seed: int
) -> Floats:
    """Return replicates of the cells of a survey design: of its units, or by its covariance where intervals are closed forms.

    The latter need no units, so that an audit that was stored is judged again as before.
    """
    design, policy = tally.design, settings.policy
    if design is None:
        raise ValueError("the tally has no survey design.")
    cells = table_of * tally.counts[0].size + slot_of
    how = policy.n_resamples, seed, settings.n_jobs
    if policy.method == "auto":
        totals = tally.counts.ravel()[cells].astype(float)
        return draw_totals(totals, design.covariance[np.ix_(cells, cells)], design.dof, *how)
    if design.units is None:
        raise ValueError(f"method={policy.method!r} resamples units, and this design has none: pass method='auto'.")
    return draw_units(*design.units, *how)[cells]


class _Joint:
    """Replicates of the tables of an attribute, from one draw of all cells: a single block of groups."""

    def __init__(self, tally: Tally, draws: Floats, table_of: NDArray[np.intp], slot_of: NDArray[np.intp]) -> None:
        self.blocks = [slice(0, len(tally.groups))]
        self._tally, self._cells = tally, (draws, table_of, slot_of)
        self._tables: Floats | None = None

    def tables(self, number: int) -> Floats:
        """Return the replicates of a block, of shape (n_groups, n_resamples, n_outcomes, 2)."""
        if self._tables is None:
            n_groups, n_outcomes = self._tally.counts.shape[:2]
            self._tables = _by_group(collect_cells(*self._cells, n_groups, 2 * n_outcomes), n_outcomes)
        return self._tables


class _Streams:
    """Replicates of the tables of an attribute, drawn a block of groups at a time; as tables they are not kept.

    ``keep`` says whether they will be asked for a second time, as where the reference is chosen.
    """

    def __init__(self, tally: Tally, settings: Settings, seed: int, *, keep: bool) -> None:
        n_groups = len(tally.groups)
        self.blocks = [slice(start, min(start + GROUPS, n_groups)) for start in range(0, n_groups, GROUPS)]
        self._tally = tally
        self._poisson = PoissonTables(tally.rows.reshape(n_groups, -1), settings.policy.n_resamples, seed, keep=keep)

    def tables(self, number: int) -> Floats:
        """Return the replicates of a block, as :meth:`_Joint.tables`."""
        drawn, weights = self._poisson.draw(number), self._tally.weights
        if weights is not None:
            at, n_slots = self.blocks[number], drawn.shape[0]

            def cells(tables: NDArray[Any]) -> NDArray[Any]:
                return tables.reshape(len(tables), -1)[at].T.ravel()

            rows, sums, squares = cells(self._tally.rows), cells(weights.sums), cells(weights.squares)
            places = [group * n_slots + slot for slot in range(n_slots) for group in range(at.start, at.stop)]
            occupied = np.flatnonzero(rows)
            flat, seed = drawn.reshape(-1, drawn.shape[-1]), self._poisson.seed_of(number)
            kept = [weights.kept[places[i]] for i in occupied]
            flat[occupied] = weigh_draws(flat[occupied], rows[occupied], sums[occupied], squares[occupied], kept, seed)
        return _by_group(drawn, self._tally.counts.shape[1])


def _by_group(slots: Floats, n_outcomes: int) -> Floats:
    """Return replicates by cell, group and replicate as tables by group and replicate; a view."""
    return np.moveaxis(slots.reshape(n_outcomes, 2, *slots.shape[1:]), (0, 1), (-2, -1))


@dataclass(frozen=True)
class _Part:
    """Of one metric and some groups, or their comparisons with one: all that intervals need but the replicates."""

    metric: Metric
    groups: NDArray[np.intp]
    at: int | None
    values: Floats
    jackknife: Floats
    weights: Floats


class _Chosen:
    """Which groups a replicate would choose as the reference of each judged metric; none if it was given."""

    def __init__(self, margin: _Margin, tested: bool) -> None:
        policy = margin.policy
        given = policy.reference == "first" or margin.attributes in margin.settings.reference
        judged = [] if given or not tested else list(dict.fromkeys(limit.metric for limit in margin._limits))
        by_value = policy.reference == "highest_value"
        self._rates = {name: METRICS[name].rates[0] if by_value else "favorable_rate" for name in judged}
        self._at = {name: margin._reference_of(METRICS[name]) for name in judged}
        self._eligible = margin._eligible()

    def of(self, replicates: Confusion, groups: slice) -> dict[str, tuple[Floats, NDArray[np.intp]]]:
        """Return by rate the largest of each replicate among some groups, and where it is."""
        eligible, found = self._eligible[groups], {}
        for rate in dict.fromkeys(self._rates.values()):
            drawn = np.where(eligible[:, None], np.nan_to_num(replicates.rate(rate), nan=-1.0), -1.0)
            at = drawn.argmax(axis=0)
            found[rate] = drawn[at, np.arange(at.size)], groups.start + at
        return found

    @staticmethod
    def best_of(found: Sequence[Mapping[str, tuple[Floats, NDArray[np.intp]]]]) -> dict[str, tuple[Floats, Any]]:
        """Return the same of what was found of groups in their order."""
        merged: dict[str, tuple[Floats, Any]] = dict(found[0])
        for one in found[1:]:
            for rate, (further, there) in one.items():
                best, at = merged[rate]
                merged[rate] = np.maximum(best, further), np.where(further > best, there, at)
        return merged

    def all_of(self, found: Mapping[str, tuple[Floats, NDArray[np.intp]]]) -> dict[str, list[int]]:
        """Return by metric the groups other than the reference, of what was found of all groups."""
        at = {rate: np.unique(where) for rate, (_, where) in found.items()}
        return {
            name: [int(g) for g in at[rate] if self._eligible[g] and g != self._at[name]]
            for name, rate in self._rates.items()
        }


class _Margin:
    """One attribute or intersection: its tables, replicates and leave-one-out tables, read metric by metric."""

    def __init__(self, tally: Tally, position: NDArray[np.intp], settings: Settings) -> None:
        self.tally, self.position, self.settings, self.policy = tally, position, settings, settings.policy
        self.attributes = tally.attributes
        self.labels = [group[0] if len(group) == 1 else group for group in tally.groups]
        self.confusion = confusion_of(tally, settings.outcome, self.policy.confidence_level)
        self.total = self.confusion.rows("total")
        self.compared = self._compared()
        self._tested: dict[tuple[str, int], TwoProportionTestResult] = {}
        self._estimates: dict[str, Floats] = {}
        self._counted: dict[Any, list[_Denominator]] = {}
        self._powers: dict[int, dict[str, tuple[Floats, Floats]]] = {}
        wanted = dict.fromkeys(rate for name in settings.metrics for rate in METRICS[name].rates if rate != "f1")
        self._proportions = [rate for rate in wanted if tally.labelled or not RATES[rate].uses_labels]
        self.reference_at, self.reference = self._choose_reference()
        self.tests = self._global_tests()
        self._floors = self.policy if self.policy.judges_together else CALIBRATED
        self._limits = [limit for limit in limits_of(self.policy.rules) if self._known(METRICS[limit.metric])]
        at = {limit.metric: self._reference_of(METRICS[limit.metric]) for limit in self._limits}
        self.evidence: Evidence = examine(self._limits, self.confusion, at, self._floors, self.compared)
        self.notes = self._size_notes()

    def resample(self, source: _Joint | _Streams | None, tested: bool) -> None:
        """Compute the intervals of all metrics, and what the tests of limits need of the replicates.

        Without a source nothing needs replicates. Groups are taken a block at a time, so that memory does not grow with
        their number.
        """
        metrics = [METRICS[name] for name in self.settings.metrics]
        self.methods: dict[str, str] = {}
        self.bounds = self._fixed_bounds(metrics)
        if source is None:
            return
        weights = self.tally.weights
        if weights is None:
            deleted, stands_for = leave_one_out(self.tally.counts, self.tally.n_rows)
            self.weights = stands_for[None]
        else:
            deleted, self.weights = weighted_leave_one_out(weights.rows, weights.sums, weights.squares, weights.cubes)
        self.jackknife = Confusion(deleted, self.settings.outcome)
        resampled = [metric for metric in metrics if metric.name not in self.bounds and metric.kind != "overall"]
        names = [*(metric.name for metric in metrics), *(limit.metric for limit in self._limits)]
        compared_with = {self._reference_of(METRICS[name]) for name in names if METRICS[name].kind == "pair"}
        whole = len(source.blocks) == 1
        references = self._replicates_of(source, sorted(compared_with))
        chosen = _Chosen(self, tested)

        step = max(1, _BATCH_VALUES // (max(1, len(resampled)) * self.policy.n_resamples))
        spare: list[Floats] = []  # fresh memory for every block would cost as much as the arithmetic

        def look(number: int) -> tuple[list[dict[str, BootstrapBounds]], list[Collected], dict[str, Any]]:
            block, tables = source.blocks[number], source.tables(number)
            found, collected, best = [], [], []
            for groups in _cut(block, step):
                parts = self._parts(resampled, groups)
                rows = self._room(parts, spare)
                for tile in _cut(groups, _TILE):
                    replicates = self._confusion_of(tables[tile.start - block.start : tile.stop - block.start], tile)
                    self._fill(rows, parts, tile, replicates, references)
                    if tested:
                        collected.append(self.evidence.collect(replicates, tile.start, references))
                    best.append(chosen.of(replicates, tile))
                found.append(self._bounds_of(parts, rows))
                spare.append(rows)
            return found, collected, chosen.best_of(best)

        n_jobs = self.settings.n_jobs
        if n_jobs in (None, 1) or whole:
            looked = [look(number) for number in range(len(source.blocks))]
        else:
            looked = Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(look)(number) for number in range(len(source.blocks))
            )
        for metric in resampled:
            parts = (part[metric.name] for found, _, _ in looked for part in found if metric.name in part)
            self.bounds[metric.name] = BootstrapBounds(*map(np.concatenate, zip(*parts, strict=True)))
        if tested:
            for collected in (one for _, several, _ in looked for one in several):
                self.evidence.add(collected)
            self._fold_rivals(source, chosen.all_of(chosen.best_of([best for _, _, best in looked])))
        del self.jackknife

    def _confusion_of(self, tables: Floats, groups: Any) -> Confusion:
        """Return replicates of the tables of some groups by name."""
        if self.tally.weights is None and self.tally.design is None:
            return Confusion(tables, self.settings.outcome)
        return WeightedReplicates(tables, self.confusion.take(groups))

    def _replicates_of(self, source: _Joint | _Streams, groups: Sequence[int]) -> dict[int, Confusion]:
        """Return the replicates of single groups."""
        found: dict[int, Confusion] = {}
        for number, block in enumerate(source.blocks):
            inside = [group for group in groups if block.start <= group < block.stop]
            tables = source.tables(number) if inside else None
            for group in inside:
                assert tables is not None
                own = tables[group - block.start : group - block.start + 1]
                found[group] = self._confusion_of(own.copy(order="K"), [group])
        return found

    def _fold_rivals(self, source: _Joint | _Streams, references: Mapping[str, list[int]]) -> None:
        """Let the evidence know of comparisons with groups that a replicate would choose as reference."""
        others = rivals(self._limits, self.confusion, references, self._floors, self.compared)
        self.evidence.n_others = sum(one.groups.size for one in others)
        by_limit = [(limit, [one for one in others if one.limit is limit]) for limit in self._limits]
        by_limit = [(limit, ones) for limit, ones in by_limit if ones]
        if not by_limit:
            return
        single = self._replicates_of(source, sorted({one.at for one in others}))
        theirs = [_stacked([single[one.at] for one in ones], limit.rate) for limit, ones in by_limit]
        for number, groups in enumerate(source.blocks):
            replicates = self._confusion_of(source.tables(number), groups)
            for (limit, ones), other in zip(by_limit, theirs, strict=True):
                sample = self.confusion.proportion(limit.rate)
                self.evidence.fold(limit, ones, sample, replicates.proportion(limit.rate), groups.start, other)

    def judge(self, limit_pvalues: Mapping[tuple[str, int], float]) -> None:
        """Make the rows of all metrics, with verdicts."""
        self.limit_pvalues = limit_pvalues
        self.rows = [self._assess(METRICS[name]) for name in self.settings.metrics]

    # ---------------------------------------------------------------------------------------------------- who is compared
    def _compared(self) -> NDArray[np.bool_]:
        """Tell which groups take part in comparisons: all, unless the policy leaves small or unknown ones out."""
        if not self.policy.min_share:
            return np.ones(len(self.labels), dtype=bool)
        return self._known_groups() & (self._shares() >= self.policy.min_share - 1e-12)

    def _shares(self) -> Floats:
        """Return each group's share of the rows whose group is known."""
        return self.total / max(1.0, float(self.total[self._known_groups()].sum()))

    def _choose_reference(self) -> tuple[int, Reference]:
        name = self.attributes[0] if len(self.attributes) == 1 else self.attributes
        floor = self.policy.least_rows
        if self.attributes in self.settings.reference:
            given = self.settings.reference[self.attributes]
            at = reference_position(self.tally.groups, given, self.attributes)
            return at, Reference(name, self.labels[at], given=True, sufficient=bool(self.total[at] >= floor))
        eligible = self._eligible()
        if self.policy.reference == "first" and eligible.any():
            at = int(np.flatnonzero(eligible)[0])
        else:
            at = choose_reference(self.confusion.rate("favorable_rate"), self.total, eligible, self._known_groups())
        return at, Reference(name, self.labels[at], given=False, sufficient=bool(eligible[at]))

    def _known_groups(self) -> NDArray[np.bool_]:
        return np.array([MISSING not in group for group in self.tally.groups])

    def _eligible(self) -> NDArray[np.bool_]:
        return self._known_groups() & self.compared & (self.total >= self.policy.least_rows)

    def _reference_of(self, metric: Metric) -> int:
        """Return the reference of one metric: the attribute's, or the group where the metric's rate is highest."""
        if self.policy.reference != "highest_value" or self.attributes in self.settings.reference:
            return self.reference_at
        rate = self.confusion.rate(metric.rates[0])
        return choose_reference(rate, self.total, self._eligible(), self._known_groups())

    # ---------------------------------------------------------------------------------------------------------- a metric
    def _assess(self, metric: Metric) -> _Rows:
        if metric.kind == "group":
            return self._assess_groups(metric)
        return self._assess_pairs(metric) if metric.kind == "pair" else self._assess_overall(metric)

    def _known(self, metric: Metric) -> bool:
        return self.tally.labelled or not metric.uses_labels

    def _values(self, metric: Metric) -> Floats:
        """Return the estimates of a metric: by group, or by comparison; computed once."""
        if metric.name not in self._estimates:
            self._estimates[metric.name] = self._computed(metric)
        return self._estimates[metric.name]

    def _computed(self, metric: Metric) -> Floats:
        if metric.kind == "group":
            return np.asarray(metric.function(self.confusion))
        at = self._reference_of(metric)
        others = self._others(at)
        values = metric.function(self.confusion.take(others), self.confusion.take([at]))
        return np.where(self.compared[others], values, np.nan)

    def _needs_replicates(self, metric: Metric) -> bool:
        """Tell whether the intervals of a metric come from replicates."""
        if metric.kind == "overall" or not self._known(metric) or (metric.kind == "pair" and len(self.labels) < 2):
            return False
        # With a survey design the same is shown whether or not there are units to draw: closed forms, or nothing.
        return not (self.policy.method == "auto" and (has_closed_form(metric) or self.tally.design is not None))

    @property
    def resampled(self) -> bool:
        """Whether any interval comes from replicates."""
        return any(self._needs_replicates(METRICS[name]) for name in self.settings.metrics)

    def _fixed_bounds(self, metrics: Sequence[Metric]) -> dict[str, BootstrapBounds]:
        """Return the intervals of the group and pair metrics that need no replicates."""
        bounds = {}
        for metric in metrics:
            if metric.kind == "overall" or self._needs_replicates(metric):
                continue
            values = self._values(metric)
            closed = self._known(metric) and values.size and has_closed_form(metric)
            bounds[metric.name] = self._closed_bounds(metric, values) if closed else _no_bounds(values.size)
        return bounds

    def _parts(self, metrics: Sequence[Metric], groups: slice) -> list[_Part]:
        """Return what intervals of metrics of some groups need but the replicates."""
        parts, inside = [], np.arange(groups.start, groups.stop)
        pairs: dict[int, tuple[NDArray[np.intp], tuple[Confusion, ...], Floats]] = {}
        for metric in metrics:
            if metric.kind == "group":
                left_out = metric.function(self.jackknife.take(groups))
                values, weights = self._values(metric)[groups], self.weights[:, groups]
                parts.append(_Part(metric, inside, None, values, left_out, weights))
                continue
            at = self._reference_of(metric)
            if at not in pairs:
                pairs[at] = self._comparison(inside[inside != at], at)
            others, jackknife, weights = pairs[at]
            values = self._values(metric)[others - (others > at)]
            if values.size:
                parts.append(_Part(metric, others, at, values, metric.function(*jackknife), weights))
        return parts

    def _room(self, parts: Sequence[_Part], spare: list[Floats]) -> Floats:
        """Return room for the replicates of parts, in memory that has been used before where there is enough of it."""
        shape = sum(part.values.size for part in parts), self.policy.n_resamples
        rows = spare.pop() if spare else np.empty(shape)
        return rows[: shape[0]] if len(rows) >= shape[0] else np.empty(shape)

    def _fill(
        self,
        rows: Floats,
        parts: Sequence[_Part],
        tile: slice,
        replicates: Confusion,
        references: Mapping[int, Confusion],
    ) -> None:
        """Write the replicates of all parts of a few groups into their rows, in ascending order."""
        start, own = 0, {part.at: replicates for part in parts}
        for part in parts:
            first, stop = part.groups.searchsorted([tile.start, tile.stop])
            if stop - first < tile.stop - tile.start and own[part.at] is replicates:  # without the reference itself
                own[part.at] = replicates.take(part.groups[first:stop] - tile.start)
            with_reference = () if part.at is None else (references[part.at],)
            out = rows[start + first : start + stop]
            values = part.metric.function(own[part.at], *with_reference)
            if part.at is not None:  # an array of its own, ordered where the processor still has it; rates are kept
                values.sort(axis=1)
            out[:] = values
            if part.at is None:
                out.sort(axis=1)
            start += part.values.size

    def _bounds_of(self, parts: Sequence[_Part], rows: Floats) -> dict[str, BootstrapBounds]:
        """Return the intervals of parts, all at a time: small arrays would cost more than sorting."""
        if not parts:
            return {}
        sizes = [part.values.size for part in parts]
        shape = sum(sizes), max(part.jackknife.shape[1] for part in parts)
        jackknife = np.zeros(shape)
        weights = np.zeros((len(self.weights), *shape))  # shorter rows end in deletions without weight
        places = [slice(stop - size, stop) for size, stop in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
        for place, part in zip(places, parts, strict=True):
            block = place, slice(part.jackknife.shape[1])
            jackknife[block], weights[(slice(None), *block)] = part.jackknife, part.weights
        bends = [bend for bend in map(self._bend, parts) if bend is not None]
        bounds = bootstrap_bounds(
            np.concatenate([part.values for part in parts]),
            rows,
            jackknife,
            weights[0],
            moments=weights[1:] if len(weights) > 1 else None,
            bend=np.concatenate(bends) if bends else None,
            confidence_level=self.policy.confidence_level,
            method="percentile" if self.policy.method == "percentile" else "bca",
            ordered=True,
        )
        return {
            part.metric.name: BootstrapBounds._make(column[place] for column in bounds)
            for place, part in zip(places, parts, strict=True)
        }

    def _closed_bounds(self, metric: Metric, values: Floats) -> BootstrapBounds:
        """Return the closed-form intervals of a metric, none where it is undefined."""
        at = None if metric.kind == "group" else self._reference_of(metric)
        groups = np.arange(len(self.labels)) if at is None else self._others(at)
        bounds, self.methods[metric.name] = closed_form(
            metric, self.confusion, groups, at, self.policy.confidence_level
        )
        blank, no = np.isnan(values), np.zeros(values.size, dtype=bool)
        low, high = (np.where(blank, np.nan, end) for end in bounds)
        return BootstrapBounds(low, high, np.ones(values.size), no, no)

    def _bend(self, part: _Part) -> Floats | None:
        """Return the acceleration by units of a survey design, None without one."""
        design = self.tally.design
        if design is None or design.units is None:
            return None
        n_slots = self.tally.counts[0].size
        rows = np.maximum(self.tally.rows.reshape(-1, n_slots), 1)
        removed = np.ones(rows.shape)  # from each cell: a row, or one of mean weight
        if self.tally.weights is not None:
            removed = self.tally.counts.reshape(rows.shape) / rows
        left_out = part.jackknife
        moved = left_out[:, -1:] - left_out[:, :-1]  # the last is of a row elsewhere: the value itself
        gradients = np.zeros((len(moved), *rows.shape))
        gradients[np.arange(len(moved)), part.groups] = moved[:, :n_slots]
        if part.at is not None:
            gradients[:, part.at] = moved[:, n_slots:]
        gradients /= np.where(removed > 0, removed, 1.0)
        return unit_acceleration(*design.units, gradients.reshape(len(moved), -1).T)

    def _assess_groups(self, metric: Metric) -> _Rows:
        n_groups = len(self.labels)
        rows = self._rows(metric, list(range(n_groups)), None, self._values(metric), self.bounds[metric.name])
        rows.pvalue = rows.power = rows.detectable = np.full(n_groups, np.nan)
        rows.tests = [None] * n_groups
        return rows

    def _assess_pairs(self, metric: Metric) -> _Rows:
        at, bounds = self._reference_of(metric), self.bounds[metric.name]
        others = self._others(at)
        rows = self._rows(metric, others.tolist(), at, self._values(metric), bounds)
        rows.pvalue, rows.tests = self._test(metric, others, at)
        rows.power, rows.detectable = self._power(metric, others, at)
        if rule := self.policy.rule(metric.name):
            self._judge(rows, rule, bounds, others, at)
        return rows

    def _comparison(self, others: NDArray[np.intp], at: int) -> tuple[NDArray[np.intp], tuple[Confusion, ...], Floats]:
        """Return the compared groups, the pairs of leave-one-out tables with one group, and what these stand for."""
        index, weights = pair_leave_one_out(self.weights[0], others, at)
        further = [pair_leave_one_out(part, others, at)[1] for part in self.weights[1:]]
        return others, tuple(map(self.jackknife.take, index)), np.stack([weights, *further])

    def _others(self, at: int) -> NDArray[np.intp]:
        groups = np.arange(len(self.labels), dtype=np.intp)
        return groups[groups != at]

    def _assess_overall(self, metric: Metric) -> _Rows:
        compared = np.flatnonzero(self.compared)
        confusion = self.confusion.take(compared)
        value = float(metric.function(confusion))
        rates = [confusion.rate(name) for name in metric.rates]
        blank = [i for i, ok in zip(compared, np.isfinite(np.sum(rates, axis=0)), strict=True) if not ok]
        defined = [r for r in rates if (~np.isnan(r)).sum() >= 2]
        if defined and not np.isnan(value):
            shown = min(defined, key=lambda r: np.nanmin(r) / np.nanmax(r) if np.nanmax(r) > 0 else 1.0)
            low, high = int(compared[np.nanargmin(shown)]), int(compared[_last_largest(shown)])
        else:
            low = int(compared[0]) if compared.size else 0
            high = next((i for i in [self.reference_at, *map(int, compared)] if i != low), low)
        rows = self._rows(metric, [low], high, np.array([value]), _no_bounds(1), overall=True)
        rows.pvalue, rows.tests = np.array([np.nan]), [None]
        if len(metric.rates) == 1:
            test = next((t for t in self.tests if t["rate"] == metric.rates[0]), None)
            if test is not None:
                rows.pvalue = np.array([test["pvalue"]])
                rows.tests = [None if np.isnan(test["pvalue"]) else test["test"]]
        rows.power = rows.detectable = np.array([np.nan])
        if blank and self._known(metric):
            named = [f"{show(self.labels[i])} ({why_undefined(metric, self.confusion, int(i))})" for i in blank]
            rows.reasons[0] = f"left out as undefined: {', '.join(named)}"
        elif np.isnan(value) and self._known(metric):
            rows.reasons[0] = "fewer than two groups" if compared.size < 2 else f"{metric.rates[0]} is 0 in every group"
        if rule := self.policy.rule(metric.name):
            problem = rows.problems[0]
            verdict, reason = (problem, rows.reasons[0]) if problem else rule.judge(value, np.nan, np.nan)
            if verdict is Verdict.INCONCLUSIVE and rule.basis != "point":
                reason = "no interval of a largest gap is valid near parity; see its chi-square test"
            rows.verdicts[0], rows.reasons[0] = (
                verdict,
                "; ".join(filter(None, [reason, rows.reasons[0] * (not problem)])),
            )
        return rows

    # --------------------------------------------------------------------------------------------------- columns of rows
    def _rows(
        self,
        metric: Metric,
        groups: list[int],
        at: int | None,
        values: Floats,
        bounds: BootstrapBounds,
        *,
        overall: bool = False,
    ) -> _Rows:
        """Return the columns of a metric's findings, with what is wrong with each of them."""
        size = len(groups)
        drawn = "percentile" if self.policy.method == "percentile" else "BCa"
        drawn += "" if self.tally.design is None else f", {self.tally.design.kind}"
        method = self.methods.get(metric.name, drawn)
        methods: list[str | None] = [None if nan else method for nan in np.isnan(bounds.low).tolist()]
        reasons, problems = [""] * size, [None] * size  # type: list[str], list[Verdict | None]
        if not self._known(metric):
            reasons, problems = ["no labels"] * size, [Verdict.INSUFFICIENT_DATA] * size
        else:
            for i in np.flatnonzero(np.isnan(values)):
                problems[i], reasons[i] = self._undefined(metric, groups[i], at)
            short = self._below_floor(metric, groups, at)
            for i in np.flatnonzero(short & ~np.isnan(values)) if not overall else ():
                problems[i], reasons[i] = Verdict.INSUFFICIENT_DATA, self._floor_words(metric, groups[i], at)
            if self.tally.design is not None and not overall:
                for i in np.flatnonzero(np.isnan(bounds.low) & ~np.isnan(values) & (bounds.valid_share == 1)):
                    reasons[i] = "; ".join(filter(None, [reasons[i], self._no_interval(metric)]))
            for i in np.flatnonzero(bounds.degenerate):
                methods[i] = f"{method}, degenerate"
                reasons[i] = "; ".join(
                    filter(None, [reasons[i], "all replicates equal: no width is no proof of certainty"])
                )
            for i in np.flatnonzero(bounds.edge):
                methods[i] = "percentile (BCa: no replicate on one side of the value)"
            for i in np.flatnonzero((bounds.valid_share < 1) & ~np.isnan(values)):
                blank = round((1 - bounds.valid_share[i]) * self.policy.n_resamples)
                words = f"undefined in {blank} of {self.policy.n_resamples} replicates"
                words += ": no interval" if np.isnan(bounds.low[i]) else ""
                reasons[i] = "; ".join(filter(None, [reasons[i], words]))
        descriptive: list[Verdict | None] = [None] * size
        if not self._known(metric):
            descriptive = [Verdict.INSUFFICIENT_DATA] * size
        total = self.total.astype(int).tolist()
        return _Rows(
            metric,
            self.attributes,
            [self.labels[g] for g in groups],
            [None if at is None else self.labels[at]] * size,
            values,
            bounds.low,
            bounds.high,
            methods,
            reasons,
            descriptive,
            problems,
            [total[g] for g in groups],
            [None if at is None else total[at]] * size,
            self._denominators(metric, groups, at),
        )

    def _no_interval(self, metric: Metric) -> str:
        """Return why a value has no interval under a survey design, in words."""
        if self.policy.method == "auto" and not has_closed_form(metric):
            return "no closed form with a survey design"
        return "the design gives it no variance, as when all rows lie in one unit: no interval"

    def _denominators(self, metric: Metric, groups: list[int], at: int | None) -> list[_Denominator]:
        """Return what a metric divides by; metrics with the same denominators share it."""
        names = metric.denominators if self._known(metric) else ()
        key = names, at, metric.kind, *groups[:1]
        if key not in self._counted:
            counts = [self.confusion.rows(name).astype(int) for name in names]
            self._counted[key] = [
                (name, count[groups].tolist(), None if at is None else int(count[at]))
                for name, count in zip(names, counts, strict=True)
            ]
        return self._counted[key]

    def _undefined(self, metric: Metric, group: int, at: int | None) -> tuple[Verdict, str]:
        if at is not None and not self.compared[group]:
            if MISSING in self.tally.groups[group]:
                return Verdict.INSUFFICIENT_DATA, "unknown category: counted, not compared"
            share, limit = float(self._shares()[group]), self.policy.min_share
            shown = round(share, 3) if round(share, 3) < limit else np.floor(1000 * share) / 1000  # 1.99% is not 2.0%
            return Verdict.INSUFFICIENT_DATA, f"left out: {shown:.1%} of the rows (under {limit:.0%})"
        sides = [group] if at is None else [group, at]
        words = [
            f"{show(self.labels[i])} has {why}" for i in sides if (why := why_undefined(metric, self.confusion, i))
        ]
        if not words and at is not None and metric.scale != "difference":
            rate = metric.rates[0]
            zero = not np.nan_to_num(self.confusion.rate(rate)).any()
            words = [f"{rate} is 0 in every group" if zero else f"{rate} of the reference {show(self.labels[at])} is 0"]
        return Verdict.UNDEFINED, " and ".join(words) or metric.otherwise

    def _floored(self, metric: Metric) -> list[str]:
        """Return the counts of a metric that have a floor: its denominators, and the rows where these have one too."""
        names = [*metric.denominators, *(["total"] if "rows" in self.policy.floors else [])]
        return [name for name in dict.fromkeys(names) if self.policy.floor(name)]

    def _below_floor(self, metric: Metric, groups: list[int], at: int | None) -> NDArray[np.bool_]:
        short = np.zeros(len(groups), dtype=bool)
        for name in self._floored(metric):
            floor, count = self.policy.floor(name), self.confusion.rows(name)
            short |= (count[groups] < floor) | (at is not None and bool(count[at] < floor))
        return short

    def _floor_words(self, metric: Metric, group: int, at: int | None) -> str:
        words = []
        for name in self._floored(metric):
            floor, count = self.policy.floor(name), self.confusion.rows(name)
            what = "rows" if name == "total" else name
            sides = [group] if at is None else [group, at]
            words += [
                f"{show(self.labels[i])} has {int(count[i])} {what} (floor {floor})" for i in sides if count[i] < floor
            ]
        return ", ".join(words)

    # ------------------------------------------------------------------------------------------------- tests and power
    def _counts(self, rate: str) -> tuple[Floats, Floats]:
        return self.confusion.proportion(rate)

    def _test_rate(self, rate: str, others: NDArray[np.intp], at: int) -> TwoProportionTestResult:
        if (rate, at) not in self._tested and isinstance(self.confusion, DesignConfusion):
            self._tested[rate, at] = rate_test(self.confusion, rate, others, at)
        if (rate, at) not in self._tested:
            count, nobs = self._counts(rate)
            four = count[others], nobs[others], count[at], nobs[at]
            self._tested[rate, at] = two_proportion_test(*four) if _whole(*four) else _z_test(*four)
        return self._tested[rate, at]

    def _test(self, metric: Metric, others: NDArray[np.intp], at: int) -> tuple[Floats, list[str | None]]:
        """Return the p-values of equal rates: of the metric's one rate, or of two independent ones together (Sidak)."""
        if not self._known(metric) or "f1" in metric.rates or not _has_test(metric):
            return np.full(others.size, np.nan), [None] * others.size
        results = [self._test_rate(rate, others, at) for rate in metric.rates]
        pvalue = np.atleast_1d(results[0].pvalue)
        names: list[str | None] = list(np.atleast_1d(results[0].test))
        if len(results) > 1:
            both = np.stack([np.atleast_1d(result.pvalue) for result in results])
            with np.errstate(divide="ignore"):  # p = 1
                pvalue = -np.expm1(len(results) * np.log1p(-both.min(0)))
            names = [None if nan else "sidak" for nan in np.isnan(pvalue).tolist()]
        pvalue = np.where(self.compared[others], pvalue, np.nan)
        return pvalue, [None if nan else name for nan, name in zip(np.isnan(pvalue).tolist(), names, strict=True)]

    def _power(self, metric: Metric, others: NDArray[np.intp], at: int) -> tuple[Floats, Floats]:
        """Return the power for a gap of 10 points and the gap detected with 80% power; the weaker of two rates."""
        if not self._known(metric) or "f1" in metric.rates or not _has_test(metric):
            return np.full(others.size, np.nan), np.full(others.size, np.nan)
        parts = [self._power_rate(rate, others, at) for rate in metric.rates]
        return np.min([power for power, _ in parts], axis=0), np.max([gap for _, gap in parts], axis=0)

    def _power_rate(self, rate: str, others: NDArray[np.intp], at: int) -> tuple[Floats, Floats]:
        """Return power and detectable gap of one rate; all rates are computed at once, since each is a root search."""
        if at not in self._powers:
            names = [name for name in self._proportions if not np.isnan(self.confusion.rate(name)[at])]
            levels = np.array([[self.confusion.rate(name)[at]] for name in names]).reshape(len(names), 1)
            nobs = np.array([self._counts(name)[1] for name in names]).reshape(len(names), len(self.labels))
            enough = nobs[:, others] > 0
            n, alpha = np.where(enough, nobs[:, others], 1.0), 1 - self.policy.confidence_level
            shifted = np.where(levels <= 0.5, levels + POWER_GAP, levels - POWER_GAP)
            shared = [np.broadcast_to(self.confusion.shared(name, others, at), others.shape) for name in names]
            narrowed = np.reshape(shared, (len(names), others.size)) ** 2  # 1 unless groups lie in the same clusters
            n, m = n / narrowed, nobs[:, [at]] / narrowed
            power = power_two_proportions(shifted, levels, n, m, alpha=alpha)
            gap = minimum_detectable_difference(levels, n, m, alpha=alpha)
            power, gap = np.where(enough, power, np.nan), np.where(enough, gap, np.nan)
            self._powers[at] = {name: (power[i], gap[i]) for i, name in enumerate(names)}
        nan = np.full(others.size, np.nan)
        return self._powers[at].get(rate, (nan, nan))

    def _global_tests(self) -> list[dict[str, Any]]:
        """Return the chi-square test that all groups have the same rate, for each rate."""
        name = self.attributes[0] if len(self.attributes) == 1 else list(self.attributes)
        tests = []
        for rate in self._proportions:
            if isinstance(self.confusion, DesignConfusion):
                wald = global_test(self.confusion, rate, self.compared)
                found = {
                    "test": "F",
                    "statistic": wald.statistic,
                    "dof": wald.dof,
                    "dof_denominator": wald.dof_denominator,
                    "pvalue": wald.pvalue,
                }
                tests.append({"attribute": name, "rate": rate, **found})
                continue
            count, nobs = (counts[self.compared] for counts in self._counts(rate))
            result = chi2_test(count, nobs)
            tests.append(
                {
                    "attribute": name,
                    "rate": rate,
                    "test": "chi2",
                    "statistic": float(result.statistic),
                    "dof": int(result.dof),
                    "pvalue": float(result.pvalue),
                }
            )
        return tests

    # ---------------------------------------------------------------------------------------------------------- verdicts
    def _judge(self, rows: _Rows, rule: Rule, bounds: BootstrapBounds, others: NDArray[np.intp], at: int) -> None:
        """Fill in verdicts and reasons: no labels, then 0/0, then floors, then no interval, then the rule."""
        low, high, values = rows.low.tolist(), rows.high.tolist(), rows.values.tolist()
        metric = rows.metric
        if self._known(metric) and has_closed_form(metric):
            (closed_low, closed_high), name = closed_form(
                metric, self.confusion, others, at, self.policy.confidence_level
            )
        else:
            closed_low = closed_high = np.full(others.size, np.nan)
            name = ""
        one_rate = len(metric.rates) == 1 and is_of_rates(metric)
        level = (1 - self.policy.confidence_level) / 2
        pvalues = [self.limit_pvalues.get((metric.name, g), np.nan) for g in others.tolist()]
        rows.limit_pvalue = np.array(pvalues)
        rows.calibrated = self._calibrated(rule, rows, Bounds(closed_low, closed_high), others, at)
        absolute, degenerate = _is_absolute(metric), bounds.degenerate.tolist()
        closed_low, closed_high = closed_low.tolist(), closed_high.tolist()
        for i, problem in enumerate(rows.problems):
            if problem is not None:
                rows.verdicts[i] = problem
                continue
            ends = low[i], high[i]
            notes = [rows.reasons[i]]
            if degenerate[i] and rule.basis in ("interval", "simultaneous", "gap") and one_rate and name:
                ends = closed_low[i], closed_high[i]
                rows.methods[i] = f"{rows.methods[i]}; judged by {name}"
                notes.append(f"{name} [{ends[0]:.3g}, {ends[1]:.3g}]")
            elif degenerate[i] and rule.basis in ("interval", "simultaneous", "gap"):
                ends = (np.nan, np.nan)
            significant = None
            if rule.basis == "significance":
                significant = self._significant(metric.rates[0], i, others, at)
                count, nobs = self._counts(metric.rates[0])
                if not self.confusion.weighted and flip_flop(count[others[i]], nobs[others[i]], count[at], nobs[at]):
                    notes.append("one more selected here and one fewer in the reference would reverse it (flip-flop)")
            elif rule.basis == "simultaneous":
                significant = pvalues[i] <= level
            verdict, reason = rule.judge(values[i], *ends, significant=significant)
            if verdict is Verdict.CLEARED and rule.basis in ("interval", "simultaneous") and absolute:
                if rule.maximum is not None and above(closed_high[i], rule.maximum):
                    verdict = Verdict.INCONCLUSIVE
                    reason = (
                        f"a gap of {closed_high[i]:.3f} is not excluded (Newcombe; BCa of an absolute gap ends too low)"
                    )
            if rule.basis == "simultaneous" and not isnan(pvalues[i]) and verdict is not Verdict.CLEARED:
                notes.append(f"{_ADJUSTMENTS[self.policy.multiplicity]} p = {pvalues[i]:.2g}")
            rows.verdicts[i], rows.reasons[i] = verdict, "; ".join(filter(None, [reason, *notes]))
            if rows.calibrated[i].startswith(f"{verdict}:"):
                rows.calibrated[i] = ""

    def _calibrated(self, rule: Rule, rows: _Rows, closed: Bounds, others: NDArray[np.intp], at: int) -> list[str]:
        """Return the verdict of the calibrated methods on each comparison that has a value, with the reason, in words."""
        said, metric, values = [""] * others.size, rows.metric, rows.values.tolist()
        if rule.basis == "simultaneous" or not any(limit.metric == metric.name for limit in self._limits):
            return said
        strict = calibrated_rule(rule)
        level = (1 - self.policy.confidence_level) / 2
        meets = meets_floors(metric, self.confusion, self._floors) & self.compared
        enough = (meets[others] & meets[at]).tolist()
        low, high = (end.tolist() for end in (absolute_bounds(*closed) if strict.absolute else closed))
        for i, pvalue in enumerate(rows.limit_pvalue.tolist()):
            if isnan(values[i]):
                continue
            if not enough[i]:
                said[i] = f"{Verdict.INSUFFICIENT_DATA}: fewer than {_floor_list(self._floors, metric)}"
                continue
            ends = low[i], high[i]
            verdict, reason = strict.judge(values[i], *ends, significant=pvalue <= level)
            interval = f"the interval [{ends[0]:.3f}, {ends[1]:.3f}]"
            said[i] = f"{verdict}: {reason.replace('the interval', interval, 1)}"
            if not isnan(pvalue) and verdict is not Verdict.CLEARED:
                said[i] += f"; max-T p = {pvalue:.2g}"
        return said

    def _significant(self, rate: str, i: int, others: NDArray[np.intp], at: int) -> bool | None:
        """Tell whether two standard deviations are exceeded, or Fisher's test rejects where expected counts are small."""
        result = self._test_rate(rate, others, at)
        pvalue = float(np.atleast_1d(result.pvalue)[i])
        if np.isnan(pvalue):
            return None
        if np.atleast_1d(result.test)[i] in ("fisher", "t"):
            return pvalue < 0.05
        return bool(abs(np.atleast_1d(result.statistic)[i]) >= 1.96)

    # -------------------------------------------------------------------------------------------------------------- size
    def _size_notes(self) -> list[str]:
        """Return words on groups and intersections that are small, and on references too small to compare with."""
        name, notes = show(self.attributes), []
        levels = self.policy.size_notes + (self.policy.intersection_size_notes if len(self.attributes) > 1 else ())
        for label, n in zip(self.labels, self.total.astype(int).tolist(), strict=True):
            words = next((words for limit, words in sorted(levels) if n < limit), None)
            if words:
                notes.append(f"{name}={show(label)}: {words} (n={n})")
        numbers = [label for label in self.labels if isinstance(label, int | float) and not isinstance(label, bool)]
        if len(numbers) > _MANY_NUMBERS:
            notes.append(
                f"{name} has {len(numbers)} distinct numbers, each a group of its own; cut it into bands first"
            )
        if len(self.labels) < 2:
            notes.append(f"{name} has one group only; there is nothing to compare")
        elif not self.reference.sufficient:
            notes.append(
                f"no group of {name} meets the floor; the largest, {show(self.reference.group)}, is named reference"
            )
        if len(self.attributes) > 1 and self.tally.n_rows < max(200, 30 * len(self.labels)):
            advised = max(200, 30 * len(self.labels))
            notes.append(
                f"{name}: {self.tally.n_rows} rows for {len(self.labels)} cells; at least {advised} are advised"
            )
        return notes


def _cut(groups: slice, size: int) -> list[slice]:
    """Return consecutive groups a few at a time."""
    return [slice(k, min(k + size, groups.stop)) for k in range(groups.start, groups.stop, size)]


def _stacked(single: Sequence[Confusion], rate: str) -> tuple[Floats, Floats]:
    """Return the replicates of a proportion of single groups, a row each."""
    pairs = [one.proportion(rate) for one in single]
    return np.concatenate([count for count, _ in pairs]), np.concatenate([nobs for _, nobs in pairs])


def _floor_list(policy: Policy, metric: Metric) -> str:
    """Return a policy's floors for a metric, in words."""
    floors = {
        "rows": policy.least_rows,
        **{name: policy.floor(name) for name in metric.denominators if name != "total"},
    }
    return " or ".join(f"{floor} {name}" for name, floor in floors.items() if floor)


def _whole(*counts: Floats) -> bool:
    """Tell whether all counts are whole numbers; effective counts of weighted rows are not, unless weights are equal."""
    return all(bool((count == np.floor(count))[~np.isnan(count)].all()) for count in map(np.asarray, counts))


def _z_test(count: Floats, nobs: Floats, count_reference: Floats, nobs_reference: Floats) -> TwoProportionTestResult:
    """Return the z test whatever is expected: Fisher's test is of whole numbers of rows."""
    statistic, pvalue = two_proportion_ztest(count, nobs, count_reference, nobs_reference)
    test = np.full(np.shape(pvalue), "z", dtype=object)
    test[np.isnan(pvalue)] = None
    return TwoProportionTestResult(statistic, pvalue, test)


def _is_absolute(metric: Metric) -> bool:
    """Tell whether a metric is made of absolute gaps of rates."""
    return metric.parity == 0 and metric.low == 0 and "f1" not in metric.rates and not metric.name.startswith("theil")


def _last_largest(values: Floats) -> int:
    """Return the last position of the largest value, so that a tie of all names two different groups."""
    return values.size - 1 - int(np.nanargmax(values[::-1]))


def _has_test(metric: Metric) -> bool:
    """Tell whether "both groups have the same rate(s)" is the metric's null hypothesis."""
    if metric.name.startswith("theil"):
        return False
    return len(metric.rates) == 1 or (metric.parity == 0 and metric.low == 0)


def _no_bounds(size: int) -> BootstrapBounds:
    nan = np.full(size, np.nan)
    no = np.zeros(size, dtype=bool)
    return BootstrapBounds(nan, nan, np.ones(size), no, no)


def _findings(rows: Sequence[_Rows], policy: Policy) -> tuple[Finding, ...]:
    """Return findings from columns; p-values are adjusted over all comparisons of a metric."""
    adjusted: dict[int, Floats] = {}
    for name in dict.fromkeys(r.metric.name for r in rows):
        family = [r for r in rows if r.metric.name == name]
        pvalues = np.concatenate([r.pvalue for r in family])
        if not np.isnan(pvalues).all():
            pvalues = adjust_pvalues(pvalues, "bh" if policy.multiplicity == "bh" else "holm")
        for r, part in zip(family, np.split(pvalues, np.cumsum([r.pvalue.size for r in family])[:-1]), strict=True):
            adjusted[id(r)] = part
    found: list[Finding] = []
    counted: dict[int, list[dict[str, Any]]] = {}  # one for all metrics that share it
    for r in rows:
        rule = policy.rule(r.metric.name)
        if id(r.denominators) not in counted:
            counted[id(r.denominators)] = _by_name(r.denominators, len(r.groups))
        found += new_findings(
            repeat(r.attributes[0] if len(r.attributes) == 1 else r.attributes, len(r.groups)),
            r.groups,
            r.references,
            repeat(r.metric.name),
            r.values.tolist(),
            r.low.tolist(),
            r.high.tolist(),
            r.methods,
            r.pvalue.tolist(),
            adjusted[id(r)].tolist(),
            r.tests,
            r.n,
            r.n_reference,
            counted[id(r.denominators)],
            r.power.tolist(),
            r.detectable.tolist(),
            repeat(rule.threshold if rule else None),
            r.verdicts,
            r.reasons,
            r.limit_pvalue.tolist() if r.limit_pvalue.size else repeat(float("nan")),
            r.calibrated or repeat(""),
        )
    return tuple(found)


def _by_name(denominators: Sequence[_Denominator], size: int) -> list[dict[str, Any]]:
    """Return denominators as findings have them: by name the count, or that and the reference's."""
    columns = [own if other is None else [(count, other) for count in own] for _, own, other in denominators]
    names = [name for name, _, _ in denominators]
    return [dict(zip(names, counts, strict=True)) for counts in zip(*columns, strict=True)] or [{} for _ in range(size)]


def _undefined(rows: Sequence[_Rows]) -> Iterator[tuple[str, str, str]]:
    """Find what has no value, with the reason."""
    for r in rows:
        for i in np.flatnonzero(np.isnan(r.values)):
            yield show(r.attributes), r.reasons[i], r.metric.name


# --------------------------------------------------------------------------------------------------------- headlines
def _single(blocks: Sequence[_Margin], name: str) -> list[_Rows]:
    """Return a metric's rows over single attributes: intersections never enter a headline."""
    return [rows for block in blocks for rows in block.rows if len(block.attributes) == 1 and rows.metric.name == name]


def _lacking(rows: Sequence[_Rows]) -> str:
    """Return the first comparison that could not be assessed, in words; empty if all could."""
    for r in rows:
        for i, problem in enumerate(r.problems):
            if problem is not None:
                return f"{r.metric.name} of {r.attributes[0]}={show(r.groups[i])}: {problem} ({r.reasons[i]})"
    return ""


def _composite_headline(blocks: Sequence[_Margin]) -> Headline:
    parts = [_single(blocks, name) for name in _COMPOSED]
    scores = _single(blocks, "composite_bias_score")
    if not (scores and all(parts)):
        return Headline(reason="withheld: its parts were not audited")
    if not any(r.groups for r in scores):
        return Headline(reason="withheld: there is no comparison")
    lacking = _lacking([r for part in parts for r in part])
    if lacking:
        return Headline(reason=f"withheld: {lacking}")
    score, r, i = min((float(v), n, i) for n, r in enumerate(scores) for i, v in enumerate(r.values))
    rows = scores[r]
    return Headline(score, composite_band(score), rows.attributes[0], rows.groups[i], rows.references[i])


def _minimum_headline(blocks: Sequence[_Margin]) -> Headline:
    ratios = _single(blocks, "disparate_impact")
    if not ratios:
        return Headline(reason="withheld: disparate_impact was not audited")
    if not any(r.groups for r in ratios):
        return Headline(reason="withheld: there is no comparison")
    lacking = _lacking(ratios)
    if lacking:
        return Headline(reason=f"withheld: {lacking}")
    value, r, i = min((float(v), n, i) for n, r in enumerate(ratios) for i, v in enumerate(r.values))
    rows = ratios[r]
    return Headline(value, None, rows.attributes[0], rows.groups[i], rows.references[i])
