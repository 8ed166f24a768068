"""What `rafka group` makes of what a broker answers: tables, JSON, complaints, exit codes."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from rafka.client import TopicPartition
from rafka.wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS

from .scripted import Administered, Shell

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
MEMBER: Any = CONSUMER_GROUP_DESCRIBE.Response.Groups.Members
CLASSIC_MEMBER: Any = DESCRIBE_GROUPS.Response.Groups.Members


def share(*partitions: int) -> Any:
    topic = MEMBER.Assignment.TopicPartitions(topic_name="orders", partitions=list(partitions))
    return MEMBER.Assignment(topic_partitions=[topic])


@pytest.fixture
def broker() -> Administered:
    """Each group has read 5 of 8 records of partition 0, and 1 is at its end."""
    newcomer = MEMBER(
        member_id="m",
        member_epoch=6,
        client_id="c",
        client_host="/h",
        assignment=share(0),
        target_assignment=share(0, 1),
    )
    broker = Administered(
        topics={"orders": 2},
        offsets={ONE: 5, TWO: 2},
        classic={
            "billing": {"group_state": "Empty", "protocol_type": "consumer"},
            "busy": {
                "group_state": "Stable",
                "protocol_type": "consumer",
                "protocol_data": "range",
                "members": [CLASSIC_MEMBER(member_id="m", client_id="c", client_host="/h")],
            },
        },
        newer={
            "newer": {
                "group_state": "Reconciling",
                "group_epoch": 8,
                "assignment_epoch": 7,
                "assignor_name": "uniform",
                "members": [newcomer],
            }
        },
        shared={"shared": "Stable"},
    )
    broker.logs[ONE].end, broker.logs[TWO].end = 8, 2
    return broker


@pytest.fixture
def rafka(broker: Administered, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(broker, capsys, monkeypatch)


class Typed(io.StringIO):
    """A terminal at which this is typed."""

    def isatty(self) -> bool:
        return True


# --- describe --------------------------------------------------------------------------------


def test_members_have_the_columns_of_kafkas_tool_whatever_they_speak(rafka: Shell) -> None:
    said = rafka("group", "describe", "busy", "newer", "--members", "--verbose")

    header = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT"
    header += " TARGET-EPOCH TARGET-ASSIGNMENT"
    assert said.code == 0
    assert said.rows == [
        header.split(),
        ["busy", "m", "/h", "c", "0", "-", "-", "-", "-"],
        [],
        header.split(),
        ["newer", "m", "/h", "c", "1", "6", "orders:0", "7", "orders:0,1"],
    ]


def test_states_have_the_columns_of_kafkas_tool_whatever_members_speak(rafka: Shell) -> None:
    short = rafka("group", "describe", "newer", "--state")
    long = rafka("group", "describe", "newer", "--state", "--verbose")
    classic = rafka("group", "describe", "busy", "--state", "--verbose")

    assert short.rows[1][-3:] == ["uniform", "Reconciling", "1"]
    assert long.rows[0][-4:] == ["STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    assert long.rows[1][-4:] == ["Reconciling", "8", "7", "1"]
    assert classic.rows[1][-4:] == ["Stable", "-", "-", "1"]


def test_who_reads_a_partition_is_told_of_the_next_generation_too(rafka: Shell) -> None:
    said = rafka("group", "describe", "newer")

    assert said.rows[1] == ["newer", "orders", "0", "5", "8", "3", "m", "/h", "c"]
    assert said.rows[2] == ["newer", "orders", "1", "2", "2", "0", "-", "-", "-"]


def test_json_has_the_same_keys_for_every_kind(rafka: Shell) -> None:
    newer, shared, classic = (
        rafka("group", "describe", name, "--json").json[0] for name in ("newer", "shared", "busy")
    )

    assert newer.keys() == shared.keys() == classic.keys()
    assert (newer["type"], newer["state"], newer["group_epoch"], newer["lag"]) == (
        *("consumer", "Reconciling", 8, 3),
    )
    assert newer["members"] == [
        {
            "member_id": "m",
            "group_instance_id": None,
            "client_id": "c",
            "client_host": "/h",
            "member_epoch": 6,
            "partitions": {"orders": [0]},
            "target_partitions": {"orders": [0, 1]},
        }
    ]
    assert (classic["type"], classic["group_epoch"]) == ("classic", None)
    assert (shared["state"], shared["members"], shared["coordinator"]) == (None, None, None)


@pytest.mark.parametrize("view", ["--members", "--state", "--offsets"])
def test_all_groups_are_described_though_one_cannot_be(rafka: Shell, view: str) -> None:
    said = rafka("group", "describe", view)

    assert said.code == 0
    assert {row[0] for row in said.rows if row} >= {"busy", "newer", "GROUP"}
    assert "% group 'shared' is of a kind whose members and state are not shown" in said.err


def test_one_that_cannot_be_described_is_a_failure_where_it_was_asked_for(rafka: Shell) -> None:
    assert rafka("group", "describe", "shared").code == 0
    assert rafka("group", "describe", "shared", "--members").code == 1


def test_one_that_is_not_there_does_not_hide_the_others(rafka: Shell) -> None:
    told = rafka("group", "describe", "none", "busy", "nil", "--state")
    shown = rafka("group", "describe", "none", "busy", "nil", "--json")

    for said in (told, shown):
        assert said.code == 1
        assert [line.split("'")[1] for line in said.err.splitlines()] == ["none", "nil"]
    assert told.rows[1][0] == "busy"
    assert [one["group"] for one in shown.json] == ["busy"]


# --- moving --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("busy", "is Stable with 1 active member: stop them first (`rafka group describe --members busy`"),
        ("newer", "is Reconciling with 1 active member"),
        ("shared", "group 'shared' is Stable: stop its members first"),
    ],
)
def test_a_plan_for_a_group_with_members_is_refused_as_the_move_would_be(
    rafka: Shell, group: str, said: str
) -> None:
    refused = rafka("group", "reset-offsets", group, "--topic", "orders", "--to-earliest", "--dry-run")

    assert refused.code == 1
    assert said in refused.err


def test_what_was_moved_is_json_with_the_group(rafka: Shell, broker: Administered) -> None:
    words = ("group", "reset-offsets", "billing", "--topic", "orders:0", "--to-earliest", "--json")

    plan, moved = rafka(*words, "--dry-run"), rafka(*words)

    row = {"group": "billing", "topic": "orders", "partition": 0, "new_offset": 0, "old_offset": 5}
    assert plan.json == [{**row, "done": False, "error": None}]
    assert moved.json == [{**row, "done": True, "error": None}]
    assert broker.offsets[ONE] == 0


def test_at_a_terminal_the_plan_and_the_question_are_beside_the_answer(
    rafka: Shell, broker: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("group", "reset-offsets", "billing", "--topic", "orders:0", "--to-earliest", "--json")

    monkeypatch.setattr(sys, "stdin", Typed("n\n"))
    refused = rafka(*words)
    monkeypatch.setattr(sys, "stdin", Typed("y\n"))
    moved = rafka(*words)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines()[1].split() == ["billing", "orders", "0", "0", "5"]
    assert refused.err.endswith("Move billing there? [y/N] rafka group: nothing was moved\n")
    assert [one["done"] for one in moved.json] == [True]


def test_after_yes_it_is_said_that_it_was_done(
    rafka: Shell, broker: Administered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed("y\n"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    said = rafka("group", "reset-offsets", "billing", "--topic", "orders", "--to-earliest")

    assert (said.code, said.out) == (0, "2 partitions moved\n")


def test_where_nothing_could_be_moved_there_is_no_table(rafka: Shell, broker: Administered) -> None:
    broker.plant("OffsetCommit", 25)  # type: ignore[arg-type]  # UNKNOWN_MEMBER_ID

    said = rafka("group", "reset-offsets", "billing", "--topic", "orders:0", "--to-earliest")

    assert (said.code, said.out) == (1, "")
    assert "has active members: stop them first (`rafka group describe --members billing`" in said.err


def test_an_offset_outside_the_log_says_what_is_taken_instead(rafka: Shell) -> None:
    said = rafka("group", "reset-offsets", "billing", "--topic", "orders:0", "--to-offset", "100")

    assert "% orders-0: 100 is not in the log, which goes from 0 to 8: taking 8\n" in said.err


# --- deleting --------------------------------------------------------------------------------


def test_a_partition_without_an_offset_is_not_passed_over(rafka: Shell, broker: Administered) -> None:
    said = rafka("group", "delete-offsets", "billing", "--topic", "orders:0,9")

    assert (said.code, said.out) == (1, "orders-0: forgotten\n")
    assert said.err == "rafka group: group 'billing' has no offset of orders-9\n"
    assert broker.offsets == {TWO: 2}


def test_a_topic_of_which_one_partition_is_known_is_known(rafka: Shell) -> None:
    said = rafka("group", "delete-offsets", "billing", "--topic", "orders:5", "--json")

    assert said.code == 1
    assert said.json == [
        {
            "group": "billing",
            "topic": "orders",
            "partition": 5,
            "done": False,
            "error": "group 'billing' has no offset of orders-5",
        }
    ]
    assert "has no offsets of 'other'" in rafka("group", "delete-offsets", "billing", "--topic", "other").err


def test_json_tells_what_to_do_about_an_error(rafka: Shell) -> None:
    deleted = rafka("group", "delete", "billing", "busy", "--json")

    assert deleted.code == 1
    assert deleted.json == [
        {"group": "billing", "done": True, "error": None},
        {
            "group": "busy",
            "done": False,
            "error": "group 'busy' has active members: stop them first"
            " (`rafka group describe --members busy` shows them)",
        },
    ]


def test_members_are_named_by_keys_in_json(rafka: Shell) -> None:
    said = rafka("group", "remove-member", "busy", "--member", "m", "--instance", "pod-3", "--json")

    gone, stayed = said.json
    assert said.code == 1
    assert gone == {
        "group": "busy",
        "member_id": "m",
        "group_instance_id": None,
        "done": True,
        "error": None,
    }
    assert (stayed["member_id"], stayed["group_instance_id"], stayed["done"]) == (None, "pod-3", False)
    assert "`rafka group describe --members busy` shows those that are" in stayed["error"]


def test_a_member_of_the_next_generation_is_removed(rafka: Shell) -> None:
    assert rafka("group", "remove-member", "newer", "--all").out == "member 'm': removed\n"


def test_names_move_no_cursor(rafka: Shell, broker: Administered) -> None:
    broker.classic["a\x1b[2Jb"] = {"group_state": "Empty"}

    assert rafka("group", "delete", "a\x1b[2Jb").out == "a\\x1b[2Jb: deleted\n"
