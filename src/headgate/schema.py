"""Every table of the database, together."""

from headgate.audit import models as audit
from headgate.catalog import models as catalog
from headgate.contexts import models as contexts
from headgate.errands import models as errands
from headgate.groups import models as groups
from headgate.kit import leases
from headgate.kit.models import METADATA
from headgate.lakehouse import models as lakehouse
from headgate.mail import models as mail
from headgate.maintenance import models as maintenance
from headgate.marts import models as marts
from headgate.members import models as members
from headgate.notifications import models as notifications
from headgate.pipelines import models as pipelines
from headgate.places import models as places
from headgate.requests import models as requests
from headgate.resources import models as resources
from headgate.runs import models as runs
from headgate.sessions import models as sessions
from headgate.spaces import models as spaces
from headgate.tokens import models as tokens
from headgate.triggers import models as triggers
from headgate.webhooks import models as webhooks
from headgate.workbench import models as workbench

MODULES = (
    audit,
    catalog,
    contexts,
    errands,
    groups,
    lakehouse,
    leases,
    mail,
    maintenance,
    marts,
    members,
    notifications,
    pipelines,
    places,
    requests,
    resources,
    runs,
    sessions,
    spaces,
    tokens,
    triggers,
    webhooks,
    workbench,
)

__all__ = ["METADATA", "MODULES"]
