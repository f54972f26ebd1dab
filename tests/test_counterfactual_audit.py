"""CounterfactualAudit: its numbers, what it says, and how few questions it asks."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from statsmodels.stats.contingency_tables import mcnemar

from sklearn_ethiclens import Audit, audit
from sklearn_ethiclens.counterfactual import CounterfactualAudit, CounterfactualProbe, PairedTally
from sklearn_ethiclens.exceptions import (
    AttributeUnusedWarning,
    FairnessGateError,
    FairnessScoringWarning,
    StaleColumnWarning,
)
from sklearn_ethiclens.inference import mcnemar_test, mean_interval, wilson_interval
from sklearn_ethiclens.inference._paired import row_uniforms, subsample
from tests._shared import case, data_file


class Rule(ClassifierMixin, BaseEstimator):
    """A classifier that is a function of the rows; counts its questions."""

    def __init__(self, function, classes=(0, 1)):
        self.function, self.classes = function, classes
        self.classes_ = np.array(classes)
        self.asked = []

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        self.asked.append(("predict", len(X)))
        return self.classes_[np.asarray(self.function(X)).astype(int)]


class Scored(Rule):
    """The same with a probability; ``predict`` uses the threshold."""

    def __init__(self, function, classes=(0, 1), threshold=0.5):
        super().__init__(function, classes)
        self.threshold = threshold

    def predict(self, X):
        self.asked.append(("predict", len(X)))
        return self.classes_[(np.asarray(self.function(X)) > self.threshold).astype(int)]

    def predict_proba(self, X):
        self.asked.append(("predict_proba", len(X)))
        p = np.asarray(self.function(X), dtype=float)
        return np.column_stack([1 - p, p])


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "sex": sex,
            "race": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
            "hours": np.round(rng.normal(np.where(sex == "M", 44, 36), 5), 1),
            "job": np.where(rng.random(n) < np.where(sex == "M", 0.8, 0.3), "works", "office"),
        },
        index=np.arange(n) + 1000,
    )


def logistic(X):
    return 1 / (1 + np.exp(-((X["hours"] - 40) / 5 + (X["sex"] == "M") * 0.8 - (X["race"] == "c") * 1.5)))


# ------------------------------------------------------------------------------------------------- reference cases
@pytest.mark.parametrize(
    ("name", "bonus"), [("flip_acs_sex_blind", 0), ("flip_acs_sex_used", 2)], ids=["blind", "used"]
)
def test_reference_cases(name, bonus):
    expect = case(name)["expect"]
    X = pd.read_parquet(data_file("acs-income-test.parquet"))[["SEX", "SCHL", "WKHP", "RAC1P"]]
    rule = Rule(lambda X: X["SCHL"] + 0.1 * X["WKHP"] + bonus * (X["SEX"] == 1) >= 25)
    probe = CounterfactualProbe("SEX", random_state=0).fit(X)
    if bonus:
        found = probe.audit(rule, X)
    else:
        with pytest.warns(
            AttributeUnusedWarning, match=r"no decision changes \(there are no scores\) with 'SEX'.*WKHP"
        ):
            found = probe.audit(rule, X)
    tally = found.tally
    assert tally.n_rows == expect["n"]
    assert int(tally.gained.sum() + tally.lost.sum()) == expect["changed"]
    assert (int(tally.gained.sum()), int(tally.lost.sum())) == (expect["gained"], expect["lost"])
    assert (tally.gained.sum() - tally.lost.sum()) / tally.n_rows == pytest.approx(expect["mean_change"], abs=1e-9)
    for pair, counts in zip(found.pairs, tally.counts, strict=True):
        assert pair.flip_rate == pytest.approx(expect[f"flip_rate[{pair.source}]"], abs=1e-9)
        assert pair.to_positive - pair.to_negative == pytest.approx(expect[f"mean_change[{pair.source}]"], abs=1e-9)
        assert counts[1].sum() / counts.sum() == pytest.approx(expect[f"selection_rate[{pair.source}]"], abs=1e-9)
    assert found.unused == (() if bonus else ("SEX",))
    assert rule.asked == [("predict", 332900), *[("predict", int(n)) for n in tally.n[::-1]]]


# ------------------------------------------------------------------------------------------------------------- laws
def test_a_model_that_ignores_the_attribute_never_flips_and_a_model_that_is_the_attribute_always_does():
    X = people()
    probe = CounterfactualProbe(["sex", "race"], random_state=0).fit(X)
    with pytest.warns(AttributeUnusedWarning, match="'race'"):
        found = probe.audit(Rule(lambda X: X["sex"] == "M"), X)
    by = found.table.set_index("attribute")["flip_rate"]
    assert set(by["sex"]) == {1.0}
    assert set(by["race"]) == {0.0}
    assert {p.attribute: p.band for p in found.pairs}["sex"] == "audit"


def test_permuting_rows_changes_nothing():
    X = people()
    probe = CounterfactualProbe(["sex", "race"]).fit(X)
    rows = np.random.default_rng(1).permutation(len(X))
    one, two = probe.audit(Scored(logistic), X), probe.audit(Scored(logistic), X.iloc[rows])
    assert one.tally == two.tally
    pd.testing.assert_frame_equal(one.table, two.table, rtol=1e-12)
    assert one.rows(5)["row"].tolist() == two.rows(5)["row"].tolist()


def test_numbers_of_a_pair_by_hand():
    X = people()
    y = (X["hours"] > 41).astype(int)
    found = CounterfactualProbe("sex").fit(X).audit(Scored(logistic), X, y, threshold=0.15)
    assert [(p.source, p.target) for p in found.pairs] == [("F", "M"), ("M", "F")]
    pair = found.pairs[0]
    F = X[X["sex"] == "F"]
    before, after = logistic(F), logistic(F.assign(sex="M"))
    change, flips = after - before, (before > 0.5) != (after > 0.5)
    assert pair.n == len(F)
    assert pair.flip_rate == flips.mean() > 0
    assert (pair.flip_low, pair.flip_high) == tuple(wilson_interval(flips.sum(), len(F)))
    assert (pair.to_positive, pair.to_negative) == (flips.mean(), 0.0)
    assert pair.flip_rate_positives == pytest.approx(flips[y[F.index] == 1].mean())
    assert pair.flip_rate_negatives == pytest.approx(flips[y[F.index] == 0].mean())
    assert pair.score_change_rate == (change.abs() > 0.15).mean()
    assert pair.mean_change == pytest.approx(change.mean())
    assert pair.mean_absolute_change == pytest.approx(change.abs().mean())
    assert pair.max_change == pytest.approx(change.abs().max())
    half = change.std() / np.sqrt(len(F))
    assert (pair.mean_change_high - pair.mean_change) / half == pytest.approx(1.972, abs=0.01)
    assert pair.pvalue == pytest.approx(mcnemar([[0, flips.sum()], [0, 0]], exact=True).pvalue, rel=1e-6)
    assert pair.pvalue_adjusted >= pair.pvalue
    assert np.isnan(CounterfactualProbe("sex").fit(X).audit(Scored(logistic), X).pairs[0].flip_rate_positives)


def test_bands_are_judged_on_the_interval():
    X = pd.DataFrame({"sex": ["F", "M"] * 2000, "u": np.repeat(np.arange(2000), 2)})
    probe = CounterfactualProbe("sex").fit(X)
    bands = {}
    for share in (0.02, 0.05, 0.075, 0.10, 0.15):
        rule = Rule(lambda X, share=share: (X["sex"] == "M") & (X["u"] < share * 2000))
        bands[share] = {p.band for p in probe.audit(rule, X).pairs}
    assert bands == {
        0.02: {"pass"},
        0.05: {"inconclusive"},
        0.075: {"investigate"},
        0.10: {"inconclusive"},
        0.15: {"audit"},
    }
    rule = Rule(lambda X: (X["sex"] == "M") & (X["u"] < 300))
    with pytest.raises(FairnessGateError, match="Counterfactuals by sex"):
        probe.audit(rule, X).raise_if_flagged()
    assert {p.band for p in probe.audit(rule, X.iloc[:20]).pairs} == {"audit"}


def test_all_pairs_of_values_missing_and_unknown_rows():
    X = people()
    X.loc[X.index[:7], "race"] = None
    probe = CounterfactualProbe("race").fit(X)
    found = probe.audit(Scored(logistic), X)
    assert [(p.source, p.target) for p in found.pairs] == [(a, b) for a in "abc" for b in "abc" if a != b]
    assert found.missing == {"race": 7}
    assert sum(p.n for p in found.pairs) == 2 * (len(X) - 7)
    assert "7 of race" in str(found)
    with pytest.raises(ValueError, match=r"not seen in fit: \['z'\]"):
        probe.audit(Scored(logistic), X.replace({"race": {"a": "z"}}))
    loose = clone(probe).set_params(handle_unknown="ignore").fit(X)
    found = loose.audit(Scored(logistic), X.replace({"race": {"a": "z"}}))
    assert found.unknown == {"race": int((X["race"] == "a").sum())}
    assert {p.source for p in found.pairs} == {"b", "c"}


def test_an_explicit_target_restricts_the_alternatives():
    X = people()
    found = CounterfactualProbe("hours", to=40.0).fit(X).audit(Scored(logistic), X)
    assert [(p.source, p.target) for p in found.pairs] == [("(any other value)", 40.0)]
    assert found.pairs[0].n == (X["hours"] != 40).sum()
    assert np.isnan(found.pairs[0].off_support)
    found = CounterfactualProbe("race", to={"c": "a", "b": "a"}).fit(X).audit(Scored(logistic), X)
    assert [(p.source, p.target) for p in found.pairs] == [("b", "a"), ("c", "a")]


# ------------------------------------------------------------------------------------------------- asking the model
def test_one_batch_for_each_alternative_value_of_the_rows_that_change():
    X = people(3000)
    model = Scored(logistic)
    CounterfactualProbe("race").fit(X).audit(model, X)
    n = X["race"].value_counts()
    proba = [size for kind, size in model.asked if kind == "predict_proba"]
    assert proba == [3000, *(3000 - n[v] for v in "abc")]
    assert sum(size for kind, size in model.asked if kind == "predict") <= 3000 + 3 * 1000
    assert len(model.asked) == 8


def test_decisions_come_from_predict_where_it_disagrees_with_the_probabilities():
    X = people(3000)
    model = Scored(logistic, threshold=0.52)
    found = CounterfactualProbe("sex").fit(X).audit(model, X)
    assert found.parameters["decisions"] == "predict"
    F = X[X["sex"] == "F"]
    flips = (logistic(F) > 0.52) != (logistic(F.assign(sex="M")) > 0.52)
    assert found.pairs[0].flip_rate == flips.mean()


def test_a_disagreement_seen_late_makes_all_decisions_come_from_predict():
    X = people(3000)

    class Late(Scored):
        def predict(self, X):
            super().predict(X)
            cut = 0.2 if (X["sex"] == "M").all() else 0.5
            return self.classes_[(np.asarray(self.function(X)) > cut).astype(int)]

    model = Late(logistic)
    found = CounterfactualProbe("sex").fit(X).audit(model, X)
    F, M = X[X["sex"] == "F"], X[X["sex"] == "M"]
    flips = (logistic(F) > 0.5) != (logistic(F.assign(sex="M")) > 0.2)
    assert found.parameters["decisions"] == "predict"
    assert found.pairs[0].flip_rate == flips.mean()
    assert ("predict", len(M)) in model.asked  # the alternative that was answered before is asked again


def real(kind):
    X = people(600)
    y = np.where(logistic(X) > 0.55, "yes", "no")
    encode = make_column_transformer((OneHotEncoder(), ["sex", "race", "job"]), (StandardScaler(), ["hours"]))
    return make_pipeline(encode, kind).fit(X, y), X, y


@pytest.mark.parametrize("pos_label", ["yes", "no"])
@pytest.mark.parametrize(
    "kind",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        LinearSVC(),
        RidgeClassifier(),
        FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="yes"),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_agrees_with_a_flip_made_by_hand(kind, pos_label):
    model, X, _ = real(kind)
    found = CounterfactualProbe("sex").fit(X).audit(FrozenEstimator(model), X, pos_label=pos_label)
    assert found.provenance["data"]["model"] == f"Pipeline ending in {type(kind).__name__}"
    for pair in found.pairs:
        rows = X[X["sex"] == pair.source]
        new = rows.assign(sex=pair.target)
        before, after = model.predict(rows), model.predict(new)
        assert pair.flip_rate == pytest.approx((before != after).mean(), abs=1e-12)
        assert pair.to_positive == pytest.approx(((before != pos_label) & (after == pos_label)).mean(), abs=1e-12)
        if hasattr(model, "predict_proba"):
            at = list(model.classes_).index(pos_label)
            change = (model.predict_proba(new) - model.predict_proba(rows))[:, at]
        else:
            change = (model.decision_function(new) - model.decision_function(rows)) * (1 if pos_label == "yes" else -1)
        assert pair.mean_change == pytest.approx(change.mean(), abs=1e-9)


def test_the_positive_label_is_not_guessed_from_words():
    model, X, _ = real(LogisticRegression())
    probe = CounterfactualProbe("sex").fit(X)
    with pytest.raises(ValueError, match=r"\['no', 'yes'\]; pass pos_label"):
        probe.audit(model, X)
    with pytest.raises(ValueError, match="pos_label='maybe' is not among"):
        probe.audit(model, X, pos_label="maybe")


def test_more_than_two_classes_are_judged_against_the_rest():
    X = people(600)
    y = np.select([X["hours"] > 43, X["hours"] > 38], ["high", "middle"], "low")
    encode = make_column_transformer((OneHotEncoder(), ["sex", "race", "job"]), (StandardScaler(), ["hours"]))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
    pair = CounterfactualProbe("sex").fit(X).audit(model, X, pos_label="high").pairs[0]
    F = X[X["sex"] == "F"]
    flips = (model.predict(F) == "high") != (model.predict(F.assign(sex="M")) == "high")
    assert pair.flip_rate == flips.mean()


def test_what_an_audit_refuses():
    X = people()
    probe = CounterfactualProbe("sex").fit(X)
    with pytest.raises(ValueError, match="nothing to audit"):
        CounterfactualProbe().fit(X).audit(Scored(logistic), X)
    with pytest.raises(ValueError, match="threshold must be"):
        probe.audit(Scored(logistic), X, threshold=-1)
    with pytest.raises(ValueError, match="one entry per row"):
        probe.audit(Scored(logistic), X, np.zeros(3))
    with pytest.raises(TypeError, match="must have predict"):
        probe.audit(object(), X)
    regressor = Rule(lambda X: X["hours"])
    del regressor.classes_
    regressor.predict = lambda X: X["hours"].to_numpy() + 0.1
    with pytest.raises((TypeError, ValueError), match="scores"):
        probe.audit(regressor, X)


@pytest.mark.engines
def test_polars_pyarrow_and_pandas_give_the_same_audit():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X = people()

    def score(X):
        frame = X if isinstance(X, pd.DataFrame) else X.to_pandas()
        return logistic(frame)

    tables = []
    for frame in (X, pl.from_pandas(X), pa.Table.from_pandas(X, preserve_index=False)):
        tables.append(CounterfactualProbe(["sex", "race"]).fit(frame).audit(Scored(score), frame).table)
    pd.testing.assert_frame_equal(tables[0], tables[1])
    pd.testing.assert_frame_equal(tables[0], tables[2])


# ------------------------------------------------------------------------------------- unused attributes and support
def test_a_model_that_does_not_read_the_attribute_is_named_with_its_proxies():
    X = people(2000)
    blind = Scored(lambda X: 1 / (1 + np.exp(40 - X["hours"])))
    probe = CounterfactualProbe("sex", random_state=0).fit(X)
    with pytest.warns(AttributeUnusedWarning, match="no decision and no score changes with 'sex'.*from (hours|job)"):
        found = probe.audit(blind, X)
    assert found.unused == ("sex",)
    proxies = pd.DataFrame(found.proxies).set_index("feature")["balanced_accuracy"]
    assert proxies[["hours", "job"]].min() > 0.7
    assert proxies["all features"] > proxies["race"]
    assert abs(proxies["race"] - 0.5) < 0.1
    assert "says nothing of the features that stand in for it" in " ".join(str(found).split())
    with pytest.warns(AttributeUnusedWarning):
        again = probe.audit(blind, X)
    assert again.to_json() == found.to_json()


def test_rounding_of_a_score_is_no_change():
    X = people(500)
    noise = Scored(lambda X: 0.4 + 1e-15 * (X["sex"] == "M"))
    with pytest.warns(AttributeUnusedWarning):
        assert CounterfactualProbe("sex", random_state=0).fit(X).audit(noise, X).pairs[0].max_change == 0


def test_pairs_that_never_occurred_are_counted_and_split():
    n = 600
    X = pd.DataFrame({"sex": ["F", "M"] * (n // 2)})
    X["role"] = np.where((X.index % 6 == 1), "husband", np.where(X.index % 6 == 0, "wife", "single"))
    rule = Rule(lambda X: (X["sex"] == "M") & (X["role"] == "wife") | (X["sex"] == "F") & (X["role"] == "husband"))
    found = CounterfactualProbe("sex").fit(X).audit(rule, X)
    for pair in found.pairs:
        assert pair.off_support == pytest.approx(1 / 3)
        assert (pair.flip_rate_off_support, pair.flip_rate_on_support) == (1.0, 0.0)
    assert {(row["column"], row["target"], round(row["share"], 3)) for row in found.support} == {
        ("role", "M", 0.333),
        ("role", "F", 0.333),
    }
    assert "Off support: 33.3%" in str(found)


# ------------------------------------------------------------------------------------------------------------- Adult
@pytest.fixture(scope="module")
def adult():
    X = pd.read_csv(data_file("adult-train.csv")).sample(12000, random_state=0)
    y = (X.pop("income-per-year") == ">50K").astype(int)
    return X.iloc[:7200], y.iloc[:7200], X.iloc[7200:]


def adult_model(X, y):
    numbers = list(X.select_dtypes("number"))
    words = [name for name in X if name not in numbers]
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    return make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(X, y)


def test_adult_flipping_sex_alone_leaves_four_tenths_of_the_rows_off_support(adult):
    X, y, held_out = adult
    probe = CounterfactualProbe("sex").fit(X)
    found = probe.audit(adult_model(X, y), held_out)
    table = found.table.set_index("source")
    off = (table["off_support"] * table["n"]).sum() / table["n"].sum()
    assert 0.38 < off < 0.43  # measured before: .401
    assert found.support[0]["column"] == "relationship"
    assert table.loc["Male", "mean_change"] < -0.03


def test_adult_moving_the_proxy_too_turns_the_sign(adult):
    X, y, held_out = adult
    model = adult_model(X, y)
    men = held_out[held_out["sex"] == "Male"]
    base = model.predict_proba(men)[:, 1]
    alone = model.predict_proba(CounterfactualProbe("sex").fit(X).transform(men))[:, 1] - base
    swap = {"sex": "swap", "relationship": {"Husband": "Wife", "Wife": "Husband"}}
    both = CounterfactualProbe(["sex", "relationship"], to=swap).fit(X).transform(men)
    assert alone.mean() < -0.03  # measured before, with another model: -.0776 and +.0506
    assert (model.predict_proba(both)[:, 1] - base).mean() > alone.mean() + 0.05


def test_adult_a_stale_derived_column_hides_most_flips(adult):
    X, y, held_out = adult
    X, held_out = (part.assign(is_male=(part["sex"] == "Male").astype(int)) for part in (X, held_out))
    model = adult_model(X.drop(columns="sex").assign(sex=0), y)  # reads is_male only, as if sex were masked by it
    with pytest.warns(StaleColumnWarning, match="is_male"):
        stale = CounterfactualProbe("sex").fit(X)
    reader = Scored(lambda X: model.predict_proba(X.assign(sex=0))[:, 1])
    with pytest.warns(AttributeUnusedWarning, match="is_male 1.00"):
        hidden = stale.audit(reader, held_out)
    kept = CounterfactualProbe("sex", recompute={"is_male": lambda X: X["sex"] == "Male"}).fit(X)
    shown = kept.audit(reader, held_out)
    assert hidden.stale == {"sex": ["is_male"]}
    assert "Stale" in str(hidden)
    assert max(p.flip_rate for p in hidden.pairs) == 0 < 0.03 < max(p.flip_rate for p in shown.pairs)


def test_adult_half_a_one_hot_block_changes_less_than_the_whole(adult):
    X, y, held_out = adult
    wide = pd.get_dummies(X[["sex"]].join(X.select_dtypes("number")))
    test = pd.get_dummies(held_out[["sex"]].join(held_out.select_dtypes("number")))
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(wide, y)
    base = scaled.predict_proba(test)[:, 1]
    joint = CounterfactualProbe({"sex": ["sex_Female", "sex_Male"]}).fit(wide)
    with pytest.warns(StaleColumnWarning, match="sex_Male"):
        half = CounterfactualProbe("sex_Female").fit(wide)
    whole, part = (np.abs(scaled.predict_proba(p.transform(test))[:, 1] - base).mean() for p in (joint, half))
    assert part < 0.7 * whole  # measured before: .0349 against .0686


# ---------------------------------------------------------------------------------------------- words, JSON and rows
def test_json_round_trip_is_byte_identical_and_holds_no_rows():
    X = people()
    found = CounterfactualProbe(["sex", "race"], random_state=0).fit(X).audit(Scored(logistic), X)
    text = found.to_json()
    back = CounterfactualAudit.from_json(text)
    assert back.to_json() == text
    assert back == found
    assert str(back) == str(found)
    assert json.loads(text)["schema"] == "sklearn-ethiclens/counterfactual/1"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(ValueError, match="holds no rows"):
        back.rows()
    with pytest.raises(ValueError, match="has the schema"):
        CounterfactualAudit.from_json("{}")
    with pytest.raises(ValueError, match="no stored audit"):
        CounterfactualAudit.from_json("nope")
    noted = found.annotate(name="People", run={"date": "today"})
    assert CounterfactualAudit.from_json(noted.to_json()) == noted
    assert "Counterfactuals of People by sex" in str(noted)
    assert found.report("json") == text


def test_typed_labels_survive_json():
    X = pd.DataFrame({"code": [30, 31] * 50, "text": ["30", "31"] * 25 + ["31", "30"] * 25, "x": np.arange(100.0)})
    rule = Rule(lambda X: (X["code"] == 30) ^ (X["text"] == "30"))
    found = CounterfactualProbe(["code", "text"]).fit(X).audit(rule, X)
    back = CounterfactualAudit.from_json(found.to_json())
    assert [type(p.source) for p in back.pairs] == [int, int, str, str]


def test_rows_most_affected():
    X = people()
    found = CounterfactualProbe(["sex", "race"]).fit(X).audit(Scored(logistic), X)
    rows = found.rows(5)
    assert rows["change"].abs().round(9).is_monotonic_decreasing
    assert set(rows["row"]) <= set(X.index)
    first = rows.iloc[0]
    was = X.loc[[first["row"]]]
    change = logistic(was.assign(**{first["attribute"]: first["target"]})) - logistic(was)
    assert first["change"] == pytest.approx(change.iloc[0])
    assert set(found.rows(3, attribute="sex")["attribute"]) == {"sex"}
    by_rule = CounterfactualProbe("sex").fit(X).audit(Rule(lambda X: X["sex"] == "M"), X)
    assert (by_rule.rows(3)["decision"] != by_rule.rows(3)["counterfactual"]).all()


@pytest.mark.parametrize("width", [72, 80, 100])
def test_text_fits_and_says_what_it_assumes(width):
    X = people()
    for strategy in ("flip", "transport"):
        found = (
            CounterfactualProbe(["sex", "race"], strategy=strategy, random_state=0).fit(X).audit(Scored(logistic), X)
        )
        text = found.report("text", width=width)
        assert max(map(len, text.splitlines())) <= width
        assert found.assumes in " ".join(text.split())
        assert f"strategy '{strategy}'" in repr(found)
        assert json.loads(found.to_json())["parameters"]["assumes"] == found.assumes
        assert "A maximum has no interval" in " ".join(text.split())


def test_many_pairs_are_cut_in_the_text_only():
    X = people(2000).assign(race=np.arange(2000) % 6)
    score = Scored(lambda X: 0.3 + 0.05 * X["race"])
    found = CounterfactualProbe("race").fit(X).audit(score, X)
    assert len(found.pairs) == 30
    assert "Of 30 pairs, the 12 whose interval of the flip rate begins highest." in str(found)


def test_html_is_a_fragment_with_every_label_escaped():
    X = people().replace({"sex": {"F": "<b>F</b>", "M": "M & m"}}).rename(columns={"sex": "<i>sex"})
    rule = Rule(lambda X: X["<i>sex"] == "M & m")
    html = CounterfactualProbe("<i>sex").fit(X).audit(rule, X)._repr_html_()
    assert html.startswith('<div class="sklearn-ethiclens">')
    assert "&lt;b&gt;F&lt;/b&gt;" in html
    assert "<b>" not in html
    assert "<i>" not in html
    with pytest.raises(ValueError, match="format must be"):
        CounterfactualProbe("<i>sex").fit(X).audit(rule, X).report("pdf")


def test_a_section_holds_every_pair_and_goes_with_an_audit_of_groups():
    X = people().assign(code=np.arange(400) % 2 + 1.0)
    X.loc[1000, "sex"] = None
    probe = CounterfactualProbe(["sex", "race", "code"], random_state=0).fit(X)
    with pytest.warns(AttributeUnusedWarning):
        found = probe.audit(Scored(lambda X: logistic(X.fillna({"sex": "F"}))), X)
    section = found.section()
    frame = section.frame()
    assert section.key == "counterfactuals"
    assert section.title == "Counterfactuals by sex, race, code"
    same = {"from": "source", "to": "target", "low": "flip_low", "high": "flip_high", "p adjusted": "pvalue_adjusted"}
    same |= {"change low": "mean_change_low", "change high": "mean_change_high", "mean score change": "mean_change"}
    same |= {"mean absolute change": "mean_absolute_change", "maximum change": "max_change"}
    names = [same.get(name, name.replace(" ", "_")) for name in frame]
    pd.testing.assert_frame_equal(frame.set_axis(names, axis=1), found.table[names])
    assert [type(v) for v in frame["from"][-2:]] == [int, int]  # labels, not measurements
    said = " ".join(section.lines)
    assert found.assumes in said
    assert "Rows without a value, not changed: 1 of sex." in said
    assert "code: No answer changes" in said
    assert "code: Proxies: it can be predicted" in said
    assert "A flip rate of 0 is no clearance" in said
    groups = audit(None, [0, 1] * 200, sensitive_features={"sex": X["sex"].fillna("F").to_numpy()}, n_resamples=100)
    both = groups.with_section(section)
    assert both.section("counterfactuals") == section
    assert Audit.from_json(both.to_json()) == both
    text = both.report("text")
    assert max(map(len, text.splitlines())) <= 80
    assert f"{found.pairs[0].flip_rate:.3f}" in text.split("Counterfactuals by")[1]


def test_a_section_has_no_column_of_scores_where_there_are_none():
    X = people()[["sex", "hours"]]
    section = CounterfactualProbe("sex").fit(X).audit(Rule(lambda X: X["sex"] == "M"), X).section()
    assert "mean score change" not in section.columns
    assert "off support" not in section.columns
    assert section.frame()["flip rate"].tolist() == [1.0, 1.0]


# ---------------------------------------------------------------------------------------------------------- scoring
def test_scorer_in_a_search_is_greater_is_better_and_picklable():
    model, X, y = real(LogisticRegression())
    probe = CounterfactualProbe("sex")
    scorer = pickle.loads(pickle.dumps(probe.scorer("flip_rate", pos_label="yes")))
    assert scorer(model, X) == scorer(model, X, y) < 0
    search = GridSearchCV(
        model,
        {"logisticregression__C": [1e-2, 1.0]},
        scoring={"flips": scorer, "accuracy": "accuracy"},
        refit="accuracy",
        cv=3,
    ).fit(X, y)
    flips = search.cv_results_["mean_test_flips"]
    assert (flips < 0).all()
    assert flips[0] != flips[1]
    table = probe.fit(X).audit(model, X, pos_label="yes").table
    assert scorer(model, X) == pytest.approx(-np.average(table["flip_rate"], weights=table["n"]))
    assert probe.scorer("max_change", pos_label="yes")(model, X) <= -table["max_change"].min()
    assert "flip_rate" in repr(scorer)
    assert clone(search).scoring["flips"].statistic == "flip_rate"
    with pytest.raises(ValueError, match="statistic must be one of"):
        probe.scorer("fairness")


def test_a_model_that_decides_alike_for_all_scores_nan():
    X = people()
    with pytest.warns(FairnessScoringWarning, match="every row is decided negative"):
        assert np.isnan(CounterfactualProbe("sex").scorer()(Rule(lambda X: X["hours"] > 1e9), X))


# ------------------------------------------------------------------------------------------------------------- tally
def test_paired_tallies_add_and_round_trip():
    X = people()
    probe = CounterfactualProbe(["sex", "race"]).fit(X)
    parts = [probe.audit(Scored(logistic), X.iloc[rows]).tally for rows in (slice(0, 150), slice(150, None))]
    whole = probe.audit(Scored(logistic), X).tally
    assert sum(parts) == whole
    assert PairedTally.from_json(whole.to_json()) == whole
    assert hash(whole) == hash(sum(parts))
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.marginal("sex").n_rows == len(X)
    assert whole.frame()["n"].sum() == whole.n_rows
    assert whole.mcnemar().pvalue.shape == (8,)
    with pytest.raises(ValueError, match="attribute must be one of"):
        whole.marginal("age")
    with pytest.raises(ValueError, match="pos_label agrees"):
        whole + PairedTally(whole.groups, whole.counts, pos_label="yes")
    with pytest.raises(ValueError, match="one 2 x 2 table"):
        PairedTally((("sex", "F", "M"),), np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="whole numbers"):
        PairedTally((("sex", "F", "M"),), np.full((1, 2, 2), 0.5))
    with pytest.raises(ValueError, match="read-only"):
        whole.counts[0] = 0


# --------------------------------------------------------------------------------------------------------- inference
@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (5, 1), (12, 12), (10, 14), (13, 12), (40, 20), (300, 1)])
def test_mcnemar_agrees_with_statsmodels(gained, lost):
    exact = gained + lost < 25
    found = mcnemar_test(gained, lost)
    assert found.test == ("exact" if exact else "chi2")
    expected = mcnemar([[3, gained], [lost, 4]], exact=exact, correction=False).pvalue if gained + lost else 1.0
    assert found.pvalue == pytest.approx(expected, rel=1e-9)
    assert mcnemar_test(lost, gained).pvalue == found.pvalue


def test_mcnemar_of_gaps_and_nonsense():
    found = mcnemar_test([np.nan, 3], [1, 2])
    assert np.isnan(found.pvalue[0])
    assert found.test.tolist() == [None, "exact"]
    for bad in (-1, 0.5, np.inf):
        with pytest.raises(ValueError, match="gained must be a whole number"):
            mcnemar_test(bad, 1)


def test_mean_interval_covers():
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(4000, 60))
    low, high = mean_interval(draws.mean(1), draws.var(1, ddof=1), 60)
    assert 0.92 < ((low <= 1) & (high >= 1)).mean() < 0.96
    assert np.isnan(mean_interval(1.0, 0.0, 1)).all()


def test_uniforms_belong_to_the_row():
    X = people(5000)
    one = row_uniforms(X, 0, 0)
    assert ((one >= 0) & (one < 1)).all()
    assert abs(one.mean() - 0.5) < 0.015
    assert abs(np.corrcoef(one, row_uniforms(X, 0, 1))[0, 1]) < 0.05
    assert (one != row_uniforms(X, 1, 0)).mean() > 0.99
    equal = row_uniforms(pd.DataFrame({"a": [1] * 1000}), 0, 0)
    assert np.abs(np.sort(equal) - np.arange(1000) / 1000).max() < 0.01
    assert subsample(100, 10, 0).tolist() == subsample(100, 10, 0).tolist() == sorted(set(subsample(100, 10, 0)))


def test_gradient_boosting_reads_categories_as_they_are():
    X = people(800).astype({"sex": "category", "race": "category", "job": "category"})
    y = (logistic(X) > 0.5).astype(int)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20, random_state=0).fit(X, y)
    found = CounterfactualProbe(["sex", "race"]).fit(X).audit(model, X)
    assert found.parameters["decisions"] == "predict_proba"
    F = X[X["sex"] == "F"]
    new = F.assign(sex=pd.Categorical(["M"] * len(F), categories=X["sex"].cat.categories))
    assert found.pairs[0].flip_rate == (model.predict(F) != model.predict(new)).mean()
