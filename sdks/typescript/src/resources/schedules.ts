/** Schedules: the same task again and again. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** A schedule, or its ID. */
export type ScheduleRef = string | { id: string; truncated?: types.CutText[] };

export class Schedules extends Resource {
  /** Creates `task` at the times of `cron`, in `timeZone` (`Europe/Berlin`, for example). */
  async create(body: types.CreateSchedule, options?: KeyedRequestOptions): Promise<types.Schedule> {
    return (await this.call(operations.createSchedule, { body }, options)).schedule;
  }

  /**
   * The schedules, newest first. Long texts can be cut on a page: `truncated` of a schedule names
   * them. `get` returns the whole schedule.
   */
  list(
    query: Filters<types.ListSchedulesData> = {},
    options?: RequestOptions,
  ): Pages<types.Schedule, types.SchedulesResponse> {
    return this.offsetList(
      operations.listSchedules,
      (page) => page.schedules,
      (schedule) => schedule.id,
      query,
      { options },
    );
  }

  /** The schedule, its next five times and its last ten tasks. */
  get(schedule: ScheduleRef, options?: RequestOptions): Promise<types.ScheduleDetailsResponse> {
    return this.call(operations.getSchedule, { path: { id: idOf(schedule) } }, options);
  }

  /**
   * Changes the fields that are given. `task` is replaced as a whole. A `task` is refused with a
   * schedule from a list that has cut its task.
   */
  async update(
    schedule: ScheduleRef,
    changes: types.PatchSchedule,
    options?: RequestOptions,
  ): Promise<types.Schedule> {
    const cut = typeof schedule === 'object' && changes.task ? schedule.truncated : undefined;
    const body = cut?.length ? { ...changes, truncated: cut } : changes;
    const parts = { path: { id: idOf(schedule) }, body };
    return (await this.call(operations.patchSchedule, parts, options)).schedule;
  }

  /** Deletes the schedule. Its tasks stay. */
  async delete(schedule: ScheduleRef, options?: RequestOptions): Promise<void> {
    await this.call(operations.deleteSchedule, { path: { id: idOf(schedule) } }, options);
  }

  /** Creates a task of the schedule now. */
  async run(schedule: ScheduleRef, options?: KeyedRequestOptions): Promise<types.Task> {
    const parts = { path: { id: idOf(schedule) } };
    return (await this.call(operations.runSchedule, parts, options)).task;
  }
}
