"""The seccomp filter of sandboxes, loaded by bubblewrap: the allowed system calls. Only the standard library.

It refuses what namespaces do not isolate: nested namespaces, tracing, keyrings, memory that no process accounts for,
unusual kernel interfaces, and vsock connections to the host machine, which network namespaces do not block.
"""

import errno
import platform
import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NAMES = ("x86_64", "aarch64")
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "memfd_secret": (447, 447),
}
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_NEW_NAMESPACES = 0x7E020080
_FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6, and netlink, with which programs read their own addresses."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_OTHER_ABI = 0x40000000


def program(machine: str | None = None) -> bytes | None:
    """The filter for this architecture; None for an unsupported one."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    column = _NAMES.index(machine)
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        _error(errno.ENOSYS),
        # The C library falls back to clone, whose flags can be checked.
        (_EQUAL, 0, 1, _CLONE3[column]),
        _error(errno.ENOSYS),
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        _error(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    families = len(_FAMILIES)
    lines += [(_EQUAL, 0, families + 3, _SOCKET[column]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    lines += [(_EQUAL, families - number, 0, family) for number, family in enumerate(_FAMILIES)]
    lines += [_error(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    for numbers in _REFUSED.values():
        lines += [(_EQUAL, 0, 1, numbers[column]), _error(errno.EPERM)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _error(number: int) -> tuple[int, int, int, int]:
    return _RETURN, 0, 0, _ERROR | number
