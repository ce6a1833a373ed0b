"""Four readouts of a surrogate's log-probabilities for a proposed call; higher means more trustworthy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import logsumexp

from tracebridge.confidence.surrogate.calls import call_text
from tracebridge.confidence.surrogate.context import render_context
from tracebridge.confidence.surrogate.scorer import score_text
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.surrogate.calls import CallText, ToolCall
    from tracebridge.confidence.surrogate.context import CallContext, Renderer
    from tracebridge.confidence.surrogate.scorer import ScoredText, Scorer

#: What stands in for the user's request where its effect is to be taken out (our choice).
NULL_REQUESTS: Final = ("", "N/A", "[no request]")
#: The surface forms whose probabilities are summed (our choice).
YES: Final = ("Yes", " Yes", "yes", " yes")
NO: Final = ("No", " No", "no", " no")
_QUESTION: Final = "\nIs this tool call correct? Answer Yes or No.\nAnswer:"

#: The scores of `Readouts.scores`, in their order.
READOUTS: Final = ("teacher_forcing", "request_pmi", "verdict", "tool_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentScores:
    """A score of every argument's value.

    Attributes:
        by_pointer: by JSON pointer, nats a token.
    """

    by_pointer: Mapping[str, float]

    @property
    def weakest(self) -> str | None:
        """The pointer with the lowest score, the first of equals: where an error is; None without a value."""
        return min(self.by_pointer, key=self.by_pointer.__getitem__, default=None)

    @property
    def minimum(self) -> float:
        """The lowest score, that of the call: it is as good as its weakest argument. NaN without a value."""
        return min(self.by_pointer.values(), default=math.nan)

    @property
    def mean(self) -> float:
        """The mean over values (our second choice); NaN without one."""
        return sum(self.by_pointer.values()) / len(self.by_pointer) if self.by_pointer else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Readouts:
    """What a surrogate says of a call; NaN where a readout is undefined, with the reason among the flags.

    Attributes:
        teacher_forcing: mean log-probability of the tokens of each value, given the context and the call before it.
        request_pmi: the same less what it is without the request, ``log mean exp`` over the null requests.
        verdict: P(Yes) / (P(Yes) + P(No)) as the answer to whether the call is correct.
        tool_choice: the posterior of the called tool among all tools, by the probability of each name in full.
        tool_margin: log-probability of its name above that of the best other tool.
        flags: what a reader must know, one sentence each.
    """

    teacher_forcing: ArgumentScores
    request_pmi: ArgumentScores
    verdict: float
    tool_choice: float
    tool_margin: float
    flags: tuple[str, ...]

    def scores(self) -> dict[str, float]:
        """One number a readout, as `READOUTS` names them; arguments by their weakest."""
        values = (self.teacher_forcing.minimum, self.request_pmi.minimum, self.verdict, self.tool_choice)
        return dict(zip(READOUTS, values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """For JSON; undefined scores are null."""
        return {
            "scores": {name: None if math.isnan(value) else value for name, value in self.scores().items()},
            "weakest_argument": self.teacher_forcing.weakest,
            "arguments": dict(self.teacher_forcing.by_pointer),
            "arguments_given_request": dict(self.request_pmi.by_pointer),
            "tool_margin": None if math.isnan(self.tool_margin) else self.tool_margin,
            "flags": list(self.flags),
        }


def read_out(
    scorer: Scorer,
    context: CallContext,
    call: ToolCall,
    *,
    null_requests: Sequence[str] = NULL_REQUESTS,
    render: Renderer = render_context,
) -> Readouts:
    """All readouts of a call.

    Raises:
        UsageError: no null request, or a call of a tool that is not in the context.
        InputError: a call that is no JSON; scores that are none, or of a truncated context.
    """
    if not null_requests:
        raise UsageError("request PMI needs at least one null request")
    called = [tool for tool in context.tools if tool.name == call.name]
    if not called:
        raise UsageError(f"there is no tool {call.name!r} in the context")
    text, prompt = call_text(call), render(context)
    scored = score_text(scorer, prompt, text.text)
    flags = [
        f"the argument {name!r} is not in the schema of {call.name!r}" for name in _foreign(called[0].parameters, call)
    ]
    if scored.floored.any():
        flags.append(f"{int(scored.floored.sum())} tokens of the call have no probability; they count as 1e-8")
    if not text.values:
        flags.append("the call has no argument with a value: only the verdict and the choice of the tool are defined")
    forced = _of_values(scored, text)
    nulls = [
        _of_values(score_text(scorer, render(context.with_request(request)), text.text), text)
        for request in null_requests
    ]
    without = {pointer: _log_mean_exp([null[pointer] for null in nulls]) for pointer in forced}
    posterior, margin = _tool_choice(scorer, prompt, context, call, text)
    if len(context.tools) == 1:
        flags.append("there is one tool only: that it was chosen says nothing")
    return Readouts(
        teacher_forcing=ArgumentScores(by_pointer=forced),
        request_pmi=ArgumentScores(by_pointer={pointer: forced[pointer] - without[pointer] for pointer in forced}),
        verdict=_verdict(scorer, prompt + text.text + _QUESTION),
        tool_choice=posterior,
        tool_margin=margin,
        flags=tuple(flags),
    )


def _of_values(scored: ScoredText, text: CallText) -> dict[str, float]:
    """By pointer the mean log-probability of the tokens that overlap the value; every value has a character."""
    return {
        pointer: float(scored.log_probabilities[scored.overlapping(start, end)].mean())
        for pointer, (start, end) in text.values.items()
    }


def _verdict(scorer: Scorer, question: str) -> float:
    yes, no = (logsumexp([score_text(scorer, question, form).total for form in forms]) for forms in (YES, NO))
    return float(1 / (1 + np.exp(no - yes)))


def _tool_choice(
    scorer: Scorer, prompt: str, context: CallContext, call: ToolCall, text: CallText
) -> tuple[float, float]:
    """Names are scored with the quote that ends them, so that none is the beginning of another."""
    if len(context.tools) == 1:
        return math.nan, math.nan
    opened = prompt + text.text[: text.name_start]
    log_p = {tool.name: score_text(scorer, opened, call_text_of_name(tool.name)).total for tool in context.tools}
    own = log_p.pop(call.name)
    return float(np.exp(own - logsumexp([own, *log_p.values()]))), own - max(log_p.values())


def call_text_of_name(name: str) -> str:
    """A tool's name as it stands in a call's text, with the quote that ends it."""
    from tracebridge.confidence.surrogate.calls import ToolCall

    text = call_text(ToolCall(name=name))
    return text.text[text.name_start : text.text.index(',"arguments":')]


def _log_mean_exp(values: Sequence[float]) -> float:
    return float(logsumexp(values) - math.log(len(values)))


def _foreign(parameters: Mapping[str, Any], call: ToolCall) -> list[str]:
    """Arguments that the tool's schema does not have; a schema without ``properties`` has nothing to say."""
    known = parameters.get("properties")
    return [name for name in sorted(call.arguments) if isinstance(known, Mapping) and name not in known]
