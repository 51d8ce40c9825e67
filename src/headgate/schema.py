"""Every table of the database, together."""

from headgate.kit import leases
from headgate.kit.columns import METADATA
from headgate.lakehouse import models as lakehouse
from headgate.lakehouse.catalog import models as catalog
from headgate.lakehouse.maintenance import models as maintenance
from headgate.lakehouse.sql import models as workbench
from headgate.marts import models as marts
from headgate.organization.access_requests import models as requests
from headgate.organization.contexts import models as contexts
from headgate.organization.groups import models as groups
from headgate.organization.members import models as members
from headgate.organization.sessions import models as sessions
from headgate.organization.tokens import models as tokens
from headgate.pipelines import models as pipelines
from headgate.pipelines.runs import models as runs
from headgate.pipelines.triggers import models as triggers
from headgate.platform.audit import models as audit
from headgate.platform.authorization import fact_tables
from headgate.platform.authorization import models as resources
from headgate.platform.connection_checks import models as errands
from headgate.platform.external_systems import models as places
from headgate.platform.jobs import models as jobs
from headgate.platform.mail import models as mail
from headgate.platform.notifications import models as notifications
from headgate.platform.webhooks import models as webhooks
from headgate.spaces.spaces import models as spaces

MODULES = (
    audit,
    catalog,
    contexts,
    errands,
    fact_tables,
    groups,
    jobs,
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
