"""SurveyDesign: what of a sampling design a tally keeps, by cell; enough for variances that respect it, and its bootstrap.

Rows of one household or school are alike, strata are sampled apart, and replicate weights hold both. Everything here is a
function of the cell totals of sampling units: how much of each cell of the table lies in each unit. Variances of all
statistics follow from the covariance of these totals (Taylor linearisation), and a bootstrap of units needs no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sklearn_ethiclens._validation import MISSING, Column, encode_column, show

__all__ = ["MOST_CELLS", "REPLICATES", "DesignRows", "SurveyDesign", "Units", "check_design"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CELLS = 2048  # whose covariances are kept: 512 groups with labels
REPLICATES = "replicate weights"
_LARGEST = 1e90  # as for the weights that they are replicates of
_SUCCESSIVE_DIFFERENCE = 4.0  # variance of R replicates: 4/R times the sum of squares (U.S. Census Bureau, ACS and CPS)


class Units(NamedTuple):
    """Sampling units, equal ones of a stratum grouped.

    Parameters
    ----------
    totals : csr_matrix of shape (n_signatures, n_cells)
        Sum of the weights (number of rows) of each cell in such a unit.
    multiplicity : ndarray of int of shape (n_signatures,)
        How many units are so.
    stratum : ndarray of int of shape (n_signatures,)
        Their stratum, in ascending order.
    """

    totals: csr_matrix
    multiplicity: Ints
    stratum: Ints

    @property
    def sizes(self) -> Ints:
        """Units of each stratum."""
        sizes: Ints = np.bincount(self.stratum, weights=self.multiplicity).astype(np.int64)
        return sizes

    def merge(self, position: NDArray[np.intp], n_cells: int) -> Units:
        """Return the units with cell ``i`` counted as cell ``position[i]`` of ``n_cells``; those now equal are grouped."""
        n = position.size
        onto = csr_matrix((np.ones(n), (np.arange(n), position)), shape=(n, n_cells))
        merged = csr_matrix(self.totals @ onto)
        merged.sort_indices()
        return _grouped(merged, self.multiplicity, self.stratum)


@dataclass(frozen=True, eq=False, repr=False)
class SurveyDesign:
    """How the cell totals of a tally vary over samples drawn by the design.

    Made by :func:`check_design` and :meth:`DesignRows.by_cell`. Cells are those of the tally's counts in C order.

    Parameters
    ----------
    kind : {"clusters", "strata", "clusters and strata", "replicate weights"}
        What it was made of.
    covariance : ndarray of shape (n_cells, n_cells)
        Of the cell totals: between units and within strata, with ``m / (m - 1)`` for the ``m`` units of a stratum; or over
        replicates.
    dof : int
        Degrees of freedom: units less strata, or replicates less one.
    n_units, n_strata : int or None
        None for replicate weights, which do not tell.
    squares : ndarray of shape (n_cells, n_cells) or None
        Products of two cells' totals, summed over units: how many units a group lies in, in effect, follows from it.
    deviations : ndarray of shape (n_replicates, n_cells) or None
        Replicate totals less the totals.
    units : Units or None
        What a bootstrap draws from; not stored, so None in a design that was read back.

    Examples
    --------
    Two clusters with 1 and 3 rows of one cell: 2/1 x ((1 - 2)**2 + (3 - 2)**2).

    >>> rows = check_design(["a", "b", "b", "b"], None, None, None)
    >>> rows.by_cell(np.zeros(4, dtype=int), np.ones(4), 2).covariance
    array([[4., 0.],
           [0., 0.]])
    """

    kind: str
    covariance: Floats
    dof: int
    n_units: int | None = None
    n_strata: int | None = None
    squares: Floats | None = None
    deviations: Floats | None = None
    units: Units | None = None

    def __post_init__(self) -> None:
        for name in ("covariance", "squares", "deviations"):
            if (array := getattr(self, name)) is not None:
                array = np.array(array, dtype=np.float64)
                if not np.isfinite(array).all():
                    raise ValueError(f"{name} of a design must be finite.")
                array.setflags(write=False)
                object.__setattr__(self, name, array)
        n_cells = self.covariance.shape[-1]
        if self.covariance.shape != (n_cells, n_cells) or (
            self.squares is not None and self.squares.shape != (n_cells, n_cells)
        ):
            raise ValueError(
                f"covariance and squares of a design must be square, of one shape; got {self.covariance.shape} and "
                f"{None if self.squares is None else self.squares.shape}."
            )
        if self.dof < 1:
            raise ValueError(f"a design must have at least one degree of freedom; got {self.dof}.")

    @classmethod
    def of_units(cls, kind: str, units: Units) -> SurveyDesign:
        """Return the design of units."""
        totals, sizes = units.totals, units.sizes
        scale = sizes / (sizes - 1.0)
        n_signatures = units.multiplicity.size
        summed = csr_matrix(
            (units.multiplicity.astype(float), (units.stratum, np.arange(n_signatures))),
            shape=(sizes.size, n_signatures),
        )
        by_stratum = csr_matrix(summed @ totals)
        squares = _products(totals, units.multiplicity.astype(float))
        between = _products(totals, (units.multiplicity * scale[units.stratum]).astype(float))
        between = between - _products(by_stratum, (scale / sizes).astype(float))
        n_units = int(sizes.sum())
        return cls(kind, between, n_units - sizes.size, n_units, int(sizes.size), squares, units=units)

    @classmethod
    def of_replicates(cls, deviations: Floats) -> SurveyDesign:
        """Return the design of replicate totals less the totals, of shape (n_replicates, n_cells)."""
        scale = _SUCCESSIVE_DIFFERENCE / len(deviations)
        return cls(REPLICATES, scale * (deviations.T @ deviations), len(deviations) - 1, deviations=deviations)

    def __repr__(self) -> str:
        size = (
            f"{self.n_units} units in {self.n_strata} {'stratum' if self.n_strata == 1 else 'strata'}"
            if self.n_units
            else f"{self.dof + 1} replicates"
        )
        return f"<SurveyDesign by {self.kind}, {size}>"

    # ------------------------------------------------------------------------------------------------------- combining
    def merge(self, position: NDArray[np.intp], n_cells: int) -> SurveyDesign:
        """Return the design with cell ``i`` counted as cell ``position[i]`` of ``n_cells``."""
        if n_cells == position.size and np.array_equal(position, np.arange(n_cells)):
            return self
        if self.deviations is not None:
            return SurveyDesign.of_replicates(_onto(self.deviations, position, n_cells))
        covariance = _onto(_onto(self.covariance, position, n_cells).T, position, n_cells)
        squares = None if self.squares is None else _onto(_onto(self.squares, position, n_cells).T, position, n_cells)
        units = None if self.units is None else self.units.merge(position, n_cells)
        return SurveyDesign(self.kind, covariance, self.dof, self.n_units, self.n_strata, squares, units=units)

    def __add__(self, other: SurveyDesign) -> SurveyDesign:
        if self.deviations is None or other.deviations is None:
            raise ValueError(
                "tallies with clusters or strata do not add, since a unit may lie in both: build the tally from all rows at "
                "once."
            )
        if len(self.deviations) != len(other.deviations):
            raise ValueError(
                f"tallies with replicate weights add only if they have equally many; got {len(self.deviations)} and "
                f"{len(other.deviations)}."
            )
        return SurveyDesign.of_replicates(self.deviations + other.deviations)

    # ---------------------------------------------------------------------------------------------------------- storing
    def to_dict(self) -> dict[str, Any]:
        """Return what closed forms need as plain JSON types: covariances (the upper triangle), or replicates; no units."""
        if self.deviations is not None:
            return {"kind": self.kind, "deviations": self.deviations.tolist()}
        upper = np.triu_indices(len(self.covariance))
        return {
            "kind": self.kind,
            "dof": self.dof,
            "n_units": self.n_units,
            "n_strata": self.n_strata,
            "covariance": self.covariance[upper].tolist(),
            "squares": None if self.squares is None else self.squares[upper].tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_cells: int) -> SurveyDesign:
        """Return the design that :meth:`to_dict` wrote, without its units."""
        if "deviations" in data:
            return cls.of_replicates(np.array(data["deviations"], dtype=np.float64).reshape(-1, n_cells))

        def whole(values: Any) -> Floats | None:
            if values is None:
                return None
            matrix = np.zeros((n_cells, n_cells))
            matrix[np.triu_indices(n_cells)] = values
            return np.triu(matrix) + np.triu(matrix, 1).T

        covariance = whole(data["covariance"])
        if covariance is None:
            raise ValueError("a stored design must have covariances.")
        return cls(data["kind"], covariance, data["dof"], data["n_units"], data["n_strata"], whole(data["squares"]))


# ------------------------------------------------------------------------------------------------------------ from rows
class DesignRows(NamedTuple):
    """The design of rows: cluster and stratum of each, or its replicate weights."""

    clusters: Column | None = None
    strata: Column | None = None
    replicates: Floats | None = None

    def take(self, rows: NDArray[np.intp]) -> DesignRows:
        """Return the design of some of the rows."""
        clusters, strata = (
            None if column is None else Column(column.codes[rows], column.levels)
            for column in (self.clusters, self.strata)
        )
        return DesignRows(clusters, strata, None if self.replicates is None else self.replicates[rows])

    def by_cell(self, cell: NDArray[Any], weights: Floats, n_cells: int) -> SurveyDesign:
        """Return the design of the cell totals.

        Parameters
        ----------
        cell : ndarray of int of shape (n_rows,)
            Each row's cell.
        weights : ndarray of shape (n_rows,)
            Above 0; 1 for unweighted rows.
        n_cells : int
            How many cells there are.

        Raises
        ------
        ValueError
            If a cluster lies in several strata, a stratum has one unit, or there are too many cells.
        """
        if n_cells > MOST_CELLS:
            raise ValueError(
                f"a survey design is kept for up to {MOST_CELLS} cells (groups of all attributes together, by label and "
                f"decision); got {n_cells}. Audit fewer attributes at once."
            )
        if self.replicates is not None:
            moved = self.replicates - weights[:, None]
            deviations = [np.bincount(cell, weights=column, minlength=n_cells) for column in moved.T]
            return SurveyDesign.of_replicates(np.array(deviations))
        kind = " and ".join(
            name for name, column in (("clusters", self.clusters), ("strata", self.strata)) if column is not None
        )
        unit, stratum = self._units()
        _check_units(unit, stratum, self)
        # Sorted by weight too, so that sums do not depend on the order of the rows.
        order = np.lexsort((weights, cell, unit))
        unit, cell, weights, stratum = unit[order], np.asarray(cell)[order], weights[order], stratum[order]
        first = np.flatnonzero(np.r_[True, (np.diff(unit) != 0) | (np.diff(cell) != 0)])
        starts = np.flatnonzero(np.r_[True, np.diff(unit[first]) != 0])
        totals = csr_matrix(
            (np.add.reduceat(weights, first), cell[first], np.r_[starts, first.size]), shape=(starts.size, n_cells)
        )
        strata = np.unique(stratum[first[starts]], return_inverse=True)[1].astype(np.int64)
        return SurveyDesign.of_units(kind, _grouped(totals, np.ones(starts.size, dtype=np.int64), strata))

    def _units(self) -> tuple[Ints, Ints]:
        """Return each row's unit and stratum; without clusters each row is its own unit."""
        column = self.strata if self.clusters is None else self.clusters
        n_rows = 0 if column is None else column.codes.size
        unit = np.arange(n_rows) if self.clusters is None else self.clusters.codes.astype(np.int64)
        stratum = np.zeros(n_rows, dtype=np.int64) if self.strata is None else self.strata.codes.astype(np.int64)
        return unit, stratum


def check_design(clusters: Any, strata: Any, replicate_weights: Any, sample_weight: Any) -> DesignRows | None:
    """Return the design of rows; None without one.

    Parameters
    ----------
    clusters, strata : array-like of shape (n_rows,) or None
        Labels of each row's cluster and stratum.
    replicate_weights : array-like or frame of shape (n_rows, n_replicates) or None
        Replicates of the weights.
    sample_weight : array-like of shape (n_rows,) or None
        The weights that they are replicates of.

    Returns
    -------
    DesignRows or None

    Raises
    ------
    ValueError
        If a cluster or stratum is missing, replicate weights are not finite, fewer than two, without ``sample_weight``, or
        given beside clusters or strata.
    TypeError
        If replicate weights are no numbers.
    """
    if replicate_weights is not None:
        given = [name for name, value in (("clusters", clusters), ("strata", strata)) if value is not None]
        if given:
            raise ValueError(
                f"replicate_weights hold the design already: leave out {' and '.join(given)}, or replicate_weights."
            )
        if sample_weight is None:
            raise ValueError(
                "replicate_weights are replicates of a weight: pass sample_weight too, the full-sample weight of each row."
            )
        return DesignRows(replicates=_replicate_columns(replicate_weights))
    if clusters is None and strata is None:
        return None
    columns = {
        name: None if values is None else _labels(values, name)
        for name, values in (("clusters", clusters), ("strata", strata))
    }
    return DesignRows(columns["clusters"], columns["strata"])


def _labels(values: Any, name: str) -> Column:
    column = encode_column(values, name)
    n_missing = sum(np.count_nonzero(column.codes == i) for i, v in enumerate(column.levels) if v is MISSING)
    if n_missing:
        raise ValueError(
            f"{name} must be known for every row; got {n_missing} missing of {column.codes.size} rows. Give such rows a "
            f"label of their own, or drop them from all arguments."
        )
    return column


def _replicate_columns(values: Any) -> Floats:
    """Return replicate weights as floats of shape (n_rows, n_replicates)."""
    if not isinstance(values, np.ndarray | pd.DataFrame) and nw.dependencies.is_into_dataframe(values):
        values = nw.from_native(values, eager_only=True).to_pandas()
    if isinstance(values, pd.DataFrame):
        strange = [(name, dtype) for name, dtype in values.dtypes.items() if dtype.kind not in "iuf"]
        if strange:
            raise TypeError(f"replicate_weights must be numbers; column {strange[0][0]!r} is of {strange[0][1]}.")
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "iuf":
            values = np.where(np.ma.getmaskarray(values), np.nan, values.data)
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise ValueError(
                "replicate_weights must have one column a replicate; got rows of different lengths."
            ) from error
        if array.dtype.kind not in "iuf":
            raise TypeError(f"replicate_weights must be numbers; got an array of {array.dtype}.")
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] < 2:
        raise ValueError(
            f"replicate_weights must have one column a replicate, at least two; got shape {array.shape}. Pass all of them, "
            f"such as PWGTP1 to PWGTP80."
        )
    wrong = ~np.isfinite(array)
    if wrong.any():
        raise ValueError(
            f"replicate_weights must be finite; got {np.count_nonzero(wrong)} missing (NaN) or infinite in "
            f"{np.count_nonzero(wrong.any(1))} of {len(array)} rows. Drop these rows from all arguments."
        )
    largest = float(np.abs(array).max(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"replicate_weights must lie within {_LARGEST:g}, so that squares are finite; got {largest:g}. Divide them "
            f"and sample_weight by the mean of sample_weight."
        )
    return array


def _check_units(unit: Ints, stratum: Ints, rows: DesignRows) -> None:
    """Refuse clusters across strata, and strata of one unit: they have no variance within."""
    if rows.strata is None:
        if unit.min() == unit.max():
            raise ValueError(
                f"clusters must be at least two for a variance between them; got one for all {unit.size} rows."
            )
        return
    pairs = pd.DataFrame({"unit": unit, "stratum": stratum}).drop_duplicates()
    across = np.unique(pairs["unit"].to_numpy()[pairs["unit"].duplicated().to_numpy()])
    if across.size and rows.clusters is not None:
        raise ValueError(
            f"every one of the clusters must lie in one of the strata; {_said(rows.clusters.levels, across)} several. If "
            f"clusters are numbered anew in each stratum, pass labels of both, such as strata + '/' + clusters."
        )
    found, n_units = np.unique(pairs["stratum"].to_numpy(), return_counts=True)
    alone = found[n_units == 1]
    if not alone.size:
        return
    what = "row" if rows.clusters is None else "cluster"
    raise ValueError(
        f"every one of the strata must have at least two {what}s; {_said(rows.strata.levels, alone)} one. Merge such strata "
        f"with their neighbours."
    )


def _said(levels: tuple[Any, ...], codes: NDArray[Any]) -> str:
    """Return which labels have or lie in something, in words."""
    first = repr(show(levels[int(codes[0])]))
    return f"{first} has" if len(codes) == 1 else f"{first} and {len(codes) - 1} more have"


# ------------------------------------------------------------------------------------------------------------- matrices
def _grouped(totals: csr_matrix, multiplicity: Ints, stratum: Ints) -> Units:
    """Return units with those of a stratum that have equal totals put together, in an order that knows no names."""
    lengths = np.diff(totals.indptr)
    parts = []
    for length in np.unique(lengths):
        own = np.flatnonzero(lengths == length)
        at = totals.indptr[own][:, None] + np.arange(length)
        cells, sums = totals.indices[at], totals.data[at]
        order = np.lexsort((*sums.T[::-1], *cells.T[::-1], stratum[own]))
        own, cells, sums = own[order], cells[order], sums[order]
        new = np.r_[True, np.diff(stratum[own]) != 0]
        new[1:] |= (np.diff(cells, axis=0) != 0).any(1) | (np.diff(sums, axis=0) != 0).any(1)
        first = np.flatnonzero(new)
        parts.append((cells[first], sums[first], np.add.reduceat(multiplicity[own], first), stratum[own[first]]))
    sizes = np.concatenate([np.full(len(part[0]), part[0].shape[1]) for part in parts])
    data = np.concatenate([part[1].ravel() for part in parts])
    cells = np.concatenate([part[0].ravel() for part in parts])
    found = csr_matrix((data, cells, np.r_[0, np.cumsum(sizes)]), shape=(sizes.size, totals.shape[1]))
    strata = np.concatenate([part[3] for part in parts])
    by_stratum = np.argsort(strata, kind="stable")
    return Units(found[by_stratum], np.concatenate([part[2] for part in parts])[by_stratum], strata[by_stratum])


def _products(rows: csr_matrix, weights: Floats) -> Floats:
    """Return the sum over rows of weight times the outer product of the row with itself."""
    weighted = csr_matrix(rows.multiply(weights[:, None]))
    product: Floats = (weighted.T @ rows).toarray()
    return (product + product.T) / 2


def _onto(matrix: Floats, position: NDArray[np.intp], n_columns: int) -> Floats:
    """Return a matrix with column ``i`` added to column ``position[i]`` of ``n_columns``."""
    out = np.zeros((n_columns, len(matrix)))
    np.add.at(out, position, matrix.T)
    return out.T
