"""How an audit shows itself in a notebook, as scikit-learn's ``display`` setting has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sklearn


class NotebookDisplay:
    """A mixin: what has ``_as_fragment`` is shown by it, and as text alone under ``sklearn.set_config(display="text")``."""

    def _as_fragment(self) -> str:
        raise NotImplementedError

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # Absent under "text": a notebook looks whether the attribute is there, as of scikit-learn's estimators.
        if sklearn.get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is there when sklearn.get_config()['display'] is 'diagram'")
        return self._as_fragment

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if sklearn.get_config()["display"] == "diagram":
            bundle["text/html"] = self._as_fragment()
        return bundle
