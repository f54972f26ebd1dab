"""A fitted classifier and a fitted probe -> CounterfactualAudit: one batch of rows for each alternative value."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd
import scipy
import sklearn
from numpy.typing import NDArray

from sklearn_ethiclens._progress import with_bar
from sklearn_ethiclens._tally import label_to_json
from sklearn_ethiclens._validation import MISSING, Column, as_scalar, canonical_key, encode_column, show
from sklearn_ethiclens._version import __version__
from sklearn_ethiclens.counterfactual._audit import BANDS, CounterfactualAudit, PairFinding
from sklearn_ethiclens.counterfactual._columns import Attribute, column_at, positions, read, take_rows
from sklearn_ethiclens.counterfactual._model import Answer, Model
from sklearn_ethiclens.counterfactual._paired_tally import PairedTally
from sklearn_ethiclens.counterfactual._proxies import ALL, find_proxies
from sklearn_ethiclens.counterfactual._strategies import get_strategy
from sklearn_ethiclens.exceptions import AttributeUnusedWarning
from sklearn_ethiclens.inference import adjust_pvalues, mcnemar_test, mean_interval, wilson_interval

CONFIDENCE_LEVEL = 0.95
ANY = "(any other value)"
_KEPT_ROWS = 100  # most affected ones, of each alternative
_NAMED_PROXIES = 3
NAN = float("nan")


@dataclass(frozen=True)
class Support:
    """Which values of a sensitive feature occurred with which values of another column: ``seen[value, level]``."""

    levels: tuple[Any, ...]
    seen: NDArray[np.bool_]

    def codes(self, column: Any, name: Any) -> NDArray[np.int64]:
        """Return the position of each row's level; the last, that of no level, for one that was not seen."""
        encoded = encode_column(column, f"column {name!r}")
        rank = {level: i for i, level in enumerate(self.levels)}
        table = np.array([rank.get(level, len(rank)) for level in encoded.levels], dtype=np.int32)
        return table[encoded.codes]

    def off(self, value: int, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the rows whose pair of values never occurred."""
        return np.append(~self.seen[value], True)[codes]


def audit_probe(
    probe: Any,
    estimator: Any,
    X: Any,
    y: Any = None,
    threshold: float = 0.0,
    pos_label: Any = None,
    *,
    search_proxies: bool = True,
) -> CounterfactualAudit:
    """Return the audit of a fitted classifier by a fitted probe; parameters as in :meth:`CounterfactualProbe.audit`."""
    if isinstance(threshold, bool) or not threshold >= 0:
        raise ValueError(f"threshold must be a number of at least 0; got {threshold!r}.")
    model = Model(estimator, pos_label)
    base, parts = _ask_all(probe, model, X, y, threshold)
    if not model.consistent and base.derived:  # predict disagreed after the base rows: all decisions must come from it
        base, parts = _ask_all(probe, model, X, y, threshold)
    pairs, tally = _findings(parts, model.pos_label, y is not None)
    changing = {part.attribute for part in parts if part.any_change}
    unused = tuple(dict.fromkeys(part.attribute for part in parts if part.attribute not in changing))
    missing, unknown = _left_out(probe, X)
    proxies: tuple[Mapping[str, Any], ...] = ()
    if search_proxies:
        proxies = _warn_of_unused(probe, X, unused, scored=base.scores is not None)
    seeded = probe.strategy != "flip" or bool(proxies)
    strategy = get_strategy(probe.strategy)
    return CounterfactualAudit(
        tally=tally,
        pairs=pairs,
        parameters={
            "strategy": strategy.name,
            "summary": strategy.summary,
            "assumes": strategy.assumes,
            "descendants": [str(c) for c in probe.descendants or ()] if probe.strategy == "adjust" else [],
            "recompute": [str(c) for c in probe.recompute or ()],
            "threshold": float(threshold),
            "pos_label": label_to_json(model.pos_label),
            "scores": model.kind if base.scores is not None else None,
            "decisions": "predict_proba" if model.kind == "predict_proba" and model.consistent else "predict",
            "confidence_level": CONFIDENCE_LEVEL,
            "random_state": probe._seed if seeded else None,
        },
        provenance=_provenance(tally, X.shape[0], estimator),
        missing=missing,
        unknown=unknown,
        unused=unused,
        proxies=proxies,
        support=tuple(row for part in parts for row in part.support),
        stale={str(name): [str(c) for c in stale] for name, stale in probe.stale_.items() if stale},
        affected=_affected(parts, X),
    )


def _left_out(probe: Any, X: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many rows have no value of each sensitive feature, and how many one not seen in ``fit`` that stays."""
    missing, unknown = {}, {}
    for name, attribute in probe._attributes.items():
        codes = positions(read(X, attribute), attribute.values)
        missing[str(name)] = int(np.count_nonzero(codes == -1))
        stays = not attribute.measured and not isinstance(probe._rule(name), tuple)
        unknown[str(name)] = int(np.count_nonzero(codes == -2)) if stays else 0
    return missing, unknown


@dataclass(frozen=True)
class _Part:
    """The answers to one alternative value, by the value the rows had."""

    attribute: str
    target: Any
    sources: tuple[Any, ...]
    ranks: tuple[int, ...]  # of the sources, in the order of the feature's values
    counts: NDArray[np.int64]
    moments: Mapping[str, NDArray[np.float64]]
    labelled: NDArray[np.int64]  # rows and flips by true label: (source, label, 2)
    off: NDArray[Any] | None  # rows and flips off support: (source, 2)
    support: list[Mapping[str, Any]]
    top: Mapping[str, NDArray[Any]]
    any_change: bool


def _ask_all(probe: Any, model: Model, X: Any, y: Any, threshold: float) -> tuple[Answer, list[_Part]]:
    """Return the answers to the rows as they are, and to each alternative value."""
    base = model.ask(X, base=True)
    truth = None if y is None else np.asarray(np.asarray(y).reshape(-1) == model.pos_label).astype(np.int8)

    def asked() -> Iterator[_Part | None]:
        for name, attribute in probe._attributes.items():
            column = read(X, attribute)
            cached = _cached_support(probe, X, name)
            for value, targets in probe._alternatives(attribute, column):
                yield _ask_alternative(
                    probe, model, X, attribute, column, value, targets, base, truth, cached, threshold
                )

    return base, [part for part in with_bar(asked(), None, "counterfactuals") if part is not None]


def _ask_alternative(
    probe: Any,
    model: Model,
    X: Any,
    attribute: Attribute,
    column: Column,
    value: Any,
    targets: Sequence[Any],
    base: Answer,
    truth: NDArray[np.int8] | None,
    cached: Mapping[int, NDArray[Any]] | None,
    threshold: float,
) -> _Part | None:
    """Return what one value changes in the rows that do not have it; None if there are none."""
    changed = [i for i, (a, b) in enumerate(zip(column.levels, targets, strict=True)) if a is not MISSING and a != b]
    occurring = set(np.unique(column.codes).tolist())
    changed = [i for i in changed if i in occurring]
    if not changed:
        return None
    sources = tuple(column.levels[i] for i in changed) if attribute.countable else (ANY,)
    table = np.full(len(column.levels), -1, dtype=np.int64)
    table[changed] = np.arange(len(changed)) if attribute.countable else 0
    source = table[column.codes]
    rows = np.flatnonzero(source >= 0)
    source = source[rows]
    taken = take_rows(X, rows)
    everywhere = np.ones(rows.size, dtype=bool)
    new = probe._set(taken, attribute, Column(column.codes[rows], column.levels), [(everywhere, value)])
    new = probe._recompute(new)
    answer = model.ask(new)
    k, rank = len(sources), {v: i for i, v in enumerate(attribute.values)}
    before, after = base.decisions[rows], answer.decisions
    flips = before != after
    counts = np.bincount(source * 4 + before * 2 + after, minlength=4 * k).reshape(k, 2, 2)
    size = counts.sum((1, 2))
    moments, change = {}, None
    if base.scores is not None and answer.scores is not None:
        change = _differences(base.scores[rows], answer.scores)
        moments = _moments(change, source, k, size, threshold)
    labelled = np.zeros((k, 2, 2), dtype=np.int64)
    if truth is not None:
        labelled[..., 0] = np.bincount(source * 2 + truth[rows], minlength=2 * k).reshape(k, 2)
        labelled[..., 1] = np.bincount(source[flips] * 2 + truth[rows[flips]], minlength=2 * k).reshape(k, 2)
    off, support = _off_support(probe, attribute, value, new, rows, source, flips, cached, k)
    return _Part(
        attribute=str(attribute.name),
        target=value,
        sources=sources,
        ranks=tuple(rank.get(source, len(rank)) for source in sources),
        counts=counts,
        moments=moments,
        labelled=labelled,
        off=off,
        support=support,
        top=_top(rows, source, sources, before, after, base.scores, answer.scores, change),
        any_change=bool(flips.any()) or (change is not None and bool((change != 0).any())),
    )


def _differences(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float64]:
    """Return the changes of scores; what lies within the rounding of their type is 0.

    The same row in another batch can differ in its last digits, since sums are taken in another order.
    """
    change = after.astype(np.float64) - before
    kind = np.result_type(before.dtype, after.dtype)
    tolerance = np.finfo(kind).eps ** 0.75 if kind.kind == "f" else 0.0
    change[np.abs(change) <= tolerance * np.maximum(1.0, np.abs(before))] = 0.0
    return change


def _moments(
    change: NDArray[np.float64], source: NDArray[Any], k: int, size: NDArray[Any], threshold: float
) -> dict[str, NDArray[np.float64]]:
    """Return the mean, variance and maximum of changes by source."""
    magnitude = np.abs(change)
    found = {}
    for name, values in (("mean", change), ("absolute", magnitude)):
        mean = np.bincount(source, weights=values, minlength=k) / size
        spread = np.bincount(source, weights=(values - mean[source]) ** 2, minlength=k)
        found[name] = mean
        found[f"{name}_variance"] = spread / np.maximum(size - 1, 1)
    largest = np.zeros(k)
    np.maximum.at(largest, source, magnitude)
    found["max"] = largest
    found["changed"] = np.bincount(source[magnitude > threshold], minlength=k) / size
    return found


def _cached_support(probe: Any, X: Any, name: Any) -> Mapping[int, NDArray[Any]] | None:
    """Return the codes of the columns that support is judged by, where the strategy leaves them as they are."""
    if probe.strategy != "flip":
        return None
    return {j: support.codes(column_at(X, j), probe._names[j]) for j, support in probe._support[name].items()}


def _off_support(
    probe: Any,
    attribute: Attribute,
    value: Any,
    new: Any,
    rows: NDArray[Any],
    source: NDArray[Any],
    flips: NDArray[np.bool_],
    cached: Mapping[int, NDArray[Any]] | None,
    k: int,
) -> tuple[NDArray[Any] | None, list[Mapping[str, Any]]]:
    """Return rows and flips off support by source, and the share of each column that is to blame."""
    known = probe._support[attribute.name]
    if not known:
        return None, []
    off = np.zeros(rows.size, dtype=bool)
    shares: list[Mapping[str, Any]] = []
    for j, support in known.items():
        codes = cached[j][rows] if cached is not None else support.codes(column_at(new, j), probe._names[j])
        bad = (
            support.off(attribute.values.index(value), codes) if value in attribute.values else np.ones(rows.size, bool)
        )
        if bad.any():
            off |= bad
            shares.append(
                {
                    "attribute": str(attribute.name),
                    "target": value,
                    "column": str(probe._names[j]),
                    "share": float(bad.mean()),
                }
            )
    shares.sort(key=lambda row: -row["share"])
    counts = np.stack([np.bincount(source[off], minlength=k), np.bincount(source[off & flips], minlength=k)], axis=1)
    return counts, shares


def _top(
    rows: NDArray[Any],
    source: NDArray[Any],
    sources: Sequence[Any],
    before: NDArray[Any],
    after: NDArray[Any],
    scores: NDArray[Any] | None,
    new_scores: NDArray[Any] | None,
    change: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Return the rows most affected by one alternative."""
    flips = (before != after).astype(float)
    key = flips if change is None else np.abs(change)
    at = np.arange(rows.size)
    if rows.size > _KEPT_ROWS:
        at = np.argpartition(-key, _KEPT_ROWS - 1)[:_KEPT_ROWS]
    at = at[key[at] > 0]
    blank = np.full(at.size, NAN)
    return {
        "position": rows[at],
        "source": source[at],
        "decision": before[at],
        "counterfactual": after[at],
        "score": blank if change is None or scores is None else scores[rows[at]].astype(float),
        "counterfactual_score": blank if change is None or new_scores is None else new_scores[at].astype(float),
        "change": blank if change is None else change[at],
        "key": key[at],
    }


def _affected(parts: Sequence[_Part], X: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the rows most affected over all alternatives, the largest change first."""
    index = X.index if isinstance(X, pd.DataFrame) else None
    found = []
    for order, part in enumerate(parts):
        top = part.top
        for i, position in enumerate(top["position"].tolist()):
            row = {
                "row": position if index is None else as_scalar(index[position]),
                "attribute": part.attribute,
                "source": part.sources[top["source"][i]],
                "target": part.target,
                "decision": int(top["decision"][i]),
                "counterfactual": int(top["counterfactual"][i]),
                "score": float(top["score"][i]),
                "counterfactual_score": float(top["counterfactual_score"][i]),
                "change": float(top["change"][i]),
            }
            flipped = row["decision"] != row["counterfactual"]
            found.append(((-round(float(top["key"][i]), 12), not flipped, order, canonical_key(row["row"])), row))
    return tuple(row for _, row in sorted(found, key=lambda one: one[0]))


def _findings(parts: Sequence[_Part], pos_label: Any, labelled: bool) -> tuple[tuple[PairFinding, ...], PairedTally]:
    """Return the findings of all pairs, source by source within a sensitive feature, and their tally."""
    attributes = list(dict.fromkeys(part.attribute for part in parts))
    flat = [(part, i) for part in parts for i in range(len(part.sources))]
    flat.sort(key=lambda entry: (attributes.index(entry[0].attribute), entry[0].ranks[entry[1]]))
    groups = tuple((part.attribute, part.sources[i], part.target) for part, i in flat)
    counts = np.array([part.counts[i] for part, i in flat], dtype=np.int64).reshape(-1, 2, 2)
    tally = PairedTally(groups, counts, pos_label)
    n = tally.n
    low, high = wilson_interval(tally.gained + tally.lost, n, confidence_level=CONFIDENCE_LEVEL)
    test = mcnemar_test(tally.gained, tally.lost)
    adjusted = adjust_pvalues(np.atleast_1d(test.pvalue), "holm")
    pairs = []
    for q, (part, i) in enumerate(flat):
        size, flipped = int(n[q]), int(tally.gained[q] + tally.lost[q])
        m = {name: float(values[i]) for name, values in part.moments.items()}
        ends = {}
        for name in ("mean", "absolute"):
            bounds = mean_interval(
                m.get(name, NAN), m.get(f"{name}_variance", NAN), size, confidence_level=CONFIDENCE_LEVEL
            )
            ends[name] = float(bounds.low), float(bounds.high)
        off = None if part.off is None else part.off[i]
        pairs.append(
            PairFinding(
                *groups[q],
                n=size,
                flip_rate=_share(flipped, size),
                flip_low=float(low[q]),
                flip_high=float(high[q]),
                to_positive=_share(int(tally.gained[q]), size),
                to_negative=_share(int(tally.lost[q]), size),
                flip_rate_positives=_share(*part.labelled[i, 1, ::-1].tolist()) if labelled else NAN,
                flip_rate_negatives=_share(*part.labelled[i, 0, ::-1].tolist()) if labelled else NAN,
                score_change_rate=m.get("changed", NAN),
                mean_change=m.get("mean", NAN),
                mean_change_low=ends["mean"][0],
                mean_change_high=ends["mean"][1],
                mean_absolute_change=m.get("absolute", NAN),
                mean_absolute_change_low=max(ends["absolute"][0], 0.0) if size > 1 else NAN,
                mean_absolute_change_high=ends["absolute"][1],
                max_change=m.get("max", NAN),
                test=str(np.atleast_1d(test.test)[q]),
                pvalue=float(np.atleast_1d(test.pvalue)[q]),
                pvalue_adjusted=float(adjusted[q]),
                off_support=NAN if off is None else _share(int(off[0]), size),
                flip_rate_on_support=NAN if off is None else _share(flipped - int(off[1]), size - int(off[0])),
                flip_rate_off_support=NAN if off is None else _share(int(off[1]), int(off[0])),
                band=_band(float(low[q]), float(high[q])),
            )
        )
    return tuple(pairs), tally


def _share(count: int, total: int) -> float:
    return count / total if total else NAN


def _band(low: float, high: float) -> str:
    """Return the band that the whole interval of a flip rate lies in, or "inconclusive"."""
    if high < BANDS["investigate"]:
        return "pass"
    if low > BANDS["audit"]:
        return "audit"
    if low >= BANDS["investigate"] and high <= BANDS["audit"]:
        return "investigate"
    return "inconclusive"


def _warn_of_unused(probe: Any, X: Any, unused: Sequence[str], *, scored: bool) -> tuple[Mapping[str, Any], ...]:
    """Warn of the sensitive features that change nothing, and return the proxies of each."""
    proxies: list[Mapping[str, Any]] = []
    for name, attribute in probe._attributes.items():
        if str(name) not in unused:
            continue
        codes = positions(read(X, attribute), attribute.values)
        found = find_proxies(X, probe._names, attribute, codes, probe._seed) if attribute.countable else ()
        proxies += found
        single = [p for p in found if p["feature"] != ALL][:_NAMED_PROXIES]
        said = ", ".join(f"{p['feature']} {p['balanced_accuracy']:.2f}" for p in single)
        together = next((f", all features {p['balanced_accuracy']:.2f}" for p in found if p["feature"] == ALL), "")
        chance = f" (balanced accuracy; chance is {single[0]['chance']:.2f})" if single else ""
        what = "no decision and no score changes" if scored else "no decision changes (there are no scores)"
        warn(
            f"{what} with {show(name)!r}: the model does not read it, and a flip rate of 0 follows. That says nothing of "
            f"features that stand in for it"
            + (f"; it can be predicted from {said}{together}{chance}." if said else "."),
            AttributeUnusedWarning,
            stacklevel=4,
        )
    return tuple(proxies)


def _provenance(tally: PairedTally, n_rows: int, estimator: Any) -> dict[str, Any]:
    inner = getattr(estimator, "estimator", estimator) if type(estimator).__name__ == "FrozenEstimator" else estimator
    steps = getattr(inner, "steps", None)
    model = type(inner).__name__ + (f" ending in {type(steps[-1][1]).__name__}" if steps else "")
    return {
        "package": {"name": "sklearn-ethiclens", "version": __version__},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": {module.__name__: module.__version__ for module in (np, pd, scipy, sklearn)},
        "data": {"n_rows": n_rows, "tally_sha256": tally.digest(), "model": model},
    }
