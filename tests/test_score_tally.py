"""The score tally: what it takes and refuses, that it adds and has marginals as its rows do, and what of it is stored."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_ethiclens import Tally
from sklearn_ethiclens._score_tally import ScoreBins, ScoreTally, bin_edges, check_scores

SCORES = [0.25, 0.5, 1.0, 0.0]


def polars_series():
    return pytest.importorskip("polars").Series("s", SCORES)


def arrow_array():
    return pytest.importorskip("pyarrow").array(SCORES)


# --------------------------------------------------------------------------------------------------- what is accepted
@pytest.mark.parametrize(
    "given",
    [
        SCORES,
        tuple(SCORES),
        np.array(SCORES),
        np.array(SCORES, dtype=object),
        np.array(SCORES, dtype=np.float32),
        np.array(SCORES)[:, None],
        pd.Series(SCORES, index=[9, 8, 7, 6]),
        pd.Series(SCORES, dtype="Float64"),
        pd.DataFrame({"s": SCORES}),
        pytest.param(polars_series, marks=pytest.mark.engines),
        pytest.param(arrow_array, marks=pytest.mark.engines),
    ],
    ids=lambda given: type(given).__name__,
)
def test_scores_of_every_kind_of_column_are_the_same(given):
    found = check_scores(given() if callable(given) else given)
    assert found.dtype == np.float64
    assert found.tolist() == SCORES


def test_rounding_makes_no_probability_an_improbable_one():
    assert check_scores([1 + 2**-52, -1e-17, 0.5]).tolist() == [1.0, 0.0, 0.5]
    assert check_scores([1 + 1e-9, -1e-17]).tolist() == [1 + 1e-9, -1e-17]  # no probabilities: as they are
    with pytest.raises(ValueError, match=r"up to 1e\+150 in size, whose squares are finite; got 1e\+200"):
        check_scores([0.5, -1e200])


def test_whole_numbers_and_booleans_are_scores():
    assert check_scores([0, 3, 1]).tolist() == [0, 3, 1]
    assert check_scores(np.array([True, False])).tolist() == [1, 0]
    assert check_scores(pd.Series([1, 0], dtype="Int64")).tolist() == [1, 0]


def test_the_scores_given_are_not_changed():
    given = np.array([0.9, 0.1, 0.5])
    ScoreTally.from_rows(given, [1, 1, 1], [0, 0, 0], n_groups=1)
    assert given.tolist() == [0.9, 0.1, 0.5]
    assert given.flags.writeable


def test_two_columns_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"y_score .* got 2 columns.*classes_\)\.index\(pos_label\)"):
        check_scores(np.array([[0.1, 0.9], [0.8, 0.2]]))
    with pytest.raises(ValueError, match="got 2 columns"):
        check_scores([[0.1, 0.9], [0.8, 0.2]])
    with pytest.raises(ValueError, match="got 2 columns"):
        check_scores(pd.DataFrame({"a": [0.1], "b": [0.9]}))


@pytest.mark.parametrize(
    "given",
    [
        [0.5, np.nan, np.nan],
        [0.5, None, None],
        np.array([0.5, None, pd.NA], dtype=object),
        pd.Series([0.5, None, None], dtype="Float64"),
    ],
)
def test_missing_scores_are_refused_with_their_number(given):
    with pytest.raises(ValueError, match=r"y_score is 2 missing \(NaN\) of 3 rows"):
        check_scores(given)


def test_infinite_scores_are_refused_with_their_number():
    with pytest.raises(ValueError, match="y_score is 1 infinite of 2 rows"):
        check_scores([0.5, np.inf])
    with pytest.raises(ValueError, match=r"1 missing \(NaN\) and 1 infinite of 3"):
        check_scores([0.5, -np.inf, np.nan])


@pytest.mark.parametrize(
    "given",
    [
        ["0.5", "0.6"],
        pd.Series(["0.5", "0.6"], dtype="string"),
        pd.Series(["a", "b"], dtype="category"),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        [1 + 2j],
    ],
    ids=["text", "string", "category", "dates", "complex"],
)
def test_what_is_no_number_is_refused(given):
    with pytest.raises(TypeError, match="y_score must hold one number per row"):
        check_scores(given)


# ------------------------------------------------------------------------------------------------------------ laws
@st.composite
def rows(draw, n_groups=4):
    n = draw(st.integers(0, 40))
    score = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 1.0]) | st.floats(0, 1)
    column = lambda values: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    groups, truth = column(st.integers(0, n_groups - 1)), column(st.integers(0, 1))
    return column(score).astype(float), truth.astype(int), groups.astype(int)


def same(a, b):
    return np.array_equal(a.scores, b.scores) and np.array_equal(a.starts, b.starts)


@given(rows())
@settings(max_examples=60, deadline=None)
def test_every_row_is_kept_under_its_group_and_outcome(data):
    scores, truth, groups = data
    tally = ScoreTally.from_rows(scores, truth, groups, n_groups=4)
    for g in range(4):
        group = tally.group(g)
        assert group.positives.tolist() == sorted(scores[(groups == g) & (truth == 1)].tolist())
        assert group.negatives.tolist() == sorted(scores[(groups == g) & (truth == 0)].tolist())
        assert group.n == (groups == g).sum()


@given(rows(), rows())
@settings(max_examples=60, deadline=None)
def test_score_tallies_add_as_their_rows_do(first, second):
    both = [np.concatenate(columns) for columns in zip(first, second, strict=True)]
    apart = [ScoreTally.from_rows(*part, n_groups=4) for part in (first, second)]
    assert same(apart[0] + apart[1], ScoreTally.from_rows(*both, n_groups=4))
    assert same(apart[0] + apart[1], apart[1] + apart[0])


@given(rows(), st.lists(st.integers(0, 2), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
def test_groups_merge_as_their_rows_do(data, position):
    scores, truth, groups = data
    position = np.array(position)
    merged = ScoreTally.from_rows(*data, n_groups=4).merge(position, 3)
    assert same(merged, ScoreTally.from_rows(scores, truth, position[groups], n_groups=3))


@given(rows(), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_bins_are_those_of_a_loop_over_rows(data, n_bins):
    scores, truth, groups = data
    bins = ScoreTally.from_rows(*data, n_groups=4).binned(bin_edges(n_bins))
    counts, sums, squares = np.zeros((3, 4, n_bins, 2))
    for s, y, g in zip(*data, strict=True):
        b = next(k for k in reversed(range(n_bins)) if s >= k / n_bins)
        counts[g, b, y] += 1
        sums[g, b, y] += s
        squares[g, b, y] += s * s
    assert np.array_equal(bins.counts, counts)
    np.testing.assert_allclose(bins.sums, sums, atol=1e-12)
    np.testing.assert_allclose(bins.squares, squares, atol=1e-12)


@pytest.mark.parametrize("n_bins", [3, 10, 49])
def test_a_score_on_an_edge_is_in_the_bin_it_opens(n_bins):
    """0.3 is the fourth of ten; numpy.linspace has 0.30000000000000004 there, and would put it into the third."""
    edges = np.arange(n_bins) / n_bins
    bins = ScoreTally.from_rows(edges, np.ones(n_bins), np.zeros(n_bins), n_groups=1).binned(bin_edges(n_bins))
    assert bins.counts[0, :, 1].tolist() == [1] * n_bins


def test_placements_are_those_of_all_pairs():
    random = np.random.default_rng(0)
    scores, truth = random.integers(0, 8, 60) / 8, random.integers(0, 2, 60)
    group = ScoreTally.from_rows(scores, truth, np.zeros(60), n_groups=1).group(0)
    positive, negative = group.positives[:, None], group.negatives[None, :]
    wins = (positive > negative) + 0.5 * (positive == negative)
    assert group.placements[0].tolist() == wins.sum(1).tolist()
    assert group.placements[1].tolist() == wins.sum(0).tolist()


def test_whether_scores_are_probabilities_is_asked_of_all_groups():
    tally = ScoreTally.from_rows([0.5, 0.2, 1.5], [1, 0, 1], [0, 0, 1], n_groups=2)
    assert not tally.group(0).probabilities
    assert ScoreTally.from_rows([0.0, 1.0], [1, 0], [0, 0], n_groups=1).group(0).probabilities


def test_means_by_group_and_nan_where_there_is_none():
    tally = ScoreTally.from_rows([0.5, 0.25, 1.0], None, [0, 0, 2], n_groups=4)
    np.testing.assert_array_equal(tally.mean(), [0.375, np.nan, 1.0, np.nan])
    with pytest.raises(ValueError, match="no labels"):
        tally.group(0)


def test_runs_that_are_not_sorted_are_refused():
    with pytest.raises(ValueError, match="ascending"):
        ScoreTally(np.array([0.5, 0.4]), np.array([[0, 0]]))
    with pytest.raises(ValueError, match="rising positions"):
        ScoreTally(np.array([0.5, 0.4]), np.array([[0, 3]]))
    with pytest.raises(ValueError, match="one entry per row"):
        ScoreTally.from_rows([0.5, 0.4], [1], [0], n_groups=1)


# ------------------------------------------------------------------------------------------------------- in a tally
def people(n=400, seed=0):
    random = np.random.default_rng(seed)
    groups = {"sex": random.choice(["f", "m"], n), "age": random.choice([30, 40, "unknown"], n)}
    scores = random.random(n)
    truth = (random.random(n) < scores).astype(int)
    return truth, (scores > 0.5).astype(int), groups, scores


def tally_of(truth, decided, groups, scores, part=slice(None)):
    groups = {name: values[part] for name, values in groups.items()}
    return Tally.from_predictions(truth[part], decided[part], sensitive_features=groups, y_score=scores[part])


def test_tallies_with_scores_add_and_have_marginals_as_their_rows_do():
    data = people()
    whole = tally_of(*data)
    parts = tally_of(*data, slice(150)) + tally_of(*data, slice(150, None))
    assert same(parts.scores, whole.scores)
    assert parts == whole
    truth, decided, groups, scores = data
    only_age = Tally.from_predictions(truth, decided, sensitive_features={"age": groups["age"]}, y_score=scores)
    assert same(whole.marginal(["age"]).scores, only_age.scores)
    assert whole.marginal(["age"]) == only_age
    turned = Tally.from_predictions(
        truth, decided, sensitive_features={"age": groups["age"], "sex": groups["sex"]}, y_score=scores
    )
    assert same(whole.marginal(["age", "sex"]).scores, turned.scores)


def test_a_sum_over_folds_starts_from_zero():
    data = people()
    folds = [tally_of(*data, slice(start, start + 100)) for start in range(0, 400, 100)]
    assert sum(folds) == tally_of(*data)


def test_groups_that_only_one_part_has_keep_their_scores():
    a = Tally.from_predictions([1, 0], [1, 0], sensitive_features=["x", "x"], y_score=[0.9, 0.1])
    b = Tally.from_predictions([1, 0], [1, 0], sensitive_features=["y", "w"], y_score=[0.8, 0.2])
    total = a + b
    assert total.groups == (("w",), ("x",), ("y",))
    assert [total.scores.group(i).n for i in range(3)] == [1, 2, 1]


def test_order_of_rows_does_not_matter():
    truth, decided, groups, scores = people()
    order = np.random.default_rng(1).permutation(len(truth))
    shuffled = tally_of(truth[order], decided[order], {k: v[order] for k, v in groups.items()}, scores[order])
    assert same(shuffled.scores, tally_of(truth, decided, groups, scores).scores)


def test_many_groups_find_their_scores():
    n = 3000
    random = np.random.default_rng(2)
    groups = {name: random.integers(0, 50, n) for name in ("a", "b", "c", "d")}
    scores, truth = random.random(n), random.integers(0, 2, n)
    tally = Tally.from_predictions(truth, truth, sensitive_features=groups, y_score=scores)
    rows_of = list(zip(*groups.values(), strict=True))
    for i in (0, 17, len(tally.groups) - 1):
        mine = [s for s, y, row in zip(scores, truth, rows_of, strict=True) if row == tally.groups[i] and y == 1]
        assert tally.scores.group(i).positives.tolist() == sorted(mine)


def test_pos_label_decides_which_outcome_is_which():
    tally = Tally.from_predictions(
        ["no", "yes"], ["no", "yes"], sensitive_features=["g", "g"], y_score=[0.9, 0.1], pos_label="no"
    )
    assert tally.scores.group(0).positives.tolist() == [0.9]


def test_a_tally_without_scores_is_stored_as_before():
    truth, decided, groups, scores = people()
    plain = Tally.from_predictions(truth, decided, sensitive_features=groups)
    assert plain.scores is None
    assert set(plain.to_dict()) == {"attributes", "groups", "counts", "pos_label", "labels"}
    assert np.array_equal(plain.counts, tally_of(*people()).counts)
    small = Tally.from_counts({"a": {"tp": 1, "fp": 2, "fn": 3, "tn": 4}})
    text = '{"attributes":["group"],"counts":[[[4,2],[3,1]]],"groups":[["a"]],"labels":[0,1],"pos_label":1}'
    assert small.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert plain.digest() != tally_of(*people()).digest()
    assert len(small.__reduce__()[1]) == 5


def test_json_holds_bins_and_no_single_score():
    data = people()
    tally = tally_of(*data)
    text = json.dumps(tally.to_dict())
    read = Tally.from_dict(json.loads(text))
    assert isinstance(read.scores, ScoreBins)
    assert read == tally
    assert read.digest() == tally.digest()
    lone = tally.scores.bins.counts == 1
    told = set(np.round(tally.scores.bins.sums[lone], 12))
    hidden = [s for s in data[3] if round(s, 12) not in told]
    assert len(hidden) > 350
    assert not any(repr(float(s)) in text for s in hidden)
    n = np.array(tally.to_dict()["score_bins"]["n"])
    assert n.shape == (6, 10, 2)
    assert n.sum() == 400


def test_stored_bins_add_and_have_marginals():
    data = people()
    whole, parts = tally_of(*data), [tally_of(*data, slice(150)), tally_of(*data, slice(150, None))]
    read = [Tally.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts]
    for total in (read[0] + read[1], read[0] + parts[1], parts[0] + read[1]):
        assert isinstance(total.scores, ScoreBins)
        np.testing.assert_allclose(total.scores.sums, whole.scores.bins.sums)
        assert np.array_equal(total.marginal(["sex"]).scores.counts, whole.marginal(["sex"]).scores.bins.counts)


def test_a_pickle_keeps_the_scores():
    tally = tally_of(*people())
    again = pickle.loads(pickle.dumps(tally))
    assert same(again.scores, tally.scores)
    assert again == tally
    read = Tally.from_dict(tally.to_dict())
    assert pickle.loads(pickle.dumps(read)) == tally


def test_its_repr_shows_no_score():
    tally = tally_of(*people())
    assert repr(tally.scores) == "<ScoreTally of 400 rows, 6 groups>"
    assert repr(tally.scores.bins) == "<ScoreBins of 400 rows, 6 groups>"


def test_scores_of_other_rows_are_refused():
    mine, other = tally_of(*people()), tally_of(*people(seed=1))
    with pytest.raises(ValueError, match="scores must be of the rows that are counted"):
        Tally(mine.attributes, mine.groups, mine.counts, scores=other.scores)
    with pytest.raises(ValueError, match="tallies add only if their keeping of scores agree"):
        mine + Tally.from_predictions(*people()[:2], sensitive_features=people()[2])
    with pytest.raises(ValueError, match="one shape"):
        ScoreBins(np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), np.zeros((1, 3, 2)))


def test_lengths_and_indexes_must_agree():
    truth, decided, groups, scores = people()
    with pytest.raises(ValueError, match="y_score 399"):
        Tally.from_predictions(truth, decided, sensitive_features=groups, y_score=scores[1:])
    with pytest.raises(ValueError, match="the index of y_score differs from that of y_true"):
        Tally.from_predictions(
            pd.Series(truth),
            decided,
            sensitive_features=groups,
            y_score=pd.Series(scores, index=range(1, 401)),
        )


def test_without_labels_scores_are_kept_but_not_told_apart():
    _, decided, groups, scores = people()
    tally = Tally.from_predictions(None, decided, sensitive_features=groups, y_score=scores)
    assert not tally.scores.labelled
    assert tally.scores.bins.counts.shape == (6, 10, 1)
    assert Tally.from_dict(tally.to_dict()) == tally
