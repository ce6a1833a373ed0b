"""The recorded options of a command beside what the chain and the results say that was done: they must be the same.

What nothing else in a document says cannot be found so: the names of files, columns and attributes, the time limit, the
number of resamples (but whether there were any), and whether bad records would have been skipped where none was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracebridge.chain.document import fraction_text
from tracebridge.chain.estimate import parse_fraction, parse_prior
from tracebridge.errors import UsageError
from tracebridge.inference.expanded.modelling import AUTO, NO_REPLICATES
from tracebridge.inference.run_evidence import STANDARD_COVARIATES
from tracebridge.states import DEFAULT_K_MAX, PAPER_K_MAX
from tracebridge.states.model_form import ModelForm, parse_model

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

#: Option, what it says, and what the rest of the document says.
Option = tuple[str, Any, Any]


def recorded_options(evidence: Evidence) -> Iterator[Option]:
    """Every option that the rest of the document says something of, in the words of the rest."""
    for name, recorded, done in (*_of_fit(evidence), *_of_states(evidence), *_of_model(evidence), *_of_runs(evidence)):
        yield f"command.options.{name}", recorded, done


def _of_fit(evidence: Evidence) -> Iterator[Option]:
    chain, options = _base(evidence), evidence.options
    yield "policy", options["policy"], chain.get("policy")
    yield "profile", options["profile"], chain.get("profile")
    yield "support", options["support"] or "full", chain.get("support")
    yield "prior", _prior(options["prior"], options["profile"]), chain.get("prior")
    yield "start", _start(options["start"]), chain.get("start", "observed")
    for name, document in (("weight", "weighted"), ("vocabulary", "vocabulary")):
        yield name, _given(options[name]), _given(chain.get(document))


def _of_states(evidence: Evidence) -> Iterator[Option]:
    abstraction, options = _base(evidence).get("abstraction"), evidence.options
    if not isinstance(abstraction, Mapping):
        return
    k_max = options["k_max"]
    default = PAPER_K_MAX if options["profile"] == "paper" else DEFAULT_K_MAX
    yield "k_max", default if k_max is None else k_max, abstraction.get("k_max")
    for name in ("min_count", "top"):
        yield name, options[name], abstraction.get(name)
    found = abstraction.get("classifier")
    classifier: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    states, texts = options["states"], options["text_features"]
    if not isinstance(states, Mapping):  # functions of Python's leave no map behind
        yield "states", _given(states), _given(classifier.get("kind") == "rules" or None)
    yield "text_features", _given(texts or None), _given(classifier.get("kind") == "text" or None)
    if isinstance(texts, Mapping) and classifier.get("kind") == "text":
        yield "text_features.weight", texts.get("weight"), classifier.get("weight")


def _of_model(evidence: Evidence) -> Iterator[Option]:
    results, model = evidence.results, evidence.options["model"]
    yield "model", model == AUTO, results["ladder"] is not None
    if model == AUTO:
        return
    try:
        recorded, done = parse_model(model), parse_model(results["fit"]["model"])
    except UsageError:
        yield "model", model, results["fit"]["model"]
        return
    if isinstance(recorded.clock, str) and done.has_clock:  # its bins were chosen from the runs
        done = replace(done, clock=recorded.clock)
    yield "model", str(recorded), str(done)
    yield "model", recorded != ModelForm(), "form" in evidence.document["chain"]


def _of_runs(evidence: Evidence) -> Iterator[Option]:
    results, options = evidence.results, evidence.options
    corpus, certificate = results["corpus"], results["certificate"]
    if not options["skip_bad"]:
        yield "skip_bad", False, bool(corpus["n_skipped"])
    for role in ("outcomes", "endings"):
        given = [each for each in evidence.document["inputs"] if each["role"] == role]
        yield role, _given(options[role] or None), _given(given or None)
    for each in evidence.document["inputs"]:
        if each["role"] == "states":  # earlier versions did not record it
            yield "states", options["states"], each["name"]
    if (trace_format := options["trace_format"]) is not None:
        formats = {each["format"] for each in corpus["files"]} - {"outcomes", "endings"}
        yield "trace_format", [trace_format], sorted(formats)
    if certificate.get("kind") == "certificate":
        tested = [each["covariate"] for each in certificate["covariates"]]
        yield "covariates", options["covariates"] or [each for each in tested if each in STANDARD_COVARIATES], tested
    if "missing" in certificate:
        yield "replicates", options["replicates"] == 0, certificate["missing"] == NO_REPLICATES


def _base(evidence: Evidence) -> Mapping[str, Any]:
    """The document of the first-order fit."""
    chain = evidence.document["chain"]
    base = chain.get("base", {}) if "form" in chain else chain
    return base if isinstance(base, Mapping) else {}


def _given(value: Any) -> str:
    return "none" if value is None else "given"


def _prior(option: str | float | None, profile: str | None) -> Any:
    """The prior that an option means, as the document of a fit writes it."""
    if profile is not None and option in (None, 1, "1", "1/1"):
        return "laplace"
    try:
        prior = "mass-one" if option is None else parse_prior(option)
    except UsageError:
        return option
    return fraction_text(prior) if isinstance(prior, Fraction) else prior


def _start(option: str | Mapping[str, Any]) -> Any:
    """The start that an option means, as the document of a fit writes it."""
    if isinstance(option, str):
        return option
    try:
        shares = {state: parse_fraction(share) for state, share in option.items()}
    except ValueError:
        return option
    return {state: fraction_text(share) for state, share in shares.items() if share}
