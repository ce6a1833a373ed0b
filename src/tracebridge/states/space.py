"""The states of a chain: their names, the steps they hold, and the propositions that are true in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, Literal

from tracebridge.errors import FitError
from tracebridge.html_table import html_table
from tracebridge.states.features import FeatureVector
from tracebridge.traces.problems import counted

#: Words with a meaning of their own in chains and property files; a step or kind called so gets the prefix ``step_``.
RESERVED_WORDS = frozenset(
    {
        "absorbed",
        "censored",
        "deadlock",
        "error",
        "failure",
        "init",
        "other",
        "retry",
        "start",
        "steps",
        "stuck",
        "success",
    }
)

OTHER = "other"
_NAMED = 3  # a cluster of more names is named by its most frequent ones


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Renaming:
    """A step's name or kind that is not its own proposition, because that word means something else."""

    role: Literal["name", "kind"]
    original: str
    proposition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Propositions:
    """Which propositions a step makes true: its name, its kind, ``error`` and ``retry``.

    Attributes:
        names, kinds: the proposition of every step name and every kind.
        renamings: where that is not the word itself: reserved words, and names of states that hold other steps, get the
            prefix ``step_``; a kind that is also the name of other steps gets ``kind_``.
    """

    names: Mapping[str, str]
    kinds: Mapping[str, str]
    renamings: tuple[Renaming, ...]

    @classmethod
    def of(
        cls,
        vectors: Sequence[FeatureVector],
        *,
        reserved: Collection[str] = RESERVED_WORDS,
        avoided: Collection[str] = (),
    ) -> Propositions:
        """The propositions of a corpus with these distinct vectors.

        None is one of the reserved words, and what is put in the place of a word is none that is avoided.
        """
        with_name, with_kind = defaultdict(set), defaultdict(set)
        for vector in vectors:
            with_name[vector.name].add((vector.kind, vector.name))
            with_kind[vector.kind].add((vector.kind, vector.name))
        taken = {*with_name, *with_kind, *reserved, *avoided}

        def prefixed(prefix: str, word: str) -> str:
            while word in taken:
                word = prefix + word
            taken.add(word)
            return word

        names = {name: prefixed("step_", name) if name in reserved else name for name in sorted(with_name)}
        kinds = {}
        for kind in sorted(with_kind):
            if kind in with_name and with_name[kind] == with_kind[kind]:
                kinds[kind] = names[kind]  # the same steps: one proposition
            elif kind in with_name:
                kinds[kind] = prefixed("kind_", kind)
            else:
                kinds[kind] = prefixed("step_", kind) if kind in reserved else kind
        renamed = [Renaming(role="name", original=word, proposition=new) for word, new in names.items() if word != new]
        renamed += [Renaming(role="kind", original=word, proposition=new) for word, new in kinds.items() if word != new]
        return cls(names=names, kinds=kinds, renamings=tuple(sorted(renamed)))

    def words(self) -> list[str]:
        """Every proposition, ascending."""
        return sorted({*self.names.values(), *self.kinds.values(), "error", "retry"})

    def true_of(self, vector: FeatureVector) -> frozenset[str]:
        """The propositions that a step with this vector makes true; a name or kind of no step here makes none true."""
        marks = [word for word, holds in (("error", vector.error), ("retry", vector.retry)) if holds]
        known = [self.names.get(vector.name), self.kinds.get(vector.kind)]
        return frozenset([*marks, *(word for word in known if word is not None)])


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """A partition of feature vectors into named states.

    Attributes:
        names: unique, ascending.
        given: the names are the user's: where one is also a word of other steps, the word gives way.
        members: the feature vectors of each state, ascending; every vector is in one state.
        labels: each proposition that every state either has in all its steps or in none, with the states that have it.
        mixed_labels: each proposition that is no label, with the states that have it in some of their steps only.
        propositions: what the words stand for.

    Raises:
        FitError: for names or members that break this, or a name that is a proposition of other states.
    """

    names: tuple[str, ...]
    members: tuple[tuple[FeatureVector, ...], ...]
    given: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(init=False)
    mixed_labels: Mapping[str, tuple[str, ...]] = field(init=False)
    propositions: Propositions = field(init=False)

    def __post_init__(self) -> None:
        vectors = [vector for member in self.members for vector in member]
        if list(self.names) != sorted(set(self.names)) or len(self.names) != len(self.members) or "" in self.names:
            raise FitError("state names must be unique, ascending and not empty, each with its steps")
        if len(set(vectors)) != len(vectors) or not all(self.members):
            raise FitError("every kind of step must be in exactly one state, and every state must hold one")
        propositions = propositions_of(self.members, self.names if self.given else ())
        everywhere, somewhere = _extent(propositions, self.members)
        labels, mixed = {}, {}
        for word in propositions.words():
            torn = [self.names[i] for i in sorted(somewhere[word] - everywhere[word])]
            if torn:
                mixed[word] = tuple(torn)
            elif somewhere[word]:
                labels[word] = tuple(self.names[i] for i in sorted(everywhere[word]))
        for i, name in enumerate(self.names):
            if not _may_be_called(name, i, everywhere, somewhere):
                raise FitError(f"no state can be called {name!r}: the word means something else")
        object.__setattr__(self, "labels", MappingProxyType(labels))
        object.__setattr__(self, "mixed_labels", MappingProxyType(mixed))
        object.__setattr__(self, "propositions", propositions)

    def __repr__(self) -> str:
        kinds = sum(map(len, self.members))
        return f"<StateSpace of {counted(len(self.names), 'state')} for {counted(kinds, 'kind')} of steps>"

    def to_records(self) -> list[dict[str, Any]]:
        """One record a state: ``state``, how many ``kinds_of_steps`` it holds, its ``labels`` and ``mixed_labels``."""
        return [
            {
                "state": name,
                "kinds_of_steps": len(member),
                "labels": [word for word, states in self.labels.items() if name in states],
                "mixed_labels": [word for word, states in self.mixed_labels.items() if name in states],
            }
            for name, member in zip(self.names, self.members, strict=True)
        ]

    def _repr_html_(self) -> str:
        rows = [
            (each["state"], each["kinds_of_steps"], ", ".join(each["labels"]), ", ".join(each["mixed_labels"]))
            for each in self.to_records()
        ]
        heads = ("state", "kinds of steps", "labels", "in some of its steps only")
        return html_table(heads, rows, caption=f"StateSpace of {len(rows)} states", noun="states")


Extent = Mapping[str, set[int]]


def propositions_of(members: Sequence[Sequence[FeatureVector]], given_names: Sequence[str] = ()) -> Propositions:
    """The propositions of states that hold these vectors.

    A name that the user gave to a state keeps its meaning: steps elsewhere that are called so have another proposition.
    """
    vectors = [vector for member in members for vector in member]
    propositions = Propositions.of(vectors)
    if not given_names:
        return propositions
    extent = _extent(propositions, members)
    clashing = {name for i, name in enumerate(given_names) if not _may_be_called(name, i, *extent)}
    return Propositions.of(vectors, reserved=RESERVED_WORDS | clashing, avoided=given_names)


def _extent(propositions: Propositions, members: Sequence[Sequence[FeatureVector]]) -> tuple[Extent, Extent]:
    """For each proposition the states in which all steps make it true, and those in which some do."""
    everywhere: dict[str, set[int]] = defaultdict(set)
    somewhere: dict[str, set[int]] = defaultdict(set)
    for i, member in enumerate(members):
        truths = [propositions.true_of(vector) for vector in member]
        for word in frozenset.intersection(*truths):
            everywhere[word].add(i)
        for word in frozenset.union(*truths):
            somewhere[word].add(i)
    return everywhere, somewhere


def _may_be_called(name: str, state: int, everywhere: Extent, somewhere: Extent) -> bool:
    """A state may bear a proposition's word only if the proposition holds in it, wholly, and nowhere else."""
    if name in RESERVED_WORDS:
        return name == OTHER
    return not somewhere.get(name) or somewhere[name] == everywhere[name] == {state}


def name_states(
    members: Sequence[Sequence[FeatureVector]],
    weights: Mapping[FeatureVector, int],
    folded: Sequence[bool],
    *,
    by_text: bool = False,
) -> list[str]:
    """Readable, unique names for the states that hold these vectors.

    A state is called by its steps, the most frequent first (``search``, ``search+lookup``), with the kind in front
    where one name occurs under several kinds, and by what sets it apart from other states with such steps: ``.ok``,
    ``.retry``, ``.error``. States of folded steps are called ``other``. What is left is told apart by numbers: those
    that differ ``by_text`` as ``say.1``, ``say.2``, for words of texts may be names of people.
    """
    vectors = [vector for member in members for vector in member]
    propositions = Propositions.of(vectors)
    everywhere, somewhere = _extent(propositions, members)
    kinds_of: dict[str, set[str]] = defaultdict(set)
    states_with: dict[tuple[str, str], set[int]] = defaultdict(set)
    for i, member in enumerate(members):
        for vector in member:
            kinds_of[vector.name].add(vector.kind)
            states_with[vector.kind, vector.name].add(i)

    def stem(member: Sequence[FeatureVector]) -> str:
        steps: dict[str, int] = defaultdict(int)
        for vector in member:
            word = propositions.names[vector.name]
            if len(kinds_of[vector.name]) > 1:
                word = f"{propositions.kinds[vector.kind]}.{word}"
            steps[word] += weights[vector]
        words = sorted(steps, key=lambda word: (-steps[word], word))
        if len(words) > _NAMED:
            words = [*words[: _NAMED - 1], f"{len(words) - _NAMED + 1}more"]
        return "+".join(words)

    def marks(member: Sequence[FeatureVector]) -> str:
        text = ".retry" if all(vector.retry for vector in member) else ""
        text += ".error" if all(vector.error for vector in member) else ""
        clean = not any(vector.retry or vector.error for vector in member)
        shared = any(len(states_with[vector.kind, vector.name]) > 1 for vector in member)
        return ".ok" if clean and shared else text

    bases = [OTHER if fold else stem(member) + marks(member) for member, fold in zip(members, folded, strict=True)]
    times = Counter(bases)
    names: list[str] = []
    for i, stem_and_marks in enumerate(bases):
        candidates = (stem_and_marks if number == 1 else f"{stem_and_marks}_{number}" for number in count(1))
        if by_text and times[stem_and_marks] > 1 and not folded[i]:
            candidates = (f"{stem_and_marks}.{number}" for number in count(1))
        taken = set(names)
        names.append(
            next(name for name in candidates if name not in taken and _may_be_called(name, i, everywhere, somewhere))
        )
    return names
