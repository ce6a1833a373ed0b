"""StateGrid: all states that a form could have, numbered, and how a run moves among them.

A state is a combination of a category and what the form remembers. Numbers ascend with the variables of a chain (see
`tracebridge.chain.expanded.naming`); all functions work on arrays of numbers.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.expanded.naming import CATEGORY, GROUP, NO_VALUE, PHASE, PREVIOUS, STAY, STEP, TASK_CLASS
from tracebridge.errors import FitError, Location, Problem
from tracebridge.states.expansion import Context, ContextSpace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracebridge.states.model_form import ModelForm

    Integers = NDArray[np.int64]

#: A form that needs more of either is refused.
MAX_STATES, MAX_TRANSITIONS = 100_000, 4_000_000


class StateGrid:
    """The states of a form over m categories.

    Args:
        form: with the bins of its clock chosen. m: categories. n_groups: values of the group, 0 without one.

    Raises:
        FitError: for so many that a chain of more than `MAX_STATES` states is certain.
    """

    def __init__(self, form: ModelForm, m: int, n_groups: int) -> None:
        self.form, self.m = form, m
        self.has_groups, n_groups = n_groups > 0, max(1, n_groups)
        self.space = ContextSpace(form=form, n_states=m, n_groups=n_groups)
        self.start_shape = (n_groups, form.phases, m + 2)
        self.last_step = form.bins[-1]
        self.sizes = {
            CATEGORY: m,
            TASK_CLASS: form.classes,
            GROUP: n_groups,
            PREVIOUS: m + 1 if form.previous else 1,
            STAY: form.dwell,
            STEP: self.last_step + 1,
            PHASE: form.phases,
        }
        size = 1
        for values in self.sizes.values():
            size *= values
        # After the first step every category is possible at every number of steps, and in each class.
        if size >= 2**62 or form.classes * m * max(1, self.last_step) > MAX_STATES:
            raise self._too_large()

    def codes(self, parts: Mapping[str, Any]) -> Integers:
        """The numbers of combinations."""
        found: Any = 0
        for name, size in self.sizes.items():
            found = found * size + parts[name]
        return np.asarray(found, dtype=np.int64)

    def parts(self, codes: Integers) -> dict[str, Integers]:
        """The parts of numbered combinations."""
        found = np.unravel_index(codes, tuple(self.sizes.values()))
        return {name: values.astype(np.int64) for name, values in zip(self.sizes, found, strict=True)}

    def starts(self, mask: NDArray[np.bool_]) -> tuple[Integers, Integers]:
        """Where runs may start, for each class, and the entries of the starts."""
        group, phase, category = np.nonzero(mask[:, :, : self.m])
        entry = (group * self.form.phases + phase) * (self.m + 2) + category
        classes = np.arange(self.form.classes)[:, None]
        codes = self.codes(
            {
                CATEGORY: category,
                TASK_CLASS: classes,
                GROUP: group,
                PREVIOUS: self.sizes[PREVIOUS] - 1,
                STAY: 0,
                STEP: 0,
                PHASE: phase,
            }
        )
        return codes.ravel(), np.broadcast_to(entry, codes.shape).ravel().astype(np.int64)

    def reachable(self, firsts: Integers) -> Integers:
        """The combinations that runs can visit, ascending. Raises FitError for too many.

        All at one number of earlier steps together: those of another are other combinations until the clock stops.
        """
        found = []
        frontier = last = np.unique(firsts)
        n_states = n_transitions = 0
        for step in count():
            n_states, n_transitions = n_states + len(frontier), n_transitions + len(frontier) * self.fan_out
            if n_states > MAX_STATES or n_transitions > MAX_TRANSITIONS:
                raise self._too_large()
            targets, fits = self.successors(frontier)
            following = np.unique(targets[fits])
            if step < self.last_step:
                found.append(frontier)
                frontier = last = following
            else:
                frontier = np.setdiff1d(following, last, assume_unique=True)
                last = np.union1d(last, frontier)
            if not len(frontier):
                break
        return np.sort(np.concatenate([*found, last]))

    @property
    def fan_out(self) -> int:
        """Transitions of a state, at most."""
        return self.m * len(self._phase_steps) + 2

    @property
    def _phase_steps(self) -> Integers:
        """By how much a phase may change, or all phases where it may change to any."""
        phases = self.form.phases
        return np.arange(phases if self.form.phase_kind == "full" else min(phases, 2))

    def next_phases(self, phase: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Following phases, and which of them are there; shape (n, choices) both."""
        if self.form.phase_kind == "full":
            following = np.broadcast_to(self._phase_steps, (len(phase), len(self._phase_steps)))
        else:
            following = phase[:, None] + self._phase_steps
        return following, following < self.form.phases

    def successors(self, codes: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Following combinations by category, then by phase, and which are there; shape (n, m, choices) both."""
        now = {name: values[:, None, None] for name, values in self.parts(codes).items()}
        category = np.arange(self.m)[:, None]
        phase, fits = self.next_phases(now[PHASE].ravel())
        stays = category == now[CATEGORY]
        found = self.codes(
            {
                **now,
                CATEGORY: category,
                PREVIOUS: now[CATEGORY] if self.form.previous else 0,
                STAY: np.where(stays, np.minimum(now[STAY] + 1, self.form.dwell - 1), 0),
                STEP: np.minimum(now[STEP] + 1, self.last_step),
                PHASE: phase[:, None, :],
            }
        )
        return found, np.broadcast_to(fits[:, None, :], found.shape)

    def entries(self, own: Mapping[str, Integers]) -> tuple[Integers, Integers]:
        """The entries of A and B behind every transition, exits last; shape (n, fan_out) both."""
        n, m = len(own[CATEGORY]), self.m
        context = self.space.codes(
            Context(group=own[GROUP], bin=self.space.bin_of(own[STEP]), dwell=own[STAY], previous=own[PREVIOUS])
        )
        row = (own[PHASE] * self.space.size + context) * m + own[CATEGORY]
        choices = len(self._phase_steps)
        columns = np.concatenate([np.repeat(np.arange(m), choices), [m, m + 1]])
        following, _ = self.next_phases(own[PHASE])
        moves = (own[PHASE] * m + own[CATEGORY])[:, None] * self.form.phases + following
        advance = np.concatenate([np.tile(moves, (1, m)), np.zeros((n, 2), dtype=np.int64)], axis=1)
        return row[:, None] * (m + 2) + columns, advance

    def variables(self, own: Mapping[str, Integers]) -> dict[str, Integers]:
        """The variables of a chain, for its states and the two outcomes."""
        form = self.form
        kept = {
            CATEGORY: True,
            TASK_CLASS: form.classes > 1,
            GROUP: self.has_groups,
            PREVIOUS: form.previous,
            STAY: form.dwell > 1,
            STEP: form.has_clock,
            PHASE: form.phases > 1,
        }
        return {
            name: np.append(own[name], [self.m, self.m + 1] if name == CATEGORY else [NO_VALUE, NO_VALUE])
            for name, is_kept in kept.items()
            if is_kept
        }

    def _too_large(self) -> FitError:
        """What multiplies the states, the largest first."""
        form = self.form
        factors = {
            f"the clock, whose last bin starts at {self.last_step}": self.sizes[STEP],
            "the previous category": self.sizes[PREVIOUS],
            f"the {form.dwell} levels of the stay": self.sizes[STAY],
            f"the {form.phases} phases": self.sizes[PHASE],
            f"the {form.classes} classes": self.sizes[TASK_CLASS],
            f"the {self.sizes[GROUP]} groups": self.sizes[GROUP],
        }
        parts = [name for name, size in sorted(factors.items(), key=lambda item: -item[1]) if size > 1]
        first = f"leave out or lessen {parts[0]}, or fold the {self.m} categories" if parts else "fold the categories"
        message = f"{form} over {self.m} categories has more than {MAX_STATES} states or {MAX_TRANSITIONS} transitions"
        return FitError(Problem(location=Location(), message=message, hint=first))
