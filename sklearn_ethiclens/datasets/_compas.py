"""COMPAS, downloaded: ProPublica's two-year recidivism table of Broward County, read without names."""

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from sklearn.utils import Bunch

from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens.datasets._download import DATA_VARIABLE, RemoteFile, download, get_data_home

CACHE_NAME = "compas-two-years.csv"
UPSTREAM = RemoteFile(
    url="https://raw.githubusercontent.com/propublica/compas-analysis/"
    "bafff5da3f2e45eca6c2d5055faad269defd135a/compas-scores-two-years.csv",
    n_bytes=2_546_489,
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
# Of the table in the canonical form of `_names_free`, so that quoting, line ends and "1" against "1.0" do not matter.
NAMES_FREE_SHA256 = "3bbc3288b268942fe3166bb6bfc0b6dbde3f31ed839ea636fffa1a6457d2c9f4"

_UPSTREAM_COLUMNS = (
    "id name first last compas_screening_date sex dob age age_cat race juv_fel_count decile_score juv_misd_count "
    "juv_other_count priors_count days_b_screening_arrest c_jail_in c_jail_out c_case_number c_offense_date "
    "c_arrest_date c_days_from_compas c_charge_degree c_charge_desc is_recid r_case_number r_charge_degree "
    "r_days_from_arrest r_offense_date r_charge_desc r_jail_in r_jail_out violent_recid is_violent_recid "
    "vr_case_number vr_charge_degree vr_offense_date vr_charge_desc type_of_assessment decile_score score_text "
    "screening_date v_type_of_assessment v_decile_score v_score_text v_screening_date in_custody out_custody "
    "priors_count start end event two_year_recid"
).split()
_PERSONAL = frozenset({"name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number"})
_KEPT = [i for i, name in enumerate(_UPSTREAM_COLUMNS) if name not in _PERSONAL]
_COLUMNS = [
    f"{name}.1" if name in _UPSTREAM_COLUMNS[:i] else name for i, name in ((i, _UPSTREAM_COLUMNS[i]) for i in _KEPT)
]
# Whole numbers with gaps upstream, which the names-free table holds as pandas writes them: "-1.0".
_FLOATS = frozenset({"days_b_screening_arrest", "c_days_from_compas", "r_days_from_arrest", "violent_recid"})
_MISSING = frozenset(
    "#N/A,#N/A N/A,#NA,-1.#IND,-1.#QNAN,-NaN,-nan,1.#IND,1.#QNAN,<NA>,N/A,NA,NULL,NaN,None,n/a,nan,null".split(",")
)

_FEATURES = [
    "sex",
    "race",
    "age",
    "age_cat",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
    "length_of_stay",
]
_ATTRIBUTES = ("race", "sex", "age_cat")
_REFERENCE = {"race": "Caucasian", "sex": "Male"}
FAVORABLE_OUTCOME = "two_year_recid == 0: not charged with a new crime within two years"
_WAY_OUT = f"Remove it, so that fetch_compas downloads it afresh, or put the content of {UPSTREAM.url} in its place."

DESCR = """\
COMPAS two-year recidivism, Broward County, Florida, 2013 and 2014 (ProPublica 2016)
------------------------------------------------------------------------------------

People scored by COMPAS after an arrest, and whether they were charged with a new crime within two years.

The outcome is adverse: `two_year_recid == 1` is what harms. The favourable outcome is `two_year_recid == 0`. In the
filtered table its rate is .4769 for African-American and .6091 for Caucasian people (ratio .7828), and .6485 for women
and .5205 for men: by sex, women are the favoured side. A ratio of rates of `two_year_recid == 1` is upside down.

`propublica_filter=True` keeps ProPublica's 6,172 of 7,214 rows (3,175 African-American, 2,103 Caucasian): the charge
within 30 days of the screening, a known outcome, no ordinary traffic offence, a score. ProPublica's published error
rates are on all 7,214 rows: with "medium or high" meaning `decile_score >= 5`, the false positive rate is .4485 for
African-American and .2345 for Caucasian people, the false negative rate .2799 and .4772.

Known error: the table keeps people who were charged again after the two-year cut-off date but drops those who were
not. 998 recidivists were screened after 1 April 2014, too late to be observed for two years (Barenstein 2019). This
inflates the base rate (.451 against .362 without them); false positive rates are the same either way, because all 998
are recidivists. 868 of them pass the filter.

Two groups are tiny after the filter: Native American (11) and Asian (31).

`data` holds what was known of a person, not the COMPAS scores nor anything that follows from the outcome; the whole
table is in `frame`. `length_of_stay` is derived: whole days from c_jail_in to c_jail_out, at least 0. The stay can end
after the screening, so it is not strictly a feature known beforehand.

These are real people. Names, birth dates and case numbers are dropped as the file is read and are never written; the
package ships no row of it. Public records, published by ProPublica at https://github.com/propublica/compas-analysis
without a licence. The label is an arrest record, not behaviour: who is arrested also depends on who is policed.

Angwin, J., Larson, J., Mattu, S., Kirchner, L. (2016). Machine Bias. ProPublica, 23 May 2016.
Barenstein, M. (2019). ProPublica's COMPAS Data Revisited. arXiv:1906.04711.
"""


def fetch_compas(
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    propublica_filter: bool = True,
    races: Sequence[str] | None = None,
    sensitive_features: str | Sequence[str] = ("race", "sex"),
    timeout: float = 30.0,
    url: str | None = None,
) -> Bunch:
    """Return ProPublica's COMPAS table: who was charged again within two years. Label 1 is the adverse outcome.

    The table is looked for in the folder ``$SKLEARN_ETHICLENS_DATA``, which is never written to, then in
    ``data_home``; then it is downloaded. What is kept on disk has no names, birth dates or case numbers.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of the kept file ``compas-two-years.csv``. By default ``$SKLEARN_ETHICLENS_HOME``, else
        ``~/.cache/sklearn_ethiclens``.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    propublica_filter : bool, default=True
        Keep the 6,172 rows of ProPublica's analysis; all 7,214 rows otherwise. Its published error rates are on all.
    races : sequence of str, default=None
        Keep only the rows of these races.
    sensitive_features : {"race", "sex", "age_cat"} or sequence of these, default=("race", "sex")
        The attributes to audit by.
    timeout : float, default=30.0
        Seconds to wait for the connection and for each read; the whole download may take ten times as long.
    url : str, default=None
        Address of a mirror of the upstream file. Its size and SHA-256 must be those of the pinned one.

    Returns
    -------
    bunch : Bunch
        ``data`` (DataFrame), ``target`` (Series "two_year_recid"), ``frame`` (the whole names-free table and
        ``length_of_stay``), ``sensitive_features`` (DataFrame), ``reference``, ``pos_label`` (1), ``outcome``
        ("adverse"), ``favorable_outcome`` (in words), ``feature_names``, ``target_names``, ``filename``, ``sha256``
        (of the names-free table) and ``DESCR``.

    Raises
    ------
    OSError
        If the file is not there and may not, or cannot, be downloaded.
    ValueError
        If a file found is not the expected table, or an argument has no meaning here.
    """
    attributes = _attributes(sensitive_features)
    table, filename = _table(data_home, download_if_missing, timeout, url)
    frame = pd.read_csv(io.BytesIO(table), keep_default_na=False, na_values=[""])
    frame["length_of_stay"] = _whole_days(frame["c_jail_in"], frame["c_jail_out"])
    if propublica_filter:
        frame = frame[_propublica_rows(frame)]
    if races is not None:
        frame = frame[_rows_of(frame["race"], races)]
    frame = frame.reset_index(drop=True)
    groups = frame[attributes].copy()
    return Bunch(
        data=frame[_FEATURES].copy(),
        target=frame["two_year_recid"].copy(),
        frame=frame,
        sensitive_features=groups,
        reference={name: _REFERENCE[name] for name in attributes if _REFERENCE.get(name) in set(groups[name])},
        pos_label=1,
        outcome="adverse",
        favorable_outcome=FAVORABLE_OUTCOME,
        feature_names=list(_FEATURES),
        target_names=["not charged again within two years", "charged again within two years"],
        filename=str(filename),
        sha256=hashlib.sha256(table).hexdigest(),
        DESCR=DESCR,
    )


def _attributes(asked: str | Sequence[str]) -> list[str]:
    names = [asked] if isinstance(asked, str) else list(asked)
    if not names or len(set(names)) < len(names) or not set(names) <= set(_ATTRIBUTES):
        raise ValueError(
            f"sensitive_features must be one or several of {list(_ATTRIBUTES)}, each once; got {asked!r}. "
            "Any other column can be taken from .frame."
        )
    return names


def _table(
    data_home: str | os.PathLike[str] | None, download_if_missing: bool, timeout: float, url: str | None
) -> tuple[bytes, Path]:
    """Return the names-free table and the file it is in."""
    given = os.environ.get(DATA_VARIABLE)
    given_path = Path(given, CACHE_NAME) if given else None
    if given_path is not None and given_path.is_file():
        return _checked(_names_free(given_path.read_bytes(), given_path), given_path), given_path

    path = get_data_home(data_home) / CACHE_NAME
    if path.is_file():
        content = path.read_bytes()
        table = _checked(_names_free(content, path), path)
        if table != content:
            # the upstream file, placed by hand: what stays on disk has no names
            write_whole(path, table)
        return table, path

    if not download_if_missing:
        first = given_path if given_path is not None else f"${DATA_VARIABLE} (not set)"
        raise OSError(
            f"COMPAS is neither at {first} nor at {path}. Call fetch_compas(download_if_missing=True), or place "
            f"{UPSTREAM.url} by hand at {path}"
        )
    remote = RemoteFile(url or UPSTREAM.url, UPSTREAM.n_bytes, UPSTREAM.sha256)
    content = download(remote, by_hand=path, timeout=timeout, total_timeout=10 * timeout)
    table = _checked(_names_free(content, remote.url), remote.url)
    write_whole(path, table)
    return table, path


def _names_free(content: bytes, where: object) -> bytes:
    """Return the table in canonical form: personal columns dropped, missing cells empty, minimal quotes.

    Both the upstream file and its names-free form are read. The cells are handled as text, because a round trip
    through a data frame would tie the bytes to the version of pandas.
    """
    try:
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        header = next(rows, [])
        if header == _UPSTREAM_COLUMNS:
            kept: Sequence[int] = _KEPT
        elif header == _COLUMNS:
            kept = range(len(_COLUMNS))
        else:
            missing = [name for name in _COLUMNS if name.removesuffix(".1") not in header]
            unknown = [name for name in header if name not in _UPSTREAM_COLUMNS + _COLUMNS]
            raise ValueError(
                f"{where} does not have the columns of compas-scores-two-years.csv in their order: {len(missing)} "
                f"missing {missing[:3]}, {len(unknown)} unknown {unknown[:3]}. {_WAY_OUT}"
            )
        out = io.StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(
                    f"{where}, line {rows.line_num}: expected {len(header)} cells, got {len(row)}. {_WAY_OUT}"
                )
            writer.writerow(_cells([row[i] for i in kept]))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{where} is not a CSV file in UTF-8 ({error}). {_WAY_OUT}") from error
    return out.getvalue().encode()


def _cells(row: Iterable[str]) -> Iterable[str]:
    for name, cell in zip(_COLUMNS, row, strict=True):
        if cell in _MISSING:
            yield ""
        elif name in _FLOATS and cell.lstrip("-").isdecimal():
            yield f"{cell}.0"
        else:
            yield cell


def _checked(table: bytes, where: object) -> bytes:
    found = hashlib.sha256(table).hexdigest()
    if found != NAMES_FREE_SHA256:
        raise ValueError(
            f"{where} is not the COMPAS two-year table: without names its SHA-256 must be {NAMES_FREE_SHA256}; got "
            f"{found}. {_WAY_OUT}"
        )
    return table


def _propublica_rows(frame: pd.DataFrame) -> pd.Series:
    return (
        frame["days_b_screening_arrest"].between(-30, 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & frame["score_text"].notna()  # "N/A" upstream
    )


def _rows_of(race: pd.Series, races: Sequence[str]) -> pd.Series:
    known = sorted(race.unique())
    asked = [races] if isinstance(races, str) else list(races)
    if not asked or not set(asked) <= set(known):
        raise ValueError(f"races must be one or several of {known}; got {races!r}.")
    return race.isin(asked)


def _whole_days(start: pd.Series, end: pd.Series) -> pd.Series:
    """Return the whole days between two columns of time stamps, at least 0; missing where either is."""
    form = "%Y-%m-%d %H:%M:%S"
    days = (pd.to_datetime(end, format=form) - pd.to_datetime(start, format=form)).dt.days
    return days.clip(lower=0)
