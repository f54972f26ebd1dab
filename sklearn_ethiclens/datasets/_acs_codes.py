"""What the codes of the American Community Survey's person files mean, and how its names and codes have changed."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

# folktables' states, by FIPS code: the 50 states and Puerto Rico, without the District of Columbia.
STATES: Mapping[str, str] = MappingProxyType(
    dict(
        pair.split(":")
        for pair in (
            "AL:01 AK:02 AZ:04 AR:05 CA:06 CO:08 CT:09 DE:10 FL:12 GA:13 HI:15 ID:16 IL:17 IN:18 IA:19 KS:20 KY:21 LA:22 "
            "ME:23 MD:24 MA:25 MI:26 MN:27 MS:28 MO:29 MT:30 NE:31 NV:32 NH:33 NJ:34 NM:35 NY:36 NC:37 ND:38 OH:39 OK:40 "
            "OR:41 PA:42 RI:44 SC:45 SD:46 TN:47 TX:48 UT:49 VT:50 VA:51 WA:53 WV:54 WI:55 WY:56 PR:72"
        ).split()
    )
)

_YES_NO = {1: "Yes", 2: "No"}
# Codes of the Census data dictionary, 2018. Codes of many values (OCCP, POBP, SCHL, PUMA) stay codes.
LABELS: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "SEX": {1: "Male", 2: "Female"},
        "RAC1P": {
            1: "White",
            2: "Black",
            3: "American Indian",
            4: "Alaska Native",
            5: "American Indian or Alaska Native",
            6: "Asian",
            7: "Native Hawaiian or Pacific Islander",
            8: "Some other race",
            9: "Two or more races",
        },
        "MAR": {1: "Married", 2: "Widowed", 3: "Divorced", 4: "Separated", 5: "Never married"},
        "COW": {
            1: "Private for-profit",
            2: "Private not-for-profit",
            3: "Local government",
            4: "State government",
            5: "Federal government",
            6: "Self-employed, not incorporated",
            7: "Self-employed, incorporated",
            8: "Family business without pay",
            9: "Unemployed",
        },
        "RELP": {
            0: "Reference person",
            1: "Husband or wife",
            2: "Biological child",
            3: "Adopted child",
            4: "Stepchild",
            5: "Brother or sister",
            6: "Father or mother",
            7: "Grandchild",
            8: "Parent-in-law",
            9: "Son-in-law or daughter-in-law",
            10: "Other relative",
            11: "Roomer or boarder",
            12: "Housemate or roommate",
            13: "Unmarried partner",
            14: "Foster child",
            15: "Other nonrelative",
            16: "Institutional group quarters",
            17: "Noninstitutional group quarters",
        },
        "CIT": {
            1: "Born in the US",
            2: "Born in a US territory",
            3: "Born abroad of American parents",
            4: "Naturalized",
            5: "Not a citizen",
        },
        "NATIVITY": {1: "Native", 2: "Foreign born"},
        "DIS": {1: "With a disability", 2: "Without a disability"},
        "DEAR": _YES_NO,
        "DEYE": _YES_NO,
        "DREM": _YES_NO,
        "GCL": _YES_NO,
        "FER": _YES_NO,
        "MIG": {1: "Same house", 2: "Abroad", 3: "Other house in the US"},
        "MIL": {1: "On active duty", 2: "On active duty before", 3: "Training only", 4: "Never served"},
        "ESR": {
            1: "At work",
            2: "Employed, not at work",
            3: "Unemployed",
            4: "Armed forces, at work",
            5: "Armed forces, not at work",
            6: "Not in labor force",
        },
        "ANC": {1: "Single", 2: "Multiple", 3: "Unclassified", 4: "Not reported", 8: "Suppressed"},
        "JWTR": {
            1: "Car, truck, or van",
            2: "Bus",
            3: "Streetcar",
            4: "Subway or elevated",
            5: "Railroad",
            6: "Ferryboat",
            7: "Taxicab",
            8: "Motorcycle",
            9: "Bicycle",
            10: "Walked",
            11: "Worked at home",
            12: "Other method",
        },
    }
)
NOT_APPLICABLE = "Not applicable"  # what an empty cell means: the Census fills in what was not answered
_SAME_FROM_6 = {code: code for code in range(6, 13)}
# What folktables asks for -> what later files call it, and how its codes read in the older coding.
RENAMED: Mapping[str, tuple[str, Mapping[int, int] | None]] = MappingProxyType(
    {
        "RELP": (
            "RELSHIPP",  # from 2019: spouses and partners by sex, roomers among "other nonrelative"
            {20: 0, 21: 1, 22: 13, 23: 1, 24: 13, 25: 2, 26: 3, 27: 4, 28: 5, 29: 6, 30: 7, 31: 8, 32: 9, 33: 10}
            | {34: 12, 35: 14, 36: 15, 37: 16, 38: 17},
        ),
        "JWTR": ("JWTRNS", {1: 1, 2: 2, 3: 4, 4: 5, 5: 3} | _SAME_FROM_6),  # from 2019: other names, other order
        "ST": ("STATE", None),  # from 2023: the same codes
    }
)


def label_codes(column: pd.Series) -> tuple[pd.Series, dict[int, int]]:
    """Return the words for a column of codes named as in ``LABELS``, and the rows of each code without a word."""
    known, present = LABELS[str(column.name)], column.notna().to_numpy()
    codes, place, counts = np.unique(column[present].to_numpy(int), return_inverse=True, return_counts=True)
    words = np.full(len(column), NOT_APPLICABLE, dtype=object)
    words[present] = np.array([known.get(code, str(code)) for code in codes.tolist()], dtype=object)[place]
    strange = {code: n for code, n in zip(codes.tolist(), counts.tolist(), strict=True) if code not in known}
    return pd.Series(words, column.index, name=column.name).astype(str), strange


def recode(column: pd.Series, codes: Mapping[int, int] | None) -> tuple[pd.Series, dict[int, int]]:
    """Return a column in the older coding; a code that it lacks is kept as it is, and counted."""
    if codes is None:
        return column.copy(), {}
    old = column.map(codes)
    strange = old.isna() & column.notna()
    return old.where(~strange, column), _counts(column[strange].astype(int))


def _counts(codes: pd.Series) -> dict[int, int]:
    values, counts = np.unique(codes.to_numpy(), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
