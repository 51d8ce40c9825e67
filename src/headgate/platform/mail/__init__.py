"""Mail: an outbox that is written with a change and sent by the scheduler."""
