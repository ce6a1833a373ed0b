"""What the headline numbers would be if the runs that ended for some reason had been counted otherwise.

Whether a run that was cut failed, or was merely not seen to end, is a choice, made by the reader of its format, by a
user's rules or by the policy for censored runs. A run that did not succeed can be counted as a failure, as censored
(its transitions count, its end does not) or not at all; one that succeeded is no matter of choice. Here each choice is
made in turn for the runs of one reason, and for all censored runs at once, and the chain is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, get_args

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
from tracebridge.chain.fit import ChainFit, fit_counts
from tracebridge.checking.run import iter_check
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption
from tracebridge.errors import PropertyError, TracebridgeError
from tracebridge.inference.identification import NO_END_REASON, has_seen_an_end
from tracebridge.states.flow import RunFlow
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from tracebridge.pctl.ast import PropertyFile
    from tracebridge.traces.model import Trace

#: Reasons are told apart up to so many; the runs of later ones are counted together.
MAX_REASONS = 1_000

#: Choices are tried for so many reasons, those of the most runs.
TRIED_REASONS = 8

#: Properties are evaluated again on chains of up to so many states.
MAX_STATES = 300

#: Runs counted at a time.
_BATCH_RUNS = 1_000

TREATMENTS: tuple[CensoringPolicy, ...] = get_args(CensoringPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineNumbers:
    """The numbers of one fit.

    Attributes:
        pass_rate: successes among the runs that count as completed; None without any.
        reliability: R_inf. mean_time: MTTA in steps. values: of each property, its number or its truth; None where it
            has none; no values where the properties do not fit the chain. All are empty where there is no such chain,
            or no run that was seen to end, and ``missing`` says why.
    """

    pass_rate: Fraction | None
    reliability: float | None = None
    mean_time: float | None = None
    values: tuple[float | bool | None, ...] = ()
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingChoice:
    """One other choice.

    Attributes:
        reason: why the runs ended; empty if none was given, None for all censored runs, whatever their reason.
        failed, censored: how many of these runs count as which now.
        treatment: as what all of them count instead. numbers: what then follows.
    """

    reason: str | None
    failed: int
    censored: int
    treatment: CensoringPolicy
    numbers: HeadlineNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingChoices:
    """Every choice that was tried.

    Attributes:
        present: the numbers as the runs are counted now, of the first-order chain. choices: in the order of runs.
        notes: what was left out, one sentence each.
    """

    present: HeadlineNumbers
    choices: tuple[EndingChoice, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class UnsuccessfulRuns:
    """Counts the runs that did not succeed, apart by their reason, as they pass by on their way to something else.

    Attributes:
        fit: gives the map from steps to states.
        counts: by reason, those of failed and of censored runs; the reason is empty where none was given.
        n_pooled: runs of reasons beyond `MAX_REASONS`, which are counted under none.
    """

    fit: ChainFit
    counts: dict[str, TransitionCounts] = field(default_factory=dict)
    n_pooled: int = 0

    def passing(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """The traces, each of them counted; the counts are complete when all have passed."""
        self.counts, self.n_pooled = {}, 0
        source = iter(traces)
        while batch := list(islice(source, _BATCH_RUNS)):
            self._count([trace for trace in batch if trace.outcome is not Outcome.SUCCESS])
            yield from batch

    def _count(self, traces: list[Trace]) -> None:
        abstraction = self.fit.abstraction
        if abstraction is None or self.fit.weighted is not None:
            return
        by_reason: dict[str, list[Trace]] = {}
        for trace in traces:
            reason = trace.termination or ""
            if reason and reason not in self.counts and len({*self.counts, *by_reason}) >= MAX_REASONS:
                reason, self.n_pooled = "", self.n_pooled + 1
            by_reason.setdefault(reason, []).append(trace)
        for reason, runs in by_reason.items():
            found = TransitionCounts.from_features(abstraction.count_features(runs), abstraction)
            self.counts[reason] = self.counts[reason] + found if reason in self.counts else found


def ending_choices(fit: ChainFit, tally: UnsuccessfulRuns, file: PropertyFile) -> EndingChoices | None:
    """The numbers under each other choice for each reason, and under each other policy for all censored runs.

    Args:
        fit: of first order. tally: of its runs, all of which have passed. file: the properties, resolved; they are
            evaluated by the closed form, in doubles.

    Returns:
        None where there is nothing to choose: every run succeeded or failed for no stated reason; or where runs have
        weights, or the fit no map from steps to states.
    """
    groups = tally.counts
    if not any(_chosen(reason, counts) for reason, counts in groups.items()):
        return None
    notes = [] if not tally.n_pooled else [f"{tally.n_pooled} runs have rare reasons, which are counted as none"]
    ordered = sorted(groups, key=lambda reason: (-groups[reason].n_runs, reason))
    if left := ordered[TRIED_REASONS:]:
        runs = sum(groups[reason].n_runs for reason in left)
        notes.append(f"no other choice was tried for the {runs} runs that ended for {len(left)} rarer reasons")
    if fit.chain.n_states > MAX_STATES:
        file = replace(file, properties=())
        notes.append(f"properties are not evaluated again on a chain of more than {MAX_STATES} states")
    effective = {reason: _under(counts, fit.policy) for reason, counts in groups.items()}
    choices = []
    censored = sum(counts.censored.n_runs for counts in groups.values())
    of_one_reason = any(
        counts.censored.n_runs == censored == _chosen(reason, counts) for reason, counts in groups.items()
    )
    if censored and not of_one_reason:  # then its own rows say the same
        for policy in TREATMENTS:
            if policy != fit.policy:
                parts = [_under(counts, policy) for counts in groups.values()]
                numbers = _numbers(fit, parts, file)
                choices.append(
                    EndingChoice(reason=None, failed=0, censored=censored, treatment=policy, numbers=numbers)
                )
    for reason in ordered[:TRIED_REASONS]:
        counts = groups[reason]
        if not _chosen(reason, counts):
            continue
        others = [part for other, part in effective.items() if other != reason]
        for treatment in TREATMENTS:
            # a failure of which no reason is given was seen: there is nothing to choose
            treated = _treated(counts, treatment) if reason else _under(counts, treatment)
            if treated != effective[reason]:
                choices.append(
                    EndingChoice(
                        reason=reason,
                        failed=counts.failure.n_runs if reason else 0,
                        censored=counts.censored.n_runs,
                        treatment=treatment,
                        numbers=_numbers(fit, [*others, treated], file),
                    )
                )
    present = _numbers(fit, list(effective.values()), file)
    return EndingChoices(present=present, choices=tuple(choices), notes=tuple(notes))


def _chosen(reason: str, counts: TransitionCounts) -> int:
    """How many runs of a reason can be counted as something else; those that failed for none cannot."""
    return counts.censored.n_runs + (counts.failure.n_runs if reason else 0)


def _under(counts: TransitionCounts, policy: CensoringPolicy) -> TransitionCounts:
    """The counts in which the policy has been applied to the censored runs."""
    none = RunFlow.none(len(counts.states))
    if policy == "failure":
        return replace(counts, failure=counts.failure + counts.censored, censored=none)
    return replace(counts, censored=none) if policy == "drop" else counts


def _treated(counts: TransitionCounts, treatment: CensoringPolicy) -> TransitionCounts:
    """The counts of runs that did not succeed, all of which count as one thing."""
    none = RunFlow.none(len(counts.states))
    runs = counts.failure + counts.censored
    return replace(
        counts,
        failure=runs if treatment == "failure" else none,
        censored=runs if treatment == "censored" else none,
    )


def _numbers(fit: ChainFit, parts: Iterable[TransitionCounts], file: PropertyFile) -> HeadlineNumbers:
    """Of the fit to the successes and these runs, with the options of the fit; policies have been applied."""
    failure = censored = RunFlow.none(len(fit.counts.states))
    for part in parts:  # all over the states of the fit
        failure, censored = failure + part.failure, censored + part.censored
    counts = replace(fit.counts, failure=failure, censored=censored)
    rate = counts.pass_rate()
    try:
        fitted = fit_counts(
            counts,
            prior=fit.prior,
            support=fit.declared or fit.support,
            start=fit.start,
            profile=fit.profile,
            abstraction=fit.abstraction,
            vocabulary=fit.vocabulary,
        )
        if not has_seen_an_end(fitted):
            return HeadlineNumbers(pass_rate=rate, missing=NO_END_REASON)
        form = AbsorbingChain(chain=fitted.chain)
        numbers = HeadlineNumbers(
            pass_rate=rate,
            reliability=float(long_run_reliability(form)),
            mean_time=float(mean_time_to_absorption(form).overall),
        )
    except TracebridgeError as error:
        return HeadlineNumbers(pass_rate=rate, missing=str(error))
    if not file.properties:
        return numbers
    try:
        results = list(iter_check(fitted.chain, file, engines=["closed-form"]))
    except PropertyError:  # they are about what a richer chain remembers, or a state that is no more
        return numbers
    values = [each.truth if each.value is None else float(each.value.value) for each in results]
    return replace(numbers, values=tuple(values))
