"""What a model says of rows: decisions and, where it has them, scores, in as few calls as can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_ethiclens._validation import as_scalar, encode_labels, listing, sort_labels
from sklearn_ethiclens.counterfactual._columns import take_rows

_BASE_WITNESSES = 50_000  # base rows on which predict is asked beside predict_proba; up to as many, all of them
_WITNESSES = 1_000  # the same for the rows of each alternative


@dataclass(frozen=True)
class Answer:
    """Decisions (1 = ``pos_label``) and scores of rows; scores are None where the model has none."""

    decisions: NDArray[np.int8]
    scores: NDArray[np.floating[Any]] | None
    derived: bool = False  # whether the decisions were read from the scores


class Model:
    """A fitted classifier, asked in batches.

    Where it has ``predict_proba``, decisions are read from it as the class of the highest probability, as long as
    ``predict`` agrees on the witnesses: the rows nearest to the boundary, where any other rule shows first, and others
    evenly spread. Once it does not (a tuned threshold), ``consistent`` is False and every decision must come from
    ``predict``.
    """

    def __init__(self, estimator: Any, pos_label: Any) -> None:
        if not hasattr(estimator, "predict"):
            raise TypeError(f"estimator must have predict; got {type(estimator).__name__}.")
        self.estimator, self.consistent = estimator, True
        self.classes = _classes(estimator)
        self.asked_pos_label = as_scalar(pos_label)
        self.pos_label = None if self.classes is None else positive(self.classes, self.asked_pos_label)
        self.kind = next((m for m in ("predict_proba", "decision_function") if hasattr(estimator, m)), "")
        if self.classes is None:
            self.kind = ""

    def ask(self, X: Any, *, base: bool = False) -> Answer:
        """Return the answer to rows; ``base`` marks the unchanged ones, which come first."""
        if self.kind == "predict_proba":
            probabilities = np.asarray(self.estimator.predict_proba(X))
            if probabilities.ndim == 2 and probabilities.shape[1] == len(self.classes or ()):
                return self._from_probabilities(X, probabilities, base)
            self.kind = ""  # one column of several outputs; nothing to read a decision from
        predictions = self.estimator.predict(X)
        scores = self._decision_scores(X) if self.kind == "decision_function" else None
        return Answer(self._decisions(predictions), scores)

    def _from_probabilities(self, X: Any, probabilities: NDArray[Any], base: bool) -> Answer:
        classes = self.classes or ()
        at = classes.index(self.pos_label)
        scores = probabilities[:, at]
        if not self.consistent:
            return Answer(self._decisions(self.estimator.predict(X)), scores)
        decisions = (probabilities.argmax(axis=1) == at).astype(np.int8)
        witnesses = nearest_and_spread(probabilities, _BASE_WITNESSES if base else _WITNESSES)
        whole = witnesses.size == len(decisions)
        predicted = self._decisions(self.estimator.predict(X if whole else take_rows(X, witnesses)))
        if not np.array_equal(predicted, decisions[witnesses]):
            self.consistent = False
            return Answer(predicted if whole else self._decisions(self.estimator.predict(X)), scores)
        return Answer(decisions, scores, derived=True)

    def _decision_scores(self, X: Any) -> NDArray[Any] | None:
        scores = np.asarray(self.estimator.decision_function(X))
        classes = self.classes or ()
        if scores.ndim == 1 and len(classes) == 2:
            return scores if classes[1] == self.pos_label else -scores
        if scores.ndim == 2 and scores.shape[1] == len(classes):
            return scores[:, classes.index(self.pos_label)]
        return None

    def _decisions(self, predictions: Any) -> NDArray[np.int8]:
        array = np.asarray(predictions)
        if self.pos_label is None:
            self.pos_label = encode_labels(None, array, self.asked_pos_label).pos_label
        if self.classes is None and array.dtype.kind == "f" and not np.array_equal(array, np.floor(array)):
            raise TypeError("estimator must be a classifier; its predictions are scores, not decisions.")
        return np.asarray(array == self.pos_label).astype(np.int8).reshape(-1)


def nearest_and_spread(probabilities: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Return positions of at most ``size`` rows: half with the narrowest lead of the first class, half evenly spread."""
    n_rows = len(probabilities)
    if n_rows <= size:
        return np.arange(n_rows)
    if probabilities.shape[1] == 2:
        lead = np.abs(probabilities[:, 0] - probabilities[:, 1])
    else:
        top = np.partition(probabilities, -2, axis=1)
        lead = top[:, -1] - top[:, -2]
    nearest = np.argpartition(lead, size // 2)[: size // 2]
    spread = np.linspace(0, n_rows - 1, size - size // 2).astype(np.intp)
    return np.unique(np.concatenate([nearest, spread]))


def _classes(estimator: Any) -> tuple[Any, ...] | None:
    found = getattr(estimator, "classes_", None)
    if found is None or np.ndim(found) != 1 or len(found) < 1:
        return None
    return tuple(as_scalar(label) for label in np.asarray(found))


def positive(classes: tuple[Any, ...], pos_label: Any) -> Any:
    """Return the positive label among the classes of a model; guessed only where it is beyond doubt."""
    if pos_label is None:
        for pair in ((0, 1), (-1, 1)):
            if set(classes) <= set(pair) and 1 in classes:
                return next(label for label in classes if label == 1)
        raise ValueError(
            f"the classes of the model are {listing(sort_labels(classes))}; pass pos_label to say which one is positive."
        )
    if pos_label not in classes:
        raise ValueError(
            f"pos_label={pos_label!r} is not among the classes of the model: {listing(sort_labels(classes))}."
        )
    return next(label for label in classes if label == pos_label)
