"""The warnings and errors this package raises by name, so that they can be filtered and caught by name."""

from sklearn.exceptions import UndefinedMetricWarning

__all__ = [
    "ActiveProbeWarning",
    "AttributeUnusedWarning",
    "DegenerateIntervalWarning",
    "FairnessGateError",
    "FairnessScoringWarning",
    "MissingGroupsWarning",
    "SampleSizeWarning",
    "StaleColumnWarning",
    "TrainingRowsWarning",
    "UndefinedMetricWarning",
]


class MissingGroupsWarning(UserWarning):
    """Some rows have no value of a sensitive feature; they were counted as a group of their own."""


class DegenerateIntervalWarning(UserWarning):
    """An interval was asked for that is known to be invalid or has no width; the result stands, but proves little."""


class SampleSizeWarning(UserWarning):
    """A group, or the whole sample, is too small for what was asked."""


class FairnessScoringWarning(UserWarning):
    """A fairness score is NaN, or raises, for the reason given.

    A search whose every score is NaN refits its first candidate all the same; ``refit=select_within(...)`` raises.
    """


class FairnessGateError(AssertionError):
    """An audit did not pass the gate it was given; the message is the scorecard."""


class TrainingRowsWarning(UserWarning):
    """An audit was made on rows that the model was fitted on."""


class ActiveProbeWarning(UserWarning):
    """A counterfactual probe changed the rows that a model is being fitted on, which makes the check meaningless."""


class StaleColumnWarning(UserWarning):
    """A column follows from a sensitive feature, but would not be changed with it."""


class AttributeUnusedWarning(UserWarning):
    """A model's output does not change with a sensitive feature at all, which says nothing of the features beside it."""
