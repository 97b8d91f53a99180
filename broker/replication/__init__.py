"""Between brokers: which role each partition gets, who is in sync, and how followers get what their leader has.

Leading: `isr_writer`, and the sessions of followers. Following: `fetchers`, `fetcher`, and what they know of one
leader. What a leader or follower is by itself is `replica`.
"""
