"""What a developer does with the generated client: create, list, get, and meet an error."""

import json
import os

from rota_client import AuthenticatedClient
from rota_client.api.tasks import create_task, get_task, list_tasks
from rota_client.models import CreateTask, Error, TaskResponse, TasksResponse, TaskStatus

client = AuthenticatedClient(base_url=os.environ["ROTA_URL"], token=os.environ["ROTA_TOKEN"])
with client:
    made = create_task.sync(
        client=client, body=CreateTask(name="Made by a client", agent="process-writer")
    )
    assert isinstance(made, TaskResponse), made
    assert made.task.status is TaskStatus.PENDING
    page = list_tasks.sync(client=client, status=[TaskStatus.PENDING], limit=10)
    assert isinstance(page, TasksResponse), page
    fetched = get_task.sync(id=made.task.id, client=client)
    assert isinstance(fetched, TaskResponse), fetched
    missing = get_task.sync_detailed(id="task_0", client=client)
    assert isinstance(missing.parsed, Error), missing
print(
    json.dumps(
        {
            "created": made.task.id,
            "listed": [task.id for task in page.tasks],
            "fetched": fetched.task.name,
            "missing": [missing.status_code, missing.parsed.error.code],
        }
    )
)
