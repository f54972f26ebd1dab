"""Data sets: facts about them, files that land whole or not at all, and the pinned protocols. Never the network."""

import csv
import hashlib
import io
import math
import os
import runpy
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from sklearn_ethiclens import datasets
from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens.datasets import (
    DATASETS,
    compas_protocol,
    fetch_acs_income,
    fetch_compas,
    german_credit_protocol,
    get_data_home,
    load_german_credit,
)
from sklearn_ethiclens.datasets import _compas as compas
from sklearn_ethiclens.datasets._download import RemoteFile, download

# By its path: with --import-mode=importlib, older pytest finds neither `_shared` nor `tests._shared`.
SHARED = runpy.run_path(str(Path(__file__).with_name("_shared.py")))
case, data_file = SHARED["case"], SHARED["data_file"]

PACKAGE = Path(datasets.__file__).parent
ROOT = PACKAGE.parents[1]


# ---------------------------------------------------------------------------------------------------------- helpers


def agree_with(expect, found, tolerance=1e-9):
    assert found.keys() == expect.keys()
    for name, value in expect.items():
        assert math.isclose(found[name], value, rel_tol=0, abs_tol=tolerance), name


def counts(frame, *columns):
    return {f"{column}[{value}]": n for column in columns for value, n in frame[column].value_counts().items()}


def confusion(protocol, attribute):
    truth = protocol.y_true == protocol.pos_label
    guess = protocol.y_pred == protocol.pos_label
    cells = pd.DataFrame({"tp": truth & guess, "fp": ~truth & guess, "fn": truth & ~guess, "tn": ~truth & ~guess})
    table = cells.groupby(protocol.sensitive_features[attribute]).sum()
    return {group: tuple(int(n) for n in row) for group, row in zip(table.index, table.to_numpy(), strict=True)}


class Answers:
    """A script of answers, one a request; the last is repeated."""

    def __init__(self, *script):
        self.script, self.requests = script, 0

    def next(self):
        self.requests += 1
        return self.script[min(self.requests, len(self.script)) - 1]


def page(status, body=b"<html>an error page</html>"):
    def send(handler):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return send


def truncated(body):
    def send(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])

    return send


def without_length(body):
    def send(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def silent(seconds):
    def send(handler):
        time.sleep(seconds)

    return send


def dribbling(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


@contextmanager
def serving(answers):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            try:
                answers.next()(self)
            except ConnectionError:  # the client gave up, which is what those tests are about
                self.close_connection = True

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/file.csv"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data home that does not exist yet, and no shared data to fall back on."""
    monkeypatch.delenv("SKLEARN_ETHICLENS_DATA", raising=False)
    return tmp_path / "not" / "yet"


# Invented people, under the upstream columns; the cells that pandas would rewrite or a CSV reader would trip over.
INVENTED = [
    ("1", "Male", "African-American", "-1", "F", "Battery", "1", "Low", "1"),
    ("2", "Female", "Caucasian", "0", "M", 'Grand "Theft", 3rd', "0", "High", "0"),
    ("3", "Male", "Caucasian", "", "O", "N/A", "0", "N/A", "0"),
    ("4", "Male", "Hispanic", "31", "F", "", "-1", "Low", "0"),
]
FIELDS = "id sex race days_b_screening_arrest c_charge_degree c_charge_desc is_recid score_text two_year_recid".split()


def upstream_of(rows):
    """Return upstream bytes: the given cells, secrets in the personal columns, quotes and \\r\\n where allowed."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(compas._UPSTREAM_COLUMNS)
    for row in rows:
        cells = dict.fromkeys(compas._UPSTREAM_COLUMNS, "0")
        cells |= dict.fromkeys(compas._PERSONAL, "secret")
        cells |= {"c_jail_in": "2013-08-13 06:03:42", "c_jail_out": "2013-08-15 05:00:00", "violent_recid": ""}
        cells |= dict(zip(FIELDS, row, strict=True))
        writer.writerow([cells[name] for name in compas._UPSTREAM_COLUMNS])
    return out.getvalue().encode()


@pytest.fixture
def invented(monkeypatch):
    """Pin the loader on a small invented upstream file, and return its bytes."""
    content = upstream_of(INVENTED)
    pin = RemoteFile(compas.UPSTREAM.url, len(content), hashlib.sha256(content).hexdigest())
    table = compas._names_free(content, "invented")
    monkeypatch.setattr(compas, "UPSTREAM", pin)
    monkeypatch.setattr(compas, "NAMES_FREE_SHA256", hashlib.sha256(table).hexdigest())
    return content


# ----------------------------------------------------------------------------------------------------- German Credit


def test_german_credit_is_thousand_rows_of_twenty_features():
    bunch = load_german_credit()
    assert bunch.data.shape == (1000, 20)
    assert list(bunch.data.columns) == bunch.feature_names == list(bunch.frame.columns[:-1])
    assert bunch.target.name == "credit"
    assert bunch.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert set(bunch.target_names) == {"good", "bad"}
    assert (bunch.pos_label, bunch.outcome, bunch.reference) == ("good", "favorable", {"age": "age >= 25"})
    assert not bunch.frame.isna().any(axis=None)
    assert len(bunch.data.select_dtypes("number").columns) == 7
    assert hashlib.sha256(Path(bunch.filename).read_bytes()).hexdigest() == bunch.sha256


def test_german_credit_facts_of_the_codes():
    reference = case("german_code_facts")
    raw = pd.read_csv(data_file("german-credit-uci.csv"))
    found = {"n": len(raw), "good": int((raw["credit"] == 1).sum()), "personal_status[A95]": 0}
    agree_with(reference["expect"], found | counts(raw, "personal_status", "foreign_worker"))


def test_german_credit_labels_have_the_counts_of_their_codes():
    data = load_german_credit().data
    assert data["personal_status"].value_counts().to_dict() == {
        "male married/widowed": 548,  # A93
        "female non-single or male single": 310,  # A92
        "female single": 92,  # A94
        "male divorced/separated": 50,  # A91
    }
    assert data["foreign_worker"].value_counts().to_dict() == {"no": 963, "yes": 37}
    # Groemping (2019): people without a checking account are bad risks, not the best ones
    bad = (load_german_credit().target == "bad").groupby(data["checking_status"]).mean()
    assert bad.idxmax() == "no checking account"
    assert bad.idxmin() == ">= 200 DM or salary for at least 1 year"


def test_german_credit_bundled_file_is_what_the_script_makes(tmp_path):
    raw = data_file("german-credit-uci.csv")
    script = ROOT / "tools" / "make_german_credit.py"
    if not script.is_file():
        pytest.skip(f"{script} is missing")
    main = runpy.run_path(str(script))["main"]
    main([str(raw), str(tmp_path / "made.csv")])
    bundled = (PACKAGE / "data" / "german_credit.csv").read_bytes()
    assert (tmp_path / "made.csv").read_bytes() == bundled
    assert b"\r" not in bundled


def test_german_credit_script_refuses_another_file(tmp_path):
    script = ROOT / "tools" / "make_german_credit.py"
    if not script.is_file():
        pytest.skip(f"{script} is missing")
    (tmp_path / "other.csv").write_text("status\nA11\n")
    with pytest.raises(ValueError, match=r"must have SHA-256 5320.*got"):
        runpy.run_path(str(script))["main"]([str(tmp_path / "other.csv"), str(tmp_path / "made.csv")])


@pytest.mark.parametrize(("age_cut", "ratio"), [(25, 0.8212484098784929), (26, 0.795)])
def test_german_credit_age_convention_moves_the_ratio(age_cut, ratio):
    # age < 25: (88/149) / (612/851); age <= 25, that is < 26: (110/190) / (590/810) = .79484
    bunch = load_german_credit(age_cut=age_cut)
    good = (bunch.target == "good").groupby(bunch.sensitive_features["age"]).mean()
    assert good[f"age < {age_cut}"] / good[bunch.reference["age"]] == pytest.approx(ratio, abs=5e-4)


def test_german_credit_default_bands_agree_with_the_golden_case():
    expect = case("golden_german_age25")["expect"]
    bunch = load_german_credit()
    good = (bunch.target == "good").groupby(bunch.sensitive_features["age"]).mean()
    assert good["age < 25"] == pytest.approx(expect["selection_rate[age<25]"], abs=1e-9)
    assert good["age >= 25"] == pytest.approx(expect["selection_rate[age>=25]"], abs=1e-9)


@pytest.mark.parametrize("age_cut", [19, 76, float("nan")])
def test_german_credit_refuses_a_cut_that_leaves_a_band_empty(age_cut):
    with pytest.raises(ValueError, match="age_cut must leave people on both sides: above 19 and at most 75; got"):
        load_german_credit(age_cut=age_cut)


def test_german_credit_sex_warns_and_leaves_310_rows_missing():
    with pytest.warns(UserWarning, match=r"310 of 1000 rows.*Groemping 2019"):
        bunch = load_german_credit(sensitive_features="sex")
    sex = bunch.sensitive_features["sex"]
    assert sex.value_counts().to_dict() == {"male": 598, "female": 92}
    assert sex.isna().sum() == 310
    assert bunch.reference == {"sex": "male"}


def test_german_credit_several_attributes():
    with pytest.warns(UserWarning, match="sex cannot be recovered"):
        bunch = load_german_credit(sensitive_features=["foreign_worker", "sex", "age"])
    assert list(bunch.sensitive_features.columns) == ["foreign_worker", "sex", "age"]
    assert bunch.reference == {"foreign_worker": "no", "sex": "male", "age": "age >= 25"}


@pytest.mark.parametrize("asked", ["race", [], ["age", "age"], ["age", "housing"]])
def test_german_credit_refuses_other_attributes(asked):
    with pytest.raises(ValueError, match=r"must be one or several of \['age', 'sex', 'foreign_worker'\].*got"):
        load_german_credit(sensitive_features=asked)


def test_german_credit_description_and_licence_say_what_matters():
    for words in ("granted", "oversampled", ".795", ".821", "Groemping", "CC BY 4.0", "swapped", "310"):
        assert words in load_german_credit().DESCR
    licence = (PACKAGE / "data" / "german_credit.LICENSE.txt").read_text(encoding="utf-8")
    for words in ("Hofmann", "CC BY 4.0", "What was changed", "Groemping", "10.24432/C5NC77"):
        assert words in licence


# ----------------------------------------------------------------------------------------------------------- COMPAS


def test_compas_facts_after_the_filter():
    reference = case("compas6172_facts")
    bunch = fetch_compas()
    frame = bunch.frame
    found = {"n": len(frame), "recid": int(bunch.target.sum())}
    agree_with(reference["expect"], found | counts(frame, "race", "sex", "age_cat", "score_text"))
    assert bunch.sha256 == reference["input"]["sha256"]
    late = frame["compas_screening_date"] > "2014-04-01"  # the rows of Barenstein (2019) that the filter keeps
    assert (late.sum(), bunch.target[late].sum()) == (868, 868)


def test_compas_facts_without_the_filter():
    reference = case("compas7214_barenstein_facts")
    frame = fetch_compas(propublica_filter=False).frame
    late = frame["compas_screening_date"] > "2014-04-01"
    recid = frame["two_year_recid"]
    found = {
        "n": len(frame),
        "recid": recid.sum(),
        "base_rate": recid.mean(),
        "post_2014_04_01": late.sum(),
        "post_2014_04_01_recid": recid[late].sum(),
        "corrected_n": (~late).sum(),
        "corrected_base_rate": recid[~late].mean(),
        "is_recid": frame["is_recid"].sum(),
        "is_recid_not_two_year": ((frame["is_recid"] == 1) & (recid == 0)).sum(),
    }
    agree_with(reference["expect"], found)


def test_compas_published_error_rates_are_on_all_rows():
    data_file("compas-two-years.csv")
    bunch = fetch_compas(propublica_filter=False)
    high = bunch.frame["decile_score"] >= 5
    fpr = high[bunch.target == 0].groupby(bunch.frame["race"]).mean()
    fnr = 1 - high[bunch.target == 1].groupby(bunch.frame["race"]).mean()
    assert [round(fpr[g], 4) for g in ("African-American", "Caucasian")] == [0.4485, 0.2345]
    assert [round(fnr[g], 4) for g in ("African-American", "Caucasian")] == [0.2799, 0.4772]


def test_compas_outcome_is_adverse_and_women_are_the_favoured_side():
    data_file("compas-two-years.csv")
    bunch = fetch_compas()
    assert (bunch.pos_label, bunch.outcome) == (1, "adverse")
    assert bunch.reference == {"race": "Caucasian", "sex": "Male"}
    assert bunch.favorable_outcome.startswith("two_year_recid == 0")
    favorable = bunch.target == 0
    race = favorable.groupby(bunch.sensitive_features["race"]).mean()
    sex = favorable.groupby(bunch.sensitive_features["sex"]).mean()
    assert race["African-American"] == pytest.approx(0.4769, abs=5e-5)
    assert race["Caucasian"] == pytest.approx(0.6091, abs=5e-5)
    assert race["African-American"] / race["Caucasian"] == pytest.approx(0.7828, abs=5e-5)
    assert sex["Female"] == pytest.approx(0.6485, abs=5e-5)
    assert sex["Male"] == pytest.approx(0.5205, abs=5e-5)


def test_compas_names_never_reach_frame_or_disk(home, invented):
    with serving(Answers(page(200, invented))) as url:
        bunch = fetch_compas(data_home=home, url=url, propublica_filter=False)
    assert not compas._PERSONAL & set(bunch.frame.columns)
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert kept == [home / "compas-two-years.csv"]
    assert b"secret" in invented
    assert b"secret" not in kept[0].read_bytes()


def test_compas_pseudo_upstream_becomes_the_pinned_table_byte_for_byte(tmp_path):
    """The shared table, with the dropped columns put back and whole numbers written as upstream writes them."""
    table = data_file("compas-two-years.csv").read_bytes()
    rows = list(csv.reader(io.StringIO(table.decode(), newline="")))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(compas._UPSTREAM_COLUMNS)
    for row in rows[1:]:
        cells = iter(row)
        line = ["secret" if name in compas._PERSONAL else next(cells) for name in compas._UPSTREAM_COLUMNS]
        writer.writerow(
            cell.removesuffix(".0") if name in compas._FLOATS else cell
            for name, cell in zip(compas._UPSTREAM_COLUMNS, line, strict=True)
        )
    upstream = out.getvalue().encode()
    assert compas._names_free(upstream, "pseudo-upstream") == table
    assert compas._names_free(table, "shared table") == table
    assert hashlib.sha256(table).hexdigest() == compas.NAMES_FREE_SHA256


def test_compas_filter_races_and_length_of_stay(home, invented):
    with serving(Answers(page(200, invented))) as url:
        everyone = fetch_compas(data_home=home, url=url, propublica_filter=False)
    filtered = fetch_compas(data_home=home)
    # row 3 has no screening distance, a traffic charge and no score; row 4 is 31 days away
    assert filtered.frame["id"].tolist() == [1, 2]
    assert list(filtered.frame.index) == [0, 1]
    assert everyone.frame["c_charge_desc"].tolist()[:2] == ["Battery", 'Grand "Theft", 3rd']
    assert everyone.frame["c_charge_desc"].isna().tolist() == [False, False, True, True]
    assert set(everyone.data["length_of_stay"]) == {1}  # 1 day 23 hours
    one = fetch_compas(data_home=home, races=["Hispanic", "African-American"], propublica_filter=False)
    assert one.frame["id"].tolist() == [1, 4]
    assert one.reference == {"sex": "Male"}
    with pytest.raises(ValueError, match=r"races must be one or several of \['African-American'.*got \['Martian'\]"):
        fetch_compas(data_home=home, races=["Martian"])


def test_compas_length_of_stay_is_clipped_at_zero_and_missing_where_a_date_is():
    start = pd.Series(["2013-08-13 06:00:00", "2013-08-13 06:00:00", None])
    end = pd.Series(["2013-08-14 05:00:00", "2013-08-12 06:00:00", "2013-08-12 06:00:00"])
    assert compas._whole_days(start, end).fillna(-9).tolist() == [0, 0, -9]


def test_compas_attributes_are_checked_by_name(home, invented):
    with pytest.raises(ValueError, match=r"one or several of \['race', 'sex', 'age_cat'\].*got 'age'"):
        fetch_compas(data_home=home, sensitive_features="age")
    with serving(Answers(page(200, invented))) as url:
        bunch = fetch_compas(data_home=home, url=url, sensitive_features="age_cat")
    assert list(bunch.sensitive_features.columns) == ["age_cat"]
    assert bunch.reference == {}


def test_compas_data_folder_is_read_first_and_never_written(home, invented, tmp_path, monkeypatch):
    given = tmp_path / "given"
    given.mkdir()
    (given / "compas-two-years.csv").write_bytes(invented)  # with names: still not rewritten here
    monkeypatch.setenv("SKLEARN_ETHICLENS_DATA", str(given))
    bunch = fetch_compas(data_home=home, url="http://127.0.0.1:9/")
    assert bunch.filename == str(given / "compas-two-years.csv")
    assert (given / "compas-two-years.csv").read_bytes() == invented
    assert [path.name for path in given.iterdir()] == ["compas-two-years.csv"]
    assert not home.exists()


def test_compas_upstream_file_placed_by_hand_is_replaced_by_its_names_free_form(home, invented):
    home.mkdir(parents=True)
    path = home / "compas-two-years.csv"
    path.write_bytes(invented)
    fetch_compas(data_home=home, download_if_missing=False)
    assert b"secret" not in path.read_bytes()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == compas.NAMES_FREE_SHA256
    assert [one.name for one in home.iterdir()] == [path.name]


def test_compas_missing_names_both_places(home, tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"\$SKLEARN_ETHICLENS_DATA \(not set\) nor at .*compas-two-years.csv"):
        fetch_compas(data_home=home, download_if_missing=False)
    monkeypatch.setenv("SKLEARN_ETHICLENS_DATA", str(tmp_path / "given"))
    with pytest.raises(OSError, match=r"given.*nor at .*yet.*download_if_missing=True.*by hand"):
        fetch_compas(data_home=home, download_if_missing=False)
    assert not home.exists()


def changed_cell(table):
    return table.replace(b",Hispanic,", b",Caucasian,", 1)


def raw_scores(table):
    return b"Person_ID,DecileScore\n1,5\n"


def broken_row(table):
    return table + b"1,2\n"


def not_text(table):
    return b"\xff\xfe\x00PK"


@pytest.mark.parametrize("where", ["data_home", "SKLEARN_ETHICLENS_DATA"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_cell, "is not the COMPAS two-year table: without names its SHA-256 must be .*got"),
        (raw_scores, r"does not have the columns of compas-scores-two-years.csv.*2 unknown \['Person_ID', 'Decile"),
        (broken_row, "line 6: expected 46 cells, got 2"),
        (not_text, "is not a CSV file in UTF-8"),
    ],
)
def test_compas_wrong_file_is_refused_by_name_and_left_alone(home, invented, monkeypatch, where, change, message):
    home.mkdir(parents=True)
    path = home / "compas-two-years.csv"
    content = change(compas._names_free(invented, "invented"))
    path.write_bytes(content)
    if where == "SKLEARN_ETHICLENS_DATA":
        monkeypatch.setenv(where, str(home))
    with pytest.raises(ValueError, match=f"compas-two-years.csv,? ?{message}") as caught:
        fetch_compas(data_home=home)
    assert str(path) in str(caught.value)
    assert "Remove it" in str(caught.value)
    assert path.read_bytes() == content


def test_compas_description_says_what_matters():
    for words in ("two_year_recid == 0", "7,214", "6,172", "decile_score >= 5", "Barenstein", "998", "dropped"):
        assert words in compas.DESCR


# ---------------------------------------------------------------------------------------------------------- download


def test_denied_leaves_nothing_and_the_next_try_works(home, invented):
    answers = Answers(page(403), page(200, invented))
    with serving(answers) as url:
        with pytest.raises(OSError, match="status 403") as caught:
            fetch_compas(data_home=home, url=url)
        assert answers.requests == 1
        for words in (url, "Retry later", "mirror", str(home / "compas-two-years.csv")):
            assert words in str(caught.value)
        assert not home.exists()
        assert len(fetch_compas(data_home=home, url=url).frame) == 2
        assert len(fetch_compas(data_home=home, url=url).frame) == 2
    assert answers.requests == 2  # the third call read the kept file


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (page(404), "status 404"),
        (page(204, b""), "status 204"),
        (page(200), "must have 10 bytes; got 26|more than the expected 10 bytes"),
        (page(200, b"0123456780"), "must have SHA-256 84d8.*got"),
        (without_length(b"01234"), "must have 10 bytes; got 5"),
        (truncated(b"0123456789"), "broke off after 5 of 10 bytes"),
    ],
)
def test_wrong_answer_is_refused_at_once(answer, message):
    remote = RemoteFile("", 10, hashlib.sha256(b"0123456789").hexdigest())
    answers = Answers(answer)
    with serving(answers) as url, pytest.raises(OSError, match=message) as caught:
        download(RemoteFile(url, remote.n_bytes, remote.sha256), by_hand="folder/file", pause=0)
    assert answers.requests == 1
    assert url in str(caught.value)
    assert "place the file by hand at folder/file" in str(caught.value)


def test_server_error_is_tried_again():
    answers = Answers(page(500), page(503), page(200, b"data"))
    with serving(answers) as url:
        assert download(RemoteFile(url), by_hand="file", pause=0) == b"data"
    assert answers.requests == 3


def test_server_error_is_tried_again_a_bounded_number_of_times():
    answers = Answers(page(500))
    with serving(answers) as url, pytest.raises(OSError, match=r"status 500.*attempt 3 of 3"):
        download(RemoteFile(url), by_hand="file", pause=0)
    assert answers.requests == 3


def test_silent_server_is_tried_again_after_the_read_time_limit():
    answers = Answers(silent(1.0), page(200, b"data"))
    with serving(answers) as url:
        assert download(RemoteFile(url), by_hand="file", timeout=0.2, pause=0) == b"data"


def test_silent_server_fails_within_the_time_limit():
    start = time.monotonic()
    with serving(Answers(silent(2.0))) as url, pytest.raises(OSError, match="did not answer within the time limit"):
        download(RemoteFile(url), by_hand="file", timeout=0.2, retries=1, pause=0)
    assert time.monotonic() - start < 1.9


def test_dribbling_server_meets_the_limit_of_the_whole_transfer():
    start = time.monotonic()
    with serving(Answers(dribbling)) as url, pytest.raises(OSError, match="time limit was reached after"):
        download(RemoteFile(url), by_hand="file", timeout=1.0, total_timeout=0.3)
    assert time.monotonic() - start < 2.0


def test_unpinned_file_is_bounded_in_size():
    with serving(Answers(without_length(b"x" * 100))) as url, pytest.raises(OSError, match=r"more than .* 10 bytes"):
        download(RemoteFile(url), by_hand="file", max_bytes=10)


def test_closed_port_is_an_error_with_the_ways_out():
    with serving(Answers(page(200))) as url:
        pass
    with pytest.raises(OSError, match=r"no answer could be read.*by hand at file"):
        download(RemoteFile(url), by_hand="file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"remote": RemoteFile("file:///etc/hosts")}, "url must start with http"),
        ({"remote": RemoteFile("http://127.0.0.1:9/"), "timeout": 0}, "timeout must be a positive number.*got 0"),
        ({"remote": RemoteFile("http://127.0.0.1:9/"), "total_timeout": -1}, "total_timeout must be a positive"),
    ],
)
def test_download_refuses_senseless_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        download(**arguments, by_hand="file")


def test_failed_write_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write_whole(path, b"old")

    def refuse(source, target):
        raise PermissionError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match="no"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in path.parent.iterdir()] == ["file"]


def test_what_is_no_plain_file_is_written_to_and_stays(tmp_path):
    pipe, link, plain = tmp_path / "pipe", tmp_path / "link", tmp_path / "plain"
    plain.write_bytes(b"old")
    try:
        os.mkfifo(pipe)
        link.symlink_to(plain)
    except (AttributeError, OSError):
        pytest.skip("no pipes or links here")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, [b"in ", b"pieces"])
        assert os.read(reader, 100) == b"in pieces"
        assert pipe.is_fifo()
    finally:
        os.close(reader)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert plain.read_bytes() == b"new"


def test_data_home_is_argument_then_variable_then_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SKLEARN_ETHICLENS_HOME", str(tmp_path / "variable"))
    assert get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert get_data_home() == tmp_path / "variable"
    monkeypatch.delenv("SKLEARN_ETHICLENS_HOME")
    assert get_data_home() == Path.home() / ".cache" / "sklearn_ethiclens"
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------------------- protocols


def test_german_credit_protocol_is_pinned():
    (protocol,) = german_credit_protocol()
    assert confusion(protocol, "age") == {"age < 25": (66, 33, 22, 28), "age >= 25": (549, 132, 63, 107)}
    assert (protocol.pos_label, protocol.outcome, protocol.n_rows) == ("good", "favorable", 1000)
    assert protocol.reference == {"age": "age >= 25"}
    assert protocol.sha256 == load_german_credit().sha256


def test_german_credit_protocol_follows_its_seed():
    (first,), (again,), (other,) = (german_credit_protocol(random_state=seed) for seed in (1, 1, 2))
    assert first.y_pred.equals(again.y_pred)
    assert not first.y_pred.equals(other.y_pred)
    assert "random_state=1" in first.model


def test_compas_reference_protocol_reproduces_the_pinned_table():
    data_file("compas-two-years.csv")
    race, sex = compas_protocol("reference")
    assert confusion(race, "race") == {"Caucasian": (68, 46, 172, 359), "African-American": (316, 106, 195, 339)}
    assert confusion(sex, "sex") == {"Male": (371, 148, 345, 628), "Female": (49, 17, 78, 216)}
    assert (race.n_rows, sex.n_rows) == (645 + 956, 1852)
    assert (race.reference, sex.reference) == ({"race": "Caucasian"}, {"sex": "Male"})
    assert race.outcome == sex.outcome == "favorable"


def test_compas_default_protocol_is_pinned():
    data_file("compas-two-years.csv")
    (protocol,) = compas_protocol()
    assert (protocol.n_rows, protocol.outcome, protocol.pos_label) == (6172, "adverse", 1)
    assert protocol.reference == {"race": "Caucasian", "sex": "Male"}
    assert confusion(protocol, "sex") == {"Female": (168, 95, 245, 667), "Male": (1285, 541, 1111, 2060)}
    assert confusion(protocol, "race")["African-American"] == (1035, 404, 626, 1110)
    assert confusion(protocol, "race")["Caucasian"] == (297, 162, 525, 1119)


def test_protocols_keep_rows_aligned():
    data_file("compas-two-years.csv")
    for protocol in (*german_credit_protocol(), *compas_protocol(), *compas_protocol("reference")):
        assert protocol.y_true.index.equals(protocol.y_pred.index)
        assert protocol.y_true.index.equals(protocol.sensitive_features.index)
        assert len(protocol.y_true) == protocol.n_rows
        assert protocol.data_name in DATASETS
        assert protocol.notes


def test_compas_protocol_refuses_unknown_kind_and_other_seed_of_the_reference():
    with pytest.raises(ValueError, match=r"kind must be one of \['default', 'reference'\]; got 'other'"):
        compas_protocol("other")
    with pytest.raises(ValueError, match=r"random_state must be 42 for kind='reference'.*got 0"):
        compas_protocol("reference", random_state=0)


# ----------------------------------------------------------------------------------------------------------- package


def test_datasets_lists_every_loader_with_its_terms():
    assert {entry.loader for entry in DATASETS.values()} == {load_german_credit, fetch_compas, fetch_acs_income}
    assert {name: entry.source for name, entry in DATASETS.items()} == {
        "german-credit": "bundled",
        "compas": "fetched",
        "acs-income": "fetched",
    }
    assert all(entry.description and entry.licence for entry in DATASETS.values())


def test_import_is_cheap():
    code = "import sys, sklearn_ethiclens.datasets; print({'folktables', 'fairlearn', 'matplotlib'} & set(sys.modules))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    assert answer.stdout.strip() == "set()"
