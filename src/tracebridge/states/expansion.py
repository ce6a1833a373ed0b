"""ContextSpace: the part of the past that can be seen and that a form remembers, numbered.

A context is made of the group of the run, the bin of the number of earlier steps, the level of the stay and the
previous category; what the form does not remember has one value. The states that a chain is expanded to are
combinations of these with the category and what is hidden (phase and class). An expanded transition is one step, and an
expanded state keeps the labels of its category.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.model_form import ModelForm

    Integers = NDArray[np.integer]
    Codes = NDArray[np.int64]


class Context(NamedTuple):
    """The parts of contexts, each an array of one shape.

    Attributes:
        group: of the run. bin: of the clock. dwell: level of the stay. previous: category, or m at a first step; 0
            where it is not remembered.
    """

    group: Codes
    bin: Codes
    dwell: Codes
    previous: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSpace:
    """The contexts of a form over m categories.

    Attributes:
        form: with the bins of its clock chosen. n_states: m. n_groups: values of its group, 1 without one.
    """

    form: ModelForm
    n_states: int
    n_groups: int = 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The number of values of each part, in the order of `Context`."""
        previous = self.n_states + 1 if self.form.previous else 1
        return (self.n_groups, len(self.form.bins), self.form.dwell, previous)

    @property
    def size(self) -> int:
        """The number of contexts."""
        return int(np.prod(self.shape))

    def codes(self, parts: Context) -> Codes:
        """The numbers of contexts."""
        _, n_bins, n_levels, n_previous = self.shape
        return ((parts.group * n_bins + parts.bin) * n_levels + parts.dwell) * n_previous + parts.previous

    def parts(self, codes: Codes) -> Context:
        """The parts of numbered contexts."""
        return Context(*(np.asarray(part, dtype=np.int64) for part in np.unravel_index(codes, self.shape)))

    def bin_of(self, earlier: Integers) -> Codes:
        """The bin of a number of earlier steps."""
        return np.searchsorted(np.asarray(self.form.bins), earlier, side="right").astype(np.int64) - 1

    def of_paths(self, codes: Integers, offsets: Integers, groups: Integers | None = None) -> Codes:
        """The context of every step of runs laid end to end, shape (n_steps,).

        Args:
            codes: categories, shape (n_steps,). offsets: shape (n_runs + 1,), from 0 to n_steps.
            groups: of each run, shape (n_runs,); needed if the form has one.
        """
        codes = np.asarray(codes, dtype=np.int64)
        lengths = np.diff(offsets)
        firsts = offsets[:-1][lengths > 0]
        place = np.arange(len(codes))
        none = np.zeros(len(codes), dtype=np.int64)
        before: Codes = np.empty_like(codes)
        before[1:] = codes[:-1]
        before[firsts] = self.n_states
        stay = place - np.maximum.accumulate(np.where(before != codes, place, 0)) if len(codes) else place
        return self.codes(
            Context(
                group=none if self.n_groups == 1 or groups is None else np.repeat(groups, lengths).astype(np.int64),
                bin=self.bin_of(place - np.repeat(offsets[:-1], lengths)),
                dwell=np.minimum(stay, self.form.dwell - 1),
                previous=before if self.form.previous else none,
            )
        )

    def next_context(self, codes: Codes, states: Codes, following: Codes, earlier: Codes) -> Codes:
        """The context of the next step of runs that go on to ``following``, which has ``earlier`` steps before it.

        Args:
            codes: present contexts. states: present categories. following: next ones. All of one shape.
        """
        now = self.parts(codes)
        stay = np.where(following == states, np.minimum(now.dwell + 1, self.form.dwell - 1), 0)
        previous: Codes = states if self.form.previous else np.zeros_like(states)
        return self.codes(Context(now.group, self.bin_of(earlier), stay, previous))

    # ------------------------------------------------------------ less detail

    def coarser(self) -> ContextSpace | None:
        """The space without the last part that is remembered: clock, then dwell, previous, group; None without any."""
        form = self.form
        if form.has_clock:
            return replace(self, form=form.with_clock((0,)))
        if form.dwell > 1:
            return replace(self, form=replace(form, dwell=1))
        if form.previous:
            return replace(self, form=replace(form, previous=False))
        if form.group is not None or self.n_groups > 1:
            return replace(self, form=replace(form, group=None), n_groups=1)
        return None

    def coarse_codes(self, coarse: ContextSpace) -> Codes:
        """The context of a coarser space that each of these belongs to, shape (size,)."""
        parts = self.parts(np.arange(self.size))
        kept = (part if n > 1 else np.zeros_like(part) for part, n in zip(parts, coarse.shape, strict=True))
        return coarse.codes(Context(*kept))
