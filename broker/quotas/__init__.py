"""How much clients may ask of this broker: limits, who shares one, what was used of it, and for how long to be silent.

Pure: times come in as milliseconds, and nothing here knows of requests or connections. What counts, and how a client is
silenced, is for handling/throttling.py and network/connection.py; what is stored, for cluster/quotas.py.
"""
