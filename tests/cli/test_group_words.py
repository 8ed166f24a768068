"""What is typed to `rafka group`, what it prints, and what it says when it is asked wrongly."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from rafka.cli import main
from rafka.cli.group import describe, history, lag
from rafka.cli.group.destination import ago, parse_duration, read_plan
from rafka.cli.group.listing import parse_states
from rafka.cli.group.progress import Progress, total_lag
from rafka.cli.group.shared import advice, parse_scope
from rafka.cli.output import CommandError
from rafka.client import BrokerRefused, MemberDescription, TopicPartition
from rafka.client.errors import refused
from rafka.client.messages.history import GroupHistoryReply, MovedMember, Rebalance
from rafka.client.offsets import AtTime
from rafka.errors import ErrorCode

ONE, TWO = TopicPartition("orders", 0), TopicPartition("payments", 1)


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("orders", ("orders", None)),
        ("orders:0", ("orders", [0])),
        ("orders:0,2-4", ("orders", [0, 2, 3, 4])),
    ],
)
def test_a_topic_may_be_named_with_some_of_its_partitions(
    text: str, scope: tuple[str, list[int] | None]
) -> None:
    assert parse_scope(text) == scope


@pytest.mark.parametrize("text", [":0", "orders:", "orders:x", "orders:3-1", ""])
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a topic|not a partition|an empty range"):
        parse_scope(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P7D", timedelta(days=7)),
        ("PT2H", timedelta(hours=2)),
        ("P1DT2H30M", timedelta(days=1, hours=2, minutes=30)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("pt5m", timedelta(minutes=5)),
        ("P2W", timedelta(weeks=2)),
    ],
)
def test_durations_are_written_as_in_java(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "2h", "P1H", "PT1D", "-PT1H", "P1Y"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as P7D or PT1H30M"):
        parse_duration(text)


def test_a_duration_counts_back_from_now() -> None:
    assert ago("PT1M", 100_000).start == AtTime(40_000)
    assert ago("P1D", 100_000).start == AtTime(0), "below 0 are special times"


def test_states_are_named_in_any_case() -> None:
    assert parse_states("stable,EMPTY, preparingrebalance") == ["Stable", "Empty", "PreparingRebalance"]
    with pytest.raises(ValueError, match="not a state: 'asleep'"):
        parse_states("stable,asleep")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--state", "asleep"], "not a state: 'asleep'"),
        (["lag", "-g"], "a name that begins with - comes after --, as in `rafka group lag -- -g`"),
        (["remove-member", "g", "--member", "-m"], "where it begins with -, write it after ="),
        (["describe", "g", "--nope"], "see `rafka group describe --help`"),
        (["lag", "g", "--interval", "0"], "-i is a time between two looks, not 0"),
        (["reset-offsets", "g", "--topic", "t"], "one of the arguments --to-earliest"),
        (["reset-offsets", "g", "--topic", "t", "--to-earliest", "--to-latest"], "not allowed with"),
        (["reset-offsets", "g", "--to-earliest"], "say which partitions: --topic or --all-topics"),
        (["reset-offsets", "g", "--topic", "t", "--all-topics", "--to-earliest"], "exclude each other"),
        (["reset-offsets", "g", "--topic", "t", "--from-file", "f"], "leave out --topic and --all-topics"),
        (["reset-offsets", "g", "--all-topics", "--to-latest", "--json", "--export"], "two formats"),
        (["reset-offsets", "", "--topic", "t", "--to-earliest"], "a group needs a name"),
        (["reset-offsets", "g", "--topic", "t", "--to-datetime", "2026"], "or @2026 for milliseconds"),
        (["reset-offsets", "g", "--topic", "t", "--by-duration", f"P{'9' * 14}D"], "not a duration"),
        (["reset-offsets", "g", "--topic", "t:0-9999999999", "--to-latest"], "not a partition"),
        (["reset-offsets", "g", "--topic", "t", "--by-duration", "2h"], "not a duration: '2h'"),
        (["reset-offsets", "g", "--topic", "t", "--to-datetime", "noon"], "not a time: 'noon'"),
        (["reset-offsets", "g", "--topic", "t", "--to-earliest", "--dry-run", "--execute"], "not allowed"),
        (["delete-offsets", "g"], "required: -t/--topic"),
        (["delete-offsets", "g", "--topic", "t:x"], "not a partition: 'x'"),
        (["remove-member", "g"], "say whom: --member, --instance, or --all"),
        (["remove-member", "g", "--all", "--member", "m"], "--all is every member: leave it out"),
        (["history", "g", "-n", "-1"], "-n is how many rebalances to show, not -1"),
        (["lagg", "g"], "invalid choice: 'lagg'"),
    ],
)
def test_being_asked_wrongly_takes_no_broker_to_find_out(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["group", *words, "-b", "127.0.0.1:1"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--group", "g", "-p", "0"], "a group shares out the partitions itself"),
        (["--group", "g", "-o", "5"], "`rafka group reset-offsets` puts a group elsewhere"),
        (["--group", "g", "-o", "e@5"], "with --group, -o is beginning or end"),
        (["--group", ""], "--group needs a name"),
        (["--assignor", "range"], "--assignor is for members of a group: add --group"),
        (["--group-instance-id", "i"], "--group-instance-id is for members of a group"),
        (["--group", "g", "-o", "end", "--from-beginning"], "leave out one of them"),
    ],
)
def test_some_options_of_consume_are_for_groups_and_some_are_not(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["consume", "orders", *words, "-b", "127.0.0.1:1"]) == 2
    assert said in capsys.readouterr().err


# --- plans in files ----------------------------------------------------------------------------


def test_a_plan_is_read_as_it_is_exported(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("orders,0,5\n\npayments,1,7\n")

    assert read_plan(str(plan), "billing").offsets == {ONE: 5, TWO: 7}


def test_of_a_plan_for_several_groups_only_ones_own_part_counts(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text('"billing","orders",0,5\naudit,orders,0,9\n')

    assert read_plan(str(plan), "billing").offsets == {ONE: 5}
    with pytest.raises(CommandError, match="has no offsets for group 'other'"):
        read_plan(str(plan), "other")


def test_a_line_that_says_nothing_is_named(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("orders,0,5\norders,one,5\n")

    with pytest.raises(CommandError, match=r"plan.csv, line 2: not topic,partition,offset: 'orders,one,5'"):
        read_plan(str(plan), "billing")
    with pytest.raises(CommandError, match="No such file"):
        read_plan(str(tmp_path / "none.csv"), "billing")


def test_a_plan_may_come_from_a_spreadsheet_or_through_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_bytes(b"\xef\xbb\xbforders,0,5\r\npayments,1,7\r\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plan.read_bytes())))

    assert read_plan(str(plan), "billing").offsets == {ONE: 5, TWO: 7}
    assert read_plan("-", "billing").offsets == {ONE: 5, TWO: 7}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"orders,0,5\norders,0,6\n", "line 2: orders-0 for the second time"),
        (b"\xff\xfe", "it is no CSV in UTF-8"),
        (b'"' + b"x" * 200_000 + b'",0,5\n', "it is no CSV in UTF-8: field larger than field limit"),
    ],
    ids=["twice", "other encoding", "long field"],
)
def test_a_plan_that_cannot_be_meant_is_refused(tmp_path: Path, text: bytes, said: str) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_bytes(text)

    with pytest.raises(CommandError, match=said):
        read_plan(str(plan), "billing")


# --- what is printed ---------------------------------------------------------------------------


def test_lag_is_what_lies_between_the_group_and_the_end() -> None:
    rows = [
        Progress(target=ONE, current=3, end=10),
        Progress(target=ONE, current=None, end=10),
        Progress(target=ONE, current=3, end=None),
        Progress(target=ONE, current=12, end=10),
    ]

    assert [row.lag for row in rows] == [7, None, None, 0]
    assert total_lag(rows) == 7


def test_an_assignment_is_written_as_kafkas_tool_writes_it() -> None:
    assert describe.assignment_text([ONE, TopicPartition("orders", 2), TWO]) == "orders:0,2;payments:1"


def test_json_tells_who_reads_a_partition() -> None:
    member = MemberDescription(
        member_id="m", instance_id=None, client_id="c", host="/10.0.0.1", assignment=(ONE,)
    )

    shown = describe.offset_json(Progress(target=ONE, current=3, end=10, member=member))

    assert shown == {
        "topic": "orders",
        "partition": 0,
        "leader_epoch": None,
        "current_offset": 3,
        "log_end_offset": 10,
        "lag": 7,
        "member_id": "m",
        "client_id": "c",
        "client_host": "/10.0.0.1",
    }


def test_a_live_table_is_drawn_over_the_last_one_and_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "6")
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)

    rows = [Progress(target=TopicPartition("t", n), end=n) for n in range(9)]
    lag.draw("billing\x1b[2J", lag.Look(None, rows, "07:00:00"), clear=False)

    drawn = screen.getvalue()
    assert drawn.startswith("\x1b[Hbilling\\x1b[2J: lag 0, 07:00:00")
    assert "\x1b[2J" not in drawn
    lines = re.sub(r"\x1b\[\w", "", drawn).splitlines()
    assert len(lines) == 5
    assert lines[-1] == "... and 8 more"
    assert all(len(line) <= 40 for line in lines)
    assert lines[2].split()[-1] == "LAG"


def rebalance(**more: object) -> Rebalance:
    values: dict[str, object] = {
        "number": 3,
        "began_ms": 1_795_021_727_691,
        "trigger": "member left",
        "trigger_member": "m-1",
        "reason": "closed\nfor today",
        "outcome": "stable",
        "generation_id": 7,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": "m-2",
        "join_ms": 40,
        "sync_ms": -1,
        "members_before": 2,
        "members_after": 1,
        "moved": 4,
        "told_ms": 1_795_021_727_731,
        "members": [
            MovedMember(
                member_id="m-2",
                group_instance_id="pod-2",
                client_id="c",
                client_host="/10.0.0.1",
                joined=True,
                gained=4,
                lost=0,
                pause_ms=43,
            ),
            MovedMember(
                member_id="m-1",
                group_instance_id=None,
                client_id="c",
                client_host="/10.0.0.2",
                joined=False,
                gained=0,
                lost=-1,
                pause_ms=-1,
            ),
        ],
    }
    return Rebalance(**(values | more))  # type: ignore[arg-type]


def test_a_rebalance_is_a_line_and_a_line_for_each_member(capsys: pytest.CaptureFixture[str]) -> None:
    history.show_rebalances(argparse.Namespace(json=False, members=True), [rebalance()])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "3"
    assert "2026-11-18T17:08:47.691" in lines[0]
    assert "2 -> 1" in lines[0]
    assert lines[0].endswith(r"member left             m-1 (closed\nfor today)")
    assert lines[1:] == [
        "        m-2 (instance pod-2) c /10.0.0.1: +4 -0, waited 43 ms",
        "        m-1 c /10.0.0.2: gone, -?",
    ]


def test_the_head_of_a_history_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    reply = GroupHistoryReply(
        error_code=0, error_message=None, stable_id="cgp_1", locator="l/a\x1b[2J", rebalances=[]
    )

    history.begin(argparse.Namespace(group="a\x1b[2J", json=False), reply)

    assert capsys.readouterr().out.splitlines()[0] == r"a\x1b[2J (cgp_1, l/a\x1b[2J)"


def test_a_rebalance_is_json_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    history.show_rebalances(argparse.Namespace(group="billing", json=True, members=False), [rebalance()])

    [line] = capsys.readouterr().out.splitlines()
    shown = json.loads(line)
    assert shown["group"] == "billing"
    assert shown["members"][0]["gained"] == 4
    assert shown["reason"] == "closed\nfor today"


# --- what to do about it ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "does not exist: `rafka group list` shows those that do"),
        (ErrorCode.NON_EMPTY_GROUP, "has active members: stop them first"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "has active members: stop them first"),
        (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "are subscribed to the topic: stop them first"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED: not authorised for the group"),
    ],
)
def test_errors_name_the_group_and_the_way_out(code: ErrorCode, said: str) -> None:
    error: BrokerRefused = refused(code, "group 'billing'")

    assert advice(error, "billing").startswith("group 'billing'")
    assert said in advice(error, "billing")


@pytest.mark.parametrize(
    ("group", "typed"),
    [("billing", "billing"), ("my group", "'my group'"), ("-x", "-- -x"), ("it's", "'it'\"'\"'s'")],
)
def test_what_is_advised_can_be_typed(group: str, typed: str) -> None:
    error = refused(ErrorCode.NON_EMPTY_GROUP, "it")

    assert f"(`rafka group describe --members {typed}` shows them)" in advice(error, group)
