"""Audit classifiers for group disparities: rows -> tally -> metrics -> intervals -> verdicts -> report."""

__version__ = "0.1.0"
