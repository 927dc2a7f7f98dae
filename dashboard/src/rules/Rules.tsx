import type { Rule } from '@rota/sdk';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { keys } from '../api/keys';
import { More } from '../members/More';
import { useCanApprove } from '../review/people';
import { ConfirmDialog } from '../settings/ConfirmDialog';
import { SectionHead } from '../settings/SectionHead';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { revokeRule, rulesQuery } from './data';
import { NewRule } from './NewRule';
import { RuleTable } from './RuleTable';
import { strings } from './strings';

/** The standing rules of the account. Approvers make and revoke them. */
export function Rules() {
  const canApprove = useCanApprove();
  const found = useInfiniteQuery(rulesQuery);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<Rule | null>(null);
  const rules = found.data?.pages.flatMap((page) => page.rules) ?? [];
  return (
    <>
      <SectionHead title={strings.name} hint={strings.hint}>
        {canApprove && (
          <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
            {strings.create}
          </Button>
        )}
      </SectionHead>
      {found.error && <ErrorNotice error={found.error} />}
      {!found.data && !found.error && <Loading />}
      {found.data && (
        <section className="card" aria-labelledby="rules">
          <div className="card-head">
            <h3 id="rules">{strings.table}</h3>
          </div>
          {rules.length ? (
            <RuleTable rules={rules} canRevoke={canApprove} onRevoke={setRevoking} />
          ) : (
            <p className="card-pad soft">{strings.none}</p>
          )}
          {found.hasNextPage && (
            <More
              shown={rules.length}
              total={found.data.pages.at(-1)?.total ?? 0}
              busy={found.isFetchingNextPage}
              onMore={found.fetchNextPage}
            />
          )}
        </section>
      )}
      {creating && <NewRule onClose={() => setCreating(false)} />}
      {revoking && <RevokeDialog rule={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function RevokeDialog({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const cache = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeRule(rule.id),
    onSuccess: () => {
      onClose();
      toast(strings.revoked);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.rules }),
  });
  return (
    <ConfirmDialog
      title={strings.revokeTitle}
      action={strings.revokeAction}
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        <code>
          <SafeText>{rule.tool}</SafeText>
        </code>{' '}
        {strings.by(rule.agent)}
      </p>
      <p>{strings.revokeEffect}</p>
    </ConfirmDialog>
  );
}
