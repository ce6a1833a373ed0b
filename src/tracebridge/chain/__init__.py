"""From paths to Markov chains.

`TransitionCounts` adds up what a corpus says, `fit_counts` turns it into a `MarkovChain` with exact probabilities,
`AbsorbingChain` is the canonical form of one in which every run ends, and `read_chain` and `write_chain` keep chains
as JSON without losing a bit. `aalen_johansen` is the empirical curve that a chain is held against, `censoring_extremes`
and `verdict_support` say what an answer rests on that was not seen.
"""

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.censoring_bounds import (
    CensoringExtremes,
    censoring_extremes,
    mean_length_bounds,
    reliability_bounds,
)
from tracebridge.chain.counts import CensoringPolicy, RowCounts, TransitionCounts
from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.decision_document import read_decision, write_decision
from tracebridge.chain.decisive_edges import ReachabilityKind, edges_that_matter, reachability_holds
from tracebridge.chain.document import (
    chain_from_dict,
    chain_to_dict,
    document_text,
    read_chain,
    read_document,
    write_chain,
    write_document,
)
from tracebridge.chain.edit import Redirection, RowChange, edited, parse_redirection
from tracebridge.chain.estimate import PriorName, StartName, Support, parse_prior
from tracebridge.chain.fit import ChainFit, Profile, fit_counts, read_fit, write_fit
from tracebridge.chain.fit_corpus import fit_chain
from tracebridge.chain.graph import reachable, reaching, recurrent_classes
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.sample import sample_paths, sample_traces
from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.chain.stuck import stuck_as_outcome
from tracebridge.chain.support import DeclaredSupport, read_declared_support
from tracebridge.chain.survival import IncidenceCurves, LengthCounts, aalen_johansen
from tracebridge.chain.transition_rows import ROW_SUM_TOLERANCE
from tracebridge.chain.unseen import UnseenEdge, VerdictSupport, unseen_edges, verdict_support, zero_count_bound
from tracebridge.chain.vocabulary import StateVocabulary
from tracebridge.chain.weights import WeightedCounts
from tracebridge.traces.text_document import parse_document

__all__ = [
    "IMPLICIT_LABELS",
    "ROW_SUM_TOLERANCE",
    "AbsorbingChain",
    "CensoringExtremes",
    "CensoringPolicy",
    "ChainFit",
    "DecisionProcess",
    "DeclaredSupport",
    "IncidenceCurves",
    "LengthCounts",
    "MarkovChain",
    "PriorName",
    "Profile",
    "RationalMatrix",
    "RationalVector",
    "ReachabilityKind",
    "Redirection",
    "RewardStructure",
    "RowChange",
    "RowCounts",
    "StartName",
    "StateVocabulary",
    "Support",
    "TransitionCounts",
    "UnseenEdge",
    "VerdictSupport",
    "WeightedCounts",
    "aalen_johansen",
    "censoring_extremes",
    "chain_from_dict",
    "chain_to_dict",
    "document_text",
    "edges_that_matter",
    "edited",
    "fit_chain",
    "fit_counts",
    "mean_length_bounds",
    "parse_document",
    "parse_prior",
    "parse_redirection",
    "reachability_holds",
    "reachable",
    "reaching",
    "read_chain",
    "read_decision",
    "read_declared_support",
    "read_document",
    "read_fit",
    "recurrent_classes",
    "reliability_bounds",
    "sample_paths",
    "sample_traces",
    "stuck_as_outcome",
    "unseen_edges",
    "verdict_support",
    "write_chain",
    "write_decision",
    "write_document",
    "write_fit",
    "zero_count_bound",
]
