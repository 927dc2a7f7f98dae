"""What happened and what is to be done: the event log, live streams, the outbox and its relay."""
