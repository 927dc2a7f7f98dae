"""Events and instructions: the event journal, live streams, the outbox and its relay."""
