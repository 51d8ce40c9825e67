"""Creates data spaces."""

from sqlalchemy import insert

from headgate.platform.authorization import writer
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.spaces.spaces.models import space_table


def create(call: Call, name: str) -> str:
    """Create a space owned by the caller and return its id. Callers without that right learn nothing about existing
    names.
    """
    decision = call.require("create_space", "organization", "organization")
    member = call.caller.member
    presentation.refuse_twin(call, "space", name)
    with writer.new_resource(call.connection, "space", name, call.now, member) as space:
        call.connection.execute(insert(space_table).values(id=space, owner_id=member, personal=False))
    after = {"change": "create_space", "name": name, "owner": member}
    call.record_change(decision, "create", "space", space, before=None, after=after)
    return space
