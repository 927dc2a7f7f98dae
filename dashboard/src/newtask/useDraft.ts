import type { CreateTask } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { keep, kept } from '../shell/kept';
import { centsOf, nameOf } from './draft';

export interface Draft {
  text: string;
  /** Empty: the first line of the text. */
  name: string;
  description: string;
  priority: number;
  waitForGo: boolean;
  /** In US dollars, as it was typed. Empty: the budget of the agent. */
  budget: string;
  /** In local time, as the control writes it. Empty: none. */
  deadline: string;
  /** The text of the link that it began with. */
  link: string;
}

const empty: Draft = {
  text: '',
  name: '',
  description: '',
  priority: 0,
  waitForGo: false,
  budget: '',
  deadline: '',
  link: '',
};

const nameFor = (account: string) => `new-task.${account}`;

/** What was typed before, unless a link has another text. */
export const draftFor = (before: Draft | null, link: string): Draft =>
  before && (!link || before.link === link) ? before : { ...empty, text: link, link };

export function useDraft(link: string) {
  const name = nameFor(useAccount());
  const [draft, setDraft] = useState(() => draftFor(kept<Draft>(name), link));
  const change = (changes: Partial<Draft>) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    keep(name, next.text || next.name || next.description ? next : null);
  };
  return [draft, change] as const;
}

/** What a quote depends on. */
export const quotedOf = (draft: Draft, agent: string): CreateTask => ({
  name: 'Quote',
  agent,
  status: draft.waitForGo ? 'WAITING_APPROVAL' : 'PENDING',
  ...(centsOf(draft.budget) !== null && { budgetCents: centsOf(draft.budget) }),
});

export const requestOf = (draft: Draft, agent: string): CreateTask => ({
  ...quotedOf(draft, agent),
  name: draft.name.trim() || nameOf(draft.text),
  input: draft.text.trim(),
  ...(draft.description.trim() && { description: draft.description.trim() }),
  priority: draft.priority,
  ...(draft.deadline && { deadline: new Date(draft.deadline).toISOString() }),
});

/** Creates the task and opens it. The same draft sent twice creates one task. */
export function useStart() {
  const account = useAccount();
  const navigate = useNavigate();
  const cache = useQueryClient();
  const sent = useRef({ body: '', key: '' });
  return useMutation({
    mutationFn: (body: CreateTask) => {
      const text = JSON.stringify(body);
      if (sent.current.body !== text) sent.current = { body: text, key: newIdempotencyKey() };
      return api.tasks.create(body, { idempotencyKey: sent.current.key });
    },
    onSuccess: (task) => {
      keep(nameFor(account), null);
      // It can have started before this answer arrived, so it is read again at once.
      cache.setQueryData(keys.task(task.id), { task }, { updatedAt: 1 });
      for (const queryKey of [keys.tasks, keys.approvals, keys.money]) {
        cache.invalidateQueries({ queryKey });
      }
      navigate({ to: '/$account/tasks/$id', params: { account, id: task.id } });
    },
  });
}
