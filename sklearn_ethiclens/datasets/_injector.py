"""BiasInjector: data whose bias is known exactly. The tally read backwards: from a population table to rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import MISSING, as_scalar, listing, sort_labels
from sklearn_ethiclens.datasets._inject import inject, resample
from sklearn_ethiclens.datasets._lots import as_label
from sklearn_ethiclens.datasets._population import Floats, Population, by_group, make_population
from sklearn_ethiclens.datasets._truth import Truth
from sklearn_ethiclens.inference._resampling import as_seed

__all__ = ["BiasInjector", "make_biased_classification"]

_POPULATION = (
    "groups",
    "attribute",
    "base_rate",
    "true_positive_rate",
    "false_positive_rate",
    "selection_rate",
    "disparate_impact",
    "equalized_odds_difference",
    "reference",
    "auc",
    "calibration_shift",
    "calibration_slope",
    "outcome",
    "labelled",
)


class BiasInjector(BaseEstimator):
    """A generator of data whose disparities are known exactly, to test what an audit, or any tool, finds in it.

    A population is a table: the share of each group, its base rate, and who is selected. ``truth`` holds the exact value
    of every metric in it; ``sample`` draws rows, ``sample_tally`` and ``sample_tallies`` draw counts without rows. What is
    not given is solved for by

        selection rate = base rate * true positive rate + (1 - base rate) * false positive rate

    so that any two of the three rates give the third, and all three give a base rate that was left out. With a selection
    rate alone (also by ``disparate_impact``), the selected of a group are those above a cut of its score. What neither is
    given nor follows is as in the reference, and there .5. A specification that no population meets is an error that says
    which number does not fit, and the nearest that would.

    Parameters
    ----------
    groups : sequence of labels, or mapping, default=("a", "b")
        Labels, of equal shares; label to share; a tuple of labels to share, for groups of several attributes; or attribute
        to one of the first two, for attributes that are independent. Shares add up to 1.
    base_rate : float or mapping of group to float, optional
        Share of positive labels. Default: what follows from the rates, or as in the reference, and there .5.
    disparate_impact : float or mapping of group to float, optional
        Rate of the favourable decision over that of the reference.
    true_positive_rate, false_positive_rate : float or mapping of group to float, optional
        Rates of positive decisions among the positives and the negatives.
    selection_rate : float or mapping of group to float, optional
        Rate of positive decisions. One number beside ``disparate_impact`` is the reference's.
    equalized_odds_difference : float or mapping of group to float, optional
        Larger of the absolute differences of the true and the false positive rate from the reference's. Alone, it lowers
        the true positive rate; beside a selection rate, the rates that have both are found. One number for a rate beside it
        is the reference's.
    reference : label, tuple, or mapping of attribute to value, optional
        The group that others are compared with. Default: beside ``disparate_impact`` or ``equalized_odds_difference`` the
        group with the largest share (the first such listed) not named in ``disparate_impact``; else, as in an audit, the
        group with the highest rate of the favourable decision.
    attribute : str or sequence of str, optional
        Name(s) of the sensitive feature(s), where ``groups`` does not give them; default "group", or "group_0" and so on.
    auc : float or mapping of group to float, default=0.8
        Area under the ROC curve, within the group, of the score; also the best that the features allow. In [.5, 1).
    calibration_shift : float or mapping of group to float, default=0.0
        What is added to the log-odds of the score: above 0, the positive label is predicted more often than it occurs.
    calibration_slope : float or mapping of group to float, default=1.0
        What divides the log-odds, before the shift: below 1, scores are too extreme. The metric of this name finds it again.
        With shift 0 and slope 1, P(y = 1 | score) is the score.
    by_score : bool, default=True
        Within group and label, select those with the highest scores; False: at random.
    outcome : {"favorable", "adverse"}, default="favorable"
        What a positive decision means for a person.
    n_features : int, default=4
        Columns of X. 0: no features.
    n_informative : int, optional
        Of these, how many tell of the label; default: half of those that are no proxies, rounded up.
    n_proxies : int, default=1
        Of these, how many tell of the group.
    proxy_strength : float, default=0.0
        Correlation of a proxy with belonging to its group, in [0, 1]. The first proxy is of the first group that is not the
        reference, the next of the next, and round again; of several attributes, one attribute after the other.
    classes : tuple of two labels, default=(0, 1)
        The negative and the positive label.
    labelled : bool, default=True
        Whether there are true labels. False: selection rates only.
    injection : mapping, optional
        What :meth:`fit_resample` puts into real rows: the keyword arguments of :meth:`inject`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of every draw; an integer draws the same each time.

    Notes
    -----
    The score: within a group the log-odds are normal given the label, with equal variances, so that the area under the ROC
    curve is a closed form and the posterior probability of the label is the score itself. The informative features are
    normal with means that differ by label; the score is what the best classifier that knows the group makes of them.

    Decisions: their rates are exact in the population whatever the score. They follow one cut of the score within each
    group where only a selection rate was given; otherwise one cut within each group and label.

    References
    ----------
    Chouldechova (2017), Fair prediction with disparate impact, for why not every set of numbers has a population.

    Examples
    --------
    >>> injector = BiasInjector({"F": 0.4, "M": 0.6}, base_rate=0.5, disparate_impact=0.6, selection_rate=0.5)
    >>> round(injector.truth.value("disparate_impact", "F", reference="M"), 12)
    0.6
    >>> data = injector.sample(1000)
    >>> data.X.shape, list(data.sensitive_features)
    ((1000, 4), ['group'])
    >>> BiasInjector(true_positive_rate=0.8, false_positive_rate=0.2, selection_rate=0.9).truth
    Traceback (most recent call last):
    ValueError: group 'a': no base_rate gives selection_rate 0.9 with true_positive_rate 0.8 ... The nearest is 0.8.
    """

    def __init__(
        self,
        groups=("a", "b"),
        *,
        base_rate=None,
        disparate_impact=None,
        true_positive_rate=None,
        false_positive_rate=None,
        selection_rate=None,
        equalized_odds_difference=None,
        reference=None,
        attribute=None,
        auc=0.8,
        calibration_shift=0.0,
        calibration_slope=1.0,
        by_score=True,
        outcome="favorable",
        n_features=4,
        n_informative=None,
        n_proxies=1,
        proxy_strength=0.0,
        classes=(0, 1),
        labelled=True,
        injection=None,
        random_state=0,
    ):
        self.groups = groups
        self.base_rate = base_rate
        self.disparate_impact = disparate_impact
        self.true_positive_rate = true_positive_rate
        self.false_positive_rate = false_positive_rate
        self.selection_rate = selection_rate
        self.equalized_odds_difference = equalized_odds_difference
        self.reference = reference
        self.attribute = attribute
        self.auc = auc
        self.calibration_shift = calibration_shift
        self.calibration_slope = calibration_slope
        self.by_score = by_score
        self.outcome = outcome
        self.n_features = n_features
        self.n_informative = n_informative
        self.n_proxies = n_proxies
        self.proxy_strength = proxy_strength
        self.classes = classes
        self.labelled = labelled
        self.injection = injection
        self.random_state = random_state

    # ---------------------------------------------------------------------------------------------------- construction
    @classmethod
    def from_tally(cls, tally, **params):
        """Return an injector whose population is what a tally observed: to simulate audits like one's own.

        Parameters
        ----------
        tally : Tally
            Labelled or not; scores it may have are not used. Groups without rows are left out: they have no rates.
        **params : dict
            Further parameters of the injector.

        Returns
        -------
        BiasInjector

        Raises
        ------
        ValueError
            If fewer than two groups have rows.

        Notes
        -----
        Control features are summed over: the population is that of the audited attributes.

        Examples
        --------
        >>> tally = Tally.from_counts({"F": {"n": 100, "selected": 45}, "M": {"n": 100, "selected": 60}})
        >>> BiasInjector.from_tally(tally).truth.value("disparate_impact", "F")
        0.75
        """
        if not isinstance(tally, Tally):
            raise TypeError(f"tally must be a Tally; got {type(tally).__name__}.")
        if tally.controls:
            tally = tally.marginal(tally.audited)
        table = {
            group: counts for group, counts in zip(tally.groups, tally.counts.tolist(), strict=True) if np.sum(counts)
        }
        if len(table) < 2:
            raise ValueError(f"tally must have rows of at least two groups; it has of {listing(list(table))}.")
        bare = len(tally.attributes) == 1 and not any(isinstance(group[0], tuple) for group in table)
        key = {group: group[0] if bare else group for group in table}
        n_rows = {group: int(np.sum(counts)) for group, counts in table.items()}
        given: dict[str, Any] = {
            "groups": {key[group]: n / sum(n_rows.values()) for group, n in n_rows.items()},
            "attribute": tally.attributes[0] if bare else tally.attributes,
            "classes": _classes_of(tally),
            "labelled": tally.labelled,
        }
        if tally.labelled:
            sides = {"false_positive_rate": 0, "true_positive_rate": 1}
            given["base_rate"] = {key[group]: sum(counts[1]) / n_rows[group] for group, counts in table.items()}
            for name, y in sides.items():
                given[name] = {
                    key[g]: counts[y][1] / sum(counts[y]) if sum(counts[y]) else 0.0 for g, counts in table.items()
                }
        else:
            given["selection_rate"] = {key[group]: counts[0][1] / n_rows[group] for group, counts in table.items()}
        return cls(**given | params)

    # ------------------------------------------------------------------------------------------------------ population
    def _population(self) -> Population:
        return make_population(**{name: getattr(self, name) for name in _POPULATION})

    @property
    def population(self) -> pd.DataFrame:
        """The population table: one row a group, with its share, rates, and the probabilities of its cells."""
        return self._population().frame()

    @property
    def truth(self) -> Truth:
        """The exact value of every metric, by group, comparison and over all groups.

        Raises ``ValueError`` where no population meets the specification.
        """
        return Truth(self._population())

    # ----------------------------------------------------------------------------------------------------------- draws
    def sample(self, n_samples=100, *, as_frame=True, fixed_groups=False, random_state=None):
        """Return rows drawn from the population.

        Parameters
        ----------
        n_samples : int, default=100
            Number of rows.
        as_frame : bool, default=True
            Return pandas objects; False: numpy arrays.
        fixed_groups : bool, default=False
            Fix the size of each group to its share of the rows, rounded so that they add up; else it is drawn too.
        random_state : int, RandomState, Generator or None, optional
            Seed of this draw; default: that of the injector.

        Returns
        -------
        bunch : Bunch
            ``X`` (of shape (n_samples, n_features)), ``y`` and ``y_pred`` (labels and decisions, of ``classes``),
            ``y_score`` (probability of the positive label as the score has it), ``sensitive_features`` (one column an
            attribute; an array of shape (n_samples,) of one attribute without frames), ``truth``, ``pos_label``,
            ``outcome``, ``reference`` (as ``audit`` takes it), ``feature_names``, and ``proxies``: for each proxy column, the
            attribute and the value it stands for. ``y`` and ``y_score`` are None where ``labelled=False``.
        """
        population = self._population()
        rng = self._rng(random_state)
        classes = self._check_classes()
        roles = self._check_features(population)
        counts = self._draw(population, n_samples, None, fixed_groups, rng)[0]
        cell = np.repeat(np.arange(counts.size, dtype=np.min_scalar_type(counts.size)), counts.ravel())
        rng.shuffle(cell)
        truth = Truth(population)
        y = score = None
        latent = np.empty(0)
        if population.labelled:
            latent = self._latent(population, cell, rng)
            offsets, scales = _log_odds(population)
            score = latent * scales[cell]
            score += offsets[cell]
            expit(score, out=score)
            y = classes[np.arange(counts.size) // 2 % 2][cell]
        X, proxies = self._features(population, cell, latent, roles, truth, rng)
        y_pred = classes[np.arange(counts.size) % 2][cell]
        names = list(proxies) if X.shape[1] else []
        names = [*(f"informative_{i}" for i in range(roles[0])), *names]
        names += [f"noise_{i}" for i in range(X.shape[1] - len(names))]
        of_cell = np.repeat(np.arange(len(population.groups)), counts.size // len(population.groups))
        columns = {}
        for i, name in enumerate(population.attributes):
            values = [None if group[i] is MISSING else group[i] for group in population.groups]
            columns[name] = pd.Series(values).take(of_cell).reset_index(drop=True).take(cell).reset_index(drop=True)
        people = pd.DataFrame(columns)
        if as_frame:
            X = pd.DataFrame(X, columns=names, copy=False)
            y = None if y is None else pd.Series(y, name="y", copy=False)
            y_pred = pd.Series(y_pred, name="y_pred", copy=False)
            score = None if score is None else pd.Series(score, name="y_score", copy=False)
        return Bunch(
            X=X,
            y=y,
            y_pred=y_pred,
            y_score=score,
            sensitive_features=people if as_frame else people.squeeze(axis=1).to_numpy(),
            truth=truth,
            pos_label=as_scalar(classes[1]),
            outcome=self.outcome,
            reference=truth.reference,
            feature_names=names,
            proxies=proxies,
        )

    def sample_tally(self, n_samples=100, *, fixed_groups=False, random_state=None):
        """Return the tally of rows drawn from the population, without drawing the rows.

        Parameters
        ----------
        n_samples : int, default=100
            Number of rows.
        fixed_groups : bool, default=False
            Fix the size of each group.
        random_state : int, RandomState, Generator or None, optional
            Seed of this draw; default: that of the injector.

        Returns
        -------
        Tally
            Groups of which no row was drawn are not in it.
        """
        population = self._population()
        classes = [as_scalar(label) for label in self._check_classes()]
        counts = self._draw(population, n_samples, None, fixed_groups, self._rng(random_state))[0]
        drawn = np.flatnonzero(counts.sum((1, 2)))
        groups = tuple(population.groups[i] for i in drawn)
        return Tally(population.attributes, groups, counts[drawn], classes[1], tuple(sort_labels(classes)))

    def sample_tallies(self, n_samples=100, n_sets=1, *, fixed_groups=False, random_state=None):
        """Return the counts of many samples at once: for simulations of power, coverage and false alarms.

        Parameters
        ----------
        n_samples : int, default=100
            Number of rows of each sample.
        n_sets : int, default=1
            Number of samples.
        fixed_groups : bool, default=False
            Fix the size of each group.
        random_state : int, RandomState, Generator or None, optional
            Seed of this draw; default: that of the injector.

        Returns
        -------
        ndarray of int64 of shape (n_sets, n_groups, 2, 2) or (n_sets, n_groups, 1, 2)
            Counts by group (in the order of ``population``), true label and decision; without labels the third axis
            has length 1.

        Examples
        --------
        >>> from sklearn_ethiclens import METRICS
        >>> injector = BiasInjector(["F", "M"], selection_rate=0.5, disparate_impact=0.6, reference="M")
        >>> tables = injector.sample_tallies(2000, 500)
        >>> ratios = METRICS["disparate_impact"](tables[:, 0], tables[:, 1])
        >>> round(float(ratios.mean()), 2)
        0.6
        """
        return self._draw(self._population(), n_samples, n_sets, fixed_groups, self._rng(random_state))

    def _rng(self, random_state: Any) -> np.random.Generator:
        return np.random.default_rng(as_seed(self.random_state if random_state is None else random_state))

    @staticmethod
    def _draw(
        population: Population, n_samples: Any, n_sets: Any, fixed_groups: Any, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return counts of shape (n_sets, *cells.shape): one multinomial over all cells, or one over those of each group."""
        for name, value in (("n_samples", n_samples), ("n_sets", 1 if n_sets is None else n_sets)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
        shape = (n_sets or 1, *population.cells.shape)
        if not fixed_groups:
            return rng.multinomial(n_samples, _adding_to_one(population.joint.ravel()), size=shape[0]).reshape(shape)
        drawn = np.empty(shape, dtype=np.int64)
        for i, size in enumerate(_apportion(population.shares, int(n_samples))):
            cells = _adding_to_one(population.cells[i].ravel())
            drawn[:, i] = rng.multinomial(size, cells, size=shape[0]).reshape(shape[0], *shape[2:])
        return drawn

    def _latent(self, population: Population, cell: NDArray[Any], rng: np.random.Generator) -> Floats:
        """Return what the score rests on: standard normal for negatives, moved up by the separation for positives.

        With ``by_score`` the decision came first, and fixes which part of the normal the row is in: above the quantile of
        the rate of its group and label for the selected, below it for the others.
        """
        d = np.repeat(population.separation, 4) * np.tile([0.0, 0.0, 1.0, 1.0], len(population.groups))
        if not self.by_score:
            z = rng.standard_normal(cell.size)
        else:
            selected = np.stack([population.rates["false_positive_rate"], population.rates["true_positive_rate"]], -1)
            selected = np.where(np.isnan(selected), 0.0, selected)
            # Measured from the top, so that a small rate of selection keeps its digits; the sign is turned at the end.
            start = np.stack([selected, np.zeros_like(selected)], -1).ravel()
            width = np.stack([1 - selected, selected], -1).ravel()
            u = rng.random(cell.size)
            np.subtract(1.0, u, out=u)  # in (0, 1]
            u *= width[cell]
            u += start[cell]
            np.clip(u, 1e-300, 1 - 2.0**-53, out=u)
            z = ndtri(u, out=u)
            np.negative(z, out=z)
        z += d[cell]
        return z

    # -------------------------------------------------------------------------------------------------------- features
    def _check_classes(self) -> NDArray[Any]:
        if not isinstance(self.classes, tuple | list | np.ndarray) or len(self.classes) != 2:
            raise ValueError(f"classes must be the negative and the positive label; got {self.classes!r}.")
        negative, positive = (as_label(label) for label in self.classes)
        for label in (negative, positive):
            if label is MISSING or not isinstance(label, Hashable) or isinstance(label, tuple):
                raise ValueError(f"classes must be text, numbers or booleans; got {self.classes!r}.")
            if isinstance(label, float) and not label.is_integer():
                raise ValueError(f"classes must be labels; a fraction reads as a score; got {self.classes!r}.")
        if negative == positive:
            raise ValueError(f"classes must be two different labels; got {self.classes!r}.")
        if type(negative) is type(positive) and isinstance(negative, bool | int | float):
            return np.array([negative, positive])
        both = np.empty(2, dtype=object)
        both[:] = negative, positive
        return both

    def _check_features(self, population: Population) -> tuple[int, int, int]:
        """Return how many features are informative, proxies and noise."""
        for name in ("n_features", "n_proxies", "n_informative"):
            value = getattr(self, name)
            if value is None and name == "n_informative":
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name} must be a whole number of at least 0; got {value!r}.")
        if not isinstance(self.by_score, bool | np.bool_):
            raise TypeError(f"by_score must be True or False; got {self.by_score!r}.")
        strength = self.proxy_strength
        number = isinstance(strength, int | float | np.number) and not isinstance(strength, bool)
        if not number or not 0 <= strength <= 1:
            raise ValueError(f"proxy_strength must be a correlation in [0, 1]; got {strength!r}.")
        if self.n_features == 0:
            return 0, 0, 0
        others = self.n_features - self.n_proxies
        informative = (others + 1) // 2 if self.n_informative is None else self.n_informative
        if not population.labelled:
            informative = 0
        if informative > others or others < 0:
            raise ValueError(
                f"n_features={self.n_features} is too few for n_informative={self.n_informative} and n_proxies={self.n_proxies}: "
                f"raise it, or lower these."
            )
        return informative, self.n_proxies, others - informative

    def _features(
        self,
        population: Population,
        cell: NDArray[Any],
        latent: Floats,
        roles: tuple[int, int, int],
        truth: Truth,
        rng: np.random.Generator,
    ) -> tuple[Floats, dict[str, tuple[str, Any]]]:
        """Return the features, and what each proxy stands for."""
        n_informative, n_proxies, _ = roles
        # By column: each is written and read as a whole.
        X = np.empty((sum(roles), cell.size))
        rng.standard_normal(out=X)
        if n_informative:
            # The part of the noise along (1, ..., 1) is replaced by the latent score: x = z / sqrt(k) + what is at right
            # angles to it. So sum(x) / sqrt(k) is z, which holds all that the features tell of the label.
            informative = X[:n_informative]
            mean = informative.mean(0)
            np.subtract(latent / np.sqrt(n_informative), mean, out=mean)
            informative += mean
        stand_for = _proxied(population, truth)
        proxies = {}
        strength = float(self.proxy_strength)
        width = cell.size and population.cells[0].size
        for j in range(n_proxies):
            attribute, value, belongs = stand_for[j % len(stand_for)]
            proxies[f"proxy_{j}"] = (attribute, value)
            share = float(population.shares[belongs].sum())
            standard = (belongs - share) / np.sqrt(share * (1 - share))
            column = X[n_informative + j]
            column *= np.sqrt(1 - strength**2)
            column += (strength * np.repeat(standard, width))[cell]
        return X.T, proxies

    # ------------------------------------------------------------------------------------------------------- real rows
    def inject(self, X, y=None, *, sensitive_features, **parameters):
        """Return real rows with a known bias put in, and which of them changed: :func:`inject` with the injector's seed.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Features.
        y : array-like of shape (n_rows,), optional
            Labels.
        sensitive_features : str, int or array-like of shape (n_rows,)
            The group of each row.
        **parameters : dict
            Those of :func:`inject`: ``kind``, ``rate``, ``group`` and so on.

        Returns
        -------
        bunch : Bunch
            As of :func:`inject`.
        """
        parameters = {"random_state": self.random_state} | parameters
        return inject(X, y, sensitive_features=sensitive_features, **parameters)

    def fit_resample(self, X, y):
        """Return X and y with the bias of ``injection`` put in, as a step of an imbalanced-learn pipeline does.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Features, with the column that ``injection["sensitive_features"]`` names.
        y : array-like of shape (n_rows,)
            Labels.

        Returns
        -------
        X_resampled, y_resampled
            As they came; fewer rows where rows were removed.
        """
        if self.injection is None:
            raise ValueError(
                "injection must say what to put in, for example BiasInjector(injection={'sensitive_features': 'sex', 'kind': "
                "'label', 'group': 'F', 'rate': 0.2}); it is None."
            )
        injection = self.injection
        if isinstance(injection, Mapping):
            injection = {"random_state": self.random_state, **injection}
        return resample(X, y, injection)


# ------------------------------------------------------------------------------------------------------------- helpers
def _classes_of(tally: Tally) -> tuple[Any, Any]:
    """Return the negative and the positive label of a tally; what is negative only for want of a name is called so."""
    negative = [label for label in tally.labels if label != tally.pos_label]
    if len(negative) == 1:
        return negative[0], tally.pos_label
    if isinstance(tally.pos_label, bool | int | float):
        return type(tally.pos_label)(not tally.pos_label), tally.pos_label
    return f"not {tally.pos_label}", tally.pos_label


def _log_odds(population: Population) -> tuple[Floats, Floats]:
    """Return offset and scale by cell that turn the latent into the log-odds of the reported score."""
    p, d = population.rates["base_rate"], population.separation
    with np.errstate(divide="ignore"):
        odds = logit(p)  # infinite in a group of one class: its score is 0 or 1
    offset = population.shift + (odds - d**2 / 2) / population.slope
    return np.repeat(offset, 4), np.repeat(d / population.slope, 4)


def _proxied(population: Population, truth: Truth) -> list[tuple[str, Any, NDArray[np.bool_]]]:
    """Return what proxies can stand for: every value of every attribute but the references; which groups have it."""
    found = []
    for i, name in enumerate(population.attributes):
        values = [group[i] for group in population.groups]
        for value in sort_labels(list(dict.fromkeys(values))):
            if value != truth.reference[name]:
                found.append((name, value, np.array([own == value for own in values])))
    return found


def _adding_to_one(probabilities: Floats) -> Floats:
    """Return probabilities as the multinomial wants them: rounding must not lift their sum above 1."""
    return probabilities / probabilities.sum()


def _apportion(shares: Floats, n: int) -> list[int]:
    """Return sizes that add up to n, each within one of its share: the largest remainders are rounded up."""
    exact = shares * n
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    up = np.argsort(-(exact - sizes), kind="stable")[: n - int(sizes.sum())]
    sizes[up] += 1
    return sizes.tolist()


def make_biased_classification(
    n_samples=100,
    n_features=20,
    *,
    n_informative=None,
    n_proxies=1,
    groups=("a", "b"),
    base_rate=0.5,
    label_bias=0.0,
    auc=0.9,
    proxy_strength=0.0,
    reference=None,
    attribute=None,
    return_bunch=False,
    as_frame=True,
    random_state=None,
):
    """Return rows for classification whose recorded labels are biased against groups by a known amount.

    True labels are drawn with the base rate of each group; then a known share of the positives of some groups is recorded as
    negative. A classifier trained on the recorded labels learns that bias.

    Parameters
    ----------
    n_samples : int, default=100
        Number of rows.
    n_features : int, default=20
        Columns of X.
    n_informative, n_proxies, groups, base_rate, auc, proxy_strength, attribute
        As in :class:`BiasInjector`; ``auc`` is that of the true labels.
    reference : label, tuple, or mapping of attribute to value, optional
        The group that others are compared with; default: the one with the largest share, the first such listed.
    label_bias : float or mapping of group to float, default=0.0
        Share of the positives of a group that are recorded as negative, at random. One number is for every group but the
        reference.
    return_bunch : bool, default=False
        Return everything, with the true labels and the exact bias.
    as_frame : bool, default=True
        Return pandas objects; False: numpy arrays.
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    X : DataFrame or ndarray of shape (n_samples, n_features)
        Features.
    y : Series or ndarray of shape (n_samples,)
        Recorded labels, 0 or 1.
    sensitive_features : DataFrame or ndarray
        The group of each row.

    With ``return_bunch=True`` instead a Bunch with these, ``y_true`` (true labels) and ``truth``: the recorded labels are
    its decisions, so that ``truth["disparate_impact"]`` is the ratio of recorded base rates.

    Examples
    --------
    >>> X, y, sensitive_features = make_biased_classification(1000, random_state=0)
    >>> X.shape
    (1000, 20)
    >>> made = make_biased_classification(label_bias={"b": 0.4}, reference="a", return_bunch=True, random_state=0)
    >>> made.truth["disparate_impact"]
    {'b': 0.6}
    """
    injector = BiasInjector(
        groups,
        base_rate=base_rate,
        false_positive_rate=0.0,
        true_positive_rate=1.0,
        reference=reference,
        attribute=attribute,
        auc=auc,
        by_score=False,
        n_features=n_features,
        n_informative=n_informative,
        n_proxies=n_proxies,
        proxy_strength=proxy_strength,
        random_state=random_state,
    )
    population = injector._population()
    flipped = by_group(population, "label_bias", label_bias, 0.0)
    injector.set_params(
        true_positive_rate={group: 1 - rate for group, rate in flipped.items()},
        reference=population.groups[population.anchor],
    )
    drawn = injector.sample(n_samples, as_frame=as_frame)
    recorded = drawn.y_pred.rename("y") if as_frame else drawn.y_pred
    if not return_bunch:
        return drawn.X, recorded, drawn.sensitive_features
    drawn.update(y=recorded, y_true=drawn.y)
    del drawn["y_pred"]
    return drawn
