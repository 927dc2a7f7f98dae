import type { TaskStatus } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { agentsQuery } from '../api/queries';
import { SearchBox, Select } from '../ui/Field';
import { Shape, type StatusShape } from '../ui/Status';
import { useShortcuts } from '../ui/shortcuts';
import { statusesOf, type TaskFilter } from './queries';
import { strings } from './strings';

const segments: { status: TaskStatus; shape: StatusShape; word: string }[] = [
  { status: 'PENDING', shape: 'pending', word: 'Pending' },
  { status: 'RUNNING', shape: 'running', word: 'Running' },
  { status: 'WAITING_APPROVAL', shape: 'waiting', word: 'Waiting' },
  { status: 'FAILED', shape: 'failed', word: 'Failed' },
  { status: 'COMPLETED', shape: 'done', word: 'Completed' },
  { status: 'CANCELLED', shape: 'cancelled', word: 'Cancelled' },
];

const SEARCH_MS = 250;

function useChange(filter: TaskFilter) {
  const navigate = useNavigate({ from: '/$account/tasks' });
  return (change: TaskFilter) => navigate({ search: { ...filter, ...change }, replace: true });
}

/** States can be combined. None chosen means all. */
function StatusSegments({ filter }: { filter: TaskFilter }) {
  const change = useChange(filter);
  const chosen = statusesOf(filter.status);
  const toggle = (status: TaskStatus) => {
    const next = chosen.includes(status)
      ? chosen.filter((each) => each !== status)
      : [...chosen, status];
    change({ status: next.join(',') || undefined });
  };
  return (
    <fieldset className="segments" aria-label={strings.status}>
      <button
        type="button"
        aria-pressed={!chosen.length}
        onClick={() => change({ status: undefined })}
      >
        {strings.all}
      </button>
      {segments.map(({ status, shape, word }) => (
        <button
          key={status}
          type="button"
          aria-pressed={chosen.includes(status)}
          onClick={() => toggle(status)}
        >
          <span className={`status is-${shape}`}>
            <Shape shape={shape} />
          </span>
          {word}
        </button>
      ))}
    </fieldset>
  );
}

function Search({ filter }: { filter: TaskFilter }) {
  const change = useChange(filter);
  const [text, setText] = useState(filter.q ?? '');
  const box = useRef<HTMLInputElement>(null);
  const written = useRef(filter.q ?? '');
  const apply = useRef(change);
  useEffect(() => {
    apply.current = change;
  });
  // A link, or going back, can change the words, too.
  useEffect(() => {
    if ((filter.q ?? '') !== written.current) {
      written.current = filter.q ?? '';
      setText(filter.q ?? '');
    }
  }, [filter.q]);
  useEffect(() => {
    const words = text.trim();
    if (words === written.current) return;
    const timer = setTimeout(() => {
      written.current = words;
      apply.current({ q: words || undefined });
    }, SEARCH_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useShortcuts({ '/': () => box.current?.focus() });
  return (
    <SearchBox
      ref={box}
      label={strings.search}
      shortcut="/"
      value={text}
      maxLength={200}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.blur();
      }}
    />
  );
}

export function TaskFilters({ filter }: { filter: TaskFilter }) {
  const change = useChange(filter);
  const agents = [...(useQuery(agentsQuery).data ?? [])].sort((a, b) =>
    a.displayName.localeCompare(b.displayName),
  );
  const isKnown = agents.some((agent) => agent.name === filter.agent);
  return (
    <div className="filters">
      <StatusSegments filter={filter} />
      <Select
        aria-label={strings.agent}
        value={filter.agent ?? ''}
        onChange={(event) => change({ agent: event.target.value || undefined })}
      >
        <option value="">{strings.allAgents}</option>
        {filter.agent && !isKnown && <option value={filter.agent}>{filter.agent}</option>}
        {agents.map((agent) => (
          <option key={agent.name} value={agent.name}>
            {agent.displayName}
          </option>
        ))}
      </Select>
      <Search filter={filter} />
    </div>
  );
}
