"""Certificates of richer chains and the ladder for people: the same content as lines for a terminal and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING

from tracebridge.inference.expanded.ladder import JUDGED_ON, SCOPES
from tracebridge.report.certificate import bare_p, departure_text
from tracebridge.report.columns import aligned
from tracebridge.report.markdown import bullets, escape, printable, table

if TYPE_CHECKING:
    from tracebridge.inference.expanded.certificate import ModelCertificate, ModelStatistic
    from tracebridge.inference.expanded.ladder import Ladder, Rung
    from tracebridge.inference.expanded.scope import Scope

_VERDICTS = {
    "accept": "ACCEPT: nothing contradicts the chain, and departures of the stated size would have been seen",
    "reject": "REJECT: the chain does not describe these runs",
    "inconclusive": "INCONCLUSIVE: nothing contradicts the chain, but a departure could have been missed",
    "refused": "NO VERDICT",
}

_LICENSES = {
    "timing": "R(d), R_inf, MTTA and properties of when and how runs end",
    "path": "properties that name states on the way, and counterfactuals",
}

_COLUMNS = ("statistic", "p", "departure", "noise (95 %)", "seen from", "rests on")
_RUNGS = ("model", "states", "parameters", "kappa", "gain, timing", "gain, path", "kept for", "remark")
_NUMBERED = ("#", "model", "states", "params", "kappa", "gain, timing", "gain, path", "timing", "path")
_TESTS = ("scope", "part", "model", "verdict", "p", "largest gap", "noise (95 %)")
_LONGEST_IN_COLUMN, _LONGEST_IN_TEXT = 34, 60
_WIDTH = 116
_GAINS = "Gains are of held-out log-likelihood over the first-order chain, nats a run, with their standard errors."
_COUNTED = (
    "States count success and failure. Kappa is the weight, in steps, that coarser pasts have in what follows a step "
    "after a finer one: the larger, the smoother."
)
_KEPT = "kept: none foretells surely better; < 4: number 4 does; no > 1: it contains number 1 and foretells no better."


def model_certificate_markdown(certificate: ModelCertificate) -> str:
    """The certificate as Markdown without a heading of its own; names from the input are escaped."""
    parts = [f"Tested: {escape('; '.join(_tested(certificate)))}."]
    for scope in SCOPES:
        parts.append(f"**{_heading(certificate, scope)}.**")
        parts.append(bullets(escape(line) for line in _said(certificate, scope)))
        parts.append(table(_COLUMNS, _rows(certificate, scope)))
    if found := list(_where(certificate)):
        parts += ["Where the runs depart from the chain:", bullets(escape(line) for line in found)]
    parts.append(bullets(escape(note) for note in certificate.notes))
    return "\n\n".join(part for part in parts if part)


def model_certificate_lines(certificate: ModelCertificate) -> list[str]:
    """The certificate as lines of plain text, without a line end; control characters from the input are visible."""
    lines = ["tested:", *(f"  {part}" for part in _tested(certificate))]
    for scope in SCOPES:
        lines += ["", _heading(certificate, scope), *(f"  {line}" for line in _said(certificate, scope))]
        lines += ["", *aligned(_COLUMNS, _rows(certificate, scope))]
    if found := list(_where(certificate)):
        lines += ["", "where the runs depart from the chain:", *(f"  {line}" for line in found)]
    lines += ["", *(f"note: {note}" for note in certificate.notes)]
    return [printable(line) for line in lines]


def ladder_markdown(ladder: Ladder) -> str:
    """The ladder as Markdown without a heading of its own."""
    parts = [
        escape(_parts(ladder)),
        f"{_GAINS} {_COUNTED}",
        table(_RUNGS, [[*row] for row in _rung_rows(ladder)]),
        bullets(f"not fitted: {escape(name)}: {escape(reason)}" for name, reason in ladder.skipped),
        f"Every certificate that was asked for, in order{_levels(ladder)}:",
        table(_TESTS, _test_rows(ladder, _LONGEST_IN_TEXT)),
        bullets(escape(line) for line in ladder_outcome(ladder)),
    ]
    return "\n\n".join(part for part in parts if part)


def ladder_lines(ladder: Ladder) -> list[str]:
    """The ladder as lines of plain text."""
    lines = [_parts(ladder), _GAINS, _COUNTED, _KEPT, "", *aligned(_NUMBERED, _numbered_rows(ladder))]
    lines += [f"not fitted: {name}: {reason}" for name, reason in ladder.skipped]
    lines += [
        "",
        f"every certificate that was asked for, in order{_levels(ladder)}:",
        *aligned(_TESTS, _test_rows(ladder, _LONGEST_IN_COLUMN)),
        "",
    ]
    lines += ladder_outcome(ladder)
    return [part for line in lines for part in (_wrapped(printable(line)) if len(line) > _WIDTH else [printable(line)])]


def ladder_outcome(ladder: Ladder) -> Iterator[str]:
    """What came of it, one sentence a scope, and what is gone on with."""
    for scope in SCOPES:
        passed, final = ladder.passed.get(scope), ladder.final(scope)
        if passed is None or final is None:
            against = [
                f"{_short(test.form)}, {JUDGED_ON[test.part]}: {' '.join(test.certificate.reasons(scope))}"
                for test in ladder.tests
                if test.scope == scope and test.verdict in ("reject", "refused")
            ]
            reasons = "; ".join(against)
            yield f"{scope}: nothing passes ({reasons or 'no rung was kept'})"
        elif final.verdict(scope) in ("reject", "refused"):
            yield (
                f"{scope}: {_short(passed)} was rejected neither on the second part nor on all runs, but is on the "
                f"third part (p = {final[scope].p:.3g}): no certificate"
            )
        else:
            accepted = all(
                test.verdict == "accept" for test in ladder.tests if (test.scope, test.form) == (scope, passed)
            )
            missed = "" if accepted else "would, if departures could not have been missed on parts of this size, "
            yield (
                f"{scope}: {_short(passed)} is not rejected on the second part, on all runs, nor on the third part, "
                f"which nothing was chosen by (p = {final[scope].p:.3g}); that {missed}"
                f"{'licenses' if accepted else 'license'} "
                f"{_LICENSES[scope]}"
            )
    added = ""
    if ladder.classes > 1:
        added = f", with classes:{ladder.classes} of tasks, which repeated trials show and no certificate tests"
    yield f"what follows is of {ladder.form}{added}, fitted to all runs"


def _parts(ladder: Ladder) -> str:
    runs, blocks = ladder.runs, ladder.blocks
    if runs == blocks:
        return (
            f"Split by run, seed {ladder.seed}: {runs[0]} runs to choose by, {runs[1]} to certify on, {runs[2]} for "
            "one last test."
        )
    return (
        f"Split by task, seed {ladder.seed}: {runs[0]} runs of {blocks[0]} tasks to choose by, {runs[1]} of "
        f"{blocks[1]} to certify on, {runs[2]} of {blocks[2]} for one last test."
    )


def _rung_rows(ladder: Ladder) -> list[list[str]]:
    return [[*_figures(rung, rung.form), ", ".join(rung.kept) or "-", rung.remark] for rung in ladder.rungs]


def _numbered_rows(ladder: Ladder) -> list[list[str]]:
    """The same for a terminal: what a rung is beaten by is its number."""
    number = {rung.name: str(i) for i, rung in enumerate(ladder.rungs, start=1)}
    rows = []
    for rung in ladder.rungs:
        name = rung.form if len(rung.form) <= _LONGEST_IN_COLUMN else rung.name
        rows.append(
            [
                number[rung.name],
                *_figures(rung, _short(name, _LONGEST_IN_COLUMN)),
                *(_standing(rung, scope, number) for scope in SCOPES),
            ]
        )
    return rows


def _figures(rung: Rung, name: str) -> list[str]:
    return [
        name,
        "too many" if rung.n_states is None else str(rung.n_states),
        str(rung.n_parameters),
        f"{rung.kappa:g}",
        *(f"{rung.gains[scope]:+.2f} ({rung.errors[scope]:.2f})" for scope in SCOPES),
    ]


def _standing(rung: Rung, scope: Scope, number: Mapping[str, str]) -> str:
    if scope in rung.kept:
        return "kept"
    reason = rung.dismissed.get(scope)
    if reason is None:
        return "-"
    return f"{'no >' if reason.contained else '<'} {number[reason.by]}"


def _levels(ladder: Ladder) -> str:
    parts: dict[float, list[str]] = {}
    for test in ladder.tests:
        on = parts.setdefault(test.certificate.level, [])
        if JUDGED_ON[test.part] not in on:
            on.append(JUDGED_ON[test.part])
    said = ", ".join(f"of {' and '.join(on)} at {level:g}" for level, on in parts.items())
    return f" (level {said})" if said else ""


def _test_rows(ladder: Ladder, most: int) -> list[list[str]]:
    rows = []
    for test in ladder.tests:
        gap = test.certificate.timing.statistics[0]
        p = bare_p(test.certificate[test.scope].p, test.certificate.replicates)
        rows.append(
            [test.scope, test.part, _short(test.form, most), test.verdict, p, f"{gap.effect:.3g}", f"{gap.noise:.3g}"]
        )
    return rows


def _short(form: str, most: int = _LONGEST_IN_TEXT) -> str:
    """The name of a form without a long list of bins."""
    return form if len(form) <= most else f"{form[: most - 3]}..."


def _wrapped(line: str) -> list[str]:
    return wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _heading(certificate: ModelCertificate, scope: Scope) -> str:
    adequate = ""
    if certificate.verdict(scope) == "reject" and certificate.adequate(scope):
        adequate = "; adequate within tolerance, which is no pass: every departure is small, and so is the noise"
    return f"{scope} (licenses {_LICENSES[scope]}): {_VERDICTS[certificate.verdict(scope)]}{adequate}"


def _said(certificate: ModelCertificate, scope: Scope) -> list[str]:
    return list(certificate.reasons(scope))


def _tested(certificate: ModelCertificate) -> list[str]:
    runs = ", ".join(f"{count} {outcome}" for outcome, count in certificate.runs.items())
    states = "too many states to build" if certificate.n_states is None else f"{certificate.n_states} states"
    kappa = f"kappa {certificate.kappa:g} (the weight of coarser pasts, in steps)"
    parts = [
        f"that runs are independent draws from one chain {certificate.form}",
        f"{runs}; {states} with success and failure, {certificate.n_parameters} parameters, {kappa}",
        f"parametric bootstrap, refitted each time, {certificate.replicates} replicates, seed {certificate.seed}",
        f"p at level {certificate.level:g}",
    ]
    if certificate.held_out:
        parts.insert(2, "fitted to some runs, judged on others")
    return parts


def _rows(certificate: ModelCertificate, scope: Scope) -> list[list[str]]:
    return [
        [
            each.name,
            bare_p(each.p, certificate.replicates),
            departure_text(each),
            f"{each.noise:.3g}",
            _seen_from(each),
            f"{each.n_events} {'ended runs' if each.unit == 'gap' else 'steps'}",
        ]
        for each in certificate[scope].statistics
    ]


def _seen_from(statistic: ModelStatistic) -> str:
    if statistic.resolution is None:
        return "nothing: it cannot vary"
    return "no size" if math.isinf(statistic.resolution) else f"{statistic.resolution:.2g}"


def _where(certificate: ModelCertificate) -> Iterator[str]:
    if certificate.verdict("timing") == "reject" or certificate.verdict("path") == "reject":
        curve = certificate.curve
        yield (
            f"largest gap of the curves: {curve.outcome} within {curve.step} steps, {curve.observed:.3g} observed "
            f"(Aalen-Johansen) against {curve.fitted:.3g} by the chain"
        )
    for name in dict.fromkeys(share.statistic for share in certificate.shares):
        mine = [share for share in certificate.shares if share.statistic == name]
        yield f"{name}, share of each state: {', '.join(f'{share.state} {share.share:.0%}' for share in mine)}"
    for each in certificate.departures:
        yield (
            f"{each.statistic} {each.context}: {each.state} -> {each.following} {each.observed} times, "
            f"{each.expected:.1f} expected ({each.residual:+.1f} standard deviations)"
        )
