"""Find the shared data and the reference cases; a test that needs one that is absent is skipped by its name."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
VARIABLE = "SKLEARN_ETHICLENS_DATA"


def _folder(wanted: str) -> Path:
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{wanted} is needed; ${VARIABLE} is not set", allow_module_level=True)
    return Path(folder)


def data_file(name: str) -> Path:
    """Return the path of a shared data file, or skip."""
    path = _folder(name) / name
    if not path.is_file():
        pytest.skip(f"{path} is missing", allow_module_level=True)
    return path


def case(name: str) -> dict[str, Any]:
    """Return the reference case of that id, or skip."""
    path = _folder(f"reference case {name}").parent / "cases" / "reference" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing", allow_module_level=True)
    return json.loads(path.read_text(encoding="utf-8"))


def cases(kind: str | None = None) -> list[dict[str, Any]]:
    """Return all reference cases, or those of a kind, sorted by id; skip if there are none."""
    folder = _folder("the folder of reference cases").parent / "cases" / "reference"
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    chosen = [one for one in found if kind is None or one["kind"] == kind]
    if not chosen:
        pytest.skip(f"{folder} holds no case of kind {kind}", allow_module_level=True)
    return chosen
