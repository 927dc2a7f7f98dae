import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { Button } from '../ui/Button';
import { count } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Menu } from '../ui/Menu';
import { ErrorNotice } from '../ui/Notice';
import { ExportButton } from './ExportButton';
import { filterLabel, filters, kindsOf, once } from './ledger';
import { transactionsQuery } from './queries';
import { strings } from './strings';
import { TransactionRow } from './TransactionRow';

const route = getRouteApi('/$account/money');

/** Every transaction, the newest first. */
export function Transactions() {
  const id = useId();
  const kinds = kindsOf(route.useSearch().kind);
  const navigate = route.useNavigate();
  const [exportError, setExportError] = useState<unknown>(null);
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage, isPlaceholderData } =
    useInfiniteQuery(transactionsQuery(kinds));
  const transactions = once(data?.pages.flatMap((page) => page.transactions) ?? []);
  const total = data?.pages.at(-1)?.total ?? 0;
  const show = (kind: string | undefined) =>
    navigate({ search: (now) => ({ ...now, kind }), replace: true, resetScroll: false });
  const problem = exportError ?? error;
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{strings.transactions}</h2>
        <span className="row push">
          <Menu
            label={strings.filterLabel(filterLabel(kinds))}
            look="quiet"
            size="s"
            actions={filters.map((filter) => ({
              label: filter.label,
              checked: filter.kinds === kinds,
              onSelect: () => show(filter.kinds),
            }))}
          >
            {filterLabel(kinds)}
          </Menu>
          <ExportButton key={kinds ?? 'all'} kind={kinds} onError={setExportError} />
        </span>
      </div>
      {problem !== null && (
        <div className="card-pad">
          <ErrorNotice error={problem} />
        </div>
      )}
      {!data && !error && <Loading />}
      {data && transactions.length === 0 && (
        <None filtered={kinds !== undefined} onShowAll={show} />
      )}
      {transactions.length > 0 && (
        <>
          <table className="table table-mv" aria-labelledby={id} aria-busy={isPlaceholderData}>
            <thead>
              <tr>
                <th scope="col">{strings.time}</th>
                <th scope="col">{strings.kind}</th>
                <th scope="col">{strings.forWhat}</th>
                <th scope="col" className="end">
                  {strings.amount}
                </th>
                <th scope="col" className="end">
                  {strings.availableAfter}
                </th>
              </tr>
            </thead>
            <tbody>
              {transactions.map((transaction) => (
                <TransactionRow key={transaction.id} transaction={transaction} />
              ))}
            </tbody>
          </table>
          <div className="card-foot small soft row">
            <span>{strings.shownOf(count(transactions.length), count(total))}</span>
            {hasNextPage && (
              <span className="push">
                <Button size="s" busy={isFetchingNextPage} onClick={() => fetchNextPage()}>
                  {strings.showMore}
                </Button>
              </span>
            )}
          </div>
        </>
      )}
    </section>
  );
}

function None({
  filtered,
  onShowAll,
}: {
  filtered: boolean;
  onShowAll: (kind: undefined) => void;
}) {
  return (
    <div className="card-pad soft">
      {filtered ? (
        <p>
          {strings.noneOfKind}{' '}
          <button className="undo" type="button" onClick={() => onShowAll(undefined)}>
            {strings.showAll}
          </button>
        </p>
      ) : (
        <p>{strings.noTransactions}</p>
      )}
    </div>
  );
}
