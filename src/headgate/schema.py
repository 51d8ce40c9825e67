"""Every table of the database, together."""

from headgate.audit import models as audit
from headgate.contexts import models as contexts
from headgate.groups import models as groups
from headgate.kit import leases
from headgate.kit.models import METADATA
from headgate.lakehouse import models as lakehouse
from headgate.marts import models as marts
from headgate.members import models as members
from headgate.pipelines import models as pipelines
from headgate.resources import models as resources
from headgate.runs import models as runs
from headgate.spaces import models as spaces
from headgate.tokens import models as tokens

MODULES = (
    audit,
    contexts,
    groups,
    lakehouse,
    leases,
    marts,
    members,
    pipelines,
    resources,
    runs,
    spaces,
    tokens,
)

__all__ = ["METADATA", "MODULES"]
