"""The pictures of an audit: what is drawn is what was found, zero is drawn, undefined is not, and labels stay as typed."""

import io
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import sklearn_ethiclens
from sklearn_ethiclens import (
    Audit,
    CounterfactualDisplay,
    DisparityDisplay,
    GroupRatesDisplay,
    ImpossibilityDisplay,
    Policy,
    Rule,
    Tally,
    audit,
    audit_tally,
    reliability_table,
)
from sklearn_ethiclens.counterfactual import CounterfactualProbe
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.inference import wilson_interval
from sklearn_ethiclens.plotting import DISPLAYS, CalibrationDisplay
from sklearn_ethiclens.plotting._common import elide, short_labels

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

QUICK = {"n_resamples": 100}
HOSTILE = [
    "<b>bold</b>",
    "$x^2$ and $",
    "a_very_long_label_" * 4 + "end_of_it",
    "tab\tnew\nline",
    r"\frac{1}{2}",
    "100% _^&#",
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def people(n=1200, seed=0):
    """Scored rows of three groups: one that is never selected, one of a dozen rows."""
    rng = np.random.default_rng(seed)
    group = np.where(np.arange(n) < 12, "few", np.where(rng.random(n) < 0.5, "a", "b"))
    y = (rng.random(n) < np.where(group == "a", 0.6, 0.3)).astype(int)
    score = np.clip(0.5 * rng.random(n) + 0.4 * y, 0, 1)
    decision = (score > 0.45).astype(int) * (group != "few")
    return y, decision, score, group


@pytest.fixture(scope="module")
def found():
    y, decision, score, group = people()
    with pytest.warns(UndefinedMetricWarning, match="few has no positive y_pred"):
        return audit(y, decision, sensitive_features={"sex": group}, y_score=score, reference="b", **QUICK)


@pytest.fixture(scope="module")
def blank():
    """Nobody is positive or selected: every comparison is undefined."""
    y = np.zeros(300, dtype=int)
    with pytest.warns(UndefinedMetricWarning):
        return audit(y, y, sensitive_features={"sex": ["a", "b", "c"] * 100}, y_score=np.full(300, 0.2), **QUICK)


@pytest.fixture(scope="module")
def sixty():
    rng = np.random.default_rng(1)
    counts = {f"county number {i:02d}": {"n": 200, "selected": int(rng.integers(0, 150))} for i in range(60)}
    counts["county number 07"]["selected"] = 0
    return audit_tally(Tally.from_counts(counts, attribute="county"), metrics=["disparate_impact"], **QUICK)


@pytest.fixture(scope="module")
def flips():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"sex": rng.integers(0, 2, 400), "job": rng.integers(0, 5, 400)})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X["sex"] == 1) & (X["job"] > 1))
    return CounterfactualProbe("sex").fit(X).audit(model, X, pos_label=True)


def texts(figure):
    """Every visible text of a figure."""
    return [t for t in figure.findobj(matplotlib.text.Text) if t.get_visible() and t.get_text().strip()]


def said(figure):
    return [t.get_text() for t in texts(figure)]


def xy(line):
    return tuple(np.asarray(values, dtype=float).tolist() for values in line.get_data())


def ends(collection):
    """The ends of horizontal intervals."""
    return [(segment[0][0], segment[1][0]) for segment in collection.get_segments()]


# -------------------------------------------------------------------------------------------------- what is drawn is found
def test_the_forest_is_the_findings(found):
    display = found.plot(metric="disparate_impact")
    frame = found.frame().query("metric == 'disparate_impact'").reset_index(drop=True)
    pd.testing.assert_frame_equal(display.table, frame)
    drawn = {}
    for (metric, verdict), line in display.points_.items():
        assert metric == "disparate_impact"
        xs, _ = xy(line)
        for x, interval in zip(xs, ends(display.intervals_[metric, verdict]), strict=True):
            drawn[x] = (*interval, verdict)
    expected = {row.value: (row.low, row.high, row.verdict) for row in frame.itertuples()}
    assert drawn == expected
    assert len(expected) == 2


def test_the_default_panels_are_what_the_policy_judges(found):
    display = found.plot()
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["disparate impact", "equalized odds difference"]
    assert list(dict.fromkeys(display.table["metric"])) == ["disparate_impact", "equalized_odds_difference"]
    assert [rule.metric for rule in display.rules] == ["disparate_impact", "equalized_odds_difference"]


def test_the_verdict_is_a_word_and_a_shape_of_its_own(found):
    tally = Tally.from_counts(
        {
            "lower": {"n": 900, "selected": 200},
            "middle": {"n": 300, "selected": 128},
            "same": {"n": 900, "selected": 450},
            "small": {"n": 20, "selected": 8},
            "reference": {"n": 900, "selected": 450},
        },
        attribute="g",
    )
    display = audit_tally(tally, reference="reference", **QUICK).plot(metric="disparate_impact")
    shapes = {
        verdict: (line.get_marker(), line.get_markerfacecolor()) for (_, verdict), line in display.points_.items()
    }
    assert set(shapes) == {"FLAGGED", "INCONCLUSIVE", "CLEARED", "INSUFFICIENT_DATA"}
    assert len({(marker, face == "white") for marker, face in shapes.values()}) == 4  # told apart without colour
    assert shapes["INSUFFICIENT_DATA"][1] == "white"
    words = said(display.figure_)
    for word in shapes:
        assert sum(text.endswith(word.replace("_", " ")) for text in words) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_the_accepted_range_is_shaded(found):
    (panel,) = found.plot(metric="equalized_odds_difference").axes_
    band = panel.patches[0].get_path().get_extents(panel.patches[0].get_patch_transform())
    assert band.x1 == pytest.approx(0.1)
    assert "shaded: accepted, at most 0.1" in panel.get_xlabel()
    policy = Policy("both", "", rules=(Rule("disparate_impact", minimum=0.8, maximum=1.25),), n_resamples=100)
    (panel,) = found.rejudge(policy).plot().axes_
    band = panel.patches[0].get_path().get_extents(panel.patches[0].get_patch_transform())
    assert (band.x0, band.x1) == pytest.approx((0.8, 1.25))
    signed = Policy("signed", "", rules=(Rule("precision_difference", maximum=0.1, absolute=True),), n_resamples=100)
    (panel,) = found.rejudge(signed).plot().axes_
    band = panel.patches[0].get_path().get_extents(panel.patches[0].get_patch_transform())
    assert (band.x0, band.x1) == pytest.approx((-0.1, 0.1))


def test_a_descriptive_metric_has_no_limit(found):
    display = found.plot(metric="base_rate_difference")
    assert set(display.points_) == {("base_rate_difference", "")}
    assert "no limit: descriptive" in display.ax_.get_xlabel()
    assert not display.ax_.patches


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_largest_gaps_have_one_row_an_attribute_and_no_interval(found):
    display = found.rejudge("four_fifths").plot()
    assert len(display.axes_) == 3
    assert [t.get_text() for t in display.axes_[0].get_yticklabels()] == ["sex", "all groups"]
    assert not display.intervals_
    assert "without interval" in display.ax_.get_xlabel()


def test_rates_are_those_of_the_audit(found):
    display = found.plot("rates", rate=["true_positive_rate", "precision"])
    rates = found.rates()
    for rate in ("true_positive_rate", "precision"):
        expected = rates[(rates["rate"] == rate) & rates["value"].notna()]
        xs, _ = xy(display.points_[rate])
        assert xs == expected["value"].tolist()
        assert ends(display.intervals_[rate]) == list(zip(expected["low"], expected["high"], strict=True))
        for row in expected.itertuples():
            assert any(f"({row.count} of {row.denominator})" in text for text in said(display.figure_))


def test_curves_are_the_reliability_table(found):
    y, _, score, group = people()
    display = found.plot("calibration")
    expected = reliability_table(y, score, sensitive_features={"sex": group})
    pd.testing.assert_frame_equal(display.table, expected)
    for name, rows in expected.groupby("sex"):
        filled = rows[rows["n"] > 0]
        assert xy(display.lines_[name]) == (filled["mean_score"].tolist(), filled["observed_rate"].tolist())
        segments = display.intervals_[name].get_segments()
        assert [(s[0][1], s[1][1]) for s in segments] == list(zip(filled["low"], filled["high"], strict=True))
        assert [bar.get_height() for bar in display.histogram_[name]] == rows["n"].tolist()
        assert any(f"{name} (n={rows['n'].sum()})" == text for text in said(display.figure_))


def test_a_stored_audit_still_has_its_ten_bins(found):
    again = Audit.from_json(found.to_json())
    stored, fresh = again.plot("calibration").table, found.plot("calibration").table
    pd.testing.assert_frame_equal(stored, fresh)
    with pytest.raises(ValueError, match="10 bins of equal width; got n_bins=5"):
        again.plot("calibration", n_bins=5)


def test_points_lie_on_the_curve_of_the_identity(found):
    """FPR = p/(1-p) (1-PPV)/PPV TPR (Chouldechova 2017)."""
    display = found.plot("impossibility")
    assert set(display.points_) == {"a", "b"}
    for row in display.table[display.table["reason"] == ""].itertuples():
        odds = row.base_rate / (1 - row.base_rate)
        assert row.false_positive_rate == pytest.approx(
            odds * (1 - row.precision) / row.precision * row.true_positive_rate
        )
        assert xy(display.points_[row.group]) == ([row.false_positive_rate], [row.precision])
        x, y = (np.asarray(v) for v in xy(display.curves_[row.group]))
        assert np.interp(row.false_positive_rate, x, y) == pytest.approx(row.precision, abs=2e-3)
        across, along = display.intervals_[row.group]
        assert ends(across) == [(row.false_positive_rate_low, row.false_positive_rate_high)]
        (segment,) = along.get_segments()
        assert (segment[0][1], segment[1][1]) == (row.precision_low, row.precision_high)
    rates = found.rates().set_index(["rate", "group"])
    for row in display.table.itertuples():
        np.testing.assert_equal(row.precision, rates.loc[("precision", row.group), "value"])
        np.testing.assert_equal(row.base_rate, rates.loc[("base_rate", row.group), "value"])


def test_curves_of_different_base_rates_share_no_point_but_the_first(found):
    display = found.plot("impossibility")
    a, b = (np.asarray(xy(display.curves_[name])[1]) for name in "ab")
    assert a[0] == b[0] == 1
    assert (a[1:] > b[1:]).all()


def test_flip_rates_are_those_of_the_counterfactual_audit(flips):
    display = flips.plot()
    pd.testing.assert_frame_equal(display.table, flips.frame())
    for column in ("flip_rate", "to_positive", "to_negative"):
        assert xy(display.points_[column])[0] == flips.frame()[column].tolist()
    assert ends(display.intervals_["flip_rate"]) == list(
        zip(flips.frame()["flip_low"], flips.frame()["flip_high"], strict=True)
    )
    n, turned = flips.frame()["n"], flips.tally.gained
    low, high = wilson_interval(turned, n)
    np.testing.assert_allclose(ends(display.intervals_["to_positive"]), np.transpose([low, high]), rtol=1e-12)
    for row in flips.pairs:
        assert any(row.band in text and "off support" in text for text in said(display.figure_))
        assert any(f"(n={row.n})" in text for text in said(display.figure_))


# ------------------------------------------------------------------------------------------------------ zero and undefined
def test_a_ratio_of_zero_is_drawn_at_a_marked_end(found):
    (panel,) = found.plot(metric="disparate_impact").axes_
    assert panel.get_xscale() == "symlog"
    zero = [
        x for line in panel.lines for x, marker in [(np.asarray(line.get_xdata()), line.get_marker())] if marker == "o"
    ]
    assert any((x == 0).any() for x in zero)
    assert "0" in [t.get_text() for t in panel.get_xticklabels()]
    left, right = panel.get_xlim()
    assert left < 0 < right


def test_ratios_without_a_zero_stand_on_a_logarithmic_axis(found):
    table = found.frame().query("metric == 'base_rate_ratio' and group == 'a'")
    (panel,) = DisparityDisplay(table).plot().axes_
    assert panel.get_xscale() == "log"
    half, one, double = panel.transData.transform([(0.5, 0), (1, 0), (2, 0)])[:, 0]
    assert one - half == pytest.approx(double - one)


def test_an_interval_beyond_the_axes_ends_in_an_arrow(found):
    table = found.frame().query("metric == 'disparate_impact'").head(1).assign(value=0.9, low=0.5, high=np.inf)
    (panel,) = DisparityDisplay(table).plot().axes_
    (arrow,) = [line for line in panel.lines if line.get_marker() == ">"]
    assert set(xy(arrow)[0]) == {panel.get_xlim()[1]}


def test_a_rate_of_zero_is_a_visible_point(found):
    display = found.plot("rates", rate="selection_rate")
    xs, ys = xy(display.points_["selection_rate"])
    assert 0.0 in xs
    assert display.ax_.get_xlim()[0] < 0
    assert "0.000 (0 of 12)" in said(display.figure_)
    assert len(ys) == 3


def test_what_is_undefined_has_no_point_but_a_reason(blank):
    display = blank.plot()
    assert not display.points_
    assert not display.intervals_
    assert sum(text.startswith("undefined: ") for text in said(display.figure_)) == 4
    rates = blank.plot("rates")
    assert set(rates.points_) == {"selection_rate", "false_positive_rate"}
    assert said(rates.figure_).count("undefined: no positive y_true") == 3
    figure = blank.plot("impossibility").figure_
    assert sum("undefined, no positive y_pred" in text for text in said(figure)) == 3
    assert not blank.plot("impossibility").points_
    assert xy(blank.plot("calibration").lines_["a"]) == ([pytest.approx(0.2)], [0.0])


def test_no_nan_is_ever_a_coordinate_of_a_point(found, blank):
    for display in (found.plot(), found.plot("rates"), found.plot("impossibility"), blank.plot("rates")):
        for line in display.points_.values():
            assert np.isfinite(np.asarray(line.get_xydata(), dtype=float)).all()


def test_without_labels_errors_are_not_assessed_and_rates_are_drawn():
    decision = np.arange(600) % 3 == 0
    made = audit(None, decision, sensitive_features=["a", "b"] * 300, **QUICK)
    assert any(text == "not assessed: no labels" for text in said(made.plot().figure_))
    assert list(made.plot("rates").points_) == ["selection_rate"]
    with pytest.raises(ValueError, match="need labels: pass y_true"):
        made.plot("impossibility")
    with pytest.raises(ValueError, match="there are no scores"):
        made.plot("calibration")


# ----------------------------------------------------------------------------------------------------- scikit-learn's shape
@pytest.mark.parametrize("kind", DISPLAYS)
def test_plot_returns_itself_and_draws_again_elsewhere(found, kind):
    display = found.plot(kind)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    figure, axes = plt.subplots(1, 2, figsize=(18, 5), layout="constrained")
    assert display.plot(axes[1]) is display
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    figure.draw_without_rendering()
    assert not axes[0].lines


@pytest.mark.parametrize(
    ("cls", "needed"),
    [
        (DisparityDisplay, "Audit.frame"),
        (GroupRatesDisplay, "Audit.rates"),
        (CalibrationDisplay, "reliability_table"),
        (ImpossibilityDisplay, "from_audit"),
        (CounterfactualDisplay, "CounterfactualAudit.frame"),
    ],
)
def test_the_constructor_takes_the_data_and_draws_nothing(cls, needed):
    with pytest.raises(ValueError, match=f"table lacks the columns .*{needed}"):
        cls(pd.DataFrame({"x": [1]}))
    with pytest.raises(TypeError, match="table must be a DataFrame"):
        cls([1])


def test_one_metric_is_drawn_into_any_axes_and_several_ask_for_axes_of_a_grid(found):
    figure = plt.figure()
    free = figure.add_axes((0.3, 0.2, 0.4, 0.6))
    assert found.plot(ax=free, metric="disparate_impact").axes_[0] is free
    with pytest.raises(ValueError, match="ax must be axes of a grid"):
        found.plot(ax=free)


def test_from_predictions_is_the_audit_of_them(found):
    y, decision, score, group = people()
    same = {"sensitive_features": {"sex": group}}
    judged = ["attribute", "group", "reference", "metric", "value", "low", "high", "verdict", "reason"]
    made = DisparityDisplay.from_predictions(y, decision, **same, reference="b", n_resamples=100)
    pd.testing.assert_frame_equal(made.table[judged], found.plot().table[judged])
    pd.testing.assert_frame_equal(
        GroupRatesDisplay.from_predictions(y, decision, **same).table, found.plot("rates").table
    )
    pd.testing.assert_frame_equal(
        CalibrationDisplay.from_predictions(y, score, **same).table, found.plot("calibration").table
    )
    made = ImpossibilityDisplay.from_predictions(y, decision, **same, reference="b")
    pd.testing.assert_frame_equal(made.table, found.plot("impossibility").table)
    assert made.reference == found.plot("impossibility").reference == "b"


def test_from_estimator_is_from_predictions_of_its_predictions():
    y, _, score, group = people(600)
    X = pd.DataFrame({"score": score, "sex": group, "extra": np.arange(600) % 7}, index=np.arange(600)[::-1])
    y = pd.Series(y, index=X.index)

    class Model(LogisticRegression):
        def predict(self, X):
            return super().predict(X[["score"]])

        def predict_proba(self, X):
            return super().predict_proba(X[["score"]])

    model = Model().fit(X[["score"]], y)
    cases = [
        (DisparityDisplay, model.predict(X), {"n_resamples": 100}),
        (GroupRatesDisplay, model.predict(X), {}),
        (ImpossibilityDisplay, model.predict(X), {}),
        (CalibrationDisplay, model.predict_proba(X)[:, 1], {}),
    ]
    for cls, answers, options in cases:
        expected = cls.from_predictions(y, answers, sensitive_features=X["sex"], **options).table
        made = cls.from_estimator(model, X, y, sensitive_features="sex", **options)
        pd.testing.assert_frame_equal(made.table, expected)
        assert made.name == "Model"
        assert any(text.startswith("Model: ") for text in said(made.figure_))
    expected = GroupRatesDisplay.from_predictions(y, model.predict(X), sensitive_features=X["sex"], rate="precision")
    for groups in (["sex"], X["sex"], X[["sex"]], {"sex": X["sex"]}):
        made = GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=groups, rate="precision")
        pd.testing.assert_frame_equal(made.table, expected.table)
    with pytest.raises(ValueError, match="differs from that of"):
        GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=X["sex"].sort_index())
    with pytest.raises(TypeError, match="estimator must be a fitted classifier"):
        GroupRatesDisplay.from_estimator("model", X, y, sensitive_features="sex")


def test_properties_of_points_are_those_of_the_caller(found):
    display = found.plot("rates", rate="selection_rate", ms=11, color="black")
    assert display.points_["selection_rate"].get_markersize() == 11
    assert display.points_["selection_rate"].get_color() == "black"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: a.plot("forest"), "kind must be one of .*'disparity'.*; got 'forest'"),
        (lambda a: a.plot(metric="selection_rate"), "values of one group, no comparisons. GroupRatesDisplay"),
        (lambda a: a.plot(metric="disparate_impct"), "Did you mean 'disparate_impact'"),
        (lambda a: a.plot(attribute="race"), r"attribute must name one of \['sex'\]; got 'race'"),
        (lambda a: a.plot("rates", rate="f1"), "rate must name rates there are"),
        (lambda a: a.plot("calibration", strategy="best"), "strategy must be one of"),
    ],
)
def test_errors_name_the_argument_and_the_way_out(found, call, message):
    with pytest.raises(ValueError, match=message):
        call(found)


@pytest.mark.parametrize("kind", [kind for kind in DISPLAYS if kind != "calibration"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: plt.subplots(2, 2)[1], r"got ndarray. Take one of them, such as axes\[0, 0\]"),
        (lambda: plt.figure(), "None for a figure of its own; got Figure."),
        (lambda: 3, "got int."),
    ],
)
def test_what_is_no_axes_is_refused_by_every_display(found, flips, kind, wrong, message):
    for draw in (lambda ax: found.plot(kind, ax=ax), lambda ax: CounterfactualDisplay.from_audit(flips, ax=ax)):
        with pytest.raises(TypeError, match=f"ax must be matplotlib Axes, .*{message}"):
            draw(wrong())


def test_what_is_no_audit_is_refused_by_every_display(found, flips):
    for display in DISPLAYS.values():
        for wrong in (flips, found.tally, found.frame(), None):
            with pytest.raises(
                TypeError, match=f"audit must be an Audit, .*; got {type(wrong).__name__}. Of rows there is"
            ):
                display.from_audit(wrong)
    with pytest.raises(TypeError, match="audit must be a CounterfactualAudit, .*; got Audit. Audits of decisions have"):
        CounterfactualDisplay.from_audit(found)


@pytest.mark.filterwarnings("ignore::sklearn_ethiclens.exceptions.SampleSizeWarning")
@pytest.mark.filterwarnings("ignore::sklearn_ethiclens.exceptions.UndefinedMetricWarning")
def test_of_one_group_no_disparity_is_drawn_and_the_way_out_is_said():
    one = audit([0, 1], [1, 0], sensitive_features=pd.Series(["a", "a"], name="sex"), **QUICK)
    for metric in (None, "disparate_impact"):
        with pytest.raises(ValueError, match=r"nothing to compare by \['sex'\]: one group only. GroupRatesDisplay"):
            one.plot(metric=metric)
    assert len(one.plot("rates", rate="selection_rate").table) == 1


def test_a_display_of_one_attribute_asks_which():
    y, decision, score, group = people(600)
    made = audit(
        y,
        decision,
        y_score=score,
        sensitive_features={"sex": group, "half": np.arange(600) % 2},
        intersections="all",
        metrics=["base_rate"],
        **QUICK,
    )
    for kind in ("calibration", "impossibility"):
        with pytest.raises(
            ValueError, match=r"shows one attribute: pass attribute=, one of \['sex', 'half', 'sex & half'\]"
        ):
            made.plot(kind)
        assert len(made.plot(kind, attribute="half").table["n"]) in (2, 20)
        assert made.plot(kind, attribute=("sex", "half")).figure_ is not None
    assert set(made.plot(attribute=["half", ("sex", "half")]).table["attribute"]) == {"half", "sex & half"}


# ----------------------------------------------------------------------------------------------------------------- legible
def overlapping(boxes):
    return [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if first.overlaps(second)]


def tick_labels(axis):
    low, high = sorted(axis.get_view_interval())
    labels = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [(label.get_text(), label.get_window_extent()) for label in labels if label.get_visible()]


def check_legible(figure):
    """No two labels of an axis overlap, and nothing lies outside the figure."""
    figure.draw_without_rendering()
    for ax in figure.axes:
        if ax.axison:
            assert overlapping(tick_labels(ax.yaxis)) == []
            assert overlapping(tick_labels(ax.xaxis)) == []
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 >= -0.02
    assert box.y0 >= -0.02
    assert box.x1 <= width + 0.02
    assert box.y1 <= height + 0.02


def test_sixty_groups_are_legible(sixty):
    forest = sixty.plot(metric="disparate_impact")
    check_legible(forest.figure_)
    assert min(t.get_fontsize() for t in forest.axes_[0].get_yticklabels()) >= 8
    assert len(forest.axes_[0].get_yticklabels()) == 60  # a heading, and all but the reference
    check_legible(sixty.plot("rates", rate="selection_rate").figure_)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_few_groups_are_legible(found, kind):
    check_legible(found.plot(kind).figure_)


def test_flips_are_legible(flips):
    check_legible(flips.plot().figure_)


@pytest.mark.parametrize("kind", ["calibration", "impossibility"])
def test_more_than_six_groups_have_a_panel_each(kind):
    y, decision, score, _ = people(800)
    group = np.arange(800) % 8
    made = audit(y, decision, y_score=score, sensitive_features={"g": group}, metrics=["base_rate"], **QUICK)
    display = made.plot(kind)
    assert len(display.axes_) == 8
    assert [ax.get_title(loc="left") for ax in display.axes_] == [f"{g} (n=100)" for g in range(8)]
    check_legible(display.figure_)


@pytest.mark.parametrize("kind", DISPLAYS)
def test_labels_are_drawn_as_typed(kind):
    y, decision, score, _ = people(1200)
    group = np.array(HOSTILE, dtype=object)[np.arange(1200) % 6]
    made = audit(y, decision, y_score=score, sensitive_features={"$a_{x}$ <i>": group}, reference=HOSTILE[0], **QUICK)
    display = made.plot(kind, name="$m$")
    words = "\n".join(said(display.figure_))
    for typed in ("<b>bold</b>", "$x^2$ and $", r"\frac{1}{2}", "100% _^&#", r"tab\tnew\nline", "$a_{x}$ <i>", "$m$: "):
        assert typed in words
    assert "a_very_long_label_a_…" in words
    assert HOSTILE[2] not in words
    for text in texts(display.figure_):
        if "$" in text.get_text():
            assert not text.get_parse_math()
    check_legible(display.figure_)


def test_elided_labels_stay_different():
    long = ["x" * 50 + middle + "y" * 50 for middle in "ab"]
    assert elide(long[0], 20) == elide(long[1], 20)
    assert len(set(short_labels(long, 20))) == 2
    assert [len(s) for s in short_labels(["z" * 99, "a"], 20)] == [20, 1]


def test_no_global_state_is_changed_and_nothing_is_shown(found, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *a, **k: pytest.fail("shown"))
    before = dict(matplotlib.rcParams)
    for kind in DISPLAYS:
        found.plot(kind)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("kind", ["disparity", "impossibility"])
def test_the_same_audit_gives_the_same_bytes(found, kind):
    pictures = []
    for source in (found, Audit.from_json(found.to_json())):
        stream = io.BytesIO()
        source.plot(kind).figure_.savefig(stream, format="png", dpi=40)
        pictures.append(stream.getvalue())
    assert pictures[0] == pictures[1]


# ------------------------------------------------------------------------------------------------------------------- names
def test_the_root_has_the_displays_but_for_the_name_scikit_learn_uses():
    for name in (
        "DisparityDisplay",
        "GroupRatesDisplay",
        "CounterfactualDisplay",
        "ImpossibilityDisplay",
        "TradeoffDisplay",
    ):
        assert name in sklearn_ethiclens.__all__
        assert hasattr(sklearn_ethiclens, name)
    assert not hasattr(sklearn_ethiclens, "CalibrationDisplay")


def test_repr_says_what_is_in_it(found, flips):
    assert repr(found.plot(metric="disparate_impact")) == "DisparityDisplay(2 comparisons by disparate_impact)"
    assert repr(found.plot("rates", rate="precision")) == "GroupRatesDisplay(precision of 3 groups)"
    assert repr(found.plot("calibration")) == "CalibrationDisplay(1200 rows by sex)"
    assert repr(found.plot("impossibility")) == "ImpossibilityDisplay(3 groups by sex)"
    assert repr(flips.plot()) == "CounterfactualDisplay(2 changes of sex)"


def test_without_matplotlib_the_error_says_how_to_get_it(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for kind in DISPLAYS:
        with pytest.raises(ImportError, match=r'drawing needs matplotlib.*pip install "sklearn-ethiclens\[plot\]"'):
            found.plot(kind)
