"""The brokers that are compared: processes that can be started, weighed, killed and started again."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from bench_wire import answers

ROOT: Final = Path(__file__).resolve().parent.parent.parent
NEIGHBOUR: Final = ROOT.parent / "shared" / "peer" / "apache-kafka"
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Peer(Protocol):
    name: str
    port: int
    pid: int

    def start(self) -> float:
        """Seconds from the process's birth to its first answer."""

    def kill(self) -> None: ...

    def stop(self) -> None: ...


START_TRIES: Final = 5  # its tools take a cluster id that begins with a dash for an option: one in 64 does


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_pair() -> int:
    """A port that is free, as is the next: Kafka's controller listens there."""
    while True:
        port = free_port()
        try:
            with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
                return port
        except OSError:
            continue


def allow_many_files(count: int = 30_000) -> None:
    """Brokers inherit it: ten thousand connections need as many descriptors on either side."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Rafka:
    """`python -m rafka serve` of this checkout, in one of its two kinds of durability."""

    def __init__(self, home: Path, durability: str = "page-cache") -> None:
        self.name = "rafka" if durability == "page-cache" else f"rafka {durability}"
        self.home = home
        self.durability = durability
        self.port = free_port()
        self.pid = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        self.home.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        self.process = self.launched("serve", *self.listening(), *self.keeping())
        self.pid = self.process.pid
        self.await_answer()
        return time.perf_counter() - began

    def listening(self) -> list[str]:
        # All clients of a bench come from one address, and one figure is about ten thousand of them.
        most = [f"--set={setting}=20000" for setting in ("max.connections", "max.connections.per.ip")]
        return ["--listen", f"127.0.0.1:{self.port}", *most]

    def keeping(self) -> list[str]:
        return ["--data-dir", str(self.home / "data"), "--durability", self.durability]

    def launched(self, *words: str) -> subprocess.Popen[bytes]:
        # RAFKA_KAFKA_PEER is for us: a broker takes such a name for a setting, and a wrong one.
        env = {name: value for name, value in os.environ.items() if not name.startswith("RAFKA_")}
        env["PYTHONPATH"] = str(ROOT)
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # as where pip has compiled it
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-m", "rafka", *words], env=env, stdout=log, stderr=log)

    def await_answer(self) -> None:
        assert self.process is not None
        while not answers(self.port):
            if self.process.poll() is not None:
                raise SystemExit(f"rafka does not start; see {self.home / 'log'}")
            time.sleep(0.002)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)


class Apart(Rafka):
    """The same as two processes: a broker, whose CPU is weighed, and a gateway in front of it."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.name = "rafka apart"
        self.gateway: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        self.home.mkdir(parents=True, exist_ok=True)
        link = f"unix:{self.home / 'link'}"
        began = time.perf_counter()
        self.process = self.launched("broker", "--link", link, *self.keeping())
        self.gateway = self.launched("gateway", "--link", link, *self.listening())
        self.pid = self.process.pid
        self.await_answer()
        return time.perf_counter() - began

    def kill(self) -> None:
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait()
        super().kill()

    def stop(self) -> None:
        assert self.gateway is not None
        self.gateway.terminate()
        self.gateway.wait(60)
        super().stop()


class Kafka:
    """Apache Kafka, by the script that RAFKA_KAFKA_PEER names or that lies beside the checkout.

    The script knows `start --port P --dir D [--keep]`, after which it prints `... pid N ready after
    S s`, and `stop --dir D`.
    """

    name = "kafka"

    def __init__(self, home: Path) -> None:
        found = os.environ.get("RAFKA_KAFKA_PEER") or str(NEIGHBOUR)
        if shutil.which(found) is None:
            raise SystemExit(f"no Apache Kafka to compare with: {found}; set RAFKA_KAFKA_PEER to a script")
        self.script = found
        self.home = home
        self.port = free_pair()
        self.pid = 0
        self.started = False

    def start(self) -> float:
        for _ in range(START_TRIES):
            command = [self.script, "start", "--port", str(self.port), "--dir", str(self.home)]
            command += ["--keep"] if self.started else []
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode == 0:
                break
            self.port = free_pair()
        else:
            raise SystemExit(f"Apache Kafka does not start: {ran.stderr.strip()}")
        self.started = True
        words = ran.stdout.split()
        self.pid = int(words[words.index("pid") + 1])
        return float(words[words.index("after") + 1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{self.pid}").exists())

    def stop(self) -> None:
        subprocess.run([self.script, "stop", "--dir", str(self.home)], check=True)


def wait_for(what: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError("it does not come about")
        time.sleep(0.01)
