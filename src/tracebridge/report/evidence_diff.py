"""Two evidence files: what changed from one to the other, and how sure that is.

Numbers are compared by the posteriors behind both, which are drawn again from the recorded counts. Both corpora are
taken as independent samples: the difference of a pair of draws is a draw of the difference. The pairs are made anew at
random, because draws of one seed and one shape of chain come from the same random numbers and go up and down together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.fit import ChainFit
from tracebridge.checking.result import number_from_json
from tracebridge.errors import EngineError, TracebridgeError
from tracebridge.inference.expanded.posterior import FitDraws, no_draws
from tracebridge.inference.intervals import equal_tailed, require_level
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.uncertainty import DEFAULT_LEVEL, draw_properties, resolved_properties
from tracebridge.pctl import ast
from tracebridge.report.evidence_changes import Change, EvidenceDiff, PropertyChange, TransitionChange
from tracebridge.traces.run_dates import dates_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.batched_evaluation import PropertyDraws
    from tracebridge.report.evidence import Evidence

    Floats = NDArray[np.float64]

__all__ = ["Change", "EvidenceDiff", "PropertyChange", "TransitionChange", "compare_evidence"]

#: So many of the transitions that differ are told, the surest first.
MOST_TRANSITIONS = 20

#: The stream of random numbers that pairs draws, beside those of the draws themselves.
_PAIRING = 9_061


def compare_evidence(old: Evidence, new: Evidence, *, level: float = DEFAULT_LEVEL) -> EvidenceDiff:
    """Compare two assessments, number by number.

    Args:
        level: of the intervals of differences, each by itself.

    Raises:
        UsageError: for a level that is none. ModelError, PropertyError: a document that holds no fit or no properties.
    """
    require_level(level)
    changes, transitions_changed = _transition_changes(old, new)
    before, after = set(old.fit.chain.states), set(new.fit.chain.states)
    pairs, removed, added = _matched(old.results["properties"], new.results["properties"])
    return EvidenceDiff(
        options=tuple(_changed(old.options, new.options)),
        inputs=tuple(_changed(_hashes(old), _hashes(new))),
        corpus=tuple(_changed(_described(old), _described(new))),
        standings=tuple(_changed(_standings(old), _standings(new))),
        states_added=tuple(state for state in new.fit.chain.states if state not in before),
        states_removed=tuple(state for state in old.fit.chain.states if state not in after),
        transitions=changes,
        transitions_changed=transitions_changed,
        properties=tuple(_property_changes(old, new, pairs, level)),
        properties_added=added,
        properties_removed=removed,
        level=level,
    )


# ---------------------------------------------------------------- documents


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield Change(what=name, old=old.get(name), new=new.get(name))


def _hashes(evidence: Evidence) -> dict[str, str]:
    return {f"{each['role']}: {each['name']}": each["sha256"] for each in evidence.document["inputs"]}


def _described(evidence: Evidence) -> dict[str, Any]:
    corpus, fit = evidence.results["corpus"], evidence.results["fit"]
    outcomes = {f"runs that ended in {name}": number for name, number in corpus["outcomes"].items()}
    return {
        "runs": corpus["n_runs"],
        "steps": corpus["n_steps"],
        "skipped records": corpus["n_skipped"],
        "tasks": corpus["n_tasks"],
        **outcomes,
        "runs began": dates_text(corpus["dates"], corpus["n_runs"]),
        "models": ", ".join(corpus["models"]),
        "pass rate": fit["pass_rate"][fit["censored"]],
        "model of the chain": fit["model"],
    }


def _standings(evidence: Evidence) -> dict[str, str]:
    return {scope: standing["verdict"] for scope, standing in evidence.results["standings"].items()}


# ---------------------------------------------------------------- transitions


def _transition_changes(old: Evidence, new: Evidence) -> tuple[tuple[TransitionChange, ...], int]:
    chains = old.fit.chain, new.fit.chain
    known = set(chains[1].states)
    common = [state for state in chains[0].states if state in known]
    tables = [_table(evidence) for evidence in (old, new)]
    changes = []
    for source in common:
        rows = [table.get(source, {}) for table in tables]
        for target in dict.fromkeys([*rows[0], *rows[1]]):
            (p, variance), (q, other) = (row.get(target, (0.0, 0.0)) for row in rows)
            if p != q:
                error = None if variance is None or other is None else math.sqrt(variance + other)
                changes.append(TransitionChange(source=source, target=target, old=p, new=q, error=error))
    changes.sort(key=lambda each: (-abs(each.new - each.old) / (each.error or 1.0), each.source, each.target))
    return tuple(changes[:MOST_TRANSITIONS]), len(changes)


def _table(evidence: Evidence) -> dict[str, dict[str, tuple[float, float | None]]]:
    """Each transition with its posterior variance, that of a Dirichlet distribution; None where it has another."""
    fit = evidence.fit
    P, states = fit.chain.transitions, fit.chain.states
    rows = np.repeat(np.arange(fit.chain.n_states), np.diff(P.indptr))
    variances: Sequence[float | None] = [None] * P.nnz
    if isinstance(fit, ChainFit):
        totals = np.bincount(rows, ChainPosterior.of_fit(fit).concentrations, minlength=fit.chain.n_states)
        variances = np.asarray(P.data * (1 - P.data) / (totals[rows] + 1)).tolist()
    table: dict[str, dict[str, tuple[float, float | None]]] = {}
    for i, j, p, variance in zip(rows.tolist(), P.indices.tolist(), P.data.tolist(), variances, strict=True):
        table.setdefault(states[i], {})[states[j]] = p, variance
    return table


# ---------------------------------------------------------------- properties


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    key: str
    matched_by: str
    old: int
    new: int


_KEYS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "requirement": lambda entry: entry["annotations"].get("requirement"),
    "name": lambda entry: entry["name"],
    "formula": lambda entry: str(entry["formula"]),
}


def _matched(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> tuple[list[_Pair], tuple[str, ...], tuple[str, ...]]:
    """Pairs in the order of the new file, and what is left of both; a key pairs only what has it alone on its side."""
    waiting, other = dict(enumerate(old)), dict(enumerate(new))
    pairs = []
    for matched_by, key_of in _KEYS.items():
        ours, theirs = _by_key(waiting, key_of), _by_key(other, key_of)
        for key in ours.keys() & theirs.keys():
            pairs.append(_Pair(key=key, matched_by=matched_by, old=ours[key], new=theirs[key]))
            del waiting[ours[key]], other[theirs[key]]
    names = [tuple(str(each["name"] or each["formula"]) for each in left.values()) for left in (waiting, other)]
    return sorted(pairs, key=lambda pair: pair.new), names[0], names[1]


def _by_key(
    entries: Mapping[int, Mapping[str, Any]], key_of: Callable[[Mapping[str, Any]], str | None]
) -> dict[str, int]:
    places: dict[str, list[int]] = {}
    for place, entry in entries.items():
        if (key := key_of(entry)) is not None:
            places.setdefault(key, []).append(place)
    return {key: found[0] for key, found in places.items() if len(found) == 1}


def _property_changes(old: Evidence, new: Evidence, pairs: Sequence[_Pair], level: float) -> Iterator[PropertyChange]:
    asked = [resolved_properties(each.fit, each.properties, each.constants) for each in (old, new)]
    drawn = [
        _drawn(evidence, [properties[place] for place in places])
        for evidence, properties, places in zip(
            (old, new), asked, ([pair.old for pair in pairs], [pair.new for pair in pairs]), strict=True
        )
    ]
    for position, pair in enumerate(pairs):
        entries = old.results["properties"][pair.old], new.results["properties"][pair.new]
        formulas = asked[0][pair.old].formula, asked[1][pair.new].formula
        change = PropertyChange(
            key=pair.key,
            matched_by=pair.matched_by,
            old=entries[0],
            new=entries[1],
            asked=asked[1][pair.new],
            same_formula=formulas[0] == formulas[1],
            old_value=_value(entries[0]),
            new_value=_value(entries[1]),
        )
        outcomes = [each if isinstance(each, str) else each[position] for each in drawn]
        if _number_asked_for(formulas[0]) != _number_asked_for(formulas[1]):
            yield replace(change, reason="it asks for another number than before")
        else:
            yield _with_difference(change, outcomes, level)


def _number_asked_for(formula: ast.Formula) -> ast.Formula:
    """The formula without the threshold of a lone operator, which changes what is demanded and not the number."""
    return replace(formula, threshold=None) if isinstance(formula, ast.Quantitative) else formula


def _drawn(evidence: Evidence, properties: Sequence[ast.Property]) -> list[PropertyDraws | EngineError] | str:
    """Each property in the draws that the assessment made, or why there is none."""
    draws = int(evidence.options["draws"])
    if not draws:
        return "no posterior was drawn for one of them"
    try:
        source = FitDraws.of_fit(evidence.fit)
        missing = [no_draws(evidence.fit, each.formula) for each in properties]
        number = source.number(draws)
        seed = int(evidence.options["seed"])
        known = [each for each, reason in zip(properties, missing, strict=True) if reason is None]
        found = iter(draw_properties(known, source.draws(number, seed), number))
    except TracebridgeError as error:
        return str(error)
    return [next(found) if reason is None else EngineError(reason) for reason in missing]


def _with_difference(
    change: PropertyChange, outcomes: Sequence[PropertyDraws | EngineError | str], level: float
) -> PropertyChange:
    old, new = outcomes
    for each in outcomes:
        if isinstance(each, str | EngineError):
            return replace(change, reason=str(each))
    assert not isinstance(old, str | EngineError) and not isinstance(new, str | EngineError)  # noqa: S101, PT018 - above
    if old.holds is not None and new.holds is not None:
        shares = float(old.holds.mean()), float(new.holds.mean())
        change = replace(change, old_satisfied=shares[0], new_satisfied=shares[1])
    if old.values is None or new.values is None:
        return replace(change, reason="it is about no single number")
    if any((entry["uncertainty"] or {}).get("interval") is None for entry in (change.old, change.new)):
        return replace(change, reason="one of them has no interval")
    differences = _paired_differences(old.values, new.values)
    defined = differences[~np.isnan(differences)]
    undefined = len(differences) - len(defined)
    if not len(defined):
        return replace(change, undefined=undefined, reason="the difference is undefined in all draws")
    interval, _ = equal_tailed(defined, level, "difference of two independent posteriors, equal-tailed")
    return replace(
        change,
        difference=interval,
        probability_greater=_share_greater(old.values, new.values),
        draws=len(differences),
        undefined=undefined,
        reason=None,
    )


def _paired_differences(old: Floats, new: Floats) -> Floats:
    """Differences of draws that are put together at random, so that a common stream of random numbers does no harm."""
    number = min(len(old), len(new))
    order = np.random.default_rng(_PAIRING).permutation(number)
    with np.errstate(invalid="ignore"):  # infinite minus infinite is undefined, and counted so
        return np.asarray(new[:number] - old[:number][order])


def _share_greater(old: Floats, new: Floats) -> float:
    """The share of all pairs of draws in which the new number is greater; half of those in which both are equal."""
    ours, theirs = np.sort(old[~np.isnan(old)]), new[~np.isnan(new)]
    below, up_to = np.searchsorted(ours, theirs, side="left"), np.searchsorted(ours, theirs, side="right")
    return float((below + up_to).mean() / (2 * len(ours)))


def _value(entry: Mapping[str, Any]) -> float | None:
    """The number of the first engine that has one."""
    found = (engine["value"]["value"] for engine in entry["engines"] if engine["value"] is not None)
    return next((float(number_from_json(value)) for value in found), None)
