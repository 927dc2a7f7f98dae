import type { MeResponse } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../api/queries';
import { SectionHead } from '../settings/SectionHead';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { EraseCard } from './EraseCard';
import { ExportCard } from './ExportCard';
import { RetentionCard } from './RetentionCard';
import { strings } from './strings';

/** How long the account keeps its data, its export and its erasure. */
export function Data() {
  const { data: me, error } = useQuery(meQuery);
  if (me) return <OfAccount account={me.account} />;
  return error ? <ErrorNotice error={error} /> : <Loading />;
}

function OfAccount({ account }: { account: MeResponse['account'] }) {
  const owns = account.role === 'owner';
  return (
    <>
      <SectionHead title={strings.name} hint={<SafeText>{strings.hint(account.name)}</SafeText>} />
      <RetentionCard role={account.role} />
      {owns ? (
        <>
          <ExportCard />
          <EraseCard account={account} />
        </>
      ) : (
        <p className="soft">{strings.onlyOwners}</p>
      )}
    </>
  );
}
