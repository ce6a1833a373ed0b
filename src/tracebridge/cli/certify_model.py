"""``tracebridge certify --model``: the certificate of a richer chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import emit, progress_line, write
from tracebridge.cli.corpus import fit_over_states_of
from tracebridge.errors import NothingToCheckError, UsageError

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.cli.corpus import Corpus
    from tracebridge.inference import ReferenceEffects
    from tracebridge.inference.expanded.certificate import ModelCertificate
    from tracebridge.states.run_paths import RunPaths

#: The worst verdict of both scopes decides.
_EXIT_CODES = {"accept": 0, "reject": 1, "inconclusive": 4, "refused": 4}


def certify_model(
    corpus: Corpus,
    model: str,
    *,
    chain: str | None,
    richer: ExpandedFit | None,
    held_out: bool,
    replicates: int,
    seed: int,
    level: float,
    effects: ReferenceEffects,
    as_json: bool,
    fit_options: dict[str, Any],
) -> int:
    """Fit the chain of a name, or one like ``richer``, and certify it in both scopes; the exit code.

    Args:
        chain: the file that ``richer`` was read from.
    """
    from tracebridge.chain import fit_chain
    from tracebridge.inference.expanded.advice import advice
    from tracebridge.inference.expanded.certification import certify_model as certify
    from tracebridge.inference.expanded.cross_validation import choose_model
    from tracebridge.inference.expanded.modelling import AUTO, run_paths
    from tracebridge.report.model_certificate import model_certificate_lines
    from tracebridge.states.model_form import parse_model

    if model == AUTO:
        raise UsageError("certify takes the name of one model; assess --model auto and fit --model auto find one")
    form = parse_model(model) if richer is None else richer.form
    with progress_line() as progress:
        progress("reading traces")
        traces = tuple(corpus)
        base = fit_chain(traces, **fit_options) if richer is None else fit_over_states_of(richer.base, traces)
        paths = run_paths(base, traces, form)
        first, second = _halves(paths, seed) if held_out else (paths, None)
        if richer is None:
            progress(f"choosing what {form} leaves open")
            choice = choose_model(first, form, seed=seed)
            form, kappa = choice.form, choice.kappa
        else:
            kappa = richer.kappa
        certificate = certify(
            first,
            form,
            test=second,
            kappa=kappa,
            replicates=replicates,
            seed=seed,
            level=level,
            effects=effects,
            progress=lambda done, of: progress(f"corpora drawn from the chain: {done} of {of}"),
        )
    code = _exit_code(certificate)
    is_that_chain = None if richer is None else base.counts == richer.base.counts
    notes = list(base.notes)
    if is_that_chain is False:
        notes.insert(0, f"these are not the runs that {chain} was fitted to: its model is used, with a fit to these")
    if as_json:
        emit(
            {
                "kind": "tracebridge-certify-model",
                "schema_version": 1,
                "corpus": corpus.document(),
                "chain": chain,
                "is_that_chain": is_that_chain,
                "notes": notes,
                "certificate": certificate.to_dict(),
                "advice": list(advice(certificate)),
                "exit_code": code,
            }
        )
        return code
    corpus.say_remarks(notes)
    for line in model_certificate_lines(certificate):
        write(line)
    for line in advice(certificate):
        write(f"to do: {line}")
    return code


def _exit_code(certificate: ModelCertificate) -> int:
    codes = {_EXIT_CODES[certificate.verdict("timing")], _EXIT_CODES[certificate.verdict("path")]}
    return 1 if 1 in codes else max(codes)


def _halves(paths: RunPaths, seed: int) -> tuple[RunPaths, RunPaths]:
    """The runs of one half of the tasks, or of the runs where tasks are not known, and those of the other."""
    import numpy as np

    blocks, block_of_run = np.unique(paths.blocks, return_inverse=True)
    if len(blocks) < 2:
        raise NothingToCheckError("there is but one task or run: nothing can be held out")
    chosen = np.zeros(len(blocks), dtype=np.bool_)
    chosen[np.random.default_rng(seed).permutation(len(blocks))[: (len(blocks) + 1) // 2]] = True
    inside = chosen[block_of_run]
    return paths.take(np.flatnonzero(inside)), paths.take(np.flatnonzero(~inside))
