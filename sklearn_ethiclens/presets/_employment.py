"""Facts for hiring: the tables of New York City's Local Law 144, and adverse impact as the Uniform Guidelines have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._findings import Section
from sklearn_ethiclens._score_tally import ScoreBins, ScoreTally
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.inference._tests import two_proportion_test, two_proportion_ztest
from sklearn_ethiclens.metrics._comparisons import below, choose_reference, flip_flop, ratio, shortfall
from sklearn_ethiclens.metrics._rates import Floats, confusion_of, divide
from sklearn_ethiclens.metrics._scores import above_median_counts, median_score
from sklearn_ethiclens.policy import POLICIES
from sklearn_ethiclens.presets._rules import UNKNOWN
from sklearn_ethiclens.presets._tables import favorable_event, known_groups, labels_of

_TINY = 0.02  # a share of the rows; the Guidelines leave smaller groups aside (29 CFR 1607.15 A(2))
SELECTION = "ll144 selection"
SCORING = "ll144 scoring"
ADVERSE_IMPACT = "eeoc adverse impact"
_FOUR_FIFTHS = POLICIES["eeoc"].rules[0].threshold
_LISTED = 12  # categories named in a sentence
_HEADINGS = {  # of the rule's tables, by what a column of such categories is called
    "sex": "sex categories",
    "race": "race/ethnicity categories",
    "ethnicity": "race/ethnicity categories",
    "race_ethnicity": "race/ethnicity categories",
    "race/ethnicity": "race/ethnicity categories",
}


# --------------------------------------------------------------------------------------------------------------- LL144
@dataclass(frozen=True)
class _Categories:
    """The categories of one table: how many rows, how many of them counted, and the ratio to the highest rate."""

    name: str
    labels: list[Any]
    n: NDArray[np.int64]
    count: NDArray[np.int64]
    rate: Floats
    known: NDArray[np.bool_]
    min_share: float

    @property
    def share(self) -> Floats:
        """Each category's share of the rows whose category is known."""
        return self.n / max(1, int(self.n[self.known].sum()))

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which categories have an impact ratio."""
        return self.known & (self.share >= self.min_share - 1e-12)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the table; an unknown category has its number only."""
        compared = self.compared
        at = choose_reference(self.rate, self.n, compared & (self.n > 0), self.known)
        ratios = ratio(self.rate, self.rate[at])
        for i, label in enumerate(self.labels):
            n, count, rate = int(self.n[i]), int(self.count[i]), float(self.rate[i])
            if not self.known[i]:
                yield self.name, label, n, None, None, None, "unknown"
            elif not compared[i]:
                yield self.name, label, n, count, rate, None, f"under {self.min_share:.0%}"
            else:
                yield self.name, label, n, count, rate, float(ratios[i]), "highest" if i == at else ""

    def left_out(self, rate_words: str) -> list[str]:
        """Return the categories that have no impact ratio for their size, with number, share and rate."""
        return [
            f"{show(self.labels[i])} in {self.name}, n = {int(self.n[i])}, {self.share[i]:.2%} of the data, {rate_words} "
            f"{self.rate[i]:.3f}"
            for i in np.flatnonzero(self.known & ~self.compared)
        ]

    def unknown(self) -> str:
        """Return how many rows have no known category; empty if none."""
        n = int(self.n[~self.known].sum())
        return f"{n} in {self.name}" if n else ""


def ll144_asks(audit: Any) -> tuple[str, ...]:
    """Return what the rule asks for, and what of it an audit has."""
    tables = ", ".join(_table_name(attributes) for attributes in _tables(audit))
    weighted = audit.tally.scores is not None and audit.tally.weights is not None
    return (
        f"The rule asks for rates and impact ratios by sex, by race/ethnicity and by their intersection; here: {tables}.",
        f"It asks for an independent auditor (5-301), an audit of the year before use (20-871), historical data, or test data "
        f"with the reason (5-302), and the publication of a summary on the website of the employer or agency (5-303): {UNKNOWN}.",
        "It sets no limit that a rate or ratio must keep.",
        *(("Scoring rates are left out: they count rows, and these are weighted.",) if weighted else ()),
    )


def ll144_facts(audit: Any) -> tuple[Section, ...]:
    """Return selection rates and, of scores, scoring rates, with their impact ratios."""
    scores = audit.tally.scores
    scored = isinstance(scores, ScoreTally) and scores.weights is None
    sections = [] if _decided_by_median(audit) else [_selection(audit)]
    return (*sections, _scoring(audit)) if scored else tuple(sections)


def _decided_by_median(audit: Any) -> bool:
    """Tell whether the decisions are the scores above the median, so that one table says both."""
    scores = audit.tally.scores
    if isinstance(scores, ScoreBins):  # stored: the scores are gone, what was found of them is kept
        keys = {section.key for section in audit.sections}
        return SCORING in keys and SELECTION not in keys
    if scores is None or scores.weights is not None:
        return False
    selected = confusion_of(audit.tally).rows("selected")
    return bool(np.array_equal(selected, above_median_counts(scores)))


def _tables(audit: Any) -> list[tuple[str, ...]]:
    """Return what there is a table of: single attributes, pairs, and whatever else was audited."""
    names = audit.tally.audited
    return list(dict.fromkeys([*((name,) for name in names), *combinations(names, 2), *audit.plan]))


def _table_name(attributes: Sequence[str]) -> str:
    """Return the rule's heading of a table, with the columns where it does not name them."""
    if len(attributes) > 1:
        return f"intersectional categories ({show(tuple(attributes))})"
    (name,) = attributes
    heading = _HEADINGS.get(name.lower(), f"{name} categories")
    return heading if heading.startswith(f"{name} ") else f"{heading} ({name})"


def _selection(audit: Any) -> Section:
    found = []
    for attributes in _tables(audit):
        tally = audit.tally.marginal(attributes)
        confusion = confusion_of(tally, audit.outcome)
        found.append(_categories(audit, tally, confusion.rows("favored"), confusion.rate("favorable_rate")))
    lines = (
        f"Selected: {favorable_event(audit)}. Selection rate: selected of all in the category. Impact ratio: the rate over that "
        f"of the most selected category of the table, neither rounded before (6 RCNY 5-300, 5-301(b)).",
        *_counted(found, "selection rate"),
    )
    columns = ("table", "category", "n", "selected", "selection_rate", "impact_ratio", "note")
    rows = tuple(row for one in found for row in one.rows())
    return Section(SELECTION, "Local Law 144: selection rates and impact ratios", lines, columns, rows)


def _scoring(audit: Any) -> Section:
    scores = audit.tally.scores
    found = []
    for attributes in _tables(audit):
        tally = audit.tally.marginal(attributes)
        count, n = above_median_counts(tally.scores), tally.rows.sum((1, 2))
        found.append(_categories(audit, tally, count, divide(count, n)))
    adverse = "" if audit.outcome == "favorable" else " A higher score here speaks for the adverse decision."
    lines = (
        f"Scoring rate: the share of a category with a score above {median_score(scores):.6g}, the median of all "
        f"{audit.tally.n_rows} scores.{adverse} Impact ratio: the rate over that of the highest scoring category of the table, "
        f"neither rounded before (6 RCNY 5-300, 5-301(c)).",
        *_counted(found, "scoring rate"),
    )
    columns = ("table", "category", "n", "above_median", "scoring_rate", "impact_ratio", "note")
    rows = tuple(row for one in found for row in one.rows())
    return Section(SCORING, "Local Law 144: scoring rates and impact ratios", lines, columns, rows)


def _categories(audit: Any, tally: Tally, count: Any, rate: Floats) -> _Categories:
    """Return the categories of a table; the policy ll144 says from which share on they are compared, also where changed."""
    policy = audit.policy if audit.policy.name == "ll144" else POLICIES["ll144"]
    name, n = _table_name(tally.attributes), tally.rows.sum((1, 2))
    return _Categories(
        name, labels_of(tally), n, np.asarray(count, np.int64), rate, known_groups(tally), policy.min_share
    )


def _counted(found: Sequence[_Categories], rate_words: str) -> tuple[str, str]:
    """Return who has no impact ratio for a small number, and who is in no calculation."""
    share = f"{found[0].min_share:.0%}"
    small = [words for one in found for words in one.left_out(rate_words)]
    more = f"; and {len(small) - _LISTED} more, in the table" if len(small) > _LISTED else ""
    unknown = [words for one in found if (words := one.unknown())]
    return (
        f"Under {share} of the data and left out of the impact ratios, as 5-301(d) allows with a reason given: "
        f"{'; '.join(small[:_LISTED])}{more}."
        if small
        else "No category is left out of the impact ratios.",
        f"Of unknown category, and not in these calculations: {'; '.join(unknown)}."
        if unknown
        else "No row is of an unknown category.",
    )


# ---------------------------------------------------------------------------------------------------------------- EEOC
def eeoc_facts(audit: Any) -> tuple[Section, ...]:
    """Return adverse impact of each group against the one with the highest rate."""
    rows = [row for attribute, tally in audit.marginals().items() for row in _adverse_impact(attribute, tally, audit)]
    lines = [
        f"Selected: {favorable_event(audit)}. Each group against the one with the highest selection rate of its attribute, "
        f"marked highest (29 CFR 1607.4 D); below_4/5: the impact ratio is below four fifths, which exactly 80% is not.",
        "sd: the difference in standard deviations, pooled and without continuity correction (Castaneda v. Partida, 430 U.S. "
        "482, 1977), with its p-value; fisher_p: Fisher's exact test, where an expected count is below 5.",
        "shortfall: selections expected at the pooled rate of both groups minus actual ones; persons: the same to the nearest "
        "whole person, halves upward. one_more: one more selected here and one fewer in the highest group turn which rate is "
        "higher (Questions and Answers 21).",
        "Small numbers, a short period and choices of who counts as an applicant are matters that the Guidelines weigh and this "
        "table does not.",
    ]
    if audit.tally.weights is not None:
        lines.append(
            "Rates and tests allow for the weights; shortfall and one_more are of people counted, so there are none."
        )
    tiny = [
        f"{show(row[1])} ({row[0]}, n = {row[2]})"
        for row in rows
        if row[6] == "highest" and row[2] < _TINY * audit.tally.n_rows
    ]
    lines += [f"Highest, but under {_TINY:.0%} of the rows: {'; '.join(tiny)}."] if tiny else []
    unknown = [
        f"{n} in {show(attribute)}"
        for attribute, tally in audit.marginals().items()
        if (n := int(tally.rows[~known_groups(tally)].sum()))
    ]
    lines += [f"Of unknown group, not compared: {'; '.join(unknown)}."] if unknown else []
    columns = (
        *("attribute", "group", "n", "selected", "selection_rate", "impact_ratio", "below_4/5"),
        *("sd", "pvalue", "fisher_p", "shortfall", "persons", "one_more"),
    )
    return (Section(ADVERSE_IMPACT, "Adverse impact", tuple(lines), columns, tuple(rows)),)


def _adverse_impact(attribute: Any, tally: Tally, audit: Any) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each known group of an attribute."""
    confusion, known, labels = confusion_of(tally, audit.outcome), known_groups(tally), labels_of(tally)
    count, n = confusion.rows("favored"), confusion.rows("total")
    rates, total = confusion.rate("favorable_rate"), confusion.rows("total")
    effective = confusion.proportion("favorable_rate")
    at = choose_reference(rates, total, known & (total > 0), known)
    ratios = ratio(rates, rates[at])
    pair = (*effective, effective[0][at], effective[1][at])
    z, pvalue = two_proportion_ztest(*pair)
    tested = two_proportion_test(*pair)
    for i in np.flatnonzero(known):
        people = show(attribute), labels[i], int(n[i]), int(count[i]), float(rates[i]), float(ratios[i])
        if i == at:
            yield *people, "highest", *[None] * 6
            continue
        fisher = float(tested.pvalue[i]) if tested.test[i] == "fisher" else None
        numbers: tuple[Any, ...] = (None, None, None)
        if tally.weights is None:
            of_people = float(count[i]), float(n[i]), float(count[at]), float(n[at])
            short = shortfall(*of_people)
            numbers = short, floor(short + 0.5), _yes(flip_flop(*of_people))
        yield (
            *people,
            None if np.isnan(ratios[i]) else _yes(below(float(ratios[i]), _FOUR_FIFTHS)),
            float(z[i]),
            float(pvalue[i]),
            fisher,
            *numbers,
        )


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
