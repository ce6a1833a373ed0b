"""The JSON document ``chain-fit``: a fit with everything that it follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
from tracebridge.chain.document import chain_to_dict, checked_document, fraction_text
from tracebridge.chain.estimate import StartName, Support, parse_prior
from tracebridge.chain.support import DeclaredSupport
from tracebridge.chain.vocabulary import StateVocabulary
from tracebridge.chain.weights import WeightedCounts
from tracebridge.errors import Location, ModelError
from tracebridge.states.abstraction import Abstraction

if TYPE_CHECKING:
    from fractions import Fraction

    from tracebridge.chain.fit import ChainFit

KIND = "chain-fit"

#: Version 2 added ``declared``, ``start``, ``weighted`` and ``vocabulary``. A fit with none is written as version 1.
SCHEMA_VERSION = 2


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    prior: str
    support: Support
    policy: CensoringPolicy
    profile: Literal["paper"] | None
    alpha: dict[str, str]
    notes: list[str]
    chain: dict[str, Any]
    counts: dict[str, Any]
    abstraction: dict[str, Any] | None
    declared: dict[str, Any] | None = None
    start: StartName | dict[str, str] = "observed"
    weighted: dict[str, Any] | None = None
    vocabulary: dict[str, Any] | None = None


def fit_to_dict(fit: ChainFit) -> dict[str, Any]:
    """The document of a fit."""
    transient = fit.chain.states[: len(fit.alpha)]
    added: dict[str, Any] = {}
    if fit.declared is not None:
        added["declared"] = fit.declared.to_dict()
    if not isinstance(fit.start, str):
        added["start"] = {state: fraction_text(share) for state, share in fit.start.items()}
    elif fit.start != "observed":
        added["start"] = fit.start
    if fit.weighted is not None:
        added["weighted"] = fit.weighted.to_dict()
    if fit.vocabulary is not None:
        added["vocabulary"] = fit.vocabulary.to_dict()
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION if added else 1,
        "prior": fit.prior if isinstance(fit.prior, str) else fraction_text(fit.prior),
        "support": fit.support,
        "policy": fit.policy,
        "profile": fit.profile,
        "alpha": {state: fraction_text(alpha) for state, alpha in zip(transient, fit.alpha, strict=True)},
        "notes": list(fit.notes),
        "chain": chain_to_dict(fit.chain),
        "counts": fit.counts.to_dict(),
        "abstraction": None if fit.abstraction is None else fit.abstraction.to_dict(),
        **added,
    }


def read_fit_document(data: Any, path: str | None) -> tuple[TransitionCounts | WeightedCounts, dict[str, Any]]:
    """The counts of a document and the options of `fit_counts` that its chain follows from with them.

    Raises:
        ModelError: naming the field.
    """
    document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, oldest=1, path=path)
    counts = TransitionCounts.from_dict(document.counts, path)
    weighted = None if document.weighted is None else WeightedCounts.from_dict(document.weighted, counts, path)
    declared = None if document.declared is None else DeclaredSupport.from_dict(document.declared, path)
    if (declared is None) == (document.support == "declared"):
        place = Location(path=path, field="declared")
        raise ModelError("a graph belongs to support 'declared', and to no other", location=place)
    return weighted or counts, {
        "prior": _prior(document.prior, path),
        "support": declared or document.support,
        "start": document.start,
        "policy": document.policy,
        "profile": document.profile,
        "abstraction": None if document.abstraction is None else Abstraction.from_dict(document.abstraction, path),
        "vocabulary": None if document.vocabulary is None else StateVocabulary.from_dict(document.vocabulary, path),
    }


def _prior(text: str, path: str | None) -> str | Fraction:
    try:
        return parse_prior(text)
    except ValueError as error:
        raise ModelError(str(error), location=Location(path=path)) from error
