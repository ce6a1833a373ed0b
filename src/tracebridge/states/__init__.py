"""From traces to paths over named states.

`count_features` turns a stream of traces into counts over small feature vectors, `abstract_features` makes states of
the vectors (folding rare ones, clustering many, splitting for properties), and what leaves the package is integers:
flows of runs, and the map from vectors to states with the propositions that hold in each. A `StateMap`, a function or
`TextFeatures` put steps into groups first.
"""

from tracebridge.states.abstraction import Abstraction, Split
from tracebridge.states.clustering import Clustering, cluster, cut_tree, mean_silhouettes, ward_tree
from tracebridge.states.construction import DEFAULT_K_MAX, PAPER_K_MAX, abstract_features
from tracebridge.states.description import StateDescription
from tracebridge.states.features import (
    OUTCOMES,
    EncodedRuns,
    FeatureCounts,
    FeatureVector,
    StepClassifier,
    count_features,
    encode_runs,
)
from tracebridge.states.flow import RunFlow
from tracebridge.states.grouping import GroupedCorpus, StatesChoice, TextChoice, group_steps
from tracebridge.states.manual import StateFunction, StateMap, StateRule
from tracebridge.states.remarks import state_remarks
from tracebridge.states.rule_columns import one_hot
from tracebridge.states.space import RESERVED_WORDS, Propositions, Renaming, StateSpace, name_states
from tracebridge.states.state_map_file import read_state_map
from tracebridge.states.text_clusters import TextClusters
from tracebridge.states.text_corpus import TextCorpus
from tracebridge.states.text_features import TextFeatures

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
    "GroupedCorpus",
    "Propositions",
    "Renaming",
    "RunFlow",
    "Split",
    "StateDescription",
    "StateFunction",
    "StateMap",
    "StateRule",
    "StateSpace",
    "StatesChoice",
    "StepClassifier",
    "TextChoice",
    "TextClusters",
    "TextCorpus",
    "TextFeatures",
    "abstract_features",
    "cluster",
    "count_features",
    "cut_tree",
    "encode_runs",
    "group_steps",
    "mean_silhouettes",
    "name_states",
    "one_hot",
    "read_state_map",
    "state_remarks",
    "ward_tree",
]
