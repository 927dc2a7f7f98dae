import { useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react';
import { type Connection, LiveEvents } from './stream';
import { applyEvent, readFailed, startOver } from './updates';

const ConnectionContext = createContext<Connection>('connecting');

/** Keeps the cache current from the event stream of the account. */
export function LiveProvider({ account, children }: { account: string; children: ReactNode }) {
  const cache = useQueryClient();
  const [connection, setConnection] = useState<Connection>('connecting');
  useEffect(() => {
    const live = new LiveEvents(
      account,
      (event) => applyEvent(cache, event),
      (start) => startOver(cache, start),
    );
    const unsubscribe = live.subscribe(() => {
      setConnection(live.connection);
      if (live.connection === 'live') readFailed(cache);
    });
    return () => {
      unsubscribe();
      live.close();
    };
  }, [account, cache]);
  return <ConnectionContext value={connection}>{children}</ConnectionContext>;
}

export const useConnection = (): Connection => useContext(ConnectionContext);
