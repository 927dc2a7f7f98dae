import type { AccountApprovals, MeResponse } from '@rota/sdk';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { meQuery } from '../api/queries';
import { canManage } from '../members/rules';
import { SettingsForm } from '../settings/SettingsForm';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { ApprovalFields, LimitFields } from './fields';
import { approvalsOf, type Form, formOf, isChanged } from './form';
import { strings } from './strings';

const policiesQuery = queryOptions({
  queryKey: keys.policies,
  queryFn: () => api.policies.get(),
});

/** Who can approve in this account, and what waits for approval. */
export function Policies() {
  const { data: me, error } = useQuery(meQuery);
  const found = useQuery(policiesQuery);
  const failed = error ?? found.error;
  if (me && found.data) return <OfAccount me={me} stored={found.data.approvals} />;
  return failed ? <ErrorNotice error={failed} /> : <Loading />;
}

function OfAccount({ me: { account }, stored }: { me: MeResponse; stored: AccountApprovals }) {
  const cache = useQueryClient();
  // Only what was changed here. The rest stays as stored, also if somebody else changes it meanwhile.
  const [typed, setTyped] = useState<Partial<Form> | null>(null);
  const [tried, setTried] = useState(false);
  const form = { ...formOf(stored), ...typed };
  const approvals = approvalsOf(form);
  const manages = canManage(account.role);
  const save = useMutation({
    mutationFn: (body: NonNullable<typeof approvals>) => api.policies.replace({ approvals: body }),
    onSuccess: (saved) => {
      cache.setQueryData(policiesQuery.queryKey, saved);
      setTyped(null);
      setTried(false);
      toast(strings.saved);
    },
  });
  const change = (changes: Partial<Form>) => setTyped({ ...typed, ...changes });
  return (
    <SettingsForm
      words={strings}
      hint={strings.hint(account.name)}
      saving={save}
      changed={isChanged(form, stored)}
      readOnly={!manages}
      onSave={() => {
        setTried(true);
        if (approvals) save.mutate(approvals);
      }}
      onDiscard={typed && (() => setTyped(null))}
      footer={
        <p className="small soft">
          {strings.rulesHint}{' '}
          <Link
            className="link"
            to="/$account/settings/$section"
            params={{ account: account.id, section: 'rules' }}
          >
            {strings.toRules}
          </Link>
          .
        </p>
      }
    >
      {!manages && <p className="soft">{strings.onlyManagers}</p>}
      {account.kind === 'company' && (
        <ApprovalFields form={form} stored={stored} disabled={!manages} onChange={change} />
      )}
      <LimitFields
        form={form}
        disabled={!manages}
        error={tried && !approvals ? strings.amountWrong : undefined}
        onChange={change}
      />
    </SettingsForm>
  );
}
