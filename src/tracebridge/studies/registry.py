"""The studies by name, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tracebridge.errors import UsageError
from tracebridge.studies import (
    broadcast,
    case_study,
    closed_form,
    correlation,
    coverage,
    error_rates,
    exponential_limit,
    goodness_of_fit,
    held_out,
    ladder,
    perturbation,
    uncertainty_tables,
)
from tracebridge.studies.replication import Replication
from tracebridge.studies.result import Findings, StudyResult

#: Stands for all studies.
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Something that can be run again.

    Attributes:
        name: what to call it. title: one line. source: its place in the paper.
        replicates: how many are run unless the caller says otherwise: a minute's work. full: how many settle it; both
            zero for a study without chance.
        run: the study itself.
    """

    name: str
    title: str
    source: str
    replicates: int
    full: int
    run: Callable[[Replication], Findings]


_ALL = (
    Study(
        name="closed-form",
        title="the closed form against simulation",
        source="Proposition 1, SS1",
        replicates=20,
        full=500,
        run=closed_form.study,
    ),
    Study(
        name="perturbation",
        title="the perturbation bound against the exact effect",
        source="Proposition 2, Fig. 5 a",
        replicates=100,
        full=1_000,
        run=perturbation.study,
    ),
    Study(
        name="correlation",
        title="repeated trials that share a difficulty",
        source="Theorem 4, Corollary 5, Fig. 5 b and c",
        replicates=400,
        full=4_000,
        run=correlation.study,
    ),
    Study(
        name="exponential-limit",
        title="the exponential limit for rare failures",
        source="Proposition 7, Fig. 6",
        replicates=0,
        full=0,
        run=exponential_limit.study,
    ),
    Study(
        name="case-study",
        title="horizons of the seven frameworks, and fits of such frameworks",
        source="Proposition 8, SS6, Table IV",
        replicates=40,
        full=400,
        run=case_study.study,
    ),
    Study(
        name="goodness-of-fit",
        title="first-order, second-order and framework chains under the paper's rule and the certificate",
        source="SS7 A, B and C",
        replicates=15,
        full=200,
        run=goodness_of_fit.study,
    ),
    Study(
        name="uncertainty-tables",
        title="the counts behind Table II, and what the agreement in Table III shows",
        source="Tables II and III",
        replicates=100,
        full=400,
        run=uncertainty_tables.study,
    ),
    Study(
        name="held-out",
        title="from noisy features to a chain, judged on other runs",
        source="SS9, Table V",
        replicates=10,
        full=50,
        run=held_out.study,
    ),
    Study(
        name="certificate",
        title="size and power of the certificate",
        source="not in the paper",
        replicates=20,
        full=400,
        run=error_rates.study,
    ),
    Study(
        name="coverage",
        title="coverage of posterior intervals",
        source="not in the paper",
        replicates=40,
        full=400,
        run=coverage.study,
    ),
    Study(
        name="ladder",
        title="richer chains: certificates, intervals, exports, pass^k, and the ladder on corpora",
        source="not in the paper",
        replicates=8,
        full=100,
        run=ladder.study,
    ),
    Study(
        name="broadcast",
        title="the audit of confidence-routed broadcast, table by table",
        source="the paper on confidence-routed broadcast",
        replicates=50,
        full=500,
        run=broadcast.study,
    ),
)

#: In the order in which they build on each other.
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def chosen_studies(names: Sequence[str]) -> list[Study]:
    """The studies of these names, each once, in the order in which they are named.

    ``all`` stands for every one that is not named before it, in the order of `STUDIES`.

    Raises:
        UsageError: for a name that is none.
    """
    for name in names:
        if name not in STUDIES and name != ALL:
            near = get_close_matches(name, STUDIES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(STUDIES)}, and {ALL}"
            raise UsageError(f"there is no study {name[:80]!r}: {hint}")
    wanted = [each for name in names for each in (STUDIES if name == ALL else (name,))]
    return [STUDIES[name] for name in dict.fromkeys(wanted)]


def run_study(
    study: Study | str,
    *,
    replicates: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StudyResult:
    """Run a study. The same seed gives the same result, whatever the number of jobs.

    Args:
        study: or its name. replicates: of each case; by default those of the study.
        seed: of all random draws. jobs: see `Replication`.
        progress: is told how many replicates are done, and of how many.

    Raises:
        UsageError: for a name that is none, or numbers out of range.
    """
    if isinstance(study, str):
        if study == ALL:
            raise UsageError("run_study takes one study at a time")
        (study,) = chosen_studies([study])
    number = study.replicates if replicates is None else replicates
    replication = Replication(
        study=study.name,
        number=number if study.replicates else 1,
        seed=seed,
        jobs=jobs,
        progress=progress or (lambda done, total: None),
    )
    return StudyResult(
        name=study.name,
        title=study.title,
        source=study.source,
        replicates=number if study.replicates else 0,
        full=study.full,
        seed=seed,
        findings=study.run(replication),
    )
