"""Which state of a fitted chain a step of a live run belongs to, one step at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from tracebridge.errors import FitError, UsageError
from tracebridge.states.features import FeatureVector

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.traces.model import Step

#: So many kinds of step that the states were not made of are remembered.
_MOST_REMEMBERED = 100_000


class StepStates:
    """The map from steps to the transient states of a fit.

    A step of a kind that was there when the states were made has its state. Any other goes where the abstraction puts
    it, and where that has no place for it, to the state that holds the nearest kind of step, by the distance that steps
    are clustered by; either way it is said to be unseen, but for steps that a map of the user's names a state for.
    A chain that was fitted to counts knows steps by the names of its states.

    Raises:
        FitError: the function behind the states is not in this process.
    """

    def __init__(self, fit: ChainFit) -> None:
        self.names = fit.chain.states[: len(fit.alpha)]
        self._position = {name: i for i, name in enumerate(self.names)}
        self._abstraction = fit.abstraction
        self._known: dict[FeatureVector, int] = {}
        self._new: dict[FeatureVector, tuple[int, str | None]] = {}
        self._classifier = None
        if fit.abstraction is not None:
            space = fit.abstraction.space
            for name, members in zip(space.names, space.members, strict=True):
                if name in self._position:
                    self._known.update(dict.fromkeys(members, self._position[name]))
            self._classifier = fit.abstraction.classifier

    def of(self, step: Step, failed: tuple[str, str] | None) -> tuple[int, str | None]:
        """The position of the state of a step in the chain, and what to call a step that was never seen, else None.

        Args:
            step: the step. failed: kind and name of the step before it, if that ended in an error: then the same once
                more is a retry.

        Raises:
            FitError: the chain has no state at all, or one that was fitted to counts none of this name.
        """
        if self._abstraction is None:
            if step.name not in self._position:
                raise FitError(
                    f"the chain was fitted to counts and has no state {step.name!r}: it cannot place the step"
                )
            return self._position[step.name], None
        again = failed == (step.kind, step.name) or step.attributes.get("retry") is True
        group, is_grouped = "", True
        if self._classifier is not None:
            try:
                marked = structs.replace(step, attributes={**step.attributes, "retry": True}) if again else step
                (group,) = self._classifier.groups((marked,))
            except FitError:
                is_grouped = False  # no rule of the map matches it
        vector = FeatureVector(step.kind, step.name, step.error, again, group)
        code = self._known.get(vector)
        if code is not None:
            return code, None
        found = self._new.get(vector)
        if found is None:
            found = self._placed(vector) if is_grouped else (self._nearest(vector), str(vector))
            if len(self._new) < _MOST_REMEMBERED:
                self._new[vector] = found
        return found

    def named(self, state: str) -> int:
        """The position of a state. Raises UsageError, with the names there are."""
        if state not in self._position:
            listed = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
            raise UsageError(f"the chain has no state {state!r} that a step can be in; there are {listed}")
        return self._position[state]

    def _placed(self, vector: FeatureVector) -> tuple[int, str | None]:
        assert self._abstraction is not None  # noqa: S101 - a vector has one
        try:
            name = self._abstraction.space.names[int(self._abstraction.state_codes([vector])[0])]
        except FitError:
            return self._nearest(vector), str(vector)
        if name not in self._position:
            return self._nearest(vector), str(vector)
        return self._position[name], None if self._classifier is not None else str(vector)

    def _nearest(self, vector: FeatureVector) -> int:
        """The state of the known kind of step that differs least; of several the first in their order."""
        if not self._known:
            raise FitError("the chain has no state that a step could be in")

        def distance(known: FeatureVector) -> int:
            words = (known.kind != vector.kind) + (known.name != vector.name)
            return 2 * words + (known.error is not vector.error) + (known.retry is not vector.retry)

        return self._known[min(self._known, key=lambda known: (distance(known), known))]
