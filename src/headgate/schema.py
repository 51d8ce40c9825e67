"""Every table of the database, together."""

from headgate.kit import leases
from headgate.kit.columns import METADATA
from headgate.lakehouse import models as lakehouse
from headgate.lakehouse.catalog import models as catalog
from headgate.lakehouse.files import models as files
from headgate.lakehouse.integrations import models as integrations
from headgate.lakehouse.maintenance import models as maintenance
from headgate.lakehouse.saved_queries import models as saved_queries
from headgate.lakehouse.sql import models as workbench
from headgate.lakehouse.trash import models as trash
from headgate.lakehouse.uploads import models as uploads
from headgate.marts import models as marts
from headgate.organization.access_requests import models as requests
from headgate.organization.contexts import models as contexts
from headgate.organization.groups import models as groups
from headgate.organization.invitations import models as invitations
from headgate.organization.sessions import models as sessions
from headgate.organization.tokens import models as tokens
from headgate.pipelines import models as pipelines
from headgate.pipelines.runs import models as runs
from headgate.pipelines.triggers import models as triggers
from headgate.platform.audit import models as audit
from headgate.platform.authorization import fact_tables
from headgate.platform.authorization import models as resources
from headgate.platform.connection_checks import models as connection_checks
from headgate.platform.directory import models as directory
from headgate.platform.external_systems import models as places
from headgate.platform.jobs import models as jobs
from headgate.platform.mail import models as mail
from headgate.platform.notifications import models as notifications
from headgate.platform.webhooks import models as webhooks
from headgate.spaces.connections import models as connections
from headgate.spaces.spaces import models as spaces

MODULES = (
    audit,
    catalog,
    connections,
    contexts,
    directory,
    connection_checks,
    fact_tables,
    files,
    groups,
    integrations,
    invitations,
    jobs,
    lakehouse,
    leases,
    mail,
    maintenance,
    marts,
    notifications,
    pipelines,
    places,
    requests,
    resources,
    runs,
    saved_queries,
    sessions,
    spaces,
    tokens,
    trash,
    triggers,
    uploads,
    webhooks,
    workbench,
)

__all__ = ["METADATA", "MODULES"]
