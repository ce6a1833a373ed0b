"""What ``tracebridge compare`` found, for people and as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import print_table, say, write

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.cli.compare import Comparison
    from tracebridge.cli.corpus import Corpus
    from tracebridge.inference import Decomposition, Difference, Interval, RowDifference
    from tracebridge.inference.regression import Contribution

_SHOWN_ROWS = 10
_SHOWN_TASKS = 5
_SHOWN_STATES = 8
_P_LEVEL = 0.05
_NO_WIDTH = "; no width, for all resamples are alike"
_TOO_SMALL = 0.0005  # an amount that would be shown as zero


def show_comparison(found: Comparison, corpora: Sequence[Corpus], fits: Sequence[ChainFit], level: float) -> None:
    """The headline, the figures, the tasks, and what the difference comes from."""
    for name, corpus, fit in zip("AB", corpora, fits, strict=True):
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in fit.counts.runs_by_outcome().items())
        write(f"{name}  {corpus.name}: {fit.counts.n_runs} runs ({outcomes})")
    write("")
    write(_headline(found, level))
    write("")
    agents = found.agents
    print_table(
        ["", "A", "B", "B - A", f"{100 * level:g} % interval", "method"],
        [
            _difference_row("pass rate", found.pass_rate),
            *(
                []
                if isinstance(found.tasks, str)
                else [_difference_row(f"pass rate, {found.tasks.n_tasks} common tasks", found.tasks.difference)]
            ),
            _difference_row("R_inf", agents.reliability),
            _difference_row(f"R({agents.d})", agents.within_budget),
            _difference_row("mean steps", agents.mean_time),
        ],
    )
    for line in _about_tasks(found):
        write(line)
    write("")
    _show_rows(found)
    say(
        "note: R_inf, R(d) and mean steps are those of chains without a prior; R(d) and what it comes from hold as far "
        "as a chain describes the runs: see tracebridge certify"
    )


def _headline(found: Comparison, level: float) -> str:
    """One sentence for a person in a hurry.

    On common tasks where they are most of those of both; a difference is then claimed only if the test says so too, for
    with few tasks their bootstrap is too sure. Else on all runs by the wider of two intervals: one is too sure where
    runs share a task, the other where there are few of them.
    """
    tasks, sure, where = found.tasks, True, ""
    wide = [each for each in (found.agents.reliability, found.pass_rate) if each.interval is not None]
    leading = max(wide, key=lambda each: _width(each) or 0.0)
    if not isinstance(tasks, str) and tasks.n_tasks >= max(tasks.n_only_first, tasks.n_only_second):
        sure, where = tasks.p_value <= 1 - level, f" on the {tasks.n_tasks} tasks of both"
        if _width(tasks.difference):  # where all resamples are alike the other intervals know better
            leading = tasks.difference
    interval = leading.interval
    within = f"{leading.difference:+.3f}" + ("" if interval is None else f" {_interval(interval)}")
    if sure and interval is not None and interval.lower > 0:
        return f"B succeeds more often than A{where}: {within}"
    if sure and interval is not None and interval.upper < 0:
        return f"B succeeds less often than A{where}: {within}"
    return f"no difference in success is shown{where}: {within}; what lies in the interval is not excluded"


def _width(difference: Difference) -> float | None:
    return None if difference.interval is None else difference.interval.width


def _difference_row(name: str, difference: Difference) -> list[str]:
    interval = difference.interval
    return [
        name,
        _number(difference.first),
        _number(difference.second),
        _signed(difference.difference),
        "none" if interval is None else _interval(interval),
        str(difference.reason) if interval is None else interval.method + ("" if interval.width else _NO_WIDTH),
    ]


def _about_tasks(found: Comparison) -> Iterator[str]:
    tasks = found.tasks
    if isinstance(tasks, str):
        yield f"tasks: {tasks}"
        return
    same = tasks.n_tasks - tasks.n_better - tasks.n_worse
    yield (
        f"tasks: B is better in {tasks.n_better}, worse in {tasks.n_worse}, equal in {same}; equal reliability in "
        f"every task has p = {tasks.p_value:.3g} ({tasks.test})"
    )
    for word, changed in (("worse", found.changed), ("better", found.changed[::-1])):
        mine = [each for each in changed if (each.gain < 0) == (word == "worse")]
        shown = ", ".join(
            f"{each.task} ({each.first[0]}/{each.first[1]} -> {each.second[0]}/{each.second[1]})"
            for each in mine[:_SHOWN_TASKS]
        )
        if mine:
            yield f"  {word}: {shown}" + (f" and {len(mine) - _SHOWN_TASKS} more" if len(mine) > _SHOWN_TASKS else "")
    if tasks.n_only_first or tasks.n_only_second:
        yield f"  left out of the pairs: {tasks.n_only_first} tasks of A alone, {tasks.n_only_second} of B alone"


def _show_rows(found: Comparison) -> None:
    """What the difference comes from: the start and the states, the largest amounts first."""
    ever, within = found.ever, found.within
    if isinstance(ever, str) or isinstance(within, str):
        write(f"what the difference comes from: not attributed: {ever if isinstance(ever, str) else within}")
        return
    budget = found.agents.d
    amounts = {row.state: float(row.amount) for row in within.rows}
    differences = {row.state: row for row in found.rows}
    write("what the difference comes from (the amounts of all states add up to it):")
    rows = [["(where runs start)", _signed(float(ever.start)), _signed(float(within.start)), "", "", ""]]
    shown = [row for row in ever.rows if _matters(row, amounts, differences)][:_SHOWN_ROWS]
    for row in shown:
        seen = differences.get(row.state)
        rows.append(
            [
                row.state,
                _signed(float(row.amount)),
                _signed(amounts[row.state]),
                "" if seen is None else _moved(seen),
                "" if seen is None else f"{seen.n_old}, {seen.n_new}",
                "no test" if seen is None or seen.p_holm is None else f"{seen.p_holm:.3g}",
            ]
        )
    names = {row.state for row in shown}
    rest = [row for row in ever.rows if row.state not in names]
    if rest:
        others = [sum(float(row.amount) for row in rest), sum(amounts[row.state] for row in rest)]
        rows.append([f"({len(rest)} more states)", *map(_signed, others), "", "", ""])
    in_all = [float(each.after) - float(each.before) for each in (ever, within)]
    rows.append(["(in all)", *map(_signed, in_all), "", "", ""])
    print_table(["state", "to R_inf", f"to R({budget})", "moved most", "seen A, B", "p (Holm)"], rows)
    for name, states in (("A", ever.only_old), ("B", ever.only_new)):
        if states:
            more = f" and {len(states) - _SHOWN_STATES} more" if len(states) > _SHOWN_STATES else ""
            write(f"states of {name} alone: {', '.join(states[:_SHOWN_STATES])}{more}")
    say(
        "note: p-values of states take transitions as independent; where tasks were tried several times they are too "
        "small"
    )


def _matters(row: Contribution, amounts: Mapping[str, float], differences: Mapping[str, RowDifference]) -> bool:
    """Whether a state adds an amount that shows, or its transitions differ beyond chance."""
    p = None if row.state not in differences else differences[row.state].p_holm
    return max(abs(float(row.amount)), abs(amounts[row.state])) >= _TOO_SMALL or (p is not None and p <= _P_LEVEL)


def _moved(row: RowDifference) -> str:
    if not row.moved or math.isnan(row.old_share) or math.isnan(row.new_share):
        return "left in one corpus only"
    return f"to {row.moved}: {row.old_share:.0%} -> {row.new_share:.0%}"


def _interval(interval: Interval) -> str:
    return f"[{_signed(interval.lower)}, {_signed(interval.upper)}]"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"  # no minus before a zero


def comparison_document(
    found: Comparison, corpora: Sequence[Corpus], level: float, replicates: int, seed: int
) -> dict[str, Any]:
    """The JSON document ``tracebridge-compare``."""
    agents, tasks = found.agents, found.tasks
    return {
        "kind": "tracebridge-compare",
        "schema_version": 1,
        "A": {"paths": corpora[0].name, **corpora[0].document()},
        "B": {"paths": corpora[1].name, **corpora[1].document()},
        "level": level,
        "replicates": replicates,
        "seed": seed,
        "headline": _headline(found, level),
        "pass_rate": _difference_document(found.pass_rate),
        "common_tasks": {"reason": tasks}
        if isinstance(tasks, str)
        else {**asdict(tasks), "difference": _difference_document(tasks.difference)},
        "R_inf": _difference_document(agents.reliability),
        "R_d": {"d": agents.d, **_difference_document(agents.within_budget)},
        "MTTA": _difference_document(agents.mean_time),
        "resampled": agents.resampled,
        "n_common_tasks_resampled": agents.n_common,
        "decomposition": {"R_inf": _decomposition_document(found.ever), "R_d": _decomposition_document(found.within)},
        "changed_tasks": [{**asdict(each), "gain": each.gain} for each in found.changed],
        "rows": [_plain(asdict(row)) for row in found.rows],
    }


def _difference_document(difference: Difference) -> dict[str, Any]:
    interval = None if difference.interval is None else difference.interval.to_dict()
    numbers = {name: getattr(difference, name) for name in ("first", "second", "difference")}
    return {**_plain(numbers), "interval": interval, "reason": difference.reason}


def _decomposition_document(found: Decomposition | str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"reason": found}
    return {
        "before": float(found.before),
        "after": float(found.after),
        "start": float(found.start),
        "rows": {row.state: float(row.amount) for row in found.rows},
        "only_A": list(found.only_old),
        "only_B": list(found.only_new),
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values; numbers that JSON does not have become words."""
    from tracebridge.checking.result import number_to_json

    return {key: number_to_json(value) if isinstance(value, float) else value for key, value in values.items()}
