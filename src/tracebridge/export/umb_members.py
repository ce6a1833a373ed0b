"""The members of a unified Markov binary (UMB) archive as arrays, of the sizes that its index declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.export.umb_archive import INDEX, at_member, refuse
from tracebridge.export.umb_arrays import Quotients, bit_vector_size, decode_bits, decode_doubles, decode_rationals
from tracebridge.export.umb_index import MAX_STATES, PROBABILITIES, checked_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracebridge.export.umb_index import Annotation, Entities, Type
    from tracebridge.export.umb_numbers import Numbers

_MAX_HELD_BYTES = 2**33  # of labels, rewards and variables, which a short archive can declare without storing them


class Members:
    """An archive, its index checked, and its sizes bounded before arrays of these sizes are made.

    Attributes:
        held: the bytes of each member. index: the index. n: the number of states. choices: that of choices, as many in
            a chain. m: that of branches.

    Raises:
        ModelError: with the member; also from every method.
    """

    def __init__(self, held: Mapping[str, bytes]) -> None:
        self.held = held
        self.index = checked_index(held)
        self.n = self.index.transition_system.states
        self.choices = self.index.transition_system.choices
        self.m = self.index.transition_system.branches
        self._require_room()

    def member(self, name: str, size: int) -> bytes | None:
        """The bytes of a member, which has this size if it is there."""
        data = self.held.get(name)
        if data is not None and len(data) != size:
            refuse(f"has {len(data)} bytes where the index asks for {size}", name)
        return data

    def numbers(self, name: str, type_: Type, count: int) -> Numbers:
        """Doubles or rationals; all zero where the member is absent."""
        if type_.type == "double" and type_.bits() == 64:
            data = self.member(name, 8 * count)
            return np.zeros(count) if data is None else decode_doubles(data)
        size = type_.bits()
        if type_.type != "rational" or size < 128 or size % 128:
            refuse(f"numbers of type {type_.type!r} with {size} bits are not read, only double and rational", name)
        data = self.member(name, size // 8 * count)
        if data is None:
            return Quotients(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64))
        with at_member(name):
            return decode_rationals(data, size)

    def bits(self, name: str) -> NDArray[np.bool_]:
        """A truth value for each state, shape (n,); all false where the member is absent."""
        data = self.member(name, bit_vector_size(self.n))
        with at_member(name):
            return np.zeros(self.n, dtype=np.bool_) if data is None else decode_bits(data, self.n)

    def count(self, entities: Entities) -> int:
        """How many states, choices or branches there are."""
        return {"states": self.n, "choices": self.choices, "branches": self.m}.get(entities, 0)

    def _require_room(self) -> None:
        """Refuse sizes that no honest archive has, before arrays of these sizes are made."""
        system, index = self.index.transition_system, self.index
        if not 1 <= self.n <= MAX_STATES:
            refuse(f"#states is {self.n}; from 1 to {MAX_STATES} are read", INDEX)
        if system.players == 0 and self.choices != self.n:
            refuse(f"#choices is {self.choices}: a chain has one choice in each of its {self.n} states", INDEX)
        if self.choices < self.n:
            refuse(f"#choices is {self.choices}: each of the {self.n} states has a choice", INDEX)
        if self.m < self.choices:
            refuse(f"#branches is {self.m}: each of the {self.choices} choices leads somewhere", INDEX)
        if PROBABILITIES not in self.held:
            refuse("the archive lacks the probabilities", PROBABILITIES)
        valuations = index.valuations
        variables = 0
        if valuations is not None and valuations.states is not None:
            variables = sum(len(held.variables) for held in valuations.states.classes)
        held_bytes = (len(index.annotations.get("aps", ())) + 8 * variables) * self.n
        for reward in index.annotations.get("rewards", {}).values():
            held_bytes += reward.type.bits() // 4 * sum(map(self.count, reward.applies_to))
        if held_bytes > _MAX_HELD_BYTES:
            refuse(f"labels, rewards and variables of {self.n} states need more memory than is given to them", INDEX)


def require_plain(annotation: Annotation, member: str, allowed: set[str]) -> None:
    """Refuse distributions over values, and values of other entities than these."""
    if annotation.probability_type is not None:
        refuse("an annotation by distributions is not read", member)
    odd = sorted(set(annotation.applies_to) - allowed)
    if odd or not annotation.applies_to or len(set(annotation.applies_to)) != len(annotation.applies_to):
        refuse(f"applies to {annotation.applies_to}; {sorted(allowed)} are read, each once", member)
