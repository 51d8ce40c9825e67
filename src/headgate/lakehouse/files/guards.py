"""Who may touch the files of a volume."""

from dataclasses import dataclass

from headgate.platform.http import guards


@dataclass(frozen=True, slots=True)
class MemberOn(guards.MemberOn):
    """A member who has an action on the volume that the path names; the operator of the machine has no files."""

    parameter: str = "volume_id"
