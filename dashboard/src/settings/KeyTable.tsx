import type { ApiKey } from '@rota/sdk';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { SafeText } from '../ui/SafeText';
import { Ago, Day, useNow } from '../ui/Time';
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
    <section className="card" aria-labelledby="keys">
      <div className="card-head">
        <h3 id="keys">{words.active}</h3>
        <Badge>{apiKeys.length}</Badge>
      </div>
      {apiKeys.length === 0 ? (
        <p className="card-pad soft">{words.none}</p>
      ) : (
        <table className="table table-keys" aria-labelledby="keys">
          <thead>
            <tr>
              <th scope="col">{words.keyName}</th>
              <th scope="col">{words.scopes}</th>
              <th scope="col">{words.created}</th>
              <th scope="col">{words.lastUsed}</th>
              <th scope="col">{words.expires}</th>
              <th scope="col">
                <span className="sr">{strings.action}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {apiKeys.map((key) => (
              <KeyRow key={key.id} apiKey={key} onRevoke={() => onRevoke(key)} />
            ))}
          </tbody>
        </table>
      )}
    </section>
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
