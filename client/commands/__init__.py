"""The commands of `odradek` that talk to a Kafka broker: a module for each, and what they share.

A module imports click at its top and what talks to brokers only when the command runs, so that `--help` answers at
once. (`tests/odradek/test_cli.py` counts the modules.)
"""
