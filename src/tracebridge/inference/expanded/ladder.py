"""The ladder: which form of chain describes a corpus, found without fooling oneself.

Tasks are split in three parts. On the first half all rungs of a fixed list are compared by cross-validation: for
timing, by how well they foretell the times and kinds of ends; for the path, by how well they foretell each step. For
each scope those are kept that no rung of its family surely foretells better than, see
`tracebridge.inference.expanded.selection`, and that foretell better than all rungs they contain. The kept ones with the
fewest states are certified on the second part and then in sample on all runs, at most four a scope, until neither
rejects one; and that one is tested once more, on the third part. A part is small, and misses what the whole corpus
shows; all runs, which the form was chosen by and is fitted to, can speak against it but not for it. As either of the
two rejects, each is at half the level. Climbing until something passes makes a false pass likelier, not less likely, so
that the list is fixed, all that was tried is told, and the last test looks at runs that nothing was chosen by (Berk,
Brown, Buja, Zhang and Zhao 2013, Annals of Statistics 41, 802-837, on inference after selection).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tracebridge.chain.expanded.context_rows import start_counts
from tracebridge.chain.expanded.estimation import space_of
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import FitError, NothingToCheckError, UsageError
from tracebridge.inference.expanded.certification import DEFAULT_REPLICATES, certify_model, count_parameters
from tracebridge.inference.expanded.clock_bins import clock_bins
from tracebridge.inference.expanded.cross_validation import HeldOutScore, choose_model
from tracebridge.inference.expanded.scope import Scope
from tracebridge.inference.expanded.selection import Candidate, Dismissal, why_dismissed
from tracebridge.states.model_form import ClockFamily, ModelForm, parse_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.expanded.certificate import ModelCertificate, ScopeVerdict
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]

SCOPES: tuple[Scope, Scope] = ("timing", "path")

#: What a form of the ladder is judged on: a part that was held out, or ``all`` runs, which it is then fitted to.
Part = Literal["second", "all", "third"]
JUDGED_ON: dict[Part, str] = {"second": "second part", "all": "all runs", "third": "third part"}

#: The rungs in the order in which they are tried, and the scopes whose families they belong to. A clock gets the times
#: of ends right and nothing about the path; what remembers the step before is for the path.
RUNGS: tuple[tuple[str, tuple[Scope, ...]], ...] = (
    ("first-order", ("timing", "path")),
    ("clock", ("timing",)),
    ("phases:2", ("timing", "path")),
    ("phases:4", ("timing", "path")),
    ("phases:6", ("timing", "path")),
    ("phases:8", ("timing", "path")),
    ("order2", ("path",)),
    ("order2+clock", ("timing", "path")),
    ("order2+phases:4", ("path",)),
    ("order2+dwell4+clock:log", ("path",)),
    ("order2+dwell4+clock:quantiles", ("path",)),
)

#: At most so many rungs are certified in a scope.
MOST_CERTIFICATES = 4

#: Fewer tasks, or runs without tasks, cannot be split in three parts and three folds.
LEAST_BLOCKS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One form, as it did on the first part.

    Attributes:
        name: as it is in the list. form: with the bins of its clock. kappa: of its rows.
        n_states: states of the chain, success and failure among them; None if they are too many to build.
        n_parameters: see `count_parameters`.
        scores: held-out log-likelihood in each scope, nats a run: of timing, and of the path given the first step.
        gains, errors: of the scores over the first-order chain, and their standard errors.
        scopes: whose families it belongs to. kept: for which of them it was kept.
        dismissed: why it was not kept for the others of its scopes.
    """

    name: str
    form: str
    kappa: float
    n_states: int | None
    n_parameters: int
    scores: dict[Scope, float]
    gains: dict[Scope, float]
    errors: dict[Scope, float]
    scopes: tuple[Scope, ...]
    kept: tuple[Scope, ...] = ()
    dismissed: dict[Scope, Dismissal] = field(default_factory=dict)

    @property
    def remark(self) -> str:
        """Why it was not kept, in words."""
        return "; ".join(f"{scope}: {reason}" for scope, reason in self.dismissed.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        own = {name: getattr(self, name) for name in Rung.__dataclass_fields__ if name != "dismissed"}
        dismissed = {scope: reason.to_dict() for scope, reason in self.dismissed.items()}
        return {**own, "dismissed": dismissed, "remark": self.remark}


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderTest:
    """A certificate that was asked for on the way, or at the end.

    Attributes:
        scope: what for. form: of what. part: of the runs that it was judged on. certificate: the result.
    """

    scope: Scope
    form: str
    part: Part
    certificate: ModelCertificate

    @property
    def verdict(self) -> ScopeVerdict:
        """In this scope."""
        return self.certificate.verdict(self.scope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """All that was tried, in order, and what came of it.

    Attributes:
        runs: of each part, and tasks (or runs without one) of each part.
        rungs: in order. skipped: rungs that could not be fitted, with the reason. tests: in order.
        passed: the form that was rejected neither on the second part nor on all runs, for each scope that has one.
        form: what to go on with: what passed for the path, else for timing, else the kept rung for timing with the
            fewest states. kappa: of its rows.
        seed: of all that was drawn.
        classes: of tasks that were added to it afterwards, because repeated trials show them; no certificate tests
            them.
    """

    runs: tuple[int, int, int]
    blocks: tuple[int, int, int]
    rungs: tuple[Rung, ...]
    skipped: tuple[tuple[str, str], ...]
    tests: tuple[LadderTest, ...]
    passed: dict[Scope, str]
    form: str
    kappa: float
    seed: int
    classes: int = 1

    def final(self, scope: Scope) -> ModelCertificate | None:
        """The last test of a scope, on the third part; None if nothing passed what came before."""
        found = [test.certificate for test in self.tests if test.scope == scope and test.part == "third"]
        return found[-1] if found else None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "seed": self.seed,
            "runs": list(self.runs),
            "blocks": list(self.blocks),
            "rungs": [rung.to_dict() for rung in self.rungs],
            "skipped": [{"name": name, "reason": reason} for name, reason in self.skipped],
            "tests": [
                {
                    "scope": test.scope,
                    "form": test.form,
                    "part": test.part,
                    "verdict": test.verdict,
                    "certificate": test.certificate.to_dict(),
                }
                for test in self.tests
            ],
            "passed": dict(self.passed),
            "form": self.form,
            "kappa": self.kappa,
            "classes": self.classes,
        }


def climb(
    paths: RunPaths,
    *,
    rungs: Sequence[tuple[str, tuple[Scope, ...]]] = RUNGS,
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
    level: float = 0.05,
    progress: Callable[[str], None] = lambda message: None,
) -> Ladder:
    """Climb the ladder on runs that are under their censoring policy.

    Args:
        paths: the runs, with their tasks where they have some. rungs: names and families, first-order first.
        replicates: of each certificate, at least ``2 / level - 1``, as fewer could never reject.
        seed: of the split, the folds, the fits and the certificates.
        level: at which a form is rejected by the second part or all runs together, and by the third part.
        progress: told what is being done.

    Raises:
        NothingToCheckError: for fewer than `LEAST_BLOCKS` tasks or runs, or runs of which nothing is seen.
        UsageError: too few replicates, or as `certify_model`.
    """
    if replicates + 1 < 2 / level:
        raise UsageError(
            f"replicates={replicates} are too few to choose a model: two tests are made of each, at the level "
            f"{level / 2:g}, and their p is at least 1/{replicates + 1}; take {math.ceil(2 / level) - 1} or more"
        )
    parts, blocks = _three_parts(paths, seed)
    fitted, second, third = (paths.take(part) for part in parts)
    judged = {"second": second, "third": third}
    found, scores, skipped = _scored(fitted, rungs, seed, progress)
    found = _kept(found, scores)
    tests: list[LadderTest] = []

    def stands(rung: Rung, scope: Scope, part: Part) -> bool:
        """One certificate says both scopes: what was asked for before is not drawn again."""
        known = (test.certificate for test in tests if (test.form, test.part) == (rung.form, part))
        certificate = next(known, None)
        if certificate is None:
            progress(f"certificate of {rung.form} ({scope}, {part})")
            on_all = part == "all"
            certificate = certify_model(
                paths if on_all else fitted,
                parse_model(rung.form),
                test=None if on_all else judged[part],
                kappa=rung.kappa,
                replicates=replicates,
                seed=seed,
                level=level if part == "third" else level / 2,
            )
        tests.append(LadderTest(scope=scope, form=rung.form, part=part, certificate=certificate))
        return tests[-1].verdict in ("accept", "inconclusive")

    passed: dict[Scope, Rung] = {}
    for scope in SCOPES:
        for rung in _by_size(rung for rung in found if scope in rung.kept)[:MOST_CERTIFICATES]:
            if stands(rung, scope, "second") and stands(rung, scope, "all"):
                passed[scope] = rung
                break
    chosen = passed.get("path") or passed.get("timing")
    if chosen is None:
        chosen = _by_size(rung for rung in found if "timing" in rung.kept)[0]
    for scope, rung in passed.items():
        stands(rung, scope, "third")
    return Ladder(
        runs=(fitted.n_runs, second.n_runs, third.n_runs),
        blocks=blocks,
        rungs=tuple(found),
        skipped=tuple(skipped),
        tests=tuple(tests),
        passed={scope: rung.form for scope, rung in passed.items()},
        form=chosen.form,
        kappa=chosen.kappa,
        seed=seed,
    )


# ---------------------------------------------------------------- the parts


def _three_parts(paths: RunPaths, seed: int) -> tuple[tuple[Codes, Codes, Codes], tuple[int, int, int]]:
    """Runs of one half, a quarter and a quarter of the tasks, and the numbers of tasks."""
    blocks, block_of_run = np.unique(paths.blocks, return_inverse=True)
    if len(blocks) < LEAST_BLOCKS:
        what = "tasks" if paths.task_names else "runs"
        raise NothingToCheckError(
            f"{len(blocks)} {what} are too few to choose a model on one part and test it on others: it takes "
            f"{LEAST_BLOCKS}; name a model by hand"
        )
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,))).permutation(len(blocks))
    half, rest = len(blocks) // 2, len(blocks) - len(blocks) // 2
    part_of_block = np.empty(len(blocks), dtype=np.int64)
    part_of_block[order] = np.repeat([0, 1, 2], [half, rest - rest // 2, rest // 2])
    part = part_of_block[block_of_run]
    sizes = np.bincount(part_of_block, minlength=3).tolist()
    runs = tuple(np.flatnonzero(part == i) for i in range(3))
    return (runs[0], runs[1], runs[2]), (sizes[0], sizes[1], sizes[2])


# ---------------------------------------------------------------- the rungs


def _scored(
    fitted: RunPaths,
    rungs: Sequence[tuple[str, tuple[Scope, ...]]],
    seed: int,
    progress: Callable[[str], None],
) -> tuple[list[Rung], list[HeldOutScore], list[tuple[str, str]]]:
    """The rungs with their scores, in order, and those that cannot be fitted."""
    found: list[Rung] = []
    scores: list[HeldOutScore] = []
    skipped: list[tuple[str, str]] = []
    for name, scopes in rungs:
        progress(f"cross-validation of {name}")
        if found and (reason := _too_rich(fitted, parse_model(name))):
            skipped.append((name, reason))
            continue
        try:
            decisive: Scope = "path" if "path" in scopes else "timing"
            choice = choose_model(fitted, parse_model(name), seed=seed, scope=decisive)
        except FitError as error:
            skipped.append((name, str(error)))
            continue
        if any(rung.form == str(choice.form) for rung in found):
            skipped.append((name, f"the same as {choice.form}, which is there already"))
            continue
        score = choice.score
        gained = {scope: score.gain_over(scores[0] if scores else score, scope) for scope in SCOPES}
        found.append(
            Rung(
                name=name,
                form=str(choice.form),
                kappa=score.kappa,
                n_states=_expanded_states(fitted, choice.form),
                n_parameters=count_parameters(fitted, choice.form)[0],
                scores={scope: score.mean_of(scope) for scope in SCOPES},
                gains={scope: gain for scope, (gain, _) in gained.items()},
                errors={scope: error for scope, (_, error) in gained.items()},
                scopes=scopes,
            )
        )
        scores.append(score)
    return found, scores, skipped


def _too_rich(fitted: RunPaths, form: ModelForm) -> str | None:
    """Why a form is not tried: it has more free probabilities than there are transitions to fit it to."""
    if isinstance(form.clock, str):
        family: ClockFamily = "log" if form.clock == "chosen" else form.clock
        form = form.with_clock(clock_bins(family, fitted))
    parameters, transitions = count_parameters(fitted, form)
    if parameters <= transitions:
        return None
    return f"{parameters} free probabilities are more than the {transitions} transitions to fit them to"


def _kept(rungs: Sequence[Rung], scores: Sequence[HeldOutScore]) -> list[Rung]:
    """The rungs with the scopes that they are kept for."""
    candidates = [
        Candidate(name=rung.name, form=parse_model(rung.form), score=score, scopes=rung.scopes)
        for rung, score in zip(rungs, scores, strict=True)
    ]
    result = []
    for rung, candidate in zip(rungs, candidates, strict=True):
        found = {scope: why_dismissed(candidate, candidates, scope) for scope in rung.scopes}
        kept = tuple(scope for scope, reason in found.items() if reason is None)
        dismissed = {scope: reason for scope, reason in found.items() if reason is not None}
        result.append(replace(rung, kept=kept, dismissed=dismissed))
    return result


def _by_size(rungs: Any) -> list[Rung]:
    return sorted(rungs, key=lambda rung: (rung.n_states is None, rung.n_states or 0))


def _expanded_states(paths: RunPaths, form: ModelForm) -> int | None:
    space = space_of(paths, form)
    starts = np.repeat(start_counts(space, paths)[0][:, np.newaxis] > 0, form.phases, axis=1)
    try:
        return ExpandedStructure.of(form, paths.states, paths.group_names, starts).n_states
    except FitError:
        return None
