"""Where `rafka consume` begins and stops, and when it has printed enough."""

from __future__ import annotations

import io

import pytest

from rafka.cli import main
from rafka.cli.consume_printer import Printer
from rafka.cli.format import compile_format
from rafka.cli.starts import Span, parse_listed_time, parse_partitions, parse_span, parse_time
from rafka.client import AtOffset, AtTime, Beginning, Chunk, End, FromEnd, TopicPartition
from rafka.records.record import Record

TARGET = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("texts", "span"),
    [
        ([], Span(Beginning())),
        (["beginning"], Span(Beginning())),
        (["start"], Span(Beginning())),
        (["END"], Span(End())),
        (["5"], Span(AtOffset(5))),
        (["-5"], Span(FromEnd(5))),
        (["@1000"], Span(AtTime(1000))),
        (["s@1000", "e@2000"], Span(AtTime(1000), 2000)),
        (["e@2000"], Span(Beginning(), 2000)),
        (["s@1970-01-01T00:00:02"], Span(AtTime(2000))),
    ],
)
def test_offsets(texts: list[str], span: Span) -> None:
    assert parse_span(texts) == span


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["middle"], "not an offset"),
        (["stored"], "consumer groups"),
        (["1", "2"], "two starts"),
        (["s@soon"], "not a time"),
    ],
)
def test_what_is_no_offset(texts: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_span(texts)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("@1000", 1000),
        ("@1795052513000", 1795052513000),
        ("1795052513000", 1795052513000),
        ("1970-01-01", 0),
        ("1969-12-31T23:59:59.999", 0),  # -1 would be the end
        ("0001-01-01", 0),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1000),
    ],
)
def test_times(text: str, time: int) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize("text", ["20261118", "2026", "1795052513"])
def test_few_digits_may_be_meant_otherwise(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^{text} would be 1970-01-.* or @{text} for milliseconds"):
        parse_time(text)
    with pytest.raises(ValueError, match=rf"^{text} would be 1970-01-.* or @{text} for milliseconds"):
        parse_listed_time(text)


@pytest.mark.parametrize("text", ["9" * 23, "@" + "9" * 23, str(2**63)])
def test_a_time_that_cannot_be_asked_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        parse_time(text)


def test_listed_times() -> None:
    texts = ["latest", "-1", "earliest", "-2", "max-timestamp", "-3", "@77"]

    assert [parse_listed_time(text) for text in texts] == [-1, -1, -2, -2, -3, -3, 77]
    with pytest.raises(ValueError, match="or earliest, latest"):
        parse_listed_time("noon")


def test_partitions() -> None:
    assert parse_partitions(["0", "4-6,2"]) == [0, 2, 4, 5, 6]
    for wrong in ("x", "3-1", "-1", ""):
        with pytest.raises(ValueError, match="partition"):
            parse_partitions([wrong])


@pytest.mark.parametrize("text", ["0-9999999999", "0-100000", "2147483648", "0-99,2147483648"])
def test_more_partitions_than_a_topic_may_have_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a partition|too many partitions"):
        parse_partitions([text])


def chunk(*offsets: int) -> Chunk:
    records = [Record(offset, 0, None, b"%d" % offset) for offset in offsets]
    return Chunk(target=TARGET, records=records, next_offset=offsets[-1] + 1, end_offset=100, size=0)


def test_printing_stops_at_the_end_and_at_the_count() -> None:
    out = io.BytesIO()
    printer = Printer(out, compile_format("%s "), {TARGET: 5}, 4)

    printer.print(chunk(1, 2, 3))
    printer.print(chunk(4, 5, 6))

    assert out.getvalue() == b"1 2 3 4 "
    assert printer.left == 0

    endless = Printer(out := io.BytesIO(), compile_format("%s "), {TARGET: 5}, None)
    endless.print(chunk(4, 5, 6))
    assert out.getvalue() == b"4 "


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-f", "%x"], "no such format letter: %x"),
        (["-f", "%s", "--json"], "leave out -f and -K"),
        (["-f", "%s", "-K", ":"], "leave out -K"),
        (["-o", "middle"], "not an offset: 'middle'"),
        (["-c", "0"], "-c is how many"),
        (["-p", "x"], "not a partition: 'x'"),
        (["-b", "host:port"], "not a port: 'port'"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["consume", "t", *words])

    error = capsys.readouterr().err
    assert code == 2
    assert said in error
    assert error.count("\n") == 1


def test_a_broker_that_is_not_there_is_said_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["consume", "t", "-b", "127.0.0.1:1"])

    assert code == 1
    assert capsys.readouterr().err == (
        "rafka consume: no broker can be reached (127.0.0.1:1: connection refused): "
        "is it running, and is the bootstrap address right?\n"
    )
