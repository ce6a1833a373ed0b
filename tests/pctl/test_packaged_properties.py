"""The property files that a user starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pctl.test_portability import storm

from tracebridge import check, compare, read_model
from tracebridge.pctl import ast, explain, format_properties, lint, portability, read_properties, resolve_constants

FILES = sorted((Path(__file__).parents[2] / "properties").glob("*.props"))
MODELS = Path(__file__).parents[2] / "prism_models"
OF_DELIBERATIONS = [path for path in FILES if path.stem == "broadcast"]
OF_PROCESSES = [path for path in FILES if path.stem == "routing"]
OF_EVERY_CHAIN = [path for path in FILES if path not in OF_DELIBERATIONS + OF_PROCESSES]
LABELS = {"success", "failure", "absorbed"}


def test_they_are_all_there() -> None:
    assert [path.stem for path in FILES] == ["broadcast", "budget", "reliability", "routing", "safety", "termination"]


@pytest.mark.parametrize("path", OF_EVERY_CHAIN, ids=lambda path: path.stem)
def test_every_fitted_chain_can_be_checked_against_them(path: Path) -> None:
    file = read_properties(path)
    assert lint(file, labels=LABELS, reward_structures={"steps"}, targets=("prism",)) == []
    notes = {finding.message for finding in lint(file, labels=LABELS, reward_structures={"steps"})}
    assert notes <= {"Storm does not calculate with operators"}
    for entry in resolve_constants(file).properties:
        used = {node.name for node in ast.walk(entry.formula) if isinstance(node, ast.Label)}
        assert used <= LABELS
        assert explain(entry)


@pytest.mark.storm
def test_the_worked_example_has_the_published_answers() -> None:
    """Of the ten questions that are asked of deliberations; see prism_models/broadcast.prism."""
    (path,) = OF_DELIBERATIONS
    agreements = compare(check(read_model(MODELS / "broadcast.prism").chain, read_properties(path)))
    published = [0.7567, 1, 0.1068, 0.8033, 0.8301, 0.1007, 0.0432, 0.1007, 10.64, 0.892]
    for agreement, expected in zip(agreements, published, strict=True):
        assert agreement.ok
        assert agreement.agree
        for result in agreement.results:
            assert float(result.value.value) == pytest.approx(expected, abs=5e-5 if expected <= 1 else 5e-3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_they_are_in_canonical_form(path: Path) -> None:
    assert format_properties(read_properties(path)) == path.read_text(encoding="utf-8")


def test_names_are_unique_across_the_files() -> None:
    found = [entry.name for path in FILES for entry in read_properties(path).properties]
    assert len(found) == len(set(found))


@pytest.mark.storm
def test_storm_reads_every_portable_property(tmp_path: Path) -> None:
    files = [read_properties(path) for path in FILES]
    answers = storm([format_properties(file, target="storm") for file in files], tmp_path)
    for file, answer in zip(files, answers, strict=True):
        assert answer == [entry.name for entry in file.properties if not portability(entry, "storm")]
