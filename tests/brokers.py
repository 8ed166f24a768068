"""A rafka broker as an operating-system process, for the tests that need a real one.

What it owns: starting `python -m rafka serve` on a free port, waiting until it answers,
stopping it kindly or with SIGKILL, and starting it again on the same port and data. What
it does not know: any client. It asks "do you answer?" with twelve bytes of its own.

With RAFKA_TEST_BOOTSTRAP=host:port the tests run against that broker instead (Apache Kafka,
say, to learn whether a test asks too much); those that need restarts then skip themselves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).resolve().parent.parent
EXTERNAL: Final = os.environ.get("RAFKA_TEST_BOOTSTRAP")

# ApiVersions v0, correlation id 1, null client id: any broker answers it, and at once.
HELLO: Final = b"\0\0\0\x0a" + b"\0\x12" + b"\0\0" + b"\0\0\0\1" + b"\xff\xff"


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
        port_file = self.home / "port"
        port_file.unlink(missing_ok=True)
        command = [*self.wrapper, sys.executable, "-m", "rafka", "serve"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data_dir)]
        command += ["--port-file", str(port_file), "--durability", self.durability, *self.options]
        # What this machine's environment says of some other broker, or of these tests, is not for this one.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RAFKA_", "KAFKA_"))}
        env |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | self.env
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
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
            if self.port and answers(self.port):
                return
            time.sleep(0.01)
        raise TimeoutError(f"the broker does not answer:\n{self.log[-4000:]}")

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

    def __enter__(self) -> RafkaProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answers(port: int) -> bool:
    """Whether somebody on this port answers ApiVersions."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as connection:
        connection.sendall(HELLO)
        return len(connection.recv(4)) > 0
    return False
