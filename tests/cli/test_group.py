"""`rafka group` and `rafka consume --group` on a real broker: RAFKA_TEST_BOOTSTRAP says which."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rafka.cli import main

from .test_topic import BOOTSTRAP, Shell

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not BOOTSTRAP, reason="RAFKA_TEST_BOOTSTRAP names no broker"),
]


@pytest.fixture
def rafka(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capfdbinary, monkeypatch)


@pytest.fixture
def topic(rafka: Shell) -> Iterator[str]:
    """Ten records in partition 0, two in partition 1."""
    name = f"cli-{uuid.uuid4().hex[:12]}"
    rafka("topic", "create", name, "-p", "2")
    rafka("produce", name, "-p", "0", stdin=b"".join(b"%d\n" % number for number in range(10)))
    rafka("produce", name, "-p", "1", stdin=b"a\nb\n")
    yield name
    rafka("topic", "delete", name, "--if-exists")


@pytest.fixture
def group(rafka: Shell, topic: str) -> Iterator[str]:
    """It has read everything."""
    name = f"g-{topic}"
    rafka("consume", topic, "--group", name, "--from-beginning", "-q")
    yield name
    main(["group", "delete", name, "--yes", "-b", BOOTSTRAP])


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()[1:]]


@contextmanager
def member(topic: str, group: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`rafka consume --follow` in a process of its own, once it is in the group."""
    command = [sys.executable, "-m", "rafka", "consume", topic, "--group", group, "--follow", *words]
    env = os.environ | {"RAFKA_BOOTSTRAP": BOOTSTRAP, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert b"reading" in process.stderr.readline()
        try:
            yield process
        finally:
            process.kill()


def test_what_a_group_read_it_does_not_read_again(rafka: Shell, topic: str, group: str) -> None:
    rafka("produce", topic, "-p", "1", stdin=b"c\n")

    assert rows(rafka("group", "lag", group)) == [
        [topic, "0", "10", "10", "0"],
        [topic, "1", "2", "3", "1"],
    ]
    assert rafka("consume", topic, "--group", group, "-q") == "c\n"
    assert rafka("consume", topic, "--group", group, "-q") == ""
    assert [row[4] for row in rows(rafka("group", "lag", group))] == ["0", "0"]


def test_a_new_group_starts_at_the_end(rafka: Shell, topic: str, group: str) -> None:
    rafka("group", "delete", group)

    assert rafka("consume", topic, "--group", group, "-q") == ""
    assert [row[2] for row in rows(rafka("group", "lag", group))] == ["10", "2"]


def test_only_what_was_printed_is_committed(rafka: Shell, topic: str, group: str) -> None:
    rafka("group", "reset-offsets", group, "--topic", f"{topic}:0", "--to-earliest")

    assert rafka("consume", topic, "--group", group, "-q", "-c", "3") == "0\n1\n2\n"
    assert rafka("consume", topic, "--group", group, "-q", "-c", "1") == "3\n"
    assert rows(rafka("group", "lag", group))[0] == [topic, "0", "4", "10", "6"]


def test_a_group_is_listed_and_described(rafka: Shell, topic: str, group: str) -> None:
    assert group in rafka("group", "list").splitlines()
    assert [group, "Empty", "classic"] in rows(rafka("group", "list", "--state", "empty"))
    assert group not in rafka("group", "list", "--state", "stable")

    with member(topic, group):
        table = rafka("group", "describe", group)
        assert " ".join(table.splitlines()[0].split()) == (
            "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
        )
        assert [row[:6] for row in rows(table)] == [
            [group, topic, "0", "10", "10", "0"],
            [group, topic, "1", "2", "2", "0"],
        ]
        assert {row[8] for row in rows(table)} == {"rafka-cli"}
        [seat] = rows(rafka("group", "describe", group, "--members", "--verbose"))
        assert seat[-5:] == ["2", "-", f"{topic}:0,1", "-", "-"]
        [state] = rows(rafka("group", "describe", group, "--state"))
        assert state[-3:] == ["range", "Stable", "1"]
        [shown] = json.loads(rafka("group", "describe", group, "--json"))

    assert (shown["state"], shown["lag"], len(shown["members"])) == ("Stable", 0, 1)
    assert shown["members"][0]["partitions"] == {topic: [0, 1]}


def test_lag_is_watched(rafka: Shell, topic: str, group: str) -> None:
    command = [sys.executable, "-m", "rafka", "group", "lag", group, "--watch", "-i", "0.1", "--json"]
    env = os.environ | {"RAFKA_BOOTSTRAP": BOOTSTRAP, "PYTHONPATH": str(ROOT)}

    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        assert [one["lag"] for one in json.loads(watcher.stdout.readline())] == [0, 0]
        rafka("produce", topic, "-p", "1", stdin=b"c\n")
        give_up_at = time.monotonic() + 20
        while [one["lag"] for one in json.loads(watcher.stdout.readline())] != [0, 1]:
            assert time.monotonic() < give_up_at
        watcher.kill()


def test_a_group_with_members_is_not_touched(rafka: Shell, topic: str, group: str) -> None:
    with member(topic, group):
        for words in (
            ["reset-offsets", group, "--topic", topic, "--to-earliest"],
            ["delete", group],
            ["delete-offsets", group, "--topic", topic],
        ):
            assert "stop them first" in rafka("group", *words, code=1)
        assert "is not in the group" in rafka("group", "remove-member", group, "--member", "x", code=1)


def test_a_member_that_is_stopped_commits_and_leaves(rafka: Shell, topic: str, group: str) -> None:
    with member(topic, group) as process:
        rafka("produce", topic, "-p", "1", stdin=b"c\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"c\n"

        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143

    assert [row[2] for row in rows(rafka("group", "lag", group))] == ["10", "3"]
    assert rafka("group", "list", "--state", "empty").count(group) == 1


def test_a_member_is_removed(rafka: Shell, topic: str, group: str) -> None:
    with member(topic, group, "--group-instance-id", "pod-1") as process:
        process.kill()
        process.wait()

        assert rafka("group", "remove-member", group, "--instance", "pod-1") == "instance 'pod-1': removed\n"

    assert "has no members" in rafka("group", "remove-member", group, "--all", code=1)


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (["--to-earliest"], ["0", "0"]),
        (["--to-latest"], ["10", "2"]),
        (["--to-current"], ["10", "2"]),
        (["--to-offset", "1"], ["1", "1"]),
        (["--to-offset", "5"], ["5", "2"]),  # as far as the log goes
        (["--shift-by", "-3"], ["7", "0"]),
        (["--to-datetime", "2020-01-01T00:00:00.000"], ["0", "0"]),
        (["--to-datetime", "2100-01-01"], ["10", "2"]),
        (["--by-duration", "P1D"], ["0", "0"]),
    ],
)
def test_a_group_is_moved(rafka: Shell, topic: str, group: str, words: list[str], offsets: list[str]) -> None:
    plan = rows(rafka("group", "reset-offsets", group, "--all-topics", *words, "--dry-run"))
    assert [row[3] for row in plan] == offsets
    assert [row[2] for row in rows(rafka("group", "lag", group))] == ["10", "2"]

    assert rows(rafka("group", "reset-offsets", group, "--topic", topic, *words)) == plan
    assert [row[2] for row in rows(rafka("group", "lag", group))] == offsets


def test_an_exported_plan_brings_a_group_back(rafka: Shell, topic: str, group: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(rafka("group", "reset-offsets", group, "--all-topics", "--to-current", "--export"))
    assert plan.read_text() == f"{topic},0,10\n{topic},1,2\n"
    rafka("group", "reset-offsets", group, "--all-topics", "--to-earliest")

    rafka("group", "reset-offsets", group, "--from-file", str(plan))

    assert [row[2] for row in rows(rafka("group", "lag", group))] == ["10", "2"]


def test_offsets_are_forgotten(rafka: Shell, topic: str, group: str) -> None:
    assert rafka("group", "delete-offsets", group, "--topic", f"{topic}:1") == f"{topic}-1: forgotten\n"

    assert rows(rafka("group", "lag", group)) == [[topic, "0", "10", "10", "0"]]
    assert "has no offset of" in rafka("group", "delete-offsets", group, "--topic", f"{topic}:1", code=1)


def test_a_group_that_is_not_there_is_named(rafka: Shell, topic: str) -> None:
    for words in (
        ["describe", "no-such"],
        ["lag", "no-such"],
        ["delete", "no-such"],
        ["delete-offsets", "no-such", "--topic", topic],
        ["remove-member", "no-such", "--all"],
    ):
        assert "group 'no-such' does not exist" in rafka("group", *words, code=1)
    assert "does not exist" in rafka("consume", f"{topic}-no", "--group", "no-such", code=1)


def test_history_is_told_or_its_absence_is(
    rafka: Shell, topic: str, group: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    if main(["group", "history", group, "-b", BOOTSTRAP]) == 1:
        assert b"this broker keeps no history of rebalances" in capfdbinary.readouterr().err
        return
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0].startswith(f"{group} (cgp_")
    assert [line.split()[2] for line in lines[2:]] == ["stable", "empty"]
    shown = json.loads(rafka("group", "history", group, "--json", "--last", "1"))
    assert [one["outcome"] for one in shown["rebalances"]] == ["empty"]


def test_history_is_followed(rafka: Shell, topic: str, group: str) -> None:
    keys = {one["key"] for one in json.loads(rafka("cluster", "api-versions", "--json"))["apis"]}
    if 30_000 not in keys:
        pytest.skip("the broker keeps no history of rebalances")
    command = [sys.executable, "-m", "rafka", "group", "history", group, "--follow", "--json", "-n", "0"]
    env = os.environ | {"RAFKA_BOOTSTRAP": BOOTSTRAP, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as follower:
        time.sleep(1)  # a process of its own: until it asks
        with member(topic, group):
            assert follower.stdout is not None
            told = json.loads(follower.stdout.readline())
        follower.kill()

    assert (told["trigger"], told["outcome"], told["members_after"]) == ("member joined", "stable", 1)
