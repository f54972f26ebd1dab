"""CounterfactualProbe: what it changes, and that it changes nothing else."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_ethiclens.counterfactual import STRATEGIES, CounterfactualProbe
from sklearn_ethiclens.exceptions import ActiveProbeWarning, StaleColumnWarning

CODES = pd.DataFrame({"SEX": [1, 2, 1], "RAC1P": [1, 2, 9], "inc": [3.0, 4.0, 5.0]}, index=[5, 6, 7])


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "race": rng.choice(["a", "b", "c"], n),
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["x", "y"], n),
            "income": rng.normal(size=n),
        },
        index=np.arange(n)[::-1] + 100,
    )


# ------------------------------------------------------------------------------------------------- field report O16
def test_swapping_integer_codes_gives_the_other_code_and_nothing_else():
    X = CODES.copy()
    out = CounterfactualProbe("SEX").fit(X).transform(X)
    assert out["SEX"].tolist() == [2, 1, 2]
    assert out["SEX"].dtype == CODES["SEX"].dtype
    assert out.index.tolist() == [5, 6, 7]
    pd.testing.assert_frame_equal(out.drop(columns="SEX"), CODES.drop(columns="SEX"))
    pd.testing.assert_frame_equal(X, CODES)


def test_swapping_three_codes_needs_a_rule_and_never_makes_a_new_code():
    probe = CounterfactualProbe("RAC1P").fit(CODES)
    with pytest.raises(ValueError, match=r"'RAC1P' has 3: \[1, 2, 9\]"):
        probe.transform(CODES)
    found = list(probe.counterfactuals(CODES))
    assert [(name, value) for name, value, _ in found] == [("RAC1P", 1), ("RAC1P", 2), ("RAC1P", 9)]
    for _, value, X in found:
        assert X["RAC1P"].tolist() == [value] * 3
        assert X["RAC1P"].dtype == CODES["RAC1P"].dtype


def test_setting_an_unknown_category_is_an_error_that_names_it_and_the_known_ones():
    X = pd.DataFrame({"sex": pd.Categorical(["F", "F"], categories=["F"])})
    with pytest.raises(ValueError, match=r"no value 'M' .* known are \['F'\]"):
        CounterfactualProbe("sex", to="M").fit(X).transform(X)
    with pytest.raises(ValueError, match=r"cannot hold 'M'; its categories are \['F'\]"):
        CounterfactualProbe("sex", to="M", handle_unknown="ignore").fit(X).transform(X)


# ------------------------------------------------------------------------------------------------------------- types
COLUMNS = {
    "object": pd.Series(["F", "M", "F"], dtype=object),
    "string": pd.Series(["F", "M", "F"], dtype="string"),
    "category": pd.Series(pd.Categorical(["F", "M", "F"], categories=["M", "unused", "F"])),
    "ordered": pd.Series(pd.Categorical(["lo", "hi", "lo"], categories=["lo", "hi"], ordered=True)),
    "bool": pd.Series([True, False, True]),
    "int8": pd.Series([1, 2, 1], dtype="int8"),
    "uint8": pd.Series([0, 1, 0], dtype="uint8"),
    "float32": pd.Series([1, 2, 1], dtype="float32"),
    "Int64": pd.Series([1, 2, None], dtype="Int64"),
    "boolean": pd.Series([True, False, None], dtype="boolean"),
    "float with gaps": pd.Series([1.0, 2.0, np.nan]),
    "object with None": pd.Series(["F", "M", None], dtype=object),
    "datetime": pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", "2020-01-01"])),
    "mixed": pd.Series([1, "one", 1], dtype=object),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_types_of_pandas_are_kept_and_the_flip_undone_restores_the_frame(column):
    X = pd.DataFrame({"n": [1, 2, 3], "a": column, "t": ["u", "v", "w"]}).set_index(pd.Index([9, 7, 8], name="id"))
    before = X.copy()
    probe = CounterfactualProbe("a").fit(X)
    out = probe.transform(X)
    assert (out.dtypes == X.dtypes).all()
    assert out["a"].isna().tolist() == X["a"].isna().tolist()
    known = X["a"].notna()
    assert (out["a"][known] != X["a"][known]).all()
    pd.testing.assert_frame_equal(probe.transform(out), X)
    pd.testing.assert_frame_equal(X, before)
    target = probe.values_["a"][0]
    forced = clone(probe).set_params(to=target).fit(X).transform(X)
    assert (forced.dtypes == X.dtypes).all()
    assert set(forced["a"][known]) == {target}


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["String", "Categorical", "Enum", "Int8", "Boolean", "Int64 with null", "Date"])
def test_types_of_polars_are_kept(kind):
    pl = pytest.importorskip("polars")
    date = pl.Series(["2020-01-01", "2021-01-01", "2020-01-01"]).str.to_date()
    column = {
        "String": pl.Series(["F", "M", None]),
        "Categorical": pl.Series(["F", "M", "F"], dtype=pl.Categorical),
        "Enum": pl.Series(["F", "M", "F"], dtype=pl.Enum(["M", "unused", "F"])),
        "Int8": pl.Series([1, 2, 1], dtype=pl.Int8),
        "Boolean": pl.Series([True, False, None]),
        "Int64 with null": pl.Series([1, 2, None]),
        "Date": date,
    }[kind]
    X = pl.DataFrame({"n": [1, 2, 3], "a": column, "t": ["u", "v", "w"]})
    probe = CounterfactualProbe("a").fit(X)
    out = probe.transform(X)
    assert isinstance(out, pl.DataFrame)
    assert out.schema == X.schema
    assert out["a"].to_list() != X["a"].to_list()
    assert out["a"].is_null().to_list() == X["a"].is_null().to_list()
    assert out.drop("a").equals(X.drop("a"))
    assert probe.transform(out)["a"].to_list() == X["a"].to_list()


@pytest.mark.engines
def test_types_of_pyarrow_are_kept():
    pa = pytest.importorskip("pyarrow")
    columns = {
        "a": pa.array(["F", "M", None], type=pa.dictionary(pa.int8(), pa.string())),
        "b": pa.array([1, 2, 1], type=pa.int8()),
        "c": pa.array(["u", "v", "u"], type=pa.large_string()),
    }
    X = pa.table(columns)
    probe = CounterfactualProbe(["a", "b", "c"]).fit(X)
    out = probe.transform(X)
    assert out.schema == X.schema
    assert out.to_pydict() == {"a": ["M", "F", None], "b": [2, 1, 2], "c": ["v", "u", "v"]}
    assert probe.transform(out).to_pydict() == X.to_pydict()


def test_arrays_are_copied_and_keep_their_type():
    X = np.array([[0, 5], [1, 6], [0, 7]], dtype=np.float32)
    out = CounterfactualProbe(0).fit(X).transform(X)
    assert out.dtype == np.float32
    assert out.tolist() == [[1, 5], [0, 6], [1, 7]]
    assert X[:, 0].tolist() == [0, 1, 0]
    text = np.array([["F", 1.5], ["M", None]], dtype=object)
    assert CounterfactualProbe(0).fit(text).transform(text).tolist() == [["M", 1.5], ["F", None]]
    with pytest.raises(ValueError, match="'sex' is a column name, but X is an array"):
        CounterfactualProbe("sex").fit(X)
    with pytest.raises(ValueError, match="2 is a column position, but X has 2 columns"):
        CounterfactualProbe(2).fit(X)


def test_a_type_that_cannot_hold_the_target_is_an_error():
    X = pd.DataFrame({"age": np.arange(40), "n": 1})
    with pytest.raises(ValueError, match="'age' of type int64 cannot hold 25.5"):
        CounterfactualProbe("age", to=25.5).fit(X).transform(X)
    with pytest.raises(ValueError, match="cannot hold"):
        CounterfactualProbe("age", to=25.5).fit(X.astype("Int64")).transform(X.astype("Int64"))
    with pytest.raises(ValueError, match="cannot hold"):
        CounterfactualProbe("age", to="old").fit(X).transform(X)


@pytest.mark.engines
def test_a_type_of_polars_and_pyarrow_that_cannot_hold_the_target_is_an_error():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for X in (pl.DataFrame({"age": range(40)}), pa.table({"age": list(range(40))})):
        with pytest.raises(ValueError, match="column 'age' cannot hold"):
            CounterfactualProbe("age", to="old").fit(X).transform(X)


# --------------------------------------------------------------------------------------------------------------- to
def test_next_follows_the_order_of_the_type():
    order = pd.Categorical(["lo", "hi", "mid"], categories=["lo", "mid", "hi"], ordered=True)
    X = pd.DataFrame({"a": order})
    assert CounterfactualProbe("a", to="next").fit(X).transform(X)["a"].tolist() == ["mid", "lo", "hi"]
    text = X.astype(str)
    assert CounterfactualProbe("a", to="next").fit(text).transform(text)["a"].tolist() == ["mid", "lo", "hi"]
    assert CounterfactualProbe("a", to="next").fit(text).values_["a"] == ["hi", "lo", "mid"]


@pytest.mark.engines
def test_next_follows_the_order_of_an_enum():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"a": pl.Series(["lo", "hi", "mid"], dtype=pl.Enum(["lo", "mid", "hi"]))})
    assert CounterfactualProbe("a", to="next").fit(X).values_["a"] == ["lo", "mid", "hi"]


def test_each_form_of_to():
    X = people()
    fit = CounterfactualProbe(["sex", "race"], to=None).fit(X)
    assert fit.transform(X) is X

    def by(to):
        return fit.set_params(to=to).transform(X)

    assert set(by({"sex": "F"})["sex"]) == {"F"}
    pd.testing.assert_series_equal(by({"sex": "F"})["race"], X["race"])
    both = by({"sex": "swap", "race": "next"})
    assert (both["sex"] != X["sex"]).all()
    assert both["race"].tolist() == X["race"].map({"a": "b", "b": "c", "c": "a"}).tolist()
    merged = by({"race": {"a": "b", "c": "b"}})
    assert set(merged["race"]) == {"b"}
    with pytest.raises(ValueError, match=r"must say which sensitive feature .* \['sex', 'race'\]"):
        by({"a": "b"})
    with pytest.raises(ValueError, match="'sex' has no value 'b'"):
        by("b")
    with pytest.raises(ValueError, match="'race' has no value 'd'"):
        by({"race": {"a": "d"}})
    one = CounterfactualProbe("race", to={"a": "b"}).fit(X).transform(X)
    assert set(one["race"]) == {"b", "c"}
    by_position = CounterfactualProbe(1, to={1: "b"}).fit(X)
    assert set(by_position.transform(X)["race"]) == {"b"}


def test_numbers_with_many_values_need_an_explicit_target():
    X = people()
    probe = CounterfactualProbe("age", to="next").fit(X)
    with pytest.raises(ValueError, match=r"'age' has \d\d numbers from \d+ to \d+, more than max_values=20"):
        probe.transform(X)
    with pytest.raises(ValueError, match="or cut it into bands"):
        list(probe.counterfactuals(X))
    out = probe.set_params(to=25).transform(X)
    assert set(out["age"]) == {25}
    assert out["age"].dtype == X["age"].dtype
    assert [(name, value) for name, value, _ in probe.counterfactuals(X)] == [("age", 25)]
    few = CounterfactualProbe("age", to="next", max_values=100).fit(X)
    assert few.transform(X)["age"].isin(X["age"]).all()


def test_unseen_values_are_refused_or_left_alone():
    X = people()
    probe = CounterfactualProbe("race", to="next").fit(X[X["race"] != "c"])
    with pytest.raises(ValueError, match=r"values not seen in fit: \['c'\]; known are \['a', 'b'\]"):
        probe.transform(X)
    kept = clone(probe).set_params(handle_unknown="ignore").fit(X[X["race"] != "c"])
    assert kept.transform(X)["race"].tolist() == X["race"].map({"a": "b", "b": "a", "c": "c"}).tolist()
    assert set(kept.set_params(to="a").transform(X)["race"]) == {"a"}
    assert probe.set_params(to=None).transform(X) is X
    with pytest.raises(ValueError, match="handle_unknown must be"):
        clone(probe).set_params(handle_unknown="skip").fit(X)


def test_missing_values_stay_missing():
    X = pd.DataFrame({"a": pd.Series(["F", None, "M", np.nan], dtype=object)})
    for to in ("swap", "F", {"F": "M"}):
        assert CounterfactualProbe("a", to=to).fit(X).transform(X)["a"].isna().tolist() == [False, True, False, True]


# ------------------------------------------------------------------------------------------------ blocks and derived
def block(dtype="int8", n=40):
    rng = np.random.default_rng(1)
    race = rng.choice(["Black", "White", "Other"], n)
    X = pd.DataFrame({f"race_{r}": (race == r).astype(dtype) for r in ("Black", "White", "Other")})
    return X.assign(x=rng.normal(size=n))


@pytest.mark.parametrize("dtype", ["int8", "bool", "float64", "uint8"])
def test_a_one_hot_block_flips_jointly(dtype):
    X = block(dtype)
    names = ["race_Black", "race_White", "race_Other"]
    probe = CounterfactualProbe({"race": names}, to="race_White").fit(X)
    out = probe.transform(X)
    assert (out.dtypes == X.dtypes).all()
    assert out["race_White"].astype(bool).all()
    assert (out[names].sum(axis=1) == 1).all()
    cycled = probe.set_params(to="next").transform(X)
    assert (cycled[names].sum(axis=1) == 1).all()
    pd.testing.assert_series_equal(cycled["race_White"], X["race_Black"], check_names=False)
    assert [value for _, value, _ in probe.counterfactuals(X)] == names


def test_a_block_by_position_in_an_array_and_rows_without_a_one():
    X = block().to_numpy(float)
    X[3, :3] = 0
    probe = CounterfactualProbe({"race": [0, 1, 2]}, to=1).fit(X)
    out = probe.transform(X)
    assert out[3, :3].tolist() == [0, 0, 0]
    assert (np.delete(out, 3, axis=0)[:, 1] == 1).all()
    two = X.copy()
    two[0, :3] = 1
    with pytest.raises(ValueError, match="1 rows have more than one 1 in the one-hot block 'race'"):
        probe.transform(two)
    with pytest.raises(ValueError, match="must hold 0 and 1 only; got 0.5"):
        CounterfactualProbe({"race": [0, 1]}).fit(np.array([[0.5, 0], [0, 1]]))
    with pytest.raises(ValueError, match="needs two columns"):
        CounterfactualProbe({"race": [0]}).fit(X)
    with pytest.raises(ValueError, match="twice"):
        CounterfactualProbe({"race": [0, 1], "again": 1}).fit(X)


def test_derived_columns_are_found_and_computed_anew():
    X = people().assign(is_male=lambda X: (X["sex"] == "M").astype("int8"))
    with pytest.warns(StaleColumnWarning, match=r"\['is_male'\] is constant within each value of 'sex'"):
        stale = CounterfactualProbe(["sex", "race"], to={"sex": "swap"}).fit(X)
    assert stale.stale_ == {"sex": ["is_male"], "race": []}
    assert stale.transform(X)["is_male"].equals(X["is_male"])
    probe = CounterfactualProbe("sex", recompute={"is_male": lambda X: X["sex"] == "M"}).fit(X)
    assert probe.stale_ == {"sex": []}
    out = probe.transform(X)
    assert out["is_male"].tolist() == (1 - X["is_male"]).tolist()
    assert out["is_male"].dtype == np.int8
    pd.testing.assert_frame_equal(probe.transform(out), X)
    assert [list(c["is_male"]) for _, _, c in probe.counterfactuals(X)] == [[0] * 60, [1] * 60]


def test_what_recompute_refuses():
    X = people()
    with pytest.raises(ValueError, match="recompute names 'nope'"):
        CounterfactualProbe("sex", recompute={"nope": len}).fit(X)
    with pytest.raises(ValueError, match="sensitive features themselves"):
        CounterfactualProbe("sex", recompute={"sex": len}).fit(X)
    probe = CounterfactualProbe("sex", recompute={"age": lambda X: 3}).fit(X)
    with pytest.raises(ValueError, match="must return one value a row, 60 of them"):
        probe.transform(X)


@pytest.mark.engines
def test_recompute_in_polars():
    pl = pytest.importorskip("polars")
    X = pl.from_pandas(people()).with_columns(male=(pl.col("sex") == "M").cast(pl.Int8))
    out = CounterfactualProbe("sex", recompute={"male": lambda X: X["sex"] == "M"}).fit(X).transform(X)
    assert out["male"].to_list() == (1 - X["male"]).to_list()
    assert out.schema == X.schema


# ---------------------------------------------------------------------------------------------------------- pipelines
def model_of(X, y):
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["sex", "job"]), remainder="passthrough")
    return make_pipeline(encoder, LogisticRegression(max_iter=2000)).fit(X, y)


def test_before_a_frozen_model_it_is_the_model_under_the_flip():
    X = people(300).drop(columns="race")
    y = (X["sex"] == "M").to_numpy() ^ (X["income"] > 1).to_numpy()
    model = model_of(X, y)
    flipped = make_pipeline(CounterfactualProbe("sex").fit(X), FrozenEstimator(model))
    by_hand = X.assign(sex=X["sex"].map({"F": "M", "M": "F"}))
    assert flipped.predict(X).tolist() == model.predict(by_hand).tolist()
    assert (flipped.predict(X) != model.predict(X)).any()


def test_as_a_passive_step_it_is_switched_on_at_check_time():
    X = people(300).drop(columns="race")
    y = (X["sex"] == "M").to_numpy() ^ (X["income"] > 1).to_numpy()
    pipe = Pipeline([("probe", CounterfactualProbe("sex", to=None)), *model_of(X, y).steps]).fit(X, y)
    plain = model_of(X, y)
    assert pipe.predict(X).tolist() == plain.predict(X).tolist()
    pipe.set_params(probe__to="F")
    assert pipe.predict(X).tolist() == plain.predict(X.assign(sex="F")).tolist()


def test_an_active_probe_warns_while_a_pipeline_is_fitted():
    X = people(100).drop(columns="race")
    with pytest.warns(ActiveProbeWarning, match=r"the probe changes \['sex'\]"):
        Pipeline([("probe", CounterfactualProbe("sex")), *model_of(X, X["age"] > 40).steps]).fit(X, X["age"] > 40)
    with pytest.warns(ActiveProbeWarning):
        CounterfactualProbe("sex").fit_transform(X)


def test_set_output_converts_frames_without_losing_types():
    pl = pytest.importorskip("polars")
    X = people()
    probe = CounterfactualProbe("sex").fit(X).set_output(transform="polars")
    assert probe.transform(X).schema["age"] == pl.Int64
    P = pl.from_pandas(X)
    out = CounterfactualProbe("sex").fit(P).set_output(transform="pandas").transform(P)
    assert out["age"].dtype == np.int64
    same = CounterfactualProbe("sex").fit(X).set_output(transform="pandas").transform(X)
    assert (same.dtypes == X.dtypes).all()
    assert same.index.equals(X.index)
    array = CounterfactualProbe(0, to=None).fit(X[["age"]].to_numpy()).set_output(transform="pandas")
    assert list(array.transform(X[["age"]].to_numpy())) == ["x0"]


def test_names_clone_pickle_and_unfitted():
    X = people()
    probe = CounterfactualProbe("sex", random_state=3).fit(X)
    assert probe.get_feature_names_out().tolist() == list(X)
    again = pickle.loads(pickle.dumps(probe))
    pd.testing.assert_frame_equal(again.transform(X), probe.transform(X))
    assert not hasattr(clone(probe), "values_")
    with pytest.raises(NotFittedError):
        clone(probe).transform(X)
    with pytest.raises(ValueError, match="[Ff]eature names"):
        probe.transform(X[["age", "sex", "race", "job", "income"]])
    with pytest.raises(ValueError, match=r"'gender' is not among the columns of X: \['sex'"):
        CounterfactualProbe("gender").fit(X)
    with pytest.raises(ValueError, match="max_values must be"):
        CounterfactualProbe("sex", max_values=1).fit(X)
    ids = X.assign(name=[f"person {i}" for i in range(60)])
    assert CounterfactualProbe("sex").fit(pd.concat([ids] * 2)).transform(ids).shape == (60, 6)
    with pytest.raises(ValueError, match="looks like an identifier"):
        CounterfactualProbe("id").fit(pd.DataFrame({"id": [f"p{i}" for i in range(1001)]}))


# ------------------------------------------------------------------------------------------------------------- laws
@given(
    values=st.lists(st.sampled_from(["a", "b", None]), min_size=2, max_size=30),
    order=st.randoms(use_true_random=False),
)
def test_untouched_columns_order_and_undoing(values, order):
    X = pd.DataFrame({"a": pd.Series(values, dtype=object), "x": np.arange(len(values)) * 0.5})
    X.loc[len(X)] = ["a", -1.0]
    X.loc[len(X)] = ["b", -2.0]
    probe = CounterfactualProbe("a").fit(X)
    out = probe.transform(X)
    pd.testing.assert_series_equal(out["x"], X["x"])
    pd.testing.assert_frame_equal(probe.transform(out), X)
    rows = list(range(len(X)))
    order.shuffle(rows)
    pd.testing.assert_frame_equal(probe.transform(X.iloc[rows]), out.iloc[rows])


# -------------------------------------------------------------------------------------------------------- strategies
def proxies(n=4000, seed=0):
    """Sex moves hours and job; education moves with neither."""
    rng = np.random.default_rng(seed)
    male = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "sex": np.where(male, "M", "F"),
            "hours": np.round(rng.normal(np.where(male, 45, 35), 4)).astype(int),
            "job": np.where(rng.random(n) < np.where(male, 0.8, 0.3), "works", "office"),
            "education": rng.normal(size=n),
            "member": pd.Series(rng.random(n) < 0.5, dtype="boolean"),
        }
    )


def test_every_strategy_says_what_it_assumes():
    assert list(STRATEGIES) == ["flip", "transport", "adjust"]
    assert all(one.assumes.startswith("Assumes") for one in STRATEGIES.values())
    with pytest.raises(ValueError, match="strategy must be one of"):
        CounterfactualProbe("sex", strategy="magic").fit(people())


def test_transport_gives_a_group_the_other_groups_distribution():
    X = proxies()
    probe = CounterfactualProbe("sex", strategy="transport", random_state=0).fit(X)
    out = probe.transform(X)
    assert (out.dtypes == X.dtypes).all()
    female = X["sex"] == "F"
    assert (out["sex"] != X["sex"]).all()
    for source, other in ((female, ~female), (~female, female)):
        moved, target = out[source], X[other]
        assert abs(moved["hours"].mean() - target["hours"].mean()) < 0.1
        assert abs(moved["hours"].std() - target["hours"].std()) < 0.1
        assert abs((moved["job"] == "works").mean() - (target["job"] == "works").mean()) < 0.03
    rank = X[female]["hours"].rank(pct=True)
    assert np.corrcoef(rank, out[female]["hours"].rank(pct=True))[0, 1] > 0.97
    # As many as possible stay: |.8 - .3| of the women change their job, not more.
    assert abs((out["job"] != X["job"])[female].mean() - 0.5) < 0.04
    # A feature that is alike in both groups hardly moves, and one that is equal not at all.
    assert (out["member"] != X["member"]).mean() < 0.05


def test_transport_between_equal_groups_is_the_identity():
    half = proxies(500).drop(columns="sex")
    X = pd.concat([half.assign(sex="F"), half.assign(sex="M")], ignore_index=True)
    out = CounterfactualProbe("sex", strategy="transport", random_state=1).fit(X).transform(X)
    pd.testing.assert_frame_equal(out.drop(columns="sex"), X.drop(columns="sex"))


def test_transport_moves_a_row_alike_in_any_order_batch_and_frame():
    X = proxies(800)
    probe = CounterfactualProbe("sex", strategy="transport", random_state=0).fit(X)
    out = probe.transform(X)
    rows = np.random.default_rng(0).permutation(len(X))
    pd.testing.assert_frame_equal(probe.transform(X.iloc[rows]), out.iloc[rows])
    pd.testing.assert_frame_equal(probe.transform(X.iloc[:100]), out.iloc[:100])
    other = clone(probe).set_params(random_state=1).fit(X).transform(X)
    assert (other["job"] != out["job"]).any()


def test_transport_keeps_gaps_and_the_other_sensitive_features_and_blocks():
    X = proxies(600)
    X.loc[::7, "education"] = np.nan
    X.loc[::5, "job"] = None
    X["race"] = np.where(np.arange(600) % 3 == 0, "b", "w")
    probe = CounterfactualProbe(["sex", "race"], to={"sex": "swap"}, strategy="transport", random_state=0).fit(X)
    out = probe.transform(X)
    assert out["race"].equals(X["race"])
    assert out.isna().equals(X.isna())
    wide = pd.get_dummies(X[["sex"]]).join(X.drop(columns=["sex", "race", "job"]))
    joint = CounterfactualProbe({"sex": ["sex_F", "sex_M"]}, strategy="transport", random_state=0).fit(wide)
    assert (joint.transform(wide)["sex_F"] == wide["sex_M"]).all()
    with pytest.raises(ValueError, match="strategy='transport' needs groups"):
        CounterfactualProbe("education", to=1.0, strategy="transport").fit(X)


def test_adjust_moves_descendants_by_what_the_attribute_predicts_and_keeps_the_residual():
    X = proxies()
    probe = CounterfactualProbe("sex", strategy="adjust", descendants=["hours", "job"], random_state=0).fit(X)
    out = probe.transform(X)
    assert (out.dtypes == X.dtypes).all()
    female = X["sex"] == "F"
    shift = (out["hours"] - X["hours"])[female]
    assert 8 < shift.mean() < 12
    assert shift.std() < 2.5  # the residual stays: a shift, not a new draw
    assert abs((out["job"] == "works")[female].mean() - 0.8) < 0.06
    pd.testing.assert_frame_equal(out[["education", "member"]], X[["education", "member"]])
    rows = np.random.default_rng(0).permutation(len(X))
    pd.testing.assert_frame_equal(probe.transform(X.iloc[rows]), out.iloc[rows])


def test_what_adjust_refuses():
    X = proxies(200)
    with pytest.raises(ValueError, match="descendants are the columns that strategy='adjust' predicts anew"):
        CounterfactualProbe("sex", strategy="adjust").fit(X)
    with pytest.raises(ValueError, match="with strategy='flip'"):
        CounterfactualProbe("sex", descendants=["job"]).fit(X)
    with pytest.raises(ValueError, match="descendants names 'nope'"):
        CounterfactualProbe("sex", strategy="adjust", descendants=["nope"]).fit(X)
    with pytest.raises(ValueError, match="sensitive features themselves"):
        CounterfactualProbe("sex", strategy="adjust", descendants=["sex"]).fit(X)
    with pytest.raises(ValueError, match="1 value"):
        CounterfactualProbe("sex", strategy="adjust", descendants=["job"]).fit(X.assign(job="works"))


def test_adjust_for_a_measured_attribute():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 2000)
    X = pd.DataFrame({"age": age, "income": 2.0 * age + rng.normal(size=2000), "z": rng.normal(size=2000)})
    probe = CounterfactualProbe("age", to=30, strategy="adjust", descendants=["income"], random_state=0).fit(X)
    out = probe.transform(X)
    assert set(out["age"]) == {30}
    assert abs(out["income"].mean() - 60) < 3
