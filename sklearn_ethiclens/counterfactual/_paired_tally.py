"""PairedTally: the immutable table ``counts[group, decision, counterfactual decision]``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._tally import label_from_json, label_to_json
from sklearn_ethiclens.inference import mcnemar_test
from sklearn_ethiclens.inference._tests import McNemarTestResult

Pair = tuple[str, Any, Any]


@dataclass(frozen=True, eq=False)
class PairedTally:
    """Counts of rows by pair of values, decision, and decision after the change; index 1 is ``pos_label``.

    Flip rate, its direction and McNemar's test depend on the rows only through it. Tallies of disjoint rows add.

    Parameters
    ----------
    groups : tuple of (attribute, source, target)
        Which sensitive feature was changed, from what, to what.
    counts : ndarray of int of shape (n_groups, 2, 2)
        Rows by (group, decision, counterfactual decision).
    pos_label : label
        The label that index 1 stands for.

    Examples
    --------
    >>> tally = PairedTally((("sex", "f", "m"),), [[[5, 3], [1, 11]]])
    >>> tally.flip_rate.tolist(), (tally + tally).n_rows
    ([0.2], 40)
    """

    groups: tuple[Pair, ...]
    counts: NDArray[np.int64]
    pos_label: Any = 1

    def __post_init__(self) -> None:
        given = np.array(self.counts)
        counts = given.astype(np.int64).reshape(-1, 2, 2) if given.size else np.zeros((0, 2, 2), dtype=np.int64)
        if counts.shape[0] != len(self.groups) or len(set(self.groups)) < len(self.groups):
            raise ValueError(f"counts must hold one 2 x 2 table for each of {len(self.groups)} different groups.")
        if (counts < 0).any() or (counts.reshape(given.shape if given.size else (0, 2, 2)) != given).any():
            raise ValueError("counts must be whole numbers of rows, and not negative.")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return self.counts.sum((1, 2))

    @property
    def n_rows(self) -> int:
        """Rows of all groups: a row counts once for each value it is set to."""
        return int(self.counts.sum())

    @property
    def gained(self) -> NDArray[np.int64]:
        """Rows that the change turns positive."""
        return self.counts[:, 0, 1]

    @property
    def lost(self) -> NDArray[np.int64]:
        """Rows that the change turns negative."""
        return self.counts[:, 1, 0]

    @property
    def flip_rate(self) -> NDArray[np.float64]:
        """Share of rows whose decision changes; NaN without rows."""
        n = self.n
        return np.divide(self.gained + self.lost, n, out=np.full(n.size, np.nan), where=n > 0)

    def mcnemar(self) -> McNemarTestResult:
        """Return McNemar's test of each group."""
        return mcnemar_test(self.gained, self.lost)

    def marginal(self, attribute: str) -> PairedTally:
        """Return the tally of one sensitive feature."""
        at = [i for i, group in enumerate(self.groups) if group[0] == attribute]
        if not at:
            raise ValueError(
                f"attribute must be one of {[*dict.fromkeys(g[0] for g in self.groups)]}; got {attribute!r}."
            )
        return PairedTally(tuple(self.groups[i] for i in at), self.counts[at], self.pos_label)

    def frame(self) -> pd.DataFrame:
        """Return one row a group: ``n``, the four counts by (decision, counterfactual decision), and ``flip_rate``."""
        columns: dict[str, Any] = {
            name: [group[i] for group in self.groups] for i, name in enumerate(("attribute", "source", "target"))
        }
        columns["n"] = self.n
        for name, (i, k) in {
            "stays_negative": (0, 0),
            "gained": (0, 1),
            "lost": (1, 0),
            "stays_positive": (1, 1),
        }.items():
            columns[name] = self.counts[:, i, k]
        return pd.DataFrame({**columns, "flip_rate": self.flip_rate})

    def __add__(self, other: PairedTally) -> PairedTally:
        if not isinstance(other, PairedTally):
            return NotImplemented
        if self.pos_label != other.pos_label:
            raise ValueError(
                f"tallies add only if their pos_label agrees; got {self.pos_label!r} and {other.pos_label!r}."
            )
        groups = list(dict.fromkeys([*self.groups, *other.groups]))
        row = {group: i for i, group in enumerate(groups)}
        counts = np.zeros((len(groups), 2, 2), dtype=np.int64)
        for tally in (self, other):
            counts[[row[group] for group in tally.groups]] += tally.counts
        return PairedTally(tuple(groups), counts, self.pos_label)

    def __radd__(self, other: Any) -> PairedTally:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairedTally):
            return NotImplemented
        return self.pos_label == other.pos_label and self._cells() == other._cells()

    def __hash__(self) -> int:
        return hash(frozenset(self._cells()))

    def _cells(self) -> dict[tuple[tuple[str, Any], ...], list[Any]]:
        """Return the counts by group, whose order does not matter and whose labels keep their type."""
        return {
            tuple((type(value).__name__, value) for value in group): table
            for group, table in zip(self.groups, self.counts.tolist(), strict=True)
        }

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(str(group[0]) for group in self.groups))
        return f"<PairedTally of {len(self.groups)} pairs of {names}, {self.n_rows} changed rows>"

    def to_dict(self) -> dict[str, Any]:
        """Return the tally as plain JSON types; labels keep their type."""
        return {
            "groups": [[name, label_to_json(source), label_to_json(target)] for name, source, target in self.groups],
            "counts": self.counts.tolist(),
            "pos_label": label_to_json(self.pos_label),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PairedTally:
        """Return the tally that :meth:`to_dict` wrote."""
        groups = tuple((name, label_from_json(s), label_from_json(t)) for name, s, t in data["groups"])
        return cls(groups, np.array(data["counts"], dtype=np.int64), label_from_json(data["pos_label"]))

    def to_json(self) -> str:
        """Return the tally as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> PairedTally:
        """Return the tally that :meth:`to_json` wrote."""
        return cls.from_dict(json.loads(text))

    def digest(self) -> str:
        """Return the SHA-256 of the canonical tally, as hexadecimal."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()
