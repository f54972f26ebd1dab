"""The scan of subgroups: who is scanned, numbers against a plain computation, calibration, and what it says."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from typer.testing import CliRunner

from sklearn_ethiclens import POLICIES, Audit, Tally, _scan, audit, audit_tally
from sklearn_ethiclens._scan import scan_depth, scan_section
from sklearn_ethiclens._weights import CellWeights
from sklearn_ethiclens.cli import app
from sklearn_ethiclens.inference import max_t_pvalues, newcombe_interval
from sklearn_ethiclens.inference._resampling import draw_cells, draw_tables
from sklearn_ethiclens.inference._studentised import rate_difference

LEVELS = {"sex": ["F", "M"], "race": ["a", "b", "c", "d"], "age": ["x", "y", "z"]}
GROUPS = tuple(product(*LEVELS.values()))
SHARES = np.array([np.prod(w) for w in product([0.5, 0.5], [0.55, 0.25, 0.13, 0.07], [0.5, 0.3, 0.2])])
POLICY = POLICIES["ethiclens"].replace(n_resamples=400)
FLOORLESS = POLICY.replace(floors={})
LOOSE = {"outcome": "favorable", "seed": 0}


def draw(rng, n, rate, base=0.4):
    """Return a tally of n rows whose decisions do not depend on the labels; ``rate`` is one number or one a group."""
    rate = np.broadcast_to(rate, SHARES.shape)
    by_truth = np.stack([SHARES * (1 - base), SHARES * base], -1)[..., np.newaxis]
    cells = by_truth * np.stack([1 - rate, rate], -1)[:, np.newaxis]
    return Tally(tuple(LEVELS), GROUPS, rng.multinomial(n, (cells / cells.sum()).ravel()).reshape(cells.shape))


def all_rows(monkeypatch, *arguments, **options):
    """Return the table of a scan with every comparison in it, in place of ten."""
    monkeypatch.setattr(_scan, "_SHOWN", 10**6)
    return scan_section(*arguments, **options).frame()


@pytest.fixture
def tally():
    return draw(np.random.default_rng(7), 4000, 0.3)


# ----------------------------------------------------------------------------------------------------------- the asking
@pytest.mark.parametrize(
    ("asked", "depth"), [("scan", 2), ("scan:3", 3), (" scan : 1 ", 1), ("all", None), (2, None), (None, None)]
)
def test_depth_is_read(asked, depth):
    assert scan_depth(asked) == depth


@pytest.mark.parametrize(
    "asked", ["scan:", "scan:0", "scan:000", "scan:-1", "scan:two", "scan:1.5", "scan:" + "9" * 5000]
)
def test_a_depth_that_is_no_number_is_refused(asked, tally):
    with pytest.raises(ValueError, match="a whole number of at least 1; got"):
        audit_tally(tally, intersections=asked)


def test_a_scan_adds_a_section_and_no_intersection(tally):
    plain = audit_tally(tally, n_resamples=200)
    found = audit_tally(tally, intersections="scan:3", n_resamples=200)
    assert found.plan == (("sex",), ("race",), ("age",))
    assert found.to_dict()["findings"] == plain.to_dict()["findings"]
    assert [section.key for section in found.sections] == ["scan"]
    assert plain.sections == ()
    assert "scan" not in plain.parameters
    assert Audit.from_json(found.to_json()) == found
    judged = found.rejudge(found.policy)
    assert judged.section("scan") == found.section("scan")
    assert "Scan of subgroups" in found.report("text")
    assert "Scan of subgroups" in found.report("html")


def test_control_features_are_not_scanned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 600), "race": rng.choice(["a", "b"], 600)})
    decisions = rng.integers(0, 2, 600)
    options = {"sensitive_features": frame, "intersections": "scan", "n_resamples": 100}
    plain = audit(None, decisions, **options)
    controlled = audit(None, decisions, control_features={"dept": rng.choice([1, 2, 3], 600)}, **options)
    assert controlled.section("scan") == plain.section("scan")
    assert [section.key for section in controlled.sections] == ["scan", "strata", "strata tables"]


def test_the_command_line_scans(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 600), "race": rng.choice(["a", "b"], 600)})
    frame.assign(out=rng.integers(0, 2, 600)).to_csv(tmp_path / "rows.csv", index=False)
    arguments = [
        "audit",
        str(tmp_path / "rows.csv"),
        "--y-pred",
        "out",
        "--sensitive",
        "sex,race",
        "--n-resamples",
        "100",
    ]
    result = CliRunner().invoke(app, [*arguments, "--intersections", "scan:2", "--fail-on", "none"])
    assert result.exit_code == 0, result.output
    assert "Scan of subgroups" in result.output


# -------------------------------------------------------------------------------------------------------- who is scanned
def plain_subgroups(tally, depth, least):
    """Return the subgroups by name and the groups in each, found by going through all combinations of values."""
    found, small = {}, 0
    sizes = tally.counts.sum((1, 2))
    for k in range(1, depth + 1):
        for chosen in combinations(range(len(tally.attributes)), k):
            for values in dict.fromkeys(tuple(group[j] for j in chosen) for group in tally.groups):
                inside = np.array([tuple(group[j] for j in chosen) == values for group in tally.groups])
                if sizes[inside].sum() < least or sizes[~inside].sum() < least:
                    small += 1
                    continue
                words = " & ".join(f"{tally.attributes[j]}={v}" for j, v in zip(chosen, values, strict=True))
                found[words] = inside
    return found, small


@pytest.mark.parametrize("depth", [1, 2, 3, 9])
def test_every_subgroup_is_scanned_or_counted_as_left_out(tally, monkeypatch, depth):
    expected, small = plain_subgroups(tally, min(depth, 3), 100)
    section = scan_section(tally, depth, policy=POLICY, **LOOSE)
    frame = all_rows(monkeypatch, tally, depth, policy=POLICY, **LOOSE)
    scanned = set(frame["subgroup"])
    assert len(scanned & {"sex=F", "sex=M"}) == 1  # either is everybody but the other
    assert scanned | {"sex=F", "sex=M"} == set(expected)
    assert section.lines[0].startswith(f"{len(expected) - 1} subgroups")
    assert section.lines[1].startswith(
        f"Left out: {small} subgroups that have, or leave, fewer than 100 rows, and 1 that"
    )


def test_the_half_with_the_lower_rate_stands_for_both(monkeypatch):
    for favored in ("F", "M"):
        counts = {sex: {"n": 500, "selected": 300 if sex == favored else 200} for sex in "FM"}
        frame = all_rows(monkeypatch, Tally.from_counts(counts, attribute="sex"), 2, policy=POLICY, **LOOSE)
        assert list(frame["subgroup"]) == [f"sex={'M' if favored == 'F' else 'F'}"]
        assert frame["difference"][0] == pytest.approx(-0.2)


def test_the_same_people_are_scanned_once_by_their_shortest_name(monkeypatch):
    groups = {("F", "yes"): 200, ("F", "no"): 300, ("M", "no"): 500}
    counts = {group: {"n": n, "selected": n // 3} for group, n in groups.items()}
    tally = Tally.from_counts(counts, attribute=("sex", "pregnant"))
    frame = all_rows(monkeypatch, tally, 2, policy=POLICY, **LOOSE)
    # sex=F, sex=M and sex=M & pregnant=no part people alike, as do pregnant=yes, pregnant=no and sex=F & pregnant=yes
    assert len(frame) == 3
    assert not {"sex=M & pregnant=no", "sex=F & pregnant=yes"} & set(frame["subgroup"])
    assert "sex=F & pregnant=no" in set(frame["subgroup"])


def test_floors_are_the_policys_and_at_least_30_rows_and_10_outcomes(monkeypatch):
    counts = {
        "a": {"tp": 5, "fp": 4, "fn": 4, "tn": 16},  # 29 rows
        "b": {"tp": 5, "fp": 5, "fn": 4, "tn": 26},  # 40 rows, 9 positives
        "c": {"tp": 60, "fp": 50, "fn": 50, "tn": 60},
        "d": {"tp": 60, "fp": 50, "fn": 50, "tn": 60},
    }
    tally = Tally.from_counts(counts)
    frame = all_rows(monkeypatch, tally, 1, policy=FLOORLESS, **LOOSE)
    by_rate = frame.groupby("rate")["subgroup"].agg(set).to_dict()
    assert by_rate["favorable_rate"] == {"group=b", "group=c", "group=d"}
    assert by_rate["true_positive_rate"] == {"group=c", "group=d"}
    assert by_rate["false_positive_rate"] == {"group=b", "group=c", "group=d"}
    lines = " ".join(scan_section(tally, 1, policy=FLOORLESS, **LOOSE).lines)
    assert "Not compared by true positive rate, with fewer than 10 positives: 1 subgroups." in lines
    strict = all_rows(monkeypatch, tally, 1, policy=POLICY, **LOOSE)
    assert set(strict["subgroup"]) == {"group=c", "group=d"}


def test_without_labels_only_the_favourable_rate_is_scanned(monkeypatch):
    counts = {g: {"n": 200, "selected": 80} for g in "abc"}
    frame = all_rows(monkeypatch, Tally.from_counts(counts), 1, policy=POLICY, **LOOSE)
    assert set(frame["rate"]) == {"favorable_rate"}


def test_nothing_to_compare_is_said():
    section = scan_section(Tally.from_counts({"a": {"n": 20, "selected": 9}}), 2, policy=POLICY, **LOOSE)
    assert section.rows == ()
    assert section.lines[-1] == "Nothing could be compared."


def test_groups_without_rows_are_no_subgroups(tally):
    wider = Tally(
        tally.attributes, (*tally.groups, ("F", "e", "x")), np.concatenate([tally.counts, np.zeros((1, 2, 2))])
    )
    assert scan_section(wider, 2, policy=POLICY, **LOOSE) == scan_section(tally, 2, policy=POLICY, **LOOSE)


@pytest.mark.parametrize("asked", ["Scan", ["scan"], ("scan:2",)])
def test_a_scan_asked_for_in_other_words_is_told_how(asked, tally):
    with pytest.raises(ValueError, match="A scan is asked for by that word alone: intersections='scan'"):
        audit_tally(tally, intersections=asked)


def test_too_many_combinations_are_refused(monkeypatch, tally):
    monkeypatch.setattr(_scan, "_MOST_MEMBERSHIPS", 100)
    with pytest.raises(ValueError, match=r"too many: lower k in intersections='scan:k', or give fewer attributes"):
        scan_section(tally, 2, policy=POLICY, **LOOSE)


# --------------------------------------------------------------------------------------------------------------- numbers
def test_numbers_agree_with_a_plain_computation(tally, monkeypatch):
    policy = FLOORLESS
    frame = all_rows(monkeypatch, tally, 2, policy=policy, **LOOSE).set_index(["subgroup", "rate"])
    inside, _ = plain_subgroups(tally, 2, 30)
    seed = int(np.random.SeedSequence([0, 0]).generate_state(1, np.uint64)[0])
    occupied = np.flatnonzero(tally.counts)
    drawn = np.zeros((policy.n_resamples, tally.counts.size))
    drawn[:, occupied] = draw_cells(tally.counts.ravel()[occupied], policy.n_resamples, seed).T
    drawn = drawn.reshape(-1, *tally.counts.shape)

    def counts(tables, words, rate):
        own = tables[..., inside[words], :, :].sum(-3)
        rest = tables.sum(-3) - own
        picked = []
        for t in (own, rest):
            if rate == "favorable_rate":
                picked += [t[..., 1].sum(-1), t.sum((-2, -1))]
            else:
                truth = int(rate == "true_positive_rate")
                picked += [t[..., truth, 1], t[..., truth, :].sum(-1)]
        return picked

    def pooled(x, n, y, m):
        p = (x + y + 0.5) / (n + m + 1)
        return np.abs(x / n - y / m), np.sqrt(p * (1 - p) * (1 / n + 1 / m))

    observed, replicates, deviations = [], [], []
    for words, rate in frame.index:
        x, n, y, m = counts(tally.counts.astype(float), words, rate)
        gap, error = pooled(x, n, y, m)
        observed.append(gap / error)
        star = counts(drawn, words, rate)
        value, own_error = rate_difference(*star)
        widened = np.sqrt((1 / n + 1 / m) / ((1 - 1 / n) / n + (1 - 1 / m) / m))
        replicates.append(widened * np.abs(value - (x / n - y / m)) / pooled(*star)[1])
        deviations.append(np.abs(value - (x / n - y / m)) / own_error)
        row = frame.loc[(words, rate)]
        assert_allclose([row["value"], row["others"], row["difference"]], [x / n, y / m, x / n - y / m])
        assert row["n"] == tally.counts[inside[words]].sum()
    # equal but for rounding: ties of a statistic with its own replicates do not occur here
    assert_allclose(frame["pvalue_adjusted"], max_t_pvalues(observed, replicates))
    quantile = np.sort(np.max(deviations, axis=0))[int(np.ceil(0.95 * 401)) - 1]
    for (words, rate), row in frame.iterrows():
        counted = counts(tally.counts.astype(float), words, rate)
        expected = newcombe_interval(*counted, confidence_level=1 - 2 * ndtr(-quantile))
        assert_allclose([row["low"], row["high"]], [expected.low, expected.high], atol=1e-9)


def test_rows_are_sorted_by_adjusted_p_then_by_gap(tally, monkeypatch):
    ten = scan_section(tally, 3, policy=POLICY, **LOOSE).frame()
    frame = all_rows(monkeypatch, tally, 3, policy=POLICY, **LOOSE)
    keys = list(zip(frame["pvalue_adjusted"], -frame["difference"].abs(), strict=True))
    assert keys == sorted(keys)
    assert ten.equals(frame.head(10))


def test_the_result_depends_on_the_seed_and_on_nothing_else(tally):
    policy = POLICY.replace(n_resamples=2500)
    found = scan_section(tally, 2, outcome="favorable", policy=policy, seed=3)
    assert scan_section(tally, 2, outcome="favorable", policy=policy, seed=3, n_jobs=2) == found
    assert scan_section(tally, 2, outcome="favorable", policy=policy, seed=4) != found
    turned = Tally(tally.attributes, tally.groups[::-1], tally.counts[::-1])
    again = scan_section(turned.marginal(tally.attributes), 2, outcome="favorable", policy=policy, seed=3)
    assert again == found


def test_blocks_bound_the_memory_and_are_as_good(tally, monkeypatch):
    whole = scan_section(tally, 2, policy=POLICY, **LOOSE).frame()
    sizes = []

    def watched(*arguments):
        sizes.append(arguments[4])
        return draw_tables(*arguments)

    monkeypatch.setattr(_scan, "draw_tables", watched)
    monkeypatch.setattr(_scan, "_BLOCK_VALUES", 50_000)
    blocks = scan_section(tally, 2, policy=POLICY, **LOOSE).frame()
    assert sum(sizes) == 400
    assert len(sizes) > 3
    assert max(sizes) < 200
    assert_allclose(blocks["pvalue_adjusted"].min(), whole["pvalue_adjusted"].min(), atol=0.08)


def test_thousands_of_cells_are_scanned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, k, 20_000) for name, k in zip("abcd", (12, 10, 8, 5), strict=True)})
    tally = Tally.from_predictions(rng.integers(0, 2, 20_000), rng.integers(0, 2, 20_000), sensitive_features=frame)
    assert len(tally.groups) > 4000
    section = scan_section(tally, 2, policy=POLICY.replace(n_resamples=100), **LOOSE)
    assert section.lines[0].startswith(f"{35 + sum(a * b for a, b in combinations((12, 10, 8, 5), 2))} subgroups")


# -------------------------------------------------------------------------------------------------------------- weights
def weighted_scan(frame, y_true, y_pred, weight, **options):
    found = audit(
        y_true, y_pred, sensitive_features=frame, sample_weight=weight, intersections="scan", n_resamples=300, **options
    )
    return found.section("scan").frame().set_index(["subgroup", "rate"]).sort_index()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({name: rng.choice(values, 3000) for name, values in LEVELS.items()})
    return frame, rng.integers(0, 2, 3000), rng.random(3000) < np.where(frame["race"] == "b", 0.2, 0.4)


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_equal_weights_scan_as_none(rows, weight):
    with_weights, without = weighted_scan(*rows, np.full(3000, weight)), weighted_scan(*rows, None)
    pd.testing.assert_frame_equal(with_weights, without, rtol=1e-9)


def test_a_common_factor_and_rows_without_weight_scan_alike(rows):
    weight = np.random.default_rng(1).lognormal(0, 1, 3000) * (np.arange(3000) % 9 > 0)
    kept, found = weight > 0, weighted_scan(*rows, weight)
    pd.testing.assert_frame_equal(weighted_scan(*rows, 512 * weight), found, rtol=1e-9)
    pd.testing.assert_frame_equal(weighted_scan(*(part[kept] for part in rows), weight[kept]), found, rtol=1e-9)


def test_whole_weights_scan_the_rates_of_rows_that_stand_several_times(rows, monkeypatch):
    monkeypatch.setattr(_scan, "_SHOWN", 10**6)
    weight = np.random.default_rng(2).integers(1, 5, 3000)
    again = np.repeat(np.arange(3000), weight)
    frame, y_true, y_pred = rows
    found = weighted_scan(*rows, weight)
    repeated = weighted_scan(frame.iloc[again].reset_index(drop=True), y_true[again], y_pred[again], None)
    columns = ["value", "others", "difference"]
    pd.testing.assert_frame_equal(found[columns], repeated[columns], rtol=1e-9)
    assert (found["high"] - found["low"] > repeated["high"] - repeated["low"]).all()
    assert found["n"].max() < 3000 < repeated["n"].max()
    assert found.loc[("race=b", "favorable_rate"), "pvalue_adjusted"] < 0.05


def test_weights_that_leave_less_than_one_row_of_an_outcome_leave_no_number_out():
    rng = np.random.default_rng(4)
    weights = CellWeights.from_rows(rng.lognormal(0, 2.5, 900), rng.integers(0, 96, 900), (24, 2, 2))
    tally = Tally(tuple(LEVELS), GROUPS, weights.sums, weights=weights)
    worth = weights.sums.sum() ** 2 / weights.squares.sum() / 900
    assert 10 * worth < 1 < weights.rows.sum((0, 2)).min()  # the floor is 10 rows
    section = scan_section(tally, 2, policy=POLICY, **LOOSE)
    assert any("too few for the p-values" in line for line in section.lines)
    found = section.frame()
    assert len(found) == 10
    assert found.select_dtypes("number").notna().all(axis=None)


def test_groups_without_rows_keep_the_weights_of_their_neighbours():
    rng = np.random.default_rng(3)
    empty = np.arange(24) % 5 == 0
    cell = 4 * rng.choice(np.flatnonzero(~empty), 4000) + rng.integers(0, 4, 4000)
    weight = rng.lognormal(0, 1, 4000)
    weights = CellWeights.from_rows(weight, cell, (24, 2, 2))
    whole = Tally(tuple(LEVELS), GROUPS, weights.sums, weights=weights)
    place = np.cumsum(~empty) - 1
    kept = 4 * place[cell // 4] + cell % 4
    fewer = CellWeights.from_rows(weight, kept, (int((~empty).sum()), 2, 2))
    part = Tally(
        tuple(LEVELS), tuple(g for g, e in zip(GROUPS, empty, strict=True) if not e), fewer.sums, weights=fewer
    )
    assert scan_section(whole, 2, policy=POLICY, **LOOSE) == scan_section(part, 2, policy=POLICY, **LOOSE)


# ----------------------------------------------------------------------------------------------------------- calibration
def false_alarms(n_sets, n, rate, policy, seed=1, depth=2):
    """Return the share of scans with any adjusted p-value of at most .05, where all rates are equal."""
    rng = np.random.default_rng(seed)
    hits = 0
    for i in range(n_sets):
        section = scan_section(draw(rng, n, rate), depth, outcome="favorable", policy=policy, seed=i)
        hits += section.rows[0][-1] <= 0.05
    return hits / n_sets


def allowed(n_sets):
    return 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_sets)


def test_equal_rates_are_seldom_found_unequal():
    assert false_alarms(400, 1500, 0.3, POLICY.replace(n_resamples=200)) <= allowed(400)


def weighted_alarms(n_sets, n, rate, spread, factor, seed=1):
    """Return the same of rows with log-normal weights, ``factor`` times as large where the decision is favourable."""
    rng, hits, policy = np.random.default_rng(seed), 0, POLICY.replace(n_resamples=200)
    for i in range(n_sets):
        group = rng.choice(len(GROUPS), n, p=SHARES / SHARES.sum())
        favoured = rng.random(n) < rate / (rate + factor * (1 - rate))
        weight = rng.lognormal(0, spread, n) * np.where(favoured, factor, 1.0)
        cell = 4 * group + 2 * (rng.random(n) < 0.4) + favoured
        weights = CellWeights.from_rows(weight, cell, (len(GROUPS), 2, 2))
        tally = Tally(tuple(LEVELS), GROUPS, weights.sums, weights=weights)
        hits += scan_section(tally, 2, outcome="favorable", policy=policy, seed=i).rows[0][-1] <= 0.05
    return hits / n_sets


@pytest.mark.parametrize(("n", "factor"), [(600, 1.0), (1500, 3.0)])
def test_equal_weighted_rates_are_seldom_found_unequal(n, factor):
    """With effective counts by each subgroup's own weights .19 and .5 of such scans found something."""
    assert weighted_alarms(200, n, 0.3, 1.2, factor) <= allowed(200)


@pytest.mark.long
@pytest.mark.parametrize("factor", [1.0, 3.0])
@pytest.mark.parametrize(
    ("n", "rate", "spread"), [(600, 0.3, 0.7), (600, 0.1, 0.7), (600, 0.3, 1.2), (3000, 0.1, 0.7), (3000, 0.3, 1.2)]
)
def test_equal_weighted_rates_are_seldom_found_unequal_at_length(n, rate, spread, factor):
    """Weights that go with the decision: .064 at 600 rows and a rate of .3, where few rows carry a large weight."""
    assert weighted_alarms(1500, n, rate, spread, factor) <= allowed(1500) + 0.01 * (factor > 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "rate", "policy"),
    [(3000, 0.3, POLICY), (1000, 0.3, FLOORLESS), (600, 0.1, FLOORLESS), (3000, 0.05, FLOORLESS)],
)
def test_equal_rates_are_seldom_found_unequal_at_length(n, rate, policy):
    assert false_alarms(1500, n, rate, policy) <= allowed(1500)


@pytest.mark.long
def test_intervals_hold_all_differences_at_once(monkeypatch):
    monkeypatch.setattr(_scan, "_SHOWN", 10**6)
    rates = np.where([g[0] == "F" and g[1] == "b" for g in GROUPS], 0.15, 0.4)
    truth = Tally(
        tuple(LEVELS), GROUPS, np.rint(1e9 * SHARES[:, None, None] * np.stack([1 - rates, rates], -1)[:, None])
    )
    inside, _ = plain_subgroups(truth, 2, 0)
    selected, size = truth.counts[:, 0, 1], truth.counts.sum((1, 2))
    true = {k: selected[i].sum() / size[i].sum() - selected[~i].sum() / size[~i].sum() for k, i in inside.items()}
    rng, covered = np.random.default_rng(0), 0
    for i in range(400):
        frame = scan_section(draw(rng, 2500, rates), 2, outcome="favorable", policy=POLICY, seed=i).frame()
        expected = frame["subgroup"].map(true)  # decisions do not depend on labels: each rate has the same difference
        covered += bool(((frame["low"] <= expected) & (expected <= frame["high"])).all())
    assert covered / 400 >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("planted", ["sex=F & race=b", "race=c & age=x", "age=z"])
def test_a_planted_subgroup_is_found_first(planted):
    parts = dict(part.split("=") for part in planted.split(" & "))
    inside = [all(g[list(LEVELS).index(name)] == value for name, value in parts.items()) for g in GROUPS]
    for seed in range(10):
        tally = draw(np.random.default_rng(seed), 4000, np.where(inside, 0.3, 0.5))
        policy = POLICY.replace(n_resamples=200)
        section = scan_section(tally, len(parts), outcome="favorable", policy=policy, seed=seed)
        found = {row[1]: row for row in reversed(section.rows) if row[-1] <= 0.05}
        assert section.rows[0][0] == planted
        assert found["favorable_rate"][0] == planted
        assert found["favorable_rate"][7] < 0  # the whole interval


def test_a_chance_winner_is_not_called_a_finding():
    tally = draw(np.random.default_rng(2), 3000, 0.3)
    section = scan_section(tally, 2, policy=POLICY, **LOOSE)
    assert section.rows[0][-1] > 0.05
    lines = " ".join(section.lines)
    assert "has an adjusted p-value of at most 0.05: the largest gaps, shown below, are no larger than chance" in lines
    assert "A scan is exploratory" in lines
    assert "pvalue" not in section.columns
