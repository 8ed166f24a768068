"""Log lines: Kafka's shape, or JSON; and nothing in them that acts on a terminal."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from rafka import logs

log = logging.getLogger("rafka.gateway")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Where lines go; what pytest had set up is put back afterwards."""
    root = logging.getLogger()
    before, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    root.handlers.clear()
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    logging.raiseExceptions = raising
    logging.captureWarnings(False)


def test_text_is_as_kafka_writes_it(written: io.StringIO) -> None:
    logs.set_up("text", "info", stream=written)

    log.warning("closed %s", "it", extra={"conn_id": 7, "client_id": "app"})
    log.debug("not this one")

    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN "
        r"\[conn_id=7 client_id=app\] closed it \(rafka\.gateway\)\n",
        written.getvalue(),
    )


def test_json_has_what_was_given_beside_the_message(written: io.StringIO) -> None:
    logs.set_up("json", "debug", node_id=3, stream=written)

    log.debug("closed", extra={"conn_id": 7})

    line = json.loads(written.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {"level": "DEBUG", "logger": "rafka.gateway", "msg": "closed", "node_id": 3, "conn_id": 7}


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize(
    "evil", ["a\nINFO forged", "\x1b[2J", "\r", "\x9b31m", "\u202eevil", "\u2028", "\x00"]
)
def test_a_clients_name_cannot_end_a_line_or_move_a_cursor(
    style: str, evil: str, written: io.StringIO
) -> None:
    logs.set_up(style, "info", stream=written)

    log.info("from %s", evil, extra={"client_id": evil})

    line = written.getvalue()
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_traceback_follows_and_is_made_harmless_too(style: str, written: io.StringIO) -> None:
    logs.set_up(style, "info", stream=written)

    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        log.error("unforeseen", exc_info=sys.exc_info())

    text = written.getvalue()
    trace = json.loads(text)["trace"] if style == "json" else text
    assert "Traceback (most recent call last)" in trace
    assert "ValueError: \\x1b[2J" in trace
