"""Traces that a verb reads more than once, and chains fitted to them over states that are already there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from tracebridge.cli.console import say
from tracebridge.cli.options import reading_options
from tracebridge.errors import ModelError
from tracebridge.traces import Outcome, is_read_once, open_traces
from tracebridge.traces.problems import ProblemLog, counted

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.traces import Trace


class Corpus:
    """The traces of some paths; every iteration reads them again, so that they need not be in memory.

    Standard input and pipes can be read once only: their traces are kept.
    """

    def __init__(self, paths: Sequence[str], options: Mapping[str, Any]) -> None:
        """Of the paths that the user gave, with the options of `reading`."""
        self.name = ", ".join(paths)
        self._stream = open_traces(
            list(paths),
            format=options["trace_format"],
            skip_bad=options["skip_bad"],
            **reading_options(options),
        )
        self._is_kept = any(map(is_read_once, paths))
        self._kept: tuple[Trace, ...] | None = None

    def __iter__(self) -> Iterator[Trace]:
        if self._is_kept and self._kept is None:
            self._kept = tuple(self._stream)
        return iter(self._stream if self._kept is None else self._kept)

    @property
    def log(self) -> ProblemLog:
        """What is wrong with the traces; after the first iteration."""
        return self._stream.log

    def document(self) -> dict[str, Any]:
        """What was read, as JSON values; after the first iteration."""
        return {
            "files": [file.to_dict() for file in self._stream.files],
            "n_skipped": self._stream.log.n_skipped,
            "problems": [str(problem) for problem in self._stream.log.listing()],
            "notes": [str(note) for note in self._stream.log.notes],
            "endings": self._stream.endings.to_dict(),
        }

    def say_remarks(self, notes: Iterable[str] = ()) -> None:
        """Tell what was skipped, what the reader of the files noted, and more notes; after the first iteration."""
        log = self.log
        say_reading(log.listing(), log.n_skipped, [*log.notes, *notes])


class RunCorpus(Corpus):
    """The traces of some paths without what their steps say, read at once and by as many as the user wants.

    That is enough wherever states come from rule-based features.
    """

    def __init__(self, paths: Sequence[str], options: Mapping[str, Any], places: Mapping[str, Any]) -> None:
        """Of the paths that the user gave, with the options of `reading`; ``places`` are those of `sharded`."""
        from tracebridge.sharding import ShardOptions, read_shards

        self.name = ", ".join(paths)
        asked = ShardOptions.of(format=options["trace_format"], runs=True, **reading_options(options))
        self._shards = read_shards(paths, asked, **places)
        self._shards.require_usable(skip_bad=options["skip_bad"])

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._shards.runs or ())

    @property
    def log(self) -> ProblemLog:
        """What is wrong with the traces."""
        return self._shards.log

    def document(self) -> dict[str, Any]:
        """What was read, as JSON values."""
        return self._shards.document()


def say_reading(problems: Iterable[object], n_skipped: int, notes: Iterable[object]) -> None:
    """Tell on standard error what was skipped of files, how much in all, and what there is to know."""
    for problem in problems:
        say(f"skipped: {problem}")
    if n_skipped:
        say(f"skipped in all: {counted(n_skipped, 'record')}")
    for note in notes:
        say(f"note: {note}")


def read_richer(path: str) -> ExpandedFit | None:
    """The chain in a chain.json if its states remember more than their category, else None."""
    from tracebridge.checking.models import is_model, read_model

    return read_model(path).expanded if is_model(path) else None


def read_abstraction_of(path: str, richer: ExpandedFit | None = None) -> ChainFit:
    """The fit in a chain.json, which says what state a step belongs to; of a ``richer`` chain there the one behind it.

    Raises:
        ModelError: for a file that cannot be read, is no fit, or was not fitted to traces.
    """
    from tracebridge.chain import read_fit
    from tracebridge.errors import Location

    fit = read_fit(path) if richer is None else richer.base
    if fit.abstraction is None:
        message = "this chain was fitted to counts: it does not know which state a step belongs to"
        raise ModelError(message, location=Location(path=path))
    return fit


def fit_over_states_of(template: ChainFit, traces: Iterable[Trace], **options: Any) -> ChainFit:
    """Fit a chain to traces over the states of another fit, with its options unless others are given.

    Raises:
        FitError: for a step that belongs to none of these states.
    """
    from tracebridge.chain import TransitionCounts, fit_counts

    if template.abstraction is None:
        raise ModelError("a chain that was fitted to counts does not know which state a step belongs to")
    counts = TransitionCounts.from_features(template.abstraction.count_features(traces), template.abstraction)
    same = {
        "prior": template.prior,
        "support": template.declared or template.support,
        "policy": template.policy,
        "start": template.start,
        "profile": template.profile,
        "abstraction": template.abstraction,
        "vocabulary": template.vocabulary,
    }
    return fit_counts(counts, **{**same, **options})


def ended_under(traces: Iterable[Trace], policy: str) -> Iterator[Trace]:
    """The traces with the outcomes that a policy for censored runs gives them; ``drop`` leaves such runs out."""
    for trace in traces:
        if trace.outcome is not Outcome.CENSORED or policy == "censored":
            yield trace
        elif policy == "failure":
            yield structs.replace(trace, outcome=Outcome.FAILURE)


def judged_at(traces: Iterable[Trace], d: int | None) -> Iterator[Trace]:
    """The traces with the outcome that each has within d steps; without a limit for None.

    A run of L steps ends with its L-th. A longer one than d did not succeed in time, whatever became of it, and a
    censored one of d steps or more neither: had its last step ended it, that would have been seen.
    """
    for trace in traces:
        steps = len(trace.steps)
        late = d is not None and (steps >= d if trace.outcome is Outcome.CENSORED else steps > d)
        yield structs.replace(trace, outcome=Outcome.FAILURE) if late else trace
