"""`rafka serve`: its flags, what it prints, and how it tells that it is ready."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rafka import __version__
from rafka.cli import main, parser_of
from rafka.cli.output import CommandError
from rafka.cli.serve import remarks
from rafka.cli.starting import given
from rafka.config import load


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAFKA_", "KAFKA_")):
            monkeypatch.delenv(name)


def parsed(*words: str) -> argparse.Namespace:
    return parser_of("serve").parse_args(words)


def test_flags_are_settings() -> None:
    args = parsed(
        *("--listen", "127.0.0.1:1", "--listen", "[::1]:2", "--advertise", "a:1", "--data-dir", "/d"),
        *("--durability", "page-cache", "--set", "num.partitions=3", "--set", "broker.rack=a=b"),
        *("--log-format", "json", "--log-level", "debug"),
    )

    assert given(args) == [
        ("num.partitions", "3", "--set"),
        ("broker.rack", "a=b", "--set"),
        ("listen", "127.0.0.1:1,[::1]:2", "--listen"),
        ("advertise", "a:1", "--advertise"),
        ("data.dir", "/d", "--data-dir"),
        ("durability", "page-cache", "--durability"),
        ("log.format", "json", "--log-format"),
        ("log.level", "debug", "--log-level"),
    ]


def test_without_flags_nothing_is_set() -> None:
    assert given(parsed()) == []


@pytest.mark.parametrize("pair", ["num.partitions", "=3", " =3"])
def test_a_setting_needs_a_key_and_a_value(pair: str) -> None:
    with pytest.raises(CommandError, match="--set takes KEY=VALUE"):
        given(parsed("--set", pair))


def test_the_settings_are_printed_with_their_sources(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PROCESS_ROLES", "broker")
    monkeypatch.setenv("RAFKA_BROKER_RACK", "b7")

    code = main(["serve", "--print-config", "--set", "num.partitions=3"])

    printed = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:3] for line in printed.out.splitlines()}
    assert code == 0
    assert rows["SETTING"] == ["VALUE", "FROM"]
    assert rows["num.partitions"] == ["3", "--set"]
    assert rows["broker.rack"] == ["b7", "RAFKA_BROKER_RACK"]
    assert rows["log.retention.ms"] == ["-", "default"]
    assert "process.roles" in printed.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--set", "num.partitions=0"],
            "rafka serve: num.partitions=0 (from --set): must be 1 to 2147483647\n",
        ),
        (["-c", "/nowhere"], "rafka serve: -c=/nowhere: cannot be read: No such file or directory\n"),
        (
            ["--storage", "memory:", "--data-dir", "d"],
            "rafka serve: argument --data-dir: not allowed with argument --storage; "
            "see `rafka serve --help`\n",
        ),
        (["--lisen", ":1"], "rafka serve: unrecognized arguments: --lisen :1; see `rafka serve --help`\n"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["serve", *words])

    assert (code, capsys.readouterr().err) == (2, told)


def test_what_is_unusual_is_said_before_the_start() -> None:
    memory = load(flags=[("storage", "memory:", "--storage")])
    open_one = load(flags=[("listen", ":1,127.0.0.1:2,[::1]:3", "--listen"), ("storage", "/d", "--set")])

    assert ("INFO", "records are kept in memory and end with this process") in remarks(memory)
    assert ("INFO", "records are kept in /d; what is acknowledged survives a loss of power") in remarks(
        open_one
    )
    assert [line for level, line in remarks(open_one) if level == "WARNING"] == [
        "PLAINTEXT://:1 is open to the network, without encryption or passwords"
    ]


def test_codecs_that_are_not_installed_are_named_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rafka.records.compress.find_spec", lambda name: None if name == "lz4" else name)
    [line] = [line for _, line in remarks(load()) if "installed" in line]
    monkeypatch.setattr("rafka.records.compress.find_spec", lambda name: name)

    assert line.startswith("not installed: lz4. ")
    assert not [line for _, line in remarks(load()) if "installed" in line]


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="systemd's notification is a Unix socket")
def test_a_broker_tells_everybody_that_it_is_ready_and_ends_on_a_signal(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    told_at, told_to = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(20)
        broker = subprocess.Popen(
            [
                *(sys.executable, "-m", "rafka", "serve", "--storage", "memory:", "--listen", "127.0.0.1:0"),
                *("--port-file", str(port_file), "--ready-fd", str(told_to)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[told_to],
            env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
        )
        os.close(told_to)
        try:
            notified = systemd.recv(100)
            assert broker.stdout is not None
            line = broker.stdout.readline()
            broker.send_signal(signal.SIGTERM)
            _, said = broker.communicate(timeout=20)
        finally:
            broker.kill()

    port = port_file.read_text().strip()
    with os.fdopen(told_at) as pipe:
        assert pipe.read() == f"127.0.0.1:{port}\n"
    assert notified == b"READY=1"
    where = f"PLAINTEXT://127.0.0.1:{port}"
    what = f"(version {__version__}, storage memory:)"
    assert line == f"Rafka node 0 started, listening on {where} {what}\n"
    assert broker.returncode == 0
    assert "Traceback" not in said
