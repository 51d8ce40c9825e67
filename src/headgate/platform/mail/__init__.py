"""Mail: an outbox that is written in the transaction of a change and sent by the scheduler."""
