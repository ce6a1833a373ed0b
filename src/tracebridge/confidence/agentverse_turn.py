"""One turn of the AgentVerse broadcast while its events come in: who is selected, and which answer stands after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.confidence.broadcast import Incumbent, Selection
from tracebridge.confidence.canonical_answer import canonical_answer

if TYPE_CHECKING:
    from tracebridge.confidence.broadcast import Poll, Speak


class Turn:
    """One block while its events come in."""

    def __init__(self, number: int, turn: int, incumbent: Incumbent) -> None:
        self.round = number
        self.turn = turn
        self.incumbent = incumbent
        self.polls: list[Poll] = []
        self.speak: Speak | None = None
        self.reviewed: Incumbent | None = None

    @property
    def name(self) -> str:
        """``r{round}t{turn}``."""
        return f"r{self.round}t{self.turn}"

    def first_maximum(self) -> Poll | None:
        """The poll that the router takes: the first of the largest scores, valid or not."""
        scored = [poll for poll in self.polls if poll.score_raw is not None]
        return max(scored, key=_score, default=None)  # max gives the first of equals

    def selection(self) -> Selection | None:
        """The poll of the agent that spoke, which was observed; where nobody did, what the router takes, derived."""
        highest = self.first_maximum()
        spoken = None if self.speak is None else next((p for p in self.polls if p.agent == self.speak.agent), None)
        selected = spoken or highest
        if selected is None or highest is None:
            return None
        tie_set = tuple(poll.agent for poll in self.polls if poll.score_raw == highest.score_raw)
        return Selection(
            agent=selected.agent, score=selected.score_raw, tie_set=tie_set, rule="argmax", derived=spoken is None
        )

    def incumbent_after(self) -> Incumbent:
        """The answer that stands after the turn: a review's, the spoken, the selected, or that of the highest score."""
        if self.reviewed is not None:
            return self.reviewed
        selection = self.selection()
        answers = [] if self.speak is None else [(self.speak.candidate_raw, self.speak.agent)]
        if selection is not None:
            answers += [(poll.candidate_raw, poll.agent) for poll in self.polls if poll.agent == selection.agent]
        with_answer = [poll for poll in self.polls if poll.score_raw is not None and says_something(poll.candidate_raw)]
        if with_answer:
            best = max(with_answer, key=_score)
            answers.append((best.candidate_raw, best.agent))
        for answer, agent in answers:
            if says_something(answer):
                return Incumbent(answer=answer, source=agent)
        return self.incumbent


def _score(poll: Poll) -> float:
    return -1.0 if poll.score_raw is None else float(poll.score_raw)


def says_something(answer: str | None) -> bool:
    """Whether an answer has a canonical form that is not empty."""
    return answer is not None and bool(canonical_answer(answer))
