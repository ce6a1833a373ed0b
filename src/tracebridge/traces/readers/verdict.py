"""What a source says about the outcome of a run, and what that is worth if something cut the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracebridge.traces.model import Outcome
from tracebridge.traces.problems import shown
from tracebridge.traces.readers.flat import OUTCOME_WORDS
from tracebridge.traces.readers.records import RecordError
from tracebridge.traces.readers.reward import outcome_of_reward
from tracebridge.traces.sniff import plain_name

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_OUTCOME = "no_outcome"
UNFINISHED = "unfinished"
"""The attribute of a censored run that something cut: a verdict of failure that comes later is not its outcome."""
VERDICT = "verdict"
"""The attribute of a censored run that has a verdict, ``success`` or ``failure``, which is not its outcome."""


def verdict_of(value: object, *, field: str) -> bool | None:
    """Success (true) or failure (false) in whatever way it is written; None where it is null or a word for censored.

    Booleans, the words of ``OUTCOME_WORDS`` in any case, and numbers that are 0 or 1 within 1e-6.

    Raises:
        RecordError: anything else, such as half a success.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 64):
        return outcome_of_reward(value, field=field) is Outcome.SUCCESS
    if isinstance(value, str) and (outcome := OUTCOME_WORDS.get(plain_name(value))) is not None:
        return None if outcome is Outcome.CENSORED else outcome is Outcome.SUCCESS
    hint = f"one of {', '.join(OUTCOME_WORDS)}"
    raise RecordError(f"{shown(value)} does not say whether the run succeeded", field=field, hint=hint)


def agreed_verdict(verdicts: Mapping[str, bool | None], *, what: str) -> bool | None:
    """The one verdict of all judges that gave one; None if none did.

    Raises:
        RecordError: judges that contradict each other, which is for the user to settle.
    """
    given = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(set(given.values())) > 1:
        sides = ", ".join(f"{shown(name)} {'success' if verdict else 'failure'}" for name, verdict in given.items())
        raise RecordError(f"the {what} contradict each other: {sides}", field=what, hint="keep the one that counts")
    return next(iter(given.values()), None)


def ending(verdict: bool | None, reason: str | None, *, is_cut: bool) -> tuple[Outcome, str | None]:
    """Outcome and termination reason of a run.

    A verified success counts, whatever ended the run. A failure counts unless something cut the run: it is then
    censored, because the run had not failed yet. Without a verdict the run is censored.
    """
    if verdict:
        return Outcome.SUCCESS, reason
    if verdict is None or is_cut:
        return Outcome.CENSORED, reason or NO_OUTCOME
    return Outcome.FAILURE, reason


def marks(verdict: bool | None, outcome: Outcome, *, is_cut: bool) -> dict[str, Any]:
    """The attributes of a run that say why it is censored: something cut it, and its verdict does not count."""
    if outcome is not Outcome.CENSORED:
        return {}
    marked: dict[str, Any] = {UNFINISHED: True} if is_cut else {}
    if verdict is not None:
        marked[VERDICT] = (Outcome.SUCCESS if verdict else Outcome.FAILURE).value
    return marked
