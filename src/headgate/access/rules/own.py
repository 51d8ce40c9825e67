"""Rule tables of what belongs to one member, and of requests for access: access model, sections 3, 4 and 7."""

from headgate.access.atoms import (
    ABOUT_ORGANIZATION,
    ADMIN,
    ANSWERED_IT,
    ASKED_BY_ANOTHER,
    ASKED_FOR_IT,
    ASKER_LEFT,
    COULD_GIVE,
    HOLDER,
)
from headgate.access.conditions import Can, OnRelated, all_of, any_of
from headgate.access.own import OWN_PATH
from headgate.access.rules.paths import Path, Rules


def _own(kind: str, title: str, *actions: str) -> Rules:
    return Rules(kind, title, "", (Path(OWN_PATH, HOLDER, actions), Path("admin", ADMIN, actions)))


_SEES_WHAT_IT_IS_ABOUT = any_of(ABOUT_ORGANIZATION, OnRelated("about", any_of(Can("see"), Can("list"), Can("restore"))))

ACCESS_REQUEST = Rules(
    "access_request",
    "Request for access",
    "",
    (
        Path("asker", ASKED_FOR_IT, ("see", "withdraw")),
        Path("admin", all_of(ADMIN, ASKED_BY_ANOTHER, _SEES_WHAT_IT_IS_ABOUT), ("see", "answer", "see_change")),
        Path("could give it", all_of(COULD_GIVE, ASKED_BY_ANOTHER, _SEES_WHAT_IT_IS_ABOUT), ("see", "answer")),
        Path("answered it", all_of(ANSWERED_IT, _SEES_WHAT_IT_IS_ABOUT), ("see", "see_change")),
        Path("asker left", all_of(ASKER_LEFT, OnRelated("about", Can("see_access"))), ("see", "answer")),
    ),
)

TABLES = (
    _own("token", "API token", "see", "revoke"),
    _own("invitation", "Invitation", "see", "resend", "revoke"),
    _own("profile", "Profile of a member", "see"),
    ACCESS_REQUEST,
)
