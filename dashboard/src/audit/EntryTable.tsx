import type { AuditEntry } from '@rota/sdk';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { exact } from '../ui/format';
import { SafeText } from '../ui/SafeText';
import { ResourceLink } from './ResourceLink';
import { strings } from './strings';
import { actionWords, actorWords, timeWords } from './words';

export function EntryTable({
  entries,
  busy,
  nameOf,
  onOpen,
}: {
  entries: AuditEntry[];
  busy: boolean;
  nameOf: (userId: string) => string;
  onOpen: (entry: AuditEntry) => void;
}) {
  return (
    <table className="table table-audit" aria-labelledby="audit" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col">{strings.time}</th>
          <th scope="col">{strings.who}</th>
          <th scope="col">{strings.action}</th>
          <th scope="col">{strings.about}</th>
          <th scope="col">
            <span className="sr">{strings.details}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Row key={entry.sequence} entry={entry} nameOf={nameOf} onOpen={() => onOpen(entry)} />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  entry,
  nameOf,
  onOpen,
}: {
  entry: AuditEntry;
  nameOf: (userId: string) => string;
  onOpen: () => void;
}) {
  const [who, note] = actorWords(entry, nameOf);
  return (
    <tr>
      <td className="soft">
        <time dateTime={entry.at} title={exact(entry.at)}>
          {timeWords(entry.at)}
        </time>
      </td>
      <td>
        <p>
          <SafeText>{who}</SafeText>
        </p>
        {note && (
          <p className="tiny faint">
            <SafeText>{note}</SafeText>
          </p>
        )}
      </td>
      <td>{actionWords(entry.action)}</td>
      <td className="small">
        <About id={entry.resource} nameOf={nameOf} />
      </td>
      <td className="act end">
        <Button size="s" look="quiet" onClick={onOpen}>
          {strings.details}
          <span className="sr"> {entry.sequence}</span>
        </Button>
      </td>
    </tr>
  );
}

/** What the entry is about: the account, a person or a thing. */
function About({ id, nameOf }: { id: string; nameOf: (userId: string) => string }) {
  if (id === useAccount()) return <span className="soft">{strings.account}</span>;
  if (id.startsWith('user_')) return <SafeText>{nameOf(id)}</SafeText>;
  return <ResourceLink id={id} />;
}
