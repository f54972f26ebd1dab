"""What the commands share: files, models and words in, lines and exit codes out."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any
from zipfile import BadZipFile

import pandas as pd
import typer

from sklearn_ethiclens._frames import CSV, named_reading
from sklearn_ethiclens._progress import silent
from sklearn_ethiclens._validation import as_scalar, listing, show

ModelFile = Annotated[
    Path | None, typer.Option("--model", metavar="FILE", help="A fitted classifier: .skops, or a pickle.")
]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", metavar="TYPE,TYPE", help="Types a .skops file may hold beside the known."),
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load a pickle: it can run any code, so only your own.")
]
PICKLES = (".pkl", ".pickle", ".joblib")
# What reading a damaged or foreign file raises, whichever reader it is.
_UNREADABLE = (
    pickle.UnpicklingError,
    BadZipFile,
    EOFError,
    AttributeError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
)


# --------------------------------------------------------------------------------------------------------------- files
def check_file(path: Path) -> None:
    """Raise where there is no such file."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_rows(path: Path) -> pd.DataFrame:
    """Return all rows and columns of a .csv or .parquet file, numbers as numbers; a named index is a column like others."""
    if path.suffix.lower() != ".parquet":
        return read_csv(path)
    arrow("pyarrow")
    with named_reading(path):
        frame = pd.read_parquet(path, engine="pyarrow")
    return frame if frame.index.names == [None] else frame.reset_index()


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a CSV file's rows; only an empty cell is missing, so that a group called NA stays a group.

    All columns are read: with some of them pandas cuts longer rows without a word, and their fields shift.
    """
    try:
        frame = pd.read_csv(path, **CSV, **options)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(
            f"{path.name} cannot be read as values separated by commas: {error}. Mend the file."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise ValueError(f"{path.name} has rows with more fields than its header names; mend the header or the rows.")
    return frame


def arrow(module: str) -> ModuleType:
    """Return a module of pyarrow, which parquet files are read by."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError("reading .parquet needs pyarrow: pip install pyarrow") from error


# -------------------------------------------------------------------------------------------------------------- models
@dataclass(frozen=True)
class StoredModel:
    """A fitted classifier from a file.

    Parameters
    ----------
    estimator : object
        What was stored.
    path : Path
        Where.
    sha256 : str
        Of the file.
    """

    estimator: Any
    path: Path
    sha256: str

    @property
    def words(self) -> str:
        """What it is, for a report."""
        return f"{type(self.estimator).__name__} of {self.path.name} (sha256 {self.sha256[:12]})"

    @property
    def columns(self) -> list[str] | None:
        """The columns it was fitted on; None where it does not say."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else list(names)

    @property
    def classes(self) -> list[Any]:
        """Its labels; empty where it does not say."""
        return classes_of(self.estimator)

    def inputs(self, frame: pd.DataFrame, source: str) -> pd.DataFrame:
        """Return the columns it was fitted on; all of them where it does not say."""
        if self.columns is None:
            return frame
        lacking = [name for name in self.columns if name not in frame]
        if lacking:
            raise ValueError(f"the model was fitted on {listing(lacking)}, which {source} does not have.")
        return frame[self.columns]

    def decide(self, X: pd.DataFrame, source: str) -> pd.Series:
        """Return its decisions on rows; where it refuses them, the error names its file, theirs and the columns."""
        try:
            decided = self.estimator.predict(X)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"the model of {self.path.name} cannot decide on the columns {listing(list(X), 30)} of {source}: {error}"
            ) from error
        return pd.Series(decided, index=X.index)


def classes_of(estimator: Any) -> list[Any]:
    """Return the labels of a classifier; empty where it does not say."""
    found = getattr(estimator, "classes_", None)
    return [] if found is None else [as_scalar(label) for label in found]


def load_model(path: Path, trust: Sequence[str], allow_pickle: bool) -> StoredModel:
    """Return the model of a file; types that skops does not know are refused unless trusted by name.

    Parameters
    ----------
    path : Path
        A .skops file, or a pickle.
    trust : sequence of str
        Names of types that a .skops file may hold beside those that skops knows.
    allow_pickle : bool
        Whether to load a pickle, which can run any code.
    """
    check_file(path)
    suffix, content = path.suffix.lower(), path.read_bytes()
    if suffix == ".skops":
        estimator = _load_skops(path, content, trust)
    elif suffix not in PICKLES:
        raise ValueError(
            f"--model must be a .skops file, or {', '.join(PICKLES[:-1])} or {PICKLES[-1]}; got {path.name!r}."
        )
    elif not allow_pickle:
        raise ValueError(
            f"{path.name} is a pickle, which can run any code when it is loaded: store the model with skops.io.dump, or pass "
            f"--allow-pickle if it is your own."
        )
    else:
        load = import_module("joblib").load if suffix == ".joblib" else pickle.load
        try:
            estimator = load(BytesIO(content))
        except _UNREADABLE as error:
            raise ValueError(f"{path.name} cannot be loaded: {error}.") from error
    return StoredModel(estimator, path, hashlib.sha256(content).hexdigest())


def _load_skops(path: Path, content: bytes, trust: Sequence[str]) -> Any:
    try:
        skops = import_module("skops.io")
    except ImportError as error:
        raise ImportError("reading .skops needs skops: pip install 'sklearn-ethiclens[model]'") from error
    try:
        unknown = skops.get_untrusted_types(data=content)
    except _UNREADABLE as error:
        raise ValueError(f"{path.name} cannot be loaded: {error}.") from error
    refused = [name for name in unknown if name not in trust]
    if refused:
        raise ValueError(
            f"{path.name} holds types that are not known to be safe: {listing(refused)}. If you know where the file is "
            f"from, pass --trust {','.join(refused)}."
        )
    try:
        return skops.loads(content, trusted=unknown)
    except _UNREADABLE as error:
        raise ValueError(f"{path.name} cannot be loaded: {error}.") from error


# ------------------------------------------------------------------------------------------------------ words and lines
def match_label(text: str, values: Sequence[Any]) -> Any:
    """Return the value that is written so, else the number that the text spells, else the text."""
    same = [value for value in values if show(value) == text or str(value) == text]
    if same:
        return same[0]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def split(texts: Iterable[str] | None, option: str) -> list[str]:
    """Return names given one by one or joined by commas, each once; an option that is given names something."""
    texts = list(texts or ())
    if empty := [text for text in texts if not text.replace(",", " ").strip()]:
        raise ValueError(f"{option} must name something; got {empty[0]!r}.")
    return list(dict.fromkeys(part.strip() for text in texts for part in text.split(",") if part.strip()))


def check_outputs(outputs: Mapping[str, str | Path | None], inputs: Mapping[str, str | Path | None]) -> None:
    """Say before the work is done what could not be written after it, or would overwrite something.

    Parameters
    ----------
    outputs, inputs : mapping of str to path or None
        Files by their option; None where it is not given.
    """
    seen = {Path(path).resolve(): option for option, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None or (option == "--json" and path == "-"):
            continue
        if str(path) in ("", ".", "-") or Path(path).is_dir():
            what = "a folder" if Path(path).is_dir() else "no name of a file"
            also = "; - is known to --json alone" if str(path) == "-" else ""
            raise ValueError(f"{option} must name a file to write; got {str(path)!r}, {what}{also}.")
        first = seen.setdefault(Path(path).resolve(), option)
        if first != option:
            raise ValueError(f"{first} and {option} name the same file, {path}: one would overwrite the other.")


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
        text = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            text = f"{error.filename} cannot be read or written: {error.strerror}. Name another file."
        print_text(f"error: {' '.join(text.split())}\n", to_stderr=True)
        raise typer.Exit(2) from error


@contextmanager
def spoken_warnings(quiet: bool) -> Iterator[None]:
    """Print warnings as lines on stderr, each once; neither these nor bars if ``quiet``."""
    with silent(quiet), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        try:
            yield
        finally:
            for text in dict.fromkeys(" ".join(str(one.message).split()) for one in caught):
                if not quiet:
                    print_text(f"warning: {text}\n", to_stderr=True)
