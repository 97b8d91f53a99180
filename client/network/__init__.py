"""A connection to one broker: dialing, TLS, versions, authentication, and requests under way."""
