"""Files that land whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, in one or in pieces, so that it appears whole or not at all; its folder is made if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")  # not tempfile, whose files only their owner can read
    try:
        with part.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
