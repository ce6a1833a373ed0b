"""From traces to paths over named states.

`count_features` turns a stream of traces into counts over small feature vectors, `abstract_features` makes states of
the vectors (folding rare ones, clustering many, splitting for properties), and what leaves the package is integers:
flows of runs, and the map from vectors to states with the propositions that hold in each.
"""

from tracebridge.states.abstraction import DEFAULT_K_MAX, PAPER_K_MAX, Abstraction, abstract_features, one_hot
from tracebridge.states.clustering import Clustering, cluster, cut_tree, mean_silhouettes, ward_tree
from tracebridge.states.features import OUTCOMES, EncodedRuns, FeatureCounts, FeatureVector, count_features, encode_runs
from tracebridge.states.flow import RunFlow
from tracebridge.states.space import RESERVED_WORDS, Propositions, Renaming, StateSpace, name_states

__all__ = [
    "DEFAULT_K_MAX",
    "OUTCOMES",
    "PAPER_K_MAX",
    "RESERVED_WORDS",
    "Abstraction",
    "Clustering",
    "EncodedRuns",
    "FeatureCounts",
    "FeatureVector",
    "Propositions",
    "Renaming",
    "RunFlow",
    "StateSpace",
    "abstract_features",
    "cluster",
    "count_features",
    "cut_tree",
    "encode_runs",
    "mean_silhouettes",
    "name_states",
    "one_hot",
    "ward_tree",
]
