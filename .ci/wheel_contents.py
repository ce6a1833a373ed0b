"""Whether a wheel holds every file of the package: code, schemas, templates, grammar, demo, properties, models."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "src/tracebridge": "tracebridge",
    "properties": "tracebridge/properties",
    "prism_models": "tracebridge/prism_models",
}

expected = {
    f"{packaged}/{path.relative_to(ROOT / source).as_posix()}"
    for source, packaged in FOLDERS.items()
    for path in (ROOT / source).rglob("*")
    if path.is_file()
    and not any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(ROOT).parts)
}
(wheel,) = sys.argv[1:]
with ZipFile(wheel) as archive:
    found = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
if found != expected:
    sys.exit(f"{wheel}: missing {sorted(expected - found)}, not of the package {sorted(found - expected)}")
print(f"{Path(wheel).name}: all {len(found)} files of the package")
