"""Audit -> words: one module a format; each shows what it is given and computes nothing."""

from __future__ import annotations

from typing import Any


def render(audit: Any, format: str = "text", **options: Any) -> str:
    return repr(audit)
