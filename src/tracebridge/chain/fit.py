"""Fit an absorbing chain to counts: exact rationals, with the prior, the support and the censoring policy said aloud.

A row with counts c over the allowed successors S has the posterior mean ``(c + alpha) / (sum c + alpha |S|)`` under a
symmetric Dirichlet prior with concentration alpha; alpha = 0 is maximum likelihood. With alpha = 0 and no censored run
the chain's probability of success is the pass rate and its mean time to absorption the mean length of a run, exactly
and for any corpus (flow balance), so neither is evidence for the chain; a test holds us to it. With weights the same
holds of the weighted means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.counts import CensoringPolicy, RowCounts, TransitionCounts
from tracebridge.chain.document import read_document, write_document
from tracebridge.chain.estimate import (
    PriorName,
    StartName,
    Support,
    estimate_rows,
    given_start,
    observed_start,
    parse_fraction,
    parse_prior,
    smoothed_start,
)
from tracebridge.chain.fit_document import fit_to_dict, read_fit_document
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.notes import abstraction_notes, no_exit_seen, option_notes, row_notes, run_notes
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.chain.support import DeclaredSupport, declared_rows, left_out_note
from tracebridge.chain.vocabulary import StateVocabulary
from tracebridge.chain.weights import WeightedCounts
from tracebridge.errors import (
    FitError,
    Location,
    ModelError,
    NothingToCheckError,
    Problem,
    TracebridgeError,
    UsageError,
)
from tracebridge.html_table import html_paragraph
from tracebridge.states.abstraction import Abstraction
from tracebridge.states.remarks import state_remarks

Profile = Literal["paper"]

#: What `fit_counts` takes for these options.
SupportChoice = Support | DeclaredSupport | Mapping[str, Collection[str]]
StartChoice = StartName | Mapping[str, Fraction | float | str]

_TAKEN = frozenset({"absorbed", "deadlock", "failure", "init", "stuck", "success"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainFit:
    """A fitted chain with everything that it follows from.

    Attributes:
        chain: states in alphabetical order, then ``success``, ``failure`` and, only if needed, ``stuck``.
        counts: the corpus.
        prior: ``mass-one``, ``jeffreys``, ``laplace``, ``none``, or the concentration that was given.
        alpha: the concentration of each transient state's row, in the order of the chain.
        support, policy, profile: the options; see `fit_counts`.
        abstraction: the map from steps to states, where the corpus came through one.
        notes: what a reader must know about this fit, one sentence each.
        declared: the graph behind support ``declared``.
        start: ``observed``, ``smoothed``, or the distribution that was given.
        weighted: the corpus with the weights of its runs, where they have some.
        vocabulary: the user's own propositions and rewards over the states, where there are some.
    """

    chain: MarkovChain
    counts: TransitionCounts
    prior: PriorName | Fraction
    alpha: tuple[Fraction, ...]
    support: Support
    policy: CensoringPolicy
    profile: Profile | None
    abstraction: Abstraction | None
    notes: tuple[str, ...]
    declared: DeclaredSupport | None = None
    start: StartName | Mapping[str, Fraction] = "observed"
    weighted: WeightedCounts | None = None
    vocabulary: StateVocabulary | None = None

    def row_counts(self) -> RowCounts:
        """The counts behind the rows of the chain's transient states, under the policy; with weights, in their unit."""
        rows = (self.weighted or self.counts).under(self.policy)
        rows = rows.restricted(rows.visits > 0)
        return rows if self.declared is None else rows.extended(self.chain.states[: len(self.alpha)])

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``chain-fit``."""
        return fit_to_dict(self)

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> ChainFit:
        """Read `to_dict`'s document; the chain is fitted again and must be the one that is written there.

        Raises:
            ModelError: naming the field.
        """
        fit = cls.refitted(data, path)
        written = fit.to_dict()
        for key in ("alpha", "chain"):  # the wording of notes may change from version to version
            if written[key] != data.get(key):
                raise ModelError(
                    Problem(
                        location=Location(path=path, field=key),
                        message="does not follow from the counts and options in the same document",
                        hint="fit the counts again",
                    )
                )
        return fit

    @classmethod
    def refitted(cls, data: Any, path: str | None = None) -> ChainFit:
        """The fit that follows from the counts and options in `to_dict`'s document, whatever chain is written there.

        Raises:
            ModelError: naming the field.
        """
        counts, options = read_fit_document(data, path)
        try:
            return fit_counts(counts, **options)
        except TracebridgeError as error:
            raise ModelError(str(error), location=Location(path=path)) from error

    def __repr__(self) -> str:
        return f"<ChainFit of {len(self.alpha)} states to {self.counts.n_runs} runs, prior {self.prior}>"

    def _repr_html_(self) -> str:
        runs = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.runs_by_outcome().items())
        head = f"{len(self.alpha)} states from runs: {runs}; prior {self.prior}, {self.support} support, {self.policy}"
        return html_paragraph(head, self.notes) + self.chain._repr_html_()


def fit_counts(
    counts: TransitionCounts | WeightedCounts,
    *,
    prior: PriorName | Fraction | float | None = None,
    support: SupportChoice | None = None,
    policy: CensoringPolicy = "censored",
    start: StartChoice = "observed",
    profile: Profile | None = None,
    abstraction: Abstraction | None = None,
    vocabulary: StateVocabulary | None = None,
) -> ChainFit:
    """Fit a chain to counts.

    Args:
        counts: the corpus, with weights of its runs or without.
        prior: the concentration alpha of each row, by name or as a number. ``mass-one`` (default) spreads a total of
            one over a row's allowed successors (Perks), ``jeffreys`` is 1/2, ``laplace`` 1, ``none`` 0.
        support: ``full`` (default): every state and both absorbers may follow; alpha is then 1/(m+2) for ``mass-one``.
            ``observed``: what was never seen to follow stays impossible, both absorbers excepted. A declared graph
            (`DeclaredSupport`, or a mapping of each state to its successors): what it has may follow, and both
            absorbers; the states that it adds to those that were visited are in the chain, on the prior alone.
        policy: what to make of censored runs; see `TransitionCounts.under`.
        start: ``observed`` (default): the distribution of first steps as observed; a run without a step starts in its
            absorber. ``smoothed``: its posterior mean under the same prior over all states. Or a distribution by the
            names of states, ``success`` and ``failure``, with exact sum 1: the runs that the chain is asked about.
        profile: ``paper`` is ``laplace`` on full support, as in the literature; it excludes other choices of these.
        abstraction: gives the chain its labels.
        vocabulary: gives it propositions and rewards of the user's own.

    The reward ``steps`` earns 1 in each transient state; with an abstraction, each proposition and each state earns its
    visits.

    Raises:
        UsageError: for an option that is none.
        NothingToCheckError: if the policy leaves no run with a known start.
        FitError: if the prior alone would decide how runs end, every state may follow every other and there are too
            many, runs leave the declared graph, or a word of the vocabulary means something else already.
    """
    chosen, allowed, declared = _options(prior, support, profile)
    weighted = counts if isinstance(counts, WeightedCounts) else None
    rows = counts.under(policy)
    counts = counts.counts if isinstance(counts, WeightedCounts) else counts
    _require_fitting_names([*counts.states, *(declared.successors if declared else ())], counts, abstraction)
    unseen = [name for name, visits in zip(rows.states, rows.visits.tolist(), strict=True) if not visits]
    rows = rows.restricted(rows.visits > 0)
    if not rows.starts.any():
        raise NothingToCheckError(_nothing(counts, policy, weighted))
    smoothed = chosen not in ("none", 0)
    successors = None
    if declared is not None:
        rows, successors = declared_rows(rows, declared, unseen_states=smoothed)
    m = len(rows.states)
    lost = no_exit_seen(rows)
    if smoothed and m and lost.all():
        raise FitError(
            Problem(
                location=Location(),
                message="no run with a step was seen to end: the prior alone would decide how runs end",
                hint="count censored runs as failures (--censored failure), or fit first-order without a prior "
                "(--prior none)",
            )
        )
    matrix, alpha, stuck = estimate_rows(rows, chosen, allowed, successors)
    states = (*rows.states, "success", "failure", *(["stuck"] if stuck.any() else []))
    labels, rewards = _labels_and_rewards(states, m, abstraction)
    if vocabulary is not None:
        _require_new_words(vocabulary, {*labels, *IMPLICIT_LABELS, *states}, rewards)
        labels |= vocabulary.labels_of(states)
        rewards |= vocabulary.rewards_of(states)
    if isinstance(start, str) and start not in get_args(StartName):
        raise UsageError(f"{start!r} is no start; there are {', '.join(get_args(StartName))}, or a distribution")
    asked = start if isinstance(start, str) else _parsed_start(start)
    if not isinstance(asked, str):
        initial = given_start(asked, states[: m + 2], len(states))
    elif asked == "smoothed":
        initial = smoothed_start(rows, len(states), chosen)
    else:
        initial = observed_start(rows, len(states))
    chain = MarkovChain(
        states=states,
        transitions=matrix,
        initial=initial,  # type: ignore[arg-type]
        labels=labels,
        rewards=rewards,
    )
    notes = run_notes(counts, rows, policy, [name for name in unseen if name not in rows.states])
    notes += option_notes(rows, allowed, asked, weighted, smoothed=smoothed)
    if declared is not None:
        notes += left_out_note(declared, rows.states)
    notes += row_notes(rows, chain, smoothed=smoothed, stuck=stuck, lost=lost)
    if abstraction is not None:
        notes += [*state_remarks(abstraction), *abstraction_notes(abstraction)]
    return ChainFit(
        chain=chain,
        counts=counts,
        prior=chosen,
        alpha=alpha,
        support=allowed,
        policy=policy,
        profile=profile,
        abstraction=abstraction,
        notes=tuple(notes),
        declared=declared,
        start=asked,
        weighted=weighted,
        vocabulary=vocabulary,
    )


def read_fit(path: str | Path) -> ChainFit:
    """Read a ``chain-fit`` document. Raises ModelError, with place and field."""
    return ChainFit.from_dict(read_document(path), str(path))


def write_fit(path: str | Path, fit: ChainFit) -> None:
    """Write the fit as a ``chain-fit`` document."""
    write_document(path, fit.to_dict())


# ---------------------------------------------------------------- options


def _require_fitting_names(names: Iterable[str], counts: TransitionCounts, abstraction: Abstraction | None) -> None:
    for name in names:
        if name in _TAKEN:
            raise FitError(f"a state cannot be called {name!r}: the word means something else in a chain")
    if abstraction is not None and (strange := set(counts.states) - set(abstraction.space.names)):
        raise FitError(f"the abstraction has no state {min(strange)!r}: it belongs to other counts")


def _options(
    prior: PriorName | Fraction | float | None, support: SupportChoice | None, profile: Profile | None
) -> tuple[PriorName | Fraction, Support, DeclaredSupport | None]:
    chosen = "mass-one" if prior is None else parse_prior(prior)
    declared = None
    if isinstance(support, DeclaredSupport):
        declared, support = support, "declared"
    elif isinstance(support, Mapping):
        declared, support = DeclaredSupport(successors=support), "declared"
    elif support is not None and support not in get_args(Support):
        raise UsageError(f"{support!r} is no support; there are {', '.join(get_args(Support))}")
    elif support == "declared":
        raise UsageError("support 'declared' needs a graph: a DeclaredSupport, or each state's successors by its name")
    if profile is None:
        return chosen, support or "full", declared
    if profile not in get_args(Profile):
        raise UsageError(f"{profile!r} is no profile; there is {', '.join(get_args(Profile))}")
    if (prior is not None and chosen not in ("laplace", 1)) or support not in (None, "full"):
        raise UsageError(f"profile {profile!r} means prior 'laplace' on full support; leave these options out")
    return "laplace", "full", None


def _parsed_start(start: Mapping[str, Fraction | float | str]) -> dict[str, Fraction]:
    try:
        shares = {state: parse_fraction(share) for state, share in sorted(start.items())}
    except ValueError as error:
        raise UsageError(f"start: {error}") from None
    if sum(shares.values()) != 1:
        raise UsageError(f"the start sums to {sum(shares.values())}, not 1; give fractions such as '1/3' where needed")
    return {state: share for state, share in shares.items() if share}


def _nothing(counts: TransitionCounts, policy: CensoringPolicy, weighted: WeightedCounts | None) -> str:
    if not counts.n_runs:
        return "there is no run to fit a chain to"
    if weighted is not None and counts.under(policy).starts.any():
        return "no run that counts has a weight above zero"
    if policy == "drop":
        return f"all {counts.n_runs} runs are censored and the policy leaves them out"
    return f"all {counts.n_runs} runs were censored before their first step"


def _require_new_words(vocabulary: StateVocabulary, labels: Collection[str], rewards: Collection[str]) -> None:
    taken = [f"the proposition {word!r}" for word in vocabulary.labels if word in labels]
    taken += [f"the reward {word!r}" for word in vocabulary.rewards if word in rewards]
    if taken:
        raise FitError(f"a word of the vocabulary means something else in this chain: {', '.join(taken)}")


def _labels_and_rewards(
    states: Sequence[str], m: int, abstraction: Abstraction | None
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, RewardStructure]]:
    position = {name: i for i, name in enumerate(states)}

    def mask(held: Iterable[str]) -> NDArray[np.bool_]:
        result = np.zeros(len(states), dtype=np.bool_)
        result[[position[name] for name in held if name in position]] = True
        return result

    labels = {"success": mask(["success"]), "failure": mask(["failure"]), "absorbed": mask(states[m:])}
    rewards = {"steps": RewardStructure(state=mask(states[:m]).astype(np.float64))}
    if "stuck" in position:
        labels["stuck"] = mask(["stuck"])
    if abstraction is not None:
        words = {word: mask(held) for word, held in abstraction.space.labels.items()}
        labels |= words
        visited = words | {name: mask([name]) for name in states[:m]}
        for name in sorted(visited):
            if visited[name].any():
                rewards[name] = RewardStructure(state=visited[name].astype(np.float64))
    return labels, rewards
