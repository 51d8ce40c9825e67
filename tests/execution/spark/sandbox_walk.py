"""What a program in a sandbox could change in the kernel's file systems, and which rights it has. Printed as JSON."""

CODE = r"""
import json, os, re

def is_open(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True

def lines(path):
    with open(path) as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)

seen, writable = 0, []
for base in ("/proc", "/sys", "/dev"):
    for folder, folders, files in os.walk(base):
        for name in files:
            seen += 1
            if is_open(f"{folder}/{name}"):
                writable.append(f"{folder}/{name}")
        if folder not in ("/dev/shm", "/dev/pts") and os.access(folder, os.W_OK):
            writable.append(folder)
status = lines("/proc/self/status")
about = os.statvfs("/dev/shm")
print(json.dumps({
    "seen": seen,
    # A handle of this process is no way to anything new.
    "writable": [path for path in writable if not re.match(r"/proc/\d+/(task/\d+/)?fd/", path)],
    "rights": {name: int(value, 16) for name, value in status.items() if name.startswith("Cap")},
    "user": os.getresuid() + os.getresgid(),
    "groups": os.getgroups(),
    "no_new_privileges": status["NoNewPrivs"],
    "filter": status["Seccomp"],
    "shared_memory": about.f_blocks * about.f_frsize,
    "keys": open("/proc/keys").read() if os.path.exists("/proc/keys") else "",
    "tops": sorted(os.listdir("/")),
}))
open("/scratch/written", "w").close()
"""
DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx")} | {
    f"/dev/{name}" for name in ("stdin", "stdout", "stderr", "console")
}
"""What every sandbox has of devices: none leads to the machine."""
