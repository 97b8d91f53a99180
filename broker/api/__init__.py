"""One handler a file, named after its API. None of them imports another; `broker/served.py` lists them all."""
