"""The audit of confidence as one function: polls in; card, tables, plots, chain, routing processes and verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracebridge.checking.run import DEFAULT_ENGINES
from tracebridge.confidence.audit import ConfidenceAudit, audit_confidence
from tracebridge.confidence.audit_card import card_of_audit
from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.card import AuditCard
from tracebridge.confidence.commitment import UndecidedPolicy, commitment_pairs
from tracebridge.confidence.corpus import ConfidenceCorpus
from tracebridge.confidence.deliberation_chain import admissible_transitions
from tracebridge.confidence.formal_model import FormalModel, formal_model
from tracebridge.confidence.poll_scores import read_poll_scores
from tracebridge.confidence.reading import read_confidence
from tracebridge.confidence.router import routeable_blocks, router_successes
from tracebridge.confidence.routing_pools import MissingLabel, block_pools
from tracebridge.confidence.runtime_abstraction import N_STATES, RuntimeView
from tracebridge.errors import FitError, NothingToCheckError
from tracebridge.export.prism_decision import format_prism_decision
from tracebridge.pctl import read_properties
from tracebridge.pipeline import Assessment, assess
from tracebridge.report import OutputFolder
from tracebridge.report.confidence_folder import audit_document, audit_files, csv_text
from tracebridge.resources import packaged
from tracebridge.traces import write_traces

if TYPE_CHECKING:
    from tracebridge.confidence.table import ConfidenceTable, Numbers, ScoreScale
    from tracebridge.confidence.tabulate import ClusterKey
    from tracebridge.confidence.visible_speaks import Visibility
    from tracebridge.traces import Trace

#: Rules that may select an invalid poll; the others are schedulers of the process of valid choices.
_MAY_SELECT_INVALID = ("runtime_argmax", "first_listed_argmax")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRun:
    """What `audit` found.

    Attributes:
        corpus, table: what was read. audit: its metrics. card: its Trace-Audit Card.
        model: the deliberations as a chain and as routing processes, or why there are none.
        assessment: the chain fitted, certified and checked, where something was written.
        folder: where the files are, None if nothing was written.
        document: the findings as JSON values, which is also what audit.json holds.
    """

    corpus: ConfidenceCorpus
    table: ConfidenceTable
    audit: ConfidenceAudit
    card: AuditCard
    model: FormalModel | str
    assessment: Assessment | None
    folder: Path | None
    document: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """The worst over the properties of the chain and of the routing processes; 0 where there is no chain."""
        if isinstance(self.model, str):
            return 0
        codes = {agreement.exit_code for agreement in self.model.review("valid").agreements}
        codes |= set() if self.assessment is None else {self.assessment.exit_code}
        return next((code for code in (6, 1, 4) if code in codes), 0)


def audit(
    paths: Sequence[str | Path],
    *,
    labels: Sequence[str | Path] | None = None,
    output: str | Path | None = None,
    force: bool = False,
    mapping: Mapping[str, str] | None = None,
    scale: ScoreScale | None = None,
    skip_bad: bool = False,
    cluster_key: ClusterKey = "cluster_id",
    visibility: Visibility = "all_prior",
    judge: str | None = None,
    undecided_policy: UndecidedPolicy = "exclude",
    on_missing_label: MissingLabel = "drop",
    route_files: Mapping[str, str | Path] | None = None,
    properties: str | Path | None = None,
    routing_properties: str | Path | None = None,
    engines: Sequence[str] = DEFAULT_ENGINES,
    exact: bool = False,
    constants: Mapping[str, Fraction | bool] | None = None,
    time_limit: float | None = None,
    prism: str | Path | None = None,
    replicates: int = 2_000,
    certificate_replicates: int = 199,
    seed: int = 0,
    level: float = 0.95,
    progress: Callable[[str], None] = lambda message: None,
) -> AuditRun:
    """Audit routing, calibration and commitment, and check what a reviewer asks of the deliberations.

    Args:
        paths, labels, mapping, scale, skip_bad: see `read_confidence`. cluster_key, visibility: see `tabulate`.
        output: folder to write to; nothing is written, and no chain is assessed, without one. force: also into a
            non-empty folder that is not ours.
        judge, undecided_policy, on_missing_label, replicates, seed, level: see `audit_confidence`.
        route_files: by name a file of scores for the polls: routers that select the highest; see `read_poll_scores`.
        properties: of the chain; the packaged broadcast.props by default. routing_properties: of the routing processes;
            the packaged routing.props by default. engines, exact, constants, time_limit, prism: see `check`; constants
            are those of ``properties``.
        certificate_replicates: of the certificate of the chain.

    Raises:
        TracebridgeError: as the stages do; nothing is written then.
    """
    folder = (
        None if output is None else OutputFolder(output, marker="audit.json", kind="tracebridge-audit", force=force)
    )
    routing_file = read_properties(routing_properties or packaged("properties", "routing.props"))
    progress("reading polls")
    corpus = read_confidence(paths, labels=labels, mapping=mapping, scale=scale, skip_bad=skip_bad)
    table = corpus.table(cluster_key=cluster_key, visibility=visibility)
    route_by = {name: read_poll_scores(path, corpus) for name, path in (route_files or {}).items()}
    progress(f"auditing {len(table.blocks.trace)} blocks, {replicates} replicates")
    policies: dict[str, Any] = {"undecided_policy": undecided_policy, "on_missing_label": on_missing_label}
    found = audit_confidence(
        table, replicates=replicates, seed=seed, level=level, judge=judge, route_by=route_by, **policies
    )
    pools = block_pools(table, on_missing_label=on_missing_label)
    pairs = commitment_pairs(table, judge=judge, **policies)
    model: FormalModel | str
    try:
        progress("the deliberations as a chain and as routing processes")
        blocks = routeable_blocks(pools)
        routers = {rule: held for rule, held in router_successes(blocks).items() if rule not in _MAY_SELECT_INVALID}
        routers |= found.score_routers
        model = formal_model(
            pools,
            pairs,
            (blocks, routers),
            routing_file,
            engines=engines,
            exact=exact,
            time_limit=time_limit,
            prism=prism,
            resampling=Resampling(replicates=replicates, seed=seed, level=level),
        )
    except (NothingToCheckError, FitError) as error:
        model = str(error)
    assessment = None
    if folder is not None and not isinstance(model, str):
        shared: dict[str, Any] = {
            "replicates": certificate_replicates,
            "seed": seed,
            "engines": engines,
            "exact": exact,
            "time_limit": time_limit,
            "prism": prism,
            "progress": progress,
        }
        assessment = _assessed(
            model.deliberations.traces(),
            folder,
            "chain",
            properties or packaged("properties", "broadcast.props"),
            support=admissible_transitions(model.deliberations),
            vocabulary=model.unsmoothed.vocabulary,
            constants=constants,
            **shared,
        )
        progress("what a monitor sees")
        view = RuntimeView.of(pools, pairs, _calibrator(found))
        _assessed(
            view.traces(),
            folder,
            "runtime_chain",
            packaged("properties", "reliability.props"),
            vocabulary=view.vocabulary(),
            k_max=N_STATES,
            **shared,
        )
        folder.write("runtime_states.csv", csv_text(view.correctness()))
    said: dict[str, dict[str, Any]] = {
        "uncertainty": {"cluster_key": cluster_key},
        "commitment": {"visibility_rule": visibility},
    }
    if not isinstance(model, str):
        said["formal_model"] = _card_fields(model, assessment)
    card = card_of_audit(found, corpus, table, stated=said)
    document = audit_document(corpus, found, model, assessment=None if assessment is None else "chain/results.json")
    if folder is not None:
        for name, text in audit_files(pools, corpus, found, card, model).items():
            folder.write(name, text)
        if not isinstance(model, str):
            for review in model.reviews:
                name = f"routing_{review.routing.action_set}.prism"
                folder.write(name, format_prism_decision(review.routing.process))
        folder.write_json("audit.json", document)
    return AuditRun(
        corpus=corpus,
        table=table,
        audit=found,
        card=card,
        model=model,
        assessment=assessment,
        folder=None if folder is None else folder.path,
        document=document,
    )


def _assessed(
    traces: Iterable[Trace], folder: OutputFolder, name: str, properties: str | Path, **options: Any
) -> Assessment:
    """A chain of the deliberations through the main job, from traces that are written beside its folder."""
    path = folder.path / f"{name}.jsonl"
    folder.path.mkdir(parents=True, exist_ok=True)
    write_traces(traces, path)
    return assess([path], properties, output=folder.path / name, force=True, **options)


def _calibrator(found: ConfidenceAudit) -> Callable[[Numbers], Numbers]:
    """From stated confidence to the probability of being correct; as it is where nothing could be fitted."""
    fitted = found.recalibration.get("isotonic")
    return (lambda stated: stated) if fitted is None else fitted[0].on_all


def _card_fields(model: FormalModel, assessment: Assessment | None) -> dict[str, Any]:
    """The card's group on the formal model; the best and the worst router are those of valid choices."""
    review = model.review("valid")
    of_property = {agreement.property.name: agreement for agreement in review.agreements}
    fields: dict[str, Any] = {
        "abstraction": "poll - route - speak, by gold labels",
        "states": model.unsmoothed.chain.n_states,
        "reliability": model.figures.passes,
    }
    for field, name in (("minimum_over_routers", "worst_router"), ("maximum_over_routers", "best_router")):
        agreement = of_property.get(name)
        value = None if agreement is None else agreement.results[0].value
        if value is not None:
            fields[field] = float(value.value)
    if assessment is not None:
        certificate = assessment.certificate
        fields["goodness_of_fit"] = certificate if isinstance(certificate, str) else certificate.verdict
        fields["properties"] = {
            each.property.name or each.property.text: "answered" if each.verdict is None else each.verdict.value
            for each in assessment.agreements
        }
    return fields
