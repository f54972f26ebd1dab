"""CellWeights: what of sample weights a tally keeps, by cell; enough for weighted rates, their variance and their bootstrap.

Within a cell of a tally rows differ in their weight only. Numbers of rows and the first three sums of powers of the weights
give weighted rates, their linearised variance and skewness; the weights themselves are kept where a cell has too few rows
for its sums to stand for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._validation import numeric_column

__all__ = ["KEPT_BELOW", "CellWeights", "WeightSums", "check_sample_weight", "refuse_sizes", "refuse_weights"]

Floats = NDArray[np.float64]

KEPT_BELOW = 30  # cells with fewer rows keep their weights
_LARGEST = 1e90  # whose cubes, summed, are finite; and those of its inverse above 0


def check_sample_weight(sample_weight: Any, *, name: str = "sample_weight", whole: bool = True) -> Floats:
    """Return weights as one column of floats, one per row.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,)
        How many people each row stands for, up to a common factor: at least 0, finite, not all 0. pandas, polars and pyarrow
        columns are accepted.
    name : str, default="sample_weight"
        What it is called in messages.
    whole : bool, default=True
        Whether these are all weights: in a part of them all may be 0.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    ValueError
        If there are several columns, a weight is missing, infinite, negative or beyond all measure, or all are 0.
    TypeError
        If the values are no numbers.

    Examples
    --------
    >>> check_sample_weight([1, 2.5, 0])
    array([1. , 2.5, 0. ])
    """
    weights = numeric_column(sample_weight, name, one="one weight per row", hint="Pass one of them.", booleans=False)
    wrong = {"missing (NaN)": np.isnan(weights), "infinite": np.isinf(weights), "negative": weights < 0}
    refuse_weights(weights.size, {what: int(np.count_nonzero(mask)) for what, mask in wrong.items()}, name)
    positive = weights[weights > 0]
    if whole or positive.size:
        refuse_sizes(weights.size, positive.min(initial=np.inf), positive.max(initial=0.0), name)
    return weights


def refuse_weights(n_rows: int, wrong: Mapping[str, int], name: str = "sample_weight") -> None:
    """Refuse weights some of which are none.

    Parameters
    ----------
    n_rows : int
        How many weights there are.
    wrong : mapping of str to int
        How many of them are wrong, by what is wrong with them.
    name : str
        What they are called in messages.
    """
    found = [f"{n} {what}" for what, n in wrong.items() if n]
    if found:
        raise ValueError(
            f"{name} must be finite and at least 0; got {' and '.join(found)} of {n_rows} rows. Drop these rows "
            f"from all arguments, or give them a weight of 0."
        )


def refuse_sizes(n_rows: int, low: float, high: float, name: str = "sample_weight") -> None:
    """Refuse weights that are all 0, or beyond all measure.

    Parameters
    ----------
    n_rows : int
        How many weights there are.
    low, high : float
        The smallest and the largest above 0; ``high`` is 0 if there is none.
    name : str
        What they are called in messages.
    """
    if high == 0:
        raise ValueError(f"{name} must be above 0 in some row; got 0 in all {n_rows}.")
    if high > _LARGEST or low < 1 / _LARGEST:
        raise ValueError(
            f"{name} must lie between {1 / _LARGEST:g} and {_LARGEST:g} where it is not 0, so that cubes are finite; "
            f"got {low:g} to {high:g}. Divide all by their mean."
        )


class WeightSums:
    """Sums of powers of weights by cell while they are being counted; parts are taken in one after another.

    Parameters
    ----------
    rows : ndarray of int of shape (n_cells,)
        Rows with a weight above 0.
    moments : ndarray of shape (n_cells, 3)
        Sums of the weights, of their squares and of their cubes.
    low, high : ndarray of shape (n_cells,)
        The smallest and the largest weight above 0; infinity and 0 where there is none.
    kept : dict of int to list of float
        The weights above 0 of every cell with fewer than ``KEPT_BELOW`` of them, and with any.
    """

    def __init__(
        self, rows: NDArray[np.int64], moments: Floats, low: Floats, high: Floats, kept: dict[int, list[float]]
    ) -> None:
        self.rows, self.moments, self.low, self.high, self.kept = rows, moments, low, high, kept

    @classmethod
    def empty(cls, n_cells: int) -> WeightSums:
        """Return the sums of no rows."""
        return cls(
            np.zeros(n_cells, dtype=np.int64),
            np.zeros((n_cells, 3)),
            np.full(n_cells, np.inf),
            np.zeros(n_cells),
            {},
        )

    @classmethod
    def from_rows(cls, weights: Floats, cell: NDArray[Any], n_cells: int) -> WeightSums:
        """Return the sums of rows: their weights, and the cell of each."""
        used = weights > 0
        weights, cell = weights[used], cell[used]
        sums = cls.empty(n_cells)
        sums.rows = np.bincount(cell, minlength=n_cells)
        sums.moments = np.stack([np.bincount(cell, weights=weights**k, minlength=n_cells) for k in (1, 2, 3)], axis=1)
        np.minimum.at(sums.low, cell, weights)
        np.maximum.at(sums.high, cell, weights)
        few = sums.rows[cell] < KEPT_BELOW
        for place, weight in zip(cell[few].tolist(), weights[few].tolist(), strict=True):
            sums.kept.setdefault(place, []).append(weight)
        return sums

    def take(self, index: NDArray[Any]) -> WeightSums:
        """Return the sums of some of the cells, in the order given."""
        kept = {i: self.kept[place] for i, place in enumerate(index.tolist()) if place in self.kept}
        return WeightSums(self.rows[index], self.moments[index], self.low[index], self.high[index], kept)

    def add(self, other: WeightSums, position: NDArray[np.intp], n_cells: int) -> None:
        """Take in other sums: cell ``i`` of theirs is cell ``position[i]`` of the ``n_cells`` that there are now."""
        more = WeightSums.empty(n_cells - len(self.rows))
        for name in ("rows", "moments", "low", "high"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(more, name)]))
        np.add.at(self.rows, position, other.rows)
        np.add.at(self.moments, position, other.moments)
        np.minimum.at(self.low, position, other.low)
        np.maximum.at(self.high, position, other.high)
        for place in position[self.rows[position] >= KEPT_BELOW].tolist():
            self.kept.pop(place, None)
        for i, weights in other.kept.items():
            if self.rows[position[i]] < KEPT_BELOW:
                self.kept.setdefault(int(position[i]), []).extend(weights)


@dataclass(frozen=True, eq=False, repr=False)
class CellWeights:
    """Rows and sums of powers of the weights by cell.

    Parameters
    ----------
    rows : ndarray of int of shape (n_groups, n_outcomes, 2)
        Rows with a weight above 0.
    sums, squares, cubes : ndarray of shape (n_groups, n_outcomes, 2)
        Sums of the weights, of their squares and of their cubes.
    kept : tuple of (ndarray or None), one for each cell in order
        The weights of a cell's rows, in ascending order; None where only their sums are known.
    n_zero : int, default=0
        Rows left out because their weight is 0.
    exact : bool, default=False
        Whether weights are kept whatever the number of rows.

    Examples
    --------
    >>> weights = CellWeights.from_rows(np.array([2.0, 3.0, 0.5]), np.array([0, 0, 3]), (1, 2, 2))
    >>> weights.rows.ravel(), weights.squares.ravel()
    (array([2, 0, 0, 1]), array([13.  ,  0.  ,  0.  ,  0.25]))
    >>> weights.kept[0]
    array([2., 3.])
    """

    rows: NDArray[np.int64]
    sums: Floats
    squares: Floats
    cubes: Floats
    kept: tuple[Floats | None, ...]
    n_zero: int = 0
    exact: bool = False

    def __post_init__(self) -> None:
        for name, kind in (
            ("rows", np.int64),
            ("sums", np.float64),
            ("squares", np.float64),
            ("cubes", np.float64),
        ):
            array = np.array(getattr(self, name), dtype=kind)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.rows.ndim != 3 or not self.rows.shape == self.sums.shape == self.squares.shape == self.cubes.shape:
            raise ValueError(
                f"rows, sums, squares and cubes of weights must have one shape (n_groups, n_outcomes, 2); got "
                f"{self.rows.shape}, {self.sums.shape}, {self.squares.shape} and {self.cubes.shape}."
            )
        for name in ("sums", "squares", "cubes"):
            array = getattr(self, name)
            if not np.isfinite(array).all() or ((array > 0) != (self.rows > 0)).any():
                raise ValueError(f"{name} of weights must be finite, above 0 in cells with rows and 0 in the others.")
        if len(self.kept) != self.rows.size:
            raise ValueError(f"kept must have one entry for each of {self.rows.size} cells; got {len(self.kept)}.")
        kept = [None if part is None else np.array(part, dtype=np.float64) for part in self.kept]
        for part, n in zip(kept, self.rows.ravel().tolist(), strict=True):
            if part is None and n < KEPT_BELOW:
                raise ValueError(f"the weights of cells below {KEPT_BELOW} rows must be kept; a cell of {n} has none.")
            if part is not None and (part.shape != (n,) or (np.diff(part) < 0).any()):
                raise ValueError(
                    f"kept must hold the {n} weights of a cell in ascending order; got shape {part.shape}."
                )
            if part is not None:
                part.setflags(write=False)
        object.__setattr__(self, "kept", tuple(kept))

    @classmethod
    def from_rows(
        cls, weights: Floats, cell: NDArray[Any], shape: tuple[int, int, int], *, n_zero: int = 0, exact: bool = False
    ) -> CellWeights:
        """Return the weights of rows by cell.

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            Above 0.
        cell : ndarray of int of shape (n_rows,)
            Each row's cell, as a position in ``shape`` laid out in C order.
        shape : tuple of int
            (n_groups, n_outcomes, 2).
        n_zero : int
            Rows that were left out.
        exact : bool
            Whether to keep all weights.

        Returns
        -------
        CellWeights
        """
        n_cells = int(np.prod(shape))
        rows = np.bincount(cell, minlength=n_cells)
        places = np.flatnonzero(rows)
        sizes = rows[places]
        stops = np.cumsum(sizes)
        starts = stops - sizes
        # Each cell's weights in ascending order: sums then do not depend on the order of the rows, not even in their last digits.
        small = np.asarray(cell).astype(np.uint16) if n_cells <= 1 << 16 else np.asarray(cell)
        weights = weights[np.argsort(small, kind="stable")]
        parts = np.split(weights, stops[:-1]) if places.size else []
        for part in parts:
            part.sort()
        # Sums are taken of what weights are above the smallest of their cell: those of equal weights are then exact, so that
        # equal weights are seen to be equal however many rows there are.
        first, one, two, three = np.zeros((4, n_cells))
        first[places] = weights[starts]
        above = weights - np.repeat(first[places], sizes)
        power = above
        for power_sums in (one, two, three):
            power_sums[places] = np.add.reduceat(power, starts)
            power = power * above
        sums = rows * first + one
        squares = rows * first**2 + 2 * first * one + two
        cubes = rows * first**3 + 3 * first**2 * one + 3 * first * two + three
        kept: list[Floats | None] = [np.empty(0) if exact or n < KEPT_BELOW else None for n in rows.tolist()]
        for place, part in zip(places.tolist(), parts, strict=True):
            if kept[place] is not None:
                kept[place] = part
        return cls(
            rows.reshape(shape),
            sums.reshape(shape),
            squares.reshape(shape),
            cubes.reshape(shape),
            tuple(kept),
            n_zero,
            exact,
        )

    @classmethod
    def from_sums(
        cls, sums: WeightSums, position: NDArray[Any], shape: tuple[int, int, int], *, n_zero: int = 0
    ) -> CellWeights:
        """Return the weights of cells that were summed elsewhere; up to rounding what :meth:`from_rows` makes of the rows.

        Parameters
        ----------
        sums : WeightSums
            What was summed.
        position : ndarray of int of shape (n_summed,)
            Which cell each is, or is part of, as a position in ``shape`` laid out in C order.
        shape : tuple of int
            (n_groups, n_outcomes, 2).
        n_zero : int
            Rows that were left out.

        Returns
        -------
        CellWeights
        """
        n_cells = int(np.prod(shape))
        total = WeightSums.empty(n_cells)
        total.add(sums, np.asarray(position, dtype=np.intp), n_cells)
        same = total.high  # sums of equal weights are exact, so that equal weights are seen to be equal
        exact = np.stack([total.rows * same**k for k in (1, 2, 3)])
        powers = np.where((total.low == total.high) | (total.rows == 0), exact, total.moments.T)
        one, two, three = (power.reshape(shape) for power in powers)
        kept = [
            np.sort(np.array(total.kept.get(i, []))) if n < KEPT_BELOW else None
            for i, n in enumerate(total.rows.tolist())
        ]
        return cls(total.rows.reshape(shape), one, two, three, tuple(kept), n_zero)

    def __repr__(self) -> str:
        return f"<CellWeights of {int(self.rows.sum())} rows with a sum of {self.sums.sum():g}>"

    # ------------------------------------------------------------------------------------------------------------ reading
    @property
    def effective_rows(self) -> Floats:
        """Effective sample size of each group (Kish 1965): the square of its sum of weights over its sum of squares."""
        sums, squares = self.sums.sum((1, 2)), self.squares.sum((1, 2))
        effective: Floats = np.square(sums) / np.where(squares > 0, squares, 1.0)
        return effective

    def merge(self, position: NDArray[np.intp], n_groups: int) -> CellWeights:
        """Return the weights with group ``i`` counted as group ``position[i]`` of ``n_groups``."""
        position = np.asarray(position)
        if n_groups == len(self.rows) and np.array_equal(position, np.arange(n_groups)):
            return self
        merged = []
        for array in (self.rows, self.sums, self.squares, self.cubes):
            out = np.zeros((n_groups, *array.shape[1:]), dtype=array.dtype)
            np.add.at(out, position, array)
            merged.append(out)
        slots = self.rows[0].size
        sources: list[list[Floats | None]] = [[] for _ in range(n_groups * slots)]
        for i, target in enumerate(position.tolist()):
            for slot in range(slots):
                sources[target * slots + slot].append(self.kept[i * slots + slot])
        kept: list[Floats | None] = []
        for parts, n in zip(sources, merged[0].ravel().tolist(), strict=True):
            known = [part for part in parts if part is not None]
            keep = len(known) == len(parts) and (self.exact or n < KEPT_BELOW)
            kept.append(np.sort(np.concatenate([np.empty(0), *known])) if keep else None)
        rows, sums, squares, cubes = merged
        return CellWeights(rows, sums, squares, cubes, tuple(kept), self.n_zero, self.exact)

    def __add__(self, other: CellWeights) -> CellWeights:
        n = len(self.rows)
        both = CellWeights(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.sums, other.sums]),
            np.concatenate([self.squares, other.squares]),
            np.concatenate([self.cubes, other.cubes]),
            (*self.kept, *other.kept),
            self.n_zero + other.n_zero,
            self.exact and other.exact,
        )
        return both.merge(np.concatenate([np.arange(n), np.arange(n)]), n)

    def __reduce__(self) -> Any:
        return CellWeights, (self.rows, self.sums, self.squares, self.cubes, self.kept, self.n_zero, self.exact)

    # ------------------------------------------------------------------------------------------------------------ storing
    def to_dict(self) -> dict[str, Any]:
        """Return the weights as plain JSON types; the sums are left to the tally, whose counts they are."""
        return {
            "rows": self.rows.tolist(),
            "sum_of_squares": self.squares.tolist(),
            "sum_of_cubes": self.cubes.tolist(),
            "kept": [None if part is None else part.tolist() for part in self.kept],
            "n_zero": self.n_zero,
            "exact": self.exact,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], sums: Floats) -> CellWeights:
        """Return the weights that :meth:`to_dict` wrote."""
        shape = np.shape(sums)
        return cls(
            np.array(data["rows"], dtype=np.int64).reshape(shape),
            sums,
            np.array(data["sum_of_squares"], dtype=np.float64).reshape(shape),
            np.array(data["sum_of_cubes"], dtype=np.float64).reshape(shape),
            tuple(None if part is None else np.array(part, dtype=np.float64) for part in data["kept"]),
            int(data["n_zero"]),
            bool(data["exact"]),
        )
