"""Make the bundled German Credit table from the raw Statlog file: ``python tools/make_german_credit.py RAW.csv``.

The raw file holds the codes of the UCI repository (``A11``, ``A12``, ...) under a header line. The labels are those of
Groemping (2019), who compared the published code table with the original German sources and found it wrong for
checking_status, credit_history, purpose, savings, personal_status, property, housing and foreign_worker.
Attributes published as numbers stay numbers; the meaning of the coded ones is in the description of the data set.
"""

import argparse
import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "sklearn_ethiclens" / "datasets" / "data" / "german_credit.csv"
RAW_SHA256 = "532082711a8ec4df65cf60775eb7d59d3a5e3458c5a88695630beffd96dfff86"

# (raw column, bundled column), in the order of the UCI attributes 1 to 20, then the label.
COLUMNS = (
    ("status", "checking_status"),
    ("month", "duration"),
    ("credit_history", "credit_history"),
    ("purpose", "purpose"),
    ("credit_amount", "credit_amount"),
    ("savings", "savings"),
    ("employment", "employment"),
    ("investment_as_income_percentage", "installment_rate"),
    ("personal_status", "personal_status"),
    ("other_debtors", "other_debtors"),
    ("residence_since", "residence_since"),
    ("property", "property"),
    ("age", "age"),
    ("installment_plans", "other_installment_plans"),
    ("housing", "housing"),
    ("number_of_credits", "number_of_credits"),
    ("skill_level", "job"),
    ("people_liable_for", "people_liable"),
    ("telephone", "telephone"),
    ("foreign_worker", "foreign_worker"),
    ("credit", "credit"),
)

LABELS = {
    "checking_status": {
        "A11": "no checking account",
        "A12": "< 0 DM",
        "A13": "0 to < 200 DM",
        "A14": ">= 200 DM or salary for at least 1 year",
    },
    "credit_history": {
        "A30": "delay in paying off in the past",
        "A31": "critical account or other credits elsewhere",
        "A32": "no credits taken or all paid back duly",
        "A33": "existing credits paid back duly till now",
        "A34": "all credits at this bank paid back duly",
    },
    "purpose": {
        "A40": "others",
        "A41": "car (new)",
        "A42": "car (used)",
        "A43": "furniture or equipment",
        "A44": "radio or television",
        "A45": "domestic appliances",
        "A46": "repairs",
        "A47": "education",
        "A48": "vacation",
        "A49": "retraining",
        "A410": "business",
    },
    "savings": {
        "A61": "unknown or no savings account",
        "A62": "< 100 DM",
        "A63": "100 to < 500 DM",
        "A64": "500 to < 1000 DM",
        "A65": ">= 1000 DM",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "< 1 year",
        "A73": "1 to < 4 years",
        "A74": "4 to < 7 years",
        "A75": ">= 7 years",
    },
    # The published table calls A94 "male married/widowed" and lists an A95 "female single" that never occurs.
    "personal_status": {
        "A91": "male divorced/separated",
        "A92": "female non-single or male single",
        "A93": "male married/widowed",
        "A94": "female single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "unknown or no property",
        "A122": "car or other",
        "A123": "building society savings or life insurance",
        "A124": "real estate",
    },
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "for free", "A152": "rent", "A153": "own"},
    "job": {
        "A171": "unemployed or unskilled, non-resident",
        "A172": "unskilled, resident",
        "A173": "skilled employee or official",
        "A174": "manager, self-employed or highly qualified",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    # The published table has these two the other way round; 37 foreign workers are the plausible reading.
    "foreign_worker": {"A201": "no", "A202": "yes"},
    "credit": {"1": "good", "2": "bad"},
}


def labelled(raw: bytes) -> bytes:
    """Return the bundled table, as the bytes of a CSV file with ``\\n`` line ends, from the bytes of the raw file."""
    found = hashlib.sha256(raw).hexdigest()
    if found != RAW_SHA256:
        raise ValueError(f"the raw file must have SHA-256 {RAW_SHA256}; got {found}. Use the 1,000-row Statlog file.")
    rows = csv.DictReader(io.StringIO(raw.decode("ascii"), newline=""))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for _, name in COLUMNS])
    for row in rows:
        writer.writerow([LABELS[name][row[old]] if name in LABELS else int(row[old]) for old, name in COLUMNS])
    return out.getvalue().encode("ascii")


def main(argv: Sequence[str] | None = None) -> None:
    """Write the bundled table."""
    parser = argparse.ArgumentParser(description="Make the bundled German Credit table from the raw Statlog file.")
    parser.add_argument("raw", type=Path, help="the raw file, UCI codes under a header line")
    parser.add_argument("output", type=Path, nargs="?", default=DEFAULT_OUTPUT, help="where to write (%(default)s)")
    arguments = parser.parse_args(argv)
    arguments.output.write_bytes(labelled(arguments.raw.read_bytes()))


if __name__ == "__main__":
    main()
