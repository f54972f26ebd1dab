"""The command line: audit a data set or a file, list what there is, judge a stored audit again.

Exit codes: 0, nothing in ``--fail-on`` occurred; 1, it did; 2, bad input, said in one line; 3, nothing could be judged.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_ethiclens._audit import Audit, audit_tally
from sklearn_ethiclens._cli_common import (
    AllowPickle,
    ModelFile,
    StoredModel,
    Trust,
    arrow,
    check_file,
    check_outputs,
    color,
    load_model,
    one_line_errors,
    print_text,
    read_csv,
    read_rows,
    sha256_of,
    split,
    spoken_warnings,
    width,
)
from sklearn_ethiclens._cli_config import as_text, check_target, digest_of, read_configuration, with_glassalpha
from sklearn_ethiclens._cli_probe import counterfactual_part, probe_command
from sklearn_ethiclens._files import write_whole
from sklearn_ethiclens._findings import Section as FurtherSection
from sklearn_ethiclens._frames import (
    ENGINES,
    SUFFIXES,
    check_columns,
    column_names,
    count_cells,
    csv_header,
    named_reading,
    scan_parquet,
    spelled,
    typed,
)
from sklearn_ethiclens._tally import Tally
from sklearn_ethiclens._validation import as_scalar, listing, show
from sklearn_ethiclens.compat import AuditConfig, to_glassalpha
from sklearn_ethiclens.counterfactual import CounterfactualAudit
from sklearn_ethiclens.datasets import DATASETS, Protocol, acs_income_protocol, compas_protocol, german_credit_protocol
from sklearn_ethiclens.metrics._definitions import ALIASES, METRICS, Metric
from sklearn_ethiclens.metrics._scores import SCORE_METRICS, ScoreMetric, above_median, find_metric
from sklearn_ethiclens.policy import POLICIES, get_policy
from sklearn_ethiclens.presets import NO_CERTIFICATE, PRESETS, Preset, get_preset
from sklearn_ethiclens.report._document import document
from sklearn_ethiclens.report._html import page
from sklearn_ethiclens.report._pdf import load_weasyprint, pdf
from sklearn_ethiclens.report._text import lay_out
from sklearn_ethiclens.report._words import Facts, Paragraph, Section, Table, label, policy_facts

STATES = ("flagged", "inconclusive", "insufficient")
SEEN = "The decisions are the model's on all these rows: on those it was fitted on, error rates are too favourable."
TOLERANCE = 1e-9  # of --verify
_IN_WORDS = {"acs-income": {"as_labels": True}}  # loaders that give codes unless asked for words
_KINDS = {"group": "of one group", "pair": "of a group against the reference", "overall": "of all groups at once"}

app = typer.Typer(
    help="Audit classifiers for group disparities.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line: the entry point of ``sklearn-ethiclens`` and ``python -m sklearn_ethiclens``."""
    app(prog_name="sklearn-ethiclens")


# ------------------------------------------------------------------------------------------------------------ commands
PolicyName = Annotated[
    str | None, typer.Option("--policy", help="What is judged; see `policies`. Default: ethiclens, or the preset's.")
]
PresetName = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="Facts that a regulator's rule asks for; see `presets`.")
]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the audit as JSON; - is stdout.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as HTML.")]
PdfFile = Annotated[Path | None, typer.Option("--pdf", metavar="FILE", help="Write the report as PDF.")]
MarkdownFile = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the scorecard as Markdown, for a pull request.")
]
CardFile = Annotated[
    Path | None, typer.Option("--model-card", metavar="FILE", help="Write what is known for a model card (Markdown).")
]
SheetFile = Annotated[
    Path | None, typer.Option("--datasheet", metavar="FILE", help="Write what is known of the rows (Markdown).")
]
FailOn = Annotated[
    str, typer.Option("--fail-on", metavar="STATES", help=f"Exit with 1 on any of {','.join(STATES)}, or none.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only; the exit code tells the rest.")]


@app.command()
def audit(
    ctx: typer.Context,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help=f"{', '.join(DATASETS)}, or a file: {' or '.join(SUFFIXES)}.")
    ] = None,
    y_true: Annotated[str | None, typer.Option("--y-true", metavar="COL", help="Column of the true labels.")] = None,
    y_pred: Annotated[str | None, typer.Option("--y-pred", metavar="COL", help="Column of the decisions.")] = None,
    y_score: Annotated[
        str | None, typer.Option("--y-score", metavar="COL", help="Column of the scores; adds calibration and AUC.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COL", help="Column of the sampling weights.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option("--clusters", metavar="COL", help="Column of the sampling units, such as households.")
    ] = None,
    strata: Annotated[
        str | None, typer.Option("--strata", metavar="COL", help="Column of the strata that units were drawn within.")
    ] = None,
    replicate_weights: Annotated[
        str | None,
        typer.Option(
            "--replicate-weights", metavar="PREFIX", help="Columns of replicates of --weight: PWGTP1 and so on."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option("--sensitive", metavar="COL,COL", help="Columns of the groups.")
    ] = None,
    control: Annotated[
        list[str] | None, typer.Option("--control", metavar="COL,COL", help="Columns to compare groups within.")
    ] = None,
    pos_label: Annotated[str | None, typer.Option("--pos-label", metavar="V", help="The positive label.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", help="What receiving it means: favorable (default) or adverse.")
    ] = None,
    bands: Annotated[
        list[str] | None, typer.Option("--bands", metavar="COL=25,40", help="Cut a column of numbers into groups.")
    ] = None,
    policy: PolicyName = None,
    preset: PresetName = None,
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", metavar="COL=GROUP", help="Whom to compare with; sex*race=F*Black for cells."),
    ] = None,
    intersections: Annotated[
        str | None,
        typer.Option(
            "--intersections", metavar="A*B", help="Combinations too: a*b,a*c, all, a number, scan or scan:3."
        ),
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="Of the intervals: bca, percentile or auto.")] = None,
    confidence_level: Annotated[float | None, typer.Option("--confidence-level", help="Of the intervals.")] = None,
    n_resamples: Annotated[int | None, typer.Option("--n-resamples", help="Bootstrap replicates.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", metavar="NAME,NAME", help="Default: all; see `metrics`.")
    ] = None,
    missing: Annotated[str, typer.Option("--missing", help="Rows without a group: bucket or raise.")] = "bucket",
    protocol: Annotated[
        str, typer.Option("--protocol", help="reference: the pinned COMPAS audit, in two parts.")
    ] = "default",
    us_states: Annotated[
        list[str] | None, typer.Option("--states", metavar="ST,ST", help="Of acs-income: CA (default), WY,VT or all.")
    ] = None,
    year: Annotated[int | None, typer.Option("--year", help="Of acs-income: the survey, 2018 by default.")] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help=f"That counts a .parquet file: {', '.join(ENGINES)}; polars if installed."),
    ] = None,
    model_file: ModelFile = None,
    trust: Trust = None,
    allow_pickle: AllowPickle = False,
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="YAML", help="What to audit, in place of SOURCE and its options.")
    ] = None,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    compat_file: Annotated[
        Path | None, typer.Option("--compat-json", metavar="FILE", help="Write the audit in the layout of GlassAlpha.")
    ] = None,
    pdf_file: PdfFile = None,
    markdown_file: MarkdownFile = None,
    card_file: CardFile = None,
    sheet_file: SheetFile = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compute all rates again with fairlearn.")] = False,
    fail_on: FailOn = "flagged",
    quiet: Quiet = False,
) -> None:
    """Audit a data set, or a file of predictions or of rows for a model, and print the scorecard."""
    with one_line_errors():
        states, shown = _states(fail_on), None if preset is None else get_preset(preset)
        chosen = get_policy(policy if policy is not None else (shown and shown.policy) or "ethiclens")
        files = _Files(json_file, html_file, pdf_file, markdown_file, card_file, sheet_file, compat_file)
        started = time.perf_counter()
        combinations: Any = intersections
        if intersections is not None:
            parts = split([intersections], "--intersections")
            combinations = int(parts[0]) if parts[0].isdecimal() else intersections
        audits, documents = [], []
        with spoken_warnings(quiet):
            config = None if config_file is None else read_configuration(ctx, config_file)
            if config is not None:
                source, chosen, combinations = config.dataset, config.policy, list(config.intersections) or None
                seed, outcome, model_file = config.random_seed, config.outcome, config.model_path
                pos_label = None if config.pos_label is None else show(config.pos_label)
            if source is None:
                raise ValueError(f"SOURCE is missing: name one of {list(DATASETS)} or a file, or give --config.")
            files.check({"SOURCE": source, "--config": config_file, "--model": model_file})
            named = {
                "--y-true": y_true,
                "--y-pred": y_pred,
                "--y-score": y_score,
                "--weight": weight,
                "--clusters": clusters,
                "--strata": strata,
                "--replicate-weights": replicate_weights,
            }
            if empty := [option for option, name in named.items() if name == ""]:
                raise ValueError(f"{empty[0]} must name a column; got ''. Leave it out if there is none.")
            model = None if model_file is None else load_model(model_file, split(trust, "--trust"), allow_pickle)
            asked = _Asked(
                y_true,
                y_pred,
                split(sensitive, "--sensitive"),
                _bands(bands),
                protocol,
                model,
                split(control, "--control"),
                y_score,
                _survey(source, split(us_states, "--states"), year),
                engine,
                weight,
                shown is not None and shown.scores_decide,
                _Design(clusters, strata, replicate_weights),
            )
            if config is not None:
                source, asked = _configured(config, model)
            for rows in _load(source, asked):
                if config is not None:
                    check_target(config, rows.y_true)
                given = _references(reference, rows.groups)
                if chosen.reference == "highest_value" or chosen.min_share:
                    rows = replace(rows, reference={})  # the rule itself says whom to compare with
                label_of = rows.pos_label if pos_label is None else _match(pos_label, rows.y_true, rows.y_pred)
                made = audit_tally(
                    rows.tally(label_of, missing),
                    outcome=rows.outcome if outcome is None else outcome,
                    reference={**rows.reference, **given} or None,
                    intersections=combinations,
                    policy=chosen,
                    method=method,
                    confidence_level=confidence_level,
                    n_resamples=n_resamples,
                    metrics=split(metrics, "--metrics") or None,
                    random_state=seed,
                )
                made = made.annotate(**rows.data)
                found = None
                if rows.asked is not None:
                    part, found = _counterfactuals(rows.asked, list(rows.groups.columns.astype(str)), made, seed)
                    made = made.with_section(part)
                if shown is not None:
                    made = made.preset(shown.name, policy=made.policy)
                if config is not None and config_file is not None:
                    told = None if rows.asked is None else (rows.asked.stored, rows.asked.X)
                    made = made.annotate(config=digest_of(config_file))
                    made, exported = with_glassalpha(made, config, rows.groups, rows.y_pred, told, found)
                    documents.append(exported)
                elif compat_file is not None:
                    documents.append(to_glassalpha(made))
                audits.append(made.annotate(run={**_clock(started), **rows.run}))
            if compat_file is not None:
                write_whole(compat_file, _encoded(as_text(documents)))
        _finish(audits, states, files, quiet, verify=verify)


@app.command()
def rejudge(
    stored: Annotated[Path, typer.Argument(metavar="AUDIT.json", help="What `audit --json` wrote.")],
    policy: Annotated[str, typer.Option("--policy", help="What is judged; see `policies`.")],
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    pdf_file: PdfFile = None,
    markdown_file: MarkdownFile = None,
    card_file: CardFile = None,
    sheet_file: SheetFile = None,
    fail_on: FailOn = "flagged",
    quiet: Quiet = False,
) -> None:
    """Judge a stored audit under another policy; the data are not needed."""
    with one_line_errors():
        states, chosen = _states(fail_on), get_policy(policy)
        files = _Files(json_file, html_file, pdf_file, markdown_file, card_file, sheet_file)
        files.check({"AUDIT.json": stored})
        started = time.perf_counter()
        with spoken_warnings(quiet):
            audits = [one.rejudge(chosen).annotate(run=_clock(started)) for one in _stored(stored)]
        _finish(audits, states, files, quiet)


app.command("probe")(probe_command)


@app.command("metrics")
def list_metrics(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.")] = None,
) -> None:
    """List the metrics, or show one in full."""
    with one_line_errors():
        if name is not None:
            _show(Section(find_metric(name).name, (_metric(name),)))
            return
        kinds = {f"{kind}: a number {words}": kind for kind, words in _KINDS.items()}
        found: dict[str, list[Metric | ScoreMetric]] = {
            title: [m for m in METRICS.values() if m.kind == kind] for title, kind in kinds.items()
        }
        found |= {"of scores: a number of one group, or of a group against the reference": [*SCORE_METRICS.values()]}
        blocks = tuple(
            (title, tuple((m.name, _parity(m.parity), m.formula) for m in entries)) for title, entries in found.items()
        )
        _show(Section("Metrics", (Table(("name", "parity", "formula"), blocks),)))


@app.command("policies")
def list_policies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.")] = None,
) -> None:
    """List the policies, or show one in full."""
    with one_line_errors():
        if name is not None:
            _show(Section(get_policy(name).name, (policy_facts(get_policy(name)),)))
        else:
            _show(Section("Policies", (Facts(tuple((p.name, p.description) for p in POLICIES.values())),)))


@app.command("presets")
def list_presets(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, in full.")] = None,
) -> None:
    """List the presets for regulators' rules with source, date and status, or show one in full."""
    with one_line_errors():
        if name is not None:
            _show(Section(get_preset(name).name, (_preset(get_preset(name)),)))
        else:
            for i, preset in enumerate(PRESETS.values()):
                _show(Section(preset.name, (_preset(preset),)), apart=bool(i))


@app.command("datasets")
def list_datasets() -> None:
    """List the data sets."""
    rows = tuple((name, f"{d.description}. {d.source}; {d.licence}") for name, d in DATASETS.items())
    _show(Section("Data sets", (Facts(rows),)))


def _metric(name: str) -> Facts:
    metric = find_metric(name)
    by_outcome = isinstance(metric, Metric) and metric.by_outcome
    rows = (
        ("name", metric.name),
        ("also called", ", ".join(alias for alias, own in ALIASES.items() if own == metric.name)),
        ("kind", f"{metric.kind}: a number {_KINDS[metric.kind]}"),
        ("formula", metric.formula),
        ("range", f"[{metric.low:g}, {metric.high:g}]"),
        ("parity", _parity(metric.parity)),
        ("scale", metric.scale),
        ("undefined", f"where {metric.undefined}"),
        ("outcome", "with outcome=adverse it is of not receiving the positive label" if by_outcome else ""),
        ("note", metric.note),
        ("source", metric.source),
    )
    return Facts(tuple(row for row in rows if row[1]))


def _preset(preset: Preset) -> Facts:
    rows = [("shows", preset.description), ("policy", preset.policy or "none of its own")]
    for rule in preset.rules:
        rows += [("rule", rule.title), ("source", rule.citation), ("date", rule.date)]
        rows.append(("status", f"as of {rule.as_of}: {rule.status}"))
    return Facts((*rows, ("note", NO_CERTIFICATE)))


def _parity(parity: float | None) -> str:
    return "-" if parity is None else f"{parity:g}"


# ------------------------------------------------------------------------------------------------------------- sources
@dataclass(frozen=True)
class _Design:
    """Which columns of a file tell how its rows were drawn."""

    clusters: str | None = None
    strata: str | None = None
    replicates: str | None = None

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options that were given, with their values."""
        given = {"--clusters": self.clusters, "--strata": self.strata, "--replicate-weights": self.replicates}
        return [(option, value) for option, value in given.items() if value]

    def columns(self, path: Path) -> list[str]:
        """Return the names of all its columns in a file."""
        return [*filter(None, [self.clusters, self.strata]), *self.replicate_columns(path)]

    def replicate_columns(self, path: Path) -> list[str]:
        """Return the columns called as the prefix and a number, in the order of the numbers."""
        if not self.replicates:
            return []
        numbered = {
            name: int(name.removeprefix(self.replicates))
            for name in _header(path)
            if name.startswith(self.replicates) and name.removeprefix(self.replicates).isdecimal()
        }
        if len(numbered) < 2:
            raise ValueError(
                f"--replicate-weights {self.replicates} must begin the names of at least two columns of {path.name} that go "
                f"on with a number, as PWGTP1; got {listing(list(numbered))}."
            )
        return sorted(numbered, key=numbered.__getitem__)

    def arguments(self, labels: Mapping[str, pd.Series], frame: pd.DataFrame, path: Path) -> dict[str, Any]:
        """Return them as arguments of a tally."""
        replicates = self.replicate_columns(path)
        return {
            "clusters": frame[self.clusters] if self.clusters else None,
            "strata": frame[self.strata] if self.strata else None,
            "replicate_weights": pd.DataFrame({name: labels[name] for name in replicates}) if replicates else None,
        }


@dataclass(frozen=True)
class _Asked:
    """Which columns to audit."""

    y_true: str | None
    y_pred: str | None
    sensitive: list[str]
    bands: Mapping[str, list[str]]
    protocol: str
    model: StoredModel | None = None
    controls: list[str] = field(default_factory=list)
    y_score: str | None = None
    survey: Mapping[str, Any] = field(default_factory=dict)  # which part of a data set to load
    engine: str | None = None
    weight: str | None = None
    scores_decide: bool = False  # without decisions, scores above their median are the positive ones
    design: _Design = field(default_factory=_Design)

    @property
    def by_median(self) -> bool:
        """Whether scores stand for the decisions that are not given."""
        return self.scores_decide and self.y_score is not None and self.y_pred is None and self.model is None

    @property
    def audited(self) -> list[str]:
        """The columns of the groups as named; where only bands are, those."""
        return self.sensitive or [name for name in self.bands if name not in self.controls]


@dataclass(frozen=True)
class _Model:
    """A model that was given, its inputs, and what is to be said of its decisions."""

    stored: StoredModel
    X: pd.DataFrame
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rows:
    """The rows of one audit, what is known of them, and the model to ask about its use of the groups."""

    y_true: pd.Series | None
    y_pred: pd.Series | None  # None until a model has decided
    groups: pd.DataFrame
    pos_label: Any = None
    outcome: str = "favorable"
    reference: Mapping[Any, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    asked: _Model | None = None
    controls: pd.DataFrame | None = None
    y_score: pd.Series | None = None
    counts: NDArray[np.int64] | None = None  # how many rows of a file each of these stands for; None: itself
    weight: Any = None  # of each row; of rows that were counted the sums
    design: Mapping[str, Any] = field(default_factory=dict)

    def tally(self, pos_label: Any, missing: str) -> Tally:
        """Return the tally of these rows."""
        if self.counts is None:
            return Tally.from_predictions(
                self.y_true,
                self.y_pred,
                sensitive_features=self.groups,
                control_features=self.controls,
                y_score=self.y_score,
                sample_weight=self.weight,
                **self.design,
                pos_label=pos_label,
                missing=missing,
            )
        columns, controls = ({} if f is None else {str(k): f[k] for k in f} for f in (self.groups, self.controls))
        return Tally._of_columns(
            self.y_true, self.y_pred, columns, controls, self.counts, pos_label, missing, self.weight
        )


def _configured(config: AuditConfig, model: StoredModel | None) -> tuple[str, _Asked]:
    """Return the source of a configuration and the columns it asks for; of a file, as rows where people are compared."""
    is_file = config.path is not None
    return str(config.path) if is_file else config.dataset, _Asked(
        config.target_column if is_file else None,
        config.prediction_column,
        list(config.protected_attributes),
        {name: [show(cut) for cut in cuts] for name, cuts in config.bands.items()},
        "default",
        model,
        y_score=config.score_column,
        engine="pandas" if is_file and config.individual.enabled else None,
    )


def _load(source: str, asked: _Asked) -> list[_Rows]:
    """Return the rows of each audit to make."""
    known = [*asked.sensitive, *asked.controls]
    stray = [name for name in asked.bands if asked.sensitive and name not in known]
    if stray:
        raise ValueError(f"--bands names {listing(stray)}, not among --sensitive {listing(known)}.")
    if source in DATASETS:
        if asked.engine is not None:
            raise ValueError(f"--engine is for files; {source} is a data set.")
        return _load_dataset(source, asked)
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"SOURCE must be one of {list(DATASETS)} or a file ending in {list(SUFFIXES)}; got {source!r}."
        )
    if asked.protocol != "default":
        raise ValueError(f"--protocol is for data sets; {path.name} is a file.")
    return [_load_file(path, asked)]


def _survey(source: str, states: list[str], year: int | None) -> dict[str, Any]:
    """Return which part of a data set was asked for, as its loader takes it."""
    if source != "acs-income" and (states or year is not None):
        raise ValueError(f"--states and --year are for acs-income; got SOURCE {source!r}.")
    asked: dict[str, Any] = {"states": "all" if states == ["all"] else states} if states else {}
    return asked if year is None else asked | {"year": year}


def _load_dataset(source: str, asked: _Asked) -> list[_Rows]:
    if asked.y_true or asked.y_pred:
        raise ValueError(f"--y-true and --y-pred are for files; {source} brings its labels and a model.")
    if asked.y_score:
        raise ValueError(f"--y-score is for files; the decisions of {source} come without scores.")
    for option, _ in asked.design.options:
        if source != "acs-income" or option != "--replicate-weights":
            raise ValueError(f"{option} is for files; the audit of {source} counts its rows.")
    if asked.model is not None and asked.protocol != "default":
        raise ValueError(f"--protocol {asked.protocol} is one pinned model; leave out --model, or --protocol.")
    if source != "compas" and asked.protocol != "default":
        raise ValueError(f"--protocol must be 'default' for {source}; got {asked.protocol!r}.")
    if source == "compas":
        protocols = compas_protocol(asked.protocol)
    elif source == "acs-income":
        given = {"sample_weight": asked.weight, "replicate_weights": asked.design.replicates}
        weighted: dict[str, Any] = {name: value for name, value in given.items() if value}
        protocols = acs_income_protocol(**asked.survey, **weighted)
    else:
        protocols = german_credit_protocol()
    if asked.protocol == "default":
        rows = _from_protocol(protocols[0], asked)
        return [rows if asked.model is None else _by_model(rows, asked.model, source, asked.survey)]
    known = [name for one in protocols for name in one.sensitive_features]
    wanted = asked.audited or known
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"--protocol {asked.protocol} has the attributes {listing(known)}; got {listing(unknown)}.")
    return [_from_protocol(one, asked) for one in protocols if set(one.sensitive_features) & set(wanted)]


def _from_protocol(protocol: Protocol, asked: _Asked) -> _Rows:
    """Return the rows of a protocol; other columns of the data set can be asked for in place of its attributes."""
    groups, reference = protocol.sensitive_features, dict(protocol.reference or {})
    names = asked.audited or [name for name in map(str, groups) if name not in asked.controls]
    if asked.protocol != "default":
        names = [name for name in names if name in groups]
    columns = {}
    further = [name for name in names if name not in groups or name in asked.bands] + asked.controls
    bunch = (
        DATASETS[protocol.data_name].loader(**asked.survey, **_IN_WORDS.get(protocol.data_name, {}))
        if further or (asked.weight and protocol.sample_weight is None)
        else None
    )
    for name in names:
        if name in groups and name not in asked.bands:
            columns[name] = groups[name]
            continue
        reference.pop(name, None)
        columns[name], usual = _column(bunch, protocol.data_name, name, asked.survey)
        columns[name] = columns[name].loc[groups.index]
        if usual is not None and name not in asked.bands:
            reference[name] = usual
    reference = {name: group for name, group in reference.items() if name in names}
    weight = protocol.sample_weight
    if asked.weight and weight is None:
        weight = _column(bunch, protocol.data_name, asked.weight, asked.survey)[0].loc[groups.index]
    controls = {
        name: _column(bunch, protocol.data_name, name, asked.survey)[0].loc[groups.index] for name in asked.controls
    }
    return _Rows(
        protocol.y_true,
        protocol.y_pred,
        _cut(pd.DataFrame(columns), asked.bands),
        protocol.pos_label,
        protocol.outcome,
        reference,
        {"name": protocol.name, "model": protocol.model, "sha256": protocol.sha256, "notes": list(protocol.notes)},
        controls=_cut(pd.DataFrame(controls), asked.bands) if controls else None,
        weight=weight,
        design={} if protocol.replicate_weights is None else {"replicate_weights": protocol.replicate_weights},
    )


def _by_model(rows: _Rows, model: StoredModel, source: str, survey: Mapping[str, Any]) -> _Rows:
    """Return the rows of a data set with the decisions of a given model in place of the protocol's."""
    bunch = DATASETS[source].loader(**survey)
    further = [name for name in bunch.sensitive_features if name not in bunch.data]
    frame = bunch.data.assign(**{name: bunch.sensitive_features[name] for name in further})
    X = model.inputs(frame.loc[rows.groups.index], source)
    data = {**rows.data, "model": model.words, "notes": [*rows.data["notes"], SEEN]}
    return replace(rows, y_pred=model.decide(X, source), data=data, asked=_Model(model, X))


def _column(bunch: Bunch, data_name: str, name: str, survey: Mapping[str, Any]) -> tuple[pd.Series, Any]:
    """Return a column of a data set, and the usual reference where it is one of its attributes."""
    if name in bunch.data:
        return bunch.data[name], bunch.reference.get(name)
    try:
        bunch = DATASETS[data_name].loader(sensitive_features=[name], **survey, **_IN_WORDS.get(data_name, {}))
    except ValueError as error:
        raise ValueError(f"{data_name} has no column {name!r}; it has {listing(list(bunch.data), 30)}.") from error
    return bunch.sensitive_features[name], bunch.reference.get(name)


def _load_file(path: Path, asked: _Asked) -> _Rows:
    names = asked.audited
    if not asked.y_pred and asked.model is None and not asked.by_median:
        raise ValueError(
            f"--y-pred is missing: name the column of {path.name} that holds the decisions, or give --model."
        )
    if asked.by_median and asked.y_true:
        raise ValueError(
            "--y-true is of no use without decisions: scoring rates need scores only. Leave it out, or give --y-pred too."
        )
    if asked.by_median and asked.weight:
        raise ValueError(
            "--weight does not go with scores alone: scoring rates count rows. Leave it out, or give --y-pred too."
        )
    if not names:
        raise ValueError(f"--sensitive is missing: name the columns of {path.name} that hold the groups.")
    check_file(path)
    engine = _engine(path, asked)
    if engine != "pandas":
        return _count_parquet(path, asked, engine)
    of_rows = [asked.y_true, asked.y_pred, asked.y_score, asked.weight]
    of_rows += asked.design.columns(path)
    needed = list(dict.fromkeys(filter(None, [*of_rows, *names, *asked.controls])))
    frame = _read_csv(path, needed) if path.suffix.lower() == ".csv" else _read_parquet(path, needed)
    labels = {name: typed(frame[name]) if path.suffix.lower() == ".csv" else frame[name] for name in needed}
    rows = _Rows(
        labels[asked.y_true] if asked.y_true else None,
        labels[asked.y_pred] if asked.y_pred else None,
        _cut(frame[names], asked.bands),
        data={"name": path.name, "sha256": sha256_of(path)},
        run={"path": str(path.resolve())},
        controls=_cut(frame[asked.controls], asked.bands) if asked.controls else None,
        y_score=labels[asked.y_score] if asked.y_score else None,
        weight=labels[asked.weight] if asked.weight else None,
        design=asked.design.arguments(labels, frame, path),
    )
    if asked.by_median:
        return _with_median(rows)
    return rows if asked.model is None else _with_model(rows, asked.model, path, asked)


def _with_median(rows: _Rows) -> _Rows:
    """Return the rows of a file with scores above their median as the decisions, as Local Law 144 counts them."""
    above = above_median(rows.y_score)
    said = f"No decisions were given: a row counts as selected where its score is above the median of all {len(above)} scores."
    decided = pd.Series(above, index=rows.groups.index)
    return replace(rows, y_pred=decided, pos_label=1, data={**rows.data, "notes": [said]})


def _with_model(rows: _Rows, model: StoredModel, path: Path, asked: _Asked) -> _Rows:
    """Return the rows of a file with a model to ask about them; it decides where no column of the file does."""
    frame = read_rows(path).set_axis(rows.groups.index)
    of_rows = [asked.y_true, asked.y_pred, asked.y_score, asked.weight, *asked.design.columns(path)]
    X = model.inputs(frame.drop(columns=[name for name in dict.fromkeys(of_rows) if name]), path.name)
    decided = model.decide(X, path.name)
    if rows.y_pred is None:
        data = {**rows.data, "model": model.words, "notes": [SEEN]}
        return replace(rows, y_pred=decided, data=data, asked=_Model(model, X))
    words = f"{model.words}, for the counterfactuals; the decisions are those of the column {label(asked.y_pred)}"
    pairs = zip(decided, rows.y_pred, strict=True)
    n_other = sum(show(as_scalar(own)) != show(as_scalar(audited)) for own, audited in pairs)
    said = (f"In {n_other} of {len(decided)} rows the model decides otherwise than the column {label(asked.y_pred)}.",)
    return replace(rows, data={**rows.data, "model": words}, asked=_Model(model, X, said if n_other else ()))


def _read_csv(path: Path, needed: list[str]) -> pd.DataFrame:
    """Return columns of a CSV file as text; only an empty cell is missing, so that a group called NA stays a group."""
    check_columns(path.name, needed, _header(path))
    return read_csv(path, dtype=str)[needed]


def _header(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    if path.suffix.lower() != ".csv":
        with named_reading(path):
            return list(arrow("pyarrow.parquet").read_schema(path).names)
    try:
        return csv_header(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error


def _read_parquet(path: Path, needed: list[str]) -> pd.DataFrame:
    """Return columns of a Parquet file; whole numbers beside missing ones stay whole, as every engine has them."""
    check_columns(path.name, needed, _header(path))
    frame = arrow("pyarrow.parquet").read_table(path, columns=needed).to_pandas(integer_object_nulls=True)
    return frame if set(needed) <= set(frame.columns) else frame.reset_index()  # a column may be stored as the index


def _engine(path: Path, asked: _Asked) -> str:
    """Return the engine that counts a file; that which was asked for, if it can."""
    by_rows = (("--y-score", asked.y_score), *asked.design.options, ("--model", asked.model))
    needs_rows = [option for option, given in by_rows if given]
    if asked.engine is None:
        # Sums of weights differ between engines in their last digits: without being asked, none but pandas makes them.
        by_cells = not needs_rows and not asked.bands and not asked.weight
        counted = path.suffix.lower() == ".parquet" and by_cells
        return "polars" if counted and find_spec("polars") is not None else "pandas"
    if asked.engine not in ENGINES:
        raise ValueError(f"--engine must be one of {list(ENGINES)}; got {asked.engine!r}.")
    if asked.engine != "pandas":
        if path.suffix.lower() != ".parquet":
            raise ValueError(
                f"--engine {asked.engine} counts .parquet files; {path.name} is read by pandas: leave out --engine."
            )
        if needs_rows:
            raise ValueError(
                f"--engine {asked.engine} brings back counts, but {' and '.join(needs_rows)} need{'s' * (len(needs_rows) == 1)} "
                f"the rows: leave out --engine, or pass --engine pandas."
            )
    return asked.engine


def _count_parquet(path: Path, asked: _Asked, engine: str) -> _Rows:
    """Return the distinct rows of a Parquet file, each with how many it stands for."""
    names = column_names(asked.y_true, asked.y_pred, list(asked.audited), list(asked.controls) or None, asked.weight)
    cells = count_cells(scan_parquet(path, engine, names.read), names)
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.columns.items()})
    return _Rows(
        frame[asked.y_true] if asked.y_true else None,
        frame[asked.y_pred],
        _cut(frame[asked.audited], asked.bands),
        data={"name": path.name, "sha256": sha256_of(path)},
        run={"path": str(path.resolve())},
        controls=_cut(frame[asked.controls], asked.bands) if asked.controls else None,
        counts=cells.counts,
        weight=cells.weights,
    )


def _counterfactuals(
    model: _Model, names: list[str], made: Audit, seed: int
) -> tuple[FurtherSection, CounterfactualAudit | None]:
    """Return what a model does with the sensitive features of an audit themselves, as a part of it and in full."""
    return counterfactual_part(model.stored, model.X, names, made.tally.pos_label, seed, model.said)


# --------------------------------------------------------------------------------------------------- words into values
def _match(text: str, *columns: pd.Series | None) -> Any:
    """Return the value that a text stands for: one of a column's if it is written alike, else the text itself."""
    values = [as_scalar(v) for column in columns if column is not None for v in column.dropna().unique()]
    same = [v for v in values if show(v) == text] or [
        v for v in values if not isinstance(v, str) and v == spelled(text)
    ]
    return same[0] if same else text


def _references(texts: Sequence[str] | None, groups: pd.DataFrame) -> dict[Any, Any]:
    """Return ``race=Caucasian`` and ``sex*race=F*Black`` as references by attribute and by intersection."""
    given: dict[Any, Any] = {}
    for text in texts or ():
        key, equals, group = text.partition("=")
        names = (key,) if key in groups else tuple(key.split("*"))
        unknown = [name for name in names if name not in groups]
        if not equals or unknown:
            raise ValueError(f"--reference must be COL=GROUP with COL among {listing(list(groups))}; got {text!r}.")
        parts = (group,) if len(names) == 1 else tuple(group.split("*"))
        if len(parts) != len(names):
            raise ValueError(f"--reference {text!r} must give one group for each of {listing(names)}.")
        found = tuple(_match(part, groups[name]) for name, part in zip(names, parts, strict=True))
        given[names[0] if len(names) == 1 else names] = found[0] if len(names) == 1 else found
    return given


def _bands(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """Return ``age=25,40`` as the cuts of each column, as typed."""
    bands = {}
    for text in texts or ():
        name, _, cuts = text.rpartition("=")
        parts = split([cuts], "--bands") if cuts.strip(" ,") else []
        numbers = [spelled(part) for part in parts]
        if not name or not parts or any(isinstance(v, str | bool) for v in numbers) or numbers != sorted(numbers):
            raise ValueError(f"--bands must be COL=CUT,CUT with rising numbers, as in age=25,40; got {text!r}.")
        bands[name] = parts
    return bands


def _cut(groups: pd.DataFrame, bands: Mapping[str, list[str]]) -> pd.DataFrame:
    """Return the groups with columns of numbers cut into bands, each closed on the left; missing stays missing."""
    groups = groups.copy()
    for name, cuts in bands.items():
        if name not in groups:
            continue
        numbers = pd.to_numeric(groups[name], errors="coerce")
        strange = groups[name].notna() & numbers.isna()
        if strange.any():
            raise ValueError(f"--bands needs numbers; column {name!r} holds {groups[name][strange].iloc[0]!r}.")
        middle = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
        labels = np.array([f"{name} < {cuts[0]}", *middle, f"{name} >= {cuts[-1]}"], dtype=object)
        position = np.searchsorted([float(cut) for cut in cuts], numbers.to_numpy(float), side="right")
        groups[name] = pd.Series(labels[position], index=groups.index, dtype=object).where(numbers.notna(), None)
    return groups


def _states(text: str) -> list[str]:
    states = [] if text.strip() == "none" else split([text], "--fail-on")
    unknown = [state for state in states if state not in STATES]
    if unknown:
        raise ValueError(f"--fail-on must be among {list(STATES)}, or none; got {listing(unknown)}.")
    return states


def _stored(path: Path) -> list[Audit]:
    """Return the audits of a file: one, or a list of them."""
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} is no stored audit: {error}.") from error
    if not isinstance(found, list):
        return [Audit.from_json(text)]
    if not found:
        raise ValueError(f"{path.name} holds no audit: its list is empty.")
    return [Audit.from_json(json.dumps(one)) for one in found]


def _clock(started: float) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.perf_counter() - started, 3),
    }


# ------------------------------------------------------------------------------------------------------------- output
@dataclass(frozen=True)
class _Files:
    """Where to write what was found, and in which format."""

    json: str | None
    html: Path | None
    pdf: Path | None
    markdown: Path | None
    model_card: Path | None
    datasheet: Path | None
    compat: Path | None = None  # written apart, as audits of a configuration have more to say

    def __post_init__(self) -> None:
        """Say before the work is done what could not be written after it."""
        self.check({})
        if self.pdf is not None:
            load_weasyprint()

    def check(self, inputs: Mapping[str, str | Path | None]) -> None:
        """Refuse files that cannot be written, or that are another output or an input."""
        check_outputs({_option(part.name): getattr(self, part.name) for part in fields(self)}, inputs)

    def write(self, audits: Sequence[Audit]) -> None:
        """Write each file, all audits in it."""
        if self.json is not None:
            texts = [one.to_json() for one in audits]
            text = (texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]") + "\n"
            if self.json == "-":
                print_text(text)
            else:
                write_whole(Path(self.json), _encoded(text))
        if self.html is not None:
            write_whole(self.html, _encoded(page([document(one) for one in audits])))
        if self.pdf is not None:
            write_whole(self.pdf, pdf([document(one, condensed=True) for one in audits]))
        for name in ("markdown", "model_card", "datasheet"):
            if (path := getattr(self, name)) is not None:
                write_whole(path, _encoded("\n".join(one.report(name) for one in audits)))


def _option(name: str) -> str:
    return "--compat-json" if name == "compat" else f"--{name.replace('_', '-')}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _finish(
    audits: Sequence[Audit], states: Sequence[str], files: _Files, quiet: bool, *, verify: bool = False
) -> None:
    """Print and write what was asked for, and end with the exit code."""
    if not quiet and files.json != "-":
        print_text("\n".join(one.report("text", width=width(), color=color()) for one in audits))
    files.write(audits)
    if verify:
        _verify(audits, quiet, to_stderr=files.json == "-")
    judging = [one for one in audits if one.policy.rules]
    if judging and not any(one.assessable for one in judging):
        raise typer.Exit(3)
    if states and any(one.fails(states) for one in audits):
        raise typer.Exit(1)


def _verify(audits: Sequence[Audit], quiet: bool, to_stderr: bool) -> None:
    """Print the largest deviation of each rate from fairlearn's; raise if one is too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of undefined rates, which are named in the scorecard
        tables = [one.cross_check() for one in audits]
    largest = max((float(table["largest_deviation"].max()) for table in tables if len(table)), default=0.0)
    rows = tuple(
        (str(r.attribute), str(r.metric), str(r.compared), f"{r.largest_deviation:.1e}")
        for table in tables
        for r in table.itertuples(index=False)
    )
    said = f"Largest deviation from fairlearn: {largest:.1e}; {TOLERANCE:.0e} is allowed."
    table = Table(("attribute", "metric", "compared", "deviation"), (("", rows),))
    if not quiet:
        _show(Section("Computed again with fairlearn", (Paragraph(said), table)), to_stderr=to_stderr, apart=True)
    if not largest <= TOLERANCE:
        raise ValueError(
            f"rates deviate from fairlearn's by {largest:.1e}, more than {TOLERANCE:.0e}: please report it."
        )


def _show(section: Section, *, to_stderr: bool = False, apart: bool = False) -> None:
    print_text("\n" * apart + lay_out([section], width=width(), color=color() and not to_stderr), to_stderr=to_stderr)
