import type { AuditEntry } from '@rota/sdk';
import type { ReactNode } from 'react';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { exact } from '../ui/format';
import { SafeText } from '../ui/SafeText';
import type { AuditFilter } from './filter';
import { ResourceLink } from './ResourceLink';
import { strings } from './strings';

const names = strings.fields;

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="line">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const given = (name: string, text: string | null) =>
  text && (
    <Line name={name}>
      <code>
        <SafeText>{text}</SafeText>
      </code>
    </Line>
  );

/** Everything about one entry, and ways to others like it. */
export function EntryDialog({
  entry,
  onShow,
  onClose,
}: {
  entry: AuditEntry;
  onShow: (filter: AuditFilter) => void;
  onClose: () => void;
}) {
  const { userId, via, resource, details, erased } = entry;
  const hasDetails = Object.keys(details).length > 0;
  return (
    <Dialog
      title={strings.entry(entry.sequence)}
      onClose={onClose}
      onSubmit={onClose}
      actions={
        <>
          <Button type="button" onClick={() => onShow({ resource })}>
            {strings.sameResource}
          </Button>
          {userId && (
            <Button type="button" onClick={() => onShow({ user: userId })}>
              {strings.samePerson}
            </Button>
          )}
          <Button type="submit" look="primary">
            {strings.close}
          </Button>
        </>
      }
    >
      <dl className="lines audit-lines">
        <Line name={names.at}>
          <time dateTime={entry.at}>{exact(entry.at)}</time>
        </Line>
        {given(names.action, entry.action)}
        {given(names.userId, userId)}
        {via && (
          <Line name={names.via}>
            <ResourceLink id={via} />
          </Line>
        )}
        <Line name={names.resource}>
          <ResourceLink id={resource} />
        </Line>
        {given(names.actorName, entry.actorName)}
        {given(names.address, entry.address)}
        {given(names.requestId, entry.requestId)}
        {hasDetails && given(names.details, JSON.stringify(details, null, 2))}
        {given(names.hash, entry.hash)}
      </dl>
      {erased && <p className="soft">{strings.erased}</p>}
    </Dialog>
  );
}
