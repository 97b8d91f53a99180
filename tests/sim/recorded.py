"""A seed that finds each canary, the first of those that its search tried or a shorter one, and short ones for tests.

The same seed finds nothing without the canary. A change of what seeds choose, or of the order in which chance is asked,
makes other histories of them: then look for them anew.
"""

from typing import Final

SHORT: Final = (2, 5, 6, 8)
"""Seeds of short histories, of one broker and of three, for `make test`."""
FOUND_BY: Final[dict[str, int]] = {
    "the log is not synced": 17,
    "acknowledged before it is synced": 105,
    "half a batch is not cut off": 20,
    "duplicates are not noticed": 5,
    "producers are not learned from the log": 17,
    "a log is trusted after a failed sync": 182,
    "a follower truncates to its high watermark": 1,
    "the leader ignores the fetch's leader epoch": 5,
    "an in-sync set is written without compare": 12,
    "the broker epoch is ignored when a replica is added": 108,
    "the controller writes without its guard": 140,
    "high watermark from the stored in-sync set": 30,
    "min.insync is not looked at before the append": 12,
    "the high watermark advances below min.insync": 12,
    "an unclean restart keeps its in-sync place": 15,
    "producers are not known to a new leader": 16,
    "compaction counts what is above the high watermark": 148,
    "a follower is sent what is appended where its log parts": 87,
    "acknowledged before the high watermark": 1,
    "a wake-up is missed between look and wait": 1,
    "an older store is known by its revision alone": 43,
    "deleted records are answered before the followers know": 158,
    "a replica joins with records that were deleted": 96,
    "a reassignment completes with one in sync": 81,
    "a change is answered before it is stored": 95,
    "a clean stop leaves logs as they are": 10,
    "a directory is taken by its name": 3,
    "new topics have replicas on live brokers alone": 180,
    "a coordinator answers before the high watermark": 1,
    "a coordinator reads above the high watermark": 63,
    "a coordinator begins without its log": 1,
    "commits of any generation are taken": 23,
    "commits of any member epoch are taken": 90,
    "a coordinator answers though it may be fenced": 302,
    "the last stable offset passes open transactions": 8,
    "read_committed reads up to the high watermark": 8,
    "a marker of an older coordinator is taken": 196,
    "markers leave before their prepare is committed": 24,
    "a transaction is complete before all markers": 67,
    "what the log refuses of a transaction stays": 26,
    "aborted transactions are passed over out of order": 155,
    "a consumer commits beside its transaction": 8,
}
