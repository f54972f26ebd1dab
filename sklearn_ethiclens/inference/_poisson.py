"""Poisson bootstrap of a table of many cells, drawn a few groups at a time.

Cells drawn independently, each from the Poisson distribution with its count as mean, are a multinomial draw of as many rows
as there happen to be. Ratios of counts do not see the number of rows, so that every metric made of them has the same law,
and no cell needs to know of the others: replicates of a few groups are drawn, used and let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

Floats = NDArray[np.float64]

GROUPS = 64  # groups per random stream: results do not depend on threads or on how many groups are drawn at a time
_LARGEST = 1024  # the largest mean that has a table of its own; beyond it numpy draws
_KEPT = 1 << 27  # bytes of replicates that are kept, as whole numbers, and not drawn again
_BITS = 12  # of a random number look up the value in a table, which says at most places what the others would


class _Inverse(NamedTuple):
    """One Poisson distribution as a table of 4,096 places, and its steps, for draws by inversion (Chen and Asau 1974).

    A place whose numbers all lie between two steps of the distribution has its value in the table. At the others, some
    in a hundred, it holds ``-1 - value`` of the least it can be, and the digits that follow decide: the law is exact to the
    resolution of a double.
    """

    values: NDArray[Any]
    first: int
    steps: Floats

    @classmethod
    def of(cls, mean: int, kind: Any) -> _Inverse:
        """Return the table of a mean, of whole numbers of a kind."""
        reach = 10 * np.sqrt(mean) + 40  # what lies outside has a probability below the resolution of a double
        first = max(0, int(mean - reach))
        steps = np.asarray(pdtr(np.arange(first, int(mean + reach) + 1), float(mean)), dtype=np.float64)
        places = steps * (1 << _BITS)
        starts = np.minimum(np.ceil(places).astype(np.intp), 1 << _BITS)
        lengths = np.diff(np.concatenate([[0], starts, [1 << _BITS]]))
        values = np.repeat((first + np.arange(lengths.size)).astype(kind), lengths)
        several = np.unique(np.floor(places[places < starts]).astype(np.intp))
        values[several] = -1 - first - steps.searchsorted(several / (1 << _BITS), side="right")
        return cls(values, first, np.append(steps, np.inf))


class PoissonTables:
    """Bootstrap replicates of tables of counts whose cells are drawn independently.

    Parameters
    ----------
    counts : ndarray of int of shape (n_tables, n_slots)
        Rows by table (group) and cell.
    n_resamples : int
        Number of replicates.
    seed : int
        Seed; each 64 tables have a stream of their own.
    keep : bool, default=True
        Whether to keep what was drawn, where it is not too large, for when it is asked for again.
    """

    def __init__(self, counts: NDArray[np.int64], n_resamples: int, seed: int, *, keep: bool = True) -> None:
        self.counts, self.n_resamples = counts, n_resamples
        self._streams = np.random.SeedSequence(seed).spawn(-(-len(counts) // GROUPS))
        self._inverses: dict[int, _Inverse] = {}
        largest = float(counts.max(initial=0))
        self._whole = np.dtype(np.int16 if largest + 20 * np.sqrt(largest) < 2**15 else np.int64)
        self._keeps = keep and counts.size * n_resamples * self._whole.itemsize <= _KEPT
        self._kept: dict[int, NDArray[Any]] = {}

    def draw(self, number: int) -> Floats:
        """Return replicates of the tables of one stream: the first 64, the next, and so on.

        Parameters
        ----------
        number : int
            Which stream.

        Returns
        -------
        ndarray of shape (n_slots, n_tables, n_resamples)
            ``n_tables`` is at most 64. The same whenever it is called.
        """
        out = self._kept[number] if number in self._kept else self._draw(number)
        if self._keeps:
            self._kept[number] = out
        return out.astype(float)

    def _draw(self, number: int) -> NDArray[Any]:
        means = self.counts[number * GROUPS : (number + 1) * GROUPS].T
        generator = np.random.Generator(np.random.SFC64(self._streams[number]))
        out = np.zeros((*means.shape, self.n_resamples), dtype=self._whole)
        cells, means = out.reshape(-1, self.n_resamples), means.ravel()
        for cell in np.flatnonzero(means > _LARGEST):
            cells[cell] = generator.poisson(means[cell], size=self.n_resamples)
        self._look_up(cells, means, np.flatnonzero((means > 0) & (means <= _LARGEST)), generator)
        return out

    def _look_up(
        self, cells: NDArray[Any], means: NDArray[np.int64], chosen: NDArray[np.intp], generator: np.random.Generator
    ) -> None:
        """Fill the chosen cells with draws, by the tables of their means."""
        for mean in set(means[chosen].tolist()).difference(self._inverses):
            self._inverses[mean] = _Inverse.of(mean, self._whole)
        inverses = [self._inverses[mean] for mean in means[chosen].tolist()]
        raw = generator.bit_generator.random_raw((chosen.size, -(-self.n_resamples // 4)))
        places = raw.view(np.uint16)[:, : self.n_resamples] >> (16 - _BITS)
        for cell, inverse, place in zip(chosen.tolist(), inverses, places, strict=True):
            inverse.values.take(place, out=cells[cell], mode="clip")  # no place is outside, and "raise" would buffer
        flat = cells.reshape(-1)
        undecided = np.flatnonzero(flat < 0)
        at, column = np.divmod(undecided, self.n_resamples)
        own = chosen.searchsorted(at)
        exact = (places[own, column] + generator.random(at.size)) / (1 << _BITS)
        flat[undecided] = self._decide(inverses, own, exact, -1 - flat[undecided].astype(np.intp))

    @staticmethod
    def _decide(
        inverses: Sequence[_Inverse], own: NDArray[np.intp], exact: Floats, values: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the values of uniform numbers in [0, 1), each by its own table, from the least that each can be."""
        if not values.size:
            return values
        steps = np.concatenate([inverse.steps for inverse in inverses])
        sizes, first = np.array([(inverse.steps.size, inverse.first) for inverse in inverses]).T
        at = (np.cumsum(sizes) - sizes - first)[own]
        further = np.arange(values.size)
        while (further := further[exact[further] >= steps[at[further] + values[further]]]).size:
            values[further] += 1
        return values

    def seed_of(self, number: int) -> int:
        """Return a seed for what else is drawn for the tables of one stream."""
        return int(self._streams[number].generate_state(1, np.uint64)[0])
