import type { ReactNode } from 'react';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { TopBar } from './TopBar';

/** A screen with one list, and a button that adds to it. */
export function ListScreen({
  title,
  total,
  error,
  add,
  addShort,
  onAdd,
  none,
  noneHint,
  children,
}: {
  title: string;
  /** Undefined until the list is loaded. */
  total: number | undefined;
  error: Error | null;
  add: string;
  addShort: string;
  onAdd: () => void;
  none: string;
  noneHint: string;
  children: ReactNode;
}) {
  const loaded = total !== undefined;
  const empty = total === 0;
  const button = (
    <Button look="primary" icon="plus" onClick={onAdd}>
      <span className={empty ? undefined : 'not-phone'}>{add}</span>
      {!empty && <span className="only-phone">{addShort}</span>}
    </Button>
  );
  return (
    <main className="main" id="main">
      <TopBar title={title}>
        {loaded && !empty && <Badge>{total}</Badge>}
        <span className="row push">{!empty && button}</span>
      </TopBar>
      {error && !loaded && (
        <div className="page">
          <ErrorNotice error={error} />
        </div>
      )}
      {!loaded && !error && <Loading />}
      {empty && (
        <Empty title={none}>
          <p className="empty-text">{noneHint}</p>
          {button}
        </Empty>
      )}
      {children}
    </main>
  );
}
