"""The command ``probe``: what it prints, and how it ends."""

import json
import pickle
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_ethiclens._cli_probe import probe_command
from sklearn_ethiclens.counterfactual import CounterfactualAudit
from tests._shared import data_file

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("probe")(probe_command)


@app.callback()
def _several() -> None:
    """Keep the name of the one command."""


@pytest.fixture
def run(capsys):
    """Call the command as a shell does; give back the exit code, stdout and stderr."""

    def call(*words):
        try:
            app(["probe", *map(str, words)])
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        assert max(map(len, out.splitlines()), default=0) <= 80 or out.startswith("{")
        return code, out, err

    return call


def error_of(result):
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


@pytest.fixture
def files(tmp_path):
    """Rows as a CSV, and a model of them as a pickle."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"sex": rng.choice(["F", "M"], 400), "code": rng.choice(["NA", "x"], 400), "x": rng.normal(size=400)}
    )
    y = np.where(X["x"] + (X["sex"] == "M") > 0.5, "yes", "no")
    encode = make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["x"]))
    model = make_pipeline(encode, LogisticRegression()).fit(X[["sex", "x"]], y)
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    return tmp_path / "rows.csv", tmp_path / "model.pkl", model, X


def test_compas_prints_the_flip_table(run):
    data_file("compas-two-years.csv")
    code, out, err = run("compas", "--sensitive", "sex,race")
    assert (code, err) == (0, "")
    assert out.startswith("Counterfactuals of COMPAS by sex, race\n")
    said = " ".join(out.split())
    assert "trained with sex, race as input" in said
    assert "probed on the held-out part" in said
    assert "Assumes that the model's use of the attribute itself is the question." in said
    assert "Female (n=" in out
    assert "African-American (n=" in out
    assert "Of 30 pairs, the 12 whose" in out
    assert run("compas", "--sensitive", "sex,race")[1] == out


def test_german_credit_and_what_is_written(run, tmp_path):
    json_file, html = tmp_path / "probe.json", tmp_path / "probe.html"
    code, out, err = run("german-credit", "--sensitive", "age", "--json", json_file, "--html", html)
    assert (code, err) == (0, "")
    assert "age < 25 (n=" in out
    found = CounterfactualAudit.from_json(json_file.read_text(encoding="utf-8"))
    assert found.provenance["data"]["name"] == "German Credit"
    assert found.to_json() + "\n" == json_file.read_text(encoding="utf-8")
    assert "age &lt; 25" in html.read_text(encoding="utf-8")
    _, out, _ = run("german-credit", "--sensitive", "age", "--json", "-")
    assert CounterfactualAudit.from_json(out) == found
    assert run("german-credit", "--sensitive", "age", "--quiet")[1] == ""


def test_one_target_and_other_strategies(run):
    _, out, _ = run("german-credit", "--sensitive", "age,housing", "--to", "age=age < 25", "--json", "-")
    pairs = json.loads(out)["pairs"]
    assert {p["target"] for p in pairs if p["attribute"] == "age"} == {"age < 25"}
    assert len([p for p in pairs if p["attribute"] == "housing"]) == 6
    code, out, _ = run("german-credit", "--sensitive", "age", "--strategy", "transport", "--seed", "1")
    assert code == 0
    assert "same rank in their groups" in " ".join(out.split())
    code, out, _ = run("german-credit", "--sensitive", "age", "--strategy", "adjust", "--descendants", "housing,job")
    assert "Descendants: housing, job" in " ".join(out.split())


def test_a_file_with_a_pickled_model(run, files):
    rows, pkl, model, X = files
    given = (rows, "--sensitive", "sex", "--model", pkl, "--target", "y", "--pos-label", "yes")
    assert "--allow-pickle" in error_of(run(*given))
    code, out, err = run(*given, "--allow-pickle", "--json", "-")
    assert (code, err) == (0, "")
    found = CounterfactualAudit.from_json(out)
    F = X[X["sex"] == "F"]
    flips = model.predict(F[["sex", "x"]]) != model.predict(F.assign(sex="M")[["sex", "x"]])
    assert found.pairs[0].flip_rate == flips.mean() > 0
    assert found.pairs[0].flip_rate_positives >= 0
    _, out, err = run(*(w if w != "sex" else "code" for w in given), "--allow-pickle")
    assert "does not read it" in err
    assert "NA (n=" in out


def test_a_parquet_file_with_a_joblib_model(run, files, tmp_path):
    pytest.importorskip("pyarrow")
    _, _, model, X = files
    joblib.dump(model, tmp_path / "model.joblib")
    X.to_parquet(tmp_path / "rows.parquet")
    given = ("--sensitive", "sex", "--model", tmp_path / "model.joblib", "--allow-pickle", "--pos-label", "yes")
    code, out, _ = run(tmp_path / "rows.parquet", *given)
    assert code == 0
    assert "Pipeline of model.joblib" in " ".join(out.split())


def test_a_parquet_column_stored_as_the_index_can_be_probed(run, files, tmp_path):
    pytest.importorskip("pyarrow")
    _, pkl, _, X = files
    X.set_index("sex").to_parquet(tmp_path / "rows.parquet")
    code, out, err = run(
        tmp_path / "rows.parquet", "--sensitive", "sex", "--model", pkl, "--allow-pickle", "--pos-label", "yes"
    )
    assert (code, err) == (0, "")
    assert "M (n=" in out


def test_a_skops_model_is_loaded_by_trusted_types_only(run, files, tmp_path):
    skops = pytest.importorskip("skops.io")
    rows, _, model, _ = files
    path = tmp_path / "model.skops"
    skops.dump(model, path)
    given = (rows, "--sensitive", "sex", "--model", path, "--target", "y", "--pos-label", "yes")
    code, out, _ = run(*given, *trust_in(skops, path))
    assert code == 0
    assert "M (n=" in out
    strange = make_pipeline(*[step for _, step in model.steps])
    strange.note = Strange()
    skops.dump(strange, path)
    said = error_of(run(*given))
    assert "Strange" in said
    trusted = run(*given, "--trust", said.split("--trust ")[1].strip().removesuffix("."))
    assert trusted[0] == 0
    path.write_bytes(b"nothing")
    assert "model.skops cannot be loaded" in error_of(run(*given))


def trust_in(skops, path):
    """What a model of scikit-learn itself may need: skops does not know the column list of a ColumnTransformer of 1.6."""
    unknown = skops.get_untrusted_types(file=path)
    assert set(unknown) <= {"sklearn.compose._column_transformer._RemainderColsList"}
    return ["--trust", ",".join(unknown)] if unknown else []


class Strange:
    """A type that skops does not know."""


def test_skops_is_named_where_it_is_absent(run, files, tmp_path, monkeypatch):
    (tmp_path / "model.skops").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    assert "pip install 'sklearn-ethiclens[model]'" in error_of(
        run(files[0], "--sensitive", "sex", "--model", tmp_path / "model.skops")
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("german-credit",), "--sensitive is missing"),
        (("german-credit", "--sensitive", "nope"), "german-credit has no column ['nope']"),
        (("german-credit", "--sensitive", "age", "--target", "y"), "are for files"),
        (("german-credit", "--sensitive", "age", "--to", "sex=F"), "--to must be COL=VALUE"),
        (("german-credit", "--sensitive", "age", "--to", "age=old"), "'age' has no value 'old'"),
        (("german-credit", "--sensitive", "age", "--strategy", "magic"), "strategy must be one of"),
        (("german-credit", "--sensitive", "credit_amount"), "more than max_values=20"),
        (("german-credit", "--sensitive", "age", "--pos-label", "fine"), "pos_label='fine' is not among"),
        (("nowhere", "--sensitive", "age"), "SOURCE must be one of"),
        (("nowhere.csv", "--sensitive", "age"), "--model is missing"),
        (("nowhere.csv", "--sensitive", "age", "--model", "m.pkl"), "there is no file nowhere.csv"),
    ],
)
def test_bad_input_is_one_line(run, words, said):
    assert said in error_of(run(*words))


def test_bad_files_are_one_line(run, files, tmp_path):
    rows, pkl, _, X = files
    with_model = ("--sensitive", "sex", "--model", pkl, "--allow-pickle")
    assert "has no column ['ys']" in error_of(run(rows, *with_model, "--target", "ys"))
    X.drop(columns="x").to_csv(tmp_path / "less.csv", index=False)
    assert "the model was fitted on ['x']" in error_of(run(tmp_path / "less.csv", *with_model))
    (tmp_path / "bad.pkl").write_bytes(b"nothing")
    assert "cannot be loaded" in error_of(
        run(rows, "--sensitive", "sex", "--model", tmp_path / "bad.pkl", "--allow-pickle")
    )
    (tmp_path / "model.txt").write_bytes(b"")
    assert "must be a .skops file" in error_of(run(rows, "--sensitive", "sex", "--model", tmp_path / "model.txt"))
    (tmp_path / "latin.csv").write_bytes("sex,x\nMänn,1\n".encode("latin-1"))
    assert "is not UTF-8" in error_of(run(tmp_path / "latin.csv", *with_model))


def test_rows_with_more_fields_than_the_header_are_refused(run, files, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("sex,x\nF,1,3\nM,2,6\n", encoding="utf-8")
    words = (path, "--sensitive", "sex", "--model", files[1], "--allow-pickle")
    assert "more fields than its header" in error_of(run(*words))
