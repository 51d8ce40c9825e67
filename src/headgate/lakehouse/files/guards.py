"""Guards for the files of a volume."""

from dataclasses import dataclass

from headgate.platform.http import guards


@dataclass(frozen=True, slots=True)
class MemberOn(guards.MemberOn):
    """Requires a member with an action on the volume in the path; the machine operator has no access to files."""

    parameter: str = "volume_id"
