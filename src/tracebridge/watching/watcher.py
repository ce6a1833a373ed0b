"""A stream of runs under watch: its chain, its verdicts, its certificate, and whether it drifts from a baseline."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.agreement import worst_exit_code
from tracebridge.chain.document import checked_document, read_document, write_document
from tracebridge.chain.fit import read_fit
from tracebridge.errors import (
    FitError,
    InputError,
    Location,
    ModelError,
    NothingToCheckError,
    Problem,
    PropertyError,
    TraceError,
    UsageError,
)
from tracebridge.inference import certify
from tracebridge.inference.counting import path_counts
from tracebridge.inference.judgement import judge
from tracebridge.inference.online.drift import DriftMonitor
from tracebridge.inference.run_evidence import STANDARD_COVARIATES, varying_covariates
from tracebridge.pctl import read_properties, resolve_constants
from tracebridge.pipeline import propositions_of
from tracebridge.traces.model import Trace
from tracebridge.traces.problems import counted
from tracebridge.watching.counted_ids import CountedIds
from tracebridge.watching.events import (
    Event,
    certificate_event,
    drift_event,
    file_event,
    repeated_event,
    unseen_event,
    verdict_event,
)
from tracebridge.watching.followed_files import FollowedFiles
from tracebridge.watching.live_counts import LiveCounts
from tracebridge.watching.options import WatchOptions
from tracebridge.watching.recent_runs import RecentRuns

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.inference.certificate import Certificate
    from tracebridge.pctl.ast import PropertyFile

KIND = "tracebridge-watch"
SCHEMA_VERSION = 2


class Watcher:
    """Follows the files of a stream.

    Args:
        streams: files, folders and patterns. properties: a property file, None for none.
        baseline: the chain.json that runs are compared with, None for none. options: see `WatchOptions`.
        reading: see `FollowedFiles`.

    Attributes:
        live: the counts. drift: the drift monitor, None without a baseline. verdicts: of each property, the latest.
        agreements: of each property, the latest. certificate: the latest, or why there is none.

    Raises:
        UsageError, TraceError, PropertyError, ModelError: as reading these does.
    """

    def __init__(
        self,
        streams: Sequence[str | Path],
        properties: str | Path | None = None,
        *,
        baseline: str | Path | None = None,
        options: WatchOptions | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = options or WatchOptions()
        self.files = FollowedFiles(streams, reading or {})
        self._properties: PropertyFile | None = None
        if properties is not None:
            # all constants are needed now, not when the first chain is there
            file = read_properties(properties)
            self._properties = resolve_constants(file, self.options.constants)
        fit, self._baseline_hash = None, None
        if baseline is not None:
            fit = read_fit(baseline)
            self._baseline_hash = hashlib.sha256(Path(baseline).read_bytes()).hexdigest()
        self.live = LiveCounts(
            fit,
            half_life=self.options.forget,
            propositions=() if self._properties is None else propositions_of(self._properties),
            options=self.options.fit,
        )
        self.drift: DriftMonitor | None = None
        if fit is not None:
            self.drift = DriftMonitor(
                fit,
                alpha=self.options.alpha,
                run_length=self.options.run_length,
                half_life=self.options.half_life,
            )
        self.agreements: list[Agreement] = []
        self.verdicts: dict[str, str] = {}
        self.certificate: Certificate | str = "not yet certified"
        self.n_problems = self.n_alarms = self._alarms_before = 0
        self.effective_runs: float | None = None
        self._verdict_of_certificate: str | None = None
        self._no_chain: str | None = None
        self._misfit = False  # whether the properties do not fit the latest chain
        window = self.options.window if self.options.certify_every else 0
        self._window = RecentRuns(window, keep_texts=self.live.reads_texts)
        self._fitted_at = self._certified_at = 0
        self._window_at: int | None = None
        self._ids = CountedIds()

    # ------------------------------------------------------------ looking

    @property
    def runs(self) -> int:
        """How many runs were counted."""
        return self.live.runs

    @property
    def window(self) -> list[Trace]:
        """The last runs, which the certificate is about, the oldest first; without texts where they do not matter."""
        return self._window.all()

    def look(self, *, last: bool = False, progress: Callable[[str], None] = lambda message: None) -> Iterator[Event]:
        """Read what came and tell what changed.

        Args:
            last: nobody will look again; see `FollowedFiles.look`. The chain is then fitted to the last run, and
                certified if a certificate was asked for.
            progress: told what is being done.
        """
        batch: list[Trace] = []
        repeated: list[str] = []
        for found in self.files.look(last=last):
            if isinstance(found, Trace):
                if not self._ids.claim(found.trace_id):
                    repeated.append(found.source or found.trace_id)
                    continue
                batch.append(found)
                if self.runs + len(batch) - self._fitted_at >= self._pause:
                    yield from self._count(batch)
                    batch = []
                    progress(f"{counted(self.runs, 'run')}: checking")
                    yield from self._judge(last=False)
            elif isinstance(found, Problem):
                self.n_problems += 1
                yield Event(kind="problem", run=self.runs + len(batch), text=str(found))
            else:
                yield file_event(found, self.runs + len(batch))
        yield from self._count(batch)
        if repeated:
            self.n_problems += len(repeated)
            yield repeated_event(repeated, self.runs)
        if last and (self._fitted_at < self.runs or (self._properties is not None and not self.agreements)):
            progress(f"{counted(self.runs, 'run')}: checking")
            yield from self._judge(last=True)
        elif last and self.options.certify_every and self._window and self._certified_at < self.runs:
            yield from self._certify()

    @property
    def _pause(self) -> int:
        """Runs between two fits; as nothing is forgotten, at least one in a hundred of those that there were."""
        every = self.options.every
        return every if self.options.forget is not None else max(every, self._fitted_at // 100)

    def _count(self, batch: list[Trace]) -> Iterator[Event]:
        """Count runs; where some cannot be, find out which."""
        if not batch:
            return
        try:
            new = self.live.add(batch)
        except (FitError, TraceError) as error:
            if len(batch) == 1:
                self.n_problems += 1
                place = batch[0].source or batch[0].trace_id
                yield Event(kind="problem", run=self.runs, text=f"{place}: the run is not counted: {error}")
                return
            for trace in batch:
                yield from self._count([trace])
            return
        self._window.add(batch)
        for vector in new:
            self.n_alarms += 1
            yield unseen_event(vector, self.runs)
        if self.drift is not None:
            for path, outcome in self.live.states_of(batch):
                reading = self.drift.add(path, outcome)
                # while runs stay different the window alarms again and again: that is told once in a half-life
                again = self._window_at is not None and reading.runs - self._window_at <= self.options.half_life
                if reading.window:
                    self._window_at = reading.runs
                if reading.newly or (reading.window and not again):
                    self.n_alarms += 1
                    yield drift_event(self.drift, reading)

    # ------------------------------------------------------------ judging

    def _judge(self, *, last: bool) -> Iterator[Event]:
        self._fitted_at = self.runs
        try:
            fit = self.live.fit()
        except (FitError, NothingToCheckError) as error:
            if str(error) != self._no_chain:
                yield Event(kind="chain", run=self.runs, text=f"no chain can be fitted: {error}")
            self._no_chain = str(error)
            return
        self.effective_runs = float(fit.weighted.effective_runs if fit.weighted else fit.counts.n_runs)
        if self._properties is not None and self._properties.properties:
            options = self.options
            try:
                self.agreements = judge(
                    fit, self._properties, engines=options.engines, draws=options.draws, seed=options.seed
                )
                self._no_chain, self._misfit = None, False
            except PropertyError as error:  # such as a label that no run has had yet
                if str(error) != self._no_chain:
                    text = f"the properties do not fit the chain so far: {error}"
                    yield Event(kind="chain", run=self.runs, text=text)
                self._no_chain, self._misfit, self.agreements = str(error), True, []
            for agreement in self.agreements:
                name = agreement.property.name or agreement.property.text
                verdict = "answered" if agreement.verdict is None else str(agreement.verdict)
                before = self.verdicts.get(name)
                if verdict != before and not (before is None and verdict == "answered"):
                    yield verdict_event(self.runs, before, verdict, agreement, self.effective_runs)
                self.verdicts[name] = verdict
        every = self.options.certify_every
        if every and self._window and (last or self.runs - self._certified_at >= every):
            yield from self._certify()

    def _certify(self) -> Iterator[Event]:
        """Whether the last runs are those of a first-order chain."""
        self._certified_at = self.runs
        runs = self._window.all()
        try:
            fit = self.live.fit(traces=runs)
            counts = path_counts(fit, runs, covariates=STANDARD_COVARIATES)
            self.certificate = certify(
                fit,
                counts,
                covariates=varying_covariates(counts),
                seed=self.options.seed,
            )
            verdict, reasons = str(self.certificate.verdict), self.certificate.reasons
        except (NothingToCheckError, FitError) as error:
            self.certificate = str(error)
            verdict, reasons = "none", (str(error),)
        if verdict != self._verdict_of_certificate:
            yield certificate_event(self.runs, len(runs), self._verdict_of_certificate, verdict, reasons)
        self._verdict_of_certificate = verdict

    # ------------------------------------------------------------ status and documents

    @property
    def exit_code(self) -> int:
        """The worst of the latest verdicts; 3 for properties that do not fit the chain, 1 for an alarm since the start,
        4 for a rejected chain, 5 without a run.
        """
        codes = [agreement.exit_code for agreement in self.agreements]
        told = {
            3: self._misfit,
            1: self.n_alarms > self._alarms_before,
            4: self._verdict_of_certificate == "reject",
            5: not self.runs,
        }
        return worst_exit_code([*codes, *(code for code, holds in told.items() if holds)])

    def status(self) -> dict[str, Any]:
        """The stream as it is, as JSON values."""
        drift = self.drift
        return {
            "runs": self.runs,
            "effective_runs": self.effective_runs,
            "verdicts": dict(self.verdicts),
            "certificate": self._verdict_of_certificate,
            "drift": None
            if drift is None
            else {"largest_log_e": drift.largest, "alarmed_at": drift.alarmed_at, "windows": drift.windows},
            "unseen": [str(vector) for vector in self.live.unseen],
            "alarms": self.n_alarms,
            "problems": self.n_problems,
        }

    def save(self, path: str | Path) -> None:
        """Write what it takes to go on later; the file appears whole or not at all.

        Raises:
            InputError: the place cannot be written to.
        """
        write_document(
            path,
            {
                "kind": KIND,
                "schema_version": SCHEMA_VERSION,
                "baseline": self._baseline_hash,
                "files": self.files.to_dict(),
                "live": self.live.to_dict(),
                "ids": self._ids.to_text(),
                "window": self._window.to_text(),
                "drift": None if self.drift is None else self.drift.to_dict(),
                "verdicts": self.verdicts,
                "certificate": self._verdict_of_certificate,
                "fitted_at": self._fitted_at,
                "certified_at": self._certified_at,
                "window_at": self._window_at,
                "alarms": self.n_alarms,
                "problems": self.n_problems,
            },
        )

    def resume(self, path: str | Path) -> None:
        """Go on from what `save` wrote.

        Raises:
            ModelError, UsageError: it is no such file, or of another baseline or other options.
        """
        found = checked_document(read_document(path), _Document, kind=KIND, version=SCHEMA_VERSION, path=str(path))
        place = Location(path=str(path))
        if found.baseline != self._baseline_hash:
            raise ModelError(
                "it was saved with another baseline, or none; start a state file of its own", location=place
            )
        try:
            self.live.restore(found.live)
            self.files.restore(found.files)
            self._ids.restore(found.ids)
            self._window.restore(found.window)
            if self.drift is not None:
                self.drift.restore(found.drift)
        except (InputError, UsageError, ValueError) as error:
            raise ModelError(str(error), location=place) from error
        self.verdicts, self._verdict_of_certificate = found.verdicts, found.certificate
        self._fitted_at, self._certified_at = found.fitted_at, found.certified_at
        self._window_at = found.window_at
        self.n_alarms, self.n_problems = found.alarms, found.problems
        self._alarms_before = found.alarms


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    baseline: str | None
    files: list[Any]
    live: dict[str, Any]
    ids: str
    window: str
    drift: dict[str, Any] | None
    verdicts: dict[str, str]
    certificate: str | None
    fitted_at: int
    certified_at: int
    window_at: int | None
    alarms: int
    problems: int
