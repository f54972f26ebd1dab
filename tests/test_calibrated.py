"""The calibrated policy and ``method="auto"``: which interval, which test of a limit, and what is adjusted for."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_ethiclens import METRICS, POLICIES, Audit, Policy, Rule, Tally, Verdict, audit_tally
from sklearn_ethiclens._calibrated import (
    CALIBRATED,
    adjusted_pvalues,
    examine,
    has_closed_form,
    limits_of,
    rivals,
)
from sklearn_ethiclens.inference import (
    adjust_pvalues,
    max_t_pvalues,
    miettinen_nurminen_ratio_interval,
    newcombe_interval,
    wilson_interval,
)
from sklearn_ethiclens.inference._gap_intervals import largest_gap_interval
from sklearn_ethiclens.inference._resampling import draw_cells
from sklearn_ethiclens.inference._studentised import log_ratio, rate_difference
from sklearn_ethiclens.metrics._rates import Confusion

GROUPS = {
    "a": {"tp": 90, "fn": 10, "fp": 30, "tn": 70},
    "b": {"tp": 60, "fn": 40, "fp": 10, "tn": 90},
    "c": {"tp": 82, "fn": 18, "fp": 25, "tn": 75},
    "d": {"tp": 45, "fn": 55, "fp": 28, "tn": 72},
}
TALLY = Tally.from_counts(GROUPS)


def finding(audit, metric, group, attribute="group"):
    return next(f for f in audit.findings if (f.metric, f.group, f.attribute) == (metric, group, attribute))


# ----------------------------------------------------------------------------------------------------------- intervals
def test_each_metric_has_the_interval_that_holds_its_level():
    audit = audit_tally(TALLY, reference="a", policy="calibrated")
    b, a = (60 + 10, 200, 90 + 30, 200), (60, 100, 90, 100)
    expected = {
        "disparate_impact": ("Miettinen-Nurminen", miettinen_nurminen_ratio_interval(*b)),
        "statistical_parity_difference": ("Newcombe", newcombe_interval(*b)),
        "true_positive_rate_difference": ("Newcombe", newcombe_interval(*a)),
        "equalized_odds_difference": (
            "Newcombe, largest gap",
            [float(end[0]) for end in largest_gap_interval([[60], [10]], [[100], [100]], [[90], [30]], [[100], [100]])],
        ),
    }
    for metric, (method, bounds) in expected.items():
        found = finding(audit, metric, "b")
        assert found.method == method
        assert (found.low, found.high) == pytest.approx(tuple(bounds), abs=1e-12)
    rate = finding(audit, "true_positive_rate", "b")
    assert (rate.low, rate.high, rate.method) == (*wilson_interval(60, 100), "Wilson")
    absolute = finding(audit, "equal_opportunity_difference", "b")
    signed = finding(audit, "true_positive_rate_difference", "b")
    assert (absolute.low, absolute.high) == (-signed.high, -signed.low)


def test_the_composite_alone_keeps_bca():
    audit = audit_tally(TALLY, policy="calibrated")
    methods = {f.metric: f.method for f in audit.findings if f.method}
    assert {name for name, method in methods.items() if method == "BCa"} == {"composite_bias_score"}
    assert {name for name, method in methods.items() if method != "BCa"} == {
        name for name, metric in METRICS.items() if has_closed_form(metric) and name != "favorable_rate"
    }


@pytest.mark.parametrize("policy", ["ethiclens", "calibrated"])
def test_an_interval_holds_its_value_under_auto(policy):
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.integers(0, 40, (4, 2, 2)) * rng.integers(0, 2, (4, 2, 2))
        table[0] += 1
        tally = Tally(("g",), tuple((i,) for i in range(4)), table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            audit = audit_tally(tally, policy=policy, method="auto", n_resamples=100)
        for f in audit.findings:
            if not np.isnan(f.low):
                assert f.low - 1e-9 <= f.value <= f.high + 1e-9, f


# ------------------------------------------------------------------------------------------------------ what a rule is
def test_a_rule_is_made_of_limits_on_single_rates():
    rules = (
        Rule("disparate_impact", minimum=0.8, maximum=1.25),
        Rule("equalized_odds_difference", maximum=0.1),
        Rule("statistical_parity_difference", maximum=0.05, absolute=True),
        Rule("accuracy_difference", minimum=-0.1),
        Rule("composite_bias_score", minimum=0.6),
        Rule("demographic_parity_ratio", minimum=0.8, basis="point"),
    )
    found = [(limit.metric, limit.rate, limit.scale, limit.bound, limit.upper) for limit in limits_of(rules)]
    assert found == [
        ("disparate_impact", "favorable_rate", "ratio", 0.8, False),
        ("disparate_impact", "favorable_rate", "ratio", 1.25, True),
        ("equalized_odds_difference", "true_positive_rate", "absolute", 0.1, True),
        ("equalized_odds_difference", "false_positive_rate", "absolute", 0.1, True),
        ("statistical_parity_difference", "favorable_rate", "absolute", 0.05, True),
        ("accuracy_difference", "accuracy", "signed", -0.1, False),
    ]


# ------------------------------------------------------------------------------------------------------------ adjusting
def worked_statistics(counts, replicates=None):
    """Every limit's statistic of later groups against the first, from scratch: log ratio, then TPR and FPR gaps."""
    at = counts.astype(float)
    rows, drawn = [], []
    for g in range(1, len(at)):
        own, reference = at[g], at[0]
        selected = own[:, 1].sum(), own.sum(), reference[:, 1].sum(), reference.sum()
        value, error = log_ratio(*map(np.array, selected))
        rows.append((np.log(0.8) - value) / error)
        if replicates is not None:
            o, r = replicates[g], replicates[0]
            v, e = log_ratio(o[:, 1].sum(0), o.sum((0, 1)), r[:, 1].sum(0), r.sum((0, 1)))
            drawn.append(-(v - value) / e)
    for row in (1, 0):
        for g in range(1, len(at)):
            value, error = rate_difference(at[g][row, 1], at[g][row].sum(), at[0][row, 1], at[0][row].sum())
            rows.append((abs(value) - 0.1) / error)
            if replicates is not None:
                o, r = replicates[g][row], replicates[0][row]
                v, e = rate_difference(o[1], o.sum(0), r[1], r.sum(0))
                drawn.append(np.sign(value) * (v - value) / e)
    return np.array(rows), np.array(drawn)


def test_adjusted_pvalues_are_step_down_max_t_over_all_that_is_judged():
    # In order a, b, c, d; the draw is the audit's own, so p-values agree to the last digit.
    counts = TALLY.counts
    cells = counts.ravel()
    replicates = draw_cells(cells, 2000, 0).reshape(4, 2, 2, -1)
    statistics, drawn = worked_statistics(counts, replicates)
    near = statistics > -2
    by_hand = np.ones(9)
    by_hand[near] = max_t_pvalues(statistics[near], drawn[near])
    audit = audit_tally(TALLY, reference="a", policy="calibrated")
    for i, group in enumerate("bcd"):
        ratio = finding(audit, "disparate_impact", group).limit_pvalue
        gap = finding(audit, "equalized_odds_difference", group).limit_pvalue
        for found, own in ((ratio, [i]), (gap, [3 + i, 6 + i])):
            expected = by_hand[own].min()
            if statistics[own].max() > 1:
                assert found == pytest.approx(expected, abs=1e-12)
            else:
                assert found >= expected - 1e-12
    assert finding(audit, "disparate_impact", "b").limit_pvalue < 0.025


def test_all_attributes_and_intersections_are_one_family():
    groups = {
        ("a", "x"): (90, 20, 30, 60),
        ("a", "y"): (80, 25, 35, 60),
        ("b", "x"): (55, 15, 55, 75),
        ("b", "y"): (56, 16, 54, 74),
    }
    tally = Tally.from_counts(
        {key: dict(zip(("tp", "fp", "fn", "tn"), cells, strict=True)) for key, cells in groups.items()},
        attribute=["g", "h"],
    )
    reference = {"g": "a", "h": "x", ("g", "h"): ("a", "x")}
    audit = audit_tally(tally, policy="calibrated", reference=reference, intersections="all")
    draws = draw_cells(tally.counts.ravel(), 2000, 0).reshape(2, 2, 2, 2, -1)  # g, h, label, decision, replicate
    cells = tally.counts.reshape(2, 2, 2, 2)
    margins = [
        worked_statistics(cells.sum(1), draws.sum(1)),
        worked_statistics(cells.sum(0), draws.sum(0)),
        worked_statistics(tally.counts, draws.reshape(4, 2, 2, -1)),
    ]
    statistics, drawn = (np.concatenate(parts) for parts in zip(*margins, strict=True))
    near = statistics > -2
    by_hand = np.ones(statistics.size)
    by_hand[near] = max_t_pvalues(statistics[near], drawn[near])
    assert statistics[0] > 1  # the ratio of b to a
    alone = max_t_pvalues(margins[0][0], margins[0][1])[0]
    assert alone < by_hand[0]
    assert finding(audit, "disparate_impact", "b", "g").limit_pvalue == pytest.approx(by_hand[0], abs=1e-12)
    both = (
        np.flatnonzero(statistics[6:9] > 1) + 6
    )  # ratios of the intersection: after one and one gap of each attribute
    assert both.size
    for place in both:
        group = tally.groups[place - 5]
        found = finding(audit, "disparate_impact", group, ("g", "h")).limit_pvalue
        assert found == pytest.approx(by_hand[place], abs=1e-12)


def test_a_flag_needs_the_interval_and_the_adjusted_test():
    rng = np.random.default_rng(0)
    seen = set()
    for seed in range(60):
        shares = rng.dirichlet(np.ones(6))
        table = np.stack([rng.multinomial(int(300 * share * 6), rng.dirichlet([3, 2, 2, 4])) for share in shares]) + 1
        tally = Tally(("g",), tuple((i,) for i in range(6)), table.reshape(6, 2, 2))
        audit = audit_tally(
            tally, policy="calibrated", n_resamples=500, random_state=seed, metrics=["disparate_impact"]
        )
        for f in audit.judged:
            if f.verdict in (Verdict.UNDEFINED, Verdict.INSUFFICIENT_DATA):
                continue
            beyond = f.high < 0.8 if f.metric == "disparate_impact" else f.low > 0.1
            inside = f.low >= 0.8 if f.metric == "disparate_impact" else f.high <= 0.1
            expected = Verdict.FLAGGED if beyond and f.limit_pvalue <= 0.025 else Verdict.INCONCLUSIVE
            assert f.verdict is (Verdict.CLEARED if inside else expected), f
            seen.add((beyond, f.limit_pvalue <= 0.025))
    assert seen >= {(True, True), (True, False), (False, False)}


def test_a_reference_chosen_from_the_data_is_allowed_for():
    counts = {g: {"n": 200, "selected": s} for g, s in zip("abcdef", (70, 69, 68, 67, 45, 66), strict=True)}
    tally = Tally.from_counts(counts)
    chosen, given = audit_tally(tally, policy="calibrated"), audit_tally(tally, policy="calibrated", reference="a")
    assert chosen.references[0].group == given.references[0].group == "a"
    pairs = list(zip(chosen.judged, given.judged, strict=True))
    assert all(c.limit_pvalue >= g.limit_pvalue for c, g in pairs if not np.isnan(c.limit_pvalue))
    e = finding(chosen, "disparate_impact", "e"), finding(given, "disparate_impact", "e")
    assert e[0].limit_pvalue > 1.5 * e[1].limit_pvalue


def test_replicates_of_what_cannot_be_flagged_are_folded_without_changing_what_can():
    rng = np.random.default_rng(3)
    table = rng.integers(20, 60, (8, 2, 2))
    confusion = Confusion(table.astype(float))
    drawn = draw_cells(table.ravel(), 400, 0).reshape(8, 2, 2, -1)
    replicates = Confusion(np.moveaxis(np.moveaxis(drawn, -1, 1), (2, 3), (-2, -1)))
    limits = limits_of(CALIBRATED.rules)
    usable = np.ones(8, dtype=bool)
    at = {limit.metric: 0 for limit in limits}
    evidence = examine(limits, confusion, at, CALIBRATED, usable)
    evidence.add(evidence.collect(replicates, 0, {0: replicates.take([0])}))
    assert all(evidence.examined[number].statistic[i] > 1 for number, i in evidence.kept)
    assert evidence.folded is not None
    (pvalues,) = adjusted_pvalues([evidence])
    assert set(pvalues) == {(metric, g) for metric in at for g in range(1, 8)}
    assert all(0 < p <= 1 for p in pvalues.values())


@pytest.mark.parametrize("low", [20, 0], ids=["usual", "rare"])
def test_rivals_that_are_not_computed_would_change_nothing(low):
    rng = np.random.default_rng(5)
    n_groups, blocks = 30, [slice(0, 11), slice(11, 30)]
    table = rng.integers(low, 60, (n_groups, 2, 2))
    table[3, :, 1] = low  # with low = 0: a group that never gets the decision, and one that always does
    table[4, :, 0] = low
    confusion = Confusion(table.astype(float))
    drawn = rng.poisson(table[:, None], size=(n_groups, 300, 2, 2)).astype(float)
    drawn[:, 7] = 0  # a replicate without rows
    replicates, limits = Confusion(drawn), limits_of(POLICIES["assessor"].rules + CALIBRATED.rules)
    usable, floors = np.ones(n_groups, dtype=bool), POLICIES["four_fifths"]
    assert {limit.scale for limit in limits} >= {"ratio", "absolute"}
    evidence = examine(limits, confusion, {limit.metric: 0 for limit in limits}, floors, usable)
    expected = np.full(300, -np.inf)
    for limit in limits:
        against = rivals([limit], confusion, {limit.metric: [1, 2, 4, 9, 15]}, floors, usable)
        pair = replicates.proportion(limit.rate)
        others = tuple(part[[1, 2, 4, 9, 15]] for part in pair)
        for block in blocks:
            own = tuple(part[block] for part in pair)
            evidence.fold(limit, against, confusion.proportion(limit.rate), own, block.start, others)
        function = log_ratio if limit.scale == "ratio" else rate_difference
        for one in against:
            near = np.flatnonzero(one.statistic > -2)
            mine = (part[one.groups[near]] for part in pair)
            value, error = function(*mine, *(part[[one.at]] for part in pair))
            with np.errstate(divide="ignore", invalid="ignore"):
                centred = one.sign[near, None] * (value - one.estimate[near, None]) / error
            expected = np.fmax(expected, np.fmax.reduce(centred, axis=0))
    np.testing.assert_array_equal(evidence.folded, expected)
    assert np.isneginf(expected[7])
    assert np.isfinite(np.delete(expected, 7)).all()


def test_holm_on_request_adjusts_the_levels_at_which_intervals_pass_their_limits():
    audit = audit_tally(TALLY, reference="a", policy="calibrated", multiplicity="holm")
    judged = [f for f in audit.judged if not np.isnan(f.limit_pvalue)]
    assert len(judged) == 6
    single = []
    for f in judged:
        other = TALLY.groups.index((f.group,))
        low, high = 0.0, 1.0  # bisect the level at which the interval just reaches the limit
        for _ in range(60):
            level = (low + high) / 2
            t = TALLY.counts[[other, 0]].astype(float)
            if f.metric == "disparate_impact":
                s, n = t[:, :, 1].sum(1), t.sum((1, 2))
                beyond = miettinen_nurminen_ratio_interval(s[0], n[0], s[1], n[1], confidence_level=level).high < 0.8
            else:
                rows = [t[0, ::-1, 1], t[0].sum(1)[::-1], t[1, ::-1, 1], t[1].sum(1)[::-1]]
                beyond = largest_gap_interval(*(r[:, None] for r in rows), confidence_level=level).low[0] > 0.1
            low, high = (level, high) if beyond else (low, level)
        single.append((1 - low) / 2 if low > 0 else 1.0)
    np.testing.assert_allclose([f.limit_pvalue for f in judged], adjust_pvalues(single, "holm"), atol=1e-6)


def test_a_group_that_is_never_selected_is_flagged():
    tally = Tally.from_counts({"f": {"n": 5000, "selected": 0}, "m": {"n": 5000, "selected": 1000}})
    (ratio,) = [f for f in audit_tally(tally, policy="calibrated").judged if f.metric == "disparate_impact"]
    assert ratio.verdict is Verdict.FLAGGED
    assert (ratio.value, ratio.low) == (0, 0)
    assert 0 < ratio.high < 0.01


def test_floors_are_ten_positives_ten_negatives_and_thirty_rows():
    counts = {
        "few positives": {"tp": 5, "fn": 4, "fp": 20, "tn": 30},
        "few rows": {"tp": 6, "fn": 5, "fp": 6, "tn": 12},
        "enough": {"tp": 5, "fn": 5, "fp": 10, "tn": 10},
        "reference": {"tp": 90, "fn": 10, "fp": 20, "tn": 80},
    }
    audit = audit_tally(Tally.from_counts(counts), policy="calibrated", reference="reference")
    verdicts = {(f.metric, f.group): f.verdict for f in audit.judged}
    insufficient = {key for key, verdict in verdicts.items() if verdict is Verdict.INSUFFICIENT_DATA}
    assert insufficient == {
        ("equalized_odds_difference", "few positives"),
        ("equalized_odds_difference", "few rows"),
        ("disparate_impact", "few rows"),
    }


# ------------------------------------------------------------------------------------------------- under other policies
def test_a_finding_says_when_the_calibrated_verdict_differs_and_why():
    # TPR .532 against .700, FPR .304 against .150: only BCa of the larger of the two gaps lies above .10.
    counts = {
        "a": {"tp": 700, "fn": 300, "fp": 150, "tn": 850},
        "b": {"tp": 133, "fn": 117, "fp": 76, "tn": 174},
    }
    audit = audit_tally(Tally.from_counts(counts), reference="a")
    gap = finding(audit, "equalized_odds_difference", "b")
    assert gap.verdict is Verdict.FLAGGED
    assert gap.calibrated.startswith("INCONCLUSIVE: ")
    calibrated = finding(audit_tally(Tally.from_counts(counts), reference="a", policy="calibrated"), gap.metric, "b")
    assert calibrated.verdict is Verdict.INCONCLUSIVE
    assert calibrated.calibrated == ""
    assert gap.calibrated.startswith(
        f"INCONCLUSIVE: the interval [{calibrated.low:.3f}, {calibrated.high:.3f}] holds 0.1"
    )


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "calibrated"])
def test_what_a_finding_says_of_the_calibrated_verdict_is_what_that_policy_finds(policy):
    rng = np.random.default_rng(7)
    given = POLICIES[policy]
    for seed in range(8):
        table = rng.multinomial(900, rng.dirichlet(np.ones(16))).reshape(4, 2, 2) + 3
        tally = Tally(("g",), tuple((i,) for i in range(4)), table)
        audit = audit_tally(tally, policy=policy, reference=0, random_state=seed, n_resamples=500)
        rules = {f.metric: given.rule(f.metric) for f in audit.judged}
        limits = {m: rule for m, rule in rules.items() if any(limit.metric == m for limit in limits_of([rule]))}
        strict = Policy(
            "strict",
            "",
            rules=tuple(
                Rule(m, r.minimum, r.maximum, "simultaneous", r.absolute or r.basis == "gap") for m, r in limits.items()
            ),
            method="auto",
            multiplicity="max-t",
            floors=dict(CALIBRATED.floors),
            n_resamples=500,
        )
        if not limits:
            assert not any(f.calibrated for f in audit.findings)
            continue
        other = audit_tally(tally, policy=strict, reference=0, random_state=seed)
        for f in audit.judged:
            if f.metric in limits:
                same = finding(other, f.metric, f.group, "g")
                said = f.calibrated.split(":")[0] if f.calibrated else str(f.verdict)
                assert said == str(same.verdict), (f, same)


def test_what_is_said_survives_json():
    audit = audit_tally(TALLY, policy="calibrated")
    assert Audit.from_json(audit.to_json()) == audit
    again = audit_tally(TALLY, policy="ethiclens").rejudge("calibrated")
    assert [f.limit_pvalue for f in again.judged] == [f.limit_pvalue for f in audit.judged]


def test_results_do_not_depend_on_threads():
    one, two = (audit_tally(TALLY, policy="calibrated", n_jobs=n, n_resamples=3000) for n in (1, 2))
    assert one.to_json() == two.to_json()
