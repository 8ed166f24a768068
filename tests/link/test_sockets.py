"""Where gateways attach: what is stale is taken over, what is in use is not, and each refusal says why."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rafka.link.plain import PlainListener, PlainStream
from rafka.link.sockets import LinkTaken, connect_tcp, connect_unix, listen_tcp, listen_unix


async def exchange(listener: PlainListener, client: PlainStream) -> bytes:
    async with client, await listener.accept() as server:
        await client.send_all(b"hello")
        return bytes(await server.receive_some(10))


async def test_a_unix_socket_is_listened_on_and_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "link"

    for _ in range(2):
        with listen_unix(str(path)) as listener:
            assert await exchange(listener, await connect_unix(str(path))) == b"hello"
            await listener.aclose()
        assert not path.exists()


def test_only_the_user_and_the_group_may_connect(tmp_path: Path) -> None:
    path = tmp_path / "link"

    with listen_unix(str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


LISTEN_AND_HANG = """
import sys, time
from rafka.link.plain import PlainListener, PlainStream
from rafka.link.sockets import listen_unix
with listen_unix(sys.argv[1]):
    print("listening", flush=True)
    time.sleep(60)
"""


async def test_what_a_killed_broker_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "link"
    command = [sys.executable, "-c", LISTEN_AND_HANG, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as before:  # noqa: ASYNC220 (nothing else runs)
        assert before.stdout is not None
        assert before.stdout.readline() == b"listening\n"

        with pytest.raises(LinkTaken, match="another broker listens there"), listen_unix(str(path)):
            pass
        before.send_signal(signal.SIGKILL)
    assert path.is_socket()

    with listen_unix(str(path)) as listener:
        assert await exchange(listener, await connect_unix(str(path))) == b"hello"


def test_the_socket_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "link"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()

        with pytest.raises(LinkTaken, match="another program listens there"), listen_unix(str(path)):
            pass
        assert path.is_socket()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.write_text("precious")

    with pytest.raises(LinkTaken, match="is no socket"), listen_unix(str(path)):
        pass
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there_is_named_as_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(LinkTaken, match="No such file or directory"),
        listen_unix(str(tmp_path / "no" / "link")),
    ):
        pass


def test_a_failure_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.write_text("precious")
    for _ in range(2):
        with pytest.raises(LinkTaken, match="is no socket"), listen_unix(str(path)):
            pass
    path.unlink()

    with listen_unix(str(path)):
        assert os.path.exists(f"{path}.lock")


async def test_tcp_is_listened_on_at_any_free_port() -> None:
    with listen_tcp("127.0.0.1", 0) as (listener, port):
        client = await connect_tcp("127.0.0.1", port)
        keepalive = client._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        at_once = client._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert await exchange(listener, client) == b"hello"
        await listener.aclose()

    assert port > 0
    assert keepalive
    assert at_once


def test_a_tcp_port_in_use_is_refused_in_words() -> None:
    with (
        listen_tcp("127.0.0.1", 0) as (_, port),
        pytest.raises(LinkTaken, match="the port is in use"),
        listen_tcp("127.0.0.1", port),
    ):
        pass


def test_an_address_that_is_not_ours_is_refused_in_words() -> None:
    with pytest.raises(LinkTaken, match=r"Cannot assign|no such address"), listen_tcp("192.0.2.1", 0):
        pass


def test_a_host_that_nobody_knows_is_refused_in_words() -> None:
    with pytest.raises(LinkTaken, match="no such address"), listen_tcp("no.such.host.invalid", 0):
        pass
