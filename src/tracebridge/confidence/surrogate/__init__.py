"""How a surrogate language model judges an agent's tool call: readouts of its log-probabilities as confidence.

Source: arXiv:2610.03894 (of which the abstract alone is public); what it leaves open is our choice and said so where it
is made. A surrogate is anything that scores a continuation token by token, see `Scorer`.
"""

from tracebridge.confidence.surrogate.calls import CallText, Tool, ToolCall, call_text
from tracebridge.confidence.surrogate.context import CallContext, Message, render_context
from tracebridge.confidence.surrogate.ensemble import ReadoutEnsemble
from tracebridge.confidence.surrogate.gate import Gate, feedback_message
from tracebridge.confidence.surrogate.readouts import (
    NULL_REQUESTS,
    READOUTS,
    ArgumentScores,
    Readouts,
    read_out,
)
from tracebridge.confidence.surrogate.scorer import ScoredToken, Scorer

__all__ = [
    "NULL_REQUESTS",
    "READOUTS",
    "ArgumentScores",
    "CallContext",
    "CallText",
    "Gate",
    "Message",
    "ReadoutEnsemble",
    "Readouts",
    "ScoredToken",
    "Scorer",
    "Tool",
    "ToolCall",
    "call_text",
    "feedback_message",
    "read_out",
    "render_context",
]
