"""What makes a broker a member of its cluster: its registration and lease, the image that it follows, its connections
to other brokers, and what it has lost since its last start.

What the members decide together stands in `controller` and `cluster`.
"""
