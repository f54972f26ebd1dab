"""Files that land whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, in one or in pieces, so that it appears whole or not at all; its folder is made if needed.

    What is no plain file, as a device or a pipe, is written to and not replaced; so is what a link points to.
    """
    pieces = [content] if isinstance(content, bytes) else content
    target = path.resolve() if path.is_symlink() else path
    part: Path | None = None
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                file.writelines(pieces)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile, whose files only their owner can read.
        part = target.with_name(f".{target.name}.{uuid4().hex}.part")
        with part.open("wb") as file:
            file.writelines(pieces)
        os.replace(part, target)
    except BaseException as error:
        if part is not None:
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error  # of the file asked for, not of its part
        raise
