# Generated from rota_sdk/_async: do not edit.
"""Schedules: the same task again and again."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, change, creation, id_of
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.resource import Resource

ScheduleRef: TypeAlias = str | models.Schedule
# With a schedule, its task. The service refuses one that a list has cut.
TaskTemplate: TypeAlias = models.TaskBody | models.Schedule | Mapping[str, Any]


def _body(task: TaskTemplate) -> models.TaskBody | Mapping[str, Any]:
    """A task as a request has it."""
    if isinstance(task, models.Schedule):
        return task.task.model_dump(exclude_unset=True)
    return task


def _cut(*sources: object) -> list[models.CutText]:
    """What a list has left out of the task of a schedule."""
    found = [each for each in sources if isinstance(each, models.Schedule) and each.truncated]
    return found[0].truncated if found else []


class Schedules(Resource):
    def create(
        self,
        *,
        name: str,
        cron: str,
        time_zone: str,
        task: TaskTemplate,
        overlap: models.Overlap | None = None,
        paused: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.Schedule:
        """Creates `task` at the times of `cron`, in `time_zone` (`Europe/Berlin`, for example).

        `task` can be a schedule that you read. Then the new one gets its task.
        """
        body = creation(
            models.CreateSchedule,
            name=name,
            cron=cron,
            time_zone=time_zone,
            task=_body(task),
            overlap=overlap,
            paused=paused,
            truncated=_cut(task) or None,
        )
        response = self._call(
            operations.create_schedule, body=body, idempotency_key=idempotency_key
        )
        return response.schedule

    def list(self, *, page_size: int | None = None) -> Pages[models.Schedule]:
        """The schedules, newest first.

        Long texts can be cut on a page: `truncated` of a schedule names them. `get` returns the
        whole schedule.
        """
        return self._offset_list(
            operations.list_schedules, lambda r: r.schedules, page_size, lambda each: each.id
        )

    def get(self, schedule: ScheduleRef) -> models.ScheduleDetailsResponse:
        """The schedule, its next five times and its last ten tasks."""
        return self._call(operations.get_schedule, {"id": id_of(schedule)})

    def update(
        self,
        schedule: ScheduleRef,
        *,
        name: str | Unset = UNSET,
        cron: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        task: TaskTemplate | Unset = UNSET,
        overlap: models.Overlap | Unset = UNSET,
        paused: bool | Unset = UNSET,
    ) -> models.Schedule:
        """Changes the fields that are given. `task` is replaced as a whole.

        A `task` is refused with a schedule from a list that has cut its task.
        """
        cut = [] if task is UNSET else _cut(task, schedule)
        body = change(
            models.PatchSchedule,
            name=name,
            cron=cron,
            time_zone=time_zone,
            task=UNSET if task is UNSET else _body(task),
            overlap=overlap,
            paused=paused,
            truncated=cut or UNSET,
        )
        response = self._call(operations.patch_schedule, {"id": id_of(schedule)}, body=body)
        return response.schedule

    def delete(self, schedule: ScheduleRef) -> None:
        """Deletes the schedule. Its tasks stay."""
        self._end(operations.delete_schedule, {"id": id_of(schedule)})

    def run(self, schedule: ScheduleRef, *, idempotency_key: str | None = None) -> models.Task:
        """Creates a task of the schedule now."""
        path = {"id": id_of(schedule)}
        response = self._call(operations.run_schedule, path, idempotency_key=idempotency_key)
        return response.task
