"""ExpandedFit: a fitted chain whose states remember more than their category, with everything that it follows from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from tracebridge.chain.document import checked_document, read_document
from tracebridge.chain.expanded.context_rows import require_kappa
from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.first_order_base import (
    categories_of,
    require_expandable,
    require_same_runs,
    runs_of_base,
)
from tracebridge.chain.expanded.parameter_document import (
    CLOSED_FORM_TOLERANCE,
    ParametersDocument,
    parameters_from_document,
    parameters_to_dict,
    require_fitted,
)
from tracebridge.chain.expanded.path_document import (
    PathsDocument,
    fits_a_document,
    paths_from_document,
    paths_to_dict,
)
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.chain.expanded.thin_contexts import thin_context_note
from tracebridge.chain.fit import ChainFit
from tracebridge.errors import (
    InputError,
    Location,
    ModelError,
    TracebridgeError,
    UsageError,
)
from tracebridge.html_table import html_paragraph
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from fractions import Fraction

    from tracebridge.chain.counts import CensoringPolicy, TransitionCounts
    from tracebridge.chain.estimate import PriorName, StartName, Support
    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.chain.fit import Profile
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.weights import WeightedCounts
    from tracebridge.states.abstraction import Abstraction
    from tracebridge.states.run_paths import RunPaths

KIND = "expanded-fit"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedFit:
    """A model of some form, fitted to the runs that a first-order chain was fitted to.

    Attributes:
        base: the first-order fit of the same runs: their abstraction, counts and policy.
        form: with the bins of its clock chosen.
        kappa: mass of the prior around the row of the coarser context. seed: of the restarts for phases.
        model: the parameters.
        paths: the runs, under the policy, over the states of the base; None if they were read from a document that does
            not hold them.
        chain: the model as a chain over expanded states.
        remarks: how the form was chosen, one sentence each.
    """

    base: ChainFit
    form: ModelForm
    kappa: float
    seed: int
    model: ExpandedModel
    paths: RunPaths | None
    chain: MarkovChain
    remarks: tuple[str, ...] = ()

    # ------------------------------------------------------------ as a ChainFit has them

    @property
    def counts(self) -> TransitionCounts:
        """The corpus."""
        return self.base.counts

    @property
    def abstraction(self) -> Abstraction | None:
        """The map from steps to categories."""
        return self.base.abstraction

    @property
    def policy(self) -> CensoringPolicy:
        """What was made of censored runs."""
        return self.base.policy

    @property
    def prior(self) -> PriorName | Fraction:
        """The prior of the rows of the categories."""
        return self.base.prior

    @property
    def support(self) -> Support:
        """Which transitions between categories are possible: all."""
        return self.base.support

    @property
    def start(self) -> StartName | Mapping[str, Fraction]:
        """Where runs start: as observed."""
        return self.base.start

    @property
    def profile(self) -> Profile | None:
        """None."""
        return self.base.profile

    @property
    def weighted(self) -> WeightedCounts | None:
        """None: every run counts alike."""
        return self.base.weighted

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about this fit, one sentence each."""
        thin = None if self.paths is None else thin_context_note(self.paths, self.form)
        return (*self.remarks, *([] if thin is None else [thin]), *self.base.notes)

    # ------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``expanded-fit``.

        For ``parameters`` see `tracebridge.chain.expanded.parameter_document`, for ``paths``, which are null for
        corpora that are too large, `tracebridge.chain.expanded.path_document`.
        """
        written = self.paths is not None and fits_a_document(self.paths)
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "form": str(self.form),
            "kappa": self.kappa,
            "seed": self.seed,
            "remarks": list(self.remarks),
            "base": self.base.to_dict(),
            "parameters": parameters_to_dict(self.model),
            "paths": paths_to_dict(self.paths) if written and self.paths is not None else None,
        }

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> ExpandedFit:
        """Read `to_dict`'s document; what follows from the runs in it must be what is written there.

        For what of the parameters is decided by the runs see `require_fitted`.

        Raises:
            ModelError: naming the field.
        """
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, path=path)
        base = ChainFit.from_dict(document.base, path)
        form = _read_options(document, base, path)
        model = parameters_from_document(document.parameters, form, categories_of(base), path)
        paths = None
        if document.paths is not None:
            paths = paths_from_document(document.paths, model.states, path)
        try:
            _require_start(model, base)
            if paths is not None:
                require_same_runs(base, paths)
                require_fitted(model, paths, document.kappa)
            return cls(
                base=base,
                form=form,
                kappa=document.kappa,
                seed=document.seed,
                model=model,
                paths=paths,
                chain=_chain(model, base),
                remarks=tuple(document.remarks),
            )
        except InputError as error:
            places = (replace(problem.location, path=path) for problem in error.problems)
            problems = zip(error.problems, places, strict=True)
            raise ModelError([replace(problem, location=place) for problem, place in problems]) from error
        except TracebridgeError as error:
            raise ModelError(str(error), location=Location(path=path)) from error

    def __repr__(self) -> str:
        return f"<ExpandedFit {self.form} of {len(self.model.states)} states to {self.base.counts.n_runs} runs>"

    def _repr_html_(self) -> str:
        head = f"{self.form}: {self.chain.n_states} states from {len(self.model.states)}"
        return html_paragraph(head, self.notes) + self.chain._repr_html_()


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    form: str
    kappa: float
    seed: Annotated[int, msgspec.Meta(ge=0)]
    remarks: list[str]
    base: dict[str, Any]
    parameters: ParametersDocument
    paths: PathsDocument | None


def fit_expanded(
    base: ChainFit,
    paths: RunPaths,
    form: ModelForm,
    *,
    kappa: float = 1.0,
    seed: int = 0,
    model: ExpandedModel | None = None,
    remarks: Iterable[str] = (),
) -> ExpandedFit:
    """Fit a form to the runs behind a first-order fit.

    Args:
        base: of full support, with prior ``mass-one``, the observed start and no weights.
        paths: the same runs, under the base's policy; in any order.
        form, kappa, seed: see `estimate`.
        model: parameters that were estimated elsewhere, such as those with classes of tasks.
        remarks: how the form was chosen, one sentence each.

    Raises:
        UsageError: for a base that is not so, or a form that cannot be estimated.
        ModelError: if these are not the runs of the base.
        NothingToCheckError: if no run has a step.
        FitError: for too many contexts or states.
    """
    paths = runs_of_base(base, paths)
    form = form.with_clock(form.bins)
    if model is None:
        model = estimate(paths, form, kappa, seed)
    elif model.form != form or model.states != paths.states:
        raise ModelError(f"the parameters of {model.form} are not those of {form} over the states of these runs")
    remarks = list(remarks)
    if not fits_a_document(paths):
        remarks.append(
            f"the {counted(paths.n_runs, 'run')} are too many for the document: what draws runs anew needs the traces"
        )
    return ExpandedFit(
        base=base,
        form=form,
        kappa=float(kappa),
        seed=seed,
        model=model,
        paths=paths,
        chain=_chain(model, base),
        remarks=tuple(remarks),
    )


def read_expanded_fit(path: str | Path) -> ExpandedFit:
    """Read an ``expanded-fit`` document. Raises ModelError, with place and field."""
    return ExpandedFit.from_dict(read_document(path), str(path))


def _chain(model: ExpandedModel, base: ChainFit) -> MarkovChain:
    known = set(model.states)
    words = {} if base.abstraction is None else base.abstraction.space.labels
    labels = {word: [state for state in states if state in known] for word, states in words.items()}
    return ExpandedStructure.of_model(model).chain(model, labels)


def _read_options(document: _Document, base: ChainFit, path: str | None) -> ModelForm:
    """The form of a document, after its options were looked at."""
    field = "base"
    try:
        require_expandable(base)
        field = "kappa"
        require_kappa(document.kappa)
        field = "form"
        form = parse_model(document.form)
        return form.with_clock(form.bins)
    except UsageError as error:
        raise ModelError(str(error), location=Location(path=path, field=field)) from error


def _require_start(model: ExpandedModel, base: ChainFit) -> None:
    """Raise ModelError if runs do not start as those of the base did, all groups and phases together."""
    starts = base.row_counts().starts
    if not np.allclose(model.start.sum(axis=(0, 1)), starts / starts.sum(), rtol=0, atol=CLOSED_FORM_TOLERANCE):
        raise ModelError("runs do not start as those of the base did", location=Location(field="parameters.start"))
