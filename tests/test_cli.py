"""The command line: every command, what it prints, and how it ends."""

import json
import os
import pickle
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from sklearn_ethiclens import METRICS, POLICIES, Audit, _cli_common, audit, cli
from sklearn_ethiclens.cli import app, main
from sklearn_ethiclens.datasets import DATASETS, compas_protocol, german_credit_protocol
from sklearn_ethiclens.report._pdf import load_weasyprint
from tests._shared import data_file

FEW = ("--n-resamples", "200")
german_credit_once, compas_once = cache(german_credit_protocol), cache(compas_protocol)  # the models are fitted once


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the entry point as a shell does; give back the exit code, stdout and stderr."""
    monkeypatch.setattr(cli, "german_credit_protocol", german_credit_once)
    monkeypatch.setattr(cli, "compas_protocol", compas_once)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert max(map(len, out.splitlines()), default=0) <= 80 or out.startswith(("{", "["))
        assert "Traceback" not in err
        return end.value.code or 0, out, err

    return call


def error_of(result):
    """The one line of an error."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def flat(text):
    return " ".join(text.split())


@pytest.fixture
def predictions(tmp_path):
    """A file of 1,200 rows: group b is selected far less often, and group codes look like missing values."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["a", "b"], 1200)
    frame = pd.DataFrame(
        {
            "id": range(1200),
            "sex": sex,
            "code": rng.choice(["NA", "None", "nan", "null", ""], 1200),
            "age": rng.integers(18, 80, 1200),
            "y": rng.integers(0, 2, 1200),
            "p": (rng.random(1200) < np.where(sex == "a", 0.7, 0.3)).astype(int),
        }
    )
    path = tmp_path / "predictions.csv"
    frame.to_csv(path, index=False)
    return path


def columns(path, sensitive="sex"):
    return ["audit", path, "--y-true", "y", "--y-pred", "p", "--sensitive", sensitive, *FEW]


# ------------------------------------------------------------------------------------------------------ data sets
def test_german_credit_prints_its_scorecard(run):
    code, out, err = run("audit", "german-credit")
    assert (code, err) == (0, "")
    assert out.startswith("Audit of German Credit by age: INCONCLUSIVE (PASS WITH CONDITIONS)\n")
    assert re.search(r"disparate_impact +0\.830 \[0\.\d{3}, 0\.\d{3}\]", out)
    assert re.search(r"equalized_odds_difference +0\.147 ", out)
    assert "Reference: age >= 25 (given)." in out
    assert "LogisticRegression(max_iter=1000)" in out
    assert "receiving 'good' is the favourable decision" in out


def test_same_command_same_bytes(run):
    first, again = (run("audit", "german-credit", *FEW, "--json", "-") for _ in range(2))
    one, two = json.loads(first[1]), json.loads(again[1])
    assert one.pop("run").keys() == two.pop("run").keys() == {"date", "duration_seconds"}
    assert one == two
    assert run("audit", "german-credit", *FEW)[1] == run("audit", "german-credit", *FEW)[1]


def test_german_credit_by_other_attributes(run):
    code, out, err = run("audit", "german-credit", "--sensitive", "sex", *FEW)
    assert code in (0, 1)
    assert err.startswith("warning: sex cannot be recovered")
    assert "Reference: male (given)." in out
    _, out, err = run("audit", "german-credit", "--sensitive", "housing,age", "--bands", "age=30,50", *FEW)
    assert err == ""
    for band in ("age < 30", "30 <= age < 50", "age >= 50"):
        assert re.search(rf"^  {band} +0\.\d{{3}} ", out, re.M)
    assert "By housing" in out
    assert "housing" in error_of(run("audit", "german-credit", "--sensitive", "nope"))


def test_explicit_options_win_over_the_data_sets(run):
    _, out, _ = run("audit", "german-credit", "--outcome", "adverse", "--reference", "age=age < 25", *FEW)
    assert "receiving 'good' is adverse" in out
    assert "Reference: age < 25 (given)." in out
    _, out, _ = run("audit", "german-credit", "--pos-label", "bad", "--policy", "four_fifths", *FEW)
    assert "receiving 'bad' is the favourable decision" in flat(out)


def test_compas_by_default(run):
    data_file("compas-two-years.csv")
    code, out, err = run("audit", "compas")
    assert code == 1
    assert err == ""
    assert "Audit of COMPAS by race and sex: FLAGGED (FAIL)" in out
    assert "receiving 1 is adverse" in out
    assert "Composite bias score withheld" in flat(out)
    for policy in POLICIES:
        assert run("audit", "compas", "--policy", policy, *FEW)[0] in (0, 1)


def test_compas_reference_protocol_reproduces_the_pinned_table(run):
    data_file("compas-two-years.csv")
    code, out, err = run("audit", "compas", "--protocol", "reference")
    assert (code, err) == (1, "")
    assert "Reference protocol: outcome is set to 'favorable'" in out
    assert "Reference: Caucasian (given)." in out
    assert "Reference: Male (given)." in out
    race, sex = out.split("Audit of COMPAS by sex")
    assert re.search(r"disparate_impact +2\.498 \[", race)
    assert re.search(r"equalized_odds_difference +0\.335 \[0\.262, 0\.40\d\] +<.001 +FLAGGED", race)
    assert "Composite bias score 0.584, High Risk" in flat(race)
    for figure in ("0.441", "0.177", "0.618 (511)", "0.283 (240)", "0.238 (445)", "0.114 (405)", "0.749", "0.596"):
        assert figure in race
    assert re.search(r"disparate_impact +0\.527 ", sex)
    assert re.search(r"equalized_odds_difference +0\.132 ", sex)


def test_compas_reference_protocol_as_json_is_a_list_and_can_be_rejudged(run, tmp_path):
    data_file("compas-two-years.csv")
    file = tmp_path / "audits.json"
    code, _, _ = run("audit", "compas", "--protocol", "reference", "--json", file, "--quiet")
    assert code == 1
    race, sex = json.loads(file.read_text(encoding="utf-8"))
    values = {f["metric"]: f["value"] for f in race["findings"] if f["reference"] == "Caucasian"}
    assert values["disparate_impact"] == pytest.approx(2.497523, abs=1e-6)
    assert values["statistical_parity_difference"] == pytest.approx(0.264678, abs=1e-6)
    assert values["equalized_odds_difference"] == pytest.approx(0.335062, abs=1e-6)
    assert race["composite"]["value"] == pytest.approx(0.583756, abs=1e-6)
    assert race["composite"]["band"] == "High Risk"
    assert sex["minimum_disparate_impact"]["value"] == pytest.approx(0.527039, abs=1e-6)
    code, out, _ = run("rejudge", file, "--policy", "four_fifths")
    assert code == 1
    assert out.count("the policy ignores uncertainty") == 2


def test_compas_reference_protocol_takes_part_of_itself(run):
    data_file("compas-two-years.csv")
    _, out, _ = run("audit", "compas", "--protocol", "reference", "--sensitive", "sex", "--outcome", "adverse", *FEW)
    assert out.count("Audit of COMPAS") == 1
    assert re.search(r"disparate_impact +1\.252 ", out)
    assert "'age'" in error_of(run("audit", "compas", "--protocol", "reference", "--sensitive", "age"))


# ---------------------------------------------------------------------------------------------------------- files
def test_file_is_audited_and_flagged(run, predictions):
    code, out, err = run(*columns(predictions))
    assert (code, err) == (1, "")
    assert "Audit of predictions.csv: FLAGGED (FAIL)" in out
    frame = pd.read_csv(predictions, keep_default_na=False)
    found = audit(frame.y, frame.p, sensitive_features=frame[["sex"]], n_resamples=200)
    assert re.search(rf"disparate_impact +{found.flagged[0].value:.3f} ", out)


def test_groups_that_look_missing_stay_groups(run, predictions):
    code, out, err = run(*columns(predictions, "code"))
    assert code in (0, 1)
    frame = pd.read_csv(predictions, keep_default_na=False)
    for group, n in frame.code.value_counts().items():
        name = re.escape(group) if group else r"\(missing\)"
        assert re.search(rf"^  {name} +0\.\d+.*\n  n={n} ", out, re.M)
    missing = (frame.code == "").sum()
    assert err == (
        f"warning: sensitive feature 'code' is missing in {missing} of 1200 rows; they are audited as the group (missing).\n"
    )
    assert "missing in" in error_of(run(*columns(predictions, "code"), "--missing", "raise"))


def test_quiet_prints_nothing_but_errors(run, predictions):
    assert run(*columns(predictions, "code,sex"), "--quiet") == (1, "", "")
    assert "age2" in error_of(run(*columns(predictions, "age2"), "--quiet"))


def test_bands_are_closed_on_the_left(run, tmp_path):
    path = tmp_path / "a.csv"
    rows = ["age,p", *(f"{age},{i % 2}" for i in range(40) for age in (24.9, 25, 39, 40)), ",1"]
    path.write_text("\n".join(rows), encoding="utf-8")
    _, out, err = run("audit", path, "--y-pred", "p", "--bands", "age=25,40", *FEW)
    for band, n in (("age < 25", 40), ("25 <= age < 40", 80), ("age >= 40", 40), (r"\(missing\)", 1)):
        assert re.search(rf"^  {band} .*\n  n={n} ", out, re.M)
    assert "missing in 1 of 161 rows" in err


@pytest.mark.parametrize(
    ("spelled", "pos_label"),
    [
        ({0: "0", 1: "1"}, None),
        ({0: "0.0", 1: "1.0"}, None),
        ({0: "-1", 1: "1"}, None),
        ({0: "False", 1: "true"}, None),
        ({0: "0", 1: "1"}, "1"),
        ({0: "2", 1: "10"}, "10"),
        ({0: "2.0", 1: "3.0"}, "3"),
        ({0: "no", 1: "NA"}, "NA"),
        ({0: "true", 1: "1"}, "1"),
    ],
)
def test_labels_as_they_are_spelled_in_a_file(run, predictions, spelled, pos_label):
    frame = pd.read_csv(predictions, keep_default_na=False)
    frame["p"], frame["y"] = frame.p.map(spelled), frame.y.map(spelled)
    frame.to_csv(predictions, index=False)
    _, out, err = run(*columns(predictions), *(["--pos-label", pos_label] if pos_label else []))
    assert err == ""
    assert re.search(r"^  b +0\.(2|3)", out, re.M)


def test_words_as_labels_need_a_positive_one(run, predictions):
    predictions.write_text(predictions.read_text(encoding="utf-8").replace(",1\n", ",yes\n").replace(",0\n", ",no\n"))
    words = ["audit", predictions, "--y-pred", "p", "--sensitive", "sex"]
    assert "pass pos_label" in error_of(run(*words))
    assert "'no', 'yes'" in error_of(run(*words, "--pos-label", "maybe"))


def test_parquet_gives_what_csv_gives(run, predictions):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(predictions, keep_default_na=False)
    path = predictions.with_suffix(".parquet")
    frame.to_parquet(path)
    csv, parquet = run(*columns(predictions))[1], run(*columns(path))[1]
    assert csv.split("By sex")[1].split("file sha256")[0] == parquet.split("By sex")[1].split("file sha256")[0]
    assert "'nope'" in error_of(run(*columns(path, "nope")))


def test_numbers_as_groups_of_a_parquet_file_can_be_named(run, predictions):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(predictions, keep_default_na=False)
    path = predictions.with_suffix(".parquet")
    frame.assign(sex=(frame.sex == "b") + 1).to_parquet(path)
    _, out, err = run(*columns(path), "--reference", "sex=2")
    assert err == ""
    assert "Reference: 2 (given)." in out


def test_parquet_without_pyarrow_says_how_to_install_it(run, predictions, monkeypatch):
    path = predictions.with_suffix(".parquet")
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install pyarrow" in error_of(run(*columns(path), "--engine", "pandas"))


def test_only_the_needed_columns_are_read(run, predictions):
    text = predictions.read_text(encoding="utf-8").splitlines()
    predictions.write_text("\n".join([f"{text[0]},junk", *(f'{line},"a,{i}"' for i, line in enumerate(text[1:]))]))
    assert run(*columns(predictions))[0] == 1


def test_references_and_intersections(run, predictions):
    words = columns(predictions, "sex,code")
    _, out, _ = run(*words, "--intersections", "sex*code", "--reference", "sex=b", "--reference", "sex*code=a*NA")
    assert "Reference: b (given)." in out
    assert "Reference: a & NA (given)." in out
    for asked in ("all", "2"):
        assert "By sex & code" in run(*words, "--intersections", asked)[1]


def test_provenance_holds_the_hash_and_the_run_the_path(run, predictions):
    code, out, err = run(*columns(predictions), "--json", "-")
    assert (code, err) == (1, "")
    stored = json.loads(out)
    assert len(stored["provenance"]["data"]["sha256"]) == 64
    assert stored["run"]["path"] == str(predictions.resolve())
    assert stored["run"].keys() == {"date", "duration_seconds", "path"}
    assert str(predictions.parent) not in run(*columns(predictions))[1]


def test_markdown_files_are_what_the_audit_says(run, predictions, tmp_path):
    names = {"--markdown": "markdown", "--model-card": "model_card", "--datasheet": "datasheet"}
    files = {option: tmp_path / f"{name}.md" for option, name in names.items()}
    run(*columns(predictions), "--json", tmp_path / "a.json", *(part for pair in files.items() for part in pair))
    made = Audit.from_json((tmp_path / "a.json").read_text(encoding="utf-8"))
    for option, name in names.items():
        assert files[option].read_text(encoding="utf-8") == made.report(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--html", "r.html", "--markdown", "./r.html"], "--html and --markdown name the same file"),
        (["--html", "."], "--html must name a file to write; got '.', a folder"),
        (
            ["--model-card", "-"],
            "--model-card must name a file to write; got '-', no name of a file; - is known to --json alone",
        ),
        (["--compat-json", "-"], "--compat-json must name a file to write"),
        (["--json", "a.json", "--compat-json", "a.json"], "--json and --compat-json name the same file"),
        (["--html", "predictions.csv"], "SOURCE and --html name the same file"),
        (["--weight", ""], "--weight must name a column; got ''"),
        (["--y-score", ""], "--y-score must name a column; got ''"),
        (["--strata", ""], "--strata must name a column; got ''"),
        (["--control", ""], "--control must name something; got ''"),
        (["--sensitive", " , "], "--sensitive must name something; got ' , '"),
        (["--control", "\t"], "--control must name something; got '\\t'"),
        (["--policy", ""], "policy must be"),
        (["--metrics", ""], "--metrics must name something; got ''"),
        (["--intersections", ""], "--intersections must name something; got ''"),
        (["--fail-on", ""], "--fail-on must name something; got ''"),
        (["--bands", "age="], "--bands must be COL=CUT,CUT with rising numbers, as in age=25,40; got 'age='"),
    ],
)
def test_what_could_not_be_written_is_said_before_the_work(run, predictions, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = run(*columns(predictions), *options)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_cannot_be_written_is_named(run, predictions, tmp_path):
    (tmp_path / "plain").write_text("x")
    code, _, err = run(*columns(predictions), "--quiet", "--json", tmp_path / "plain" / "a.json")
    assert code == 2
    assert err.count("\n") == 1
    assert "a.json cannot be read or written: " in err
    assert err.endswith(". Name another file.\n")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"y,p,s\n1,1,f\n0,1,m,3,4\n", "a.csv cannot be read as values separated by commas: "),
        ("a.csv", b'y,p,s\n1,1,"f\n0,1,m\n', "a.csv cannot be read as values separated by commas: "),
        ("a.parquet", b"PAR1xxxxPAR1", "a.parquet cannot be read: "),
    ],
)
def test_a_source_that_cannot_be_read_is_named(run, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    for engine in [[]] if name == "a.csv" else [[], ["--engine", "pandas"], ["--engine", "pyarrow"]]:
        pytest.importorskip("pyarrow")
        code, out, err = run("audit", path, "--y-true", "y", "--y-pred", "p", "--sensitive", "s", *engine)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"error: {words}")


def test_json_and_html_files_are_whole(run, predictions, tmp_path):
    audit_file, page = tmp_path / "new" / "a.json", tmp_path / "a.html"
    _, out, _ = run(*columns(predictions), "--json", audit_file, "--html", page)
    assert out.startswith("Audit of predictions.csv")
    assert Audit.from_json(audit_file.read_text(encoding="utf-8")).report() == out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert 'class="sklearn-ethiclens"' in page.read_text(encoding="utf-8")


def test_three_files_at_once_say_the_same(run, predictions, tmp_path):
    try:
        load_weasyprint()
    except ImportError as error:
        pytest.skip(str(error))
    files = {kind: tmp_path / f"r.{kind}" for kind in ("json", "html", "pdf")}
    code, out, err = run(*columns(predictions), *(word for kind, path in files.items() for word in (f"--{kind}", path)))
    assert (code, err) == (1, "")
    made = Audit.from_json(files["json"].read_text(encoding="utf-8"))
    assert files["html"].read_text(encoding="utf-8") == made.report("html")
    assert files["pdf"].read_bytes() == made.report("pdf")


def test_a_pdf_without_weasyprint_is_refused_before_the_audit(run, predictions, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    code, out, err = run(*columns(predictions), "--pdf", tmp_path / "r.pdf", "--html", tmp_path / "r.html")
    assert (code, out) == (2, "")
    assert err == 'error: a PDF needs WeasyPrint: pip install "sklearn-ethiclens[report]"\n'
    assert not (tmp_path / "r.html").exists()


def test_options_of_the_audit_reach_it(run, predictions):
    words = ["--method", "percentile", "--confidence-level", "0.9", "--seed", "7", "--metrics", "disparate_impact"]
    stored = json.loads(run(*columns(predictions), *words, "--policy", "four_fifths", "--json", "-")[1])
    assert stored["policy"]["method"] == "percentile"
    assert stored["policy"]["confidence_level"] == 0.9
    assert stored["policy"]["n_resamples"] == 200
    assert stored["parameters"]["random_state"] == 7
    assert "disparate_impact" in stored["parameters"]["metrics"]


def test_without_true_labels_selection_is_audited(run, predictions):
    code, out, _ = run("audit", predictions, "--y-pred", "p", "--sensitive", "sex", *FEW)
    assert code == 1
    assert "no labels" in out


# ----------------------------------------------------------------------------------------------------------- models
@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Rows as a CSV, and a model of some of their columns as a skops file and as a pickle."""
    folder, rng = tmp_path_factory.mktemp("model"), np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.choice(["F", "M"], 500), "code": rng.choice(["NA", "x"], 500)})
    X = X.assign(x=rng.normal(size=500), age=rng.integers(18, 80, 500))
    y = np.where(X["x"] + (X["sex"] == "M") + rng.normal(size=500) > 0.5, "yes", "no")
    encode = make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["x", "age"]))
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X[["sex", "x", "age"]], y)
    X.assign(y=y, p=np.where(X.index < 7, y, model.predict(X))).to_csv(folder / "rows.csv", index=False)
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    return folder, model, X.assign(y=y)


def by_model(stored, sensitive="sex", model="model.pkl", trusted=("--allow-pickle",)):
    folder = stored[0]
    words = ["audit", folder / "rows.csv", "--y-true", "y", "--sensitive", sensitive, "--pos-label", "yes", *FEW]
    return [*words, "--model", folder / model, *trusted]


def test_a_model_decides_where_no_column_does(run, stored, tmp_path):
    _, model, frame = stored
    json_file = tmp_path / "a.json"
    code, out, err = run(*by_model(stored), "--json", json_file)
    assert (code, err) == (1, "")
    decided = model.predict(frame)
    options = {"sensitive_features": frame[["sex"]], "pos_label": "yes", "n_resamples": 200}
    found = Audit.from_json(json_file.read_text(encoding="utf-8"))
    assert found.tally.digest() == audit(frame["y"], decided, **options).tally.digest()
    assert re.search(r"Model +Pipeline of model.pkl \(sha256 ", out)
    assert "error rates are too favourable" in flat(out)
    F = frame[frame["sex"] == "F"]
    flips = model.predict(F) != model.predict(F.assign(sex="M"))
    row = found.section("counterfactuals").frame().set_index("from").loc["F"]
    assert (row["attribute"], row["to"], row["n"], row["flip rate"]) == ("sex", "M", len(F), flips.mean())
    assert flips.any()
    assert "\nCounterfactuals by sex\n" in out
    assert "Assumes that the model's use of the attribute itself is the question." in flat(out)


def test_a_skops_model_gives_what_its_pickle_gives(run, stored):
    skops = pytest.importorskip("skops.io")
    path = stored[0] / "model.skops"
    skops.dump(stored[1], path)
    unknown = skops.get_untrusted_types(file=path)  # with scikit-learn 1.6, the column list of a ColumnTransformer
    trusted = ["--trust", ",".join(unknown)] if unknown else []
    pickled, safe = run(*by_model(stored)), run(*by_model(stored, model="model.skops", trusted=trusted))
    assert safe[0] == pickled[0] == 1
    hidden = [re.sub(r"model.(pkl|skops)\s+\(sha256\s+\w+\)", "it", flat(out)) for _, out, _ in (pickled, safe)]
    assert hidden[0] == hidden[1]


def test_a_column_of_decisions_goes_before_the_model(run, stored):
    _, model, frame = stored
    n_other = int((model.predict(frame)[:7] != frame["y"][:7]).sum())
    assert n_other > 0
    _, out, _ = run(*by_model(stored), "--y-pred", "p")
    assert f"In {n_other} of 500 rows the model decides otherwise than the column p." in flat(out)
    assert "the decisions are those of the column p" in flat(out)
    assert "error rates are too favourable" not in flat(out)


def test_groups_that_the_model_cannot_be_asked_about_are_named_with_the_reason(run, stored):
    code, out, err = run(*by_model(stored, "code,sex,age"), "--bands", "age=40")
    assert (code, err) == (1, "")
    n_ages = stored[2]["age"].nunique()
    assert (
        "Not asked about: code (no input of the model, so that nothing changes with it); age "
        f"({n_ages} different numbers: name one with probe --to age=VALUE)."
    ) in flat(out)
    _, out, _ = run(*by_model(stored, "code"))
    assert "\nCounterfactuals\n  Not asked about: code (" in out


def test_a_data_set_can_be_decided_by_a_model_of_ones_own(run, tmp_path):
    german = german_credit_once()[0]
    data = DATASETS["german-credit"].loader().data
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["housing"]), ("passthrough", ["age"])), GaussianNB()
    )
    model.fit(data, german.y_true)
    path = tmp_path / "own.pkl"
    path.write_bytes(pickle.dumps(model))
    words = ["audit", "german-credit", "--model", path, "--allow-pickle", *FEW]
    code, out, _ = run(*words, "--sensitive", "age,housing", "--json", "-")
    assert code in (0, 1)
    found = Audit.from_json(out)
    options = {"sensitive_features": german.sensitive_features, "pos_label": "good", "n_resamples": 200}
    own = audit(german.y_true, model.predict(data), reference={"age": "age >= 25"}, **options)
    assert [f.value for f in found.findings if f.attribute == "age"] == pytest.approx(
        [f.value for f in own.findings], nan_ok=True
    )
    section = found.section("counterfactuals")
    assert set(section.frame()["attribute"]) == {"housing"}
    assert section.lines[0].startswith("Not asked about: age (53 different numbers")
    assert "LogisticRegression" not in found.provenance["data"]["model"]


def test_compas_can_be_decided_by_a_model_of_ones_own(run, tmp_path):
    data_file("compas-two-years.csv")
    compas = compas_once()[0]
    columns_read = ["sex", "priors_count"]
    frame = DATASETS["compas"].loader().frame.loc[compas.y_true.index, columns_read]
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough"), GaussianNB())
    path = tmp_path / "own.pkl"
    path.write_bytes(pickle.dumps(model.fit(frame, compas.y_true)))
    code, out, err = run("audit", "compas", "--model", path, "--allow-pickle", *FEW)
    assert (code, err) == (1, "")
    assert "Not asked about: race (no input of the model, so that nothing changes with it)." in flat(out)
    assert "\nCounterfactuals by sex\n" in out
    assert "one pinned model" in error_of(
        run("audit", "compas", "--protocol", "reference", "--model", path, "--allow-pickle")
    )


def test_bad_models_are_said_in_one_line(run, stored, tmp_path):
    folder, model, frame = stored
    assert "--allow-pickle" in error_of(run(*by_model(stored, trusted=())))
    assert "there is no file" in error_of(run(*by_model(stored, model="absent.skops")))
    (folder / "bad.pkl").write_bytes(b"nothing")
    assert "bad.pkl cannot be loaded" in error_of(run(*by_model(stored, model="bad.pkl")))
    (folder / "bad.txt").write_bytes(b"")
    assert "must be a .skops file" in error_of(run(*by_model(stored, model="bad.txt")))
    words = by_model(stored)
    rows = tmp_path / "rows.csv"
    frame.drop(columns="age").to_csv(rows, index=False)
    assert "was fitted on ['age'], which rows.csv does not have" in error_of(run("audit", rows, *words[2:]))
    frame.assign(x="oops").to_csv(rows, index=False)
    said = error_of(run("audit", rows, *words[2:]))
    assert "the model of model.pkl cannot decide on the columns ['sex', 'x', 'age'] of rows.csv: could not" in said
    (folder / "list.pkl").write_bytes(pickle.dumps([1]))
    assert "cannot decide" in error_of(run(*by_model(stored, model="list.pkl")))
    assert "or give --model" in error_of(run("audit", folder / "rows.csv", "--sensitive", "sex"))


def test_a_damaged_skops_file_is_said_in_one_line(run, stored):
    pytest.importorskip("skops.io")
    (stored[0] / "bad.skops").write_bytes(b"nothing")
    assert "bad.skops cannot be loaded" in error_of(run(*by_model(stored, model="bad.skops")))


def test_a_model_of_a_parquet_file_may_read_the_column_that_is_its_index(run, stored, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    stored[2].set_index("sex").to_parquet(path)
    csv, parquet = run(*by_model(stored)), run("audit", path, *by_model(stored)[2:])
    assert parquet[0] == 1
    assert csv[1].split("\nCounterfactuals by sex\n")[1].split("\nProv")[0] in parquet[1]


def test_judging_again_keeps_what_was_asked_of_the_model(run, stored, tmp_path):
    file = tmp_path / "a.json"
    run(*by_model(stored), "--json", file, "--quiet")
    assert "\nCounterfactuals by sex\n" in run("rejudge", file, "--policy", "four_fifths")[1]


# ------------------------------------------------------------------------------------------------------- exit codes
def test_fail_on_decides_the_exit_code(run, predictions):
    german = ["audit", "german-credit", *FEW]
    assert run(*german)[0] == 0
    assert run(*german, "--fail-on", "inconclusive")[0] == 1
    assert run(*german, "--fail-on", "flagged,insufficient")[0] == 0
    assert run(*columns(predictions), "--fail-on", "none")[0] == 0
    assert run(*columns(predictions), "--fail-on", "insufficient")[0] == 0
    assert "--fail-on" in error_of(run(*german, "--fail-on", "bad"))


def test_exit_3_where_nothing_could_be_judged(run, tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("g,p\n" + "a,1\nb,0\na,0\nb,1\n" * 5, encoding="utf-8")
    words = ["audit", path, "--y-pred", "p", "--sensitive", "g", *FEW]
    code, out, _ = run(*words)
    assert code == 3
    assert "NOT ASSESSABLE" in out
    assert run(*words, "--policy", "ll144")[0] == 0


def test_verify_prints_the_largest_deviation(run, predictions):
    code, out, err = run(*columns(predictions), "--verify")
    assert (code, err) == (1, "")
    assert "Largest deviation from fairlearn: " in out
    assert re.search(r"^  sex +selection_rate +2 +\d", out, re.M)
    _, out, err = run(*columns(predictions), "--verify", "--json", "-")
    json.loads(out)
    assert "Largest deviation from fairlearn: " in err


def test_verify_fails_on_a_deviation(run, predictions, monkeypatch):
    table = pd.DataFrame({"attribute": ["a"], "metric": ["m"], "compared": [2], "largest_deviation": [1e-3]})
    monkeypatch.setattr(Audit, "cross_check", lambda self: table)
    code, _, err = run(*columns(predictions), "--verify")
    assert code == 2
    assert err.startswith("error: rates deviate from fairlearn's by 1.0e-03")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["german"], "SOURCE must be one of ['german-credit', 'compas', 'acs-income']"),
        (["absent.csv", "--y-pred", "p", "--sensitive", "g"], "there is no file absent.csv"),
        (["german-credit", "--y-pred", "p"], "--y-true and --y-pred are for files"),
        (["german-credit", "--protocol", "reference"], "--protocol must be 'default'"),
        (["german-credit", "--policy", "nope"], "policy must be"),
        (["german-credit", "--outcome", "good"], "outcome must be one of"),
        (["german-credit", "--outcome", ""], "outcome must be one of"),
        (["german-credit", "--reference", "age=30"], "reference of age must be one of ['age < 25', 'age >= 25']"),
        (["german-credit", "--reference", "race=x"], "--reference must be COL=GROUP with COL among ['age']"),
        (["german-credit", "--reference", "age"], "--reference must be COL=GROUP"),
        (["german-credit", "--bands", "age"], "--bands must be COL=CUT,CUT"),
        (["german-credit", "--bands", "age=40,25"], "rising numbers"),
        (["german-credit", "--bands", "housing=1"], "--bands needs numbers; column 'housing' holds"),
        (["german-credit", "--sensitive", "sex", "--bands", "age=25"], "not among --sensitive ['sex']"),
        (["german-credit", "--metrics", "nope"], "metric must be a name in METRICS"),
        (["german-credit", "--method", "nope"], "method must be"),
        (["german-credit", "--n-resamples", "1"], "n_resamples"),
        (["german-credit", "--intersections", "age*sex"], "intersections name ['sex']"),
    ],
)
def test_bad_input_is_said_in_one_line(run, words, said):
    assert said in error_of(run("audit", *words))


def test_bad_files_are_said_in_one_line(run, predictions, tmp_path):
    words = columns(predictions)
    assert "it has ['id', 'sex', 'code', 'age', 'y', 'p']" in error_of(run(*columns(predictions, "nope")))
    assert "--y-pred is missing" in error_of(run("audit", predictions, "--sensitive", "sex"))
    assert "--sensitive is missing" in error_of(run("audit", predictions, "--y-pred", "p"))
    assert "--protocol is for data sets" in error_of(run(*words, "--protocol", "reference"))
    assert "must give one group for each" in error_of(
        run(*columns(predictions, "sex,code"), "--reference", "sex*code=a")
    )
    other = tmp_path / "other.csv"
    other.write_text("sex;y;p\na;1;1\n", encoding="utf-8")
    assert "separated by commas?" in error_of(run(*columns(other)))
    other.write_text("sex,y,p,sex\na,1,1,b\n", encoding="utf-8")
    assert "repeats the column ['sex']" in error_of(run(*columns(other)))
    other.write_bytes("sex,y,p\né,1,1\n".encode("latin-1"))
    assert "not UTF-8" in error_of(run(*columns(other)))
    other.write_text("", encoding="utf-8")
    assert "has no column" in error_of(run(*columns(other)))
    other.write_text("sex,y,p\na,1,0.7\nb,0,0.2\n", encoding="utf-8")
    assert "holds scores" in error_of(run(*columns(other)))


def test_usage_errors_end_with_2(run):
    assert run("audit")[0] == 2
    assert run("audit", "german-credit", "--seed", "x")[0] == 2
    assert run("nope")[0] == 2


def test_other_exceptions_propagate(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr(cli, "_load", broken)
    result = CliRunner().invoke(app, ["audit", "german-credit"])
    assert isinstance(result.exception, RuntimeError)


# ------------------------------------------------------------------------------------------------------ the others
def test_rejudge_needs_no_data(run, tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    run("audit", "german-credit", *FEW, "--json", first, "--quiet")
    code, out, err = run("rejudge", first, "--policy", "four_fifths", "--json", second)
    assert (code, err) == (1, "")
    assert "Policy     four_fifths" in out
    assert "Audit of German Credit by age: FLAGGED (FAIL)" in out
    assert Audit.from_json(second.read_text(encoding="utf-8")).policy == POLICIES["four_fifths"]
    assert "policy must be" in error_of(run("rejudge", first, "--policy", "nope"))
    assert "AUDIT.json and --json name the same file" in error_of(
        run("rejudge", first, "--policy", "eeoc", "--json", first)
    )
    first.write_text("{", encoding="utf-8")
    assert "is no stored audit" in error_of(run("rejudge", first, "--policy", "eeoc"))
    first.write_text("[1]", encoding="utf-8")
    assert "a stored audit has the schema" in error_of(run("rejudge", first, "--policy", "eeoc"))
    assert "absent.json" in error_of(run("rejudge", "absent.json", "--policy", "eeoc"))


def test_metrics_lists_the_catalogue(run):
    code, out, _ = run("metrics")
    assert code == 0
    listed = re.findall(r"^  ([a-z_0-9]+) ", out, re.M)
    assert [name for name in listed if name in METRICS] == sorted(
        METRICS, key=lambda name: ["group", "pair", "overall"].index(METRICS[name].kind)
    )


@pytest.mark.parametrize("name", METRICS)
def test_one_metric_in_full(run, name):
    code, out, _ = run("metrics", name)
    assert code == 0
    for text in (METRICS[name].formula, METRICS[name].source, METRICS[name].note):
        assert flat(text) in flat(out)


def test_unknown_names_have_a_hint(run):
    assert "Did you mean 'disparate_impact'" in error_of(run("metrics", "disparate_impct"))
    assert "one of" in error_of(run("policies", "nope"))


def test_policies_and_data_sets_are_listed(run):
    code, out, _ = run("policies")
    assert code == 0
    assert re.findall(r"^  ([a-z_0-9]+) ", out, re.M) == list(POLICIES)
    for name, policy in POLICIES.items():
        code, out, _ = run("policies", name)
        assert code == 0
        assert policy.source in flat(out)
        assert all(rule.describe() in flat(out) for rule in policy.rules)
    code, out, _ = run("datasets")
    assert code == 0
    assert re.findall(r"^  ([a-z-]+) ", out, re.M) == list(DATASETS)


def test_app_runs_in_typers_own_runner():
    result = CliRunner().invoke(app, ["datasets"])
    assert result.exit_code == 0
    assert "german-credit" in result.output


def test_module_runs_as_a_process():
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("COV_CORE", "COVERAGE")) and k != "PYTHONWARNINGS"}
    command = [sys.executable, "-m", "sklearn_ethiclens", "audit", "german-credit", *FEW]
    result = subprocess.run(command, capture_output=True, env=kept | {"PYTHONIOENCODING": "ascii"}, timeout=300)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"Audit of German Credit by age: INCONCLUSIVE")
    assert b"\x1b" not in result.stdout


class Terminal:
    """Standard output that says it is a terminal."""

    encoding = "utf-8"

    @staticmethod
    def isatty():
        return True


def test_no_color_and_dumb_terminals_give_plain_text(monkeypatch):
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    assert not _cli_common.color() or sys.stdout.isatty()
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert _cli_common.color()
    monkeypatch.setenv("COLUMNS", "97")
    assert _cli_common.width() == 97
    monkeypatch.setenv("NO_COLOR", "1")
    assert not _cli_common.color()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not _cli_common.color()


def test_what_an_encoding_lacks_is_printed_by_its_code(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("g,p\n" + "é,1\n男,0\né,0\n男,1\n" * 60, encoding="utf-8")
    words = ["audit", path, "--y-pred", "p", "--sensitive", "g", *FEW]
    _, out, _ = run(*words)
    assert re.search(r"^  男 ", out, re.M)
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"} | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "sklearn_ethiclens", *map(str, words)]
    result = subprocess.run(command, capture_output=True, env=kept, timeout=300)
    assert b"\\u7537" in result.stdout


# --------------------------------------------------------------------------------------------- files that are not regular
@pytest.mark.parametrize("text", ["y,p,sex\n1,0,F\n0,1,F, Jane\n1,1,M\n", "y,p,sex\n1,0,F,x\n0,1,F,y\n1,1,M,z\n"])
def test_rows_with_more_fields_than_the_header_are_refused(run, tmp_path, text):
    path = tmp_path / "long.csv"
    path.write_text(text, encoding="utf-8")
    assert "fields" in error_of(run(*columns(path)))


def test_a_parquet_column_stored_as_the_index_is_read(run, tmp_path, predictions):
    pytest.importorskip("pyarrow")
    path = tmp_path / "indexed.parquet"
    pd.read_csv(predictions).set_index("sex").to_parquet(path)
    code, out, _ = run(*columns(path))
    assert code == 1
    assert "FLAGGED" in out


def test_a_stored_list_without_audits_is_no_pass(run, tmp_path):
    path = tmp_path / "empty.json"
    path.write_text("[]", encoding="utf-8")
    assert "holds no audit" in error_of(run("rejudge", path, "--policy", "eeoc"))
