/** The keys of the cache. Events of the stream name what to fetch again by these. */
export const keys = {
  me: ['me'] as const,
  approvals: ['approvals'] as const,
  tasks: ['tasks'] as const,
  task: (id: string) => ['task', id] as const,
  schedules: ['schedules'] as const,
  schedule: (id: string) => ['schedules', id] as const,
  deleteSchedule: ['delete-schedule'] as const,
  agents: ['agents'] as const,
  agent: (name: string) => ['agents', name] as const,
  servers: ['servers'] as const,
  server: (id: string) => ['servers', id] as const,
  disconnect: ['disconnect'] as const,
  money: ['money'] as const,
  plan: ['plan'] as const,
  apiKeys: ['api-keys'] as const,
  sessions: ['sessions'] as const,
};
