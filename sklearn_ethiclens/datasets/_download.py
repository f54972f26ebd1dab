"""Download one file within a time limit, and check it."""

import hashlib
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from sklearn_ethiclens._progress import with_bar

HOME_VARIABLE = "SKLEARN_ETHICLENS_HOME"
DATA_VARIABLE = "SKLEARN_ETHICLENS_DATA"  # a folder of files that are at hand: read first, never written to
_CHUNK = 1 << 16


@dataclass(frozen=True)
class RemoteFile:
    """A file on the web, pinned by its size and SHA-256 (either may be unknown)."""

    url: str
    n_bytes: int | None = None
    sha256: str | None = None


class _TransferError(Exception):
    """One attempt failed; `passing` says whether another may succeed."""

    def __init__(self, problem: str, *, passing: bool = False) -> None:
        super().__init__(problem)
        self.passing = passing


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder downloaded data is kept in; it is made only when a file is written to it.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. By default that of the environment variable ``SKLEARN_ETHICLENS_HOME``, else
        ``~/.cache/sklearn_ethiclens``.

    Returns
    -------
    path : pathlib.Path
    """
    home = data_home or os.environ.get(HOME_VARIABLE) or Path("~", ".cache", "sklearn_ethiclens")
    return Path(home).expanduser()


def download(
    remote: RemoteFile,
    *,
    by_hand: str | os.PathLike[str],
    timeout: float = 30.0,
    total_timeout: float = 300.0,
    retries: int = 2,
    pause: float = 1.0,
    max_bytes: int = 1 << 30,
) -> bytes:
    """Return the bytes of a file on the web, checked against its pinned size and SHA-256. Nothing is written.

    Parameters
    ----------
    remote : RemoteFile
        Address, and size and SHA-256 where known.
    by_hand : path-like
        Where the user may place the file instead; every error names it.
    timeout : float, default=30.0
        Seconds to wait for the connection, and for each read.
    total_timeout : float, default=300.0
        Seconds for everything together, all attempts included.
    retries : int, default=2
        Further attempts after a status of 500 or above or a time-out; nothing else is tried again.
    pause : float, default=1.0
        Seconds before the first further attempt, doubled before each next one.
    max_bytes : int, default=2**30
        Where the size is not pinned, the most that is accepted.

    Returns
    -------
    content : bytes

    Raises
    ------
    OSError
        If the file cannot be had, or is not the pinned one: address, what happened, and the ways out.
    """
    if urlsplit(remote.url).scheme not in ("http", "https"):
        raise ValueError(f"url must start with http:// or https://; got {remote.url!r}.")
    for name, value in (("timeout", timeout), ("total_timeout", total_timeout)):
        if not value > 0:
            raise ValueError(f"{name} must be a positive number of seconds; got {value!r}.")
    deadline = time.monotonic() + total_timeout
    attempt = 0
    while True:
        try:
            content = _read(remote, timeout, deadline, max_bytes)
            _check(content, remote)
        except _TransferError as error:
            wait = pause * 2**attempt
            if error.passing and attempt < retries and time.monotonic() + wait < deadline:
                time.sleep(wait)
                attempt += 1
                continue
            attempts = "" if attempt == 0 else f" (attempt {attempt + 1} of {retries + 1})"
            raise OSError(
                f"could not download {remote.url}: {error}{attempts}. Nothing was kept. Retry later, name a mirror, "
                f"or place the file by hand at {os.fspath(by_hand)}"
            ) from error
        return content


def _read(remote: RemoteFile, timeout: float, deadline: float, max_bytes: int) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    request = Request(remote.url, headers={"User-Agent": "sklearn-ethiclens"})
    limit = max_bytes if remote.n_bytes is None else remote.n_bytes
    content = bytearray()
    try:
        with urlopen(request, timeout=max(min(timeout, deadline - time.monotonic()), 0.001)) as response:
            if response.status != 200:
                raise _TransferError(f"the server answered status {response.status}; expected 200")
            declared = response.headers.get("Content-Length")
            expected = int(declared) if declared is not None and declared.isdigit() else remote.n_bytes
            # read1 returns after one receive, so that a server that dribbles cannot outlast the deadline
            chunks = iter(partial(response.read1, _CHUNK), b"")
            for chunk in with_bar(chunks, expected, urlsplit(remote.url).path.rpartition("/")[2], size=len):
                content += chunk
                if len(content) > limit:
                    raise _TransferError(f"the server sends more than the expected {limit:,} bytes")
                if time.monotonic() > deadline:
                    raise _TransferError(f"the time limit was reached after {len(content):,} bytes")
    except HTTPError as error:
        error.close()
        problem = f"the server answered status {error.code} ({error.reason}); expected 200"
        raise _TransferError(problem, passing=error.code >= 500) from error
    except (URLError, HTTPException, OSError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        if isinstance(cause, TimeoutError):
            raise _TransferError("the server did not answer within the time limit", passing=True) from error
        raise _TransferError(f"no answer could be read ({type(cause).__name__}: {cause})") from error
    if declared is not None and declared.isdigit() and int(declared) != len(content):
        raise _TransferError(f"the transfer broke off after {len(content):,} of {int(declared):,} bytes")
    return bytes(content)


def _check(content: bytes, remote: RemoteFile) -> None:
    if remote.n_bytes is not None and len(content) != remote.n_bytes:
        raise _TransferError(f"the file must have {remote.n_bytes:,} bytes; got {len(content):,}")
    found = hashlib.sha256(content).hexdigest()
    if remote.sha256 is not None and found != remote.sha256:
        raise _TransferError(f"the file must have SHA-256 {remote.sha256}; got {found}")
