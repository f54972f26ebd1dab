"""A known bias in real rows: what changes, what stays, and that the expected effect is the one that comes about."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import roc_auc_score

from sklearn_ethiclens import METRICS, MISSING, Tally
from sklearn_ethiclens.datasets import inject, normal_score_shift, resample
from sklearn_ethiclens.datasets._lots import Stratum, choose, n_exact, sum_over_chosen

KINDS = {
    "label": {},
    "both": {"kind": "label", "direction": "both"},
    "selection": {},
    "noise": {"kind": "measurement", "columns": "income", "noise": 0.5},
    "shift": {"kind": "measurement", "columns": "income", "shift": -2.0},
    "scale": {"kind": "measurement", "columns": "income", "scale": 1.5},
    "missing": {"kind": "measurement", "columns": "income", "missing": True},
    "score": {"shift": -1.0},
}
KINDS = {name: {"kind": name} | options for name, options in KINDS.items()}


def rows(n=400, seed=0):
    """Return a frame with groups a, b, c, labels, scores and weights; the index is shuffled and repeats itself."""
    rng = np.random.default_rng(seed)
    index = pd.Index(rng.integers(0, n // 2, n), name="id")
    X = pd.DataFrame(
        {
            "sex": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
            "income": rng.gamma(2.0, 10.0, n),
            "age": rng.integers(18, 80, n),
        },
        index=index,
    )
    y = pd.Series((rng.random(n) < 0.4).astype(int), index=index, name="ok")
    return X, y, rng.random(n), rng.gamma(2.0, 1.0, n)


def expect(bunch, group, quantity, column=None):
    """Return before, after and se of one quantity of one group."""
    frame = bunch.expected
    found = frame[(frame["group"] == group) & (frame["quantity"] == quantity)]
    if column is not None:
        found = found[found["column"] == column]
    (row,) = found.itertuples()
    return row.before, row.after, row.se


# --------------------------------------------------------------------------------------------------------------- label
def test_rate_one_flips_every_positive_label_of_the_group_and_nothing_else():
    X, y, *_ = rows()
    biased = inject(X, y, sensitive_features="sex", kind="label", group="a", rate=1.0)
    flipped = ((X["sex"] == "a") & (y == 1)).to_numpy()
    assert biased.y.tolist() == np.where(flipped, 0, y).tolist()
    assert biased.changes["position"].tolist() == np.flatnonzero(flipped).tolist()
    assert biased.changed.tolist() == X.index[flipped].tolist()
    assert (biased.changes[["group", "column", "change", "before", "after"]] == ["a", "ok", "flipped", 1, 0]).all(
        axis=None
    )


def test_directions_are_the_complement_of_each_other():
    X, y, *_ = rows()
    options = {"sensitive_features": "sex", "kind": "label", "group": ["a", "c"], "rate": 1.0}
    inside = X["sex"].isin(["a", "c"]).to_numpy()
    up = inject(X, y, direction="to_positive", **options)
    both = inject(X, y, direction="both", **options)
    assert up.y.tolist() == np.where(inside, 1, y).tolist()
    assert both.y.tolist() == np.where(inside, 1 - y, y).tolist()
    assert len(both.changes) == inside.sum()


def test_a_rate_by_label_is_the_direction():
    X, y, *_ = rows()
    options = {"sensitive_features": "sex", "kind": "label", "group": "b"}
    for label, direction in ((1, "to_negative"), (0, "to_positive")):
        by_label = inject(X, y, rate={label: 0.3}, **options)
        by_direction = inject(X, y, rate=0.3, direction=direction, **options)
        pd.testing.assert_series_equal(by_label.y, by_direction.y)
        pd.testing.assert_frame_equal(by_label.expected, by_direction.expected)
    with pytest.raises(ValueError, match="rates by label say the direction already"):
        inject(X, y, rate={1: 0.3}, direction="both", **options)


def test_a_rate_by_group_and_a_mapping_of_groups_say_the_same():
    X, y, *_ = rows()
    options = {"sensitive_features": "sex", "kind": "label"}
    first = inject(X, y, rate={"a": 0.5, "c": 0.1}, **options)
    second = inject(X, y, group={"a": 0.5, "c": 0.1}, **options)
    pd.testing.assert_series_equal(first.y, second.y)
    assert set(first.changes["group"]) == {"a", "c"}


def test_groups_and_labels_that_look_alike_must_be_told_apart():
    y, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    X = groups[:, None].astype(float)
    with pytest.raises(ValueError, match="are groups and labels at once.*group=\\{group: rate\\}"):
        inject(X, y, sensitive_features=groups, kind="label", rate={1: 1.0})
    assert inject(X, y, sensitive_features=groups, kind="label", group={1: 1.0}).y.tolist() == [0, 1, 0, 0]
    assert inject(X, y, sensitive_features=groups, kind="label", group={1: {0: 1.0}}).y.tolist() == [0, 1, 1, 1]


def test_expected_base_rate_worked_by_hand():
    """Ten of a, six positive: rate .5 leaves .6 * .5 = .3, with variance 6 * .25 / 100; exact, always three flips."""
    groups, y = ["a"] * 10 + ["b"] * 10, [1] * 6 + [0] * 4 + [1, 0] * 5
    X = np.zeros((20, 1))
    options = {"sensitive_features": groups, "kind": "label", "group": "a", "rate": 0.5}
    loose, exact = inject(X, y, **options), inject(X, y, exact=True, **options)
    assert expect(loose, "a", "base_rate") == pytest.approx((0.6, 0.3, np.sqrt(6 * 0.25) / 10))
    assert expect(loose, "b", "base_rate") == (0.5, 0.5, 0.0)
    assert expect(loose, "a", "n_changed") == pytest.approx((0, 3, np.sqrt(1.5)))
    assert expect(exact, "a", "base_rate") == pytest.approx((0.6, 0.3, 0.0))
    assert exact.y[:10].sum() == 3


def test_label_bias_moves_the_disparate_impact_of_labels_by_the_factor_it_should():
    X, y, *_ = rows(40_000)
    biased = inject(X, y, sensitive_features="sex", kind="label", group="a", rate=0.25, exact=True)
    before, after = (Tally.from_predictions(None, labels, sensitive_features=X["sex"]) for labels in (y, biased.y))
    ratio = METRICS["disparate_impact"]
    a, b = 0, 1
    assert ratio(after.counts[a], after.counts[b]) == pytest.approx(0.75 * ratio(*before.counts[[a, b]]), rel=1e-4)


@pytest.mark.parametrize(
    ("y", "pos_label", "expected"),
    [
        (pd.Series(["no", "yes", "yes"], dtype="category"), "yes", ["no", "no", "yes"]),
        (pd.Series(["no", "yes", "yes"], dtype="string"), "yes", ["no", "no", "yes"]),
        (pd.Series(["no", "yes", "yes"]), "yes", ["no", "no", "yes"]),
        (pd.Series([0, 1, 1], dtype="Int8"), None, [0, 0, 1]),
        (pd.Series([False, True, True], dtype="boolean"), None, [False, False, True]),
        (pd.Series([0.0, 1.0, 1.0], dtype="float32"), None, [0.0, 0.0, 1.0]),
        (pd.Series([-1, 1, 1], dtype="int8"), None, [-1, -1, 1]),
        (np.array(["no", "yes", "yes"]), "yes", ["no", "no", "yes"]),
        (np.array([False, True, True]), None, [False, False, True]),
        (np.array([[0], [1], [1]]), None, [[0], [0], [1]]),
        (pd.DataFrame({"ok": [0, 1, 1]}), None, [[0], [0], [1]]),
        (pd.Categorical(["no", "yes", "yes"]), "yes", ["no", "no", "yes"]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")) if hasattr(value, "dtype") else type(value).__name__,
)
def test_labels_keep_their_type(y, pos_label, expected):
    X = np.array([[0.0], [0.0], [1.0]])
    options = {"sensitive_features": 0, "kind": "label", "group": 0, "rate": 1.0, "pos_label": pos_label}
    if isinstance(y, pd.Series | pd.DataFrame):
        X = pd.DataFrame(X)
    biased = inject(X, y, **options)
    assert type(biased.y) is type(y)
    if isinstance(y, pd.DataFrame):
        assert biased.y.dtypes.equals(y.dtypes)
        assert biased.y.to_numpy().tolist() == expected
    else:
        assert biased.y.dtype == y.dtype
        assert biased.y.tolist() == expected


def test_the_other_label_is_not_guessed():
    X = np.zeros((2, 1))
    options = {"sensitive_features": ["a", "b"], "kind": "label", "group": "a", "rate": 1.0}
    with pytest.raises(ValueError, match="y holds the label 1 only; pass neg_label"):
        inject(X, [1, 1], **options)
    assert inject(X, [1, 1], neg_label=-1, **options).y.tolist() == [-1, 1]
    assert inject(X, [True, True], **options).y.tolist() == [False, True]
    declared = pd.Categorical(["y", "y"], categories=["n", "y"])
    assert inject(X, declared, pos_label="y", **options).y.tolist() == ["n", "y"]
    with pytest.raises(ValueError, match="does not fit"):
        inject(X, np.array(["y", "y"]), pos_label="y", neg_label="no", **options)


# ----------------------------------------------------------------------------------------------------------- selection
def test_thinning_keeps_everything_in_step():
    X, y, score, weight = rows()
    given = {"sample_weight": weight, "y_score": pd.Series(score, index=X.index)}
    thin = inject(X, y, sensitive_features=X["sex"], kind="selection", group="b", rate=0.4, **given)
    kept = thin.kept
    pd.testing.assert_frame_equal(thin.X, X.iloc[kept])
    pd.testing.assert_series_equal(thin.y, y.iloc[kept])
    pd.testing.assert_series_equal(thin.sensitive_features, X["sex"].iloc[kept])
    pd.testing.assert_series_equal(thin.y_score, given["y_score"].iloc[kept])
    assert thin.sample_weight.tolist() == weight[kept].tolist()
    gone = thin.changes["position"].to_numpy()
    assert sorted([*kept, *gone]) == list(range(len(X)))
    assert set(X["sex"].iloc[gone]) == {"b"}
    assert (thin.changes["change"] == "removed").all()


def test_thinning_by_label_takes_rows_of_that_label_only():
    X, y, *_ = rows()
    thin = inject(X, y, sensitive_features="sex", kind="selection", group={"a": {1: 1.0}})
    inside = (X["sex"] == "a") & (y == 1)
    assert len(thin.X) == (~inside).sum()
    assert expect(thin, "a", "base_rate")[1] == 0.0
    assert (
        METRICS["base_rate"](
            Tally.from_predictions(thin.y, thin.y, sensitive_features=thin.sensitive_features).counts[0]
        )
        == 0.0
    )


def test_labels_of_any_kind_pass_a_thinning_and_only_clear_ones_have_a_base_rate():
    X, *_ = rows()
    for y in (np.arange(400) % 3, np.linspace(0, 1, 400), np.array(["p", "q"] * 200)):
        thin = inject(X, y, sensitive_features="sex", kind="selection", group="b", rate=0.4)
        assert thin.y.tolist() == y[thin.kept].tolist()
        assert "base_rate" not in set(thin.expected["quantity"])
    named = inject(X, y, sensitive_features="sex", kind="selection", group="b", rate={"p": 0.4}, pos_label="p")
    assert "base_rate" in set(named.expected["quantity"])


def test_a_group_that_is_gone_has_no_base_rate():
    X, y, *_ = rows()
    thin = inject(X, y, sensitive_features="sex", kind="selection", group="c", rate=1.0)
    assert set(thin.sensitive_features) == {"a", "b"}
    assert expect(thin, "c", "kept_share")[1:] == (0.0, 0.0)
    assert expect(thin, "c", "group_share")[1:] == (0.0, 0.0)
    assert np.isnan(expect(thin, "c", "base_rate")[1:]).all()
    with pytest.raises(ValueError, match="all 400 rows would be removed"):
        inject(X, y, sensitive_features="sex", kind="selection", rate=1.0)


# --------------------------------------------------------------------------------------------------------- measurement
def measured(X, group="a", columns="income", **options):
    return inject(X, sensitive_features="sex", kind="measurement", group=group, columns=columns, **options)


def test_shift_and_scale_move_the_mean_as_they_say():
    X, *_ = rows()
    inside = X["sex"] == "a"
    mean, variance = X.loc[inside, "income"].mean(), X.loc[inside, "income"].var(ddof=0)
    shifted, scaled = measured(X, shift=3.0), measured(X, scale=2.0)
    assert expect(shifted, "a", "mean") == pytest.approx((mean, mean + 3, 0))
    assert expect(shifted, "a", "variance")[:2] == pytest.approx((variance, variance))
    assert expect(scaled, "a", "mean") == pytest.approx((mean, 2 * mean, 0))
    assert expect(scaled, "a", "variance")[:2] == pytest.approx((variance, 4 * variance))
    assert shifted.X["income"].tolist() == pytest.approx(np.where(inside, X["income"] + 3, X["income"]).tolist())
    assert scaled.X["income"].tolist() == pytest.approx(np.where(inside, X["income"] * 2, X["income"]).tolist())


def test_noise_is_in_standard_deviations_of_the_column():
    X, *_ = rows(40_000)
    noisy = measured(X, noise=0.5)
    difference = (noisy.X["income"] - X["income"])[(X["sex"] == "a").to_numpy()]
    assert difference.std() == pytest.approx(0.5 * X["income"].std(), rel=0.02)
    before, after, _ = expect(noisy, "a", "variance")
    assert after == pytest.approx(before + 0.25 * X["income"].var(ddof=0), rel=1e-3)


def test_missing_values_stay_missing_and_are_no_eligible_rows():
    X, *_ = rows()
    X.iloc[:50, 1] = np.nan
    n = int(((X["sex"] == "a") & X["income"].notna()).sum())
    for options in ({"shift": 1.0}, {"noise": 1.0}, {"scale": 2.0}, {"missing": True}):
        changed = measured(X, **options)
        assert len(changed.changes) == n
        assert changed.X["income"].iloc[:50].isna().all()
    assert changed.X["income"][(X["sex"] == "a").to_numpy()].isna().all()
    before, after, se = expect(changed, "a", "missing_share")
    assert (before, after, se) == pytest.approx((X["income"].isna()[(X["sex"] == "a").to_numpy()].mean(), 1.0, 0.0))
    assert np.isnan(expect(changed, "a", "mean")[1])


def test_columns_change_independently_of_each_other():
    X, *_ = rows(4000)
    X["age"] = X["age"].astype("Int64")
    both = measured(X, columns=["income", 2], missing=True, rate=0.5)
    inside = (X["sex"] == "a").to_numpy()
    lost = both.X[inside].isna()
    assert abs(np.corrcoef(lost["income"], lost["age"])[0, 1]) < 0.06
    assert both.X["age"].dtype == "Int64"
    assert len(both.changed) == lost.any(axis=1).sum()
    assert len(both.changes) == lost.sum().sum()


def test_text_can_be_made_missing_but_has_no_mean():
    for dtype in (object, "string", "category", None):
        X = pd.DataFrame({"sex": ["a", "b"] * 20, "job": ["p", "q", "r", "s"] * 10})
        X["job"] = X["job"] if dtype is None else X["job"].astype(dtype)
        lost = measured(X, columns="job", missing=True)
        assert lost.X["job"].dtype == X["job"].dtype
        assert lost.X["job"].isna().tolist() == [True, False] * 20
        assert set(lost.expected["quantity"]) == {"n_changed", "missing_share"}
        with pytest.raises(TypeError, match="column 'job' must hold numbers"):
            measured(X, columns="job", shift=1.0)


def test_whole_numbers_stay_whole_or_the_change_is_refused():
    X, *_ = rows()
    older = measured(X, columns="age", shift=5)
    assert older.X["age"].dtype == X["age"].dtype
    with pytest.raises(
        ValueError, match="column 'age' of type int64 cannot hold .*: it holds whole numbers. Cast it to float"
    ):
        measured(X, columns="age", noise=0.5)
    with pytest.raises(
        ValueError,
        match="'age' of type int64 cannot hold missing values.*nullable type 'Int64'.*X.astype\\(\\{'age': 'Int64'",
    ):
        measured(X, columns="age", missing=True)
    with pytest.raises(
        ValueError, match="column '0' of type int64 cannot hold missing values; pass X.astype\\(float\\)"
    ):
        inject(np.array([[1], [2]]), sensitive_features=0, kind="measurement", columns=0, missing=True)
    small = X.astype({"age": "int8"})
    with pytest.raises(ValueError, match="column 'age' of type int8 cannot hold the new values: .* does not fit"):
        measured(small, columns="age", shift=100)
    nullable = measured(X.astype({"age": "Int16"}), columns="age", missing=True)
    assert nullable.X["age"].dtype == "Int16"


def test_other_types_can_lose_values_too():
    days = pd.date_range("2020-01-01", periods=4, tz="UTC")
    X = pd.DataFrame({"sex": list("abab"), "day": days, "flag": [True, False] * 2})
    assert measured(X, columns="day", missing=True).X["day"].isna().tolist() == [True, False] * 2
    with pytest.raises(ValueError, match="nullable type 'boolean'"):
        measured(X, columns="flag", missing=True)


# --------------------------------------------------------------------------------------------------------------- proxy
def test_a_new_proxy_has_the_correlation_it_was_given():
    X, y, *_ = rows(20_000)
    told = inject(X, y, sensitive_features="sex", kind="proxy", group="b", strength=0.6, column="postcode")
    member = (X["sex"] == "b").to_numpy()
    _, after, se = expect(told, "b", "correlation")
    assert after == 0.6
    assert np.corrcoef(told.X["postcode"], member)[0, 1] == pytest.approx(0.6, abs=4 * se)
    _, auc, se = expect(told, "b", "auc")
    assert roc_auc_score(member, told.X["postcode"]) == pytest.approx(auc, abs=4 * se)
    assert list(told.X.columns) == [*X.columns, "postcode"]
    pd.testing.assert_frame_equal(told.X[X.columns], X)
    assert len(told.changes) == 0


def test_an_exact_proxy_has_just_that_correlation():
    X, *_ = rows()
    told = inject(X, sensitive_features="sex", kind="proxy", group=["a", "c"], strength=-0.35, exact=True)
    assert np.corrcoef(told.X["proxy"], X["sex"].isin(["a", "c"]))[0, 1] == pytest.approx(-0.35, abs=1e-12)
    assert told.X["proxy"].std(ddof=0) == pytest.approx(1)
    assert told.expected["group"].tolist() == [("a", "c")] * 2


def test_a_column_becomes_a_proxy_by_moving_the_members():
    X, *_ = rows()
    X.iloc[:20, 1] = np.nan
    told = inject(X, sensitive_features="sex", kind="proxy", group="b", strength=0.7, column="income")
    there, member = X["income"].notna().to_numpy(), (X["sex"] == "b").to_numpy()
    now = np.corrcoef(told.X["income"][there], member[there])[0, 1]
    assert now == pytest.approx(0.7, abs=1e-12)
    assert expect(told, "b", "correlation")[1:] == (0.7, 0.0)
    for frame, auc in zip((X, told.X), expect(told, "b", "auc")[:2], strict=True):
        assert roc_auc_score(member[there], frame["income"][there]) == pytest.approx(auc)
    step = (told.X["income"] - X["income"]).to_numpy()
    assert np.allclose(step[member & there], step[member & there][0])
    assert (step[~member & there] == 0).all()
    assert told.changes["position"].tolist() == np.flatnonzero(member & there).tolist()


@pytest.mark.parametrize("n_draws", [100, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("strength", [-0.6, 0.3, 0.7])
def test_expected_proxy_effects_are_those_of_simulation(strength, n_draws):
    groups = np.array(["a"] * 30 + ["b"] * 90)
    options = {"sensitive_features": groups, "kind": "proxy", "group": "a", "strength": strength}
    made = [inject(np.zeros((120, 1)), random_state=i, **options) for i in range(n_draws)]
    columns = np.array([bunch.X[:, 1] for bunch in made])
    ranks = stats.rankdata(columns, axis=1)[:, :30].sum(axis=1)
    found = {
        "correlation": np.array([np.corrcoef(x, groups == "a")[0, 1] for x in columns]),
        "auc": (ranks - 30 * 31 / 2) / (30 * 90),
    }
    assert found["auc"][0] == pytest.approx(roc_auc_score(groups == "a", columns[0]))
    for quantity, values in found.items():
        _, after, se = expect(made[0], "a", quantity)
        bias = 0.006 if quantity == "correlation" else 0.0  # of order 1/n
        assert values.mean() == pytest.approx(after, abs=4 * se / np.sqrt(n_draws) + bias)
        assert values.std() == pytest.approx(se, rel=4 / np.sqrt(2 * n_draws) + 0.02)


def test_proxies_that_cannot_be_are_refused():
    X, *_ = rows()
    X["same"], X["told"] = 1.0, (X["sex"] == "b").astype(float)
    options = {"sensitive_features": "sex", "kind": "proxy", "group": "b", "strength": 0.5}
    for change, message in [
        ({"column": "same"}, "column 'same' is constant"),
        ({"column": "told"}, "is a function of the membership of 'b' already"),
        ({"column": "age"}, "column 'age' of type int64 cannot hold"),
        ({"rate": 0.5}, "takes strength, the correlation with membership, and no rate"),
        ({"strength": 1.0}, "strictly between -1 and 1"),
        ({"strength": None}, "strictly between -1 and 1"),
        ({"group": None}, "kind='proxy' needs group"),
        ({"group": ["a", "b", "c"]}, "every row belongs to"),
    ]:
        with pytest.raises(ValueError, match=message):
            inject(X, **options | change)
    with pytest.raises(ValueError, match="X has a column 'proxy' already; pass column='proxy'"):
        inject(X.rename(columns={"income": "proxy"}), **options)
    with pytest.raises(ValueError, match="X of type int64 .* pass X.astype\\(float\\)"):
        inject(np.array([[0], [1]]), sensitive_features=0, kind="proxy", group=1, strength=0.5)


# --------------------------------------------------------------------------------------------------------------- score
def test_scores_move_on_the_logit_scale_and_stay_probabilities():
    X, _, score, _ = rows()
    score[:3] = 0.0, 1.0, 1e-300
    moved = inject(X, y_score=score, sensitive_features="sex", kind="score", group=["a", "b", "c"], shift=-40.0)
    assert ((moved.y_score >= 0) & (moved.y_score <= 1)).all()
    assert moved.y_score[:2].tolist() == [0.0, 1.0]
    up = inject(X, y_score=score, sensitive_features="sex", kind="score", group="a", shift=0.7)
    inside = (X["sex"] == "a").to_numpy() & (score > 0) & (score < 1)
    assert logit(up.y_score[inside]) - logit(score[inside]) == pytest.approx(0.7)
    assert (up.y_score[~inside] == score[~inside]).all()
    selected = (up.y_score >= 0.5)[(X["sex"] == "a").to_numpy()].mean()
    assert expect(up, "a", "selection_rate")[1:] == pytest.approx((selected, 0.0))


def test_scores_of_half_precision_are_expected_as_they_are_stored():
    X, _, score, _ = rows()
    short = score.astype(np.float32)
    moved = inject(X, y_score=short, sensitive_features="sex", kind="score", group="a", shift=1.0, threshold=0.9)
    assert moved.y_score.dtype == np.float32
    inside = (X["sex"] == "a").to_numpy()
    assert expect(moved, "a", "mean")[1] == pytest.approx(moved.y_score[inside].astype(float).mean(), abs=1e-12)
    assert expect(moved, "a", "selection_rate")[1] == (moved.y_score[inside].astype(float) >= 0.9).mean()


def test_scores_outside_the_unit_interval_need_the_identity_link():
    X = np.array([[0.0], [1.0]])
    options = {"y_score": np.array([-3.0, 2.0]), "sensitive_features": 0, "kind": "score", "group": 1, "shift": -1.0}
    with pytest.raises(ValueError, match="must lie in \\[0, 1\\] .*ranges from -3 to 2.*link='identity'"):
        inject(X, **options)
    assert inject(X, link="identity", **options).y_score.tolist() == [-3.0, 1.0]


@pytest.mark.parametrize(
    ("shift", "rate", "share"),
    [(-0.15, 0.25, 0.3), (1.2, 0.05, 0.7), (-2.0, 0.9, 0.5), (0, 0.3, 0.2), (9, 1 - 1e-15, 1e-9), (-30, 1e-200, 0.5)],
)
def test_normal_score_shift_solves_its_equations(shift, rate, share):
    effect = normal_score_shift(shift, selection_rate=rate, share=share)
    assert effect.selection_rate == pytest.approx(stats.norm.sf(effect.cutoff, loc=shift))
    assert effect.selection_rate_reference == pytest.approx(stats.norm.sf(effect.cutoff))
    overall = share * effect.selection_rate + (1 - share) * effect.selection_rate_reference
    assert overall == pytest.approx(rate, rel=1e-9)
    assert effect.disparate_impact == effect.selection_rate / effect.selection_rate_reference


@pytest.mark.parametrize("link", ["logit", "identity"])
def test_an_injected_shift_of_normal_scores_is_recovered_as_the_closed_form(link):
    """Scores at the quantiles of N(0, 1), 30% of them shifted by -.15, the best 25% selected: impact ratio .8234."""
    n = 200_000
    z = np.concatenate([stats.norm.ppf((np.arange(k) + 0.5) / k) for k in (int(0.3 * n), n - int(0.3 * n))])
    groups = np.repeat([1, 0], [int(0.3 * n), n - int(0.3 * n)])
    scores = expit(z) if link == "logit" else z
    effect = normal_score_shift(-0.15, selection_rate=0.25, share=0.3)
    cutoff = expit(effect.cutoff) if link == "logit" else effect.cutoff
    moved = inject(
        groups[:, None],
        y_score=scores,
        sensitive_features=0,
        kind="score",
        group=1,
        shift=-0.15,
        link=link,
        threshold=cutoff,
    )
    tally = Tally.from_predictions(None, (moved.y_score >= cutoff).astype(int), sensitive_features=groups)
    assert METRICS["disparate_impact"](*tally.counts[[1, 0]]) == pytest.approx(effect.disparate_impact, abs=1e-4)
    assert expect(moved, 1, "selection_rate")[1] == pytest.approx(effect.selection_rate, abs=2e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": np.inf, "selection_rate": 0.2, "share": 0.5}, "shift must be finite"),
        ({"shift": 1, "selection_rate": 0, "share": 0.5}, "selection_rate must lie strictly between 0 and 1; got 0"),
        ({"shift": 1, "selection_rate": 0.2, "share": 1}, "share must lie strictly"),
    ],
)
def test_normal_score_shift_refuses_what_has_no_cutoff(options, message):
    with pytest.raises(ValueError, match=message):
        normal_score_shift(**options)


# -------------------------------------------------------------------------------------- expected and simulated effects
def realised(bunch, groups, weight, group):
    """Return what came about in a group, by (column, quantity)."""
    inside = groups == group
    w = weight[inside]
    found = {("rows", "n_changed"): int((bunch.changes["group"] == group).sum())}
    if bunch.kind == "selection":
        kept = np.isin(np.arange(groups.size), bunch.kept)
        found["rows", "kept_share"] = weight[inside & kept].sum() / w.sum()
        found["rows", "group_share"] = weight[inside & kept].sum() / weight[kept].sum()
        now = np.asarray(bunch.sensitive_features) == group
        found["y", "base_rate"] = np.average(bunch.y[now], weights=bunch.sample_weight[now])
        return found
    if bunch.kind == "label":
        found["y", "base_rate"] = np.average(bunch.y[inside], weights=w)
    if bunch.kind == "score":
        found["y_score", "mean"] = np.average(bunch.y_score[inside], weights=w)
        found["y_score", "selection_rate"] = np.average(bunch.y_score[inside] >= 0.5, weights=w)
    if bunch.kind == "measurement":
        x = bunch.X[inside, 0]
        there = ~np.isnan(x)
        found["0", "n_changed"] = found["rows", "n_changed"]
        found["0", "missing_share"] = np.average(~there, weights=w)
        mean = np.average(x[there], weights=w[there])
        found["0", "mean"] = mean
        found["0", "variance"] = np.average((x[there] - mean) ** 2, weights=w[there])
    return found


@pytest.mark.parametrize("n_draws", [40, pytest.param(500, marks=pytest.mark.long)])
@pytest.mark.parametrize("exact", [False, True], ids=["by lot", "exact"])
@pytest.mark.parametrize("name", KINDS)
def test_expected_effects_are_those_of_simulation(name, exact, n_draws):
    """Means within 4.5 Monte-Carlo errors, and standard deviations within their own, with weights and two rates."""
    X, y, score, weight = rows(300, seed=5)
    groups = X["sex"].to_numpy()
    given = {"y": y.to_numpy(), "y_score": score, "sample_weight": weight, "sensitive_features": groups}
    given |= KINDS[name] | {"group": {"a": 0.3, "c": 0.6}, "exact": exact}
    if "columns" in given:
        given["columns"] = 0
    if name == "selection":
        given["group"] = {"a": {1: 0.3, 0: 0.1}, "c": 0.6}
    draws = [inject(X[["income"]].to_numpy(), **given, random_state=i) for i in range(n_draws)]
    expected = draws[0].expected
    checked = 0
    for group in "abc":
        values = pd.DataFrame([realised(draw, groups, weight, group) for draw in draws])
        for row in expected[expected["group"] == group].itertuples():
            simulated = values[row.column, row.quantity]
            error = simulated.std(ddof=1) / np.sqrt(n_draws)
            # Ratios and variances are first-order in 1/n.
            slack = 0.02 * row.se if row.quantity in ("mean", "variance", "base_rate", "group_share") else 0.0
            assert simulated.mean() == pytest.approx(row.after, abs=4.5 * error + slack + 1e-9 * abs(row.after) + 1e-12)
            # A standard deviation is found to 1/sqrt(2 n) of itself, and more loosely for squares of noise.
            of_itself = 4.5 * 1.2 / np.sqrt(2 * n_draws) + 0.02
            assert simulated.std(ddof=1) == pytest.approx(row.se, rel=of_itself, abs=1e-9), row
            checked += 1
    assert checked >= 6


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 5)), min_size=1, max_size=3), st.booleans()
)
@settings(max_examples=40)
def test_moments_of_a_sum_over_chosen_rows_are_those_of_all_outcomes(given_strata, exact):
    """Against the enumeration of every subset of up to 5 rows a stratum."""
    strata, start = [], 0
    for rate, n in given_strata:
        strata.append(Stratum(np.arange(start, start + n), rate))
        start += n
    values = np.random.default_rng(start).normal(size=start)
    mean = variance = 0.0
    for positions, rate in strata:
        outcomes, chances = [], []
        for k in range(positions.size + 1):
            subsets = list(combinations(positions, k))
            outcomes += [values[list(subset)].sum() for subset in subsets]
            chance = rate**k * (1 - rate) ** (positions.size - k)
            if exact:
                chance = (k == n_exact(rate, positions.size)) / len(subsets)
            chances += [chance] * len(subsets)
        own = np.dot(outcomes, chances)
        mean += own
        variance += np.dot((np.array(outcomes) - own) ** 2, chances)
    assert sum_over_chosen(strata, values, exact) == pytest.approx((mean, variance), abs=1e-12)


# ---------------------------------------------------------------------------------------------------------------- laws
@given(
    n=st.integers(6, 40),
    seed=st.integers(0, 10**6),
    rate=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    name=st.sampled_from(sorted(KINDS)),
    exact=st.booleans(),
)
@settings(max_examples=60)
def test_only_reported_rows_change_and_originals_never(n, seed, rate, name, exact):
    X, y, score, weight = rows(n, seed)
    X["sex"] = X["sex"].astype("category")
    y = y.astype("Int8")
    group = X["sex"].iloc[0]
    originals = X.copy(deep=True), y.copy(deep=True), score.copy(), weight.copy()
    options = {"sensitive_features": "sex", "group": group, "rate": rate, "exact": exact, "random_state": seed}
    if name == "selection" and (X["sex"] == group).all():
        return
    biased = inject(X, y, y_score=score, sample_weight=weight, **options | KINDS[name])

    pd.testing.assert_frame_equal(X, originals[0])
    pd.testing.assert_series_equal(y, originals[1])
    assert (score == originals[2]).all()
    assert (weight == originals[3]).all()

    at = np.unique(biased.changes["position"])
    untouched = np.setdiff1d(np.arange(n), at)
    assert biased.changed.equals(X.index[at])
    assert (X["sex"].iloc[at] == group).all()
    if name == "selection":
        assert biased.kept.tolist() == untouched.tolist()
        pd.testing.assert_frame_equal(biased.X, X.iloc[untouched])
    else:
        assert len(biased.X) == n
        assert biased.X.index.equals(X.index)
        assert biased.X.dtypes.equals(X.dtypes)
        pd.testing.assert_frame_equal(biased.X.iloc[untouched], X.iloc[untouched])
        pd.testing.assert_series_equal(biased.y.iloc[untouched], y.iloc[untouched])
        assert (biased.y_score[untouched] == score[untouched]).all()
    if rate == 0:
        assert at.size == 0
        pd.testing.assert_frame_equal(biased.X, X)
        pd.testing.assert_series_equal(biased.y, y)
    if exact or rate == 1:
        eligible = (X["sex"] == group) & ((y == 1) if name == "label" else True)
        assert at.size == n_exact(rate, int(eligible.sum()))

    # A result shares no memory with what was handed in.
    biased.X.iloc[:, 1] = -1.0
    biased.sample_weight[:] = -1.0
    pd.testing.assert_frame_equal(X, originals[0])
    assert (weight == originals[3]).all()


def polars_frame(X):
    return pytest.importorskip("polars").DataFrame({name: X[name].to_list() for name in X})


def pyarrow_frame(X):
    return pytest.importorskip("pyarrow").table({name: X[name].to_list() for name in X})


CONTAINERS = {
    "pandas": (lambda X: X, lambda y: y),
    "numpy": (lambda X: X[["income"]].to_numpy(), lambda y: y.to_numpy()),
    "lists": (lambda X: X[["income"]].to_numpy().tolist(), lambda y: y.tolist()),
    "polars": (polars_frame, lambda y: pytest.importorskip("polars").Series("ok", y.tolist())),
    "pyarrow": (pyarrow_frame, lambda y: pytest.importorskip("pyarrow").chunked_array([y.tolist()])),
}


@pytest.mark.parametrize("exact", [False, True], ids=["by lot", "exact"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "container",
    [pytest.param(c, marks=pytest.mark.engines if c.startswith("p") and c != "pandas" else ()) for c in CONTAINERS],
)
def test_the_same_seed_changes_the_same_rows_whatever_the_container(container, name, exact):
    X, y, score, _ = rows(120)
    frame, labels = CONTAINERS[container]
    options = {"group": ["a", "c"], "rate": 0.4, "random_state": 7, "exact": exact} | KINDS[name]
    first = inject(X, y, y_score=score, sensitive_features="sex", **options)
    if container in ("numpy", "lists") and "columns" in options:
        options["columns"] = 0
    groups = X["sex"].tolist() if container in ("numpy", "lists") else "sex"
    given_X, given_y = frame(X), labels(y)
    second = inject(given_X, given_y, y_score=score, sensitive_features=groups, **options)
    assert first.changes["position"].tolist() == second.changes["position"].tolist()
    assert len(first.changes) > 5
    assert second.changed.tolist() == (
        first.changed.tolist() if container == "pandas" else first.changes["position"].tolist()
    )
    if container != "lists":
        assert type(second.X) is type(given_X)
        assert type(second.y) is type(given_y)
    assert np.asarray(second.y).tolist() == first.y.tolist()
    column = second.X[:, 0] if isinstance(second.X, np.ndarray) else second.X["income"].to_numpy()
    np.testing.assert_array_equal(np.asarray(column, dtype=float), first.X["income"].to_numpy())
    if container in ("polars", "pyarrow"):
        assert second.X.schema == given_X.schema
    for name_of in ("before", "after", "se"):
        np.testing.assert_allclose(first.expected[name_of], second.expected[name_of])


@pytest.mark.engines
def test_polars_types_are_kept_and_refused_by_name():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(
        {"sex": ["a", "b"] * 4, "age": pl.Series(range(8), dtype=pl.Int16), "job": ["p", "q"] * 4},
        schema_overrides={"sex": pl.Enum(["a", "b", "z"])},
    )
    lost = measured(X, columns=["age", "job"], missing=True)
    assert lost.X.schema == X.schema
    assert lost.X["age"].to_list() == [None, 1, None, 3, None, 5, None, 7]
    with pytest.raises(ValueError, match="column 'age' of type .* cannot hold 0.5"):
        measured(X, columns="age", shift=0.5)
    told = inject(X, sensitive_features="sex", kind="proxy", group="a", strength=0.5, exact=True)
    assert told.X.columns == [*X.columns, "proxy"]
    assert np.corrcoef(told.X["proxy"].to_numpy(), (X["sex"] == "a").to_numpy())[0, 1] == pytest.approx(0.5)
    with pytest.raises(TypeError, match="X is a LazyFrame, which has no rows yet; pass X.collect\\(\\)"):
        measured(X.lazy(), missing=True)


def test_a_sparse_matrix_can_lose_rows_and_keep_its_format():
    X = sparse.csc_matrix(np.arange(12.0).reshape(6, 2))
    thin = inject(X, [0, 1] * 3, sensitive_features=list("aabbbb"), kind="selection", group="b", rate=0.5, exact=True)
    assert thin.X.format == "csc"
    assert thin.X.toarray().tolist() == X.toarray()[thin.kept].tolist()
    assert len(thin.y) == 4
    with pytest.raises(TypeError, match="column '1' is sparse and cannot be written"):
        inject(X, sensitive_features=list("aabbbb"), kind="measurement", columns=1, shift=1.0)


def test_a_lower_rate_changes_a_part_of_the_rows_of_a_higher_one():
    X, y, *_ = rows()
    for exact in (False, True):
        previous = set()
        for rate in (0.0, 0.2, 0.5, 0.9, 1.0):
            options = {"sensitive_features": "sex", "kind": "label", "direction": "both", "exact": exact}
            now = set(inject(X, y, rate=rate, **options).changes["position"])
            assert previous <= now
            previous = now
        assert now == set(range(len(X)))


def test_another_group_does_not_move_the_draws_of_this_one():
    X, y, *_ = rows()
    options = {"sensitive_features": "sex", "kind": "label"}
    alone, together = (inject(X, y, group=group, **options).changes for group in ({"a": 0.4}, {"a": 0.4, "b": 0.7}))
    pd.testing.assert_frame_equal(alone, together[together["group"] == "a"])


def test_seeds_of_every_kind_are_taken_and_differ():
    X, y, *_ = rows()
    options = {"sensitive_features": "sex", "kind": "label", "rate": 0.5}
    seeds = [0, 1, np.random.RandomState(0), np.random.default_rng(0), None]
    flipped = [tuple(inject(X, y, random_state=seed, **options).changes["position"]) for seed in seeds]
    assert len(set(flipped)) == len(seeds)
    with pytest.raises(ValueError, match="random_state must be"):
        inject(X, y, random_state="no", **options)


def test_exact_counts_are_rounded_halves_to_even_and_not_by_the_float():
    assert [n_exact(0.5, n) for n in (1, 3, 5, 7)] == [0, 2, 2, 4]
    assert n_exact(0.35, 30) == n_exact(0.3499999999999999, 30) == 10
    assert n_exact(0.29, 100) == 29
    rng = np.random.default_rng(0)
    strata = [Stratum(np.arange(0, 10), 0.25), Stratum(np.arange(10, 20), 0.75)]
    chosen = choose(strata, 20, True, rng)
    assert (chosen[:10].sum(), chosen[10:].sum()) == (2, 8)


# -------------------------------------------------------------------------------------------------------------- groups
@pytest.mark.parametrize("name", [None, np.nan, pd.NA, MISSING], ids=str)
def test_missing_groups_are_a_bucket_with_a_name(name):
    X = pd.DataFrame({"sex": ["a", None, "b", np.nan], "x": 1.0})
    y = pd.Series([1, 1, 1, 0])
    group = [name] if name is None else name
    biased = inject(X, y, sensitive_features="sex", kind="label", group=group, rate=1.0)
    assert biased.y.tolist() == [1, 0, 1, 0]
    assert biased.changes["group"].tolist() == [MISSING]
    assert set(biased.expected["group"]) == {"a", "b", MISSING}
    mapped = inject(X, y, sensitive_features="sex", kind="label", group={name: 1.0})
    assert mapped.y.tolist() == [1, 0, 1, 0]


def test_groups_may_be_named_given_or_numbered():
    X, y, *_ = rows()
    options = {"kind": "label", "group": "a", "rate": 0.5}
    ways = ["sex", 0, X["sex"], X[["sex"]], {"sex": X["sex"]}, X["sex"].to_numpy(), X["sex"].tolist()]
    first, *others = [inject(X, y, sensitive_features=way, **options) for way in ways]
    for other in others:
        pd.testing.assert_frame_equal(first.changes, other.changes)


def test_a_measurement_of_the_attribute_itself_leaves_the_true_groups_beside_it():
    X, *_ = rows()
    lost = measured(X, columns="sex", missing=True)
    assert lost.X["sex"].isna().sum() == (X["sex"] == "a").sum()
    pd.testing.assert_series_equal(lost.sensitive_features, X["sex"])


# -------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"group": "z"}, ValueError, "group must be one of \\['a', 'b', 'c'\\]; got 'z'"),
        ({"group": ["a", "z"]}, ValueError, "group must be one of \\['a', 'b', 'c'\\]; got 'z'"),
        ({"group": []}, ValueError, "group is empty"),
        ({"group": {}}, ValueError, "group is an empty mapping"),
        ({"group": {"z": 0.1}, "rate": None}, ValueError, "group must be one of"),
        ({"group": {"a": 0.1}}, ValueError, "leave rate out"),
        ({"group": {"a": 0.1, "b": {1: 0.2}}, "rate": None}, ValueError, "got both"),
        ({"group": {"a": {}}, "rate": None}, ValueError, "rates by label are empty"),
        ({"rate": None}, ValueError, "rate is missing"),
        ({"rate": 1.2}, ValueError, "rate must be a number between 0 and 1, or a mapping to such numbers; got 1.2"),
        ({"rate": float("nan")}, ValueError, "between 0 and 1"),
        ({"rate": True}, ValueError, "between 0 and 1"),
        ({"rate": {"z": 0.1}}, ValueError, "keys of rate must be groups, .*or labels, \\[0, 1\\]; got \\['z'\\]"),
        ({"rate": {"b": 0.1}}, ValueError, "rate has the groups \\['b'\\], which group=\\['a'\\] leaves out"),
        ({"kind": "labels"}, ValueError, "kind must be one of \\['label', 'selection'.*got 'labels'"),
        ({"shift": 1.0}, TypeError, "kind='label' takes the options \\['direction', 'neg_label'\\]; got \\['shift'\\]"),
        ({"direction": "up"}, ValueError, "direction must be one of"),
        ({"exact": "yes"}, TypeError, "exact must be True or False"),
        ({"y": None}, ValueError, "kind='label' needs y"),
        ({"y": np.arange(400) % 3}, ValueError, "flips two labels; y holds 3"),
        ({"y": np.array(["p", "q"] * 200)}, ValueError, "pass pos_label"),
        ({"y": [0, 1]}, ValueError, "one entry per row; got X 400, y 2"),
        ({"y": pd.Series([0, 1] * 200)}, ValueError, "the index of y differs from that of X"),
        ({"X": None}, ValueError, "X is missing"),
        ({"sensitive_features": "gender"}, ValueError, "sensitive_features='gender' is not among the columns of X"),
        ({"sensitive_features": 9}, ValueError, "sensitive_features=9 is a column position, but X has 3 columns"),
        ({"sensitive_features": None}, ValueError, "sensitive_features is missing"),
        ({"sensitive_features": "income"}, ValueError, "'income' has .* distinct numbers"),
        ({"sample_weight": -np.ones(400)}, ValueError, "sample_weight must hold numbers of 0 and more"),
        ({"sample_weight": np.full(400, np.nan)}, ValueError, "none may be missing"),
        ({"kind": "score"}, ValueError, "kind='score' needs y_score"),
        ({"y_score": np.ones((400, 2))}, ValueError, "y_score must be one column; it has 2. Of predict_proba, pass"),
        ({"kind": "score", "y_score": np.full(400, 0.5)}, ValueError, "needs shift"),
        ({"kind": "score", "y_score": np.full(400, np.nan), "shift": 1}, ValueError, "missing in 400 of 400"),
        ({"kind": "score", "y_score": np.full(400, 0.5), "shift": 1, "link": "probit"}, ValueError, "link must be"),
        ({"kind": "score", "y_score": np.full(400, 0.5), "shift": "1"}, ValueError, "shift must be a finite number"),
        ({"kind": "measurement", "shift": 1.0}, ValueError, "needs columns"),
        ({"kind": "measurement", "columns": "income"}, ValueError, "just one of .*got none"),
        ({"kind": "measurement", "columns": "income", "shift": 1, "scale": 2}, ValueError, "just one of .*'scale'"),
        ({"kind": "measurement", "columns": "income", "noise": -1}, ValueError, "noise is a standard deviation"),
        (
            {"kind": "measurement", "columns": "income", "missing": 0.3},
            ValueError,
            "The share of missing values is rate",
        ),
        ({"kind": "measurement", "columns": ["income", 1], "shift": 1}, ValueError, "each once"),
        ({"kind": "measurement", "columns": 1.5, "shift": 1}, TypeError, "columns takes the name or the position"),
        ({"kind": "measurement", "columns": "income", "shift": 1, "rate": {1: 0.5}}, ValueError, "must be groups"),
        (
            {"kind": "measurement", "columns": "income", "shift": 1, "group": {"a": {1: 0.5}}, "rate": None},
            ValueError,
            "rates by label are for",
        ),
    ],
    ids=str,
)
def test_errors_name_the_argument_and_the_way_out(change, error, message):
    X, y, *_ = rows()
    given_all = {"X": X, "y": y, "sensitive_features": "sex", "kind": "label", "group": "a", "rate": 0.5} | change
    with pytest.raises(error, match=message):
        inject(**given_all)


def test_names_that_do_not_single_out_a_column_are_refused():
    X, *_ = rows()
    twice = X.set_axis(["sex", "income", "income"], axis=1)
    with pytest.raises(ValueError, match="X has 2 columns named 'income'"):
        measured(twice, shift=1.0)
    by_position = measured(twice, columns=1, shift=1.0)
    assert (by_position.X.iloc[:, 2] == X["age"]).all()
    with pytest.raises(ValueError, match="is a column name, but X is a ndarray without names"):
        inject(X.to_numpy(), sensitive_features="sex", kind="label", rate=0.1)
    with pytest.raises(ValueError, match="has the columns \\['sex', 'age'\\]; a bias is put into groups of one"):
        inject(X, sensitive_features=X[["sex", "age"]], kind="label", rate=0.1)
    with pytest.raises(ValueError, match="2\\*\\*53"):
        measured(X.assign(age=2**60), columns="age", shift=1)
    with pytest.raises(ValueError, match="infinite"):
        measured(X.assign(age=np.inf), columns="age", shift=1)


# ------------------------------------------------------------------------------------------------------------ resample
class Step(BaseEstimator):
    """The smallest step of an imbalanced-learn pipeline: parameters in the constructor, one method."""

    def __init__(self, injection=None):
        self.injection = injection

    def fit_resample(self, X, y):
        return resample(X, y, self.injection)


def test_resample_is_inject_and_its_step_can_be_cloned_and_set():
    X, y, *_ = rows()
    injection = {"sensitive_features": "sex", "kind": "selection", "group": "b", "rate": 0.4}
    step = clone(Step(injection)).set_params(injection=injection | {"rate": 0.6})
    X_resampled, y_resampled = step.fit_resample(X, y)
    wanted = inject(X, y, **injection | {"rate": 0.6})
    pd.testing.assert_frame_equal(X_resampled, wanted.X)
    pd.testing.assert_series_equal(y_resampled, wanted.y)


@pytest.mark.parametrize(
    ("injection", "message"),
    [
        (None, "injection must be a mapping"),
        ({"sensitive_features": "sex", "y_score": [0.1]}, "\\['y_score'\\], which belong to rows"),
        ({"sensitive_features": ["a"] * 400}, "must be the name or the position of a column of X"),
        ({"kind": "label"}, "must be the name or the position of a column of X"),
    ],
    ids=str,
)
def test_resample_refuses_what_does_not_go_through_folds(injection, message):
    X, y, *_ = rows()
    with pytest.raises(TypeError, match=message):
        resample(X, y, injection)


def test_names_of_columns_in_place_of_one_are_told_from_values():
    X = pd.DataFrame({"sex": ["f", "m", "f"], "race": ["x", "y", "y"]})
    with pytest.raises(ValueError, match=r"the name of one column, or its values; got the names \['sex', 'race'\]"):
        inject(X, [1, 0, 1], sensitive_features=["sex", "race"], rate=0.5)
    levels = X.set_axis(pd.MultiIndex.from_product([["a"], X.columns]), axis=1)
    with pytest.raises(ValueError, match=r"a name of several levels: pass its values, X\[\('a', 'sex'\)\]"):
        inject(levels, [1, 0, 1], sensitive_features=("a", "sex"), rate=0.5)
    given = {"group": "f", "rate": 1.0}
    by_values = inject(levels, [1, 0, 1], sensitive_features=levels[("a", "sex")], **given)
    assert by_values.y.tolist() == [0, 0, 0]
