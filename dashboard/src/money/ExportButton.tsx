import type { Transaction } from '@rota/sdk';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../ui/Button';
import { download, today } from '../ui/download';
import { count } from '../ui/format';
import { toast } from '../ui/toast';
import { toCsv } from './csv';
import { once } from './ledger';
import { fetchTransactions } from './queries';
import { strings } from './strings';

const ROWS_AT_MOST = 10_000;
const ROWS_PER_REQUEST = 100;

// The mark at the start makes spreadsheets read the file as UTF-8.
const UTF_8_MARK = '\uFEFF';

/** Reads all transactions of the filter, at most 10,000, and saves them as CSV. */
export function ExportButton({
  kind,
  onError,
}: {
  kind: string | undefined;
  onError: (error: unknown) => void;
}) {
  const [progress, setProgress] = useState<{ read: number; of: number } | null>(null);
  const reading = useRef(0);
  useEffect(
    () => () => {
      reading.current += 1;
    },
    [],
  );
  const stop = () => {
    reading.current += 1;
    setProgress(null);
  };
  const start = async () => {
    reading.current += 1;
    const mine = reading.current;
    onError(null);
    setProgress({ read: 0, of: 0 });
    try {
      const rows: Transaction[] = [];
      let total = 1;
      for (let at = 0; at < Math.min(total, ROWS_AT_MOST); at += ROWS_PER_REQUEST) {
        const page = await fetchTransactions(kind, at, ROWS_PER_REQUEST);
        if (reading.current !== mine) return;
        rows.push(...page.transactions);
        total = page.total;
        if (!page.transactions.length) break;
        setProgress({ read: rows.length, of: Math.min(total, ROWS_AT_MOST) });
      }
      const found = once(rows);
      download(`transactions-${today()}.csv`, 'text/csv', UTF_8_MARK, toCsv(found));
      toast(
        total > ROWS_AT_MOST
          ? strings.exportedNewest(count(found.length), count(total))
          : strings.exported(count(found.length)),
      );
    } catch (error) {
      if (reading.current === mine) onError(error);
    }
    if (reading.current === mine) setProgress(null);
  };
  if (!progress) {
    return (
      <Button look="quiet" size="s" className="not-phone" onClick={start}>
        {strings.export}
      </Button>
    );
  }
  return (
    <>
      <span className="small soft num" role="status">
        {strings.exporting(count(progress.read), count(progress.of))}
      </span>
      <Button look="quiet" size="s" onClick={stop}>
        {strings.stop}
      </Button>
    </>
  );
}
