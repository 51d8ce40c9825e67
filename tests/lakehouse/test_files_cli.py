"""Files on the command line and in the Python client, against a server that runs as users run it."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from headgate.client import Headgate, HeadgateError
from tests.support.installation import Installation, eventually, installed

pytestmark = pytest.mark.processes

MIB = 1 << 20
PLACE = "volume:raw.invoices"


class Server:
    """A server, and Tom, who may write to its volume."""

    def __init__(self, one: Installation) -> None:
        one.fill()
        self.installation, self.token = one, one.token("Tom")
        self.ben = one.token("Ben")
        self.address = one.up()
        self.http = httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)
        self.volume = self.http.get("/api/resources", params={"kind": "volume"}).json()["items"][0]["id"]

    def environment(self, address: str | None = None) -> dict[str, str]:
        return {"HEADGATE_SERVER_URL": address or self.address, "HEADGATE_TOKEN": self.token}

    def headgate(self, *arguments: str, address: str | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
        return self.installation.headgate("volume", *arguments, **{**self.environment(address), **more})

    def uploads(self) -> list[Any]:
        found: list[Any] = self.http.get(f"/api/volumes/{self.volume}/uploads").json()["items"]
        return found

    def file(self, path: str) -> Any:
        items = self.http.get(f"/api/volumes/{self.volume}/files", params={"prefix": path}).json()["items"]
        return next(item for item in items if item["path"] == path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with installed(tmp_path_factory.mktemp("files")) as one:
        found = Server(one)
        yield found
        found.http.close()


def large(tmp_path: Path, name: str, size: int = 20 * MIB + 5) -> Path:
    file = tmp_path / name
    file.write_bytes(os.urandom(size))
    return file


def sum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Relay:
    """A connection to the server that can be cut, or can stall, once so many bytes went through it."""

    def __init__(self, address: str, after: int, *, stalls: bool) -> None:
        self.target = (address.split("//")[1].split(":", maxsplit=1)[0], int(address.rpartition(":")[2]))
        self.left, self.stalls, self.happened = after, stalls, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if counted and not self.happened.is_set():
                    self.left -= len(data)
                    if self.left < 0:
                        self.happened.set()
                        if self.stalls:
                            time.sleep(60)
                        break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for one in (self.listener, *self.sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def relay(server: Server, after: int, *, stalls: bool = False) -> Iterator[Relay]:
    found = Relay(server.address, after, stalls=stalls)
    try:
        yield found
    finally:
        found.close()


def test_put_files_get_and_rm(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "märz.csv"
    file.write_bytes(b"a,b\n1,2\n")
    done = server.headgate("put", str(file), f"{PLACE}/2026/")
    assert done.returncode == 0, done.stderr
    assert "Uploaded 2026/märz.csv (8 bytes" in done.stdout
    again = server.headgate("put", str(file), f"{PLACE}/2026/")
    assert (again.returncode, "overwrite" in again.stderr) == (1, True)
    replaced = server.headgate("put", str(file), f"{PLACE}/2026/märz.csv", "--overwrite", "--json")
    assert json.loads(replaced.stdout)["sha256"] == sum_of(file)
    assert "2026/märz.csv" in server.headgate("files", PLACE).stdout
    assert "2026/" in server.headgate("files", PLACE, "--folders").stdout.split()
    assert server.headgate("files", f"{PLACE}/2027/").stdout == "The volume has no files here.\n"
    got = server.headgate("get", f"{PLACE}/2026/märz.csv", str(tmp_path / "back.csv"))
    assert got.returncode == 0, got.stderr
    assert (tmp_path / "back.csv").read_bytes() == file.read_bytes()
    kept = server.headgate("get", f"{PLACE}/2026/märz.csv", str(tmp_path / "back.csv"))
    assert (kept.returncode, "--overwrite" in kept.stderr) == (1, True)
    assert server.headgate("rm", f"{PLACE}/2026/märz.csv").stdout == "Deleted 2026/märz.csv.\n"
    assert server.headgate("rm", f"{PLACE}/2026/märz.csv").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("put", "{folder}/nowhere", PLACE), 2, "does not exist"),
        (("put", "{file}", "volume:raw.nothing"), 1, "no volume raw.nothing that you may see"),
        (("put", "{file}", f"{PLACE}/../x"), 2, ". or .."),
        (("rm", f"{PLACE}/a/../../uploads"), 2, ". or .."),
        (("get", f"{PLACE}/a/../b"), 2, ". or .."),
        (("get", PLACE), 2, "has no path"),
        (("get", f"{PLACE}/nothing"), 1, "no file 'nothing' in this volume"),
        (("rm", f"{PLACE}/nothing"), 1, "no file 'nothing' in this volume"),
        (("files", "volume:raw.nothing"), 1, "no volume raw.nothing that you may see"),
    ],
)
def test_what_cannot_be_done_is_said(
    server: Server, tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x")
    done = server.headgate(*(one.format(file=file, folder=tmp_path) for one in arguments))
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_hidden_volumes_are_missing_on_the_command_line(server: Server) -> None:
    hidden = server.headgate("files", PLACE, HEADGATE_TOKEN=server.ben)
    missing = server.headgate("files", "volume:raw.nothing", HEADGATE_TOKEN=server.ben)
    assert (hidden.returncode, hidden.stderr.replace("invoices", "nothing")) == (missing.returncode, missing.stderr)


def test_the_operator_has_no_files(server: Server) -> None:
    done = server.installation.headgate("volume", "files", server.volume)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_large_file_goes_and_comes_back_whole(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "large.bin")
    done = server.headgate("put", str(file), PLACE)
    assert done.returncode == 0, done.stderr
    assert server.uploads() == []
    got = server.headgate("get", f"{PLACE}/large.bin", str(tmp_path / "back.bin"))
    assert got.returncode == 0, got.stderr
    assert sum_of(tmp_path / "back.bin") == sum_of(file)
    assert {one.name for one in tmp_path.iterdir()} == {"large.bin", "back.bin"}


def test_a_broken_connection_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "broken.bin")
    with relay(server, 12 * MIB) as between:
        done = server.headgate("put", str(file), PLACE, address=between.address)
        assert between.happened.is_set()
    assert done.returncode == 0, done.stderr
    assert server.file("broken.bin")["sha256"] == sum_of(file)


def test_an_interrupted_command_that_is_repeated_goes_on(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "interrupted.bin", 30 * MIB)
    command = [sys.executable, "-m", "headgate.cli.main", "volume", "put", str(file), PLACE]
    with relay(server, 20 * MIB, stalls=True) as between:
        environment = {**server.installation.environment, **server.environment(between.address)}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert between.happened.wait(60)
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, "run the same command again" in words) == (130, True)
    assert "Traceback" not in words
    (upload,) = server.uploads()
    assert upload["offset"] == 16 * MIB
    done = server.headgate("put", str(file), PLACE)
    assert done.returncode == 0, done.stderr
    made = server.file("interrupted.bin")
    assert made["sha256"] == sum_of(file)
    assert made["id"].removeprefix("fil") == upload["id"].removeprefix("upl")


def test_an_upload_of_other_bytes_is_begun_anew(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "changed.bin", 9 * MIB)
    begun = {"path": "changed.bin", "size": 9 * MIB}
    upload = server.http.post(f"/api/volumes/{server.volume}/uploads", json=begun).json()
    sent = server.http.patch(f"/api/uploads/{upload['id']}", content=b"old" * MIB, headers={"Upload-Offset": "0"})
    assert sent.json()["offset"] == 3 * MIB
    done = server.headgate("put", str(file), PLACE)
    assert done.returncode == 0, done.stderr
    assert server.file("changed.bin")["sha256"] == sum_of(file)
    assert server.uploads() == []


def test_a_server_that_dies_in_between_is_waited_for(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "death.bin", 40 * MIB)
    children = set(server.installation.children())
    serving = min(children)
    with relay(server, 20 * MIB) as between:
        threading.Thread(
            target=lambda: (between.happened.wait(60), os.kill(serving, signal.SIGKILL)), daemon=True
        ).start()
        done = server.headgate("put", str(file), PLACE, address=between.address)
    assert done.returncode == 0, done.stderr
    assert server.file("death.bin")["sha256"] == sum_of(file)
    assert serving not in server.installation.children()


def test_clients_that_go_away_hold_nothing_up(server: Server) -> None:
    host, port = server.address.split("//")[1].split(":")
    head = (
        f"PUT /api/volumes/{server.volume}/files/gone HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Length: 1000000\r\n\r\n"
    )
    for _ in range(40):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(head.encode() + b"x" * 70_000)
    for number in range(3):
        after = f"/api/volumes/{server.volume}/files/after-{number}"
        # Until the server has noticed that they went, it may say that too many are at it.
        eventually(lambda after=after: server.http.put(after, content=b"x").status_code == 200)
    assert server.http.get(f"/api/volumes/{server.volume}/files/gone").status_code == 404
    folder = server.installation.folder / "warehouse/volumes" / server.volume
    eventually(lambda: not list(folder.glob("new-*")))


def test_a_refused_body_is_never_sent_by_who_asks_first(server: Server) -> None:
    host, port = server.address.split("//")[1].split(":")
    head = (
        f"PUT /api/volumes/{server.volume}/files/a HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.ben}\r\n"
        "Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head.encode())
        client.settimeout(10)
        assert client.recv(4096).startswith(b"HTTP/1.1 404")


def test_ranges_and_heads_over_the_wire(server: Server) -> None:
    at = f"/api/volumes/{server.volume}/files/range"
    content = os.urandom(3 * MIB)
    assert server.http.put(at, content=content).status_code == 200
    head = server.http.head(at)
    assert (head.headers["content-length"], head.content) == (str(3 * MIB), b"")
    part = server.http.get(at, headers={"Range": f"bytes={MIB}-{2 * MIB}"})
    assert (part.status_code, part.content) == (206, content[MIB : 2 * MIB + 1])
    unchanged = server.http.get(at, headers={"If-None-Match": head.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert server.http.get(at).content == content


def test_the_python_client_sends_and_fetches(server: Server, tmp_path: Path) -> None:
    small, big = tmp_path / "small.csv", large(tmp_path, "big.bin", 10 * MIB)
    small.write_bytes(b"1")
    seen: list[tuple[int, int]] = []
    with Headgate(server.address, server.token) as tom, Headgate(server.address, server.ben) as ben:
        assert tom.upload_file("raw.invoices", small).media_type == "text/csv"
        made = tom.upload_file("raw.invoices", big, "client/big.bin", progress=lambda *told: seen.append(told))
        assert made.sha256 == sum_of(big)
        assert seen[0] == (0, 10 * MIB)
        assert seen[-1] == (10 * MIB, 10 * MIB)
        assert [one.path for one in tom.files("raw.invoices", prefix="client/")] == ["client/big.bin"]
        target = tom.download_file(server.volume, "client/big.bin", tmp_path / "back.bin")
        assert sum_of(target) == made.sha256
        tom.delete_file("raw.invoices", "client/big.bin")
        with pytest.raises(HeadgateError) as gone:
            tom.download_file("raw.invoices", "client/big.bin", tmp_path / "x")
        assert gone.value.status == 404
        assert not (tmp_path / "x").exists()
        with pytest.raises(HeadgateError) as hidden:
            ben.upload_file("raw.invoices", small)
        assert hidden.value.status == 404


def test_a_download_that_breaks_off_goes_on(server: Server, tmp_path: Path) -> None:
    file = large(tmp_path, "fetched.bin", 10 * MIB)
    with Headgate(server.address, server.token) as tom:
        tom.upload_file("raw.invoices", file)
        part = tmp_path / f".back.bin.{sum_of(file)[:32]}.part"
        part.write_bytes(file.read_bytes()[: 4 * MIB])
        seen: list[tuple[int, int]] = []
        tom.download_file(
            "raw.invoices", "fetched.bin", tmp_path / "back.bin", progress=lambda *told: seen.append(told)
        )
        assert sum_of(tmp_path / "back.bin") == sum_of(file)
        assert seen[0][0] > 4 * MIB
        part.write_bytes(b"other bytes")
        with pytest.raises(OSError, match="the checksum of the downloaded file is wrong"):
            tom.download_file("raw.invoices", "fetched.bin", tmp_path / "back.bin")
        assert not part.exists()
        assert sum_of(tmp_path / "back.bin") == sum_of(file)
