"""Log lines: JSON ones parse, one object a line, whatever a message holds; text ones tell level and logger."""

import json
import logging
from collections.abc import Iterator
from datetime import datetime

import pytest

from odradek.broker.launch.logging_format import configure_logging
from odradek.broker.observability.log_levels import set_level
from odradek.broker.observability.request_log import TRACE


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_every_json_line_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "info"}, "json")
    logger = logging.getLogger("odradek.broker.server")
    logger.debug("not at this level")
    logger.info('a line\nof two, with "quotes", ümlauts and \x00')
    try:
        raise LookupError("lost")
    except LookupError:
        logger.exception("%s failed", "Produce")
    out, err = capsys.readouterr()
    assert out == "", "standard output holds the ready line alone"
    first, second = (json.loads(line) for line in err.splitlines())
    assert (first["level"], first["logger"]) == ("info", "odradek.broker.server")
    assert first["message"] == 'a line\nof two, with "quotes", ümlauts and \x00'
    assert "exception" not in first
    assert (second["level"], second["message"]) == ("error", "Produce failed")
    assert second["exception"].startswith("Traceback")
    assert "LookupError: lost" in second["exception"]


def test_the_time_of_a_json_line_says_its_zone(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "info"}, "json")
    record = logging.LogRecord("odradek.broker", logging.INFO, "", 0, "hello", None, None)
    record.created = 1_700_000_000.25
    logging.getLogger().handle(record)
    time = json.loads(capsys.readouterr().err)["time"]
    assert time == "2023-11-14T22:13:20.250+00:00"
    assert datetime.fromisoformat(time).timestamp() == record.created


def test_a_text_line_tells_level_and_logger(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "warning"}, "text")
    logging.getLogger("odradek.broker.network.connection").warning("closed the connection of %s", "peer:1")
    logging.getLogger("odradek.broker.network.connection").info("not at this level")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("WARNING odradek.broker.network.connection: closed the connection of peer:1")


def test_configuring_again_does_not_double_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "info"}, "text")
    configure_logging({"root": "info"}, "json")
    logging.getLogger("odradek.broker").info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_logger_may_have_a_level_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "warning", "kafka.request.logger": "trace"}, "text")
    try:
        logging.getLogger("kafka.request.logger").log(TRACE, "everything")
        logging.getLogger("odradek.broker").info("not at this level")
    finally:
        set_level("kafka.request.logger", None)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("TRACE   kafka.request.logger: everything")


def test_each_line_of_a_broker_among_several_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging({"root": "info"}, "text", broker=2)
    logger = logging.getLogger("odradek.broker.server")
    logger.warning("one\ntwo")
    configure_logging({"root": "info"}, "json", broker=2)
    logger.warning("three")
    one, two, three = capsys.readouterr().err.splitlines()
    assert one.startswith("[broker 2] ")
    assert one.endswith("odradek.broker.server: one")
    assert two == "[broker 2] two"
    assert json.loads(three)["broker"] == 2
