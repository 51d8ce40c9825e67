"""Request handling: authentication, transaction, guard, audit and logs."""
