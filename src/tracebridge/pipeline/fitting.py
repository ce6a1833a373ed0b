"""Trace files in, a fitted chain out: read as shards, in parallel, once where that is enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracebridge.chain import ChainFit, fit_chain
from tracebridge.chain.fit_corpus import fit_features
from tracebridge.pctl import ast
from tracebridge.sharding import OnProgress, ShardOptions, read_shards
from tracebridge.states import StateMap, TextCorpus, read_state_map
from tracebridge.states.grouping import text_choice
from tracebridge.traces import Trace, TraceStream, TraceTally, is_read_once, open_traces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCorpus:
    """A fit and what was read for it.

    Attributes:
        fit: the fitted chain, of first order.
        corpus: counts of the corpus, its files, and what was skipped, as JSON values.
        traces: the runs once more; every iteration reads the files again, unless they can be read only once.
    """

    fit: ChainFit
    corpus: Mapping[str, Any]
    traces: Iterable[Trace]


def fit_files(
    paths: Sequence[str | Path],
    *,
    trace_format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    outcomes: Sequence[str | Path] | None = None,
    endings: str | Path | None = None,
    skip_bad: bool = False,
    keep: bool = False,
    jobs: int | None = None,
    manifest: str | Path | None = None,
    prune: bool = False,
    on_progress: OnProgress = lambda progress: None,
    **fit_options: Any,
) -> FittedCorpus:
    """Read trace files and fit a chain in one pass; see `open_traces` and `fit_chain` for the options.

    Files are read as shards, by as many processes as there are jobs, and the result is the same for any number. Where
    states, weights or texts depend on a function of the user, or weights come with states by a map or by texts, this
    process reads all files in one pass instead.

    Args:
        keep: the runs are wanted afterwards: where their states come from rule-based features they are kept in a
            temporary file, without what their steps say; otherwise the files are read once more for them, and those
            that can be read only once, such as standard input, are kept in memory.
        jobs, manifest, prune, on_progress: see `read_shards`.
    """
    reading = {"format": trace_format, "mapping": mapping, "outcomes": outcomes, "endings": endings}
    stream = open_traces(paths, skip_bad=skip_bad, **reading)  # type: ignore[arg-type]
    states, weight = fit_options.get("states"), fit_options.get("weight")
    if isinstance(states, str | Path):
        fit_options["states"] = states = read_state_map(states)
    texts = text_choice(fit_options.get("text_features"))
    plain = states is None and texts is None
    of_functions = callable(states) or callable(weight) or (texts is not None and texts.encoder is not None)
    both = states is not None and texts is not None  # which is refused there
    read_twice = keep and not plain and any(map(is_read_once, paths))
    if of_functions or both or (weight is not None and not plain) or read_twice:
        return _fit_in_one_pass(paths, stream, keep=keep, **fit_options)
    options = ShardOptions.of(
        **reading,  # type: ignore[arg-type]
        runs=plain and (keep or weight is not None),
        state_map=states if isinstance(states, StateMap) else None,
        texts=texts is not None,
    )
    shards = read_shards(paths, options, jobs=jobs, manifest=manifest, prune=prune, on_progress=on_progress)
    shards.require_usable(skip_bad=skip_bad)
    if weight is not None and shards.runs is not None:
        fit = fit_chain(shards.runs, **fit_options)
    else:
        others = {name: value for name, value in fit_options.items() if name not in ("weight", "text_features")}
        corpus_of_texts = None
        if texts is not None and shards.texts is not None:
            corpus_of_texts = TextCorpus(texts)
            corpus_of_texts.update(shards.texts)
        fit = fit_features(shards.features.counts(), texts=corpus_of_texts, **others)
    corpus = {**shards.tally.summary().to_dict(), **shards.document()}
    return FittedCorpus(fit=fit, corpus=corpus, traces=stream if shards.runs is None else shards.runs)


def _fit_in_one_pass(
    paths: Sequence[str | Path], stream: TraceStream, *, keep: bool, **fit_options: Any
) -> FittedCorpus:
    tally = TraceTally()
    kept: list[Trace] | None = [] if keep and any(map(is_read_once, paths)) else None

    def passing() -> Iterator[Trace]:
        for trace in stream:
            if kept is not None:
                kept.append(trace)
            yield tally.add(trace)

    fit = fit_chain(passing(), **fit_options)
    corpus = {
        **tally.summary().to_dict(),
        "files": [file.to_dict() for file in stream.files],
        "n_skipped": stream.log.n_skipped,
        "problems": [str(problem) for problem in stream.log.listing()],
        "notes": [str(note) for note in stream.log.notes],
        "endings": stream.endings.to_dict(),
    }
    return FittedCorpus(fit=fit, corpus=corpus, traces=stream if kept is None else tuple(kept))


def propositions_of(file: ast.PropertyFile) -> list[str]:
    """The labels that the properties name, sorted: what must be constant on every state."""
    labels = {node.name for item in file.properties for node in ast.walk(item.formula) if isinstance(node, ast.Label)}
    return sorted(labels)
