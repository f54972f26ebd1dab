"""Every reference case whose kind the product covers, as it is: one adapter, one handler a kind.

Expected values are checked to the case's own tolerance, printed ones to the half-width of their rounding. Handlers call
the product's functions only. Facts about data sets are held by ``test_datasets.py``; kinds of later parts of the product
are listed in ``LATER``.
"""

import hashlib
import json
import math
import re
from contextlib import nullcontext
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from sklearn_ethiclens import (
    METRICS,
    MISSING,
    POLICIES,
    SCORE_METRICS,
    Rule,
    Tally,
    Verdict,
    audit,
    audit_tally,
    inference,
    metrics,
)
from sklearn_ethiclens.datasets import inject, normal_score_shift
from sklearn_ethiclens.exceptions import UndefinedMetricWarning
from sklearn_ethiclens.inference._resampling import acceleration, leave_one_out, pair_leave_one_out
from sklearn_ethiclens.metrics._rates import confusion_of
from sklearn_ethiclens.metrics._scores import median_score
from tests._shared import cases, data_file

RATES = {
    "base_rate": "base_rate",
    "selection_rate": "selection_rate",
    "accuracy": "accuracy",
    "tpr": "true_positive_rate",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "tnr": "true_negative_rate",
    "ppv": "precision",
    "npv": "negative_predictive_value",
    "fdr": "false_discovery_rate",
    "for": "false_omission_rate",
    "balanced_accuracy": "balanced_accuracy",
}
PAIRS = {
    "di": "disparate_impact",
    "spd": "statistical_parity_difference",
    "tpr_diff": "true_positive_rate_difference",
    "fpr_diff": "false_positive_rate_difference",
    "ppv_diff": "precision_difference",
    "equalized_odds_diff": "equalized_odds_difference",
    "average_odds_diff": "average_odds_difference",
}
# Over all groups, as fairlearn has it: equalized_odds_difference is then the larger of two gaps of many groups.
OVERALL = {
    "demographic_parity_difference": "demographic_parity_difference",
    "demographic_parity_ratio": "demographic_parity_ratio",
    "equal_opportunity_difference": "equalized_odds_tpr_gap",
    "equalized_odds_ratio": "equalized_odds_ratio",
}
GAPS = ("equalized_odds_tpr_gap", "equalized_odds_fpr_gap")
# Nothing is left out below a share of the rows, and nothing is judged: what remains is the arithmetic.
ARITHMETIC = POLICIES["ll144"].replace(min_share=0.0)
FOUR_FIFTHS = Rule("disparate_impact", minimum=0.8, basis="point")
N_RESAMPLES = 20_000


# ------------------------------------------------------------------------------------------------------------- inputs
@cache
def _table(name, sha256):
    path = data_file(name)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        return pd.read_parquet(path)
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def rows_of(given):
    """Return y_true (or None), y_pred and the groups of a case that names a file or holds arrays."""
    if "arrays" in given:
        arrays = given["arrays"]
        return np.array(arrays["y_true"]), np.array(arrays["y_pred"]), pd.DataFrame({"group": arrays["group"]})
    frame = _table(given["file"].rpartition("/")[2], given["sha256"])
    for condition in given["filter"]:
        frame = frame.query(condition)
    groups = {}
    for column in given["groups"]:
        values = frame[column]
        if expression := given.get("group_expr"):
            values = frame.eval(expression["expr"]).map({True: expression["true"], False: expression["false"]})
        if codes := given.get("recode", {}).get(column):
            values = values.map({values.dtype.type(code): label for code, label in codes.items()})
            assert values.notna().all()
        groups[column] = values
    y_true = frame.eval(given["y_true"]) if "y_true" in given else None
    return y_true, frame.eval(given["y_pred"]), pd.DataFrame(groups)


def tally_of(given):
    """Return the tally of a case, from its printed counts or from its rows."""
    if "counts" in given:
        counts = dict(given["counts"])
        if unknown := given.get("unknown"):
            counts[MISSING] = {"n": unknown, "selected": 0}
        return Tally.from_counts(counts)
    y_true, y_pred, groups = rows_of(given)
    return Tally.from_predictions(y_true, y_pred, sensitive_features=groups)


def numbers_of(tally, group):
    """Return selected rows and all rows of a group."""
    row = tally.frame().set_index(tally.attributes[0]).loc[group]
    return (row["tp"] + row["fp"] if tally.labelled else row["selected"]), row["n"]


def two_rates(found, tally, group, reference):
    """Add what two selection rates are compared by."""
    x, n = numbers_of(tally, group)
    x_reference, n_reference = numbers_of(tally, reference)
    counts = (x, n, x_reference, n_reference)
    pair = f"[{group}|{reference}]"
    found["z_pooled" + pair], found["p_value" + pair] = inference.two_proportion_ztest(*counts)
    found["fisher_p" + pair] = inference.fisher_exact_test(*counts)
    found["cohens_h" + pair] = inference.cohens_h(x / n, x_reference / n_reference)
    found["flip_flop" + pair] = metrics.flip_flop(*counts)
    found["shortfall" + pair] = metrics.shortfall(*counts)


# ----------------------------------------------------------------------------------------------------------- handlers
def group_table(case):
    tally, reference = tally_of(case["input"]), case["input"]["reference"]
    cells = tally.frame().set_index(tally.attributes[0])
    counts = {group: table for (group,), table in zip(tally.groups, tally.counts, strict=True)}
    found = {f"{name}[{group}]": cells.loc[group, name] for group in counts for name in ("n", "tp", "fp", "fn", "tn")}
    found["n[ALL]"] = tally.n_rows
    for name, metric in RATES.items():
        found |= {f"{name}[{group}]": METRICS[metric](table) for group, table in counts.items()}
        found[f"{name}[ALL]"] = METRICS[metric](tally.counts.sum(0))
    for group in counts.keys() - {reference}:
        pair = f"[{group}|{reference}]"
        found |= {name + pair: METRICS[metric](counts[group], counts[reference]) for name, metric in PAIRS.items()}
        two_rates(found, tally, group, reference)
    found |= {name: METRICS[metric](tally.counts) for name, metric in OVERALL.items()}
    found["equalized_odds_difference"] = metrics.calculate_equalized_odds_difference(
        *(METRICS[gap](tally.counts) for gap in GAPS)
    )
    return found


def group_table_of_audit(case):
    """Return the same values, read off the findings of an audit."""
    names = [*RATES.values(), *PAIRS.values(), *OVERALL.values(), *GAPS]
    undefined = any(value is None for value in case["expect"].values())
    with pytest.warns(UndefinedMetricWarning, match="has no positive y_true") if undefined else nullcontext():
        audited = audit_tally(
            tally_of(case["input"]),
            reference=case["input"]["reference"],
            policy=ARITHMETIC,
            metrics=names,
            n_resamples=100,
        )
    found, gaps = {}, {}
    short = {metric: name for name, metric in (RATES | PAIRS | OVERALL).items()}
    for finding in audited.findings:
        name, kind = short.get(finding.metric), METRICS[finding.metric].kind
        if kind == "group":
            found[f"{name}[{finding.group}]"] = finding.value
            found[f"n[{finding.group}]"] = finding.n
        elif kind == "pair":
            found[f"{name}[{finding.group}|{finding.reference}]"] = finding.value
            if name == "spd" and finding.test == "z":
                found[f"p_value[{finding.group}|{finding.reference}]"] = finding.pvalue
        else:
            gaps[finding.metric] = finding.value
            found[name] = finding.value
    found["equalized_odds_difference"] = metrics.calculate_equalized_odds_difference(*(gaps[gap] for gap in GAPS))
    return found


def selection_table(case):
    """Return rates, ratios to the most selected category and to a named one, and who is left out, from two audits."""
    given = case["input"]
    tally = tally_of(given)
    policy = POLICIES["ll144"].replace(min_share=given.get("exclude_below", 0.0), rules=(FOUR_FIFTHS,))
    wanted = ["selection_rate", "disparate_impact", "statistical_parity_difference"]
    audited = audit_tally(tally, policy=policy, metrics=wanted, n_resamples=100)
    most = audited.references[0].group
    of_metric = {name: [f for f in audited.findings if f.metric == name] for name in wanted}
    found = {f"selection_rate[{f.group}]": f.value for f in of_metric["selection_rate"]}
    found |= {f"impact_ratio[{f.group}]": f.value for f in of_metric["disparate_impact"]}
    table = tally.counts[tally.groups.index((most,))]
    found[f"impact_ratio[{most}]"] = METRICS["disparate_impact"](table, table)
    found["most_selected"] = most
    found["four_fifths_below"] = [f.group for f in audited.flagged]
    found["excluded"] = [f.group for f in of_metric["disparate_impact"] if f.reason.startswith("left out")]
    found["unknown"] = sum(f.n for f in of_metric["disparate_impact"] if f.reason.startswith("unknown category"))
    pairs = [(f.group, most, f) for f in of_metric["disparate_impact"] if f.group is not MISSING]
    if reference := given.get("reference"):
        named = audit_tally(tally, reference=reference, policy=ARITHMETIC, metrics=wanted, n_resamples=100)
        short = {"disparate_impact": "di", "statistical_parity_difference": "spd"}
        found |= {f"{short[f.metric]}[{f.group}|{reference}]": f.value for f in named.findings if f.metric in short}
        pairs += [(f.group, reference, f) for f in named.findings if f.metric == "disparate_impact"]
    for group, reference, finding in pairs:
        two_rates(found, tally, group, reference)
        assert (finding.test is None) == math.isnan(finding.pvalue)
        if finding.test is not None:
            name = {"z": "p_value", "fisher": "fisher_p"}[finding.test]
            assert finding.pvalue == pytest.approx(float(found[f"{name}[{group}|{reference}]"]), abs=1e-12)
    if given.get("k_group_test"):
        (test,) = (test for test in audited.tests if test["rate"] == "selection_rate")
        found |= {"chi2": test["statistic"], "chi2_df": test["dof"], "chi2_p": test["pvalue"]}
        frame = tally.frame()
        assert test["statistic"] == float(inference.chi2_test(frame["selected"], frame["n"]).statistic)
    return found


def flag(case):
    """Return who is flagged under the ``ethiclens`` policy, by which metric, and who could not be judged."""
    given, policy = case["input"], POLICIES["ethiclens"]
    floors = {{"selection": "total"}.get(name, name): least for name, least in given["floors"].items()}
    assert floors.items() <= policy.floors.items()
    assert policy.rule("disparate_impact").minimum == given["di_threshold"]
    assert policy.rule("equalized_odds_difference").maximum == given.get("eo_threshold", 0.1)
    audited = audit_tally(tally_of(given), reference=given["reference"])
    found = {}
    for group in given["counts"].keys() - {given["reference"]}:
        judged = [f for f in audited.judged if f.group == group and f.reason != "no labels"]
        flagged = [f.metric.removesuffix("_difference") for f in judged if f.verdict is Verdict.FLAGGED]
        found[f"flagged[{group}]"] = bool(flagged)
        found[f"reason[{group}]"] = ", ".join(flagged)
        insufficient = all(f.verdict is Verdict.INSUFFICIENT_DATA for f in judged)
        found[f"status[{group}]"] = "INSUFFICIENT_DATA" if insufficient else "OK"
    return found


def polarity(case):
    """Return the ratio of both events, of an audit that knows that the positive decision is adverse."""
    given = case["input"]
    tally = tally_of(given)
    assert given["favourable_prediction"] == 0
    wanted = ["favorable_rate", "disparate_impact", "selection_rate_ratio", "statistical_parity_difference"]
    options = {"outcome": "adverse", "policy": ARITHMETIC, "metrics": wanted, "n_resamples": 100}
    found = {}
    most = audit_tally(tally, **options)
    for f in most.findings:
        if f.metric == "favorable_rate":
            found[f"favourable_rate[{f.group}]"] = f.value
        if f.metric == "disparate_impact":
            found[f"impact_ratio[{f.group}]"] = f.value
            found[f"impact_ratio[{f.reference}]"] = 1.0
    short = dict(zip(wanted[1:], ("di_favourable", "di_adverse", "spd_favourable"), strict=True))
    for f in audit_tally(tally, reference=given["reference"], **options).findings:
        if f.metric in short:
            found[f"{short[f.metric]}[{f.group}|{f.reference}]"] = f.value
    return found


def composite(case):
    score = metrics.composite_bias_score(**case["input"])
    assert metrics.compute_composite_bias_score(**case["input"]) == score
    return {"composite": score, "band": metrics.composite_band(score)}


def ci_single(case):
    given = case["input"]
    method = {"wilson": inference.wilson_interval}[given["method"]]
    low, high = method(given["x"], given["n"], confidence_level=given["level"])
    rate = METRICS["selection_rate"]([[given["n"] - given["x"], given["x"]]])
    return {"estimate": rate, "low": low, "high": high}


def ci_two(case):
    given = case["input"]
    method = {
        "newcombe": inference.newcombe_interval,
        "wald": inference.wald_difference_interval,
        "katz": inference.katz_interval,
        "koopman": inference.koopman_interval,
    }[given["method"]]
    counts = [given[name] for name in ("x1", "n1", "x2", "n2")]
    low, high = method(*counts, confidence_level=given["level"])
    metric = {"ci_diff": "selection_rate_difference", "ci_ratio": "selection_rate_ratio"}[case["kind"]]
    return {"estimate": METRICS[metric](*_unlabelled(*counts)), "low": low, "high": high}


def _unlabelled(x, n, x_reference, n_reference):
    return [[n - x, x]], [[n_reference - x_reference, x_reference]]


def two_proportions(case):
    counts = [case["input"][name] for name in ("k1", "n1", "k2", "n2")]
    z, pvalue = inference.two_proportion_ztest(*counts)
    tables = _unlabelled(*counts)
    return {
        "z_pooled": z,
        "p_value": pvalue,
        "fisher_p": inference.fisher_exact_test(*counts),
        "difference": METRICS["selection_rate_difference"](*tables),
        "ratio": METRICS["selection_rate_ratio"](*tables),
        "cohens_h": inference.cohens_h(*(METRICS["selection_rate"](table) for table in tables)),
    }


def multiplicity(case):
    adjusted = {method: inference.adjust_pvalues(case["input"]["p"], method) for method in METHODS}
    return {f"{method}[{i}]": value for method, values in adjusted.items() for i, value in enumerate(values)}


METHODS = ("bonferroni", "holm", "bh", "by")


def effect_size(case):
    return {f"h[{p}|{q}]": inference.cohens_h(p, q) for p, q in case["input"]["pairs"]}


def power(case):
    given = case["input"]
    if "h" in given:
        # Against a rate of 0, h is 2 asin(sqrt(p)).
        p = math.sin(given["h"] / 2) ** 2
        assert inference.cohens_h(p, 0.0) == pytest.approx(given["h"])
        options = {name: given[name] for name in ("alpha", "alternative", "method")}
        return {"power": inference.power_two_proportions(p, 0.0, given["n1"], given["n2"], **options)}
    needed = inference.sample_size_two_proportions(given["p1"], given["p2"], power=given["power"], alpha=given["alpha"])
    reached = inference.power_two_proportions(given["p1"], given["p2"], needed, needed, method=given["method"])
    assert reached == pytest.approx(given["power"], abs=1e-3)
    return {"n_per_group": needed, "n_per_group_ceil": math.ceil(needed)}


def bootstrap_two_groups(case):
    given = case["input"]
    name = {"ratio": "disparate_impact", "diff": "statistical_parity_difference"}[given["statistic"]]
    first, second = given["labels"]
    counts = {
        first: {"n": given["n1"], "selected": given["k1"]},
        second: {"n": given["n2"], "selected": given["k2"]},
    }
    return _bootstrap(counts, second, {"": name}, given["level"], ("percentile", "bca"))


def bootstrap_error_rates(case):
    given = case["input"]
    names = {f"{short}.": PAIRS[short] for short in ("tpr_diff", "fpr_diff", "equalized_odds_diff")}
    return _bootstrap(given["counts"], given["reference"], names, given["level"], ("percentile",))


def _bootstrap(counts, reference, names, level, methods):
    """Return estimate, spread, acceleration and intervals of metrics of a group against a reference."""
    tally = Tally.from_counts(counts)
    at = tally.groups.index((reference,))
    tables = tally.counts[[1 - at, at]]
    deleted, weights = leave_one_out(tables, tally.n_rows)
    (first, second), weights = pair_leave_one_out(weights, np.array([0]), 1)
    found = {}
    for prefix, name in names.items():
        kept = []

        def statistic(c, name=name, kept=kept):
            values = METRICS[name](c[..., 0, :, :], c[..., 1, :, :])
            kept.append(np.asarray(values))
            return values

        found[f"{prefix}estimate"] = METRICS[name](*tables)
        found[f"{prefix}acceleration"] = acceleration(METRICS[name](deleted[first], deleted[second]), weights)[0]
        for method in methods:
            interval = inference.bootstrap_interval(
                tables, statistic, confidence_level=level, n_resamples=N_RESAMPLES, method=method
            )
            assert interval.valid_share == 1
            found |= {f"{prefix}{method}_low": interval.low, f"{prefix}{method}_high": interval.high}
        found[f"{prefix}sd"] = max(kept, key=np.size).std()
    return found


def bootstrap_of_audit(case):
    """Return estimates and intervals, read off the findings of an audit."""
    given = case["input"]
    if case["kind"] == "bootstrap_two_groups":
        metric = {"ratio": "disparate_impact", "diff": "statistical_parity_difference"}[given["statistic"]]
        names, methods = {metric: ""}, ("percentile", "bca")
        sizes = (given["n1"], given["k1"]), (given["n2"], given["k2"])
        counts = {label: {"n": n, "selected": k} for label, (n, k) in zip(given["labels"], sizes, strict=True)}
        reference = given["labels"][1]
    else:
        names = {PAIRS[short]: f"{short}." for short in ("tpr_diff", "fpr_diff", "equalized_odds_diff")}
        counts, reference, methods = given["counts"], given["reference"], ("percentile",)
    found = {}
    for method in methods:
        audited = audit_tally(
            Tally.from_counts(counts),
            reference=reference,
            policy=ARITHMETIC,
            metrics=list(names),
            method=method,
            confidence_level=given["level"],
            n_resamples=N_RESAMPLES,
        )
        for f in audited.findings:
            assert f.method == {"bca": "BCa", "percentile": "percentile"}[method]
            prefix = names[f.metric]
            found[f"{prefix}estimate"] = f.value
            found |= {f"{prefix}{method}_low": f.low, f"{prefix}{method}_high": f.high}
    return found


def inequality(case):
    given = case["input"]
    if "totals" in given:
        counts = Tally.from_counts({"all": given["totals"]}).counts[0]
    else:
        everybody = ["all"] * len(given["y_true"])
        counts = Tally.from_predictions(given["y_true"], given["y_pred"], sensitive_features=everybody).counts[0]
    return {
        "theil": METRICS["theil_index"](counts),
        "generalized_entropy_2": metrics.generalized_entropy(counts, alpha=2),
    }


def impossibility_identity(case):
    found = {}
    tally = tally_of(case["input"])
    for (group,), counts in zip(tally.groups, tally.counts, strict=True):
        rate = {name: METRICS[metric](counts) for name, metric in RATES.items()}
        p, ppv = rate["base_rate"], rate["ppv"]
        found[f"fpr_identity[{group}]"] = p / (1 - p) * (1 - ppv) / ppv * (1 - rate["fnr"])
        found[f"fpr[{group}]"] = rate["fpr"]
    return found


def injection_rate(case):
    """Return what an injector must be seen to have done: within three standard errors of the log ratio."""
    given = case["input"]
    n = given["n_per_group"]
    selected = round(n * given["rate_privileged"])
    counts = (round(selected * given["target_di"]), n, selected, n)
    tables = _unlabelled(*counts)
    assert METRICS["disparate_impact"](*tables) == pytest.approx(given["target_di"])
    low, high = inference.katz_interval(*counts, confidence_level=math.erf(3 / math.sqrt(2)))
    return {
        "rate_unprivileged": METRICS["selection_rate"](tables[0]),
        "spd": METRICS["statistical_parity_difference"](*tables),
        "log_di_se": math.log(high / low) / 6,
        "di_3se_low": low,
        "di_3se_high": high,
    }


def bootstrap_one_sample(case):
    """A sample is a table too: one cell a value; the mean is a function of its counts."""
    values, counts = np.unique(case["input"]["x"], return_counts=True)
    found = {"estimate": (counts @ values) / counts.sum()}
    for method in ("percentile", "bca"):
        bounds = inference.bootstrap_interval(
            counts,
            lambda c: c @ values / c.sum(-1),
            method=method,
            confidence_level=case["input"]["level"],
            n_resamples=200_000,
        )
        found |= {f"{method}_low": bounds.low, f"{method}_high": bounds.high}
    deleted = counts.astype(float) - np.eye(values.size)
    left_out = deleted @ values / deleted.sum(-1)
    return found | {"acceleration": acceleration(left_out[None], counts[None].astype(float))[0]}


def bca_acceleration(case):
    """Two samples: each one's deletions around their own mean, scaled by its size, in one jackknife."""
    given = case["input"]
    assert given["statistic"] == "mean1-mean2"
    influence = []
    for name, sign in (("sample1", 1), ("sample2", -1)):
        x = np.asarray(given[name], dtype=float)
        left_out = sign * (x.sum() - x) / (x.size - 1)
        influence.append((left_out - left_out.mean()) * (x.size - 1) / x.size)
    values = np.concatenate(influence)
    return {"acceleration": acceleration(values[None], np.ones((1, values.size)))[0]}


def stratified(case):
    tables = np.array(case["input"]["tables"])
    counts = tables[:, 0, 0], tables[:, 0].sum(1), tables[:, 1, 0], tables[:, 1].sum(1)
    plain, corrected = inference.cmh_test(*counts), inference.cmh_test(*counts, correction=True)
    breslow_day = inference.breslow_day_test(*counts, correction=False)
    whole = [part.sum(keepdims=True) for part in counts]
    return {
        "mh_odds_ratio": inference.mantel_haenszel_odds_ratio(*counts).estimate,
        "aggregate_odds_ratio": inference.mantel_haenszel_odds_ratio(*whole).estimate,
        "cmh_chi2": plain.statistic,
        "cmh_p": plain.pvalue,
        "cmh_chi2_cc": corrected.statistic,
        "cmh_p_cc": corrected.pvalue,
        "breslow_day": breslow_day.statistic,
        "breslow_day_p": breslow_day.pvalue,
    }


def injection_score_shift(case):
    """Return who is selected after a shift of normal scores, which an injection into scores then has to come to."""
    given = case["input"]
    effect = normal_score_shift(-given["d"], selection_rate=given["selection_ratio"], share=given["share_minority"])
    n = 100_000
    minority = np.arange(n) < round(given["share_minority"] * n)
    quantiles = np.empty(n)
    for rows in (minority, ~minority):
        quantiles[rows] = (np.arange(rows.sum()) + 0.5) / rows.sum()
    options = {"kind": "score", "group": True, "shift": -given["d"], "link": "identity"}
    moved = inject(minority[:, None], y_score=ndtri(quantiles), sensitive_features=minority, **options)
    selected = (moved.y_score >= effect.cutoff).astype(int)
    tally = Tally.from_predictions(None, selected, sensitive_features=minority)
    assert METRICS["disparate_impact"](*tally.counts[::-1]) == pytest.approx(effect.disparate_impact, abs=3e-4)
    return {
        "adverse_impact_ratio": effect.disparate_impact,
        "selection_rate_majority": effect.selection_rate_reference,
        "selection_rate_minority": effect.selection_rate,
        "cutoff": effect.cutoff,
    }


def calibration(case):
    given = case["input"]
    return {"ece": metrics.expected_calibration_error(given["y_true"], given["y_prob"], n_bins=given["n_bins"])}


def calibration_by_group(case):
    """Return metrics of scores of each group from one tally, and of all rows from the tally of one group."""
    given = case["input"]
    assert given["n_bins"] == 10
    frame = _table(given["file"].rpartition("/")[2], given["sha256"])
    y_true, y_score = frame.eval(given["y_true"]).astype(int), frame.eval(given["y_prob"])
    found = {}
    for groups in (frame[given["group"]], pd.Series("ALL", index=frame.index)):
        decided = (y_score >= 0.5).astype(int)
        tally = Tally.from_predictions(y_true, decided, sensitive_features=groups, y_score=y_score)
        for i, (group,) in enumerate(tally.groups):
            scores = tally.scores.group(i)
            found |= {f"{short}[{group}]": SCORE_METRICS[name](scores) for short, name in SCORES.items()}
            found[f"n[{group}]"] = scores.n
            found[f"mean_predicted[{group}]"] = tally.scores.mean()[i]
            found[f"base_rate[{group}]"] = METRICS["base_rate"](tally.counts[i])
    return found


SCORES = {"ece": "expected_calibration_error", "brier": "brier_score", "auc": "roc_auc"}


def calibration_of_audit(case):
    """Return the same, read off the findings and the section of an audit."""
    given = case["input"]
    frame = _table(given["file"].rpartition("/")[2], given["sha256"])
    y_score = frame.eval(given["y_prob"])
    made = audit(
        frame.eval(given["y_true"]).astype(int),
        (y_score >= 0.5).astype(int),
        sensitive_features=frame[given["group"]],
        y_score=y_score,
        policy=ARITHMETIC,
        metrics=list(SCORES.values()),
        n_resamples=100,
    )
    names = {name: short for short, name in SCORES.items()}
    found = {f"{names[f.metric]}[{f.group}]": f.value for f in made.findings if f.metric in names}
    for _, row in made.section("scores").frame().iterrows():
        found |= {f"{name}[{row['group']}]": row[name] for name in ("n", "base_rate")}
        found[f"mean_predicted[{row['group']}]"] = row["mean_score"]
    return found


def weighted_group_table(case):
    y_true, y_pred, groups = rows_of(case["input"])
    weight = case["input"]["arrays"]["weight"]
    found = {}
    for group, names in (("ALL", pd.Series("ALL", index=groups.index)), (None, groups["group"])):
        tally = Tally.from_predictions(y_true, y_pred, sensitive_features={"group": names}, sample_weight=weight)
        table = confusion_of(tally)
        for i, (name,) in enumerate(tally.groups):
            for short, rate in (
                ("tpr", "true_positive_rate"),
                ("selection_rate", "selection_rate"),
                ("fpr", "false_positive_rate"),
            ):
                found[f"{short}[{group or name}]"] = table.rate(rate)[i]
    return found


def scoring_table(case):
    """Return the tables of scoring rates of an audit without labels, whose decisions are the scores above their median."""
    given = case["input"]
    made = audit(
        None,
        metrics.above_median(given["score"]),
        sensitive_features={name: given[name] for name in given["by"]},
        y_score=given["score"],
        policy="ll144",
        n_resamples=100,
    )
    found = {"median": median_score(made.tally.scores)}
    for _, row in made.preset("ll144").section("ll144 scoring").frame().iterrows():
        found |= {f"{name}[{row['category']}]": row[name] for name in ("n", "scoring_rate", "impact_ratio")}
    return found


HANDLERS = {
    "group_table": group_table,
    "selection_table": selection_table,
    "adverse_impact": selection_table,
    "flag": flag,
    "flag_selection": flag,
    "polarity": polarity,
    "composite": composite,
    "ci_single": ci_single,
    "ci_diff": ci_two,
    "ci_ratio": ci_two,
    "two_proportions": two_proportions,
    "multiplicity": multiplicity,
    "effect_size": effect_size,
    "power": power,
    "bootstrap_two_groups": bootstrap_two_groups,
    "bootstrap_error_rates": bootstrap_error_rates,
    "inequality": inequality,
    "inequality_counts": inequality,
    "impossibility_identity": impossibility_identity,
    "calibration": calibration,
    "calibration_by_group": calibration_by_group,
    "bca_acceleration": bca_acceleration,
    "bootstrap_one_sample": bootstrap_one_sample,
    "injection_rate": injection_rate,
    "injection_score_shift": injection_score_shift,
    "stratified": stratified,
    "weighted_group_table": weighted_group_table,
    "scoring_table": scoring_table,
}
THROUGH_AUDIT = {
    "group_table": group_table_of_audit,
    "calibration_by_group": calibration_of_audit,
    "bootstrap_two_groups": bootstrap_of_audit,
    "bootstrap_error_rates": bootstrap_of_audit,
}
ELSEWHERE = {
    "dataset_facts": "test_datasets.py",
    "consistency": "test_individual.py",
    "counterfactual": "test_counterfactual_audit.py",
}
LATER = {
    "one_sample_binomial": "optional: a rate against a given one is no comparison of groups",
}
# Single values of covered kinds that the product does not offer.
NOT_OFFERED = {("power_ten_points_at_half", "lehr_16"): "a rule of thumb, 16 p (1 - p) / d**2"}

ALL_CASES = cases()


def parameters(handlers):
    return [pytest.param(case, id=case["id"]) for case in ALL_CASES if case["kind"] in handlers]


# -------------------------------------------------------------------------------------------------------------- tests
def agrees(found, expected, tolerance):
    """Tell whether a value is the expected one; null is NaN, words and truth values are equal."""
    if expected is None:
        return math.isnan(found)
    if isinstance(expected, str | bool):
        return found == expected
    if isinstance(expected, list):
        return sorted(found) == sorted(expected)
    return math.isclose(found, expected, abs_tol=tolerance.get("abs", 0), rel_tol=tolerance.get("rel", 0))


def check(case, found, names):
    wrong = []
    tolerance = case["tol"]
    for name in names:
        expected = case["expect"][name]
        if not agrees(found[name], expected, tolerance.get("per", {}).get(name, tolerance)):
            wrong.append(f"{name}: {found[name]!r}, expected {expected!r}")
    for name, (printed, half_width) in case.get("published", {}).items():
        if name in found and not abs(float(found[name]) - printed) <= half_width + 1e-12:
            wrong.append(f"{name}: {found[name]!r}, published {printed!r} +- {half_width}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", parameters(HANDLERS))
def test_case(case):
    names = [name for name in case["expect"] if (case["id"], name) not in NOT_OFFERED]
    found = HANDLERS[case["kind"]](case)
    assert not case.get("published", {}).keys() - found.keys()
    check(case, found, names)


@pytest.mark.parametrize("case", parameters(THROUGH_AUDIT))
def test_case_through_an_audit(case):
    found = THROUGH_AUDIT[case["kind"]](case)
    no_finding = re.compile(r"(tp|fp|fn|tn|cohens_h|z_pooled)\[|.*\[ALL\]$|p_value\[|(.*\.)?(sd|acceleration)$")
    names = [name for name in case["expect"] if name in found or not no_finding.match(name)]
    check(case, found, names)
    assert len(names) >= 3


def test_every_case_is_handled_or_listed_for_later():
    kinds = {case["kind"] for case in ALL_CASES}
    tables = [HANDLERS, ELSEWHERE, LATER]
    assert kinds == set().union(*tables)
    assert sum(map(len, tables)) == len(kinds)
    assert len({case["id"] for case in ALL_CASES}) == len(ALL_CASES) >= 74


def test_every_value_left_out_exists():
    by_id = {case["id"]: case for case in ALL_CASES}
    for (name, value), reason in NOT_OFFERED.items():
        assert value in by_id[name]["expect"]
        assert reason


def test_the_adapter_notices_a_wrong_value():
    (case,) = (case for case in ALL_CASES if case["id"] == "wilson_0_20")
    case = json.loads(json.dumps(case))
    case["expect"]["high"] += 1e-6
    with pytest.raises(AssertionError, match="high: .* expected"):
        check(case, ci_single(case), case["expect"])
