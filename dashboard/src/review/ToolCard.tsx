import type { ReviewItem } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { serversQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { Badge } from '../ui/Badge';
import { SafeText } from '../ui/SafeText';
import { Day } from '../ui/Time';
import { DefinitionBadge } from './CallCard';
import { isDisconnected } from './data';
import { useActorName } from './people';
import { strings } from './strings';

/** What the server says about the effects of a tool. */
function Effects({ annotations }: { annotations: ReviewItem['annotations'] }) {
  const readOnly = annotations?.readOnlyHint === true && annotations.destructiveHint !== true;
  if (readOnly) return <Badge tone="line">{strings.readOnly}</Badge>;
  return (
    <>
      {annotations?.destructiveHint !== true && (
        <Badge tone="line">
          {annotations?.readOnlyHint === false ? strings.writes : strings.unmarked}
        </Badge>
      )}
      {annotations?.destructiveHint === true && (
        <Badge tone="bad" icon="alert">
          {strings.destructive}
        </Badge>
      )}
      {annotations?.destructiveHint === false && <Badge tone="line">{strings.addsOnly}</Badge>}
    </>
  );
}

function Acceptance({ item }: { item: ReviewItem }) {
  const account = useAccount();
  const nameOf = useActorName();
  const servers = useQuery(serversQuery).data?.servers;
  if (!item.serverId) return <p className="faint">{strings.builtIn}</p>;
  const link = (words: string) => (
    <Link className="link" to="/$account/servers/$id" params={{ account, id: item.serverId ?? '' }}>
      {words}
    </Link>
  );
  if (isDisconnected(item, servers)) return <p>{strings.disconnected}</p>;
  if (item.definitionAccepted === false) {
    return (
      <p>
        {strings.changedSince} {link(strings.lookAtChange)}
      </p>
    );
  }
  return (
    <p className="faint">
      {item.acceptedBy ? (
        <>
          {strings.sameAs} <SafeText>{nameOf(item.acceptedBy)}</SafeText>
        </>
      ) : (
        strings.sameAsUnknown
      )}
      {item.acceptedAt && (
        <>
          {' '}
          {strings.acceptedOn} <Day at={item.acceptedAt} />
        </>
      )}
      . {link(strings.showServer)}
    </p>
  );
}

export function ToolCard({ item }: { item: ReviewItem }) {
  const heading = `tool-${item.id}`;
  return (
    <section className="card" aria-labelledby={heading}>
      <div className="card-head">
        <h2 id={heading}>{strings.tool}</h2>
        <span className="push">
          <DefinitionBadge item={item} />
        </span>
      </div>
      <div className="card-pad-s stack small">
        <p>
          <code>
            <SafeText>{item.tool ?? ''}</SafeText>
          </code>
          {item.server && (
            <>
              {' '}
              <span className="soft">{strings.on}</span>{' '}
              <strong>
                <SafeText>{item.server}</SafeText>
              </strong>
            </>
          )}
        </p>
        {item.serverUrl && (
          <p className="soft">
            {strings.sentTo}{' '}
            <code>
              <SafeText>{item.serverUrl}</SafeText>
            </code>
          </p>
        )}
        {item.toolDescription && (
          <>
            <p className="faint tiny">{strings.says}</p>
            <blockquote className="soft tool-words">
              <SafeText>{item.toolDescription}</SafeText>
            </blockquote>
          </>
        )}
        <p className="row row-wrap">
          <Effects annotations={item.annotations} />
        </p>
        <Acceptance item={item} />
      </div>
    </section>
  );
}
