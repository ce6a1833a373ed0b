"""The public names: all there, loaded lazily, and importing the package loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tracebridge


@pytest.mark.parametrize("name", tracebridge.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(tracebridge, name)
    assert name == "__version__" or value.__doc__


def test_the_lists_of_names_agree():
    assert set(tracebridge.__all__) == {*tracebridge._MODULE_OF, "__version__"}
    assert sorted(tracebridge.__all__) == tracebridge.__all__
    assert dir(tracebridge) == sorted(tracebridge.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        tracebridge.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", ["tracebridge", "tracebridge.cli", "tracebridge.errors", "tracebridge.traces.model"])
def test_importing_loads_no_heavy_package(module):
    heavy = ["numpy", "scipy", "sklearn", "stormpy", "lark", "networkx", "flint", "rich"]
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_stormpy_is_never_loaded_into_the_users_process():
    code = "import sys, tracebridge as t; [getattr(t, name) for name in t.__all__]; print('stormpy' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"
