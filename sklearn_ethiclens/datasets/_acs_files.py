"""The person files of the American Community Survey: downloaded whole or not at all, in the cache that folktables reads.

The download is ours, because folktables' own has no time limit, checks no status, and keeps an error page as if it
were the archive. What is written is its cache, ``<root>/<year>/<horizon>/psam_pNN.csv``: each finds the other's files.
"""

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens.datasets._acs_codes import STATES
from sklearn_ethiclens.datasets._download import DATA_VARIABLE, RemoteFile, download, get_data_home

BASE_URL = "https://www2.census.gov/programs-surveys/acs/data/pums"
_FIRST_PSAM_YEAR = 2017  # files before are named ss16pwy.csv
_MAX_CSV_BYTES = 8 << 30
_CHUNK = 1 << 20
_HEAD = 1 << 16  # of a file: holds its header and first row many times over
# Columns of every person file since 2014; the columns of a task are looked for when it is made.
_EXPECTED = ("SERIALNO", "PWGTP", "AGEP", "SEX", "RAC1P", "PINCP", "WKHP", "SCHL", "MAR", "COW", "ESR")


@dataclass(frozen=True)
class Source:
    """Person files of some states, of one survey."""

    states: tuple[str, ...]
    year: int
    horizon: str

    def file_name(self, state: str) -> str:
        """The name of a state's file, in the archive and in folktables' cache."""
        if self.year >= _FIRST_PSAM_YEAR:
            return f"psam_p{STATES[state]}.csv"
        return f"ss{self.year % 100}p{state.lower()}.csv"

    def path(self, root: Path, state: str) -> Path:
        """Where folktables looks for it."""
        return root / str(self.year) / self.horizon / self.file_name(state)

    def url(self, base_url: str, state: str) -> str:
        """Where folktables downloads it from."""
        return f"{base_url.rstrip('/')}/{self.year}/{self.horizon}/csv_p{state.lower()}.zip"

    def words(self, state: str) -> str:
        return f"the ACS {self.horizon} {self.year} person file of {state}"


def root_of(
    source: Source,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
    timeout: float,
    base_url: str | None,
) -> Path:
    """Return the root of a cache that has the files of all states, each checked; download those missing from ours."""
    base_url = base_url or BASE_URL
    given = os.environ.get(DATA_VARIABLE)
    roots = [get_data_home(data_home)]
    if given:
        roots.insert(0, Path(given))
    for root in roots:
        if all(source.path(root, state).is_file() for state in source.states):
            for state in source.states:
                _check_file(source, root, state)
            return root
    home = roots[-1]
    for state in source.states:
        path = source.path(home, state)
        if path.is_file():
            _check_file(source, home, state)
            continue
        if not download_if_missing:
            first = source.path(roots[0], state) if given else f"${DATA_VARIABLE} (not set)"
            raise OSError(
                f"{source.words(state)} is neither at {first} nor at {path}. Call with download_if_missing=True, or place "
                f"{path.name} of {source.url(base_url, state)} by hand at {path}"
            )
        _download_state(source, state, path, timeout, base_url)
    return home


def _check_file(source: Source, root: Path, state: str) -> None:
    path = source.path(root, state)
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(0, path.stat().st_size - _HEAD))
        last = file.read().rstrip().rpartition(b"\n")[2]
    problem = _problem_of(head, state)
    if not problem and last.count(b",") != head.partition(b"\n")[0].count(b","):
        problem = "it breaks off in the middle of a row"
    if problem:
        raise ValueError(
            f"{path} is not {source.words(state)}: {problem}. Remove it, so that it is downloaded afresh, or put "
            f"{path.name} of {source.url(BASE_URL, state)} in its place."
        )


def _download_state(source: Source, state: str, path: Path, timeout: float, base_url: str) -> None:
    url = source.url(base_url, state)
    by_hand = f"{path} (unpacked from the archive)"
    content = download(RemoteFile(url), by_hand=by_hand, timeout=timeout, total_timeout=60 * timeout)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            member = _member(archive, path.name)
            with archive.open(member) as file:
                problem = _problem_of(file.read(_HEAD), state)
            if problem:
                raise zipfile.BadZipFile(f"{path.name} in it is not {source.words(state)}: {problem}")
            write_whole(path, _chunks(archive, member))
    # RuntimeError: encrypted; NotImplementedError: packed in an unknown way; the others: damaged
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise OSError(
            f"{url} answered, but not with {source.words(state)}: {error}. Nothing was kept. Retry later, name a mirror, or "
            f"place the file by hand at {by_hand}"
        ) from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    held = archive.namelist()
    if name not in held:
        raise zipfile.BadZipFile(f"the archive holds {held[:5]}, not {name}")
    member = archive.getinfo(name)
    if member.file_size > _MAX_CSV_BYTES:
        raise zipfile.BadZipFile(f"{name} in it would have {member.file_size:,} bytes, more than {_MAX_CSV_BYTES:,}")
    return member


def _chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of a member; its CRC is checked as the last of it is read."""
    with archive.open(member) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _problem_of(head: bytes, state: str) -> str:
    """Return what is wrong with the beginning of a person file of a state; empty if nothing."""
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    names = [name.strip().strip('"') for name in lines[0].split(",")] if lines else []
    absent = [name for name in _EXPECTED if name not in names]
    code = next((names.index(name) for name in ("ST", "STATE") if name in names), None)
    if absent or code is None:
        return f"it lacks the columns {absent or ['ST']} and begins with {head[:40]!r}"
    if len(lines) < 2:
        return "it has no rows"
    cells = lines[1].split(",")
    found = cells[code].strip().strip('"').zfill(2) if len(cells) > code else "none"
    return "" if found == STATES[state] else f"its first row is of the state with code {found}, not {STATES[state]}"


def sha256_of_files(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of a file; of several, that of what ``sha256sum`` prints in their folder."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").hexdigest())
    if len(found) == 1:
        return found[0]
    listing = "".join(f"{one}  {path.name}\n" for one, path in zip(found, paths, strict=True))
    return hashlib.sha256(listing.encode()).hexdigest()
