"""ModelCertificate: whether a richer chain describes a corpus, in two scopes; numbers with their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from tracebridge.html_table import html_paragraph
from tracebridge.inference.certificate import CurveDeparture, ReferenceEffects, judged_by_resolution, p_text
from tracebridge.inference.certificate_document import read_certificate
from tracebridge.inference.expanded.scope import Scope
from tracebridge.inference.localisation import Departure, StateShare

KIND = "model-certificate"
SCHEMA_VERSION = 1

#: ``accept``, ``reject``, ``inconclusive`` as in the certificate of a first-order chain. ``refused``: this corpus, or
#: the test for this form, cannot give a verdict.
ScopeVerdict = Literal["accept", "reject", "inconclusive", "refused"]

#: Misfit up to this may be called adequate, whatever the p-value is. A proposal, for corpora so large that any chain is
#: rejected.
TOLERANCE = ReferenceEffects(gap=0.05, nats=0.01)

#: Corpora up to so many runs show large effects alone.
FEW_RUNS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatistic:
    """One statistic in one scope.

    Attributes:
        name: ``first passage``, ``previous state``, ``step time`` or ``dwell``.
        value: a gap of probabilities for ``first passage``, a standardised Pearson statistic over lumps for the others.
        p: bootstrap p-value of this statistic alone.
        z: value, standardised by its mean and deviation over the replicates.
        effect: ``gap``: the value itself; ``nats``: information per step that the chain misses,
            ``(G2 - its median over the replicates) / (2 n_events)``.
        unit: ``gap`` or ``nats``.
        noise: the 95 % quantile of the effect over the replicates: what corpora of the chain itself show by chance.
        resolution: the smallest effect that this corpus would show, in the joint test of the scope, with a probability
            of 0.8; None where the statistic cannot vary.
        n_events: steps that it rests on; runs with a known end for ``first passage``.
        lumps: cells of the table after rare ones are lumped; None for ``first passage``, as what follows.
        g2, freeman_tukey: of all cells. p_g2, p_freeman_tukey: their bootstrap p-values, which shrinkage of sparse rows
            makes too small; no part of the test.
    """

    name: str
    value: float
    p: float
    z: float
    effect: float
    unit: Literal["gap", "nats"]
    noise: float
    resolution: float | None
    n_events: int
    lumps: int | None = None
    g2: float | None = None
    p_g2: float | None = None
    freeman_tukey: float | None = None
    p_freeman_tukey: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTest:
    """The test of one scope.

    Attributes:
        p: joint p-value, of the largest standardised statistic. statistics: those of the scope.
        refusals: why there is no verdict, one sentence each; empty if there is one.
    """

    p: float
    statistics: tuple[ModelStatistic, ...]
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCertificate:
    """The audit of a form of chain on a corpus.

    The null hypothesis: runs are independent draws from one chain of this form, cut as the corpus was; with classes of
    tasks, runs of one task share the class. It is tested by
    parametric bootstrap: the corpus is drawn anew from the fitted chain, which is refitted to each replicate.

    ``timing`` is about when runs end and how; ``path`` about what follows what, and timing. See `required_scope` for
    the properties that each licenses.

    Attributes:
        form: its name; `parse_model` reads it. kappa: of the fit.
        n_states: states of the expanded chain, success and failure among them; None if they are too many to build it.
        n_parameters: free probabilities of successors that were seen; see `count_parameters`.
        n_transitions: of the part that the chain is fitted to.
        held_out: the chain was fitted to other runs than it was judged on.
        runs: by outcome, of the corpus that is judged. n_events: steps of which it was seen what followed.
        replicates, seed, level: of the bootstrap; what p is compared with.
        effects: what must be resolved for an acceptance.
        timing, path: the tests.
        curve: the largest gap. shares, departures: the states and cells of rejected tables that depart most;
            expectations are the chain's.
        notes: what the reader must know, one sentence each.
    """

    form: str
    kappa: float
    n_states: int | None
    n_parameters: int
    n_transitions: int
    held_out: bool
    runs: dict[str, int]
    n_events: int
    replicates: int
    seed: int
    level: float
    effects: ReferenceEffects
    timing: ScopeTest
    path: ScopeTest
    curve: CurveDeparture
    shares: tuple[StateShare, ...]
    departures: tuple[Departure, ...]
    notes: tuple[str, ...]

    def __getitem__(self, scope: Scope) -> ScopeTest:
        if scope not in _SCOPES:
            raise KeyError(scope)
        return self.timing if scope == "timing" else self.path

    def verdict(self, scope: Scope) -> ScopeVerdict:
        """Follows from the numbers."""
        return _judge(self, self[scope], scope)[0]

    def reasons(self, scope: Scope) -> tuple[str, ...]:
        """Why, one sentence each."""
        return _judge(self, self[scope], scope)[1]

    def adequate(self, scope: Scope) -> bool:
        """The misfit is within `TOLERANCE` in every statistic, and so is the noise. Weaker than a pass, and no verdict.

        A corpus whose noise is larger cannot say so.
        """
        return all(
            max(statistic.effect, statistic.noise) <= getattr(TOLERANCE, statistic.unit)
            for statistic in self[scope].statistics
        )

    @property
    def low_power(self) -> bool:
        """So few runs that a pass says little."""
        return sum(self.runs.values()) <= FEW_RUNS

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``model-certificate``."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "verdicts": {
                scope: {
                    "verdict": self.verdict(scope),
                    "reasons": list(self.reasons(scope)),
                    "adequate": self.adequate(scope),
                }
                for scope in _SCOPES
            },
            "low_power": self.low_power,
            **msgspec.json.decode(msgspec.json.encode(self)),
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> ModelCertificate:
        """Read `to_dict`'s document. Raises ModelError, naming the field, for anything else."""
        return read_certificate(cls, data, kind=KIND, version=SCHEMA_VERSION, path=path)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{scope} {self.verdict(scope)} (p = {self[scope].p:.3g})" for scope in _SCOPES)
        return f"<ModelCertificate of {self.form}: {verdicts}, {sum(self.runs.values())} runs>"

    def _repr_html_(self) -> str:
        reasons = [f"{scope}: {reason}" for scope in _SCOPES for reason in self.reasons(scope)]
        return html_paragraph(repr(self)[1:-1], reasons)


_SCOPES: tuple[Scope, Scope] = ("timing", "path")
_ABOUT = {"timing": "the times and kinds of end", "path": "the paths"}


def _judge(certificate: ModelCertificate, test: ScopeTest, scope: Scope) -> tuple[ScopeVerdict, tuple[str, ...]]:
    if test.refusals:
        return "refused", test.refusals
    chain, joint = f"a chain {certificate.form}", p_text(test.p, certificate.replicates)
    if test.p <= certificate.level:
        worst = [statistic.name for statistic in test.statistics if statistic.p <= certificate.level]
        named = f": {', '.join(worst)}" if worst else ""
        return "reject", (f"{_ABOUT[scope]} of the runs are not those of {chain} (p {joint}{named})",)
    return judged_by_resolution(chain, joint, test.statistics, certificate.effects)
