"""`rafka broker` and `rafka gateway`: their flags, their mistakes, their first lines and their ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rafka import __version__
from rafka.cli import main, parser_of
from rafka.cli.broker import remarks
from rafka.cli.starting import given
from rafka.config import load
from tests.brokers import ROOT

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAFKA_", "KAFKA_")):
            monkeypatch.delenv(name)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command, whose stdout and stderr are pipes. It is killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def launch(*words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-m", "rafka", *words],
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        started.append(process)
        return process

    yield launch
    for process in started:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """SIGTERM: the exit code, and what was said on stderr."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    return process.returncode, err


def test_flags_are_settings() -> None:
    broker = parser_of("broker").parse_args(["--link", "unix:l", "--data-dir", "d"])
    gateway = parser_of("gateway").parse_args(["--link", "tcp:h:1", "--listen", ":0", "--advertise", "a:1"])

    assert given(broker) == [("link", "unix:l", "--link"), ("data.dir", "d", "--data-dir")]
    assert given(gateway) == [
        ("listen", ":0", "--listen"),
        ("advertise", "a:1", "--advertise"),
        ("link", "tcp:h:1", "--link"),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["broker"],
            "rafka broker: say with --link where gateways attach: unix:PATH or tcp:HOST:PORT\n",
        ),
        (["gateway"], "rafka gateway: say with --link where the broker is: unix:PATH or tcp:HOST:PORT\n"),
        (
            ["gateway", "--link", "9090"],
            "rafka gateway: link=9090 (from --link): must be unix:PATH or tcp:HOST:PORT\n",
        ),
        (
            ["broker", "--link", "tcp::9090"],
            "rafka broker: link=tcp::9090 (from --link): must be tcp:HOST:PORT, with the host to be reached"
            " by gateways\n",
        ),
        (
            ["broker", "--link", "tcp:1234"],
            "rafka broker: link=tcp:1234 (from --link): must be tcp:HOST:PORT or tcp:[IPV6]:PORT, with a port"
            " of 0 to 65535\n",
        ),
        (
            ["broker", "--link", "unix:" + "p" * 200],
            f"rafka broker: link=unix:{'p' * 200} (from --link): the path of a Unix socket has at most 107"
            " bytes\n",
        ),
        (
            ["broker", "--link", "unix:l", "--listen", ":1"],
            "rafka broker: unrecognized arguments: --listen :1; see `rafka broker --help`\n",
        ),
        (
            ["gateway", "--link", "unix:l", "--data-dir", "d"],
            "rafka gateway: unrecognized arguments: --data-dir d; see `rafka gateway --help`\n",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == told


def test_what_is_unusual_about_a_broker_is_said_first() -> None:
    config = load(flags=[("link", "tcp:0.0.0.0:9090", "--link"), ("listen", ":1", "RAFKA_LISTEN")])

    assert [line for level, line in remarks(config) if level == "WARNING"] == [
        "tcp:0.0.0.0:9090 is open to the network, and whoever reaches it may do everything",
        "listen counts for gateways, not for this broker: it has no listeners",
    ]


def test_both_say_when_they_are_ready_and_end_on_a_signal(start: Start, tmp_path: Path) -> None:
    link = f"unix:{tmp_path}/link"
    broker = start("broker", "--link", link, "--storage", "memory:")
    assert broker.stdout is not None
    assert broker.stdout.readline() == (
        f"Rafka broker 0 started, gateways attach at {link} (version {__version__}, storage memory:)\n"
    )

    gateway = start("gateway", "--link", link, "--listen", "127.0.0.1:0", "--port-file", "port")
    assert gateway.stdout is not None
    line = gateway.stdout.readline()
    ends = [ended(process) for process in (gateway, broker)]

    port = (tmp_path / "port").read_text().strip()
    assert line == (
        f"Rafka gateway started, listening on PLAINTEXT://127.0.0.1:{port}"
        f" (version {__version__}, broker at {link})\n"
    )
    assert [code for code, _ in ends] == [0, 0]
    assert not (tmp_path / "link").exists()


def test_a_broker_tells_where_its_link_is_if_any_port_will_do(start: Start, tmp_path: Path) -> None:
    told_at, told_to = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "rafka", "broker", "--link", "tcp:127.0.0.1:0", "--storage", "memory:"),
            *("--port-file", str(tmp_path / "port"), "--ready-fd", str(told_to)),
        ],
        pass_fds=[told_to],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process, os.fdopen(told_at) as pipe:
        os.close(told_to)
        told = pipe.readline()
        port = int((tmp_path / "port").read_text())
        process.terminate()

    assert told == f"tcp:127.0.0.1:{port}\n"
    assert port > 0


def test_a_link_in_use_is_one_line(start: Start, tmp_path: Path) -> None:
    link = f"unix:{tmp_path}/link"
    first = start("broker", "--link", link, "--storage", "memory:")
    assert first.stdout is not None
    first.stdout.readline()

    second = start("broker", "--link", link, "--data-dir", "data", "--log-level", "error")
    _, err = second.communicate(timeout=20)

    assert second.returncode == 1
    assert err == f"rafka: link={link}: another broker listens there: stop it, or choose another path\n"
    assert not (tmp_path / "data").exists()


def test_a_link_in_a_directory_that_is_not_there_says_which(start: Start, tmp_path: Path) -> None:
    link = f"unix:{tmp_path}/run/link"
    broker = start("broker", "--link", link, "--storage", "memory:", "--log-level", "error")

    _, err = broker.communicate(timeout=20)

    assert broker.returncode == 1
    assert err == (
        f"rafka: link={link}: the directory {tmp_path}/run has to be there and writable for the broker:"
        " No such file or directory\n"
    )


def test_a_gateway_waits_for_its_broker_with_one_line_and_can_be_stopped_meanwhile(
    start: Start, tmp_path: Path
) -> None:
    gateway = start("gateway", "--link", f"unix:{tmp_path}/link", "--listen", "127.0.0.1:0")
    assert gateway.stderr is not None
    while "no broker at" not in (line := gateway.stderr.readline()):
        assert line

    code, err = ended(gateway)

    assert code == 0
    assert "no broker at" not in err


def test_a_gateway_and_a_broker_that_do_not_understand_each_other_say_so(
    start: Start, tmp_path: Path
) -> None:
    """The broker is one of another day: it speaks a later version of the link."""
    path = tmp_path / "link"
    other_day = "from rafka.link import hello; hello.VERSION = 99; import rafka.cli; rafka.cli.main("
    words = ["broker", "--link", f"unix:{path}", "--storage", "memory:"]
    broker = subprocess.Popen(
        [sys.executable, "-c", f"{other_day}{words})"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        listening = ("--listen", "127.0.0.1:0", "--log-level", "error")
        gateway = start("gateway", "--link", f"unix:{path}", *listening)
        _, err = gateway.communicate(timeout=20)
        broker.terminate()

    assert gateway.returncode == 1
    assert re.fullmatch(
        r"rafka: the gateway \(rafka .*\) speaks version 1 of the link, "
        r"the broker \(rafka .*\) version 99: run the same release of both\n",
        err,
    )
