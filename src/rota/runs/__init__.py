"""How a task is carried out: the workflow, its activities, the agent loop, models, metering."""
