"""What a hostile notebook tries from inside its sandbox. Each attempt says whether it came through, and what it got."""

TRY = """
import ctypes, errno, glob, json, os, re, socket, subprocess, sys
found = {}

def attempt(name, work):
    try:
        found[name] = ["through", repr(work())[:300]]
    except BaseException as error:
        found[name] = ["refused", f"{type(error).__name__}: {error}"[:300]]

def read(path):
    with open(path, "rb") as file:
        return file.read(200)

def dial(host, port, family=socket.AF_INET):
    with socket.socket(family) as one:
        one.settimeout(3)
        one.connect((host, port))
        return "open"

library = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if library.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"
"""

FILES = """
for path in parameters["host_files"].split("|"):
    attempt(f"read {path}", lambda: read(path))
    attempt(f"list {path}", lambda: os.listdir(path))
for path in ("/etc/shadow", "/etc/sudoers", "/root/.bashrc", "/root/.ssh", "/home", "/var", "/sys", "/run", "/boot"):
    attempt(f"look at {path}", lambda: os.listdir(path) if os.path.isdir(path) else read(path))
attempt("look through /proc/1/root", lambda: os.listdir("/proc/1/root/home"))
attempt("sockets of Spark servers", lambda: glob.glob("/tmp/headgate-*")[0])
attempt("read the memory of the machine", lambda: read("/proc/kcore"))
attempt("read a disk", lambda: read("/dev/vda"))
attempt("make a device", lambda: os.mknod("/scratch/disk", 0o60666, os.makedev(254, 0)))
"""

KERNEL = """
def opened(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False

kernel = [f"{folder}/{name}" for base in ("/proc", "/sys", "/dev") for folder, _, names in os.walk(base) for name in names]
handles = re.compile(r"/proc/\\d+/(task/\\d+/)?fd/")
found["what it can write of the kernel"] = ["seen", json.dumps([path for path in kernel if not handles.match(path) and opened(path)])]
found["files of the kernel"] = ["seen", str(len(kernel))]
attempt("where crashes of the machine go", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
attempt("the machine's keys", lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY))
attempt("its own resistance to being ended", lambda: os.open("/proc/self/oom_score_adj", os.O_WRONLY))
"""

PROCESSES = """
seen = [pid for pid in os.listdir("/proc") if pid.isdigit()]
lines = []
for pid in seen:
    try:
        lines.append(open(f"/proc/{pid}/cmdline").read().replace("\\0", " "))
    except OSError:
        pass
found["processes"] = ["seen", json.dumps(lines)]
found["environment"] = ["seen", json.dumps(sorted(os.environ))]
attempt("signal a process of the host", lambda: os.kill(parameters["host_pid"], 0))
attempt("trace process 1", lambda: call(101, 16, 1, 0, 0))
attempt("read another's memory", lambda: call(310, 1, 0, 0, 0, 0, 0))
attempt("a namespace of its own", lambda: call(272, 0x10000000))
attempt("a namespace by clone", lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt("a namespace by clone3", lambda: call(435, ctypes.create_string_buffer(88), 88))
attempt("mount", lambda: call(165, b"none", b"/usr", b"tmpfs", 0, 0))
attempt("mount by a new call", lambda: call(430, b"tmpfs", 0))
attempt("remount", lambda: call(165, b"none", b"/headgate/volumes", 0, 32, 0))
attempt("change the root", lambda: call(161, b"/scratch"))
attempt("keys of the kernel", lambda: call(250, 0, -3, 0, 0, 0))
attempt("shared memory that no process shows", lambda: call(29, 0, 1 << 20, 0o1666))
attempt("bpf", lambda: call(321, 0, 0, 0))
attempt("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(120)))
attempt("userfaultfd", lambda: call(323, 0))
attempt("perf", lambda: call(298, 0, 0, 0, 0, 0))
attempt("the other way of calling", lambda: call(0x40000000 + 39))
attempt("become root", lambda: os.setuid(0))
attempt("sudo", lambda: subprocess.check_output(["su", "-c", "id"], stderr=subprocess.STDOUT, timeout=10))
"""

NETWORK = """
attempt("a port of this machine", lambda: dial("127.0.0.1", parameters["other_port"]))
attempt("the server itself", lambda: dial("127.0.0.1", parameters["server_port"]))
attempt("the Spark of members", lambda: dial("127.0.0.1", 15002))
attempt("the metadata of a cloud", lambda: dial("169.254.169.254", 80))
attempt("the outside", lambda: dial("192.0.2.1", 443))
attempt("a name server", lambda: dial("8.8.8.8", 53))
attempt("a name", lambda: socket.getaddrinfo("example.com", 443))
attempt("the outside by IPv6", lambda: dial("2001:db8::1", 443, socket.AF_INET6))
attempt("the machine below this one", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("raw packets", lambda: socket.socket(17, socket.SOCK_RAW))
attempt("kernel crypto", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("192.0.2.1", 53))
attempt("a datagram", datagram)
attempt("the declared host", lambda: dial(parameters["host"], parameters["host_port"]))
attempt("another port of the declared host", lambda: dial(parameters["host"], parameters["other_port"]))
found["interfaces"] = ["seen", open("/proc/net/dev").read()]
found["unix sockets"] = ["seen", json.dumps([line.split()[-1] for line in open("/proc/net/unix").readlines()[1:]])]
"""

CATALOG = """
import http.client, urllib.request

class Direct(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/headgate/out/0")

def ask(method, path, body=None, headers={}):
    one = Direct("x", timeout=20)
    one.request(method, path, body, headers)
    answer = one.getresponse()
    return answer.status, answer.read()[:200].decode()

def status(method, path, body=None, headers={}):
    code, text = ask(method, path, body, headers)
    if code >= 400:
        raise PermissionError(f"{code} {text}")
    return text

T = "/v1/namespaces/raw/tables/"
attempt("a declared table", lambda: status("GET", T + "events"))
attempt("a hidden table", lambda: status("GET", T + "hidden"))
attempt("a commit", lambda: status("POST", T + "events", json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}), {"Content-Type": "application/json"}))
attempt("a drop", lambda: status("DELETE", T + "events"))
attempt("a new table", lambda: status("POST", T, json.dumps({"name": "x"})))
attempt("a body on a read", lambda: status("GET", T + "events", "x" * 10))
for path in ("/api/access/me", "/v1/../../api/access/me", "/v1/%2e%2e/%2e%2e/api/access/me", "//api/access/me", "/readyz",
             "/metrics", "/v1/..%2f..%2fapi/tokens", "http://127.0.0.1/api/access/me", "/iceberg/v1/config", "/v1/x?a=1#/../api"):
    attempt(f"the path {path}", lambda: status("GET", path))

def smuggle():
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(20)
        one.connect("/headgate/out/0")
        one.sendall(b"GET /v1/config HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /api/access/me HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        return one.recv(65536).decode()
found["smuggled"] = ["seen", smuggle()]
attempt("a header of its own", lambda: status("GET", T + "hidden", None, {"Authorization": "Bearer hgw" + "_" + "0" * 38}))
attempt("SQL on the declared table", lambda: spark.sql("SELECT count(*) FROM raw.events").collect())
attempt("SQL on a hidden table", lambda: spark.sql("SELECT * FROM raw.hidden").collect())
attempt("SQL that inserts", lambda: spark.sql("INSERT INTO raw.events VALUES (9, 'z')"))
attempt("SQL that drops", lambda: spark.sql("DROP TABLE raw.events"))
attempt("SQL that makes", lambda: spark.sql("CREATE TABLE raw.mine (id BIGINT)"))
attempt("load what is not declared", lambda: load("raw.hidden"))
attempt("save what is not declared", lambda: save(spark.range(1), "raw.hidden"))
"""

WRITING = """
root, table = parameters["warehouse"], parameters["events"]
files = glob.glob(f"{root}/tables/{table}/**/*.parquet", recursive=True)
found["files of the declared table"] = ["seen", str(len(files))]
attempt("overwrite a data file", lambda: open(files[0], "r+b").write(b"x"))
attempt("delete a data file", lambda: os.unlink(files[0]))
attempt("add a data file", lambda: open(f"{root}/tables/{table}/evil", "w"))
attempt("change the metadata", lambda: open(glob.glob(f"{root}/metadata/{table}/*")[0], "r+b"))
attempt("chmod a data file", lambda: os.chmod(files[0], 0o777))
attempt("link a data file", lambda: os.link(files[0], "/scratch/linked"))
attempt("files of a hidden table", lambda: os.listdir(f"{root}/tables/{parameters['hidden']}"))
attempt("metadata of a hidden table", lambda: os.listdir(f"{root}/metadata/{parameters['hidden']}"))
attempt("all volumes", lambda: os.listdir(f"{root}/volumes"))
found["tables that are seen"] = ["seen", json.dumps(sorted(os.listdir(f"{root}/tables")))]
volume = volume_path("raw.landing")
attempt("write a file of a volume", lambda: (volume / "a.txt").write_text("changed"))
attempt("delete a file of a volume", lambda: (volume / "a.txt").unlink())
attempt("add a file to a volume", lambda: (volume / "new").touch())
for path in ("/headgate/job.json", "/headgate/relay.py", "/headgate/lib/headgate/notebook/runner.py", "/usr/bin/x", "/etc/hosts",
             "/headgate/site/pyspark/__init__.py", "/dev/x", "/headgate/secrets/key", "/headgate/out/x", "/x",
             "/headgate/classes.jsa", "/headgate/spark/x.jar"):
    attempt(f"write {path}", lambda: open(path, "a").write("x"))
attempt("fill /tmp", lambda: open("/tmp/fill", "wb").write(bytes(80 << 20)))
attempt("fill /dev/shm", lambda: open("/dev/shm/fill", "wb").write(bytes(80 << 20)))
attempt("one process with all memory", lambda: len(bytearray(64 << 30)))
"""

TOKEN = """
def hits():
    marks = [b"hgw" + b"_", b"hgt" + b"_", b"hgx" + b"_"]
    wrong = []
    for base in ("/headgate/job.json", "/headgate/java.args", "/scratch", "/headgate/secrets", "/headgate/cells", "/etc", "/tmp"):
        for path in [base, *glob.glob(base + "/**/*", recursive=True), *glob.glob(base + "/**/.*", recursive=True)]:
            if os.path.isfile(path):
                content = open(path, "rb").read(5 << 20)
                wrong += [path for mark in marks if mark in content]
    for pid in [pid for pid in os.listdir("/proc") if pid.isdigit()]:
        for name in ("cmdline", "environ"):
            try:
                content = open(f"/proc/{pid}/{name}", "rb").read()
            except OSError:
                continue
            wrong += [f"{pid}/{name}" for mark in marks if mark in content]
    wrong += [key for key, value in spark.sparkContext.getConf().getAll() if "hgw" + "_" in value]
    wrong += [row[0] for row in spark.sql("SET").collect() if "hgw" + "_" in str(row[1])]
    return wrong
found["tokens"] = ["seen", json.dumps(hits())]
attempt("the secret that was not declared", lambda: secret("other"))
found["the secret that was"] = ["seen", secret("key")]
found["where secrets are"] = ["seen", subprocess.check_output(["stat", "-f", "-c", "%T", "/headgate/secrets/key"], text=True).strip()]
"""

TELL = "print(json.dumps(found))"

PROBES = (TRY, FILES, KERNEL, PROCESSES, NETWORK, CATALOG, WRITING, TOKEN, TELL)
THROUGH = {"the declared host", "a declared table", "SQL on the declared table"}
"""What a notebook may do; all else is refused."""

FORK_BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""

MEMORY_BOMB = """
import os, time
for n in range(12):
    if os.fork() == 0:
        held = bytearray(400 << 20)
        for place in range(0, len(held), 4096):
            held[place] = 1
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""

DISK_BOMB = """
import time
number = 0
while True:
    number += 1
    with open(f"/headgate/staging/{number}", "wb") as file:
        file.write(bytes(16 << 20))
    time.sleep(0.05)
"""

BOMBS = {
    "NOTEBOOK_PROCESSES": (FORK_BOMB, "more than 100 processes"),
    "NOTEBOOK_MEMORY": (MEMORY_BOMB, "more than 3.0 GiB of memory"),
    "NOTEBOOK_DISK": (DISK_BOMB, "more than 300 MiB of disk"),
}
"""Code that takes all that there is, and what its author is told."""
