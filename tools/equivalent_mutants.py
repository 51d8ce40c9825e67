"""Mutants that change no answer, each with why: patterns of their labels."""

EQUIVALENT = {
    r"(report|data_mart_trigger|report_trigger|pipeline_trigger|run) / admin: .*": (
        "admins have everything on the parent, and so on what follows it"
    ),
    r"data_mart / shared for reporting: without «role technical or business»": "the other two roles are admins",
    r"data_mart / creator: .*(without «role owner|became «role:owner,admin,technical,business»).*": (
        "a storage can be used by technical members and admins only"
    ),
    r"pipeline / admin delivers: without «there is no output layer»": "with one, the path creator lets admins pass",
    r"(report|pipeline|task) / start: with .*": "whoever may run, trigger or control has these already",
    r"task / admin reads data: with .*": "admins have these already",
    r"task / Can edit, with own levels: with .*": "Can edit, and admins, have these already",
    r"connection / its own owner: with list": "the owner holds a role in the space, or is admin",
    r"connection / admin: with (connect|test)": "admins reach every space and gateway",
    r"connection / code: with list": "whoever may use a connection lists what is in its space",
    r"report / confirm: with (see|edit|delete|manage_owners|manage_triggers|see_access)": "who may run has these",
    r"pipeline / confirm: with (see|see_runs|follow|activate|trigger)": "whoever may edit has these already",
    r"(pipeline|task) / start with secrets: with (see|see_runs|follow|edit|activate|list|open)": (
        "whoever may trigger or control has these already"
    ),
    r"task / code: without «ofmember»": (
        "its project's owner may use the connections, or it is not ready; that code is allowed is asked for the saver"
    ),
    r"connection / tests what they edit: with (list|connect)": "whoever tests a connection may use it, and lists it",
    r"connection / consume, edit or manage: with list": "whoever has such a role lists what is in the space",
    r"(project|task|connection|gateway) / asked with its space: with (list|delete)": (
        "Can manage lists, and deletes connections and gateways; so do tenant and data admins, and admins"
    ),
    r"(project|task|connection) / new (owner|space): with see_access": (
        "tenant and data admins manage the members of every space that is not personal"
    ),
    r"member / admin (removes|changes roles): with .*": "the same people, but for themselves and the last owner",
    r"member / admin changes roles: «role:owner» became .*": "only admins get that far",
}
