"""What holds for every audit, in short: causes to look at, metrics by purpose, remedies, monitoring, and who signs."""

from __future__ import annotations

from sklearn_ethiclens.report._words import Facts, Items, Paragraph, Section, Table

GENERAL = "General rules, the same in every report; which of them apply is for people to decide who know the case."

CAUSES = (
    "Few rows of a group in training: a low true positive rate in one group points to under-representation.",
    "Labels that record a past practice, or are measured otherwise in one group: a high false positive rate points to noise "
    "in the labels, or to proxies.",
    "Features that stand in for the attribute (proxies), such as a postcode. Dropping the attribute does not remove them: "
    "audit by the attribute itself, not by what stands in for it.",
    "Base rates that differ in the population: then no model meets all parities at once.",
    "A threshold that suits the largest group.",
)

PURPOSES = (
    ("lending", "demographic parity where equal approval is the aim; else equal opportunity"),
    ("hiring", "demographic parity and predictive parity"),
    ("health", "equal opportunity and calibration"),
    ("justice", "false positive rates and calibration"),
    ("not sure", "by the harm, or all three:"),
    ("denied benefits", "equal opportunity"),
    ("false accusations", "false positive rates"),
    ("unequal treatment", "demographic parity"),
)
NOT_PARITY = "Demographic parity is the wrong aim where base rates differ for legitimate reasons."
ATTRIBUTES = (
    "Attributes to consider: race or ethnicity, gender, age (18-25, 26-35, 36-45, 46-55, 56-65, 65 and over), disability, "
    "national origin, religion, veteran status, sexual orientation. Hiring: at least race, gender, age and disability. Credit: "
    "race, gender and age."
)

REMEDIES = (
    ("1", "groups are out of balance in training", "collect data; reweight; oversample"),
    ("2", "features are proxies", "remove or decorrelate them"),
    ("3", "base rates differ for legitimate reasons", "document it; judge by equalized odds or calibration"),
    ("4", "a small gap persists", "thresholds by group, where the law allows them"),
    ("5", "nothing of this works", "do not deploy"),
)
BESIDE = (
    "Beside these: human review of borderline cases; monitoring an accepted gap; a way to appeal. Audit again after every step: "
    "a remedy for one metric can worsen another."
)

MONITORING = (
    ("daily", "rates by group", "a change of more than 3 points alerts; it is reviewed within 4 hours"),
    ("weekly", "true and false positive rates by group", "as labels arrive"),
    ("monthly", "the full audit", "the same policy, references and seed as here"),
    ("quarterly", "drift of the data", "retrain where there is any, and audit anew"),
)
GATE = (
    "In continuous integration let the audit report first without blocking, then block. The message of the gate lists the "
    "findings that failed."
)

APPROVERS = ("Owner of the system", "Reviewer", "Approver")
DECISIONS = "[ ] approved   [ ] approved under the conditions above   [ ] rejected"


def guidance() -> tuple[Section, ...]:
    """Return what may lie behind a gap, which metric suits which purpose, and ways to mitigate."""
    return (
        Section("Causes to look at", (Paragraph(GENERAL), Items(CAUSES)), key="causes"),
        Section(
            "Which metric for which purpose",
            (Facts(PURPOSES), Paragraph(NOT_PARITY), Paragraph(ATTRIBUTES)),
            key="purposes",
        ),
        Section(
            "Ways to mitigate",
            (Table(("step", "where", "do"), (("", REMEDIES),), 1, "Remedies, in this order"), Paragraph(BESIDE)),
            key="remedies",
        ),
    )


def monitoring() -> tuple[Table, Paragraph]:
    """Return what to watch after release, and how to gate."""
    return Table(("when", "what", "how"), (("", MONITORING),), 1, "Monitoring plan"), Paragraph(GATE)


def approval() -> Section:
    """Return the block to sign."""
    rows = tuple((role, "", "", "") for role in APPROVERS)
    table = Table(("role", "name", "date", "signature"), (("", rows),), 1, "Signatures", form=True)
    return Section("Approval", (Paragraph(f"Decision: {DECISIONS}"), table), key="approval")
