"""The public names: all there, loaded lazily, and importing the package loads nothing heavy."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tracebridge
from tracebridge.cli.app import SUB_VERBS


@pytest.mark.parametrize("name", tracebridge.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(tracebridge, name)
    assert name == "__version__" or value.__doc__


@pytest.mark.parametrize("name", tracebridge.__all__)
def test_every_public_name_has_its_type(name):
    """Functions say what they take and give; `py.typed` tells type checkers that all of it holds."""
    value = getattr(tracebridge, name)
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(each.annotation is not inspect.Parameter.empty for each in signature.parameters.values())
    else:
        assert isinstance(value, type | str) or value.__module__.startswith("tracebridge")  # a class, or a type alias
    assert (Path(tracebridge.__file__).parent / "py.typed").is_file()


def test_the_functions_that_the_manual_lists_for_python_are_there():
    page = (Path(__file__).parent.parent / "docs" / "confidence.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| (`\w+`[^|]*) \| (`\.\w[^|]*) \|$", page, re.MULTILINE)
    assert rows
    for functions, modules in rows:
        places = [import_module(f"tracebridge.confidence{place}") for place in re.findall(r"`([.\w]+)`", modules)]
        for name in re.findall(r"`(\w+)`", functions):
            assert any(getattr(place, name, None) is not None for place in places), name


def test_the_lists_of_names_agree():
    assert set(tracebridge.__all__) == {*tracebridge._MODULE_OF, "__version__"}
    assert sorted(tracebridge.__all__) == tracebridge.__all__
    assert dir(tracebridge) == sorted(tracebridge.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        tracebridge.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", ["tracebridge", "tracebridge.cli", "tracebridge.errors", "tracebridge.traces.model"])
def test_importing_loads_no_heavy_package(module):
    allowed = ["msgspec"] if module == "tracebridge.traces.model" else []  # small, and what a step is made of
    assert loaded_by(f"import {module}") == allowed


HEAVY = ["numpy", "scipy", "sklearn", "stormpy", "lark", "networkx", "flint", "rich", "matplotlib", "pandas",
         "statsmodels", "jinja2", "msgspec", "joblib"]  # fmt: skip


def loaded_by(code: str) -> list[str]:
    """The heavy packages that a program loads; its own output goes to standard error."""
    program = f"import sys; out = sys.stdout; sys.stdout = sys.stderr\n{code}\nprint(*sys.modules, file=out)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return sorted(set(HEAVY) & set(done.stdout.split()))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-verb"], []], ids=" ".join)
def test_the_command_line_answers_before_it_loads_anything(arguments):
    assert loaded_by(f"from tracebridge.cli import run; run({arguments})") == []


def test_the_verbs_of_groups_are_known_without_loading_them():
    for group, verbs in SUB_VERBS.items():
        assert sorted(getattr(import_module(f"tracebridge.cli.{group}"), group).commands) == list(verbs)


def test_completion_loads_no_verb():
    """Completing the name of a verb must be quicker than typing it."""
    words = "import os; os.environ |= {'_TRACEBRIDGE_COMPLETE': 'bash_complete', 'COMP_WORDS': 'tracebridge ch', "
    code = f"{words}'COMP_CWORD': '1'}}; from tracebridge.cli import run; run([])"
    assert loaded_by(code) == []


def test_stormpy_is_never_loaded_into_the_users_process():
    code = "import sys, tracebridge as t; [getattr(t, name) for name in t.__all__]; print('stormpy' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"
