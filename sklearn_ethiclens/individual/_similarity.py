"""``similarity_violations``: pairs that a given similarity says are alike and a model tells apart; all pairs, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from sklearn_ethiclens.individual._blocks import in_blocks
from sklearn_ethiclens.individual._features import check_rows, read_scores
from sklearn_ethiclens.inference._pairs import draw_rows
from sklearn_ethiclens.inference._resampling import as_seed

BLOCK_ROWS = 1024
_GUARD = 1e-12
_SYMMETRIC = 1e-8

Integers = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scan:
    """Sums over similar pairs, and the pairs listed: ``first, second, similarity, difference``, largest difference first."""

    n_similar: int
    total: float
    largest: float
    n_violations: int
    by_row: Floats
    similar_by_row: Floats
    listed: tuple[Integers, Integers, Floats, Floats]


def similarity_violations(
    similarity: Any,
    y_score: Any,
    X: Any = None,
    *,
    similarity_threshold: float = 0.9,
    prediction_threshold: float = 0.1,
    max_pairs: int = 100_000,
    max_samples: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 1,
) -> pd.DataFrame:
    """Return the pairs of people that are similar but scored differently, the largest difference first.

    Every pair is looked at, block by block: time is quadratic unless ``similarity`` is sparse or ``max_samples`` is given,
    memory is not. A similarity is a statement of who should be treated alike; the violations are as good as it is.

    Parameters
    ----------
    similarity : array or sparse matrix of shape (n_rows, n_rows), or callable
        Symmetric. An array may be a ``numpy.memmap``; what a sparse matrix does not hold is not similar. A callable is called
        with blocks of rows of X: ``similarity(A, B) -> array (len(A), len(B))``.
    y_score : array-like of shape (n_rows,)
        Scores in [0, 1], or decisions.
    X : DataFrame or array of shape (n_rows, n_features), optional
        Handed to a callable in blocks of rows, as the type it is; gives the labels of rows.
    similarity_threshold : float, default=0.9
        Pairs are similar above this, not at it.
    prediction_threshold : float, default=0.1
        Similar pairs violate above this difference, not at it.
    max_pairs : int, default=100_000
        List at most so many; ``attrs["n_violations"]`` counts all.
    max_samples : int, optional
        Look only at the pairs among so many rows, drawn at random.
    n_jobs, random_state, verbose
        As in :func:`consistency_score`.

    Returns
    -------
    DataFrame
        ``individual_a, individual_b`` (labels of pandas rows, else positions), ``similarity``, ``prediction_diff``.
        ``attrs``: ``n_similar_pairs``, ``n_violations``, ``violation_rate`` (of similar pairs; NaN without any), ``n_pairs``,
        ``n_rows``, ``n_sampled``, ``random_state`` and the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> similarity = np.array([[1, 0.95, 0.2], [0.95, 1, 0.92], [0.2, 0.92, 1]])
    >>> found = similarity_violations(similarity, [0.3, 0.7, 0.65])
    >>> found[["individual_a", "individual_b", "similarity"]].values.tolist()
    [[0.0, 1.0, 0.95]]
    >>> found.attrs["n_similar_pairs"]
    2
    """
    n_rows = check_rows(**({} if X is None else {"X": X}), y_score=y_score)
    if isinstance(max_pairs, bool) or not isinstance(max_pairs, int | np.integer) or max_pairs < 1:
        raise ValueError(f"max_pairs must be a whole number of at least 1; got {max_pairs!r}.")
    scores, seed = read_scores(y_score), as_seed(random_state)
    blocks = read_similarity(similarity, n_rows, X)
    chosen = draw_rows(n_rows, max_samples, seed)
    scan = scan_similar(blocks, scores, chosen, similarity_threshold, prediction_threshold, max_pairs, n_jobs, verbose)
    source = next((values for values in (X, y_score) if isinstance(values, pd.DataFrame | pd.Series)), None)
    index = pd.RangeIndex(n_rows) if source is None else source.index
    first, second, alike, difference = scan.listed
    frame = pd.DataFrame(
        {
            "individual_a": index[first],
            "individual_b": index[second],
            "similarity": alike,
            "prediction_diff": difference,
        }
    )
    frame.attrs.update(
        n_similar_pairs=scan.n_similar,
        n_violations=scan.n_violations,
        violation_rate=scan.n_violations / scan.n_similar if scan.n_similar else float("nan"),
        n_pairs=chosen.size * (chosen.size - 1) // 2,
        n_rows=n_rows,
        n_sampled=int(chosen.size),
        similarity_threshold=similarity_threshold,
        prediction_threshold=prediction_threshold,
        random_state=seed,
    )
    return frame


def read_similarity(similarity: Any, n_rows: int, X: Any = None) -> Any:
    """Return similarities as a function of two blocks of row positions, or as a sparse matrix."""
    if callable(similarity):
        if X is None:
            raise ValueError("similarity is a callable of two blocks of rows: pass X, whose rows they are.")
        take = _taker(X)

        def called(first: Integers, second: Integers) -> Any:
            return similarity(take(first), take(second))

        return called
    if issparse(similarity):
        sparse: Any = similarity  # mypy would have it a bare base class
        matrix: Any = csr_array(sparse)
        _check_shape(matrix.shape, n_rows)
        lopsided = abs(matrix - matrix.T).max() if matrix.nnz else 0.0
        _check_values(matrix.data, lopsided)
        return matrix
    if isinstance(similarity, pd.DataFrame):
        similarity = similarity.to_numpy()
    array = np.asanyarray(similarity)
    _check_shape(array.shape, n_rows)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"similarity must hold numbers; got an array of {array.dtype}.")

    def block(first: Integers, second: Integers) -> Any:
        part = np.asarray(array[np.ix_(first, second)], dtype=float)
        mirrored = np.asarray(array[np.ix_(second, first)], dtype=float).T
        _check_values(part, np.abs(part - mirrored).max(initial=0.0))
        return part

    return block


def _taker(X: Any) -> Callable[[Integers], Any]:
    if isinstance(X, pd.DataFrame):
        return lambda rows: X.iloc[rows]
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        return lambda rows: frame[rows.tolist()].to_native()
    array = np.asarray(X)
    return lambda rows: array[rows]


def _check_shape(shape: tuple[int, ...], n_rows: int) -> None:
    if tuple(shape) != (n_rows, n_rows):
        raise ValueError(
            f"similarity must have a row and a column for each of the {n_rows} rows of y_score; got shape {tuple(shape)}."
        )


def _check_values(values: Any, lopsided: float) -> None:
    if np.isnan(values).any():
        raise ValueError("similarity holds NaN; a pair that is not known to be similar needs a number such as 0.")
    if lopsided > _SYMMETRIC:
        raise ValueError(
            f"similarity must be symmetric; entries (i, j) and (j, i) differ by up to {lopsided:g}. Pass for example "
            f"(S + S.T) / 2."
        )


def scan_similar(
    blocks: Any,
    scores: Floats,
    chosen: Integers,
    threshold: float,
    violates: float | None,
    max_pairs: int,
    n_jobs: int | None,
    verbose: int,
) -> Scan:
    """Go through all pairs of the chosen rows, and sum up and list those that are similar.

    Parameters
    ----------
    blocks : callable or sparse matrix
        As :func:`read_similarity` gives it.
    scores : ndarray of shape (n_rows,)
    chosen : ndarray of int
        Rows to look at.
    threshold : float
        Pairs are similar above it.
    violates : float or None
        Similar pairs whose scores differ by more are listed; None lists none.
    max_pairs : int
        List at most so many.
    n_jobs, verbose
        See :func:`in_blocks`.
    """
    if isinstance(blocks, csr_array) and threshold < 0:
        raise ValueError(f"similarity_threshold must be at least 0 for a sparse similarity; got {threshold!r}.")
    starts = range(0, chosen.size, BLOCK_ROWS)
    tiles = [(i, j) for i in starts for j in starts if j >= i]
    if isinstance(blocks, csr_array):
        tiles = [(i, -1) for i in starts]
        blocks = blocks if chosen.size == scores.size else blocks[chosen][:, chosen]

    def work(tile: tuple[int, int]) -> tuple[Any, ...]:
        first, second, alike = _similar_in(blocks, chosen, tile, threshold)
        difference = np.abs(scores[chosen[first]] - scores[chosen[second]])
        listed = np.flatnonzero(difference > violates + _GUARD) if violates is not None else np.empty(0, dtype=np.intp)
        kept = _largest(first[listed], second[listed], alike[listed], difference[listed], max_pairs)
        rows = np.concatenate([first, second])
        sums, counts = np.concatenate([difference, difference]), np.ones(rows.size)
        by_row = np.bincount(rows, sums, minlength=chosen.size), np.bincount(rows, counts, minlength=chosen.size)
        return first.size, difference.sum(), difference.max(initial=0.0), listed.size, by_row, kept

    n_similar, total, largest, n_violations = 0, 0.0, 0.0, 0
    by_row = np.zeros((2, chosen.size))
    none = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))
    kept: tuple[Any, ...] = none
    for count, summed, most, n_listed, sums, some in in_blocks(
        work, tiles, n_jobs=n_jobs, verbose=verbose, words="similarities"
    ):
        n_similar, total, largest = n_similar + count, total + float(summed), max(largest, float(most))
        n_violations += n_listed
        by_row[0] += sums[0]
        by_row[1] += sums[1]
        if n_listed:
            first, second, alike, difference = map(np.concatenate, zip(kept, some, strict=True))
            kept = _largest(first, second, alike, difference, max_pairs)
    first, second, alike, difference = kept
    listed = (chosen[first], chosen[second], alike, difference)
    return Scan(n_similar, total, largest, n_violations, by_row[0], by_row[1], listed)


def _similar_in(blocks: Any, chosen: Integers, tile: tuple[int, int], threshold: float) -> tuple[Any, Any, Any]:
    """Return the pairs (first < second, positions in ``chosen``) of a tile that are similar, and their similarity."""
    start, other = tile
    if isinstance(blocks, csr_array):
        part = blocks[start : start + BLOCK_ROWS].tocoo()
        first, second, values = part.row + start, part.col, part.data.astype(float)
    else:
        rows, columns = chosen[start : start + BLOCK_ROWS], chosen[other : other + BLOCK_ROWS]
        dense = np.asarray(blocks(rows, columns), dtype=float)
        if dense.shape != (rows.size, columns.size):
            raise ValueError(
                f"similarity(A, B) must return shape (len(A), len(B)) = {(rows.size, columns.size)}; got {dense.shape}."
            )
        _check_values(dense, 0.0)
        at = np.flatnonzero(dense > threshold)
        first, second = np.divmod(at, columns.size)
        values = dense.ravel()[at]
        first, second = first + start, second + other
    kept = (first < second) & (values > threshold)
    return first[kept].astype(np.intp), second[kept].astype(np.intp), values[kept]


def _largest(first: Any, second: Any, alike: Any, difference: Any, max_pairs: int) -> tuple[Any, ...]:
    order = np.lexsort((second, first, -alike, -difference))[:max_pairs]
    return first[order], second[order], alike[order], difference[order]
