"""`python -m benchmarks [PART…] [--only NAME…]`: measures Odradek beside Apache Kafka and prints a table with ratios.

    start         start time and memory
    log           produce, fetch, fsync, compaction: speed, latency, and what they cost the server
    cores         several processes under a supervisor: speed, what they cost, start, stop, idle, compaction
    cluster       three brokers with three replicas of everything: speed, latency, failover, many topics
    groups        commits, rebalances, failover of a coordinator, idle groups, loading of offsets
    transactions  how many a second, what writers and readers lose by them, failover of a coordinator, idle ids
    testkit       a cluster in a test, from the wheel: start, kill, reset, memory, a thousand tests
    clients       Odradek's producer beside other clients, to both brokers

Each finished measurement is written down with its commit and its plan, and not repeated for them. `--list` names them.
The issue's conditions are the defaults; options make a run smaller, for trying something out.
"""

import sys

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
