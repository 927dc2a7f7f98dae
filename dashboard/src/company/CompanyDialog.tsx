import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { fieldProblem, newIdempotencyKey } from '../api/client';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { visible } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { create } from './data';
import { strings } from './strings';

/** Creates a company, and opens the page where others are invited to it. */
export function CompanyDialog({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  // A changed form is another action: it must not get the answer of the first one.
  const action = useRef({ name: '', key: '' });
  const creation = useMutation({
    mutationFn: () => {
      const wanted = name.trim();
      if (action.current.name !== wanted) {
        action.current = { name: wanted, key: newIdempotencyKey() };
      }
      return create(wanted, action.current.key);
    },
    onSuccess: async (company) => {
      onClose();
      toast(strings.created(visible(company.name)));
      await navigate({
        to: '/$account/settings/$section',
        params: { account: company.id, section: 'members' },
      });
    },
  });
  const error = tried && !name.trim() ? strings.nameMissing : fieldProblem(creation.error, 'name');
  const submit = () => {
    setTried(true);
    if (name.trim() && !creation.isPending) creation.mutate();
  };
  return (
    <Dialog
      title={strings.title}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={creation.isPending}>
            {strings.action}
          </Button>
        </>
      }
    >
      <p className="soft">{strings.hint}</p>
      <Field label={strings.name} error={error}>
        {(control) => (
          <Input
            {...control}
            placeholder={strings.placeholder}
            maxLength={100}
            autoComplete="organization"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      {creation.error && <ErrorNotice error={creation.error} />}
    </Dialog>
  );
}
