"""A whole cluster and its clients in one process, in virtual time and from a seed: with all that can go wrong, and what
must hold at the end (docs/simulator.md).

`simulation.simulate(seed)` is one history, `scenario` what it is made of. Brokers and clients in it are production
code; `world` is all that they meet, `cluster` what happens to them, `directed` what happens on purpose, `checking` the
judge.
"""
