"""The command line: audit a data set or a file, list what there is, judge a stored audit again.

Exit codes: 0, nothing in ``--fail-on`` occurred; 1, it did; 2, bad input, said in one line; 3, nothing could be judged.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from sklearn_ethiclens._audit import Audit, audit
from sklearn_ethiclens._validation import listing, show
from sklearn_ethiclens.datasets import DATASETS, Protocol, compas_protocol, german_credit_protocol
from sklearn_ethiclens.datasets._download import write_whole
from sklearn_ethiclens.metrics._definitions import ALIASES, METRICS, Metric, get_metric
from sklearn_ethiclens.policy import POLICIES, Policy, get_policy
from sklearn_ethiclens.report._text import WIDTHS, lay_out
from sklearn_ethiclens.report._words import Facts, Paragraph, Part, Section, Table, policy_facts

STATES = ("flagged", "inconclusive", "insufficient")
TOLERANCE = 1e-9  # of --verify

app = typer.Typer(
    name="sklearn-ethiclens",
    help="Audit classifiers for group disparities.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app(prog_name="sklearn-ethiclens")


@dataclass
class Part_:
    """What one audit is made of: columns of equal length, and what is known of them."""

    name: str
    y_true: pd.Series | None
    y_pred: pd.Series
    groups: pd.DataFrame
    pos_label: Any = None
    outcome: str = "favorable"
    reference: dict[Any, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
