"""What the numbers of an assessment rest on, with what tested it, and what they do not show.

Both follow from the results document and the chain alone, so that they can be derived again from an evidence file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit

#: What tests an assumption may find; ``untestable`` is one that no test of such data could contradict.
RESULTS = ("accept", "reject", "inconclusive", "untested", "untestable")

_FIRST_ORDER = (
    ("markov-order", "What happens next depends on the current state alone.", ("previous state", "dwell")),
    ("time-homogeneity", "It does so in the same way at every step.", ("step time",)),
    ("first-passage", "Runs end as early and as late as those of the chain.", ("first passage",)),
)
_MANY = 5


def assumptions_of(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The assumptions: ``id``, ``statement``, ``tested_by`` (None: nothing), ``result``, ``p`` and a ``reason``.

    Args:
        results: the document of `results_document`.
    """
    certificate: Mapping[str, Any] = results["certificate"]
    kind = certificate.get("kind")
    if kind == "certificate":
        found = [*_of_first_order(certificate), *_of_covariates(certificate)]
    elif kind == "model-certificate":
        found = [*_of_model(results, certificate)]
    else:
        missing = str(certificate["missing"])
        found = [_entry(name, text, None, "untested", None, missing) for name, text, _ in _FIRST_ORDER]
        found.append(_entry("run-homogeneity", _ALIKE, None, "untested", None, missing))
        found.append(_entry("task-independence", _INDEPENDENT, None, "untested", None, missing))
    nothing = "no test of such data could contradict it"
    return [
        *found,
        _entry("censoring", _CENSORING, None, "untestable", None, nothing),
        _entry("coverage", _COVERAGE, None, "untestable", None, nothing),
        _entry("outcomes", _OUTCOMES, None, "untestable", None, nothing),
    ]


_ALIKE = "Runs are alike, whatever task, trial or model they are of."
_INDEPENDENT = "Runs of the same task are as independent of each other as runs of different tasks."
_CENSORING = "Whether a run is censored does not depend on how it would have ended, given its states."
_COVERAGE = "These runs are a sample of the tasks, models, prompts and conditions that the claims are about."
_OUTCOMES = "The outcomes that the traces record are the true ones."


def _entry(
    name: str, statement: str, tested_by: str | None, result: str, p: float | None, reason: str | None
) -> dict[str, Any]:
    return {"id": name, "statement": statement, "tested_by": tested_by, "result": result, "p": p, "reason": reason}


def _of_first_order(certificate: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """By the statistics of the joint test: one that is small enough rejects only where the joint test does."""
    statistics = {each["name"]: each for each in certificate["statistics"]}
    level, effects = certificate["level"], certificate["effects"]
    for name, statement, tests in _FIRST_ORDER:
        found = [statistics[test] for test in tests if test in statistics]
        if not found:
            yield _entry(name, statement, None, "untested", None, "the certificate has no statistic of it")
            continue
        worst = min(found, key=lambda each: float(each["p"]))
        p = float(worst["p"])
        wide = [each["name"] for each in found if _is_unresolved(each, effects)]
        if certificate["p"] <= level and p <= level:
            result, reason = "reject", f"{worst['name']} departs by more than chance, and so does the joint test of all"
        elif wide:
            result, reason = "inconclusive", f"these runs are too few to show an effect that matters: {', '.join(wide)}"
        else:
            result, reason = "accept", "an effect that matters would have been seen"
        yield _entry(name, statement, "certificate: " + ", ".join(each["name"] for each in found), result, p, reason)


def _is_unresolved(statistic: Mapping[str, Any], effects: Mapping[str, Any]) -> bool:
    resolution = statistic["resolution"]
    return not isinstance(resolution, int | float) or resolution > effects[statistic["unit"]]


def _of_covariates(certificate: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """By permutation; the p-values are adjusted for there being several covariates."""
    level = certificate["level"]
    tested = [each for each in certificate["covariates"] if each["p_holm"] is not None]
    for name, statement, found in (
        ("run-homogeneity", _ALIKE, tested),
        ("task-independence", _INDEPENDENT, [each for each in tested if each["covariate"] == "task_id"]),
    ):
        if not found:
            what = "task" if name == "task-independence" else "covariate"
            yield _entry(name, statement, None, "untested", None, f"no {what} of which runs have several values")
            continue
        worst = min(found, key=lambda each: float(each["p_holm"]))
        p, names = float(worst["p_holm"]), ", ".join(each["covariate"] for each in found)
        if p <= level:
            result, reason = "reject", f"runs differ by {worst['covariate']}"
        else:
            result, reason = "inconclusive", "no difference was found; how large one could be missed is not known"
        yield _entry(name, statement, f"permutation of {names}", result, p, reason)


def _of_model(results: Mapping[str, Any], certificate: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """By scope; a ladder stands on its last tests."""
    for scope, what in (("timing", "When and how runs end"), ("path", "What happens next")):
        standing = results["standings"][scope]
        verdict = standing["verdict"]
        result = verdict if verdict in RESULTS else "untested"
        p = None if results["ladder"] is not None else float(certificate[scope]["p"])
        yield _entry(
            f"model-form-{scope}",
            f"{what} depends on what a state of {results['fit']['model']} holds, in the same way in every run.",
            f"certificate of {certificate['form']} for {scope}",
            result,
            p if result != "untested" else None,
            "; ".join(standing["reasons"]) or None,
        )
    given = "the certificate of such a chain takes it as given"
    yield _entry("run-homogeneity", _ALIKE, None, "untested", None, given)
    yield _entry("task-independence", _INDEPENDENT, None, "untested", None, given)


def limits_of(results: Mapping[str, Any], fit: ChainFit | ExpandedFit) -> list[dict[str, str]]:
    """What the numbers do not show: ``id`` and ``statement``.

    Args:
        results: the document of `results_document`. fit: what it is about.
    """
    return [{"id": name, "statement": statement} for name, statement in _limits(results, fit)]


def _limits(results: Mapping[str, Any], chain_fit: ChainFit | ExpandedFit) -> Iterator[tuple[str, str]]:
    corpus, fit = results["corpus"], results["fit"]
    models = [str(name) for name in corpus["models"]]
    named = f" ({_listed(models)})" if models else ""
    yield (
        "other-conditions",
        f"Nothing is said of other tasks, models{named}, prompts, tools or users than those of these runs.",
    )
    if (undated := corpus["n_runs"] - corpus["dates"]["n_runs"]) > 0:
        yield (
            "unknown-dates",
            (
                f"When {undated} of {counted(corpus['n_runs'], 'run')} began is not recorded: nobody can say how old "
                "these numbers are."
            ),
        )
    longest = corpus["length"]["max"]
    bounds = results["reliability_bounds"]
    horizon = f"No run was seen beyond step {longest}: what is said of later steps is the chain's extrapolation."
    if bounds is not None:
        horizon += (
            f" Some were still going then; the runs alone say only that R_inf is between {bounds['lower']:.4g} and "
            f"{bounds['upper']:.4g}."
        )
    yield "horizon", horizon
    base = chain_fit.base if isinstance(chain_fit, ExpandedFit) else chain_fit
    unseen, possible = _unseen(base)
    if unseen:
        yield (
            "unseen-transitions",
            (
                f"{unseen} of {possible} transitions between states were never seen: they have the "
                f"probability that the {fit['prior']} prior gives them."
            ),
        )
    if base.support != "full":
        yield (
            "excluded-transitions",
            (
                f"With {base.support} support, what was neither seen nor declared is impossible in the chain; in the "
                "agent it may not be."
            ),
        )
    rows = base.counts.under(base.policy)
    rare = [state for state, visits in zip(rows.states, rows.visits.tolist(), strict=True) if visits < _MANY]
    if rare:
        yield (
            "rare-states",
            (
                f"{counted(len(rare), 'state')} had fewer than {_MANY} steps in all runs: {_listed(rare)}. A state, "
                "tool or error that no run had is not in the chain at all."
            ),
        )
    else:
        yield "unseen-states", "A state, tool or error that no run had is not in the chain at all."
    if censored := corpus["outcomes"]["censored"]:
        yield (
            "censored-runs",
            (
                f"How {censored} of {counted(corpus['n_runs'], 'run')} would have ended was not seen; they are treated "
                f"as `{fit['censored']}`."
            ),
        )
    if corpus["n_skipped"]:
        yield "skipped-records", f"{counted(corpus['n_skipped'], 'bad record')} of the input had to be left out."
    yield from _limits_of_numbers(results)


def _limits_of_numbers(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    shown = {_name(each, i): each for i, each in enumerate(results["properties"], start=1)}
    if single := [name for name, each in shown.items() if each["agree"] is None]:
        yield "single-engine", f"Only one engine, or none, evaluated {_listed(single)}: nothing checks these numbers."
    if apart := [name for name, each in shown.items() if each["agree"] is False]:
        yield "engines-disagree", f"The engines disagree on {_listed(apart)}."
    if marked := [f"{name} ({', '.join(each['marks'])})" for name, each in shown.items() if each["marks"]]:
        yield "marked-numbers", f"No certificate accepts what these rest on: {_listed(marked)}."
    if bare := [name for name, each in shown.items() if (each["uncertainty"] or {}).get("draws", 0) == 0]:
        yield "no-posterior", f"What the size of the corpus leaves open is not known of {_listed(bare)}."
    yield (
        "intervals",
        (
            "Intervals are about sampling error alone, and hold as far as the assumptions do; several of them are each "
            "at their own level, not jointly."
        ),
    )


def _name(property_: Mapping[str, Any], position: int) -> str:
    name = property_["name"]
    return f"property {position}" if name is None else str(name)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MANY])
    return shown if len(names) <= _MANY else f"{shown} and {len(names) - _MANY} more"


def _unseen(base: ChainFit) -> tuple[int, int]:
    """How many transitions between states of steps are there on the prior alone, and how many there are in all."""
    rows = base.counts.under(base.policy)
    pairs = zip(*(part.tolist() for part in rows.counts.tocoo().coords), strict=True)
    names = [*rows.states, "success", "failure"]
    seen = {(names[i], names[j]) for i, j in pairs}
    m, states = len(base.alpha), base.chain.states
    coords = base.chain.transitions.tocoo().coords
    possible = [(i, j) for i, j in zip(*(part.tolist() for part in coords), strict=True) if i < m and j < m]
    return sum((states[i], states[j]) not in seen for i, j in possible), len(possible)
