"""One handler a file, named after its API. None of them imports another; `broker/served.py` lists them all.

A handler takes a decoded request and a `Call` and returns a response. What several handlers need stands in
`handling`.
"""
