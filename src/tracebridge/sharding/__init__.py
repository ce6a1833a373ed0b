"""A corpus in shards: each file is read where there is time for it, into a summary; summaries add up to the corpus.

The result does not depend on who read what and when: shards are merged in the order of the files, and what is wrong
with them is told in that order.
"""

from tracebridge.sharding.reading import ShardedCorpus, read_shards
from tracebridge.sharding.source import OnProgress, ReadingProgress
from tracebridge.sharding.task import ShardOptions

__all__ = ["OnProgress", "ReadingProgress", "ShardOptions", "ShardedCorpus", "read_shards"]
