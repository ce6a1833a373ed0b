"""The actions of choices in a unified Markov binary (UMB) archive: a number for each choice, a text for each number.

As Storm does, a choice without a name has an action whose text is empty. Archives of ours hold identifiers
(`tracebridge.export.names`), which the tools read as they read those of labels.

Source: the UMB specification, section "Action labels".
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError
from tracebridge.export.names import identifier_of, name_of
from tracebridge.export.umb_archive import INDEX, at_member, refuse
from tracebridge.export.umb_arrays import decode_strings, encode_strings
from tracebridge.export.umb_index import ACTIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.export.umb_members import Members

_VALUES, _BOUNDS, _STRINGS = (f"{ACTIONS}/{name}.bin" for name in ("values", "string-mapping", "strings"))


def action_members(actions: tuple[tuple[str, ...], ...]) -> tuple[dict[str, bytes], int]:
    """The members of the archive for the actions of each state, and how many different actions there are."""
    numbers: dict[str, int] = {}
    of_choices = [numbers.setdefault(name, len(numbers)) for name in chain.from_iterable(actions)]
    bounds, data = encode_strings([identifier_of(name) if name else "" for name in numbers])
    values = np.array(of_choices, dtype="<u4").tobytes()
    return {_VALUES: values, _BOUNDS: bounds, _STRINGS: data}, len(numbers)


def read_actions(members: Members, starts: NDArray[np.int64], *, own: bool) -> tuple[tuple[str, ...], ...]:
    """The actions of the choices of each state; numbers without a text are called ``action0``, ``action1`` and so on.

    Args:
        starts: where the choices of each state begin and the last ones end, shape (n + 1,). own: whether the texts are
            identifiers of ours.

    Raises:
        ModelError: with the member: a number without an action, a text that is no UTF-8 or, in an archive of ours, no
            identifier.
    """
    declared = members.index.transition_system.choice_actions
    texts = _texts(members, declared)
    if own and texts is not None:
        try:
            texts = [name_of(text) if text else "" for text in texts]
        except UsageError as error:
            refuse(str(error), _STRINGS)
    data = members.member(_VALUES, 4 * members.choices)
    numbers = np.zeros(members.choices, dtype="<u4") if data is None else np.frombuffer(data, dtype="<u4")
    beyond = np.flatnonzero(numbers >= max(declared, 1))
    if len(beyond):
        choice = int(beyond[0])
        refuse(f"choice {choice} has action {numbers[choice]}, but there are only {declared}", _VALUES)
    if texts is None:
        names = [f"action{number}" if declared else "" for number in numbers.tolist()]
    else:
        names = [texts[number] for number in numbers.tolist()]
    return tuple(tuple(names[first:last]) for first, last in pairwise(starts.tolist()))


def _texts(members: Members, declared: int) -> list[str] | None:
    """The text of each action that the index declares; None where the archive has none."""
    if declared < 0:
        refuse(f"#choice-actions is {declared}", INDEX)
    bounds = members.member(_BOUNDS, 8 * (declared + 1))
    if bounds is None or not declared:
        return None
    if _STRINGS not in members.held:
        refuse(f"is absent, but {_BOUNDS} is there", _STRINGS)
    with at_member(_BOUNDS):
        return decode_strings(bounds, members.held[_STRINGS])
