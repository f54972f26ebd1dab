"""Individual level: against n x n computations, AIF360's formula, published numbers; and laws."""

import re
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from sklearn_ethiclens import _progress
from sklearn_ethiclens.exceptions import MissingGroupsWarning, UndefinedMetricWarning
from sklearn_ethiclens.individual import _consistency as consistency_module
from sklearn_ethiclens.individual import _matched as matched_module
from sklearn_ethiclens.individual import _search, consistency_score, matched_pairs, similarity_violations
from sklearn_ethiclens.individual._consistency import band_of
from sklearn_ethiclens.inference._pairs import draw_cross_pairs, draw_pairs, draw_rows, resampled_means
from tests._shared import ROOT, case

NUMBERS = ["income", "age", "debt"]


def people(n, seed=0, missing=False, index=None):
    """A frame of numbers and categories, with ties and equal rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(size=n),
            "age": rng.integers(18, 30, n),
            "debt": rng.normal(size=n).round(1),
            "job": rng.choice(["a", "b", "c", "d"], n),
            "owner": rng.choice(["yes", "no"], n),
        },
        index=index,
    )
    frame.iloc[n // 2 : n // 2 + n // 10] = frame.iloc[: n // 10].to_numpy()
    frame = frame.astype({"income": float, "age": float, "debt": float})
    if missing:
        for column in ("income", "job", "age"):
            frame.loc[frame.index[rng.random(n) < 0.2], column] = None
    return frame


def gower(frame, other=None):
    """Gower's distance, written with loops over features."""
    other = frame if other is None else other
    total, common = np.zeros((len(frame), len(other))), np.zeros((len(frame), len(other)))
    for name in frame:
        a, b = frame[name].to_numpy(), other[name].to_numpy()
        known = pd.notna(a)[:, None] & pd.notna(b)
        if frame[name].dtype.kind == "f":
            gap = np.abs(a[:, None] - b) / (np.nanmax(a) - np.nanmin(a) or 1)
        else:
            gap = (a[:, None] != b).astype(float)
        total += np.where(known, np.nan_to_num(gap), 0)
        common += known
    with np.errstate(invalid="ignore"):
        return np.where(common > 0, total / common, np.inf)


def brute_consistency(distance, y, k, equal=None, include_self=False):
    """1 - mean |y_i - mean of the k nearest|, where those tied at the k-th distance share what is left."""
    distance = distance.copy()
    if equal is not None:
        distance[equal] = -1.0  # rows equal in every feature come first
    if not include_self:
        np.fill_diagonal(distance, np.inf)
    differences = []
    for i, row in enumerate(distance):
        cut = np.sort(row)[k - 1]
        slack = 1e-9 * abs(cut) + 1e-12
        closer, tied = row < cut - slack, np.abs(row - cut) <= slack
        mean = (y[closer].sum() + (k - closer.sum()) * y[tied].mean()) / k
        differences.append(abs(y[i] - mean))
    return 1 - np.mean(differences), max(differences)


def equal_rows(frame):
    codes = frame.apply(lambda column: pd.factorize(column)[0]).to_numpy()
    return (codes[:, None] == codes).all(-1)


# ------------------------------------------------------------------------------------------------------- known numbers
@pytest.mark.parametrize("include_self", [False, True])
def test_reference_case_of_zemel_and_aif360(include_self):
    known = case("consistency_30")
    X, y = np.array(known["input"]["X"]), known["input"]["y_pred"]
    result = consistency_score(X, y, metric="euclidean", scale=None, include_self=include_self)
    key = "consistency_including_self" if include_self else "consistency_excluding_self"
    assert float(result) == pytest.approx(known["expect"][key], abs=1e-9)
    assert ("AIF360" in result.convention) == include_self


def test_including_self_is_the_formula_of_aif360():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    # aif360.metrics.BinaryLabelDatasetMetric.consistency
    nearest = np.argsort(cdist(X, X), axis=1)[:, :7]
    consistency = 0.0
    for i in range(200):
        consistency += np.abs(y[i] - np.mean(y[nearest[i]]))
    consistency = 1.0 - consistency / 200
    ours = consistency_score(X, y, n_neighbors=7, metric="euclidean", scale=None, include_self=True)
    assert ours.score == pytest.approx(consistency, abs=1e-12)


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (1, "excellent"),
        (0.9, "excellent"),
        (0.899, "good"),
        (0.8, "good"),
        (0.7, "warning"),
        (0.699, "fail"),
    ],
)
def test_bands(score, band):
    assert band_of(score) == band
    assert band_of(1 - (1 - score)) == band
    assert band_of(np.nan) == "undefined"


@pytest.mark.parametrize(
    ("distance", "difference", "expected"),
    [(0.08, 0.32, True), (0.12, 0.28, False), (0.08, 0.20, False), (0.10, 0.32, False)],
)
def test_high_risk_is_close_and_apart(distance, difference, expected):
    X = np.array([[0.0], [distance], [1.0]])  # a range of 1, so that the distance is the number
    pairs = matched_pairs(X, [0.5, 0.5 + difference, 0.5], [0, 1, 0], distance_threshold=0.2, n_neighbors=1)
    assert pairs["distance"].tolist() == pytest.approx([distance])
    assert pairs["prediction_diff"].tolist() == pytest.approx([difference])
    assert pairs["high_risk"].tolist() == [expected]


def test_violations_are_above_both_thresholds_not_at_them():
    similarity = np.array([[1, 0.95, 0.9], [0.95, 1, 0.91], [0.9, 0.91, 1]])
    found = similarity_violations(similarity, [0.5, 0.7, 0.6])
    assert found[["individual_a", "individual_b"]].values.tolist() == [[0, 1]]
    assert found.attrs["n_similar_pairs"] == 2
    assert found.attrs["violation_rate"] == 0.5


# --------------------------------------------------------------------------------------------------- against n x n
@pytest.mark.parametrize("n", [60, 700])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_mixed_neighbours_agree_with_brute_force(n, k, include_self, missing):
    X, rng = people(n, missing=missing), np.random.default_rng(1)
    y = rng.random(n)
    result = consistency_score(X, y, n_neighbors=k, include_self=include_self, n_resamples=100)
    score, largest = brute_consistency(gower(X), y, k, equal_rows(X), include_self)
    assert result.score == pytest.approx(score, abs=1e-12)
    assert result.max_difference == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("shape", ["normal", "outliers", "grid", "far"])
@pytest.mark.parametrize("metric", ["mixed", "euclidean", "mahalanobis", "callable"])
def test_numeric_neighbours_agree_with_brute_force(metric, shape):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(900, 4))
    X = {
        "normal": X,
        "outliers": np.sign(X) * np.exp(3 * np.abs(X)),
        "grid": X.round(),
        "far": np.where(X[:, :1] > 1, 1e4, 0) + X / 10,
    }[shape]
    y = rng.random(900)
    scaled = X / X.std(0)
    inverse = np.linalg.pinv(np.cov(X.T), rcond=1e-12)
    distance = {
        "mixed": lambda: cdist(X / np.ptp(X, axis=0), X / np.ptp(X, axis=0), "cityblock") / 4,
        "euclidean": lambda: cdist(scaled, scaled),
        "mahalanobis": lambda: cdist(X, X, "mahalanobis", VI=inverse),
        "callable": lambda: cdist(scaled, scaled, "chebyshev"),
    }[metric]()
    if shape == "far" and metric == "mahalanobis":
        pytest.skip("the oracle inverts an ill-conditioned covariance")
    given = (lambda A, B: cdist(A, B, "chebyshev")) if metric == "callable" else metric
    result = consistency_score(X, y, metric=given, n_resamples=100)
    assert result.score == pytest.approx(brute_consistency(distance, y, 5, equal_rows(pd.DataFrame(X)))[0], abs=1e-9)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("missing", [False, True])
def test_similar_pairs_agree_with_brute_force(n, missing):
    X, y = people(n, missing=missing), np.random.default_rng(2).random(n)
    first, second = np.triu_indices(n, 1)
    distance, difference = gower(X)[first, second], np.abs(y[first] - y[second])
    known = np.isfinite(distance)
    similar = distance <= np.percentile(distance[known], 10) + 1e-12
    result = consistency_score(X, y, method="similar_pairs")
    assert result.score == pytest.approx(1 - difference[similar].mean(), abs=1e-12)
    assert result.max_difference == pytest.approx(difference[similar].max())
    assert (result.n_pairs, result.estimated) == (n * (n - 1) // 2, False)
    assert result.n_similar_pairs == similar.sum()


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_the_smallest_samples_have_a_score(n):
    X, y = np.arange(n)[:, None] ** 2.0, np.linspace(0, 1, n)
    assert consistency_score(X, y, method="similar_pairs").score == pytest.approx(1 - 1 / (n - 1))
    assert consistency_score(X, y, n_neighbors=1).score == pytest.approx(1 - 1 / (n - 1))
    assert len(matched_pairs(X, y, np.arange(n) % 2, distance_threshold=2)) > 0


def test_similar_pairs_are_estimated_where_there_are_more():
    X, y = people(1200), np.random.default_rng(2).random(1200)
    exact = consistency_score(X, y, method="similar_pairs")
    drawn = consistency_score(X, y, method="similar_pairs", max_pairs=100_000)
    assert not exact.estimated
    assert drawn.estimated
    assert drawn.n_pairs == 100_000
    assert drawn.score == pytest.approx(exact.score, abs=0.01)
    assert drawn.distance_threshold == pytest.approx(exact.distance_threshold, rel=0.02)
    assert drawn.n_similar_pairs == pytest.approx(exact.n_similar_pairs, rel=0.02)


def test_a_callable_metric_gives_similar_pairs_by_blocks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.random(300)
    ours = consistency_score(X, y, method="similar_pairs", metric="euclidean")
    given = consistency_score(X, y, method="similar_pairs", metric=lambda A, B: cdist(A, B))
    assert given.score == pytest.approx(ours.score, abs=1e-12)


def brute_matched(distance, y, groups, k, threshold, apart):
    """The pairs among the k nearest of each other group; of rows equally far those whose scores differ more."""
    found = set()
    for i in range(len(y)):
        for group in set(groups) - {groups[i]}:
            others = np.flatnonzero(groups == group)
            order = np.lexsort((-np.abs(y[others] - y[i]), distance[i, others].round(12)))[:k]
            for j in others[order]:
                if distance[i, j] < threshold and abs(y[i] - y[j]) > apart:
                    found.add((min(i, j), max(i, j)))
    return found


@pytest.mark.parametrize("n", [80, 500])
@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("missing", [False, True])
def test_matched_pairs_agree_with_brute_force(n, n_groups, missing):
    X, rng = people(n, missing=missing), np.random.default_rng(1)
    y, groups = rng.random(n), rng.integers(0, n_groups, n)
    pairs = matched_pairs(X, y, groups, distance_threshold=0.15, n_neighbors=3)
    distance = gower(X)
    ours = {tuple(sorted(pair)) for pair in pairs[["individual_a", "individual_b"]].values.tolist()}
    assert ours == brute_matched(distance, y, groups, 3, 0.15, 0.1)
    assert len(ours) == len(pairs) == pairs.attrs["n_found"] > 0
    a, b = pairs["individual_a"].to_numpy(), pairs["individual_b"].to_numpy()
    np.testing.assert_allclose(pairs["distance"], distance[a, b], atol=1e-12)
    np.testing.assert_allclose(pairs["prediction_diff"], np.abs(y[a] - y[b]))
    np.testing.assert_array_equal(pairs["sensitive_feature_a"], groups[a])
    np.testing.assert_array_equal(pairs["high_risk"], (pairs["distance"] < 0.1) & (pairs["prediction_diff"] > 0.2))
    first, second = np.triu_indices(n, 1)
    cross = groups[first] != groups[second]
    total = cross & (distance[first, second] < 0.15) & (np.abs(y[first] - y[second]) > 0.1)
    assert pairs.attrs["n_total"] == pairs.attrs["n_total_low"] == total.sum()
    assert pairs.attrs["n_cross_pairs"] == cross.sum()


def test_with_as_many_neighbours_as_rows_every_pair_is_found():
    X, rng = people(150), np.random.default_rng(5)
    y, groups = rng.random(150), rng.integers(0, 3, 150)
    pairs = matched_pairs(X, y, groups, n_neighbors=150)
    assert pairs.attrs["n_found"] == pairs.attrs["n_total"]
    assert not pairs.attrs["estimated"]


def test_the_total_of_matched_pairs_is_estimated_with_an_interval(monkeypatch):
    X, rng = people(600), np.random.default_rng(5)
    y, groups = rng.random(600), rng.integers(0, 3, 600)
    exact = matched_pairs(X, y, groups, distance_threshold=0.1)
    monkeypatch.setattr(matched_module, "SAMPLED_PAIRS", 20_000)
    drawn = matched_pairs(X, y, groups, distance_threshold=0.1)
    assert drawn.attrs["estimated"]
    assert drawn.attrs["n_total_low"] <= exact.attrs["n_total"] <= drawn.attrs["n_total_high"]
    pd.testing.assert_frame_equal(drawn, exact)


@pytest.mark.parametrize("kind", ["array", "float32", "sparse", "callable", "frame"])
def test_similarity_agrees_with_brute_force(kind, monkeypatch):
    monkeypatch.setattr("sklearn_ethiclens.individual._similarity.BLOCK_ROWS", 37)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), rng.random(150).round(2)
    matrix = np.exp(-cdist(X, X))
    given = {
        "array": matrix,
        "float32": matrix.astype(np.float32),
        "sparse": csr_array(np.where(matrix > 0.5, matrix, 0)),
        "callable": lambda A, B: np.exp(-cdist(A, B)),
        "frame": pd.DataFrame(matrix),
    }[kind]
    first, second = np.triu_indices(150, 1)
    similar = matrix[first, second] > 0.9
    difference = np.abs(y[first] - y[second])
    violates = similar & (difference > 0.1 + 1e-12)
    found = similarity_violations(given, y, X, n_jobs=2)
    assert set(zip(found["individual_a"], found["individual_b"], strict=True)) == set(
        zip(first[violates], second[violates], strict=True)
    )
    assert found.attrs["n_similar_pairs"] == similar.sum() > 10
    assert found["prediction_diff"].is_monotonic_decreasing
    cut = similarity_violations(given, y, X, max_pairs=3)
    pd.testing.assert_frame_equal(cut, found.iloc[:3], check_exact=True)
    assert cut.attrs["n_violations"] == violates.sum()
    result = consistency_score(X, y, method="similar_pairs", similarity=given)
    assert result.score == pytest.approx(1 - difference[similar].mean(), abs=1e-12)
    assert result.n_similar_pairs == similar.sum()


# ---------------------------------------------------------------------------------------------------------------- laws
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"n_neighbors": 1}, {"method": "similar_pairs", "max_pairs": 5000}, {"max_samples": 100}]
)
def test_permuting_rows_changes_nothing(options, missing):
    X = people(400, missing=missing)
    rng = np.random.default_rng(4)
    y, groups = pd.Series(rng.random(400).round(1)), pd.Series(rng.choice(["f", "m", "x"], 400), name="sex")
    shuffled = rng.permutation(400)
    assert consistency_score(X, y, **options) == consistency_score(X.iloc[shuffled], y.iloc[shuffled], **options)
    options = {"max_samples": options.get("max_samples")}
    one = matched_pairs(X, y, groups, **options)
    other = matched_pairs(X.iloc[shuffled], y.iloc[shuffled], groups.iloc[shuffled], **options)
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert one.attrs == other.attrs


@pytest.mark.parametrize("metric", ["mixed", "euclidean", "mahalanobis"])
@pytest.mark.parametrize("constant", [0.1, 0.3, 1.0])
def test_constant_scores_are_consistent(metric, constant):
    X = people(300)[NUMBERS]
    for method in ("neighbors", "similar_pairs"):
        result = consistency_score(X, np.full(300, constant), metric=metric, method=method)
        assert (result.score, result.low, result.high, result.band) == (1, 1, 1, "excellent")
        assert result.degenerate
    assert matched_pairs(X, np.full(300, constant), np.arange(300) % 2).empty


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.floats(0, 1)), min_size=1, max_size=8),
    st.integers(6, 9),
)
def test_rows_with_enough_equals_of_equal_score_are_consistent(rows, copies):
    once = {(number, letter): score for number, letter, score in rows}
    X = pd.DataFrame([key for key in once for _ in range(copies)], columns=["number", "letter"])
    y = [score for score in once.values() for _ in range(copies)]
    assert consistency_score(X, y, n_resamples=100).score == 1


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 8), st.booleans())
def test_small_samples_with_many_ties_agree_with_brute_force(seed, n, k, include_self):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"a": rng.integers(0, 3, n).astype(float), "b": rng.choice(list("xyz"), n), "c": rng.choice(list("uv"), n)}
    )
    y = rng.integers(0, 2, n).astype(float)
    k = min(k, n - 1)
    score, _ = brute_consistency(gower(X), y, k, equal_rows(X), include_self)
    assert consistency_score(X, y, n_neighbors=k, include_self=include_self, n_resamples=100).score == pytest.approx(
        score, abs=1e-12
    )


def test_the_bytes_do_not_depend_on_workers_or_blocks(monkeypatch):
    X, rng = people(300, missing=True), np.random.default_rng(0)
    numbers = rng.normal(size=(500, 5))
    y, groups = rng.random(500), rng.integers(0, 2, 500)

    def everything(n_jobs):
        scores = [
            consistency_score(X, y[:300], n_jobs=n_jobs, n_resamples=100),
            consistency_score(numbers, y, n_jobs=n_jobs, n_resamples=100),
            consistency_score(numbers, y, metric="euclidean", n_jobs=n_jobs, n_resamples=100),
            consistency_score(X, y[:300], method="similar_pairs", n_jobs=n_jobs, n_resamples=100),
        ]
        pairs = [
            matched_pairs(X, y[:300], groups[:300], n_jobs=n_jobs),
            matched_pairs(numbers, y, groups, n_jobs=n_jobs),
        ]
        return [repr(score) for score in scores] + [frame.to_csv() + repr(frame.attrs) for frame in pairs]

    expected = everything(None)
    assert everything(2) == expected
    for module, name, value in [
        (_search, "BLOCK_ROWS", 17),
        (_search, "_FIRST_TILE", 30),
        (_search, "_TILE", 50),
        (_search, "_MAX_FOUND", 100),
        (_search, "_COARSE", 0.0),
        (consistency_module, "_PAIR_BLOCK", 1000),
        (matched_module, "_MAX_EXPANDED", 64),
    ]:
        monkeypatch.setattr(module, name, value)
        assert everything(2) == expected, name


def test_the_seed_is_stated_and_repeats_the_result():
    X, y = people(300), np.random.default_rng(0).random(300)
    result = consistency_score(X, y, random_state=None, max_samples=100)
    assert consistency_score(X, y, random_state=result.random_state, max_samples=100) == result
    assert consistency_score(X, y, random_state=result.random_state + 1, max_samples=100) != result


def test_max_samples_measures_fewer_rows_against_all():
    X, y = people(1000), np.random.default_rng(0).random(1000)
    every, some = consistency_score(X, y), consistency_score(X, y, max_samples=400)
    assert (some.n_compared, some.n_rows, some.estimated) == (400, 1000, True)
    assert some.low < every.score < some.high
    assert some.high - some.low > every.high - every.low
    groups = np.arange(1000) % 2
    everyone = matched_pairs(X, y, groups)
    sampled = matched_pairs(X, y, groups, max_samples=200)
    keys = ["individual_a", "individual_b"]
    assert 0 < len(sampled) < len(everyone)
    assert len(sampled.merge(everyone, on=keys)) == len(sampled)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("k", "method"), [(1, "neighbors"), (5, "neighbors"), (5, "similar_pairs")])
def test_the_interval_is_as_wide_as_the_score_varies(k, smooth, method):
    rng, found = np.random.default_rng(0), []
    for _ in range(80):
        X = rng.normal(size=(300, 2))
        y = 1 / (1 + np.exp(-2 * X[:, 0])) if smooth else rng.integers(0, 2, 300)
        y = np.clip(y + smooth * 0.1 * rng.normal(size=300), 0, 1)
        result = consistency_score(X, y, n_neighbors=k, method=method, scale="standard", n_resamples=100)
        found.append((result.score, result.low, result.high))
    score, low, high = np.array(found).T
    assert np.mean((low <= score.mean()) & (score.mean() <= high)) >= 0.87
    assert 0.75 < (high - low).mean() / 3.92 / score.std() < 1.6


# ------------------------------------------------------------------------------------------------------------ containers
def test_pandas_polars_and_numpy_agree():
    pl = pytest.importorskip("polars")
    X, y = people(200, missing=True), np.random.default_rng(0).random(200)
    groups = pd.Series(np.arange(200) % 2, name="g")
    columns = {name: [None if pd.isna(v) else v for v in X[name]] for name in X}
    expected = consistency_score(X, y)
    assert consistency_score(pl.DataFrame(columns), pl.Series(y)) == expected
    assert consistency_score(X.to_numpy(dtype=object), list(y)) == expected
    pairs = matched_pairs(X, y, groups)
    pd.testing.assert_frame_equal(
        matched_pairs(pl.DataFrame(columns), pl.Series(y), pl.Series("g", groups.to_numpy())), pairs
    )


def test_labels_of_the_index_name_the_individuals_and_nothing_is_modified():
    X = people(60, index=[f"p{i}" for i in range(60)])
    y, groups = pd.Series(np.linspace(0, 1, 60), X.index), pd.Series(list("fm") * 30, X.index, name="sex")
    before = X.copy(), y.copy(), groups.copy()
    pairs = matched_pairs(X, y, groups)
    assert set(pairs["individual_a"]) | set(pairs["individual_b"]) <= set(X.index)
    assert (groups[pairs["individual_a"]].to_numpy() == pairs["sex_a"]).all()
    assert (pairs["sex_a"] != pairs["sex_b"]).all()
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_series_equal(y, before[1])
    pd.testing.assert_series_equal(groups, before[2])
    found = similarity_violations(np.ones((60, 60)), y)
    assert found.loc[0, ["individual_a", "individual_b"]].tolist() == ["p0", "p59"]


def test_several_sensitive_columns_make_combined_groups():
    X, y = people(200), np.random.default_rng(0).random(200)
    sensitive = pd.DataFrame({"sex": list("fm") * 100, "old": [True, True, False, False] * 50})
    pairs = matched_pairs(X, y, sensitive, n_neighbors=2)
    assert ((pairs["sex_a"] != pairs["sex_b"]) | (pairs["old_a"] != pairs["old_b"])).all()
    assert pairs["protected_attr_differs"].all()
    assert (pairs["sex_a"] == pairs["sex_b"]).any()


def test_missing_groups_are_a_group_with_a_warning():
    X, y = people(60), np.random.default_rng(0).random(60)
    with pytest.warns(MissingGroupsWarning, match="'sex' is missing in 20 of 60 rows"):
        pairs = matched_pairs(X, y, {"sex": ["f", "m", None] * 20}, n_neighbors=3)
    assert "(missing)" in set(pairs["sex_a"]) | set(pairs["sex_b"])


def test_codes_can_be_declared_categories():
    X = pd.DataFrame({"code": [1, 2, 9, 9], "x": [0.0, 0.1, 0.5, 1.0]})
    y = [0.0, 1.0, 1.0, 1.0]
    as_text = consistency_score(X.astype({"code": str}), y, n_neighbors=1)
    assert consistency_score(X, y, n_neighbors=1, categorical_features=["code"]) == as_text
    assert consistency_score(X.to_numpy(), y, n_neighbors=1, categorical_features=[0]) == as_text


def test_robust_scale_is_not_moved_by_an_outlier():
    X, y = people(300)[NUMBERS], np.random.default_rng(0).random(300)
    far = X.copy()
    far.loc[far["income"].idxmax(), "income"] *= 1e6
    assert consistency_score(far, y, scale="robust").score == pytest.approx(
        consistency_score(X, y, scale="robust").score, abs=1e-12
    )
    assert consistency_score(far, y).score != pytest.approx(consistency_score(X, y).score, abs=1e-6)


def test_rows_without_any_feature_are_left_out_with_a_warning():
    X = people(50)
    X.iloc[:2] = None
    with pytest.warns(UndefinedMetricWarning, match="2 rows have no feature in common"):
        result = consistency_score(X, np.linspace(0, 1, 50))
    assert (result.n_compared, result.n_rows) == (48, 50)
    assert not set(matched_pairs(X, np.linspace(0, 1, 50), list("fm") * 25)["individual_a"]) & {0, 1}


def test_no_similar_pairs_are_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no similar pairs"):
        result = consistency_score(None or np.eye(3), [0, 1, 0], method="similar_pairs", similarity=np.eye(3))
    assert np.isnan(result.score)
    assert np.isnan(result.low)
    assert result.band == "undefined"


# -------------------------------------------------------------------------------------------------------------- refusals
X3, Y3 = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]}), [0, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: consistency_score(csr_array(np.eye(3)), Y3), TypeError, "X is sparse"),
        (lambda: consistency_score(X3, Y3, metric="euclidean"), ValueError, "these features are categories: ['b']"),
        (
            lambda: consistency_score(X3[["a"]].replace(1, np.nan), Y3, metric="mahalanobis"),
            ValueError,
            "missing values, which these features have: ['a']",
        ),
        (lambda: consistency_score(X3.replace(1, np.inf), Y3), ValueError, "feature 'a' holds infinite"),
        (lambda: consistency_score(X3, [1, 2, 2]), ValueError, "y_score must be scores in [0, 1]"),
        (lambda: consistency_score(X3, [1, np.nan, 0]), ValueError, "y_score is missing in 1 of 3"),
        (lambda: consistency_score(X3, ["yes", "no", "no"]), TypeError, "y_score must be scores"),
        (lambda: consistency_score(X3, np.eye(3)), ValueError, "y_score must be one column"),
        (lambda: consistency_score(X3, [0, 1]), ValueError, "X 3, y_score 2 rows"),
        (lambda: consistency_score(X3, pd.Series(Y3, index=[1, 2, 3])), ValueError, "the index of y_score differs"),
        (
            lambda: consistency_score(X3, Y3),
            ValueError,
            "n_neighbors must be at most the number of other rows, 2; got 5",
        ),
        (lambda: consistency_score(X3, Y3, n_neighbors=0), ValueError, "n_neighbors must be a whole number"),
        (lambda: consistency_score(X3, Y3, method="knn"), ValueError, "method must be"),
        (lambda: consistency_score(X3, Y3, metric="cosine"), ValueError, "metric must be one of"),
        (lambda: consistency_score(X3, Y3, scale="log"), ValueError, "scale must be"),
        (lambda: consistency_score(X3, Y3, similarity=np.eye(3)), ValueError, "method='similar_pairs'"),
        (lambda: consistency_score(X3, Y3, categorical_features=["c"]), ValueError, "['c'] are not among the columns"),
        (lambda: consistency_score(X3, Y3, categorical_features="a"), TypeError, "pass ['a']"),
        (lambda: consistency_score([1.0, 2.0, 3.0], Y3), ValueError, "got shape (3,)"),
        (lambda: consistency_score(X3, Y3, similarity_percentile=100), ValueError, "similarity_percentile must be in"),
        (
            lambda: consistency_score(X3[["a"]], Y3, n_neighbors=1, metric=lambda A, B: A),
            ValueError,
            "(len(A), len(B)) = (3, 3)",
        ),
        (lambda: consistency_score(X3.iloc[:1], [1]), ValueError, "at least two rows"),
        (lambda: matched_pairs(X3, Y3, ["f", "f", "f"]), ValueError, "all rows have the same 'sensitive_feature'"),
        (
            lambda: matched_pairs(X3, Y3, pd.Series(["f", "f", "m"], index=[1, 2, 3])),
            ValueError,
            "the index of sensitive_features differs",
        ),
        (
            lambda: matched_pairs(X3, Y3, list("fmf"), distance_threshold=0),
            ValueError,
            "distance_threshold must be above 0",
        ),
        (lambda: similarity_violations(np.eye(2), Y3), ValueError, "got shape (2, 2)"),
        (lambda: similarity_violations(np.triu(np.ones((3, 3))), Y3), ValueError, "similarity must be symmetric"),
        (
            lambda: similarity_violations(csr_array(np.triu(np.ones((3, 3)))), Y3),
            ValueError,
            "similarity must be symmetric",
        ),
        (lambda: similarity_violations(np.full((3, 3), np.nan), Y3), ValueError, "similarity holds NaN"),
        (lambda: similarity_violations(np.ones_like, Y3), ValueError, "pass X"),
        (
            lambda: similarity_violations(lambda A, B: np.ones(3), Y3, X3),
            ValueError,
            "similarity(A, B) must return shape",
        ),
    ],
)
def test_refusals_name_the_argument(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


# ----------------------------------------------------------------------------------------------------- draws and the bar
@pytest.mark.parametrize("sizes", [(3, 4), (1, 5, 2), (2, 2, 2, 9)])
def test_pairs_across_groups_are_all_of_them_or_drawn_evenly(sizes):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    every = draw_cross_pairs(groups, 10_000, 0)
    n = groups.size
    expected = {(i, j) for i in range(n) for j in range(i + 1, n) if groups[i] != groups[j]}
    listed = [tuple(sorted(pair)) for pair in zip(every.first.tolist(), every.second.tolist(), strict=True)]
    assert every.exact
    assert every.total == len(listed) == len(expected)
    assert set(listed) == expected
    again = np.tile(groups, 100)
    drawn = draw_cross_pairs(again, 60_000, 0)
    assert not drawn.exact
    assert (again[drawn.first] != again[drawn.second]).all()
    counts = np.bincount(drawn.first % n * n + drawn.second % n, minlength=n * n).reshape(n, n)
    counts = (counts + counts.T)[np.triu_indices(n, 1)]
    counts = counts[counts > 0]
    assert counts.size == len(expected)
    assert np.abs(counts - counts.mean()).max() < 6 * np.sqrt(counts.mean())


def test_drawn_pairs_are_of_two_rows_and_even():
    pairs = draw_pairs(2000, 50_000, 1)
    assert (pairs.first != pairs.second).all()
    assert max(pairs.first.max(), pairs.second.max()) == 1999
    assert abs(pairs.first.mean() - 999.5) < 15
    assert abs(pairs.second.mean() - 999.5) < 15
    assert draw_pairs(5, 10, 0).exact
    assert len(draw_pairs(5, 10, 0).first) == 10


def test_drawn_rows_and_means_are_seeded():
    assert draw_rows(5, None, 0).tolist() == draw_rows(5, 7, 0).tolist() == [0, 1, 2, 3, 4]
    rows = draw_rows(1000, 10, 3)
    assert len(set(rows)) == 10
    assert (np.diff(rows) > 0).all()
    values = np.random.default_rng(0).normal(size=500)
    means = resampled_means(values, 2000, 0)
    assert (means == resampled_means(values[::-1], 2000, 0)).all()
    assert means.std() == pytest.approx(values.std() / np.sqrt(500), rel=0.08)


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_bar_is_drawn_on_a_terminal_after_the_wait_only(verbose, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    X, y = people(600), np.linspace(0, 1, 600)
    consistency_score(X, y, verbose=verbose)
    assert ("neighbours" in capsys.readouterr().err) == bool(verbose)


def test_nothing_is_printed_off_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "PATIENCE", -1.0)
    consistency_score(people(600), np.linspace(0, 1, 600))
    assert capsys.readouterr() == ("", "")


def test_memory_grows_with_rows_not_with_pairs():
    code = """
        import numpy as np
        from sklearn_ethiclens.individual import consistency_score, matched_pairs
        from tests.benchmarks._timing import peak_memory
        rng = np.random.default_rng(0)
        X, y, s = rng.normal(size=(30_000, 10)), rng.random(30_000), rng.integers(0, 2, 30_000)
        consistency_score(X, y, max_samples=256), consistency_score(X, y, method="similar_pairs")
        matched_pairs(X, y, s, max_samples=256)
        print(peak_memory())
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert float(done.stdout) < 1000  # MiB, where n x n takes 7,200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "rate", "least", "most"),
    [
        ({}, None, 0.93, 1.0),
        ({"method": "similar_pairs"}, None, 0.93, 1.0),
        ({"method": "similar_pairs"}, 0.02, 0.0, 0.9),  # close to a score of 1, as the docstring warns
    ],
)
def test_intervals_cover_the_mean_score_of_samples_but_less_close_to_one(options, rate, least, most):
    n_sets, n = 250, 100
    found = np.empty((n_sets, 3))
    for i in range(n_sets):
        rng = np.random.default_rng([n, i])
        X = rng.normal(size=(n, 2))
        y = (rng.random(n) < (1 / (1 + np.exp(-X[:, 0])) if rate is None else rate)).astype(float)
        result = consistency_score(X, y, n_resamples=500, random_state=i, verbose=0, **options)
        found[i] = float(result), result.low, result.high
    truth = found[:, 0].mean()
    covered = ((found[:, 1] <= truth) & (truth <= found[:, 2])).mean()
    assert least <= covered <= most
