"""The `catalogue` directive: a table of the metrics of one kind, read from `METRICS`.

.. code-block:: rst

    .. catalogue:: pair
"""

import math
import re

from sphinx.util.docutils import SphinxDirective

from sklearn_ethiclens.metrics import METRICS, SCORE_METRICS

HEADINGS = ("Name", "Formula", "Range", "At parity", "Undefined", "When it misleads", "Source")


def number(value):
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:g}".replace("-", "−")


def plain(text):
    """The text on one line, with what RST would read as markup escaped."""
    return re.sub(r"([\\*`|_])", r"\\\1", " ".join(text.split())) or "–"


def cells(metric):
    return (
        f"``{metric.name}``",
        plain(metric.formula),
        f"{number(metric.low)} to {number(metric.high)}",
        number(metric.parity),
        plain(metric.undefined),
        plain(metric.note),
        plain(metric.source),
    )


def table(metrics):
    """The lines of an RST list table with one row a metric."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    for row in (HEADINGS, *map(cells, metrics)):
        lines += [f"   {bullet} - {cell}" for bullet, cell in zip("*" + " " * (len(row) - 1), row, strict=True)]
    return "\n".join([*lines, ""])


class Catalogue(SphinxDirective):
    required_arguments = 1

    def run(self):
        kind = self.arguments[0]
        metrics = [metric for metric in METRICS.values() if metric.kind == kind]
        if kind == "scores":
            metrics = list(SCORE_METRICS.values())
        if not metrics:
            kinds = sorted({metric.kind for metric in METRICS.values()})
            raise self.error(f"METRICS holds no metric of kind {kind!r}; it has {kinds}")
        return self.parse_text_to_nodes(table(metrics))


def setup(app):
    app.add_directive("catalogue", Catalogue)
    return {"parallel_read_safe": True}
