"""``tracebridge whatif``: what a local change of a chain does to its reliability and to every property."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, progress_line, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.named_properties import named_properties
from tracebridge.cli.options import PATH, checking, common
from tracebridge.cli.values import parse_constants
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.chain import MarkovChain
    from tracebridge.chain.edit import Redirection, RowChange
    from tracebridge.checking.models import Model
    from tracebridge.closedform.sensitivity import Effect, NormBound, RowLeverage

_SHOWN_ROWS = 15


@click.command(
    cls=Verb,
    epilog="\b\nExample: half of the transitions out of a state go back to another one\n"
    '  tracebridge whatif chain.json --redirect "search:0.5->plan" --property my.props',
)
@click.argument("chain", type=PATH)
@click.option(
    "--redirect",
    "redirects",
    multiple=True,
    metavar="STATE:SHARE->TARGET",
    help="Send this share of a state's transitions to another state or outcome, as in tool_error:0.3->fallback; with "
    "STATE->SUCCESSOR:SHARE->TARGET only of those to one successor. May be given more than once; every share is of the "
    "row as it is. In a chain whose states remember more than their category, the name of a category means all of its "
    "copies.",
)
@click.option(
    "--d", "budget", type=click.IntRange(min=0), default=10, show_default=True, help="The step budget d of R(d)."
)
@click.option(
    "--property",
    "properties",
    metavar="FILE",
    type=PATH,
    help="Also check this property file on both chains with the engines.",
)
@checking
@common
def whatif(
    chain: str,
    redirects: tuple[str, ...],
    budget: int,
    properties: str | None,
    engines: tuple[str, ...],
    prism: str | None,
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> int:
    """Show what redirecting transitions of CHAIN would change, exactly and to first order.

    R_inf is the probability of success, R(d) that of success within d steps, MTTA the mean number of steps of a run.
    Without --redirect the states are ranked by how much a change of their transitions would matter; of a chain whose
    states remember more than their category, the categories are, each with all of its copies.
    """
    from tracebridge.chain.edit import edited, parse_redirection, row_changes
    from tracebridge.checking.models import read_model
    from tracebridge.inference.identification import NO_END_REASON
    from tracebridge.report.findings import end_was_seen

    model = read_model(chain)
    if model.fitted is not None and not end_was_seen(model.fitted):
        say(f"note: {NO_END_REASON}")
    head = {"kind": "tracebridge-whatif", "schema_version": 1, "model": chain, "exact": exact, "d": budget}
    if not redirects:
        if properties is not None:
            raise click.UsageError("--property needs a --redirect to compare with")
        ranking = _ranking(model.chain, exact=exact)
        counts = _copy_counts(model.chain)
        if as_json:
            numbers = {"copies": counts} if counts else {}
            emit({**head, "ranking": [_row_document(row) for row in ranking], **numbers})
        else:
            _print_ranking(ranking)
            if counts:
                say("each state is a category with all of its copies: visits and changes are sums over them")
        return 0
    moves = [parse_redirection(text, model.chain) for text in redirects]
    remarks = list(_copy_remarks(model.chain, moves))
    changes = row_changes(model.chain, moves)
    effects, bound = _effects(model.chain, changes, budget, exact=exact)
    after = edited(model.chain, changes)
    checked: list[tuple[Agreement, Agreement]] = []
    if properties is not None:
        checked = _checked(
            model, after, properties, engines, prism=prism, exact=exact, constants=constants, time_limit=time_limit
        )
    code = _exit_code(checked)
    if as_json:
        from tracebridge.checking.result import number_to_json

        emit(
            {
                **head,
                "redirections": [str(move) for move in moves],
                **({"remarks": remarks} if remarks else {}),
                "changes": {
                    change.state: {name: number_to_json(value) for name, value in change.by.items()}
                    for change in changes
                },
                "effects": {name: _effect_document(effect) for name, effect in effects.items()},
                "norm_bound": {
                    "value": None if bound.value is None else number_to_json(bound.value),
                    "smallness": number_to_json(bound.smallness),
                    "reason": bound.reason,
                },
                "properties": [{"before": old.to_dict(), "after": new.to_dict()} for old, new in checked],
                "exit_code": code,
            }
        )
        return code
    _print_effects(effects, bound, budget)
    for remark in remarks:
        say(remark)
    if checked:
        _print_properties(checked)
    return code


# ---------------------------------------------------------------- computing


def _effects(
    chain: MarkovChain, changes: Sequence[RowChange], budget: int, *, exact: bool
) -> tuple[dict[str, Effect], NormBound]:
    from tracebridge.chain import AbsorbingChain
    from tracebridge.closedform.sensitivity import mean_time_effect, norm_bound, reliability_effect

    form = AbsorbingChain(chain=chain)
    effects = {
        "R_inf": reliability_effect(form, changes, exact=exact),
        "R_d": reliability_effect(form, changes, d=budget, exact=exact),
        "MTTA": mean_time_effect(form, changes, exact=exact),
    }
    return effects, norm_bound(form, changes, exact=exact)


def _ranking(chain: MarkovChain, *, exact: bool) -> list[RowLeverage]:
    from tracebridge.closedform.category_start import category_ranking
    from tracebridge.closedform.sensitivity import reliability_gradient

    return category_ranking(reliability_gradient(chain, exact=exact))


def _copy_counts(chain: MarkovChain) -> dict[str, int]:
    """The number of copies of each category; empty for a plain chain."""
    from tracebridge.chain.expanded.copies import category_copies

    return {name: len(positions) for name, positions in category_copies(chain).items()}


def _copy_remarks(chain: MarkovChain, moves: Sequence[Redirection]) -> Iterator[str]:
    """Which states the names in redirections mean, where a name means several, or one of several."""
    counts = _copy_counts(chain)
    if not counts:
        return
    for source in dict.fromkeys(move.state for move in moves):
        if source in counts:
            yield f"{source}: all of its copies were changed ({counted(counts[source], 'state')})"
        else:
            yield f"{source}: this state alone was changed; the name of its category means all of its copies"
    for target in dict.fromkeys(move.target for move in moves):
        if target in counts:
            yield (
                f"to {target}: to the copies of it that each state leads to anyway, as what is remembered goes on with "
                "the step"
            )


def _checked(
    model: Model,
    after: MarkovChain,
    properties: str,
    engines: tuple[str, ...],
    *,
    prism: str | None,
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
) -> list[tuple[Agreement, Agreement]]:
    """Every property on the chain before and after the change."""
    from dataclasses import replace

    from tracebridge.agreement import compare
    from tracebridge.checking import CheckResult, default_engines
    from tracebridge.checking.models import model_for
    from tracebridge.checking.run import iter_check

    file = named_properties(properties)
    values = parse_constants(constants)
    names = engines or default_engines(prism)
    found = []
    with progress_line() as progress:
        for chain in (model.chain, after):
            results: list[CheckResult] = []
            fitting = model_for(replace(model, described=chain), file)
            for result in iter_check(
                fitting, file, engines=names, exact=exact, constants=values, time_limit=time_limit, prism=prism
            ):
                progress(f"{result.engine}: {result.property.name or result.property.text}")
                results.append(result)
            found.append(compare(results))
    return list(zip(*found, strict=True))


def _exit_code(checked: Sequence[tuple[Agreement, Agreement]]) -> int:
    """That of the verdicts on the changed chain, and of engines that disagree or fail on either."""
    from tracebridge.agreement import worst_exit_code

    codes = [new.exit_code for _, new in checked] + [old.exit_code for old, _ in checked if old.exit_code != 1]
    return worst_exit_code(codes)


# ---------------------------------------------------------------- showing


def _print_effects(effects: dict[str, Effect], bound: NormBound, budget: int) -> None:
    names = {"R_inf": "R_inf", "R_d": f"R({budget})", "MTTA": "MTTA (steps)"}
    print_table(
        ["", "before", "after", "change", "first order"],
        [
            [
                names[key],
                *map(_number, (effect.before, effect.after)),
                _signed(effect.change),
                _signed(effect.first_order),
            ]
            for key, effect in effects.items()
        ],
    )
    if bound.value is None:
        say(f"norm bound on the change of R_inf: none ({bound.reason})")
    else:
        empty = ", which says nothing" if bound.value >= 1 else ""
        say(f"norm bound on the change of R_inf: {_number(bound.value)}{empty} (loose; the change above is exact)")


def _print_properties(checked: Sequence[tuple[Agreement, Agreement]]) -> None:
    from tracebridge.report.table import property_name, verdict_columns, verdict_rows

    for title, agreements in (("before", [old for old, _ in checked]), ("after", [new for _, new in checked])):
        write("")
        print_table(verdict_columns(agreements), verdict_rows(agreements), title=title)
    for position, (old, new) in enumerate(checked, start=1):
        if old.verdict is not new.verdict:
            say(f"{property_name(new, position)}: {old.verdict} before, {new.verdict} after")
        for when, agreement in (("before", old), ("after", new)):
            if agreement.agree is False:
                say(f"{property_name(agreement, position)}, {when}: THE ENGINES DISAGREE by {agreement.gap}")
            elif agreement.reason:
                say(f"{property_name(agreement, position)}, {when}: {agreement.reason}")


def _print_ranking(ranking: Sequence[RowLeverage]) -> None:
    write("How R_inf depends on each state's transitions, and its first-order change for 1 % of them redirected:")
    print_table(
        ["state", "visits", "leverage", "best to", "change", "worst to", "change"],
        [
            [
                row.state,
                _number(row.visits, 4),
                _number(row.leverage, 4),
                row.best,
                _signed(row.gain / 100, 3),
                row.worst,
                _signed(row.loss / 100, 3),
            ]
            for row in ranking[:_SHOWN_ROWS]
        ],
    )
    if len(ranking) > _SHOWN_ROWS:
        say(f"and {len(ranking) - _SHOWN_ROWS} more states; --json has them all")


def _number(value: float | Fraction, digits: int = 6) -> str:
    from tracebridge.report.table import format_number

    return format_number(value, digits)


def _signed(value: float | Fraction, digits: int = 6) -> str:
    return ("+" if value > 0 else "") + _number(value, digits)


def _effect_document(effect: Effect) -> dict[str, Any]:
    from tracebridge.checking.result import number_to_json

    return {name: number_to_json(getattr(effect, name)) for name in ("before", "after", "change", "first_order")}


def _row_document(row: RowLeverage) -> dict[str, Any]:
    from tracebridge.checking.result import number_to_json

    return {
        "state": row.state,
        "visits": number_to_json(row.visits),
        "leverage": row.leverage,
        "best": row.best,
        "gain": number_to_json(row.gain),
        "worst": row.worst,
        "loss": number_to_json(row.loss),
    }
