"""American Community Survey: folktables' tasks, filters and sampling on the person files; imported where it is used."""

import os
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill
from types import MappingProxyType
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from sklearn_ethiclens.datasets._acs_codes import LABELS, RENAMED, STATES, label_codes, recode
from sklearn_ethiclens.datasets._acs_files import Source, root_of, sha256_of_files

FIRST_YEAR = 2014  # the first that folktables reads
HORIZONS = ("1-Year", "5-Year")
N_REPLICATES = 80
_REFERENCE = {"SEX": 1, "RAC1P": 1}


@dataclass(frozen=True)
class _Task:
    """What a task of folktables asks, and what the answer means for a person."""

    question: str
    target_names: tuple[str, str]
    outcome: str
    favorable_outcome: str
    filter: str


TASKS: Mapping[str, _Task] = MappingProxyType(
    {
        "ACSIncome": _Task(
            "whether a working adult's income is above 50,000 dollars",
            ("PINCP <= 50,000", "PINCP > 50,000"),
            "favorable",
            "PINCP > 50,000: an income above 50,000 dollars",
            "older than 16, income above 100 dollars, at least one usual working hour a week, weight at least 1",
        ),
        "ACSEmployment": _Task(
            "whether a person is a civilian at work",
            ("ESR != 1", "ESR == 1"),
            "favorable",
            "ESR == 1: a civilian at work",
            "none: children and retired people are in the data",
        ),
        "ACSPublicCoverage": _Task(
            "whether a person of low income has public health insurance",
            ("PUBCOV != 1", "PUBCOV == 1"),
            "favorable",
            "PUBCOV == 1: covered by public health insurance",
            "younger than 65, income at most 30,000 dollars",
        ),
        "ACSMobility": _Task(
            "whether a young adult lives in the same house as a year ago",
            ("MIG != 1", "MIG == 1"),
            "favorable",
            "MIG == 1: the same house as a year ago, by convention; neither staying nor moving is a harm in itself",
            "older than 18 and younger than 35",
        ),
        "ACSTravelTime": _Task(
            "whether a person at work travels there for more than 20 minutes",
            ("JWMNP <= 20", "JWMNP > 20"),
            "adverse",
            "JWMNP <= 20: at most 20 minutes to work",
            "older than 16, civilian at work, weight at least 1",
        ),
    }
)

_DESCR = """\
{task}, American Community Survey {horizon} {year}, {states}
{ruler}

{rows}

{meaning}

The task is folktables' {task} (Ding, Hardt, Miller and Schmidt 2021), its features, filter and threshold unchanged. Row
counts are those of the files read here; the paper's may differ. An income is in dollars of its own year, not adjusted.

In `data`, an empty cell of the file is 0, as folktables has it, and cannot be told from a code 0; in `frame` it is
missing. Empty means that the question does not apply: the Census Bureau fills in what was not answered.
{renamed}
RAC1P is race without Hispanic origin (HISP, in `frame`): 1 White, 2 Black, 3 American Indian, 4 Alaska Native, 5 American
Indian or Alaska Native (a tribe named, or neither group), 6 Asian, 7 Native Hawaiian or other Pacific Islander, 8 some
other race, each alone, 9 two or more. Several are tiny in most states. SEX is 1 male, 2 female; nothing else was asked.

Rows are a sample with unequal weights. A share of rows estimates nothing about the population of a state; with the
weights PWGTP it does. The variance of a weighted estimate t is 4 / 80 times the sum of (t_r - t)**2 over the replicate
weights PWGTP1 to PWGTP80, some of which are negative. Several rows come from one household (SERIALNO).

Public use microdata of the US Census Bureau, public domain; the Bureau asks that no one try to identify a person.

Ding, F., Hardt, M., Miller, J., Schmidt, L. (2021). Retiring Adult: New Datasets for Fair Machine Learning. Advances in
Neural Information Processing Systems 34.
"""


def fetch_acs_income(
    states: str | Sequence[str] = ("CA",),
    year: int = 2018,
    horizon: str = "1-Year",
    density: float = 1.0,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download_if_missing: bool = True,
    sensitive_features: str | Sequence[str] = ("SEX", "RAC1P"),
    as_labels: bool = False,
    weights: bool = False,
    random_state: int = 0,
    timeout: float = 30.0,
    base_url: str | None = None,
) -> Bunch:
    """Return folktables' ACSIncome: whether a working adult's income is above 50,000 dollars. Label 1 is favourable.

    The call is ``fetch_acs("ACSIncome", ...)``.

    Parameters
    ----------
    states, year, horizon, density, data_home
        As in ``fetch_acs``.
    download_if_missing, sensitive_features, as_labels, weights, random_state, timeout, base_url
        As in ``fetch_acs``.

    Returns
    -------
    bunch : Bunch
        As of ``fetch_acs``.

    Examples
    --------
    >>> from sklearn_ethiclens.datasets import fetch_acs_income
    >>> bunch = fetch_acs_income(["WY"], as_labels=True)  # doctest: +SKIP
    >>> bunch.reference  # doctest: +SKIP
    {'SEX': 'Male', 'RAC1P': 'White'}
    """
    return fetch_acs(
        "ACSIncome",
        states,
        year,
        horizon,
        density,
        data_home,
        download_if_missing=download_if_missing,
        sensitive_features=sensitive_features,
        as_labels=as_labels,
        weights=weights,
        random_state=random_state,
        timeout=timeout,
        base_url=base_url,
    )


def fetch_acs(
    task: str,
    states: str | Sequence[str] = ("CA",),
    year: int = 2018,
    horizon: str = "1-Year",
    density: float = 1.0,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download_if_missing: bool = True,
    sensitive_features: str | Sequence[str] = ("SEX", "RAC1P"),
    as_labels: bool = False,
    weights: bool = False,
    random_state: int = 0,
    timeout: float = 30.0,
    base_url: str | None = None,
) -> Bunch:
    """Return a task of folktables on the American Community Survey, of one or several states.

    The person files of the states, ``<year>/<horizon>/psam_pNN.csv``, are looked for in the folder
    ``$SKLEARN_ETHICLENS_DATA``, which is never written to and must have all of them; else in ``data_home``, where
    those missing are downloaded to. A folder that folktables has filled serves as ``data_home``, and the other way round.

    Parameters
    ----------
    task : {"ACSIncome", "ACSEmployment", "ACSPublicCoverage", "ACSMobility", "ACSTravelTime"}
        The task; its filter and threshold are folktables'.
    states : str or sequence of str, default=("CA",)
        Postal abbreviations, or "all": the 50 states and Puerto Rico, which need much time and memory. The District
        of Columbia is not in folktables. Rows come in the order of the states.
    year : int, default=2018
        The survey, or the last of its five years; from 2014. There is no standard 1-Year file of 2020. From 2019 the
        files have RELSHIPP and JWTRNS in place of RELP and JWTR, from 2023 STATE in place of ST: the task then gets the
        older column, made from the newer, which stays in ``frame``.
    horizon : {"1-Year", "5-Year"}, default="1-Year"
        Which file.
    density : float, default=1.0
        Share of the rows to draw before the filter, in (0, 1]; drawn by folktables, row by row.
    data_home : str or path-like, default=None
        Root of the cache. By default ``$SKLEARN_ETHICLENS_HOME``, else ``~/.cache/sklearn_ethiclens``.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    sensitive_features : str or sequence of str, default=("SEX", "RAC1P")
        The attributes to audit by: any columns of the file.
    as_labels : bool, default=False
        Words in place of the codes of SEX, RAC1P, MAR, COW, RELP and others with few values, in ``data`` and in
        ``sensitive_features``; an empty cell is "Not applicable". A code without a word stays, as text, is counted in
        ``unknown_codes`` and warned of.
    weights : bool, default=False
        Also return ``sample_weight`` and ``replicate_weights``.
    random_state : int, default=0
        Seed of ``density``.
    timeout : float, default=30.0
        Seconds to wait for the connection and for each read; the download of one state may take sixty times as long.
    base_url : str, default=None
        Address of a mirror of https://www2.census.gov/programs-surveys/acs/data/pums.

    Returns
    -------
    bunch : Bunch
        ``data`` (DataFrame of the task's features, made by folktables), ``target`` (Series of 0 and 1, named as in
        folktables), ``frame`` (the filtered rows with all columns of the file), ``sensitive_features`` (DataFrame),
        ``reference`` (male and white, by code or word), ``pos_label`` (1), ``outcome``, ``favorable_outcome`` (in words),
        ``feature_names``, ``target_names``, ``task``, ``n_read`` (rows before the filter), ``unknown_codes`` (rows by
        column and code), ``filenames``, ``sha256`` (of the file; of several, that of their ``sha256sum`` listing) and
        ``DESCR``. With ``weights``, ``sample_weight`` (Series PWGTP) and ``replicate_weights`` (DataFrame of shape
        (n_rows, 80)).

    Raises
    ------
    OSError
        If a file is not there and may not, or cannot, be downloaded.
    ValueError
        If a file found is not the person file of its state, lacks a column of the task, or an argument has no meaning.

    Warns
    -----
    UserWarning
        If codes are found that the data dictionary of 2018 does not have.
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {list(TASKS)}; got {task!r}.")
    chosen, year = _states(states), _year(year)
    if horizon not in HORIZONS:
        raise ValueError(f"horizon must be one of {list(HORIZONS)}; got {horizon!r}.")
    if isinstance(density, bool) or not isinstance(density, Real) or not 0 < density <= 1:
        raise ValueError(f"density must be a share in (0, 1]; got {density!r}.")
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state must be a whole number, because folktables draws the rows; got {random_state!r}."
        )
    attributes = [sensitive_features] if isinstance(sensitive_features, str) else list(sensitive_features)

    source = Source(chosen, year, horizon)
    root = root_of(source, data_home, download_if_missing, timeout, base_url)
    frame = _read(source, root, density, int(random_state))
    n_read, problem = len(frame), _problem(task)
    frame, unknown, renamed = _with_older_columns(frame, [*problem.features, problem.target], year)
    _check_columns(frame, [*problem.features, problem.target, problem.group], task, source)
    absent = [name for name in attributes if name not in frame]
    if not attributes or absent or len(set(attributes)) < len(attributes):
        raise ValueError(
            f"sensitive_features must be one or several columns of the {year} {horizon} file, each once, as in "
            f"('SEX', 'RAC1P'); got {sensitive_features!r}."
        )
    # The filter is not public in folktables, and what it returns publicly has lost the other columns.
    kept = problem._preprocess(frame).reset_index(drop=True)
    if kept.empty:
        raise ValueError(
            f"no row of {n_read:,} is left by the filter of {task}; raise density={density!r} or add states."
        )
    data, target, _ = problem.df_to_pandas(kept)
    label = target[problem.target].astype(int)
    groups = kept[attributes].copy()
    reference: dict[str, Any] = {name: code for name, code in _REFERENCE.items() if name in groups}
    if as_labels:
        unknown |= _into_words(kept, data, groups)
        reference = {name: LABELS[name][code] for name, code in reference.items()}
    if unknown:
        said = "; ".join(
            f"{name}: " + ", ".join(f"{c} ({n:,})" for c, n in one.items()) for name, one in unknown.items()
        )
        warnings.warn(
            f"codes that the data dictionary of 2018 does not have, kept as they are (rows): {said}.",
            UserWarning,
            stacklevel=2,
        )
    paths = [source.path(root, state) for state in chosen]
    bunch = Bunch(
        data=data,
        target=label,
        frame=kept,
        sensitive_features=groups,
        reference={name: value for name, value in reference.items() if value in groups[name].unique()},
        pos_label=1,
        outcome=TASKS[task].outcome,
        favorable_outcome=TASKS[task].favorable_outcome,
        feature_names=list(data.columns),
        target_names=list(TASKS[task].target_names),
        task=task,
        n_read=n_read,
        unknown_codes=unknown,
        filenames=[str(path) for path in paths],
        sha256=sha256_of_files(paths),
        DESCR=_description(task, source, n_read, label, density, random_state, renamed),
    )
    if weights:
        bunch.sample_weight, bunch.replicate_weights = _weights(kept, source)
    return bunch


# ------------------------------------------------------------------------------------------------------------ arguments
def _states(asked: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(asked, str):
        asked = list(STATES) if asked == "all" else [asked]
    chosen = tuple(asked)
    unknown = [state for state in chosen if state not in STATES]
    if not chosen or unknown or len(set(chosen)) < len(chosen):
        found = f"got {unknown}" if unknown else f"got {list(chosen)}"
        raise ValueError(
            f"states must be 'all' or postal abbreviations, each once, as in ['WY', 'VT']; {found}. The 50 states and PR "
            f"are known."
        )
    return chosen


def _year(year: int) -> int:
    if isinstance(year, bool) or not isinstance(year, Integral) or year < FIRST_YEAR:
        raise ValueError(f"year must be a whole number from {FIRST_YEAR}; got {year!r}.")
    return int(year)


# ----------------------------------------------------------------------------------------------------------------- rows
def _read(source: Source, root: Path, density: float, random_state: int) -> pd.DataFrame:
    """Return the rows that folktables reads from its cache; nothing is downloaded here."""
    from folktables import ACSDataSource

    reader = ACSDataSource(str(source.year), source.horizon, "person", root_dir=str(root))
    state = random.getstate()  # folktables seeds the global generator
    try:
        frame = reader.get_data(states=list(source.states), density=density, random_seed=random_state, download=False)
    finally:
        random.setstate(state)
    return frame


def _problem(task: str) -> Any:
    import folktables

    return getattr(folktables, task)


def _check_columns(frame: pd.DataFrame, needed: Sequence[str], task: str, source: Source) -> None:
    absent = [name for name in dict.fromkeys(needed) if name not in frame]
    if absent:
        newer = [RENAMED[name][0] for name in absent if name in RENAMED]
        also = f" (nor {newer}, its name in later years)" if newer else ""
        raise ValueError(
            f"{task} needs the columns {absent}, which the {source.horizon} file of {source.year} does not have{also}. "
            f"Choose another year or horizon."
        )


def _with_older_columns(
    frame: pd.DataFrame, needed: Sequence[str], year: int
) -> tuple[pd.DataFrame, dict[str, dict[int, int]], list[str]]:
    """Return the rows with the columns that later files have under another name, unknown codes, and what was done."""
    added, unknown, done = [], {}, []
    for name, (newer, codes) in RENAMED.items():
        if name in needed and name not in frame and newer in frame:
            older, strange = recode(frame[newer], codes)
            added.append(older.rename(name))
            done.append(f"{name} is made from {newer}, which the files of {year} have in its place.")
            if strange:
                unknown[newer] = strange
    # joined at once: pandas warns of columns put one by one into a frame as wide as this
    return (pd.concat([frame, *added], axis=1) if added else frame), unknown, done


def _into_words(kept: pd.DataFrame, *tables: pd.DataFrame) -> dict[str, dict[int, int]]:
    """Put words in place of codes in tables of the kept rows, from the file's cells; return unknown codes."""
    unknown = {}
    for name in [name for name in LABELS if any(name in table for table in tables)]:
        words, strange = label_codes(kept[name])
        if strange:
            unknown[name] = strange
        for table in tables:
            if name in table:
                table[name] = words
    return unknown


def _weights(kept: pd.DataFrame, source: Source) -> tuple[pd.Series, pd.DataFrame]:
    own = {str(name).upper(): name for name in kept}  # pwgtp1 in the files before 2017
    wanted = [f"PWGTP{i}" for i in range(1, N_REPLICATES + 1)]
    absent = [name for name in wanted if name not in own]
    if absent:
        raise ValueError(
            f"weights=True needs PWGTP1 to PWGTP{N_REPLICATES}; the {source.horizon} file of {source.year} lacks "
            f"{len(absent)} of them, {absent[:3]} first. Use weights=False."
        )
    return kept["PWGTP"].copy(), kept[[own[name] for name in wanted]].set_axis(wanted, axis=1)


def _description(
    task: str, source: Source, n_read: int, label: pd.Series, density: float, random_state: int, renamed: Sequence[str]
) -> str:
    shown = ", ".join(source.states) if len(source.states) <= 10 else f"{len(source.states)} states"
    title = f"{task}, American Community Survey {source.horizon} {source.year}, {shown}"
    about = TASKS[task]
    sampled = (
        ""
        if density == 1
        else f" They are a draw of about {density:g} of the files' rows, random_state={random_state}: weights are to be "
        f"divided by {density:g} where totals matter."
    )
    rows = (
        f"{n_read:,} rows were read and {len(label):,} are left after the task's own filter ({about.filter}).{sampled}"
    )
    meaning = (
        f'The label says {about.question}; 1 is "{about.target_names[1]}". Favourable is {about.favorable_outcome}. The '
        f"share of 1 is {label.mean():.4f}."
    )
    return _DESCR.format(
        task=task,
        horizon=source.horizon,
        year=source.year,
        states=shown,
        ruler="-" * len(title),
        rows=fill(rows, 120),
        meaning=fill(meaning, 120),
        renamed="".join(f"\n{sentence}\n" for sentence in renamed),
    )
