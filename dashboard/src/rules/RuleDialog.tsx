import type { CreateRule } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useRef, useState } from 'react';
import { newIdempotencyKey } from '../api/client';
import { stringifyExact } from '../api/exact';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input, Select } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { ConditionFields } from './ConditionFields';
import { conditionsOf, type Row } from './conditions';
import { createRule } from './data';
import { strings } from './strings';

const lengths = [1, 7, 30, 90] as const;
type Length = (typeof lengths)[number];
const DAY_MS = 86_400_000;
const MOST_USES = 1_000_000;

const usesOf = (typed: string): number | null => {
  const uses = /^\d{1,7}$/.test(typed.trim()) ? Number(typed) : 0;
  return uses >= 1 && uses <= MOST_USES ? uses : null;
};

/** The conditions, the number of uses and the end of a new rule. */
export function RuleDialog({
  title,
  subject,
  rows,
  children,
  onRows,
  onTry,
  onClose,
}: {
  title: string;
  /** What the rule is about. Null until it is chosen. */
  subject: Pick<CreateRule, 'fromReview' | 'serverId' | 'tool' | 'agent'> | null;
  rows: Row[];
  children: ReactNode;
  onRows: (rows: Row[]) => void;
  onTry?: () => void;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const [typedUses, setUses] = useState('20');
  const [days, setDays] = useState<Length>(30);
  const [tried, setTried] = useState(false);
  const [opened] = useState(Date.now);
  const maxUses = usesOf(typedUses);
  const conditions = conditionsOf(rows);
  // A changed form is another action: it must not get the answer of the first one.
  const action = useRef({ form: '', key: '' });
  const create = useMutation({
    mutationFn: (body: CreateRule) => {
      const form = stringifyExact(body);
      if (action.current.form !== form) action.current = { form, key: newIdempotencyKey() };
      return createRule(body, action.current.key);
    },
    onSuccess: () => {
      onClose();
      toast(strings.made);
      cache.invalidateQueries({ queryKey: keys.rules });
    },
  });
  const submit = () => {
    setTried(true);
    onTry?.();
    if (!subject || !conditions || !maxUses || create.isPending) return;
    const expiresAt = new Date(opened + days * DAY_MS).toISOString();
    create.mutate({ ...subject, arguments: conditions, maxUses, expiresAt });
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={create.isPending}>
            {strings.make}
          </Button>
        </>
      }
    >
      {children}
      {subject && <ConditionFields rows={rows} tried={tried} onChange={onRows} />}
      <div className="form form-tight">
        <Field
          label={strings.maxUses}
          hint={strings.maxUsesHint}
          error={tried && !maxUses ? strings.maxUsesWrong : undefined}
        >
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              autoComplete="off"
              value={typedUses}
              onChange={(event) => setUses(event.target.value)}
            />
          )}
        </Field>
        <Field label={strings.length}>
          {(control) => (
            <Select
              {...control}
              value={days}
              onChange={(event) => setDays(Number(event.target.value) as Length)}
            >
              {lengths.map((length) => (
                <option key={length} value={length}>
                  {strings.lengths[length]}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      {create.error && <ErrorNotice error={create.error} />}
    </Dialog>
  );
}
