import type { TaskStatus } from '@rota/sdk';

const shapes = {
  pending: (
    <>
      <circle
        cx="7"
        cy="7"
        r="5.250"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeDasharray="2.200 1.920"
      />
    </>
  ),
  running: (
    <>
      <circle
        cx="7"
        cy="7"
        r="5.250"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        opacity=".3"
      />
      <path
        className="spin"
        d="M7 1.750A5.250 5.250 0 0 1 12.250 7"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.750"
        strokeLinecap="round"
      />
    </>
  ),
  waiting: (
    <>
      <path d="M7 .8 13.200 7 7 13.200.8 7Z" fill="currentColor" />
    </>
  ),
  done: (
    <>
      <circle cx="7" cy="7" r="6" fill="currentColor" />
      <path
        d="m4.300 7.200 1.900 1.900 3.600-3.900"
        fill="none"
        stroke="var(--surface)"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </>
  ),
  failed: (
    <>
      <rect x="1.200" y="1.200" width="11.600" height="11.600" rx="2" fill="currentColor" />
      <path
        d="m4.800 4.800 4.400 4.400M9.200 4.800 4.800 9.200"
        stroke="var(--surface)"
        strokeWidth="1.5"
        strokeLinecap="round"
      />
    </>
  ),
  cancelled: (
    <>
      <circle cx="7" cy="7" r="5.250" fill="none" stroke="currentColor" strokeWidth="1.5" />
      <path d="m3.600 10.400 6.800-6.800" stroke="currentColor" strokeWidth="1.5" />
    </>
  ),
};

export type StatusShape = keyof typeof shapes;

const statuses: Record<TaskStatus, { shape: StatusShape; word: string }> = {
  PENDING: { shape: 'pending', word: 'Pending' },
  RUNNING: { shape: 'running', word: 'Running' },
  WAITING_APPROVAL: { shape: 'waiting', word: 'Waiting for approval' },
  COMPLETED: { shape: 'done', word: 'Completed' },
  FAILED: { shape: 'failed', word: 'Failed' },
  CANCELLED: { shape: 'cancelled', word: 'Cancelled' },
};

export const statusWord = (status: TaskStatus): string => statuses[status].word;

/** A shape for each status, so that colour is never the only sign. */
export function Shape({ shape }: { shape: StatusShape }) {
  return (
    <svg className={`shape is-${shape}`} viewBox="0 0 14 14" aria-hidden="true">
      {shapes[shape]}
    </svg>
  );
}

export function Status({ status, bare }: { status: TaskStatus; bare?: boolean }) {
  const { shape, word } = statuses[status];
  return (
    <span className={`status is-${shape}`}>
      <Shape shape={shape} />
      <span className={bare ? 'sr' : undefined}>{word}</span>
    </span>
  );
}
