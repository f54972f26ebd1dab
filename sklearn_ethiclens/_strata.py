"""Groups compared within strata of control features and pooled over them, beside the crude comparison (Simpson's paradox)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklearn_ethiclens._findings import Reference, Section
from sklearn_ethiclens._tally import Group, Tally
from sklearn_ethiclens._validation import show
from sklearn_ethiclens.inference._intervals import miettinen_nurminen_ratio_interval, newcombe_interval
from sklearn_ethiclens.inference._stratified import (
    breslow_day_test,
    cmh_test,
    mantel_haenszel_difference,
    mantel_haenszel_ratio,
)
from sklearn_ethiclens.inference._tests import adjust_pvalues
from sklearn_ethiclens.metrics._comparisons import difference, ratio
from sklearn_ethiclens.metrics._rates import RATES, Confusion, Floats, PartOfWeighted, confusion_of

COLUMNS = (
    "attribute",
    "group",
    "reference",
    "metric",
    "crude",
    "crude_low",
    "crude_high",
    "adjusted",
    "low",
    "high",
    "pvalue",
    "pvalue_adjusted",
    "homogeneity",
    "strata",
    "left_out",
    "reverses",
)
_MOST_ROWS = 60  # of a table by stratum that a report can show
_SAID = 6  # comparisons that a sentence each is given to
_NAMED = 5  # strata named in a sentence
_LEAST_MARGIN = 5  # below it the CMH test is not trusted (Mantel and Fleiss 1980)


class _Measure(NamedTuple):
    """A comparison of two rates: its name in the catalogue, the rate, parity, and what a sentence calls it."""

    metric: str
    rate: str
    parity: float
    words: str


_MEASURES = (
    _Measure("disparate_impact", "favorable_rate", 1.0, "ratio of favourable rates"),
    _Measure("statistical_parity_difference", "favorable_rate", 0.0, "difference of favourable rates"),
    _Measure("true_positive_rate_difference", "true_positive_rate", 0.0, "difference of true positive rates"),
    _Measure("false_positive_rate_difference", "false_positive_rate", 0.0, "difference of false positive rates"),
)
_SPOKEN = ("disparate_impact", "true_positive_rate_difference", "false_positive_rate_difference")


@dataclass(frozen=True)
class _Block:
    """One attribute or intersection: tables by group and stratum."""

    attributes: tuple[str, ...]
    groups: tuple[Any, ...]
    reference: int
    strata: tuple[Any, ...]
    confusion: Confusion  # of shape (n_groups, n_strata)
    whole: Confusion  # of shape (n_groups,)


@dataclass(frozen=True)
class _Comparison:
    """One metric of one group against the reference: crude, and pooled over the strata."""

    measure: _Measure
    attributes: tuple[str, ...]
    group: Any
    reference: Any
    crude: float
    crude_low: float
    crude_high: float
    adjusted: float
    low: float
    high: float
    pvalue: float
    homogeneity: float
    n_strata: int
    left_out: tuple[Any, ...]
    rows_left_out: int
    margin: float

    @property
    def reverses(self) -> bool:
        """Whether crude and adjusted lie on different sides of parity."""
        return (self.crude - self.measure.parity) * (self.adjusted - self.measure.parity) < -1e-12

    @property
    def known(self) -> bool:
        """Whether there is a crude and an adjusted interval."""
        return not (np.isnan(self.crude_low) or np.isnan(self.low))

    @property
    def sides(self) -> tuple[int, int]:
        """The sides of parity that the crude and the adjusted interval lie on; 0 where it holds parity."""
        parity = self.measure.parity
        return _side(self.crude_low, self.crude_high, parity), _side(self.low, self.high, parity)


# ----------------------------------------------------------------------------------------------------------- sections
def strata_sections(
    tally: Tally, references: Sequence[Reference], *, outcome: str, confidence_level: float
) -> tuple[Section, ...]:
    """Return what controlling does to the comparisons of an audit.

    Parameters
    ----------
    tally : Tally
        With control features.
    references : sequence of Reference
        Whom each attribute and intersection is compared with.
    outcome : {"favorable", "adverse"}
        What a positive decision means.
    confidence_level : float
        Of the intervals; in (0, 1).

    Returns
    -------
    tuple of Section
        "strata", one row a comparison and metric, and "strata tables", one row a stratum and group, if they are few. None
        without control features.
    """
    if not tally.controls:
        return ()
    blocks = _blocks(tally, references, outcome)
    found = [one for block in blocks for one in _compare(block, tally.labelled, confidence_level)]
    adjusted, homogeneity = _adjusted(found)
    rows = [
        (
            show(one.attributes),
            one.group,
            one.reference,
            one.measure.metric,
            one.crude,
            one.crude_low,
            one.crude_high,
            one.adjusted,
            one.low,
            one.high,
            one.pvalue,
            float(pvalue),
            one.homogeneity,
            one.n_strata,
            len(one.left_out),
            one.reverses,
        )
        for one, pvalue in zip(found, adjusted, strict=True)
    ]
    columns, cells = _tables(blocks, tally.labelled)
    few = len(cells) <= _MOST_ROWS
    lines = _lines(tally, found, homogeneity, 1 - confidence_level)
    if not few:
        lines.append(f"The table by stratum has {len(cells)} rows: Audit.strata() returns it.")
    names = show(tally.controls)
    sections = [Section("strata", f"Within strata of {names}", tuple(lines), COLUMNS, tuple(rows))]
    if few:
        sections.append(Section("strata tables", f"Strata of {names}", (), columns, cells))
    return tuple(sections)


def strata_frame(tally: Tally, references: Sequence[Reference], *, outcome: str) -> pd.DataFrame:
    """Return one row a stratum and group that has rows in it.

    Parameters
    ----------
    tally, references, outcome
        As in :func:`strata_sections`.

    Returns
    -------
    DataFrame
        ``attribute, stratum, group, n, favorable_rate, disparate_impact``, and with labels ``true_positive_rate,
        false_positive_rate``. The ratio is against the reference within the stratum; NaN where it is undefined.
    """
    columns, rows = _tables(_blocks(tally, references, outcome), tally.labelled)
    return pd.DataFrame(list(rows), columns=list(columns))


def _tables(blocks: Sequence[_Block], labelled: bool) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the columns and rows of the table by stratum."""
    rates = ("favorable_rate", *(("true_positive_rate", "false_positive_rate") if labelled else ()))
    rows = []
    for block in blocks:
        n = block.confusion.rows("total").astype(int)
        values = [block.confusion.rate(name) for name in rates]
        values.insert(1, ratio(values[0], values[0][block.reference]))
        for k, stratum in enumerate(block.strata):
            for i, group in enumerate(block.groups):
                if n[i, k]:
                    shown = (float(value[i, k]) for value in values)
                    rows.append((show(block.attributes), stratum, group, int(n[i, k]), *shown))
    return ("attribute", "stratum", "group", "n", rates[0], "disparate_impact", *rates[1:]), tuple(rows)


# ------------------------------------------------------------------------------------------------------------- numbers
def _blocks(tally: Tally, references: Sequence[Reference], outcome: str) -> list[_Block]:
    """Return the tables by group and stratum of each audited attribute and intersection, in the order of its references."""
    strata = tally.marginal(tally.controls).groups
    stratum_at = {stratum: k for k, stratum in enumerate(strata)}
    blocks = []
    for reference in references:
        attributes = reference.attribute if isinstance(reference.attribute, tuple) else (reference.attribute,)
        margin = tally.marginal(attributes)
        groups = margin.groups
        group_at = {group: i for i, group in enumerate(groups)}
        joint = tally.marginal((*attributes, *tally.controls))
        width = len(attributes)
        row = np.array([group_at[key[:width]] for key in joint.groups], dtype=np.intp)
        column = np.array([stratum_at[key[width:]] for key in joint.groups], dtype=np.intp)
        sums, rows, squares = np.zeros((3, len(groups), len(strata), *tally.counts.shape[1:]))
        sums[row, column] = joint.counts
        whole = confusion_of(margin, outcome)
        confusion = Confusion(sums, outcome)
        if joint.weights is not None:
            rows[row, column], squares[row, column] = joint.weights.rows, joint.weights.squares
            confusion = PartOfWeighted(sums, rows, squares, whole)
        labels, named = tuple(map(_label, groups)), tuple(map(_label, strata))
        blocks.append(_Block(attributes, labels, labels.index(reference.group), named, confusion, whole))
    return blocks


def _compare(block: _Block, labelled: bool, confidence_level: float) -> list[_Comparison]:
    """Return every metric of every group against the reference, in the order of groups."""
    others = [i for i in range(len(block.groups)) if i != block.reference]
    by_metric = [
        _measure(block, measure, others, confidence_level)
        for measure in _MEASURES
        if labelled or not RATES[measure.rate].uses_labels
    ]
    return [found[i] for i in range(len(others)) for found in by_metric]


def _measure(block: _Block, measure: _Measure, others: list[int], confidence_level: float) -> list[_Comparison]:
    count, nobs = block.confusion.proportion(measure.rate)
    by_stratum = count[others], nobs[others], count[block.reference], nobs[block.reference]
    crude_count, crude_nobs = block.whole.proportion(measure.rate)
    whole = crude_count[others], crude_nobs[others], crude_count[block.reference], crude_nobs[block.reference]
    rates = block.whole.rate(measure.rate)[others], block.whole.rate(measure.rate)[block.reference]
    rows = block.confusion.rows(RATES[measure.rate].denominator)
    if measure.parity:
        crude, pooled = ratio(*rates), mantel_haenszel_ratio(*by_stratum, confidence_level=confidence_level)
        low, high = miettinen_nurminen_ratio_interval(*whole, confidence_level=confidence_level)
    else:
        crude = difference(*rates)
        pooled = mantel_haenszel_difference(*by_stratum, confidence_level=confidence_level)
        low, high = newcombe_interval(*whole, confidence_level=confidence_level)
    low, high = (np.where(np.isnan(crude), np.nan, end) for end in (low, high))
    test, homogeneity = cmh_test(*by_stratum), breslow_day_test(*by_stratum)
    found = []
    for j, i in enumerate(others):
        n, m = rows[i], rows[block.reference]
        silent = (n > 0) ^ (m > 0)  # strata without a row of either are no stratum of this comparison
        found.append(
            _Comparison(
                measure,
                block.attributes,
                block.groups[i],
                block.groups[block.reference],
                float(crude[j]),
                float(low[j]),
                float(high[j]),
                float(pooled.estimate[j]),
                float(pooled.low[j]),
                float(pooled.high[j]),
                float(test.pvalue[j]),
                float(homogeneity.pvalue[j]),
                int(pooled.n_strata[j]),
                tuple(block.strata[k] for k in np.flatnonzero(silent)),
                int((n + m)[silent].sum()),
                float(test.margin[j]),
            )
        )
    return found


def _adjusted(found: Sequence[_Comparison]) -> tuple[Floats, Floats]:
    """Return p-values of the CMH and of the homogeneity tests, each metric's a family for Holm's adjustment."""
    adjusted, homogeneity = np.full(len(found), np.nan), np.full(len(found), np.nan)
    for measure in _MEASURES:
        at = [i for i, one in enumerate(found) if one.measure is measure]
        adjusted[at] = adjust_pvalues([found[i].pvalue for i in at])
        homogeneity[at] = adjust_pvalues([found[i].homogeneity for i in at])
    return adjusted, homogeneity


def _side(low: float, high: float, parity: float) -> int:
    return int(low > parity) - int(high < parity)


def _label(group: Group) -> Any:
    return group[0] if len(group) == 1 else group


# --------------------------------------------------------------------------------------------------------------- words
def _lines(tally: Tally, found: Sequence[_Comparison], homogeneity: Floats, alpha: float) -> list[str]:
    names = show(tally.controls)
    n_strata = len(tally.marginal(tally.controls).groups)
    lines = [
        f"Groups are compared within each stratum of {names} ({n_strata} in all) and pooled over them (Mantel-Haenszel); "
        f"crude is without strata. The p-values are of the Cochran-Mantel-Haenszel test, adjusted over comparisons by Holm."
    ]
    if tally.weights is not None:
        lines.append(
            "Rates are weighted. What is pooled over strata are as many unweighted rows as each group's rows are worth."
        )
    spoken = [one for one in found if one.measure.metric in _SPOKEN]
    changed = [text for one in spoken if (text := _change(one, names))]
    known = sum(one.known for one in spoken)
    lines += _first(changed, "comparisons change under control")
    if known and not changed:
        lines.append(
            "Crude and adjusted intervals agree throughout: both hold parity, or both lie on the same side of it."
        )
    if known < len(spoken) or not spoken:
        lines.append(
            f"{len(spoken) - known} of {len(spoken)} comparisons cannot be adjusted: no stratum has both groups, or too few "
            f"events happened."
        )
    differ = [
        f"{_who(one)}, {one.measure.words}: the strata differ (homogeneity of odds ratios: p = {pvalue:.2g}), which one "
        f"pooled number hides; look at each stratum."
        for one, pvalue in zip(found, homogeneity, strict=True)
        if one.measure.metric in _SPOKEN and pvalue <= alpha
    ]
    lines += _first(differ, "comparisons differ between strata")
    lines += _first([_missing(one, tally.controls) for one in spoken if one.left_out], "comparisons leave strata out")
    n_thin = sum(one.margin < _LEAST_MARGIN and one.n_strata > 0 for one in spoken)
    if n_thin:
        lines.append(f"{n_thin} of {len(spoken)} tests rest on so few events that their p-values are rough.")
    lines.append(
        f"Controlling for what is itself an effect of the attribute (such as a rank or a pay grade it influenced) hides "
        f"disparity: say why {names} is no such effect before resting anything on the adjusted numbers."
    )
    return lines


def _change(one: _Comparison, names: str) -> str:
    """Return what controlling changes of a comparison, in a sentence; nothing where it changes nothing."""
    crude, adjusted = one.sides
    if crude == adjusted or not one.known:
        return ""
    said = (
        f"{_who(one)}: crude {one.measure.words} {one.crude:.2f} [{one.crude_low:.2f}, {one.crude_high:.2f}], within "
        f"{names} {one.adjusted:.2f} [{one.low:.2f}, {one.high:.2f}]: "
    )
    if crude == -adjusted:
        return f"{said}the direction reverses (Simpson's paradox)."
    if not crude:
        return f"{said}the gap is within {names}, and the crude comparison hides it."
    if one.low <= one.crude <= one.high:
        return f"{said}the adjusted interval holds parity and the crude value, so the data do not tell."
    return f"{said}the gap is between values of {names}, not within them."


def _missing(one: _Comparison, controls: tuple[str, ...]) -> str:
    named = "; ".join(_stratum(stratum, controls) for stratum in one.left_out[:_NAMED])
    more = f"; ... ({len(one.left_out)} in all)" if len(one.left_out) > _NAMED else ""
    n = len(one.left_out)
    return (
        f"{_who(one)}, {one.measure.words}: {n} {'stratum has' if n == 1 else 'strata have'} rows of one side only and "
        f"{'compares' if n == 1 else 'compare'} nothing ({one.rows_left_out} rows): {named}{more}."
    )


def _first(sentences: list[str], what: str) -> list[str]:
    """Return the first sentences, and how many there are in all."""
    more = [f"{len(sentences)} {what}; the table has all."] if len(sentences) > _SAID else []
    return sentences[:_SAID] + more


def _who(one: _Comparison) -> str:
    return f"{show(one.attributes)}={show(one.group)} against {show(one.reference)}"


def _stratum(stratum: Any, controls: tuple[str, ...]) -> str:
    values = stratum if len(controls) > 1 else (stratum,)
    return " & ".join(f"{name}={show(value)}" for name, value in zip(controls, values, strict=True))
