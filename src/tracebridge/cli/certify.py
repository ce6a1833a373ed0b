"""``tracebridge certify``: whether a first-order chain describes the traces, and where it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, write
from tracebridge.cli.corpus import Corpus, RunCorpus, fit_over_states_of, read_abstraction_of, read_richer
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, fit_options, fitting, given_fit_options, reading
from tracebridge.cli.shards import sharded, sharding
from tracebridge.cli.values import parse_pairs
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.inference import Certificate, ReferenceEffects
    from tracebridge.traces import Trace

_EXIT_CODES = {"accept": 0, "reject": 1, "inconclusive": 4}
_COVARIATES = {"task": "task_id"}
_SHOWN_ATTRIBUTES = 20

_NEXT = {
    "reject": "make states that tell apart what is named above, or fit a chain for each value of a covariate by which "
    "runs differ. Until then rest nothing on R(d), path properties or whatif of this chain.",
    "inconclusive": "certify more runs, or say with --detect that only larger departures matter.",
}

_OWN_OPTIONS = "--chain brings its own fitting options: leave out {}"


@click.command(
    cls=Verb,
    epilog="\b\nExample: does one chain describe these runs, whatever their task and site?\n"
    "  tracebridge certify runs.jsonl --covariate task --covariate site",
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@click.option(
    "--chain",
    "chain",
    metavar="FILE",
    type=PATH,
    help="Take the states, the model and the fitting options of this chain.json instead of fitting anew.",
)
@click.option(
    "--model",
    "model",
    default="first-order",
    show_default=True,
    metavar="NAME",
    help="Certify a chain whose states remember more, in two scopes: when and how runs end, and their paths. "
    "fit --help lists the names.",
)
@click.option(
    "--covariate",
    "covariates",
    multiple=True,
    metavar="task|trial|model|ATTRIBUTE",
    help="Test whether runs differ by their task, trial, model or this attribute; may be given more than once. "
    "[default: task, trial and model, as far as runs differ by them]",
)
@click.option(
    "--held-out",
    is_flag=True,
    help="Fit the chain to one half of the tasks and judge it on the other; the halves depend on --seed.",
)
@click.option(
    "--replicates",
    type=click.IntRange(19, 1_000_000),
    default=199,
    show_default=True,
    help="Corpora drawn from the chain; no p-value is below 1/(1 + this).",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    help="Reject where p is at most this.",
)
@click.option(
    "--detect",
    "effects",
    multiple=True,
    metavar="gap=0.1,nats=0.05",
    help="What must be detectable before a chain is accepted: a gap between the true and the chain's probability of "
    "having ended by some step, and information about the next step, in nats a step. [default: gap=0.1,nats=0.05]",
)
@reading
@sharding
@fitting
@common
def certify(
    paths: tuple[str, ...],
    chain: str | None,
    model: str,
    covariates: tuple[str, ...],
    held_out: bool,
    replicates: int,
    level: float,
    effects: tuple[str, ...],
    as_json: bool,
    seed: int,
    **options: Any,
) -> int:
    """Test whether TRACES are runs of a first-order chain with fixed probabilities; say where they are not.

    The runs are drawn anew from the chain many times, the chain refitted each time, and it is seen whether the real
    runs stand out: by when they end, by the state before the last one, by the step number or by the time spent in a
    state. Exit code 0: accepted. 1: rejected. 4: inconclusive, for a departure could have been missed.

    With --chain FILE the states are those of that fit. If the traces are those that it was fitted to, the certificate
    is about that very chain, else about one with these states that is fitted to the traces.
    """
    from tracebridge.cli.certify_model import certify_model
    from tracebridge.inference import certify as judge
    from tracebridge.inference.expanded.modelling import is_first_order

    if chain is not None and not is_first_order(model):
        raise UsageError("--chain says which model it is: leave --model out")
    richer = None if chain is None else read_richer(chain)
    plain = is_first_order(model) and richer is None
    if not plain and covariates:
        raise UsageError("--covariate is of the first-order certificate: leave it out where states remember more")
    if richer is not None and (given := given_fit_options()):
        raise UsageError(_OWN_OPTIONS.format(", ".join(given)))
    corpus = _corpus(paths, None if chain is None else read_abstraction_of(chain, richer), options)
    if not plain:
        return certify_model(
            corpus,
            model,
            chain=chain,
            richer=richer,
            held_out=held_out,
            replicates=replicates,
            seed=seed,
            level=level,
            effects=_parse_effects(effects),
            as_json=as_json,
            fit_options=fit_options(options),
        )
    asked = tuple(_COVARIATES.get(name, name) for name in covariates)
    wanted = _parse_effects(effects)
    watched = _WatchedAttributes(corpus)
    with progress_line() as progress:
        progress("reading traces and fitting the chain")
        fit, is_that_chain = _fit(chain, watched, options)
        watched.require(asked)
        asked = asked or watched.varying()
        progress(f"drawing {replicates} corpora from the chain")
        certificate = judge(
            fit,
            corpus,
            held_out=held_out,
            covariates=asked,
            replicates=replicates,
            seed=seed,
            level=level,
            effects=wanted,
        )
    code = _EXIT_CODES[certificate.verdict]
    notes = list(fit.notes)
    if is_that_chain is False:
        notes.insert(0, f"these are not the runs that {chain} was fitted to: its states are used, with a fit to these")
    if as_json:
        emit(
            {
                "kind": "tracebridge-certify",
                "schema_version": 1,
                "corpus": corpus.document(),
                "chain": chain,
                "is_that_chain": is_that_chain,
                "notes": notes,
                "certificate": certificate.to_dict(),
                "exit_code": code,
            }
        )
        return code
    corpus.say_remarks(notes)
    _show(certificate)
    return code


def _corpus(paths: Sequence[str], known: ChainFit | None, options: Mapping[str, Any]) -> Corpus:
    """The traces; without what their steps say, where the states do not depend on that."""
    by_rules = options["state_map"] is None and options["text_features"] is None
    if known is not None:
        abstraction = known.abstraction
        by_rules = by_rules and abstraction is not None and abstraction.classifier is None
    if not by_rules:
        return Corpus(paths, options)
    with progress_line() as progress, sharded(options, progress) as places:
        return RunCorpus(paths, options, places)


#: Effects from this size on are none: a gap is one of probabilities, and log 22,026 states is 10 nats.
_LARGEST = {"gap": 1, "nats": 10}


def _parse_effects(texts: tuple[str, ...]) -> ReferenceEffects:
    from tracebridge.inference import ReferenceEffects

    sizes = {}
    for name, text in parse_pairs(texts, "--detect").items():
        try:
            size = float(text)
        except ValueError:
            size = -1.0
        if name not in _LARGEST or not 0 < size < _LARGEST[name]:
            raise UsageError(
                f"--detect takes gap=NUMBER,nats=NUMBER: a gap of probabilities below 1, and nats a step below "
                f"{_LARGEST['nats']}, both above zero; not {name}={text}"
            )
        sizes[name] = size
    return ReferenceEffects(**sizes)


def _fit(chain: str | None, traces: Iterable[Trace], options: Mapping[str, Any]) -> tuple[ChainFit, bool | None]:
    """The fit to judge, and whether it is that of the file; None without one."""
    from tracebridge.chain import fit_chain

    if chain is None:
        return fit_chain(traces, **fit_options(options)), None
    if given := given_fit_options():
        raise UsageError(_OWN_OPTIONS.format(", ".join(given)))
    known = read_abstraction_of(chain)
    anew = fit_over_states_of(known, traces)
    return (known, True) if anew.counts == known.counts else (anew, False)


class _WatchedAttributes:
    """Traces as they come; remembers which attributes of runs there are, so that a misspelled one can be told."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        from tracebridge.inference.run_evidence import STANDARD_COVARIATES

        self._traces = traces
        self._seen: set[str] = set()
        self._runs_by_value: dict[str, Counter[str]] = {name: Counter() for name in STANDARD_COVARIATES}

    def __iter__(self) -> Iterator[Trace]:
        for trace in self._traces:
            for name, runs in self._runs_by_value.items():
                if (value := getattr(trace, name)) is not None:
                    runs[value] += 1
            if len(self._seen) < _SHOWN_ATTRIBUTES:
                self._seen.update(trace.attributes)
            yield trace

    def varying(self) -> tuple[str, ...]:
        """Which of task, trial and model have several values, and some value several runs."""
        return tuple(name for name, runs in self._runs_by_value.items() if len(runs) > 1 and max(runs.values()) > 1)

    def require(self, covariates: Sequence[str]) -> None:
        """Refuse covariates that no run has, where all attributes are known. Raises UsageError."""
        if len(self._seen) >= _SHOWN_ATTRIBUTES:
            return
        for name in covariates:
            if name not in {"task_id", "trial", "model", *self._seen}:
                there = ", ".join(sorted(self._seen)) or "none"
                raise UsageError(f"no run has the attribute {name!r}; besides task, trial and model there are: {there}")


def _show(certificate: Certificate) -> None:
    from tracebridge.report.certificate import certificate_lines

    for line in certificate_lines(certificate):
        write(line)
    if certificate.verdict in _NEXT:
        write("")
        write(f"next: {_NEXT[certificate.verdict]}")
