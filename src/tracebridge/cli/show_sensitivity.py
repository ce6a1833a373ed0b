"""``tracebridge show MODEL --sensitivity``: which transitions a property hangs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import emit, print_table, say, write
from tracebridge.cli.named_properties import named_properties
from tracebridge.errors import EngineError, UsageError

if TYPE_CHECKING:
    from tracebridge.checking.models import Model
    from tracebridge.inference.transition_effects import TransitionEffect, TransitionEffects
    from tracebridge.pctl.ast import Property, PropertyFile

#: Transitions that are shown unless all are asked for.
TOP = 10

_DEFAULT = '"success_rate": P=? [ F "success" ];'

_NO_COUNTS = "no posterior deviations: this model has no counts of runs behind it"
_EXPANDED = (
    "no posterior deviations: in a chain whose states remember more, transitions share what was counted and are not "
    "independent; check gives the posterior of every property as a whole"
)


def property_file(text: str | None) -> PropertyFile:
    """The properties that ``--property`` names: a file, the text of one, or by default the probability of success."""
    return named_properties(_DEFAULT if text is None else text)


def show_sensitivity(
    read: Model,
    file: PropertyFile,
    constants: Mapping[str, Fraction | bool],
    *,
    by_default: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Rank the transitions of a model by what they do to each property.

    Args:
        constants: of the file. by_default: nobody asked for this property in particular. every: show all transitions.

    Raises:
        UsageError: the default property does not fit the model. PropertyError: a property does not.
    """
    from tracebridge.checking.run import require_fit, resolve_for
    from tracebridge.inference.identification import NO_END_REASON
    from tracebridge.report.findings import end_was_seen

    chain = read.chain
    if read.fitted is not None and not end_was_seen(read.fitted):
        say(f"note: {NO_END_REASON}")
    if not file.properties:
        raise UsageError("the property file holds no property")
    if by_default and not chain.has_label("success"):
        raise UsageError('this model has no label "success": name a property, such as --property \'P=? [ F "done" ]\'')
    resolved = resolve_for(chain, file, constants)
    require_fit(chain, resolved, read.fitted)
    found = [(each, _effects(read, each)) for each in resolved.properties]
    without = None if read.fit is not None else _EXPANDED if read.expanded is not None else _NO_COUNTS
    if as_json:
        limit = None if every else TOP
        emit(
            {
                "schema_version": 1,
                "kind": "tracebridge-sensitivity",
                "n_states": chain.n_states,
                "without_deviations": without,
                "properties": [_document(property_, effects, limit) for property_, effects in found],
            }
        )
        return
    for position, (property_, effects) in enumerate(found):
        if position:
            write("")
        for line in _heading(property_, effects):
            write(line)
        if not isinstance(effects, str):
            _print(effects, every=every)
    if without is not None:
        write("")
        write(without)


def _effects(read: Model, property_: Property) -> TransitionEffects | str:
    """The transitions by what they do, or why that cannot be said."""
    from tracebridge.checking.gradient import property_gradient
    from tracebridge.inference.transition_effects import transition_effects

    try:
        return transition_effects(property_gradient(read.chain, property_), read.fit)
    except EngineError as error:
        return str(error)


def _document(property_: Property, effects: TransitionEffects | str, limit: int | None) -> dict[str, Any]:
    head = {"name": property_.name, "formula": property_.text}
    return {**head, "reason": effects} if isinstance(effects, str) else {**head, **effects.to_dict(limit)}


def _heading(property_: Property, effects: TransitionEffects | str) -> Iterator[str]:
    yield f"{property_.name or 'property'}: {property_.text}"
    if isinstance(effects, str):
        yield f"  no gradient: {effects}"
        return
    known = effects.deviation is not None
    spread = f", posterior standard deviation {effects.deviation:.4g} (delta method)" if known else ""
    yield f"value {effects.value:.6g}{spread}"


def _print(effects: TransitionEffects, *, every: bool) -> None:
    limit = None if every else TOP
    columns = ["from", "to", "probability"]
    counted = effects.deviation is not None
    write("")
    write("Where engineering pays: one more percentage point on a transition, taken from the others of its state")
    rows = [
        [
            *(each.source, each.target, f"{each.probability:.6g}"),
            *([f"{each.times_seen:,}"] if counted else []),
            f"{each.slope / 100:+.4g}",
        ]
        for each in effects.transitions[:limit]
    ]
    print_table([*columns, *(["times seen"] if counted else []), "effect of +0.01"], rows)
    _left_out(effects.transitions, limit)
    if not counted:
        return
    write("")
    write("Where more traces pay: a transition being one posterior standard deviation off, and what variance it causes")
    rows = [
        [
            *(each.source, each.target, f"{each.probability:.6g}", _short(each.deviation), _short(each.spread)),
            *(_percent(each.variance_share), _percent(each.state_share)),
        ]
        for each in effects.by_spread()[:limit]
    ]
    print_table([*columns, "deviation", "effect", "variance", "of its state"], rows)
    _left_out(effects.transitions, limit)
    if effects.start_share is not None:
        write(f"the initial distribution: {_percent(effects.start_share)} of the variance")


def _left_out(transitions: Sequence[TransitionEffect], limit: int | None) -> None:
    if limit is not None and len(transitions) > limit:
        write(f"and {len(transitions) - limit} more (--all)")


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
