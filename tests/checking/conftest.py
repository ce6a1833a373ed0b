"""PRISM for the tests of engines: the stand-in, and the real one where there is one."""

from __future__ import annotations

import os
import shutil

import pytest
from tests.checking.prism_stand_in import install

from tracebridge.checking.prism_process import PrismExecutable, find_prism


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> PrismExecutable:
    """`fake_prism` as an executable."""
    return PrismExecutable(install(tmp_path_factory.mktemp("stand-in")))


@pytest.fixture(scope="session")
def real_prism() -> PrismExecutable:
    """The one that the environment names, or the one on the PATH even where the environment turns it off."""
    named = os.environ.get("TRACEBRIDGE_PRISM") or shutil.which("prism")
    found = None if named is None else find_prism(named)
    if found is None or found.version() is None:
        pytest.skip("no PRISM on the PATH or in TRACEBRIDGE_PRISM")
    return found
