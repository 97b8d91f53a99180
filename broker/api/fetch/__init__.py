"""Fetch: one API for two kinds of peers. `consumer` answers clients, `follower` brokers that replicate."""
