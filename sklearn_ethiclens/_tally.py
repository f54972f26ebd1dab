"""Tally: the immutable table ``counts[group, y_true, y_pred]`` on which every metric, interval and verdict rests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_ethiclens._design import DesignRows, SurveyDesign, check_design
from sklearn_ethiclens._frames import column_names, count_cells, count_files
from sklearn_ethiclens._score_tally import ScoreBins, ScoreTally, check_scores
from sklearn_ethiclens._validation import (
    MISSING,
    Column,
    ForeignLabel,
    Labels,
    as_scalar,
    check_aligned,
    check_apart,
    encode_groups,
    encode_labels,
    listing,
    sensitive_columns,
    sort_labels,
)
from sklearn_ethiclens._weights import CellWeights, WeightSums, check_sample_weight

_DENSE_CELLS = 1 << 22
_MOST_ROWS = 1 << 62  # beyond which sums of 64-bit whole numbers wrap around
_JSON_TYPES = (bool, int, float, str, type(None))

Group = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of rows by group, true label and decision; index 1 of the last two axes is ``pos_label``.

    A tally is sufficient: every group metric of a binary decision, its bootstrap, its jackknife and its tests depend on
    the rows only through it. Tallies of disjoint rows add (folds, months, sites); ``marginal`` gives the tally of fewer
    attributes.

    Parameters
    ----------
    attributes : tuple of str
        Names of the sensitive features.
    groups : tuple of tuple
        The groups that occur, one value per attribute, in canonical order (type name, then value; missing last).
    counts : ndarray of shape (n_groups, 2, 2) or (n_groups, 1, 2)
        Rows by (group, y_true, y_pred), or sums of their weights. The middle axis has length 1 where there are no true
        labels.
    pos_label : label
        The label that index 1 stands for.
    labels : tuple
        The labels that were found, in canonical order.
    controls : tuple of str
        Those of the attributes that are controlled for instead of audited: groups are compared within their values.
    scores : ScoreTally or ScoreBins, optional
        The scores behind the decisions, by group and outcome. A tally read back from JSON has their bins only: single
        scores are not stored.
    weights : CellWeights, optional
        Of weighted rows: how many there are, and sums of powers of their weights. ``counts`` are then sums of weights, as
        floats, and ``rows`` the numbers of rows.
    design : SurveyDesign, optional
        How the counts vary over samples where rows are not drawn one by one: clusters, strata or replicate weights. A tally
        read back from JSON has variances only, no units to resample.

    Examples
    --------
    >>> tally = Tally.from_predictions([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=["a", "a", "b", "b"])
    >>> tally.frame()
      sensitive_feature  n  tp  fp  fn  tn
    0                 a  2   1   0   0   1
    1                 b  2   0   0   1   1
    >>> (tally + tally).n_rows
    8
    """

    attributes: tuple[str, ...]
    groups: tuple[Group, ...]
    counts: NDArray[Any]
    pos_label: Any = 1
    labels: tuple[Any, ...] = (0, 1)
    controls: tuple[str, ...] = ()
    scores: ScoreTally | ScoreBins | None = None
    weights: CellWeights | None = None
    design: SurveyDesign | None = None

    def __post_init__(self) -> None:
        try:
            counts = np.array(self.counts)
        except ValueError as error:
            raise ValueError("counts must be one table a group, all of them labelled or none.") from error
        kind: type[np.int64 | np.float64] = np.int64 if self.weights is None else np.float64
        if counts.dtype.kind in "US" or (counts.dtype.kind == "O" and any(isinstance(n, str) for n in counts.flat)):
            raise TypeError("counts must be numbers of rows; got text.")
        if self.weights is None and counts.dtype.kind not in "iu":
            counts = counts.astype(float)
            if not np.isfinite(counts).all() or (counts != np.floor(counts)).any():
                raise ValueError(
                    "counts must be whole numbers of rows; give weights too where they are sums of weights."
                )
        if self.weights is None and counts.sum(dtype=float) > _MOST_ROWS:
            raise ValueError(f"counts must sum up to at most {_MOST_ROWS:.3g} rows; got {counts.sum(dtype=float):.3g}.")
        if counts.ndim != 3 or counts.shape[0] != len(self.groups) or counts.shape[1:] not in ((2, 2), (1, 2)):
            raise ValueError(
                f"counts must have shape ({len(self.groups)}, 2, 2), or ({len(self.groups)}, 1, 2) without labels; got "
                f"{counts.shape}."
            )
        if counts.size and counts.min() < 0:
            raise ValueError("counts must not be negative.")
        if any(len(group) != len(self.attributes) for group in self.groups):
            raise ValueError(f"every group must hold one value for each of the attributes {listing(self.attributes)}.")
        if len(set(self.groups)) < len(self.groups):
            twice = next(group for group in self.groups if self.groups.count(group) > 1)
            raise ValueError(f"group {twice!r} stands more than once.")
        unknown = [name for name in self.controls if name not in self.attributes]
        if unknown:
            raise ValueError(
                f"controls must be among the attributes {listing(self.attributes)}; got {listing(unknown)}."
            )
        counts = counts.astype(kind, copy=False)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)
        self._check_weights()
        self._check_design()
        self._check_scores()

    def _check_weights(self) -> None:
        """Refuse weights that are not of the cells counted."""
        if self.weights is None:
            return
        if self.weights.sums.shape != self.counts.shape or not np.allclose(
            self.weights.sums, self.counts, rtol=1e-9, atol=0
        ):
            raise ValueError("weights must be of the cells that are counted: counts must be their sums.")

    def _check_design(self) -> None:
        """Refuse a design that is not of the cells counted."""
        if self.design is None:
            return
        if len(self.design.covariance) != self.counts.size:
            raise ValueError(
                f"design must be of the {self.counts.size} cells that are counted; got {len(self.design.covariance)}."
            )
        if self.scores is not None:
            raise ValueError("a tally with a survey design holds no scores: leave out y_score, or the design.")

    def _check_scores(self) -> None:
        """Refuse scores that are not of the rows counted."""
        if self.scores is None:
            return
        counted = self.scores.counts if isinstance(self.scores, ScoreTally) else self.scores.counts.sum(1)
        if not np.array_equal(counted, self.rows.sum(2)):
            raise ValueError("scores must be of the rows that are counted: their numbers by group and outcome differ.")
        if (self.scores.weights is None) != (self.weights is None) or not (
            self.weights is None or np.allclose(self.scores.bins.totals.sum(1), self.counts.sum(2), rtol=1e-9, atol=0)
        ):
            raise ValueError("scores must be of the rows that are counted: their weights by group and outcome differ.")

    # --------------------------------------------------------------------------------------------------- construction
    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        control_features: Any = None,
        y_score: Any = None,
        sample_weight: Any = None,
        exact_weights: bool = False,
        clusters: Any = None,
        strata: Any = None,
        replicate_weights: Any = None,
        pos_label: Any = None,
        missing: str = "bucket",
    ) -> Tally:
        """Return the tally of rows.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,) or None
            True labels; None if there are none: error metrics are then "insufficient data".
        y_pred : array-like of shape (n_rows,)
            Decisions.
        sensitive_features : Series, array, dict of arrays or frame with n_rows rows
            The group of each row; names come from it. pandas, polars and pyarrow are accepted.
        control_features : Series, array, dict of arrays or frame with n_rows rows, optional
            What groups are to be compared within: not audited themselves.
        y_score : array-like of shape (n_rows,), optional
            Scores or probabilities of the positive label, kept beside the counts.
        sample_weight : array-like of shape (n_rows,), optional
            How many people each row stands for, up to a common factor: sampling weights, at least 0. Rows with a weight of 0
            are left out.
        exact_weights : bool, default=False
            Whether to keep every weight, so that the bootstrap draws rows instead of matching two moments in cells of 30
            rows and more.
        clusters : array-like of shape (n_rows,), optional
            Label of the sampling unit of each row (household, school): whole units were drawn, and their rows are alike. Of
            several stages it is the first. Without it every row is its own unit.
        strata : array-like of shape (n_rows,), optional
            Label of the design stratum of each row, within which units were drawn: quotas, oversampled groups.
        replicate_weights : array-like or frame of shape (n_rows, n_replicates), optional
            Replicates of ``sample_weight`` by successive differences, such as PWGTP1 to PWGTP80 of the ACS: variances are
            ``4 / n_replicates`` times the sum of squared deviations. Negative ones occur and are used as they are.
        pos_label : label, optional
            The positive label; guessed only for {0, 1}, {-1, 1} and booleans.
        missing : {"bucket", "raise"}, default="bucket"
            What to do with rows whose group is missing.

        Returns
        -------
        Tally

        Raises
        ------
        ValueError
            If lengths or pandas indexes differ, labels are ambiguous, missing or scores, scores are missing or several a
            row, an attribute or control feature has too many values, or one name is used for both; if weights are missing,
            negative or all 0; if clusters or strata are missing, a stratum has one unit, a cluster
            lies in two strata, replicate weights come without weights or beside clusters, or a design comes with scores.
        TypeError
            If an argument is not a column of values, or scores or weights are no numbers.
        """
        columns = sensitive_columns(sensitive_features)
        controls = {} if control_features is None else sensitive_columns(control_features, "control_features")
        _check_apart(columns, controls)
        named = {
            **{f"sensitive feature {k!r}": v for k, v in columns.items()},
            **{f"control feature {k!r}": v for k, v in controls.items()},
        }
        surveyed = {"clusters": clusters, "strata": strata, "replicate_weights": replicate_weights}
        asked = [name for name, values in surveyed.items() if values is not None]
        if asked and y_score is not None:
            raise ValueError(
                f"scores of rows with a survey design are not supported: leave out y_score, or {' and '.join(asked)}."
            )
        aligned = {"y_true": y_true, "y_pred": y_pred, "y_score": y_score, "sample_weight": sample_weight, **named}
        check_aligned(aligned | surveyed)
        labels = encode_labels(y_true, y_pred, pos_label)
        encoded = encode_groups(columns, missing=missing)
        encoded |= encode_groups(controls, missing=missing, kind="control feature")
        weights = None if sample_weight is None else check_sample_weight(sample_weight)
        design = check_design(clusters, strata, replicate_weights, sample_weight)
        tally, group_codes = cls._of_codes(
            labels, encoded, tuple(controls), weights=weights, exact=bool(exact_weights), design=design
        )
        if y_score is None:
            return tally
        sizes = [len(column.levels) for column in encoded.values()]
        n_cells = prod(sizes) * 2 * tally.counts.shape[1]
        codes = _combine([column.codes for column in encoded.values()], sizes, n_cells)
        scores, truth = y_score, labels.y_true
        if weights is not None:  # groups of which all rows weigh 0 have no place
            used = np.flatnonzero(weights)
            codes, scores, weights = codes[used], check_scores(y_score)[used], weights[used]
            truth = None if truth is None else truth[used]
        position = _positions(codes, group_codes)
        held = ScoreTally.from_rows(scores, truth, position, n_groups=len(tally.groups), weights=weights)
        return replace(tally, scores=held)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        y_true: str | None,
        y_pred: str,
        sensitive_features: str | Sequence[str],
        control_features: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        pos_label: Any = None,
        missing: str = "bucket",
    ) -> Tally:
        """Return the tally of columns of a frame, counted by the frame's own engine.

        Distinct rows and their counts are all that leaves the engine: data may lie on disk or on a cluster, and be larger than
        memory. The tally is that of :meth:`from_predictions` on the same rows.

        Parameters
        ----------
        frame : frame of pandas, polars, pyarrow, duckdb, dask, pyspark or another library narwhals knows, eager or lazy
            Of a polars frame from ``scan_parquet`` only the columns named are read, in a stream.
        y_true : str or None
            Name of the column of true labels; None if there are none.
        y_pred : str
            Name of the column of decisions.
        sensitive_features : str or list of str
            Names of the columns of groups.
        control_features : str or list of str, optional
            Names of the columns that groups are to be compared within.
        sample_weight : str, optional
            Name of the column of sampling weights. The engine sums their powers by distinct row; of distinct rows that fewer
            than 30 rows have, the weights come back one by one, as the bootstrap needs them.
        pos_label, missing
            As in :meth:`from_predictions`.

        Returns
        -------
        Tally

        Raises
        ------
        ValueError
            If a column is absent, labels are ambiguous, missing or scores, or a column of groups has too many values; if
            weights are missing, infinite, negative or all 0.
        TypeError
            If ``frame`` is no frame, a column is not given by its name, or weights are no numbers.

        Notes
        -----
        A missing value is null or, in a column of floats, NaN. Where an engine stores whole numbers beside missing ones as
        floats, as pandas does without its nullable types, groups are floats: 1.0, not 1. Categories are the values they
        stand for, and a day without a time is a :class:`datetime.date`.

        Sums of weights depend on the order in which an engine adds, in their last digits: two engines' tallies of weighted
        rows have the same rows and kept weights, and the same sums up to rounding, but not always the same digest. A lazy
        frame is read twice if some weights are kept.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"y": [1, 0, 1, 0], "hired": [1, 0, 0, 0], "sex": ["f", "f", "m", "m"]})
        >>> Tally.from_frame(rows, y_true="y", y_pred="hired", sensitive_features="sex").counts[:, 1, 1]
        array([1, 0])
        """
        names = column_names(y_true, y_pred, sensitive_features, control_features, sample_weight)
        _check_apart(names.sensitive, names.controls)
        cells = count_cells(frame, names, pos_label=pos_label)
        return cls._of_columns(*cells.columns_of(names), cells.counts, pos_label, missing, cells.weights)

    @classmethod
    def from_shards(
        cls,
        paths: Any,
        *,
        y_true: str | None,
        y_pred: str,
        sensitive_features: str | Sequence[str],
        control_features: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        pos_label: Any = None,
        missing: str = "bucket",
        verbose: int = 1,
    ) -> Tally:
        """Return the tally of the rows of many files, counted one file after another.

        Memory is bounded by a part of one file and by the number of distinct rows. A label or group may be absent from some
        of the files: labels are judged once all are counted.

        Parameters
        ----------
        paths : path or list of paths
            Files that end in .parquet (read by polars, or else by pyarrow), or files that end in .csv. Columns of a CSV file
            are text, so that a group called NA stays a group, and only an empty cell is missing; labels become numbers or
            booleans where all of them spell such.
        y_true, y_pred, sensitive_features, control_features, sample_weight, pos_label, missing
            As in :meth:`from_frame`.
        verbose : int, default=1
            0 is silent; else a bar on a terminal once two seconds have passed.

        Returns
        -------
        Tally

        Raises
        ------
        ValueError
            If a file cannot be read or has not got a column; the message names it. Else as :meth:`from_frame`.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import pandas as pd
        >>> with TemporaryDirectory() as folder:
        ...     files = [Path(folder, "may.csv"), Path(folder, "june.csv")]
        ...     pd.DataFrame({"hired": [1, 0], "sex": ["f", "f"]}).to_csv(files[0], index=False)
        ...     pd.DataFrame({"hired": [1], "sex": ["m"]}).to_csv(files[1], index=False)
        ...     Tally.from_shards(files, y_true=None, y_pred="hired", sensitive_features="sex").counts.tolist()
        [[[1, 1]], [[0, 1]]]
        """
        names = column_names(y_true, y_pred, sensitive_features, control_features, sample_weight)
        _check_apart(names.sensitive, names.controls)
        cells = count_files(paths, names, pos_label=pos_label, verbose=verbose)
        return cls._of_columns(*cells.columns_of(names), cells.counts, pos_label, missing, cells.weights)

    @classmethod
    def _of_columns(
        cls,
        y_true: Any,
        y_pred: Any,
        columns: Mapping[str, Any],
        controls: Mapping[str, Any],
        counts: NDArray[np.int64] | None,
        pos_label: Any,
        missing: str,
        sample_weight: Any = None,
    ) -> Tally:
        """Return the tally of rows that each stand for ``counts`` rows, through the same door as single ones.

        Of single rows, where ``counts`` is None, ``sample_weight`` has a weight each; else it is the sums of their weights.
        """
        check_aligned({"y_true": y_true, "y_pred": y_pred})
        labels = encode_labels(y_true, y_pred, pos_label, counts=counts)
        encoded = encode_groups(columns, missing=missing, counts=counts)
        encoded |= encode_groups(controls, missing=missing, kind="control feature", counts=counts)
        weights = sample_weight
        if sample_weight is not None and counts is None:
            weights = check_sample_weight(sample_weight)
        return cls._of_codes(labels, encoded, tuple(controls), counts, weights=weights)[0]

    @classmethod
    def _of_codes(
        cls,
        labels: Labels,
        encoded: Mapping[str, Column],
        controls: tuple[str, ...],
        multiplicity: NDArray[np.int64] | None = None,
        weights: NDArray[np.float64] | WeightSums | None = None,
        exact: bool = False,
        design: DesignRows | None = None,
    ) -> tuple[Tally, NDArray[np.int64]]:
        """Return the tally of encoded rows, or of distinct ones, and the mixed-radix codes of its groups."""
        codes = [*encoded.values()]
        if labels.y_true is not None:
            codes.append(Column(labels.y_true, (0, 1)))
        codes.append(Column(labels.y_pred, (0, 1)))
        sizes = [len(column.levels) for column in codes]
        n_given = len(codes[0].codes) if multiplicity is None else int(multiplicity.sum())
        if isinstance(weights, WeightSums):
            multiplicity = weights.rows
        if weights is not None:
            used = np.flatnonzero(weights.rows if isinstance(weights, WeightSums) else weights)
            codes = [Column(column.codes[used], column.levels) for column in codes]
            multiplicity = None if multiplicity is None else multiplicity[used]
            design = None if design is None else design.take(used)
        cells, counts = _count([column.codes for column in codes], sizes, multiplicity)
        n_outcomes = 2 if labels.y_true is not None else 1
        group_codes, inverse = np.unique(cells // (2 * n_outcomes), return_inverse=True)
        table = np.zeros((group_codes.size, n_outcomes, 2), dtype=np.int64)
        table.reshape(group_codes.size, -1)[inverse, cells % (2 * n_outcomes)] = counts
        positions = np.unravel_index(group_codes, sizes[: len(encoded)])
        values = [[column.levels[i] for i in index] for column, index in zip(encoded.values(), positions, strict=True)]
        groups = tuple(zip(*values, strict=True))
        if weights is None and design is None:
            return cls(tuple(encoded), groups, table, labels.pos_label, labels.labels, controls=controls), group_codes
        rows = _combine([column.codes for column in codes], sizes, prod(sizes))
        at = np.flatnonzero(table)[_positions(rows, cells)]
        surveyed = None
        if design is not None:
            each = weights[used] if isinstance(weights, np.ndarray) else np.ones(at.size)
            surveyed = design.by_cell(at, each, table.size)
        if weights is None:
            tally = cls(
                tuple(encoded), groups, table, labels.pos_label, labels.labels, controls=controls, design=surveyed
            )
            return tally, group_codes
        n_zero = n_given - int(table.sum())
        if isinstance(weights, WeightSums):
            of_cells = CellWeights.from_sums(weights.take(used), at, table.shape, n_zero=n_zero)
        else:
            of_cells = CellWeights.from_rows(weights[used], at, table.shape, n_zero=n_zero, exact=exact)
        tally = cls(
            tuple(encoded),
            groups,
            of_cells.sums,
            labels.pos_label,
            labels.labels,
            controls=controls,
            weights=of_cells,
            design=surveyed,
        )
        return tally, group_codes

    @classmethod
    def from_counts(
        cls, counts: Mapping[Any, Any], *, attribute: str | Sequence[str] = "group", pos_label: Any = 1
    ) -> Tally:
        """Return the tally of a printed table.

        Parameters
        ----------
        counts : mapping of group to mapping
            Per group either ``tp, fp, fn, tn`` or, where there are no labels, ``n`` and ``selected``.
        attribute : str or sequence of str
            Name of the attribute, or names where a group is a tuple of values.
        pos_label : label
            What a positive decision is called.

        Returns
        -------
        Tally

        Examples
        --------
        >>> Tally.from_counts({"F": {"n": 10, "selected": 4}, "M": {"n": 20, "selected": 10}}).counts[:, 0, 1]
        array([ 4, 10])
        """
        names = (attribute,) if isinstance(attribute, str) else tuple(attribute)
        if not isinstance(counts, Mapping) or not counts:
            raise (ValueError if isinstance(counts, Mapping) else TypeError)(
                f"counts must give a mapping of counts for each of one or more groups; got {counts!r:.80}."
            )
        table = {}
        for group, cell in counts.items():
            if not isinstance(cell, Mapping):
                raise TypeError(
                    f"counts of group {group!r} must be a mapping of tp, fp, fn, tn or n, selected; got {cell!r:.80}."
                )
            text = [
                key for key in ("tp", "fp", "fn", "tn", "n", "selected") if not isinstance(cell.get(key, 0), Number)
            ]
            if text:
                raise TypeError(
                    f"counts of group {group!r} must be numbers of rows; {text[0]} is {cell[text[0]]!r:.80}."
                )
            if {"tp", "fp", "fn", "tn"} <= set(cell):
                table[group] = [[cell["tn"], cell["fp"]], [cell["fn"], cell["tp"]]]
            elif {"n", "selected"} <= set(cell):
                table[group] = [[cell["n"] - cell["selected"], cell["selected"]]]
            else:
                raise ValueError(
                    f"counts of group {group!r} must give tp, fp, fn, tn or n, selected; got {sorted(cell)}."
                )
        rows = {(key,) if len(names) == 1 else key: cells for key, cells in table.items()}
        odd = [key for key in rows if not isinstance(key, tuple) or len(key) != len(names)]
        if odd:
            raise ValueError(
                f"every group must hold one value for each of the attributes {listing(names)}; got {listing(odd)}."
            )
        scalars = {tuple(map(as_scalar, key)): cells for key, cells in rows.items()}
        groups, _ = _place(list(scalars))
        return cls(names, tuple(groups), [scalars[group] for group in groups], as_scalar(pos_label))  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------------------- reading
    @property
    def labelled(self) -> bool:
        """Whether there are true labels."""
        return self.counts.shape[1] == 2

    @property
    def audited(self) -> tuple[str, ...]:
        """The attributes that are not controls."""
        return tuple(name for name in self.attributes if name not in self.controls)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Numbers of rows, of the shape of ``counts``: these themselves, unless rows are weighted."""
        return self.counts if self.weights is None else self.weights.rows

    @property
    def n_rows(self) -> int:
        """Number of rows counted."""
        return int(self.rows.sum())

    def marginal(self, attributes: Sequence[str]) -> Tally:
        """Return the tally of some of the attributes, in the order given; the others are summed over."""
        marginal, position = self._marginal(attributes)
        if self.scores is None:
            return marginal
        return replace(marginal, scores=self.scores.merge(position, len(marginal.groups)))

    def _marginal(self, attributes: Sequence[str]) -> tuple[Tally, NDArray[np.intp]]:
        """Return the marginal tally of the counts alone, and the position in it of each group of this one."""
        unknown = [name for name in attributes if name not in self.attributes]
        if unknown or not attributes:
            raise ValueError(f"attributes must be among {listing(self.attributes)}; got {listing(list(attributes))}.")
        where = [self.attributes.index(name) for name in attributes]
        columns = list(zip(*self.groups, strict=True))
        keys = list(zip(*(columns[i] for i in where), strict=True)) if columns else []
        ordered, position = _place(keys)
        counts = np.zeros((len(ordered), *self.counts.shape[1:]), dtype=self.counts.dtype)
        np.add.at(counts, position, self.counts)
        controls = tuple(name for name in self.controls if name in attributes)
        marginal = Tally(
            tuple(attributes),
            tuple(ordered),
            counts,
            self.pos_label,
            self.labels,
            controls=controls,
            weights=None if self.weights is None else self.weights.merge(position, len(ordered)),
            design=None if self.design is None else self._merged_design(position, len(ordered)),
        )
        return marginal, position

    def _merged_design(self, position: NDArray[np.intp], n_groups: int) -> SurveyDesign | None:
        """Return the design with group ``i`` counted as group ``position[i]`` of ``n_groups``."""
        if self.design is None:
            return None
        n_slots = self.counts[0].size
        cells = (np.asarray(position)[:, None] * n_slots + np.arange(n_slots)).ravel()
        return self.design.merge(cells, n_groups * n_slots)

    def frame(self) -> pd.DataFrame:
        """Return one row a group: the attributes, ``n``, and ``tp, fp, fn, tn`` (or ``selected`` without labels).

        Of weighted rows these are numbers of rows; ``weight`` and ``weight_tp, ...`` are the sums of their weights.
        """
        cells = ("tp", "fp", "fn", "tn") if self.labelled else ("selected",)
        weighted = ("weight", *(f"weight_{name}" for name in cells)) if self.weights is not None else ()
        check_apart(self.attributes, ("n", *cells, *weighted), "the table")
        data: dict[str, Any] = {name: [group[i] for group in self.groups] for i, name in enumerate(self.attributes)}
        data["n"] = self.rows.sum((1, 2))
        data |= self._columns(self.rows)
        if self.weights is not None:
            data["weight"] = self.counts.sum((1, 2))
            data |= {f"weight_{name}": column for name, column in self._columns(self.counts).items()}
        return pd.DataFrame(data)

    def _columns(self, table: NDArray[Any]) -> dict[str, NDArray[Any]]:
        if not self.labelled:
            return {"selected": table[:, 0, 1]}
        return {"tp": table[:, 1, 1], "fp": table[:, 0, 1], "fn": table[:, 1, 0], "tn": table[:, 0, 0]}

    # ----------------------------------------------------------------------------------------------------- combining
    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        for what, mine, theirs in (
            ("attributes", self.attributes, other.attributes),
            ("controls", self.controls, other.controls),
            ("pos_label", self.pos_label, other.pos_label),
            ("labelled", self.labelled, other.labelled),
            ("keeping of scores", self.scores is not None, other.scores is not None),
            ("weighting", self.weights is not None, other.weights is not None),
            ("survey designs", self.design and self.design.kind, other.design and other.design.kind),
        ):
            if mine != theirs:
                raise ValueError(f"tallies add only if their {what} agree; got {mine!r} and {theirs!r}.")
        groups, place = _place([*self.groups, *other.groups])
        places = np.split(place, [len(self.groups)])
        counts = np.zeros((len(groups), *self.counts.shape[1:]), dtype=self.counts.dtype)
        for tally, place in zip((self, other), places, strict=True):
            counts[place] += tally.counts
        labels = tuple(sort_labels([*dict.fromkeys([*self.labels, *other.labels])]))
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = self.weights.merge(places[0], len(groups)) + other.weights.merge(places[1], len(groups))
            counts = weights.sums
        mine_design, design = (t._merged_design(at, len(groups)) for t, at in zip((self, other), places, strict=True))
        if mine_design is not None and design is not None:
            design = mine_design + design
        total = Tally(
            self.attributes,
            tuple(groups),
            counts,
            self.pos_label,
            labels,
            controls=self.controls,
            weights=weights,
            design=design,
        )
        if self.scores is None or other.scores is None:
            return total
        mine, theirs = (
            tally.scores.merge(place, len(groups))
            for tally, place in zip((self, other), places, strict=True)
            if tally.scores is not None
        )
        return replace(total, scores=mine + theirs)

    def __radd__(self, other: Any) -> Tally:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.attributes, self.groups, self.counts.tobytes()))

    def __reduce__(self) -> Any:
        state = (self.attributes, self.groups, self.counts, self.pos_label, self.labels)
        extra: tuple[Any, ...] = (self.controls, self.scores)
        if self.weights is not None or self.design is not None:
            extra = (*extra, self.weights) if self.design is None else (*extra, self.weights, self.design)
        return Tally, (*state, *extra) if any(part for part in extra) else state

    def __repr__(self) -> str:
        truth = ("labelled" if self.labelled else "no labels") + ", weighted" * (self.weights is not None)
        truth += "" if self.design is None else f", {self.design.kind}"
        return f"<Tally of {self.n_rows} rows, {len(self.groups)} groups of {' & '.join(self.attributes)}, {truth}>"

    # ------------------------------------------------------------------------------------------------------- storing
    def to_dict(self) -> dict[str, Any]:
        """Return the tally as plain JSON types; labels keep their type (30 and "30" stay apart), scores become bins.

        Weights become sums by cell; those that are kept one by one, as in cells of few rows, are stored too. A survey design
        becomes the covariance of the cells, without its units.
        """
        ranks = [_ranks(values) for values in zip(*self.groups, strict=True)]
        data = {
            "attributes": list(self.attributes),
            "groups": [
                [label_to_json(value, rank[value]) for value, rank in zip(group, ranks, strict=True)]
                for group in self.groups
            ],
            "counts": self.counts.tolist(),
            "pos_label": label_to_json(self.pos_label),
            "labels": [label_to_json(label) for label in self.labels],
        }
        data |= {"controls": list(self.controls)} if self.controls else {}
        data |= {} if self.weights is None else {"weights": self.weights.to_dict()}
        data |= {} if self.design is None else {"design": self.design.to_dict()}
        return data | ({} if self.scores is None else {"score_bins": self.scores.to_dict()})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """Return the tally that :meth:`to_dict` wrote."""
        kind: type[Any] = np.float64 if "weights" in data else np.int64
        counts: NDArray[Any] = np.array(data["counts"], dtype=kind).reshape(len(data["groups"]), -1, 2)
        return cls(
            tuple(data["attributes"]),
            tuple(tuple(label_from_json(value) for value in group) for group in data["groups"]),
            counts,
            label_from_json(data["pos_label"]),
            tuple(label_from_json(label) for label in data["labels"]),
            controls=tuple(data.get("controls", ())),
            scores=ScoreBins.from_dict(data["score_bins"]) if "score_bins" in data else None,
            weights=CellWeights.from_dict(data["weights"], counts) if "weights" in data else None,
            design=SurveyDesign.from_dict(data["design"], counts.size) if "design" in data else None,
        )

    def digest(self) -> str:
        """Return the SHA-256 of the canonical tally, as hexadecimal."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


# ----------------------------------------------------------------------------------------------------------- labels
def label_to_json(value: Any, rank: int = 0) -> Any:
    """Return a label as JSON keeps it: plain scalars as they are, others tagged with their type and place in order."""
    if value is MISSING:
        return {"type": "missing"}
    if type(value) in _JSON_TYPES and not (isinstance(value, float) and not isfinite(value)):
        return value
    kind, text = (value.type, value.text) if isinstance(value, ForeignLabel) else (type(value).__name__, str(value))
    return {"type": kind, "value": text, "rank": rank}


def label_from_json(value: Any) -> Any:
    """Return the label that :func:`label_to_json` wrote."""
    if isinstance(value, Mapping):
        if value["type"] == "float":
            return float(value["value"])  # infinity, which JSON has no number for
        return MISSING if value["type"] == "missing" else ForeignLabel(value["type"], value["value"], value["rank"])
    return as_scalar(value)


def _ranks(values: Sequence[Any]) -> dict[Any, int]:
    """Return the place of each value in canonical order (dates and intervals in their own)."""
    return {value: i for i, value in enumerate(sort_labels(list(dict.fromkeys(values))))}


def _place(groups: Sequence[Group]) -> tuple[list[Group], NDArray[np.intp]]:
    """Return distinct groups in canonical order of their values, the first attribute first, and the place of each given."""
    if not groups:
        return [], np.empty(0, dtype=np.intp)
    columns = list(zip(*groups, strict=True))
    ranks = [[rank[value] for value in values] for values, rank in zip(columns, map(_ranks, columns), strict=True)]
    _, first, place = np.unique(np.array(ranks).T, axis=0, return_index=True, return_inverse=True)
    return [groups[i] for i in first.tolist()], place.reshape(-1)  # numpy 2.0 alone gives the places a second axis


# --------------------------------------------------------------------------------------------------------- counting
def _check_apart(columns: Iterable[str], controls: Iterable[str]) -> None:
    """Refuse a name that is used both for a sensitive and for a control feature."""
    both = [name for name in controls if name in columns]
    if both:
        raise ValueError(
            f"control_features repeat the sensitive features {listing(both)}: a column is either audited or controlled "
            f"for. Leave it out of one, or give it another name."
        )


def _count(
    columns: list[NDArray[Any]], sizes: list[int], multiplicity: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells that occur (mixed-radix codes, sorted) and how many rows each has."""
    n_cells = 1
    for size in sizes:
        n_cells *= size
    if n_cells >= 1 << 62:
        raise ValueError("the sensitive features have too many combinations of values to count; audit fewer at once.")
    code = _combine(columns, sizes, n_cells)
    if multiplicity is not None:
        cells, inverse = np.unique(code, return_inverse=True)
        counts = np.zeros(cells.size, dtype=np.int64)
        np.add.at(counts, inverse, multiplicity)
        return cells.astype(np.int64), counts
    if n_cells <= max(_DENSE_CELLS, 4 * code.size):
        counts = _bincount(code, n_cells)
        cells = np.flatnonzero(counts)
        return cells, counts[cells]
    inverse, cells = pd.factorize(code)
    order = np.argsort(cells)
    return np.asarray(cells)[order], np.bincount(inverse, minlength=len(cells))[order]


def _combine(columns: list[NDArray[Any]], sizes: list[int], n_cells: int) -> NDArray[Any]:
    """Return one mixed-radix code a row, in the smallest type that holds it."""
    kind: type[np.unsignedinteger[Any] | np.signedinteger[Any]] = np.int64
    if n_cells < 1 << 8:
        kind = np.uint8
    elif n_cells < 1 << 16:
        kind = np.uint16
    code = columns[0].astype(kind)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        np.multiply(code, kind(size), out=code)
        np.add(code, column, out=code, casting="unsafe")
    return code


def _positions(code: NDArray[Any], cells: NDArray[np.int64]) -> NDArray[Any]:
    """Return the place of each row's cell among the sorted cells that occur."""
    if int(cells[-1]) >= _DENSE_CELLS:
        return np.searchsorted(cells, code)
    place = np.zeros(int(cells[-1]) + 1, dtype=np.uint16 if cells.size <= 1 << 16 else np.int64)
    place[cells] = np.arange(cells.size)
    return place[code]


def _bincount(code: NDArray[Any], n_cells: int) -> NDArray[np.int64]:
    """Return ``numpy.bincount``; uint8 codes are counted two at a time, read as one uint16, which halves the passes."""
    if code.dtype == np.uint8 and code.size > 1 << 17:
        even = code.size // 2 * 2
        pairs = np.bincount(code[:even].view(np.uint16), minlength=1 << 16).reshape(1 << 8, 1 << 8)
        pairs = pairs[:n_cells, :n_cells]
        counts = pairs.sum(0) + pairs.sum(1)
        counts[code[even:]] += 1
        return counts
    return np.bincount(code, minlength=n_cells)
