"""German Credit, bundled: who repaid a loan, with age as the attribute to audit by."""

import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from sklearn.utils import Bunch

_FILE = Path(__file__).parent / "data" / "german_credit.csv"
_ATTRIBUTES = ("age", "sex", "foreign_worker")
_SEX = {
    "male divorced/separated": "male",
    "male married/widowed": "male",
    "female single": "female",
}
_SEX_WARNING = (
    "sex cannot be recovered from personal_status: {n_missing} of {n_rows} rows are 'female non-single or male single' "
    "(Groemping 2019) and are missing in the column sex. The known rest is not a random part: every known woman is "
    "single and no known man is. Prefer sensitive_features='age'."
)

DESCR = """\
German Credit (Statlog), 1,000 loans of a bank in southern Germany, 1973 to 1975
--------------------------------------------------------------------------------

Every row is a credit that was granted. The label `credit` says how it was repaid ("good": 700, "bad": 300): it is not
the bank's decision, and applicants who were refused are not in the data. Bad credits were oversampled on purpose, 300
in 1,000, far above the bank's real rate, so that no rate here is a rate of any population.

The attribute is age, in the bands "age < 25" and "age >= 25" (149 and 851 rows). The literature uses two conventions
that differ by the 41 people of age 25: the ratio of the two groups' shares of good credit is .795 if the young are
`age <= 25` (`age_cut=26`) and .821 if they are `age < 25` (`age_cut=25`, the default). The first is below four fifths,
the second is not. Say which you use.

Sex cannot be recovered. The attribute `personal_status` joins sex and marital status, and its published code table is
wrong (Groemping 2019): A91 (50 rows) and A93 (548) are men, A94 (92) are women, A92 (310) is "female non-single or
male single", which cannot be decided, and A95 never occurs. Asking for sex works, but warns; the 310 rows are missing.

`foreign_worker` is swapped in the published code table: the 37 rows coded A202 are the foreign workers, and "yes" here.
That is too few rows to judge anything by.

The labels of checking_status, credit_history, purpose, savings, property and housing also follow Groemping (2019), not
the published table, which is wrong for each of them. Four columns look like numbers and are codes for bands:

* installment_rate, in percent of income: 1 is 35 or more, 2 is 25 to 35, 3 is 20 to 25, 4 is below 20
* residence_since, in years: 1 is below 1, 2 is 1 to 4, 3 is 4 to 7, 4 is 7 or more
* number_of_credits at this bank: 1 is 1, 2 is 2 or 3, 3 is 4 or 5, 4 is 6 or more
* people_liable: 1 is 0 to 2, 2 is 3 or more

Duration is in months. The credit amount is in DM, but is the result of a transformation that was never published.

Licence: CC BY 4.0. Hofmann, H. (1994), Statlog (German Credit Data), UCI Machine Learning Repository,
https://doi.org/10.24432/C5NC77. The codes were replaced by labels; see the licence file beside the data.

Groemping, U. (2019). South German Credit Data: Correcting a Widely Used Data Set. Report 4/2019, Reports in
Mathematics, Physics and Chemistry, Department II, Beuth University of Applied Sciences Berlin.
"""


def load_german_credit(*, sensitive_features: str | Sequence[str] = "age", age_cut: float = 25) -> Bunch:
    """Return the German Credit data, bundled with the package: 1,000 granted loans and whether they were repaid.

    The label is repayment, not the bank's decision, and bad credits are oversampled: read ``DESCR`` before a number
    from here is quoted.

    Parameters
    ----------
    sensitive_features : {"age", "sex", "foreign_worker"} or sequence of these, default="age"
        The attributes to audit by. Sex is undecidable for 310 rows, which are then missing, with a warning.
    age_cut : float, default=25
        Ages below it are one band, ages from it on the other. 26 gives the other convention of the literature,
        ``age <= 25``.

    Returns
    -------
    bunch : Bunch
        ``data`` (DataFrame of shape (1000, 20)), ``target`` (Series "credit": "good" or "bad"), ``frame`` (both),
        ``sensitive_features`` (DataFrame), ``reference`` (the usual reference group of each attribute),
        ``pos_label`` ("good"), ``outcome`` ("favorable"), ``feature_names``, ``target_names``, ``filename``,
        ``sha256`` (of that file) and ``DESCR``.

    Warns
    -----
    UserWarning
        If sex is asked for.

    Examples
    --------
    >>> from sklearn_ethiclens.datasets import load_german_credit
    >>> credit = load_german_credit()
    >>> credit.data.shape
    (1000, 20)
    >>> credit.sensitive_features["age"].value_counts().to_dict()
    {'age >= 25': 851, 'age < 25': 149}
    """
    names = _attributes(sensitive_features)
    content = _FILE.read_bytes()
    # No cell of the file is missing; without this, pandas would read words such as "None" as missing.
    frame = pd.read_csv(io.BytesIO(content), keep_default_na=False)
    data, target = frame.drop(columns="credit"), frame["credit"]
    groups, reference = {}, {}
    for name in names:
        if name == "age":
            groups[name], reference[name] = _age_bands(data["age"], age_cut)
        elif name == "sex":
            groups[name], reference[name] = data["personal_status"].map(_SEX), "male"
            n_missing = int(groups[name].isna().sum())
            warnings.warn(_SEX_WARNING.format(n_missing=n_missing, n_rows=len(data)), UserWarning, stacklevel=2)
        else:
            groups[name], reference[name] = data["foreign_worker"], "no"
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        sensitive_features=pd.DataFrame(groups),
        reference=reference,
        pos_label="good",
        outcome="favorable",
        feature_names=list(data.columns),
        target_names=["bad", "good"],
        filename=str(_FILE),
        sha256=hashlib.sha256(content).hexdigest(),
        DESCR=DESCR,
    )


def _attributes(asked: str | Sequence[str]) -> list[str]:
    names = [asked] if isinstance(asked, str) else list(asked)
    if not names or len(set(names)) < len(names) or not set(names) <= set(_ATTRIBUTES):
        raise ValueError(
            f"sensitive_features must be one or several of {list(_ATTRIBUTES)}, each once; got {asked!r}. "
            "Any other column can be taken from .data."
        )
    return names


def _age_bands(age: pd.Series, cut: float) -> tuple[pd.Series, str]:
    young, old = f"age < {cut:g}", f"age >= {cut:g}"
    below = age < cut
    if below.all() or not below.any():
        raise ValueError(
            f"age_cut must leave people on both sides: above {age.min()} and at most {age.max()}; got {cut!r}."
        )
    return below.map({True: young, False: old}), old
