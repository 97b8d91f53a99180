"""One partition and its replicas: who is in sync, how far the high watermark may go, who may append.

Leading: `partition`, `replicas`, `isr_writer`, `deletions`, and the sessions of followers. Following: `fetchers`,
`fetcher`, and what they know of one leader. The table of all partitions is `partitions`.
"""
