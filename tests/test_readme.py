"""The README shows what the code prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import sklearn

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_scorecard_in_the_readme_is_what_its_example_prints():
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("the scorecard is of a model that older solvers of scikit-learn fit a little differently")
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    shown = re.search(r"```text\n(.*?)```", README, re.S).group(1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    lines = [line for line in shown.splitlines() if line != "..."]
    assert len(lines) > 10
    assert [line for line in lines if line not in printed.getvalue().splitlines()] == []
