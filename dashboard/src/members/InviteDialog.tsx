import type { InvitedResponse, Role } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { fieldProblem, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { invite } from './data';
import { RoleFields } from './RoleFields';
import { changeOf } from './rules';
import { strings } from './strings';

const isAddress = (text: string): boolean => /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(text);

export function InviteDialog({
  company,
  roles,
  onClose,
  onInvited,
}: {
  company: string;
  roles: Role[];
  onClose: () => void;
  onInvited: (invited: InvitedResponse) => void;
}) {
  const cache = useQueryClient();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
  const [approver, setApprover] = useState(false);
  const [tried, setTried] = useState(false);
  // A changed form is another action: it must not get the answer of the first one.
  const action = useRef({ form: '', key: '' });
  const create = useMutation({
    // The answer has the link, so nothing keeps it.
    gcTime: 0,
    mutationFn: () => {
      const body = { email: email.trim(), ...changeOf(role, approver) };
      const form = JSON.stringify(body);
      if (action.current.form !== form) action.current = { form, key: newIdempotencyKey() };
      return invite(company, body, action.current.key);
    },
    onSuccess: (invited) => {
      cache.invalidateQueries({ queryKey: keys.company });
      onInvited(invited);
    },
  });
  const wrong = tried && !isAddress(email.trim()) ? strings.addressWrong : undefined;
  const refused = fieldProblem(create.error, 'email');
  const submit = () => {
    setTried(true);
    if (isAddress(email.trim()) && !create.isPending) create.mutate();
  };
  return (
    <Dialog
      title={strings.inviteTitle}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={create.isPending}>
            {strings.inviteAction}
          </Button>
        </>
      }
    >
      <p className="soft">{strings.inviteHint}</p>
      <Field label={strings.address} hint={strings.addressHint} error={wrong ?? refused}>
        {(control) => (
          <Input
            {...control}
            type="email"
            placeholder="grace@example.com"
            maxLength={320}
            autoComplete="off"
            value={email}
            onChange={(event) => setEmail(event.target.value)}
          />
        )}
      </Field>
      <RoleFields
        roles={roles}
        role={role}
        approver={approver}
        onChange={(newRole, newApprover) => {
          setRole(newRole);
          setApprover(newApprover);
        }}
      />
      {create.error && <ErrorNotice error={create.error} />}
    </Dialog>
  );
}
