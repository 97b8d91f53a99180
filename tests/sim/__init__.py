"""Tests of the simulator (odradek/testing/sim), mistakes put into the broker on purpose, and the runs of many seeds."""
