"""From paths to Markov chains.

`TransitionCounts` adds up what a corpus says, `fit_counts` turns it into a `MarkovChain` with exact probabilities,
`AbsorbingChain` is the canonical form of one in which every run ends, and `read_chain` and `write_chain` keep chains
as JSON without losing a bit.
"""

from tracebridge.chain.absorbing import AbsorbingChain
from tracebridge.chain.counts import CensoringPolicy, RowCounts, TransitionCounts
from tracebridge.chain.document import (
    chain_from_dict,
    chain_to_dict,
    document_text,
    parse_document,
    read_chain,
    read_document,
    write_chain,
    write_document,
)
from tracebridge.chain.estimate import PriorName, Support, parse_prior
from tracebridge.chain.fit import ChainFit, Profile, fit_chain, fit_counts, read_fit, write_fit
from tracebridge.chain.graph import reachable, reaching, recurrent_classes
from tracebridge.chain.markov import IMPLICIT_LABELS, ROW_SUM_TOLERANCE, MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.sample import sample_paths, sample_traces

__all__ = [
    "IMPLICIT_LABELS",
    "ROW_SUM_TOLERANCE",
    "AbsorbingChain",
    "CensoringPolicy",
    "ChainFit",
    "MarkovChain",
    "PriorName",
    "Profile",
    "RationalMatrix",
    "RationalVector",
    "RewardStructure",
    "RowCounts",
    "Support",
    "TransitionCounts",
    "chain_from_dict",
    "chain_to_dict",
    "document_text",
    "fit_chain",
    "fit_counts",
    "parse_document",
    "parse_prior",
    "reachable",
    "reaching",
    "read_chain",
    "read_document",
    "read_fit",
    "recurrent_classes",
    "sample_paths",
    "sample_traces",
    "write_chain",
    "write_document",
    "write_fit",
]
