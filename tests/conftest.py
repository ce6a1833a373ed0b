"""Fixtures that every test may use."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No judgement of speed: the machine may be busy. `pytest --hypothesis-profile explore` draws new examples in every run.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tracebridge", settings.get_profile("explore"), derandomize=True)  # the same in every run
settings.load_profile("tracebridge")

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the cores are taken by workers; also what linear algebra heeds

os.environ.setdefault("TRACEBRIDGE_PRISM", "")  # output is that of two engines, wherever the tests run

STORM_IS_HERE = importlib.util.find_spec("stormpy") is not None
BROWSER_IS_HERE = all(map(shutil.which, ("chromium", "chromedriver"))) and importlib.util.find_spec("selenium")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked ``storm`` or ``browser`` skip where that is not installed, and fail there if it is required."""
    if item.get_closest_marker("storm") and not STORM_IS_HERE:
        if os.environ.get("TRACEBRIDGE_REQUIRE_STORM"):
            pytest.fail("stormpy is required and not installed")
        pytest.skip("stormpy is not installed")
    if item.get_closest_marker("browser") and not BROWSER_IS_HERE:
        if os.environ.get("TRACEBRIDGE_REQUIRE_BROWSER"):
            pytest.fail("chromium, chromedriver and selenium are required, and not all of them are installed")
        pytest.skip("chromium, chromedriver or selenium is not installed")


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
