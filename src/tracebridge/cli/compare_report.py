"""What ``tracebridge compare`` found, for people and as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import print_table, say, write
from tracebridge.traces.problems import counted

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
_TOO_SMALL = 0.0005  # an amount that would be shown as zero


def show_comparison(found: Comparison, corpora: Sequence[Corpus], fits: Sequence[ChainFit], level: float) -> None:
    """The headline, the figures, the tasks, and what the difference comes from."""
    for name, corpus, fit in zip("AB", corpora, fits, strict=True):
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in fit.counts.runs_by_outcome().items())
        write(f"{name}  {corpus.name}: {counted(fit.counts.n_runs, 'run')} ({outcomes})")
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
                else [
                    _difference_row(f"pass rate, {counted(found.tasks.n_tasks, 'common task')}", found.tasks.difference)
                ]
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

    On common tasks where they are most of those of both; a difference is then claimed only if the test says so too.
    Else on all runs. Of the intervals that are about the same runs the widest counts: one is too sure where runs share
    a task, another where there are few of them or where an agent never varies.
    """
    tasks, sure, where = found.tasks, True, ""
    about = [found.agents.reliability, found.pass_rate]
    if not isinstance(tasks, str) and tasks.n_tasks >= max(tasks.n_only_first, tasks.n_only_second):
        sure, where = tasks.p_value <= 1 - level, f" on the {counted(tasks.n_tasks, 'task')} of both"
        all_common = tasks.n_only_first == tasks.n_only_second == 0
        about = [tasks.difference, *([found.agents.reliability] if all_common else [])]
    leading = max(about, key=lambda each: _width(each) or 0.0)
    interval = leading.interval
    within = f"{leading.difference:+.3f}" + ("" if interval is None else f" {_interval(interval)}")
    few = "".join(f"; {words}" for words in _few(found))
    if sure and interval is not None and interval.lower > 0:
        return f"B succeeds more often than A{where}: {within}{few}"
    if sure and interval is not None and interval.upper < 0:
        return f"B succeeds less often than A{where}: {within}{few}"
    return f"no difference in success is shown{where}: {within}; what lies in the interval is not excluded{few}"


def _few(found: Comparison) -> Iterator[str]:
    """What makes every interval unsure."""
    from tracebridge.inference.few_units import FEW_UNITS, too_few

    agents = found.agents
    for name, number in zip("AB", found.n_runs, strict=True):
        if number == 1:
            yield f"{name} is a single run, which says nothing about how runs vary"
    if min(found.n_runs) > 1 and min(agents.n_units) < FEW_UNITS:
        yield too_few(min(agents.n_units), agents.resampled.removesuffix("s"))


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
        str(difference.reason) if interval is None else interval.method,
    ]


def _about_tasks(found: Comparison) -> Iterator[str]:
    from tracebridge.inference.certificate import p_text

    tasks = found.tasks
    if isinstance(tasks, str):
        yield f"tasks: {tasks}"
        return
    p = f"= {tasks.p_value:.3g}" if tasks.deals is None else p_text(tasks.p_value, tasks.deals)
    same = tasks.n_tasks - tasks.n_better - tasks.n_worse
    yield (
        f"tasks: B is better in {tasks.n_better}, worse in {tasks.n_worse}, equal in {same}; equal reliability in "
        f"every task has p {p} ({tasks.test})"
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
        first = counted(tasks.n_only_first, "task")
        yield f"  left out of the pairs: {first} of A alone, {tasks.n_only_second} of B alone"


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
                _p_of(seen),
            ]
        )
    names = {row.state for row in shown}
    rest = [row for row in ever.rows if row.state not in names]
    if rest:
        others = [sum(float(row.amount) for row in rest), sum(amounts[row.state] for row in rest)]
        rows.append([f"({counted(len(rest), 'more state')})", *map(_signed, others), "", "", ""])
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


def _p_of(row: RowDifference | None) -> str:
    from tracebridge.inference.certificate import p_text
    from tracebridge.inference.regression import DEFAULT_DEALS

    if row is None or row.p_holm is None:
        return "no test"
    return p_text(row.p_holm, DEFAULT_DEALS, least=row.p_value).removeprefix("= ")


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
        "n_resampled": list(agents.n_units),
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
