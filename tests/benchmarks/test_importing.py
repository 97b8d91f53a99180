"""The libraries are imported before the clock runs for the broker, in a process that has imported neither."""

from benchmarks.importing import BROKER, LIBRARIES, SCRIPT, import_times


def test_both_times_are_measured() -> None:
    libraries, broker = import_times()
    assert libraries > 1
    assert broker > 1


def test_libraries_come_first() -> None:
    script = SCRIPT.format(libraries=LIBRARIES, broker=BROKER)
    assert script.index("uvloop") < script.index("between =") < script.index("odradek.broker.launch.run_broker")
