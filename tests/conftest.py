"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and no judgement of speed: the machine may be busy.
settings.register_profile(
    "tracebridge", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tracebridge")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces: from TRACEBRIDGE_SHARED, or beside the project; skips where it is absent."""
    named = os.environ.get("TRACEBRIDGE_SHARED")
    shared = Path(named) if named else ROOT.parent / "shared"
    if not (shared / "data").is_dir():
        if os.environ.get("TRACEBRIDGE_REQUIRE_SHARED"):
            pytest.fail(f"the shared real traces are required, and {shared / 'data'} is not there")
        pytest.skip("the shared real traces are not here (set TRACEBRIDGE_SHARED)")
    return shared / "data"
