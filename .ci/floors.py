"""Print the lowest version of each dependency that pyproject.toml allows, as pip constraints."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FLOOR = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9.]+)")

for requirement in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]:
    if found := FLOOR.match(requirement):
        print(f"{found[1]}=={found[2]}")
