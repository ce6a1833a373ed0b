"""The flows from files to files: fitting, assessing, replaying."""

from tracebridge.pipeline.assessing import Assessment, Progress, assess
from tracebridge.pipeline.fitting import FittedCorpus, fit_files, propositions_of
from tracebridge.pipeline.replaying import replay

__all__ = ["Assessment", "FittedCorpus", "Progress", "assess", "fit_files", "propositions_of", "replay"]
