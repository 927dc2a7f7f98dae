import type { ApiKey } from '@rota/sdk';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { SafeText } from '../ui/SafeText';
import { Ago, Day, useNow } from '../ui/Time';
import { CountedTable } from './CountedTable';
import { strings } from './strings';

const words = strings.keys;
const SOON_MS = 14 * 86_400_000;

export function KeyTable({
  apiKeys,
  onRevoke,
}: {
  apiKeys: ApiKey[];
  onRevoke: (key: ApiKey) => void;
}) {
  return (
    <CountedTable
      id="keys"
      title={words.active}
      count={apiKeys.length}
      none={words.none}
      columns={[words.keyName, words.scopes, words.created, words.lastUsed, words.expires]}
      action={strings.action}
    >
      {apiKeys.map((key) => (
        <KeyRow key={key.id} apiKey={key} onRevoke={() => onRevoke(key)} />
      ))}
    </CountedTable>
  );
}

function KeyRow({ apiKey, onRevoke }: { apiKey: ApiKey; onRevoke: () => void }) {
  const creator = apiKey.createdBy?.name;
  return (
    <tr>
      <td>
        <p className="strong">
          <SafeText>{apiKey.name}</SafeText>
        </p>
        <p className="mono faint tiny">{apiKey.prefix}…</p>
      </td>
      <td data-l={words.scopes}>
        <span className="row row-wrap tight">
          {apiKey.scopes.map((scope) => (
            <Badge key={scope} tone={scope === 'tasks:approve' ? 'wait' : 'line'}>
              {scope}
            </Badge>
          ))}
        </span>
      </td>
      <td className="soft" data-l={words.created}>
        <Day at={apiKey.createdAt} /> {creator && <SafeText>{words.by(creator)}</SafeText>}
      </td>
      <td className="soft" data-l={words.lastUsed}>
        {apiKey.lastUsedAt ? <Ago at={apiKey.lastUsedAt} /> : strings.never}
      </td>
      <Ends at={apiKey.expiresAt} />
      <td className="act end">
        <Button size="s" look="danger" onClick={onRevoke}>
          {words.revoke}
          <span className="sr"> {apiKey.name}</span>
        </Button>
      </td>
    </tr>
  );
}

function Ends({ at }: { at: string | null }) {
  const left = (at ? Date.parse(at) : Number.POSITIVE_INFINITY) - useNow();
  return (
    <td className={left < SOON_MS ? 'urgent' : 'soft'} data-l={words.expires}>
      {!at && strings.never}
      {at && (left <= 0 ? `${words.expired} ` : null)}
      {at && (left < SOON_MS ? <Ago at={at} /> : <Day at={at} />)}
    </td>
  );
}
