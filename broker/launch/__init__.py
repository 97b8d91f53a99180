"""From a command line to a broker that runs: commands, options of listeners, logging, signals, exit codes.

Nothing in here knows how a broker works: `run_broker` and `run_cluster` start `server.Broker` and wait for its end. The
commands that talk to a broker over the network stand in `client/commands`.
"""
