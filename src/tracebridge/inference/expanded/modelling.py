"""From traces and the name of a model to a fitted chain with the certificate, or the ladder, that stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tracebridge.chain.fit_corpus import fit_chain as fit_first_order
from tracebridge.errors import FitError, NothingToCheckError, UsageError
from tracebridge.inference.expanded.certification import DEFAULT_REPLICATES, certify_model
from tracebridge.inference.expanded.fitting import fit_model
from tracebridge.inference.expanded.ladder import Ladder, climb
from tracebridge.inference.expanded.task_classes import choose_classes
from tracebridge.inference.run_sample import covariate_value
from tracebridge.states.model_form import FIRST_ORDER, ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.expanded.certificate import ModelCertificate
    from tracebridge.traces.model import Trace

#: Why there is no certificate where none was asked for.
NO_REPLICATES = "no replicates were asked for"

#: The name of the model that the ladder finds.
AUTO = "auto"

#: What users call a covariate that traces have under another name.
_COVARIATES = {"task": "task_id"}


@overload
def fit_chain(traces: Iterable[Trace], *, model: Literal["first-order"] = ..., **options: Any) -> ChainFit: ...


@overload
def fit_chain(
    traces: Iterable[Trace],
    *,
    model: str,
    replicates: int = ...,
    seed: int = ...,
    progress: Callable[[str], None] = ...,
    **options: Any,
) -> ChainFit | ExpandedFit: ...


def fit_chain(
    traces: Iterable[Trace],
    *,
    model: str = FIRST_ORDER,
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
    progress: Callable[[str], None] = lambda message: None,
    **options: Any,
) -> ChainFit | ExpandedFit:
    """Fit a chain to traces.

    Args:
        traces: read in one pass for a first-order chain, else kept in memory and read twice.
        model: what a state remembers beside what its step is; see `tracebridge.states.model_form.parse_model`. ``auto``
            climbs the ladder and takes the form that passes, or comes closest; `assess` also tells the way there.
        replicates: of each certificate of the ladder. seed: of all that is drawn for models other than first-order.
        progress: told what is being done.
        options: of the first-order fit, which all models start from; see `tracebridge.chain.fit_chain`.

    Raises:
        TraceError, UsageError, FitError, NothingToCheckError: as the stages do.
    """
    if is_first_order(model):
        return fit_first_order(traces, **options)
    if not isinstance(traces, str | Path):
        traces = tuple(traces)
    base = fit_first_order(traces, **options)
    number = replicates if model == AUTO else 0
    return fit_named(base, traces, model, replicates=number, seed=seed, progress=progress).fit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedModel:
    """A chain of some form, and what stands behind it.

    Attributes:
        fit: the chain; the first-order fit itself where the ladder found no better one.
        certificate: of the form, or why there is none. ladder: how the form was found; None for one that was named.
    """

    fit: ChainFit | ExpandedFit
    certificate: ModelCertificate | str
    ladder: Ladder | None = None


def is_first_order(model: str) -> bool:
    """Whether a name means the first-order chain, which needs none of this.

    Raises:
        UsageError: for a name that is none.
    """
    return model != AUTO and parse_model(model).is_first_order


def run_paths(base: ChainFit, traces: Iterable[Trace], form: ModelForm | None = None) -> RunPaths:
    """The runs behind a fit, under its policy, with the group that a form asks for.

    Raises:
        UsageError: the fit has no map from steps to states.
        FitError: no run has the group, or a step belongs to no state: the files have changed.
    """
    if base.abstraction is None:
        raise UsageError("the fit has no map from steps to states, so that its runs cannot be read again")
    if form is None or form.group is None:
        return RunPaths.of_traces(base.abstraction, traces).under(base.policy)
    covariate = _COVARIATES.get(form.group, form.group)
    found = RunPaths.of_traces(base.abstraction, traces, group=lambda trace: covariate_value(trace, covariate))
    if not any(found.group_names):
        raise FitError(f"no run has a value of {form.group!r}: name task, trial, model or an attribute of the runs")
    return found.under(base.policy)


def fit_named(
    base: ChainFit,
    traces: Iterable[Trace],
    model: str,
    *,
    replicates: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda message: None,
) -> FittedModel:
    """Fit the chain of a name to the runs behind a first-order fit, and certify it.

    ``auto`` climbs the ladder. A named form is certified in sample, on the runs that it is fitted to. Classes of tasks
    are added to what the ladder finds where repeated trials show them.

    Args:
        base: the first-order fit. traces: its runs. model: see `parse_model`, or ``auto``.
        replicates: of each certificate; 0 for none, which ``auto`` cannot do without.

    Raises:
        UsageError, FitError, NothingToCheckError: as the ladder, the fit and the certificate do.
    """
    if model != AUTO:
        form = parse_model(model)
        paths = run_paths(base, traces, form)
        fit = fit_model(base, paths, form, seed=seed, progress=progress)
        if not replicates:
            return FittedModel(fit=fit, certificate=NO_REPLICATES)
        progress(f"certificate of {fit.form}: {replicates} replicates")
        try:
            certificate = certify_model(paths, fit.form, kappa=fit.kappa, replicates=replicates, seed=seed)
        except NothingToCheckError as error:
            return FittedModel(fit=fit, certificate=str(error))
        return FittedModel(fit=fit, certificate=certificate)
    if not replicates:
        raise UsageError("model auto is chosen by certificates: it needs replicates")
    paths = run_paths(base, traces)
    ladder = climb(paths, replicates=replicates, seed=seed, progress=progress)
    ladder = replace(ladder, classes=_classes(paths, seed))
    form = replace(parse_model(ladder.form), classes=ladder.classes)
    found: ChainFit | ExpandedFit = base
    if not form.is_first_order:
        found = fit_model(base, paths, form, kappa=ladder.kappa, seed=seed, progress=progress)
    tested = next((test.certificate for test in reversed(ladder.tests) if test.form == ladder.form), None)
    missing = f"{ladder.form} was not certified"
    return FittedModel(fit=found, certificate=missing if tested is None else tested, ladder=ladder)


def _classes(paths: RunPaths, seed: int) -> int:
    """The number of classes of tasks that repeated trials show."""
    tasks = paths.tasks[paths.tasks >= 0]
    if len(np.unique(tasks)) == len(tasks):
        return 1
    return choose_classes(paths, most=2, seed=seed).classes
