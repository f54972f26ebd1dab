"""ACS: files that land whole or not at all, folktables' tasks unchanged, words for codes, and the command line.

Every file here is made by the test, in the layout of the Census files; nothing is fetched from the network.
"""

import hashlib
import io
import json
import math
import os
import pickle
import random
import sys
import threading
import time
import zipfile
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import folktables
import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from statsmodels.stats.weightstats import DescrStatsW

from sklearn_ethiclens import Audit, audit, cli
from sklearn_ethiclens.cli import main
from sklearn_ethiclens.datasets import _acs as acs
from sklearn_ethiclens.datasets import _acs_codes as codes
from sklearn_ethiclens.datasets import _acs_files as files
from sklearn_ethiclens.datasets import acs_income_protocol, fetch_acs, fetch_acs_income
from tests._shared import data_file

GIVEN = os.environ.get("SKLEARN_ETHICLENS_DATA")  # which the tests unset, so that none reads what is there by chance
REPLICATES = [f"PWGTP{i}" for i in range(1, 81)]
folktables_files = sys.modules["folktables.load_acs"]  # the attribute of that name is its function


# -------------------------------------------------------------------------------------------------------------- helpers
@cache
def people(state="WY", year=2018, n=300, seed=0):
    """Return made-up people under the column names of that year's person file."""
    rng = np.random.default_rng(seed)

    def some(values, missing=0.0):
        drawn = pd.Series(rng.choice(values, n)).astype("Int64")
        return drawn.mask(pd.Series(rng.random(n) < missing))

    relship, travel = ("RELP", "JWTR") if year < 2019 else ("RELSHIPP", "JWTRNS")
    age, sex = rng.integers(0, 95, n), rng.integers(1, 3, n)
    working = (age > 16) & (rng.random(n) < 0.8)
    frame = {
        "RT": ["P"] * n,
        "SERIALNO": [f"{year}HU{i:07d}" for i in range(n)],
        "PUMA": some([100, 200]),
        "ST" if year < 2023 else "STATE": [int(codes.STATES[state])] * n,
        "PWGTP": some(range(1, 200)),
        "AGEP": age,
        "SEX": sex,
        "RAC1P": some([1, 1, 1, 1, 2, 2, 6, 9]),
        "HISP": some([1, 1, 2]),
        "SCHL": some(range(1, 25), missing=0.02),
        "MAR": some(range(1, 6)),
        "COW": some(range(1, 9)).mask(~working),
        "OCCP": some([10, 4720, 9130]).mask(~working),
        "POBP": some([6, 36, 56, 303]),
        relship: some(range(18) if year < 2019 else range(20, 39)),
        "WKHP": some(range(1, 99)).mask(~working),
        "PINCP": (pd.Series(rng.normal(45_000 + 12_000 * (sex == 1), 25_000)).round().astype("Int64")).mask(age < 15),
        "ESR": some([1, 1, 1, 3, 6]).mask(age < 16),
        "PUBCOV": some([1, 2]),
        "MIG": some([1, 1, 3]).mask(age < 1),
        "JWMNP": some(range(1, 60), missing=0.3),
        travel: some(range(1, 13), missing=0.3),
        "POWPUMA": some([100, 200], missing=0.3),
        "POVPIP": some(range(502), missing=0.05),
    }
    frame |= {name: some([1, 2], missing=0.05) for name in ("DREM", "FER", "GCL")}
    frame |= {name: some([1, 2]) for name in ("DIS", "DEAR", "DEYE", "NATIVITY")}
    frame |= {"ESP": some(range(1, 9), missing=0.7), "CIT": some(range(1, 6)), "ANC": some(range(1, 5))}
    frame |= {"MIL": some([1, 2, 4], missing=0.2), "ADJINC": [1013097] * n}
    weights = {name if year > 2016 else name.lower(): rng.integers(-5, 300, n) for name in REPLICATES}
    return pd.DataFrame(frame | weights)


def csv_of(frame):
    return frame.to_csv(index=False).encode()


def zip_of(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


@cache
def archive(state="WY", year=2018):
    name = files.Source((state,), year, "1-Year").file_name(state)
    return zip_of({"ACS_PUMS_README.pdf": b"%PDF-1.5", name: csv_of(people(state, year))})


def place(root, frame, state="WY", year=2018, horizon="1-Year"):
    path = files.Source((state,), year, horizon).path(root, state)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(csv_of(frame))
    return path


@contextmanager
def serving(*script, by_path=None):
    """Serve a script of answers, one a request and the last repeated, or one content a path; yields address and paths."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if by_path is None:
                answer = script[min(len(asked), len(script)) - 1]
            else:
                answer = by_path[self.path] if self.path in by_path else (404, b"no such file")
            try:
                answer(self) if callable(answer) else send(self, *answer)
            except ConnectionError:  # the client gave up, which is what those tests are about
                self.close_connection = True

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler, status, body, share=1.0):
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: int(share * len(body))])


def slow(handler):
    time.sleep(1.0)


DENIED = (403, b"<html><title>403 Forbidden</title></html>")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("SKLEARN_ETHICLENS_DATA", raising=False)


@pytest.fixture
def home(tmp_path):
    """A data home that does not exist yet."""
    return tmp_path / "not" / "yet"


@pytest.fixture
def wyoming(tmp_path):
    """A data home with the made-up Wyoming of 2018."""
    place(tmp_path, people())
    return tmp_path


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ------------------------------------------------------------------------------------------------------------- download
def test_denied_leaves_nothing_and_the_next_try_works(home):
    with serving(DENIED, (200, archive())) as (url, asked):
        started = time.monotonic()
        with pytest.raises(OSError, match="status 403") as caught:
            fetch_acs_income(["WY"], data_home=home, base_url=url)
        assert time.monotonic() - started < 5
        path = home / "2018" / "1-Year" / "psam_p56.csv"
        for words in (f"{url}/2018/1-Year/csv_pwy.zip", "Retry later", "mirror", f"by hand at {path}"):
            assert words in str(caught.value)
        assert not home.exists()
        first = fetch_acs_income(["WY"], data_home=home, base_url=url)
        again = fetch_acs_income(["WY"], data_home=home, base_url=url)
    assert asked == ["/2018/1-Year/csv_pwy.zip"] * 2  # the third call read the kept file
    assert files_in(home) == ["2018/1-Year/psam_p56.csv"]
    assert path.read_bytes() == csv_of(people())
    pd.testing.assert_frame_equal(first.data, again.data)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            (200, b"<html>please accept our cookies</html>"),
            "not with the ACS 1-Year 2018 person file of WY: File is not a",
        ),
        ((200, archive(), 0.5), "broke off after"),
        ((200, archive()[: len(archive()) // 2]), "File is not a zip file"),
        (
            (200, zip_of({"psam_p50.csv": csv_of(people("VT"))})),
            r"the archive holds \['psam_p50.csv'\], not psam_p56.csv",
        ),
        ((200, zip_of({"deep/psam_p56.csv": csv_of(people())})), r"the archive holds \['deep/psam_p56.csv'\]"),
        (
            (200, zip_of({"psam_p56.csv": b"<html>moved</html>"})),
            r"lacks the columns \['SERIALNO'.*begins with b'<html>",
        ),
        ((200, zip_of({"psam_p56.csv": csv_of(people().drop(columns="PWGTP"))})), r"lacks the columns \['PWGTP'\]"),
        ((200, zip_of({"psam_p56.csv": csv_of(people("VT"))})), "its first row is of the state with code 50, not 56"),
        ((200, zip_of({"psam_p56.csv": csv_of(people().head(0))})), "it has no rows"),
        ((200, zip_of({"psam_p56.csv": b""})), r"lacks the columns"),
        ((404, b""), "status 404"),
    ],
    ids="html truncated half-archive other-state folder html-inside column state-inside no-rows empty 404".split(),
)
def test_wrong_answer_is_refused_at_once_and_leaves_nothing(home, answer, message):
    with serving(answer) as (url, asked), pytest.raises(OSError, match=message) as caught:
        fetch_acs_income(["WY"], data_home=home, base_url=url)
    assert len(asked) == 1
    for words in (url, "Nothing was kept", "place the file by hand at", str(home)):
        assert words in str(caught.value)
    assert not home.exists()


def damaged():
    """An archive whose packed data were changed: a whole file by its length, another by its CRC."""
    content = bytearray(zip_of({"psam_p56.csv": csv_of(people())}))
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(8)
    return bytes(content)


def test_damaged_archive_leaves_no_file(home):
    with serving((200, damaged())) as (url, _), pytest.raises(OSError, match=r"answered, but not with.*by hand at"):
        fetch_acs_income(["WY"], data_home=home, base_url=url)
    assert files_in(home.parents[1]) == []


def test_archive_that_would_fill_the_disk_is_refused(home, monkeypatch):
    monkeypatch.setattr(files, "_MAX_CSV_BYTES", 1000)
    with serving((200, archive())) as (url, _), pytest.raises(OSError, match="more than 1,000"):
        fetch_acs_income(["WY"], data_home=home, base_url=url)
    assert not home.exists()


def test_slow_server_meets_the_time_limit(home):
    started = time.monotonic()
    with serving(slow) as (url, asked), pytest.raises(OSError, match="did not answer within the time limit"):
        fetch_acs_income(["WY"], data_home=home, base_url=url, timeout=0.005)
    assert time.monotonic() - started < 2.5
    assert not home.exists()


def test_server_error_is_tried_again(home, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with serving((503, b"busy"), (200, archive())) as (url, asked):
        assert len(fetch_acs_income(["WY"], data_home=home, base_url=url).data)
    assert len(asked) == 2


def test_one_state_refused_keeps_the_whole_files_of_the_others(home):
    answers = {"/2018/1-Year/csv_pwy.zip": (200, archive()), "/2018/1-Year/csv_pvt.zip": DENIED}
    with serving(by_path=answers) as (url, asked):
        with pytest.raises(OSError, match="csv_pvt"):
            fetch_acs_income(["WY", "VT"], data_home=home, base_url=url)
        assert files_in(home) == ["2018/1-Year/psam_p56.csv"]
        answers["/2018/1-Year/csv_pvt.zip"] = (200, archive("VT"))
        both = fetch_acs_income(["WY", "VT"], data_home=home, base_url=url)
    assert [path.rpartition("_")[2] for path in asked] == ["pwy.zip", "pvt.zip", "pvt.zip"]
    assert both.n_read == 600
    assert both.frame["ST"].drop_duplicates().tolist() == [56, 50]  # in the order asked for


def test_default_address_is_that_of_folktables(home, monkeypatch):
    seen = []

    def refuse(remote, **options):
        seen.append(remote.url)
        raise OSError("no network here")

    def get(url):
        seen.append(url)
        raise OSError("no network here")

    monkeypatch.setattr(files, "download", refuse)
    monkeypatch.setattr(folktables_files.requests, "get", get)
    for year, horizon in ((2018, "1-Year"), (2016, "5-Year")):
        with pytest.raises(OSError, match="no network"):
            fetch_acs_income(["WY"], year, horizon, data_home=home)
        with pytest.raises(OSError, match="psam_p56|ss16pwy"):  # it swallows the first error and misses the file
            folktables.ACSDataSource(str(year), horizon, "person", root_dir=str(home)).get_data(["WY"], download=True)
        assert seen[-2] == seen[-1]


# ---------------------------------------------------------------------------------------------------------------- cache
@pytest.mark.parametrize("year", [2016, 2018])
def test_cache_is_that_of_folktables_in_both_directions(home, year):
    with serving((200, archive("WY", year))) as (url, _):
        bunch = fetch_acs_income(["WY"], year, data_home=home, base_url=url)
    frame = folktables.ACSDataSource(str(year), "1-Year", "person", root_dir=str(home)).get_data(["WY"])
    data, target, group = folktables.ACSIncome.df_to_pandas(frame)
    pd.testing.assert_frame_equal(bunch.data, data)
    assert bunch.target.eq(target["PINCP"]).all()
    assert bunch.sensitive_features["RAC1P"].eq(group["RAC1P"]).all()
    assert bunch.filenames == [str(path) for path in home.rglob("*.csv")]


def test_state_codes_are_those_of_folktables():
    assert dict(codes.STATES) == folktables_files._STATE_CODES
    assert list(codes.STATES) == folktables.state_list


def test_data_folder_is_read_first_and_never_written(tmp_path, monkeypatch):
    given, home = tmp_path / "given", tmp_path / "home"
    place(given, people())
    place(home, people(seed=1))
    monkeypatch.setenv("SKLEARN_ETHICLENS_DATA", str(given))
    assert fetch_acs_income(["WY"], data_home=home).filenames == [str(given / "2018/1-Year/psam_p56.csv")]
    with serving((200, archive("VT"))) as (url, asked):  # the folder lacks one, so the cache serves both
        both = fetch_acs_income(["WY", "VT"], data_home=home, base_url=url)
    assert asked == ["/2018/1-Year/csv_pvt.zip"]
    assert both.filenames == [str(home / "2018/1-Year" / name) for name in ("psam_p56.csv", "psam_p50.csv")]
    assert files_in(given) == ["2018/1-Year/psam_p56.csv"]


def test_missing_file_names_both_places(home, tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"\$SKLEARN_ETHICLENS_DATA \(not set\) nor at .*psam_p56.csv.*by hand at"):
        fetch_acs_income(["WY"], data_home=home, download_if_missing=False)
    monkeypatch.setenv("SKLEARN_ETHICLENS_DATA", str(tmp_path / "given"))
    with pytest.raises(OSError, match=r"given.*psam_p56.csv nor at .*yet.*download_if_missing=True"):
        fetch_acs_income(["WY"], data_home=home, download_if_missing=False)
    assert not home.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>403</html>", r"lacks the columns.*begins with b'<html>403"),
        (csv_of(people("VT")), "code 50, not 56"),
        (csv_of(people())[:-400], "breaks off in the middle of a row"),
        (b"", "lacks the columns"),
    ],
    ids=["html", "other state", "cut", "empty"],
)
def test_wrong_file_in_the_cache_is_refused_by_name_and_left_alone(wyoming, content, message):
    path = wyoming / "2018" / "1-Year" / "psam_p56.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        fetch_acs_income(["WY"], data_home=wyoming)
    assert str(path) in str(caught.value)
    assert "Remove it" in str(caught.value)
    assert path.read_bytes() == content


def test_sha256_is_of_the_file_or_of_the_listing(wyoming):
    place(wyoming, people("VT"), "VT")
    one, other = (hashlib.sha256(csv_of(people(state))).hexdigest() for state in ("WY", "VT"))
    assert fetch_acs_income("WY", data_home=wyoming).sha256 == one
    listing = f"{one}  psam_p56.csv\n{other}  psam_p50.csv\n"
    assert fetch_acs_income(["WY", "VT"], data_home=wyoming).sha256 == hashlib.sha256(listing.encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------- tasks
def test_filter_and_threshold_by_hand(tmp_path):
    """Of eight rows two pass: each of the others fails one condition of the filter by one unit or an empty cell."""
    frame = people(n=8).assign(AGEP=40, PINCP=60_000, WKHP=40, PWGTP=10, COW=1, OCCP=10)
    frame.loc[0, "AGEP"] = 16
    frame.loc[1, "PINCP"] = 100
    frame.loc[2, "WKHP"] = 0
    frame.loc[3, "PWGTP"] = 0
    frame["PINCP"] = frame["PINCP"].astype("Int64")
    frame.loc[4, "PINCP"] = pd.NA
    frame["WKHP"] = frame["WKHP"].astype("Int64")
    frame.loc[5, "WKHP"] = pd.NA
    frame.loc[6, "PINCP"] = 50_000
    frame.loc[7, "PINCP"] = 50_001
    place(tmp_path, frame)
    bunch = fetch_acs_income(["WY"], data_home=tmp_path)
    assert bunch.target.tolist() == [0, 1]
    assert (bunch.target.name, bunch.pos_label, bunch.outcome) == ("PINCP", 1, "favorable")
    assert bunch.frame["SERIALNO"].tolist() == ["2018HU0000006", "2018HU0000007"]
    assert (bunch.n_read, len(bunch.data)) == (8, 2)
    assert "8 rows were read and 2 are left after the task's own filter" in " ".join(bunch.DESCR.split())
    assert "The share of 1 is 0.5000." in " ".join(bunch.DESCR.split())


TASKS = {
    "ACSIncome": ("PINCP", "favorable", lambda row: row.PINCP > 50_000),
    "ACSEmployment": ("ESR", "favorable", lambda row: row.ESR == 1),
    "ACSPublicCoverage": ("PUBCOV", "favorable", lambda row: row.PUBCOV == 1),
    "ACSMobility": ("MIG", "favorable", lambda row: row.MIG == 1),
    "ACSTravelTime": ("JWMNP", "adverse", lambda row: row.JWMNP > 20),
}
FILTERS = {
    "ACSIncome": lambda row: row.AGEP > 16 and row.PINCP > 100 and row.WKHP > 0 and row.PWGTP >= 1,
    "ACSEmployment": lambda row: True,
    "ACSPublicCoverage": lambda row: row.AGEP < 65 and row.PINCP <= 30_000,
    "ACSMobility": lambda row: 18 < row.AGEP < 35,
    "ACSTravelTime": lambda row: row.AGEP > 16 and row.PWGTP >= 1 and row.ESR == 1,
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_folktables_own_and_its_rows_stay_together(wyoming, task):
    bunch = fetch_acs(task, ["WY"], data_home=wyoming)
    target, outcome, positive = TASKS[task]
    raw = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=str(wyoming)).get_data(["WY"])
    data, label, group = getattr(folktables, task).df_to_pandas(raw)
    pd.testing.assert_frame_equal(bunch.data, data)
    assert bunch.target.tolist() == label[target].astype(int).tolist()
    assert bunch.sensitive_features["RAC1P"].tolist() == group["RAC1P"].tolist()
    assert (bunch.task, bunch.target.name, bunch.outcome) == (task, target, outcome)
    assert bunch.feature_names == list(getattr(folktables, task).features) == list(bunch.data)
    # Beside folktables' own: the rule in words, row by row, on frame, which must be aligned with data and target.
    rows = [row for row in raw.itertuples() if FILTERS[task](row)]
    assert bunch.frame["SERIALNO"].tolist() == [row.SERIALNO for row in rows]
    assert bunch.target.tolist() == [int(positive(row)) for row in rows]
    assert 0 < bunch.target.mean() < 1
    for name in bunch.feature_names:  # an empty cell is 0 in data and missing in frame
        assert bunch.data[name].tolist() == bunch.frame[name].fillna(0).tolist()
    assert f"{len(raw):,} rows were read and {len(rows):,} are left" in " ".join(bunch.DESCR.split())
    assert acs.TASKS[task].filter in " ".join(bunch.DESCR.split())


def test_audit_takes_the_bunch_as_it_is(wyoming):
    bunch = fetch_acs("ACSTravelTime", "WY", data_home=wyoming, as_labels=True)
    options = {name: bunch[name] for name in ("sensitive_features", "pos_label", "outcome", "reference")}
    made = audit(bunch.target, bunch.target, metrics=["selection_rate"], intersections=None, **options)
    assert {f.reference for f in made.findings if f.reference is not None} <= {"Male", "White"}
    men = bunch.target[bunch.sensitive_features["SEX"] == "Male"].mean()
    assert next(f.value for f in made.findings if f.group == "Male") == pytest.approx(men)


def test_density_draws_rows_by_seed_and_leaves_the_global_generator_alone(wyoming):
    random.seed(12)
    expected = random.random()
    random.seed(12)
    drawn = [fetch_acs_income("WY", density=0.4, random_state=seed, data_home=wyoming) for seed in (3, 3, 4)]
    assert random.random() == expected
    assert drawn[0].frame.equals(drawn[1].frame)
    assert not drawn[0].frame.equals(drawn[2].frame)
    n = drawn[0].n_read
    assert abs(n - 0.4 * 300) < 5 * math.sqrt(300 * 0.4 * 0.6)
    own = folktables.ACSDataSource("2018", "1-Year", "person", root_dir=str(wyoming))
    assert n == len(own.get_data(["WY"], density=0.4, random_seed=3))
    assert "a draw of about 0.4 of the files' rows, random_state=3" in " ".join(drawn[0].DESCR.split())
    assert "a draw of" not in fetch_acs_income("WY", data_home=wyoming).DESCR


def test_weights_are_those_of_the_kept_rows(wyoming):
    bunch = fetch_acs_income("WY", data_home=wyoming, weights=True)
    assert bunch.sample_weight.tolist() == bunch.frame["PWGTP"].tolist()
    assert list(bunch.replicate_weights) == REPLICATES
    kept = people().set_index("SERIALNO").loc[bunch.frame["SERIALNO"]]
    assert (bunch.replicate_weights.to_numpy() == kept[REPLICATES].to_numpy()).all()
    assert bunch.replicate_weights.index.equals(bunch.target.index)
    assert "sample_weight" not in fetch_acs_income("WY", data_home=wyoming)


def test_weights_have_one_name_in_all_years(tmp_path):
    place(tmp_path, people(year=2016), year=2016)  # pwgtp1 to pwgtp80 in the file
    assert list(fetch_acs_income("WY", 2016, data_home=tmp_path, weights=True).replicate_weights) == REPLICATES
    place(tmp_path, people().drop(columns=["PWGTP7", "PWGTP80"]))
    with pytest.raises(ValueError, match=r"file of 2018 lacks 2 of them, \['PWGTP7', 'PWGTP80'\] first"):
        fetch_acs_income("WY", data_home=tmp_path, weights=True)


# -------------------------------------------------------------------------------------------------------- years, labels
# The two codings as the data dictionaries of 2018 and 2019 word them, one pair a kind of relative.
RELATIVES = {
    "reference person": ([20], 0),
    "spouse": ([21, 23], 1),
    "unmarried partner": ([22, 24], 13),
    "biological child": ([25], 2),
    "adopted child": ([26], 3),
    "stepchild": ([27], 4),
    "sibling": ([28], 5),
    "parent": ([29], 6),
    "grandchild": ([30], 7),
    "parent-in-law": ([31], 8),
    "child-in-law": ([32], 9),
    "other relative": ([33], 10),
    "roommate": ([34], 12),
    "foster child": ([35], 14),
    "other nonrelative": ([36], 15),
    "institution": ([37], 16),
    "other group quarters": ([38], 17),
}


@pytest.mark.parametrize("kind", RELATIVES)
def test_relationship_of_later_years_reads_in_the_older_coding(kind):
    newer, older = RELATIVES[kind]
    found, unknown = codes.recode(pd.Series(newer), codes.RENAMED["RELP"][1])
    assert found.tolist() == [older] * len(newer)
    assert unknown == {}


def test_every_recoded_code_is_known_and_keeps_its_meaning():
    newer = sorted(codes.RENAMED["RELP"][1])
    assert newer == list(range(20, 39)) == sorted(code for pair, _ in RELATIVES.values() for code in pair)
    assert set(codes.LABELS["RELP"]) - set(codes.RENAMED["RELP"][1].values()) == {11}  # roomers, no longer told apart
    travel = codes.RENAMED["JWTR"][1]
    assert sorted(travel) == sorted(travel.values()) == sorted(codes.LABELS["JWTR"])
    words = {code: codes.LABELS["JWTR"][travel[code]] for code in (3, 4, 5)}
    assert words == {3: "Subway or elevated", 4: "Railroad", 5: "Streetcar"}


@pytest.mark.parametrize(("year", "task"), [(2019, "ACSIncome"), (2019, "ACSTravelTime"), (2023, "ACSTravelTime")])
def test_later_years_have_the_same_features(tmp_path, year, task):
    place(tmp_path, people(year=year), year=year)
    bunch = fetch_acs(task, "WY", year, data_home=tmp_path)
    assert bunch.feature_names == list(getattr(folktables, task).features)
    expected = [codes.RENAMED["RELP"][1][code] for code in bunch.frame["RELSHIPP"]]
    assert bunch.data["RELP"].tolist() == expected
    assert f"RELP is made from RELSHIPP, which the files of {year} have in its place." in bunch.DESCR
    assert ("ST is made from STATE" in bunch.DESCR) == (year == 2023)
    assert bunch.unknown_codes == {}


def test_neither_name_of_a_column_is_an_error_that_names_it_and_the_year(tmp_path):
    place(tmp_path, people(year=2021).drop(columns="RELSHIPP"), year=2021)
    with pytest.raises(ValueError, match=r"ACSIncome needs the columns \['RELP'\].*of 2021.*nor \['RELSHIPP'\]"):
        fetch_acs_income("WY", 2021, data_home=tmp_path)
    assert len(fetch_acs("ACSPublicCoverage", "WY", 2021, data_home=tmp_path).data)  # does not need it


def test_unknown_relationship_is_kept_counted_and_warned_of(tmp_path):
    frame = people(year=2021).assign(AGEP=40, PINCP=1000, WKHP=40, PWGTP=1)
    frame["RELSHIPP"] = [39] * 7 + [20] * 293
    place(tmp_path, frame, year=2021)
    with pytest.warns(UserWarning, match=r"RELSHIPP: 39 \(7\)"):
        bunch = fetch_acs_income("WY", 2021, data_home=tmp_path)
    assert bunch.unknown_codes == {"RELSHIPP": {39: 7}}
    assert bunch.data["RELP"].value_counts().to_dict() == {0: 293, 39: 7}


def test_words_stand_for_codes_row_by_row(wyoming):
    coded, worded = (fetch_acs_income("WY", data_home=wyoming, as_labels=flag) for flag in (False, True))
    assert coded.reference == {"SEX": 1, "RAC1P": 1}
    assert worded.reference == {"SEX": "Male", "RAC1P": "White"}
    by_hand = {1: "White", 2: "Black", 6: "Asian", 9: "Two or more races"}
    assert worded.sensitive_features["RAC1P"].tolist() == coded.sensitive_features["RAC1P"].map(by_hand).tolist()
    assert worded.data["SEX"].tolist() == coded.data["SEX"].map({1: "Male", 2: "Female"}).tolist()
    assert worded.data["SEX"].tolist() == worded.sensitive_features["SEX"].tolist()
    for name in ("AGEP", "SCHL", "OCCP", "POBP", "WKHP"):
        assert worded.data[name].equals(coded.data[name])
    for name in ("MAR", "COW", "RELP"):
        pairs = set(zip(coded.data[name], worded.data[name], strict=True))
        assert pairs == {(code, codes.LABELS[name][code]) for code in coded.data[name].unique()}
    assert worded.frame.equals(coded.frame)
    assert coded.unknown_codes == worded.unknown_codes == {}


def test_empty_cell_is_not_applicable_and_no_code(wyoming):
    bunch = fetch_acs("ACSEmployment", "WY", data_home=wyoming, as_labels=True)
    empty = bunch.frame["MIL"].isna()
    assert empty.sum() > 10
    assert (bunch.data["MIL"] == "Not applicable").equals(empty)
    assert not bunch.data.isna().any().any()


def test_code_without_a_word_stays_and_is_counted(tmp_path):
    frame = people().assign(AGEP=40, PINCP=1000, WKHP=40, PWGTP=1, MAR=[7] * 3 + [1] * 297)
    frame["RAC1P"] = [10, 10, 12] + [1] * 297
    place(tmp_path, frame)
    with pytest.warns(UserWarning, match=r"RAC1P: 10 \(2\), 12 \(1\); MAR: 7 \(3\)"):
        bunch = fetch_acs_income("WY", data_home=tmp_path, as_labels=True)
    assert bunch.unknown_codes == {"RAC1P": {10: 2, 12: 1}, "MAR": {7: 3}}
    assert bunch.sensitive_features["RAC1P"].value_counts().to_dict() == {"White": 297, "10": 2, "12": 1}
    assert bunch.data["MAR"].tolist()[:4] == ["7", "7", "7", "Married"]


def test_labels_are_one_word_a_code():
    for name, words in codes.LABELS.items():
        assert len(set(words.values())) == len(words), name
        assert codes.NOT_APPLICABLE not in words.values()
    assert len(codes.LABELS["RAC1P"]) == 9
    # Each code list is whole: consecutive, but for ancestry suppressed (8).
    assert all(
        sorted(words)[-1] - sorted(words)[0] == len(words) - 1 for n, words in codes.LABELS.items() if n != "ANC"
    )


def test_any_column_of_the_file_can_be_audited_by(wyoming):
    bunch = fetch_acs_income("WY", data_home=wyoming, sensitive_features=["HISP", "DIS", "SEX"], as_labels=True)
    assert list(bunch.sensitive_features) == ["HISP", "DIS", "SEX"]
    assert set(bunch.sensitive_features["DIS"]) == {"With a disability", "Without a disability"}
    assert set(bunch.sensitive_features["HISP"]) == {1, 2}
    assert bunch.reference == {"SEX": "Male"}
    assert list(fetch_acs_income("WY", data_home=wyoming, sensitive_features="MAR").sensitive_features) == ["MAR"]


# ------------------------------------------------------------------------------------------------------------ arguments
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "ACSIncom"}, r"task must be one of \['ACSIncome', 'ACSEmployment'.*got 'ACSIncom'"),
        ({"states": "wy"}, r"states must be 'all' or postal abbreviations.*got \['wy'\]"),
        ({"states": ["WY", "DC"]}, r"got \['DC'\]"),
        ({"states": []}, r"got \[\]"),
        ({"states": ["WY", "WY"]}, r"each once.*got \['WY', 'WY'\]"),
        ({"year": 2013}, "year must be a whole number from 2014; got 2013"),
        ({"year": "2018"}, "year must be a whole number from 2014; got '2018'"),
        ({"horizon": "1-year"}, r"horizon must be one of \['1-Year', '5-Year'\]; got '1-year'"),
        ({"density": 0}, r"density must be a share in \(0, 1\]; got 0"),
        ({"density": 1.1}, "got 1.1"),
        ({"density": float("nan")}, "got nan"),
        ({"random_state": None}, "random_state must be a whole number.*got None"),
        ({"base_url": "ftp://x", "year": 2015}, "url must start with http"),
        ({"timeout": 0, "year": 2015}, "timeout must be a positive number"),
        ({"sensitive_features": ["SEX", "RACE"]}, r"one or several columns of the 2018 1-Year file.*'RACE'"),
        ({"sensitive_features": []}, "one or several columns"),
        ({"sensitive_features": ["SEX", "SEX"]}, "each once"),
    ],
)
def test_senseless_arguments_are_refused_by_name(wyoming, arguments, message):
    options = {"task": "ACSIncome", "states": ["WY"], "data_home": wyoming} | arguments
    with pytest.raises(ValueError, match=message):
        fetch_acs(**options)


def test_a_filter_that_leaves_nobody_is_said(tmp_path):
    place(tmp_path, people().assign(AGEP=10))
    with pytest.raises(ValueError, match="no row of 300 is left by the filter of ACSIncome"):
        fetch_acs_income("WY", data_home=tmp_path)


def test_all_states_are_those_of_folktables(tmp_path):
    few = people(n=4).assign(AGEP=40, PINCP=1000, WKHP=40, PWGTP=1)
    for state, code in codes.STATES.items():
        place(tmp_path, few.assign(ST=int(code)), state)
    bunch = fetch_acs_income("all", data_home=tmp_path)
    assert bunch.frame["ST"].drop_duplicates().tolist() == [int(code) for code in codes.STATES.values()]
    assert bunch.DESCR.startswith("ACSIncome, American Community Survey 1-Year 2018, 51 states\n---")


# ------------------------------------------------------------------------------------------------------------ audit, CLI
@cache
def protocol_once():
    """Return the protocol of the made-up Wyoming: the model is fitted once."""
    with TemporaryDirectory() as home:
        place(Path(home), people())
        return acs_income_protocol(["WY"], data_home=home)


@pytest.fixture
def run(monkeypatch, capsys, wyoming):
    """Call the entry point as a shell does, with the made-up Wyoming in the cache."""
    monkeypatch.setenv("SKLEARN_ETHICLENS_HOME", str(wyoming))

    def protocol(**survey):
        return protocol_once() if survey == {"states": ["WY"]} else acs_income_protocol(**survey)

    monkeypatch.setattr(cli, "acs_income_protocol", protocol)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["sklearn-ethiclens", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call


def test_protocol_keeps_rows_words_and_references_together(wyoming):
    (protocol,) = protocol_once()
    bunch = fetch_acs_income(["WY"], data_home=wyoming, as_labels=True)
    assert protocol.sensitive_features.equals(bunch.sensitive_features)
    assert protocol.reference == {"SEX": "Male", "RAC1P": "White"}
    assert protocol.y_true.equals(bunch.target)
    assert protocol.y_pred.index.equals(bunch.target.index)
    assert set(protocol.y_pred) == {0, 1}
    assert (protocol.sha256, protocol.n_rows, protocol.outcome) == (bunch.sha256, len(bunch.target), "favorable")
    assert any(f"300 rows were read and {len(bunch.target)} are left" in note for note in protocol.notes)
    assert not acs_income_protocol(["WY"], data_home=wyoming, random_state=1)[0].y_pred.equals(protocol.y_pred)


def test_protocol_says_which_groups_have_no_word(tmp_path):
    frame = people().assign(AGEP=40, WKHP=40, PWGTP=1, PINCP=[40_000, 60_000] * 150, RAC1P=[10] * 5 + [1] * 295)
    place(tmp_path, frame)
    (protocol,) = acs_income_protocol(["WY"], data_home=tmp_path)
    assert "RAC1P has codes without a word, by rows: 10 (5)." in protocol.notes
    assert set(protocol.sensitive_features["RAC1P"]) == {"10", "White"}


def test_command_line_audits_a_state(run, wyoming):
    code, out, err = run(
        "audit", "acs-income", "--states", "WY", "--n-resamples", 200, "--json", "-", "--control", "MAR"
    )
    assert (code in (0, 1, 3), err) == (True, "")
    found = Audit.from_json(out)
    bunch = fetch_acs_income(["WY"], data_home=wyoming, as_labels=True)
    base = {f.group: f.value for f in found.findings if f.metric == "base_rate" and f.attribute == "SEX"}
    assert base == pytest.approx(bunch.target.groupby(bunch.sensitive_features["SEX"]).mean().to_dict())
    gaps = [f for f in found.findings if f.attribute == "RAC1P" and f.metric == "statistical_parity_difference"]
    assert {f.reference for f in gaps} == {"White"}
    said = json.loads(out)["provenance"]["data"]
    assert said["name"] == "ACSIncome, American Community Survey 1-Year 2018, WY, by sex and race"
    assert said["sha256"] == bunch.sha256
    assert "HistGradientBoostingClassifier" in said["model"]


def test_protocol_weighs_rows_by_a_column_of_the_file(wyoming):
    (plain,), (weighted,) = protocol_once(), acs_income_protocol(["WY"], data_home=wyoming, sample_weight="PWGTP")
    bunch = fetch_acs_income(["WY"], data_home=wyoming, weights=True)
    assert plain.sample_weight is None
    pd.testing.assert_series_equal(weighted.sample_weight, bunch.sample_weight)
    assert weighted.y_pred.equals(plain.y_pred)  # the model is the same
    assert any("counted unweighted" in note for note in plain.notes)
    assert not any("counted unweighted" in note for note in weighted.notes)
    assert any("weighted by PWGTP" in note for note in weighted.notes)
    with pytest.raises(
        ValueError, match="acs-income has no column 'WEIGHT' to weigh rows by; a person's weight is PWGTP"
    ):
        acs_income_protocol(["WY"], data_home=wyoming, sample_weight="WEIGHT")


def test_command_line_weighs_a_state(run, wyoming):
    words = ["audit", "acs-income", "--states", "WY", "--n-resamples", 200, "--fail-on", "none"]
    code, out, err = run(*words, "--weight", "PWGTP", "--json", "-")
    assert (code, err) == (0, "")
    found, bunch = Audit.from_json(out), fetch_acs_income(["WY"], data_home=wyoming, as_labels=True, weights=True)
    for attribute in ("SEX", "RAC1P"):
        for group, own in bunch.target.groupby(bunch.sensitive_features[attribute]):
            (base,) = (
                f.value for f in found.findings if (f.metric, f.attribute, f.group) == ("base_rate", attribute, group)
            )
            assert base == pytest.approx(DescrStatsW(own, bunch.sample_weight[own.index]).mean, abs=1e-9)
    assert found.provenance["data"]["sum_of_weights"] == bunch.sample_weight.sum()
    assert any("weighted by PWGTP" in note for note in found.provenance["data"]["notes"])
    code, _, err = run(*words, "--weight", "WEIGHT")
    assert (code, err.startswith("error: acs-income has no column 'WEIGHT'")) == (2, True)


def test_command_line_takes_the_replicate_weights_of_the_survey_from_a_downloaded_state(run, wyoming, monkeypatch):
    words = ["audit", "acs-income", "--states", "VT", "--fail-on", "none", "--weight", "PWGTP", "--json", "-"]
    with serving((200, archive("VT"))) as (url, _):
        monkeypatch.setattr(files, "BASE_URL", url)
        code, out, err = run(*words, "--replicate-weights", "PWGTP")
    assert (code, err) == (0, "")
    found = Audit.from_json(out)
    bunch = fetch_acs_income(["VT"], data_home=wyoming, as_labels=True, weights=True)
    survey = {"sample_weight": "PWGTP", "replicate_weights": "PWGTP"}
    (protocol,) = acs_income_protocol(["VT"], data_home=wyoming, **survey)
    pd.testing.assert_frame_equal(protocol.replicate_weights, bunch.replicate_weights)
    assert any("those of its replicates, PWGTP1 to PWGTP80" in note for note in protocol.notes)
    assert found.provenance["data"]["notes"] == list(protocol.notes)
    expected = audit(
        bunch.target,
        protocol.y_pred,
        sensitive_features=bunch.sensitive_features,
        reference=protocol.reference,
        sample_weight=bunch.sample_weight,
        replicate_weights=bunch.replicate_weights,
    )
    assert found.tally == expected.tally
    assert found.tally.design.deviations.shape[0] == 80
    pd.testing.assert_frame_equal(found.frame(), expected.frame())
    for f in found.findings:
        if (f.metric, f.attribute) == ("selection_rate", "SEX"):
            own = protocol.y_pred[bunch.sensitive_features["SEX"] == f.group]
            assert f.value == pytest.approx(DescrStatsW(own, bunch.sample_weight[own.index]).mean, abs=1e-9)


@pytest.mark.parametrize(
    ("weight", "replicates"), [(None, "PWGTP"), ("AGEP", "PWGTP"), ("PWGTP", "WGTP"), ("PWGTP1", "PWGTP1")]
)
def test_replicate_weights_are_those_of_the_weight_and_no_others(run, wyoming, weight, replicates):
    with pytest.raises(ValueError, match=f"replicate_weights of acs-income must be 'PWGTP'.*; got '{replicates}' with"):
        acs_income_protocol(["WY"], data_home=wyoming, sample_weight=weight, replicate_weights=replicates)
    words = ["--replicate-weights", replicates, *(["--weight", weight] if weight else [])]
    code, _, err = run("audit", "acs-income", "--states", "WY", *words)
    assert (code, err.startswith("error: replicate_weights of acs-income must be 'PWGTP'")) == (2, True)


def test_command_line_takes_states_years_and_other_columns(run, wyoming):
    for state in ("WY", "VT"):
        place(wyoming, people(state, 2021), state, 2021)
    words = ["audit", "acs-income", "--states", "WY,VT", "--year", 2021, "--n-resamples", 200]
    code, out, err = run(*words, "--sensitive", "DIS,AGEP", "--bands", "AGEP=40", "--json", "-")
    assert (code in (0, 1, 3), err) == (True, "")
    found = Audit.from_json(out)
    assert {f.group for f in found.findings if f.attribute == "DIS"} <= {
        "With a disability",
        "Without a disability",
        None,
    }
    assert {"AGEP < 40", "AGEP >= 40"} <= {f.group for f in found.findings}
    assert "2021, WY, VT" in found.provenance["data"]["name"]


def test_command_line_hands_codes_to_a_model_of_ones_own(run, wyoming, tmp_path):
    bunch = fetch_acs_income(["WY"], data_home=wyoming)
    model = GaussianNB().fit(bunch.data[["SEX", "WKHP"]], bunch.target)
    path = tmp_path / "own.pkl"
    path.write_bytes(pickle.dumps(model))
    words = ["audit", "acs-income", "--states", "WY", "--model", path, "--allow-pickle", "--sensitive", "SEX"]
    code, out, _ = run(*words, "--n-resamples", 200, "--json", "-")
    assert code in (0, 1, 3)
    found = Audit.from_json(out)
    decided = pd.Series(model.predict(bunch.data[["SEX", "WKHP"]]))
    rates = decided.groupby(bunch.data["SEX"].map({1: "Male", 2: "Female"})).mean().to_dict()
    assert {f.group: f.value for f in found.findings if f.metric == "selection_rate"} == pytest.approx(rates)
    assert set(found.section("counterfactuals").frame()["attribute"]) == {"SEX"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["acs-income", "--states", "XX"], "postal abbreviations"),
        (["acs-income", "--states", "WY", "--year", "2013"], "from 2014"),
        (["acs-income", "--states", "WY", "--sensitive", "nope"], "acs-income has no column 'nope'"),
        (["acs-income", "--states", "WY", "--protocol", "reference"], "--protocol must be 'default'"),
        (["german-credit", "--states", "WY"], "--states and --year are for acs-income; got SOURCE 'german-credit'"),
        (["german-credit", "--year", "2018"], "--states and --year are for acs-income"),
        (["german-credit", "--replicate-weights", "w"], "--replicate-weights is for files; the audit of german-credit"),
        (
            ["acs-income", "--states", "WY", "--clusters", "SERIALNO"],
            "--clusters is for files; the audit of acs-income",
        ),
    ],
)
def test_command_line_errors_are_one_line(run, words, message):
    code, out, err = run("audit", *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_command_line_downloads_and_says_what_went_wrong(run, wyoming, monkeypatch):
    with serving(DENIED) as (url, _):
        monkeypatch.setattr(files, "BASE_URL", url)
        code, _, err = run("audit", "acs-income", "--states", "VT")
    assert code == 2
    assert err.count("\n") == 1
    assert "status 403" in err
    assert files_in(wyoming) == ["2018/1-Year/psam_p56.csv"]


# ------------------------------------------------------------------------------------------------------------ real files
@pytest.mark.engines
def test_codes_of_real_rows_are_those_with_words(monkeypatch):
    """332,900 rows of 2018 in another layout, whose RAC1P is stored minus one: every code has a word, every word a row."""
    pytest.importorskip("pyarrow")
    if GIVEN:
        monkeypatch.setenv("SKLEARN_ETHICLENS_DATA", GIVEN)
    frame = pd.read_parquet(data_file("acs-income-validation.parquet"), columns=["COW", "MAR", "RELP", "SEX", "RAC1P"])
    frame["RAC1P"] += 1
    for name in frame:
        words, unknown = codes.label_codes(frame[name])
        assert unknown == {}
        # Nobody who passes the filter has last worked five years ago.
        assert set(words.unique()) == set(codes.LABELS[name].values()) - {"Unemployed"}
    shares = codes.label_codes(frame["RAC1P"])[0].value_counts(normalize=True)
    assert shares["White"] == pytest.approx(0.7792, abs=5e-5)
    assert shares.idxmin() == "Alaska Native"


def real_files():
    return sorted(Path(GIVEN).glob("20[0-9][0-9]/1-Year/psam_p[0-9][0-9].csv")) if GIVEN else []


@pytest.mark.parametrize("path", real_files() or [None], ids=lambda path: path and "-".join(path.parts[-3:]))
def test_real_file_holds_what_the_dictionary_says(path):
    if path is None:
        pytest.skip("$SKLEARN_ETHICLENS_DATA holds no ACS person file")
    state = {code: name for name, code in codes.STATES.items()}[path.stem.removeprefix("psam_p")]
    for task in TASKS:
        bunch = fetch_acs(
            task, state, int(path.parts[-3]), data_home=path.parents[2], as_labels=True, weights=True, density=0.5
        )
        assert 0.1 < bunch.target.mean() < 0.9
        assert {"White", "Black", "Asian"} <= set(bunch.sensitive_features["RAC1P"])
        assert len(bunch.sample_weight) == len(bunch.replicate_weights) == len(bunch.data)
        assert set(bunch.unknown_codes) <= {"FER", "ANC"}  # suppressed in some areas of 2018
