"""The order of the house, read from the source: who may import whom, and where chance may be drawn."""

import ast
from pathlib import Path

import pytest

import sklearn_ethiclens

PACKAGE = "sklearn_ethiclens"
SOURCE = Path(sklearn_ethiclens.__file__).parent

# A module imports from rooms of strictly lower rank only; the modules of one room may import one another.
ROOMS = {
    -1: ["_version", "exceptions"],  # names only, known everywhere
    0: ["_validation", "_progress", "_files"],
    1: ["_score_tally", "_weights", "_design"],
    2: ["_frames"],
    3: ["_tally"],
    4: ["metrics", "inference"],
    5: ["policy"],
    6: ["_findings", "_design_forms"],
    7: ["_calibrated"],
    8: ["_assess", "_assess_scores", "_scan", "_strata", "presets", "report"],
    9: ["plotting"],  # draws what others have computed and worded
    10: ["_audit"],
    11: [
        "_auditor",
        "scorers",
        "counterfactual",
        "individual",
        "datasets",
        "compat",
        "diagnosis",
        "mitigation",
        "monitoring",
    ],
    12: ["_cli_common"],
    13: ["_cli_config", "_cli_probe"],
    14: ["cli", "__init__"],
    15: ["__main__"],
}
RANKS = {room: rank for rank, rooms in ROOMS.items() for room in rooms}

# Where chance may be drawn: replicates in one room, made data in the other.
ROOMS_WITH_CHANCE = {"inference", "datasets"}
DRAWS = {
    "binomial",
    "choice",
    "integers",
    "multinomial",
    "multivariate_hypergeometric",
    "permutation",
    "permuted",
    "resample",
}
RESAMPLERS = {
    "scipy.stats": {"bootstrap", "monte_carlo_test", "permutation_test"},
    "sklearn.utils": {"resample"},
}

MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def room_of(path):
    """The name of the first folder, or of the module itself: what has a rank."""
    return path.parts[0].removesuffix(".py")


def own_imports(tree, path):
    """Yield (room, node) for every import of this package in the parsed module `path`."""
    here = [PACKAGE, *path.parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            targets = [f"{source}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}:
            targets = [str(getattr(argument, "value", "")) for argument in node.args[:1]]
            targets = [PACKAGE + target if target.startswith(".") else target for target in targets]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            if parts[0] != PACKAGE:
                continue
            is_room = len(parts) > 1 and ((SOURCE / parts[1]).is_dir() or (SOURCE / f"{parts[1]}.py").exists())
            yield parts[1] if is_room else "__init__", node


def violations(source, path):
    """What is wrong with the imports of a module, one sentence each."""
    tree = ast.parse(source)
    room = room_of(path)
    in_functions = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    for target, node in own_imports(tree, path):
        where = f"{path}:{node.lineno}"
        if node in in_functions:
            yield f"{where} imports {target} inside a function: import it at the top, or move it to a lower room"
        for name in (room, target):
            if name not in RANKS:
                yield f"{where}: {name!r} has no rank: add it to ROOMS in tests/test_architecture.py"
        if target != room and room in RANKS and target in RANKS and RANKS[target] >= RANKS[room]:
            yield f"{where}: {room} (rank {RANKS[room]}) imports {target} (rank {RANKS[target]}), not a lower rank"


def draws(source):
    """Every place of a module that draws at random or calls a resampler: (line, name)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            resamplers = {name for module, names in RESAMPLERS.items() if module.endswith(owner) for name in names}
            if node.func.attr in DRAWS - {"resample"} | resamplers:
                yield node.lineno, node.func.attr
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in RESAMPLERS.get(node.module or "", ()):
                    yield node.lineno, alias.name


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_every_module_has_a_rank(path):
    assert room_of(path) in RANKS, (
        f"{room_of(path)!r} is new: give it a rank in ROOMS of tests/test_architecture.py, above everything it imports"
    )


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_go_to_lower_ranks_and_stand_at_the_top(path):
    assert list(violations((SOURCE / path).read_text(encoding="utf-8"), path)) == []


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) not in ROOMS_WITH_CHANCE], ids=str)
def test_only_inference_and_datasets_draw_at_random(path):
    assert list(draws((SOURCE / path).read_text(encoding="utf-8"))) == [], (
        "draw replicates in inference/ and data in datasets/: seeds, streams and degenerate cases are handled once"
    )


# The readers above are themselves held: a rule that never fires guards nothing.


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("_tally.py", "from sklearn_ethiclens.exceptions import SampleSizeWarning", None),
        ("_tally.py", "from sklearn_ethiclens._version import __version__", None),
        ("metrics/_rates.py", "from sklearn_ethiclens.metrics._other import x", None),
        ("metrics/_rates.py", "from . import _other", None),
        ("metrics/_rates.py", "from ..inference import bootstrap", "not a lower rank"),
        ("metrics/_rates.py", "from .. import inference", "not a lower rank"),
        ("inference/__init__.py", "import sklearn_ethiclens.metrics", "not a lower rank"),
        ("_tally.py", "from sklearn_ethiclens import audit", "not a lower rank"),
        ("_tally.py", "import sklearn_ethiclens", "not a lower rank"),
        ("cli.py", "def f():\n    from .metrics import METRICS", "inside a function"),
        (
            "cli.py",
            "import importlib\nf = lambda: importlib.import_module('sklearn_ethiclens.metrics')",
            "inside a function",
        ),
        ("somewhere_new.py", "from sklearn_ethiclens.exceptions import SampleSizeWarning", "has no rank"),
    ],
)
def test_import_rule_fires(module, source, complaint):
    found = list(violations(source, Path(module)))
    assert len(found) == (complaint is not None)
    assert all(complaint in sentence for sentence in found)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("rng.multinomial(n, p)", ["multinomial"]),
        ("np.random.default_rng(0).choice(x)", ["choice"]),
        ("from sklearn.utils import resample", ["resample"]),
        ("from scipy import stats\nstats.bootstrap((x,), f)", ["bootstrap"]),
        ("inference.bootstrap(tally, f)", []),
    ],
)
def test_draw_rule_fires(source, expected):
    assert [name for _, name in draws(source)] == expected
