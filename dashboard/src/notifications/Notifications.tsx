import type { NotificationChannel, NotificationDelivery, NotificationsResponse } from '@rota/sdk';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { meQuery } from '../api/queries';
import { SettingsForm } from '../settings/SettingsForm';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice, Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { toast } from '../ui/toast';
import { ChatFields, ContentFields, KindFields, MailFields } from './fields';
import { bodyOf, type Form, formOf, isChanged, lacksUrl } from './form';
import { strings } from './strings';

const notificationsQuery = queryOptions({
  queryKey: ['notifications'],
  queryFn: () => api.notifications.get(),
});

/** What the person is notified about in this account, and how. */
export function Notifications() {
  const { data: me, error } = useQuery(meQuery);
  const found = useQuery(notificationsQuery);
  const failed = error ?? found.error;
  if (me && found.data) return <OfPerson account={me.account.name} stored={found.data} />;
  return failed ? <ErrorNotice error={failed} /> : <Loading />;
}

function OfPerson({ account, stored }: { account: string; stored: NotificationsResponse }) {
  const cache = useQueryClient();
  // Null: as stored.
  const [typed, setTyped] = useState<Form | null>(null);
  const [tried, setTried] = useState(false);
  const form = typed ?? formOf(stored);
  const incomplete = lacksUrl(form, stored);
  const save = useMutation({
    mutationFn: () => api.notifications.replace(bodyOf(form)),
    onSuccess: (saved) => {
      cache.setQueryData(notificationsQuery.queryKey, saved);
      setTyped(null);
      setTried(false);
      toast(strings.saved);
    },
  });
  const change = (changes: Partial<Form>) => setTyped({ ...form, ...changes });
  return (
    <SettingsForm
      words={strings}
      hint={strings.hint(account)}
      saving={save}
      changed={isChanged(form, stored)}
      onSave={() => {
        setTried(true);
        if (!incomplete) save.mutate();
      }}
      onDiscard={typed && (() => setTyped(null))}
      footer={
        <>
          <p className="small soft">{strings.digest(stored.digestMinutes)}</p>
          <Deliveries deliveries={stored.deliveries} />
        </>
      }
    >
      <KindFields form={form} stored={stored} onChange={change} />
      <MailFields stored={stored} test={<Test channel="mail" />} />
      <ChatFields
        form={form}
        stored={stored}
        error={tried && incomplete ? strings.urlMissing : undefined}
        onChange={change}
        test={<Test channel="chat" />}
      />
      <ContentFields form={form} onChange={change} />
    </SettingsForm>
  );
}

/** Sends a test message to what is saved. */
function Test({ channel }: { channel: NotificationChannel }) {
  const test = useMutation({
    mutationFn: () => api.notifications.test(channel),
    onSuccess: ({ delivered }) => delivered && toast(strings.testSent),
  });
  const problem = test.data?.error;
  return (
    <>
      <Button size="s" busy={test.isPending} onClick={() => test.mutate()}>
        {strings.test}
        <span className="sr"> ({strings.channels[channel]})</span>
      </Button>
      {test.error && <ErrorNotice error={test.error} />}
      {problem && (
        <div role="alert">
          <Notice tone="bad" title={strings.testFailed}>
            <SafeText>{problem}</SafeText>
          </Notice>
        </div>
      )}
    </>
  );
}

function Deliveries({ deliveries }: { deliveries: NotificationDelivery[] }) {
  if (deliveries.length === 0) return null;
  return (
    <section className="card" aria-label={strings.sent}>
      <div className="card-head">
        <h3>{strings.sent}</h3>
      </div>
      <ul className="lines">
        {deliveries.map((each) => (
          <li key={`${each.kind}/${each.channel}`} className="line-row">
            <span>
              <span className="strong">{strings.kinds[each.kind]}</span>
              <span className="block small soft">
                {strings.channels[each.channel]} · {strings.states[each.state]}
                {each.waiting > 0 && ` (${each.waiting})`}
              </span>
              {each.error && (
                <span className="block error">
                  <SafeText>{each.error}</SafeText>
                </span>
              )}
            </span>
            <span className="push small soft">
              {strings.lastSent}: {each.lastSentAt ? <Ago at={each.lastSentAt} /> : strings.never}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
