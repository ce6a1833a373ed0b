"""ModelForm: what the states of a chain remember beside their category, and its name on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from tracebridge.errors import UsageError

#: Ways to choose the bins of a clock from the runs.
ClockFamily = Literal["chosen", "log", "quantiles", "steps", "unrolled"]

#: How the hidden phase moves: it stays or goes one on, or it goes anywhere.
PhaseKind = Literal["left-to-right", "full"]

FIRST_ORDER = "first-order"

MAX_DWELL, MAX_PHASES, MAX_CLASSES, MAX_BINS = 32, 32, 6, 1_000
_LONGEST_NAME = 10_000
_DIGITS = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelForm:
    """What a state is made of, beside the category that the abstraction gives its step. The default is first order.

    Attributes:
        previous: the category of the step before.
        dwell: levels of the stay: how many earlier steps of the same stay there were, up to ``dwell - 1``; 1 is none.
        clock: first numbers of earlier steps of each bin, ascending from 0; ``(0,)`` is none. Or the name of a family
            of which the bins are still to be chosen.
        phases: hidden phases; 1 is none. phase_kind: how they move.
        by_category: the probability to change phase depends on the category that is left.
        classes: hidden classes of tasks, fixed for a run; 1 is none.
        group: the covariate, fixed for a run, whose values have chains of their own.

    Raises:
        UsageError: for a part out of range.
    """

    previous: bool = False
    dwell: int = 1
    clock: tuple[int, ...] | ClockFamily = (0,)
    phases: int = 1
    phase_kind: PhaseKind = "left-to-right"
    by_category: bool = True
    classes: int = 1
    group: str | None = None

    def __post_init__(self) -> None:
        for name, most in (("dwell", MAX_DWELL), ("phases", MAX_PHASES), ("classes", MAX_CLASSES)):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise UsageError(f"{name} {value} is not between 1 and {most}")
        if self.phase_kind not in get_args(PhaseKind):
            raise UsageError(f"phases that are {self.phase_kind!r} are unknown: {', '.join(get_args(PhaseKind))}")
        if isinstance(self.clock, str):
            if self.clock not in get_args(ClockFamily):
                raise UsageError(f"{self.clock!r} is no family of clocks: {', '.join(get_args(ClockFamily))}")
        elif not self.clock or self.clock[0] != 0 or any(a >= b for a, b in pairwise(self.clock)):
            raise UsageError("the bins of a clock start at 0 and ascend, such as clock:0,1,2,4,8")
        elif len(self.clock) > MAX_BINS:
            raise UsageError(f"{len(self.clock)} bins of a clock are more than {MAX_BINS}")
        if self.group is not None and (not self.group or self.group != self.group.strip() or "+" in self.group):
            raise UsageError(f"a group needs the name of a covariate, such as group:model, not {self.group!r:.100}")

    @property
    def bins(self) -> tuple[int, ...]:
        """The bins of the clock. Raises UsageError while they are to be chosen."""
        if isinstance(self.clock, str):
            raise UsageError(f"the bins of clock:{self.clock} are not chosen yet")
        return self.clock

    @property
    def has_clock(self) -> bool:
        """There is a clock, chosen or not."""
        return self.clock != (0,)

    @property
    def has_context(self) -> bool:
        """A state remembers something that can be seen."""
        return self.previous or self.dwell > 1 or self.has_clock or self.group is not None

    @property
    def is_first_order(self) -> bool:
        """A state is its category and no more."""
        return not self.has_context and self.phases == 1 and self.classes == 1

    def with_clock(self, bins: tuple[int, ...]) -> ModelForm:
        """The same with these bins."""
        return replace(self, clock=bins)

    def __str__(self) -> str:
        """The name that `parse_model` reads."""
        parts = [] if self.group is None else [f"group:{self.group}"]
        parts += ["order2"] if self.previous else []
        parts += [f"dwell{self.dwell}"] if self.dwell > 1 else []
        if self.clock == "chosen":
            parts.append("clock")
        elif self.has_clock:
            parts.append(f"clock:{self.clock if isinstance(self.clock, str) else ','.join(map(str, self.clock))}")
        if self.phases > 1:
            kind = {
                ("left-to-right", True): "",
                ("left-to-right", False): ":shared",
                ("full", True): ":full",
                ("full", False): ":full-shared",
            }
            parts.append(f"phases:{self.phases}{kind[self.phase_kind, self.by_category]}")
        parts += [f"classes:{self.classes}"] if self.classes > 1 else []
        return "+".join(parts) or FIRST_ORDER


def parse_model(text: str) -> ModelForm:
    """Read the name of a form: parts joined by ``+``, in any order.

    ``first-order`` alone; ``order2``; ``dwell4``; ``clock`` (bins by cross-validation), ``clock:log``,
    ``clock:quantiles``, ``clock:steps``, ``clock:unrolled`` or ``clock:0,1,2,4``; ``phases:4`` (left to right, by
    category), ``phases:4:shared`` (the same for all categories), ``phases:4:full`` (in any order),
    ``phases:4:full-shared``; ``classes:2``; ``group:model``.

    Raises:
        UsageError: naming the part that is none, or that stands twice.
    """
    if len(text) > _LONGEST_NAME:
        raise UsageError(f"a model name of {len(text)} characters is too long")
    form, seen = ModelForm(), set()
    for part in text.split("+"):
        fields = _parse_part(part.strip(), text)
        name = next(iter(fields), FIRST_ORDER)
        if name in seen:
            raise UsageError(f"model {text!r:.200} says {name} twice")
        seen.add(name)
        form = replace(form, **fields)  # type: ignore[arg-type]
    if FIRST_ORDER in seen and len(seen) > 1:
        raise UsageError(f"model {text!r:.200}: {FIRST_ORDER} stands alone")
    return form


def _parse_part(part: str, text: str) -> dict[str, object]:
    word, _, rest = part.partition(":")
    if part == FIRST_ORDER:
        return {}
    if part == "order2":
        return {"previous": True}
    if part.startswith("dwell") and _DIGITS.fullmatch(part[5:]):
        return {"dwell": int(part[5:])}
    if word == "clock":
        return {"clock": _parse_clock(rest, part, text)}
    if word == "phases":
        number, _, kind = rest.partition(":")
        kinds: dict[str, dict[str, object]] = {
            "": {},
            "shared": {"by_category": False},
            "full": {"phase_kind": "full"},
            "full-shared": {"phase_kind": "full", "by_category": False},
        }
        if _DIGITS.fullmatch(number) and kind in kinds:
            return {"phases": int(number), **kinds[kind]}
    if word == "classes" and _DIGITS.fullmatch(rest):
        return {"classes": int(rest)}
    if word == "group":
        return {"group": rest}
    raise _unknown(part, text)


def _parse_clock(rest: str, part: str, text: str) -> tuple[int, ...] | str:
    if not rest:
        if part == "clock":
            return "chosen"
        raise _unknown(part, text)
    if rest in get_args(ClockFamily):
        return rest
    numbers = rest.split(",")
    if not all(map(_DIGITS.fullmatch, numbers)):
        raise _unknown(part, text)
    return tuple(map(int, numbers))


def _unknown(part: str, text: str) -> UsageError:
    return UsageError(
        f"{part!r:.100} in model {text!r:.200} is unknown; parts are first-order, order2, dwell4, clock, clock:log, "
        "clock:0,1,2,4, phases:4, phases:4:full, classes:2, group:model, joined by +"
    )
