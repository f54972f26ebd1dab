"""What the commands share: files and words in, lines and exit codes out."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import typer


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a CSV file's rows; only an empty cell is missing, so that a group called NA stays a group.

    All columns are read: with some of them pandas cuts longer rows without a word, and their fields shift.
    """
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""], encoding="utf-8-sig", **options)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(f"{path.name} has rows with more fields than its header names; mend the header or the rows.")
    return frame


def arrow(module: str) -> ModuleType:
    """Return a module of pyarrow, which parquet files are read by."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError("reading .parquet needs pyarrow: pip install pyarrow") from error


def split(texts: Iterable[str] | None) -> list[str]:
    """Return names given one by one or joined by commas, each once."""
    return list(dict.fromkeys(part.strip() for text in texts or () for part in text.split(",") if part.strip()))


def print_text(text: str, *, to_stderr: bool = False) -> None:
    """Print text as the terminal can show it: what its encoding lacks, by its code."""
    encoding = getattr(sys.stderr if to_stderr else sys.stdout, "encoding", None) or "utf-8"
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False, err=to_stderr)


def width() -> int:
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80


def color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error of the input into one line on stderr and exit code 2."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        print_text(f"error: {' '.join(str(error).split())}\n", to_stderr=True)
        raise typer.Exit(2) from error


@contextmanager
def spoken_warnings(quiet: bool) -> Iterator[None]:
    """Print warnings as lines on stderr, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        try:
            yield
        finally:
            for text in dict.fromkeys(" ".join(str(one.message).split()) for one in caught):
                if not quiet:
                    print_text(f"warning: {text}\n", to_stderr=True)
