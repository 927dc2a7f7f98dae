import type { PoliciesResponse, Role } from '@rota/sdk';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { canManage } from '../members/rules';
import { Button } from '../ui/Button';
import { Field, Input } from '../ui/Field';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { type Form, formOf, kinds, retentionOf } from './form';
import { strings } from './strings';

const policiesQuery = queryOptions({
  queryKey: keys.policies,
  queryFn: () => api.policies.get(),
});

/** What an empty field means. The default of the service is known where the account uses it. */
function unset({ retention, retentionInEffect }: PoliciesResponse, kind: keyof Form): string {
  if (retention[kind] !== null) return strings.byDefault;
  return String(retentionInEffect[kind] ?? strings.forever);
}

export function RetentionCard({ role }: { role: Role }) {
  const { data, error } = useQuery(policiesQuery);
  if (data) return <Stored role={role} stored={data} />;
  return error ? <ErrorNotice error={error} /> : <Loading />;
}

function Stored({ role, stored }: { role: Role; stored: PoliciesResponse }) {
  const cache = useQueryClient();
  // Only what was changed here. The rest stays as stored, also if somebody else changes it meanwhile.
  const [typed, setTyped] = useState<Partial<Form>>({});
  const [tried, setTried] = useState(false);
  const form = { ...formOf(stored.retention), ...typed };
  const retention = retentionOf(form);
  const manages = canManage(role);
  const save = useMutation({
    mutationFn: (body: NonNullable<typeof retention>) =>
      api.policies.replace({ approvals: stored.approvals, retention: body }),
    onSuccess: (saved) => {
      cache.setQueryData(policiesQuery.queryKey, saved);
      setTyped({});
      setTried(false);
      toast(strings.saved);
    },
  });
  return (
    <form
      className="card"
      aria-labelledby="retention"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (retention && !save.isPending) save.mutate(retention);
      }}
    >
      <div className="card-head">
        <h3 id="retention">{strings.retention}</h3>
      </div>
      <div className="card-pad stack-4">
        <p className="soft">
          {strings.retentionHint} {manages ? strings.empty : strings.onlyManagers}
        </p>
        <div className="retention">
          {kinds.map((kind) => (
            <Field
              key={kind}
              label={strings.kinds[kind]}
              hint={strings.inEffect(stored.retentionInEffect[kind])}
              {...(tried &&
              retentionOf({ ...formOf(stored.retention), [kind]: form[kind] }) === null
                ? { error: strings.wrong }
                : {})}
            >
              {(control) => (
                <span className="row">
                  <Input
                    {...control}
                    inputMode="numeric"
                    autoComplete="off"
                    placeholder={unset(stored, kind)}
                    disabled={!manages}
                    value={form[kind]}
                    onChange={(event) => setTyped({ ...typed, [kind]: event.target.value })}
                  />
                  <span className="small soft">{strings.days}</span>
                </span>
              )}
            </Field>
          ))}
        </div>
        {save.error && <ErrorNotice error={save.error} />}
        {manages && (
          <p className="row">
            <Button
              look="primary"
              type="submit"
              busy={save.isPending}
              disabled={JSON.stringify(form) === JSON.stringify(formOf(stored.retention))}
            >
              {strings.save}
            </Button>
          </p>
        )}
      </div>
    </form>
  );
}
