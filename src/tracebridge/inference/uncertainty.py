"""What the data say about each property: posterior draws propagated through it, and the rule that decides it.

A property with ``//@ credible L`` is satisfied if it holds at the point estimate and in at least the share L of the
draws, and violated if it fails there and in at least the share L of them; else it is undecided, with the numbers. For a
lone threshold this says that the one-sided credible bound of level L of its value lies on the same side as the point
estimate: both tails are not asked for, because a threshold is exceeded on one side only. Nested thresholds are
evaluated again in every draw.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.checking.result import Verdict, number_to_json
from tracebridge.checking.run import require_fit, resolve_for
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import EngineError, Location, Problem, PropertyError, UsageError
from tracebridge.html_table import html_table
from tracebridge.inference.batched_evaluation import TIE, PropertyDraws, evaluate_draws, one_by_one
from tracebridge.inference.expanded.posterior import FitDraws, no_draws
from tracebridge.inference.identification import NO_VARIATION_REASON, is_unvaried
from tracebridge.inference.intervals import Interval, equal_tailed
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.pctl import fold_steps, parse_properties, read_properties
from tracebridge.pctl.ast import PropertyFile

if TYPE_CHECKING:
    from pathlib import Path

    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.pctl.ast import Formula, Property

DEFAULT_LEVEL = 0.95

#: Formulas with their values in the draws and for the fitted chain.
KnownDraws = dict["Formula", tuple["PropertyDraws | EngineError", "PropertyDraws | EngineError"]]

#: Properties with operators that take one chain at a time are evaluated on so many of the draws, the first ones.
SLOW_DRAWS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyUncertainty:
    """A property under the posterior of a fitted chain.

    Attributes:
        property: the property, resolved. level: of the interval and the rule. credible: whether the property asks for
            the rule.
        point, holds_at_point: value and truth for the fitted chain; None where there is none, or it is undefined.
        mean: the posterior mean of the value. interval: equal-tailed. quantile_errors: Monte-Carlo standard errors of
            its two ends. All None for a property without a number of its own.
        satisfied, violated: shares of the draws in which it holds and fails, ``P(satisfied | data)`` and its
            counterpart; None for a query. They do not sum to one where draws have no truth value.
        draws, seed: how many draws, from which seed. undefined: draws in which the value or the truth is undefined;
            mean and interval leave them out.
        verdict: by the rule above; None for a query. reason: why it is undecided or was not evaluated. There is no
            mean, interval or share where a chain without a prior has the same value in all draws, which the notes say.
        notes: what else to know, one sentence each.
    """

    property: Property
    level: float
    credible: bool
    seed: int
    draws: int = 0
    undefined: int = 0
    point: float | None = None
    holds_at_point: bool | None = None
    mean: float | None = None
    interval: Interval | None = None
    quantile_errors: tuple[float, float] | None = None
    satisfied: float | None = None
    violated: float | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    notes: tuple[str, ...] = field(default=())

    @builtins.property  # the field called property hides it
    def share_error(self) -> float | None:
        """The Monte-Carlo standard error of the share of draws that satisfy the property."""
        if self.satisfied is None:
            return None
        return math.sqrt(self.satisfied * (1 - self.satisfied) / self.draws)

    def __repr__(self) -> str:
        name = self.property.name or self.property.text
        parts = [] if self.interval is None else [f"{self.interval.lower:.4g}..{self.interval.upper:.4g}"]
        parts += [] if self.satisfied is None else [f"P(satisfied) {self.satisfied:.4g}"]
        return f"<PropertyUncertainty of {name}: {', '.join([*parts, str(self.verdict or 'answered')])}>"

    def _repr_html_(self) -> str:
        cells = [self.property.name or "", self.property.text[:200], str(self.verdict or "answered")]
        cells += ["" if x is None else f"{x:.4g}" for x in (self.point, self.mean)]
        cells += ["" if self.interval is None else f"[{self.interval.lower:.4g}, {self.interval.upper:.4g}]"]
        cells += ["" if self.satisfied is None else f"{self.satisfied:.4g}"]
        heads = ["property", "formula", "verdict", "point", "mean", f"{self.level:.6g} interval", "P(satisfied | data)"]
        return html_table(heads, [cells])

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        numbers = {name: getattr(self, name) for name in ("point", "mean", "satisfied", "violated", "share_error")}
        errors = self.quantile_errors
        return {
            "name": self.property.name,
            "formula": self.property.text,
            "level": self.level,
            "credible": self.credible,
            "draws": self.draws,
            "seed": self.seed,
            "undefined": self.undefined,
            "holds_at_point": self.holds_at_point,
            **{name: None if value is None else number_to_json(value) for name, value in numbers.items()},
            "interval": None if self.interval is None else self.interval.to_dict(),
            "quantile_errors": None if errors is None else [number_to_json(error) for error in errors],
            "verdict": None if self.verdict is None else str(self.verdict),
            "reason": self.reason,
            "notes": list(self.notes),
        }


def property_uncertainty(
    fit: ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    *,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    level: float = DEFAULT_LEVEL,
    constants: Mapping[str, Fraction | bool] | None = None,
    known: KnownDraws | None = None,
    source: FitDraws | None = None,
) -> list[PropertyUncertainty]:
    """Propagate posterior draws of a fit through every property of a file; all properties see the same draws.

    Args:
        fit: the fitted chain with its counts, or with its runs. properties: a property file, the path of one, or the
            text of one.
        draws: how many; see `SLOW_DRAWS` for properties that are not evaluated side by side. Fewer of large chains and
            of those that are refitted, which the notes say.
        seed: of the draws. level: of intervals, and of the rule where a property does not give its own.
        constants: values for constants of the file.
        known: formulas that were evaluated before with this fit, seed and number of draws; what is new is added.
        source: the draws of the fit, which remember refits, for who asks more than once.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain.
        UsageError: for a level that is none, or no draw; for a fit without its runs, where these are drawn again.
    """
    if not 0.5 <= level < 1:
        raise UsageError(f"a level that decides is at least 0.5 and below 1, not {level!r}")
    resolved = resolved_properties(fit, properties, constants)
    known = {} if known is None else known
    for each in resolved:
        if missing := no_draws(fit, each.formula):
            known[each.formula] = EngineError(missing), EngineError(missing)
    new = [each for each in resolved if each.formula not in known]
    source = source or FitDraws.of_fit(fit)
    number = source.number(draws)
    outcomes = draw_properties(new, source.draws(number, seed), number)
    points = draw_properties(new, [ChainStack.of_chain(fit.chain)], 1, tie=TIE)
    for each, outcome, point in zip(new, outcomes, points, strict=True):
        known[each.formula] = outcome, point
    found = [summarised(each, *known[each.formula], level=level, seed=seed, method=source.method) for each in resolved]
    found = [
        _without_variation(each) if each.interval is not None and is_unvaried(fit, each.interval) else each
        for each in found
    ]
    if number == draws:
        return found
    fewer = f"{number} draws and not {draws:,}: {source.reason}"
    return [replace(each, notes=(*each.notes, fewer)) for each in found]


def resolved_properties(
    fit: ChainFit | ExpandedFit, properties: PropertyFile | Path | str, constants: Mapping[str, Fraction | bool] | None
) -> list[Property]:
    """The properties of a file as they are about the chain of a fit.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain.
    """
    if not isinstance(properties, PropertyFile):
        properties = parse_properties(properties) if isinstance(properties, str) else read_properties(properties)
    file = resolve_for(fit.chain, properties, constants or {})
    require_fit(fit.chain, file, fit)
    for each in file.properties:
        credible_level(each, path=file.path)
    return [replace(each, formula=fold_steps(each.formula)) for each in file.properties]


def draw_properties(
    properties: Sequence[Property], stacks: Iterable[ChainStack], draws: int, *, tie: float = 0.0
) -> list[PropertyDraws | EngineError]:
    """Each property in each draw, or the error that one of its operators cannot be evaluated.

    Args:
        stacks: the draws in chunks; each is looked at by every property before the next is made. draws: their number.
        tie: see `evaluate_draws`.
    """
    limits = [min(draws, SLOW_DRAWS) if one_by_one(each.formula) else draws for each in properties]
    parts: list[list[PropertyDraws]] = [[] for _ in properties]
    errors: dict[int, EngineError] = {}
    done = 0
    for stack in stacks:
        for i, (each, limit) in enumerate(zip(properties, limits, strict=True)):
            if i in errors or done >= limit:
                continue
            part = stack.select(np.arange(min(stack.draws, limit - done)))
            try:
                parts[i].append(evaluate_draws(part, each.formula, tie=tie))
            except EngineError as error:
                errors[i] = error
        done += stack.draws
    return [errors[i] if i in errors else PropertyDraws.joined(part) for i, part in enumerate(parts)]


def summarised(
    property_: Property,
    outcome: PropertyDraws | EngineError,
    point: PropertyDraws | EngineError,
    *,
    level: float,
    seed: int,
    method: str,
) -> PropertyUncertainty:
    """The numbers of one property from its draws and from the fitted chain.

    Raises:
        PropertyError: see `credible_level`.
    """
    asked = credible_level(property_)
    rule = level if asked is None else asked
    known: dict[str, Any] = {"property": property_, "level": rule, "credible": asked is not None, "seed": seed}
    if isinstance(outcome, EngineError):
        return PropertyUncertainty(**known, verdict=Verdict.UNSUPPORTED, reason=str(outcome))
    if isinstance(point, EngineError):
        return PropertyUncertainty(**known, verdict=Verdict.UNSUPPORTED, reason=str(point))
    draws = len(next(part for part in (outcome.values, outcome.holds) if part is not None))
    undefined = np.zeros(draws, dtype=np.bool_)
    notes = _slow_notes(property_, draws)
    numbers: dict[str, Any] = {}
    if outcome.values is not None:
        undefined |= np.isnan(outcome.values)
        numbers |= _of_values(outcome.values, rule, method)
        if point.values is not None and not math.isnan(point.values[0]):
            numbers["point"] = float(point.values[0])
    if outcome.holds is None or outcome.fails is None:
        count = int(undefined.sum())
        return PropertyUncertainty(
            **known, **numbers, draws=draws, undefined=count, notes=(*notes, *_undefined_notes(count))
        )
    undefined |= ~outcome.holds & ~outcome.fails
    if undefined.all():
        known |= {"draws": draws, "undefined": draws, "verdict": Verdict.UNDECIDED, "reason": _UNDEFINED}
        return PropertyUncertainty(**known, **numbers, notes=(*notes, *_undefined_notes(draws)))
    satisfied, violated = float(outcome.holds.mean()), float(outcome.fails.mean())
    at_point = None
    if point.holds is not None and point.fails is not None and (point.holds[0] or point.fails[0]):
        at_point = bool(point.holds[0])
    verdict, reason = decided(satisfied, violated, at_point, rule)
    error = math.sqrt(max(satisfied * (1 - satisfied), violated * (1 - violated)) / draws)
    for share, what in ((satisfied, "holds"), (violated, "fails")):
        if asked is not None and error and abs(share - rule) < 2 * error:
            notes.append(
                f"the share of draws in which it {what} is within two Monte-Carlo standard errors ({error:.2g}) of "
                f"{rule:.6g}: more draws may decide otherwise"
            )
    count = int(undefined.sum())
    return PropertyUncertainty(
        **known,
        **numbers,
        draws=draws,
        undefined=count,
        holds_at_point=at_point,
        satisfied=satisfied,
        violated=violated,
        verdict=verdict,
        reason=reason,
        notes=(*notes, *_undefined_notes(count)),
    )


_UNDEFINED = "it is undefined in every draw of the posterior"


def decided(satisfied: float, violated: float, at_point: bool | None, level: float) -> tuple[Verdict, str | None]:
    """The rule: the verdict, and why it is undecided.

    Args:
        satisfied, violated: shares of draws. at_point: what holds for the fitted chain, None if that is not known.
        level: the share that is asked for.
    """
    if satisfied >= level and at_point is True:
        return Verdict.SATISFIED, None
    if violated >= level and at_point is False:
        return Verdict.VIOLATED, None
    estimate = {True: "holds", False: "fails", None: "is undefined"}[at_point]
    return Verdict.UNDECIDED, (
        f"it holds in {satisfied:.4g} of the posterior and fails in {violated:.4g}, {level:.6g} is asked for; "
        f"it {estimate} at the point estimate"
    )


def _of_values(values: np.ndarray[Any, np.dtype[np.float64]], level: float, method: str) -> dict[str, Any]:
    defined = values[~np.isnan(values)]
    if not len(defined):
        return {}
    interval, errors = equal_tailed(defined, level, method)
    return {"mean": float(defined.mean()), "interval": interval, "quantile_errors": errors}


def _without_variation(found: PropertyUncertainty) -> PropertyUncertainty:
    """What is left of a property of which all draws are the same for want of a prior."""
    return replace(
        found,
        mean=None,
        interval=None,
        quantile_errors=None,
        satisfied=None,
        violated=None,
        verdict=None if found.verdict is None else Verdict.UNDECIDED,
        reason=None if found.verdict is None else NO_VARIATION_REASON,
        notes=(*found.notes, NO_VARIATION_REASON),
    )


def _slow_notes(property_: Property, draws: int) -> list[str]:
    operators = one_by_one(property_.formula)
    if not operators:
        return []
    listed = "; ".join(text if len(text) <= 60 else text[:57] + "..." for text in operators[:3])
    return [f"evaluated on the first {draws} draws only, one chain at a time, because of {listed}"]


def _undefined_notes(count: int) -> Iterator[str]:
    if count:
        yield f"undefined in {count} of the draws"


def credible_level(property_: Property, *, path: str | None = None) -> float | None:
    """The level that ``//@ credible`` gives, or None.

    Raises:
        PropertyError: it is no share of at least one half and below one; a smaller one could decide both ways.
    """
    text = property_.annotation("credible")
    if text is None:
        return None
    try:
        level = float(Fraction(text.strip()))
    except (ValueError, ZeroDivisionError):
        level = math.nan
    if 0.5 <= level < 1:
        return level
    place = next((note.span for note in reversed(property_.annotations) if note.key == "credible"), None)
    location = Location(path=path) if place is None else Location(path=path, line=place.line, column=place.column)
    raise PropertyError(
        Problem(
            location=location,
            message=f"credible {text[:80]} is no level",
            hint="the share of the posterior in which the property must hold: at least 0.5, and below 1",
        )
    )
