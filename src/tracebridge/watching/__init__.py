"""Streams of runs under watch: files that grow, counts that may forget, verdicts and alarms that change."""

from tracebridge.watching.events import Event
from tracebridge.watching.followed_files import FollowedFiles
from tracebridge.watching.live_counts import LiveCounts
from tracebridge.watching.options import WatchOptions
from tracebridge.watching.watcher import Watcher

__all__ = ["Event", "FollowedFiles", "LiveCounts", "WatchOptions", "Watcher"]
