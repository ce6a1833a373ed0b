"""``tracebridge certify --model``: the certificate of a richer chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import emit, progress_line, write
from tracebridge.errors import NothingToCheckError, UsageError

if TYPE_CHECKING:
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
    held_out: bool,
    replicates: int,
    seed: int,
    level: float,
    effects: ReferenceEffects,
    as_json: bool,
    fit_options: dict[str, Any],
) -> int:
    """Fit the chain of a name and certify it in both scopes; the exit code."""
    from tracebridge.chain import fit_chain
    from tracebridge.inference.expanded.advice import advice
    from tracebridge.inference.expanded.certification import certify_model as certify
    from tracebridge.inference.expanded.cross_validation import choose_model
    from tracebridge.inference.expanded.modelling import AUTO, run_paths
    from tracebridge.report.model_certificate import model_certificate_lines
    from tracebridge.states.model_form import parse_model

    if model == AUTO:
        raise UsageError("certify takes the name of one model; assess --model auto and fit --model auto find one")
    form = parse_model(model)
    with progress_line() as progress:
        progress("reading traces")
        traces = tuple(corpus)
        base = fit_chain(traces, **fit_options)
        paths = run_paths(base, traces, form)
        first, second = _halves(paths, seed) if held_out else (paths, None)
        progress(f"choosing what {form} leaves open")
        choice = choose_model(first, form, seed=seed)
        certificate = certify(
            first,
            choice.form,
            test=second,
            kappa=choice.kappa,
            replicates=replicates,
            seed=seed,
            level=level,
            effects=effects,
            progress=lambda done, of: progress(f"corpora drawn from the chain: {done} of {of}"),
        )
    code = _exit_code(certificate)
    if as_json:
        emit(
            {
                "kind": "tracebridge-certify-model",
                "schema_version": 1,
                "corpus": corpus.document(),
                "notes": list(base.notes),
                "certificate": certificate.to_dict(),
                "advice": list(advice(certificate)),
                "exit_code": code,
            }
        )
        return code
    corpus.say_remarks(base.notes)
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
