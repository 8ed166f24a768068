"""A rafka broker as an operating-system process, for the tests that need a real one.

What it owns: starting `python -m rafka serve` on a free port, waiting until it answers,
stopping it kindly or with SIGKILL, and starting it again on the same port and data. What
it does not know: any client. It asks "do you answer?" with twelve bytes of its own.

With RAFKA_TEST_SHAPE=apart `Rafka` is two processes, a broker and a gateway in front of it; the
gateway stays while its broker is restarted or killed.

With RAFKA_TEST_BOOTSTRAP=host:port the tests run against that broker instead (Apache Kafka,
say, to learn whether a test asks too much); those that need restarts then skip themselves.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, Self

ROOT: Final = Path(__file__).resolve().parent.parent
EXTERNAL: Final = os.environ.get("RAFKA_TEST_BOOTSTRAP")
APART: Final = os.environ.get("RAFKA_TEST_SHAPE") == "apart"

# ApiVersions v0, correlation id 1, null client id: any broker answers it, and at once.
HELLO: Final = b"\0\0\0\x0a" + b"\0\x12" + b"\0\0" + b"\0\0\0\1" + b"\xff\xff"
# Metadata v0 of all topics, likewise. The reply names no broker where a gateway has lost its own.
WHO_IS_THERE: Final = b"\0\0\0\x0e" + b"\0\x03" + b"\0\0" + b"\0\0\0\1" + b"\xff\xff" + b"\0\0\0\0"


class Broker(Protocol):
    """What a test may ask of the broker that it was given."""

    @property
    def bootstrap(self) -> str: ...

    def restart(self) -> None:
        """Stop kindly and start again on the same port and data."""

    def kill(self) -> None:
        """SIGKILL: nothing is said, nothing is flushed."""

    def start(self) -> None:
        """Start again after `kill`."""


class ExternalBroker:
    """A broker that somebody else runs: reachable, and not ours to stop."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def restart(self) -> None:
        raise RuntimeError("the broker under RAFKA_TEST_BOOTSTRAP cannot be restarted")

    kill = start = restart


class RafkaProcess:
    """One `python -m rafka serve`, its data directory and the log that it writes."""

    def __init__(
        self,
        home: Path,
        *,
        durability: str = "fsync",
        data_dir: Path | None = None,
        options: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        wrapper: tuple[str, ...] = (),
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.data_dir = data_dir or home / "data"
        self.log_path = home / "broker.log"
        self.durability = durability
        self.options = options
        self.env = env or {}
        self.wrapper = wrapper
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def launch(self) -> None:
        """Start the process without waiting for it to answer."""
        (self.home / "port").unlink(missing_ok=True)
        self.process = self._launch(*self.wrapper, sys.executable, "-m", "rafka", *self._words())

    def _words(self) -> list[str]:
        """The command line."""
        return ["serve", *self._listeners(), *self._storage()]

    def _listeners(self) -> list[str]:
        return ["--listen", f"127.0.0.1:{self.port}", "--port-file", str(self.home / "port")]

    def _storage(self) -> list[str]:
        return ["--data-dir", str(self.data_dir), "--durability", self.durability, *self.options]

    def _launch(self, *command: str) -> subprocess.Popen[bytes]:
        # What this machine's environment says of some other broker, or of these tests, is not for this one.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RAFKA_", "KAFKA_"))}
        env |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | self.env
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, env=env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start(self, timeout: float = 30) -> None:
        self.launch()
        self.wait_until_it_answers(timeout)

    def wait_until_it_answers(self, timeout: float = 30) -> None:
        assert self.process is not None
        port_file = self.home / "port"
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if (code := self.process.poll()) is not None:
                raise RuntimeError(f"the broker ended with {code}:\n{self.log[-4000:]}")
            if not self.port and port_file.exists():
                self.port = int(port_file.read_text().strip() or 0)
            if self.port and self._answers():
                return
            time.sleep(0.01)
        raise TimeoutError(f"the broker does not answer:\n{self.log[-4000:]}")

    def _answers(self) -> bool:
        return answers(self.port)

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP: the process is there and does nothing more."""
        os.kill(self.pid, signal.SIGSTOP)

    def stop(self, timeout: float = 20) -> int:
        """SIGTERM, and the exit code. A broker that does not end in time is killed, and the test told."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def wait_for_end(self, timeout: float) -> int:
        assert self.process is not None
        return self.process.wait(timeout)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RafkaApart(RafkaProcess):
    """A `rafka broker` and a `rafka gateway` that clients come to. `process` is the broker."""

    gateway: subprocess.Popen[bytes] | None = None
    meeting = ""

    @property
    def link(self) -> str:
        return f"unix:{self.meeting}/link"

    def launch(self) -> None:
        if self.gateway is None:
            (self.home / "port").unlink(missing_ok=True)
            self.meeting = tempfile.mkdtemp(prefix="rafka-")  # short: the name of a Unix socket has to be
            self.gateway = self._launch_gateway()
        self.process = self._launch(*self.wrapper, sys.executable, "-m", "rafka", *self._words())

    def replace_gateway(self) -> None:
        """SIGKILL for the gateway, and another one in its place."""
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait()
        self.gateway = self._launch_gateway()
        self.wait_until_it_answers()

    def _launch_gateway(self) -> subprocess.Popen[bytes]:
        return self._launch(sys.executable, "-m", "rafka", "gateway", "--link", self.link, *self._listeners())

    def _words(self) -> list[str]:
        return ["broker", "--link", self.link, *self._storage()]

    @contextlib.contextmanager
    def launched(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Some other process beside these two, killed in the end."""
        process = self._launch(*command)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        return knows_a_broker(self.port)

    def close(self) -> None:
        super().close()
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.wait()
            shutil.rmtree(self.meeting, ignore_errors=True)


Rafka: Final = RafkaApart if APART else RafkaProcess


def answers(port: int) -> bool:
    """Whether somebody on this port answers ApiVersions."""
    return len(_asked(port, HELLO)) > 0


def knows_a_broker(port: int) -> bool:
    """Whether whoever answers on this port has a broker to name."""
    return int.from_bytes(_asked(port, WHO_IS_THERE)[8:12], "big") > 0


def _asked(port: int, request: bytes) -> bytes:
    """The beginning of the answer; nothing where there is none."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as connection:
        connection.sendall(request)
        return connection.recv(100)
    return b""
