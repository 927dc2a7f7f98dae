import { Outlet, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { LiveProvider, useConnection } from '../live/LiveProvider';
import { useSession } from '../signin/useSession';
import { useShortcuts } from '../ui/shortcuts';
import { ToastRegion } from '../ui/toast';
import { useWide } from '../ui/wide';
import { useAccount } from './account';
import { LostAccount } from './Broken';
import { Rail, TabBar } from './Rail';
import { strings } from './strings';
import { OfflineBar } from './TopBar';
import { useTitle } from './title';

const KeyHelp = lazy(() => import('./KeyHelp').then(({ KeyHelp }) => ({ default: KeyHelp })));

/** What surrounds every screen: navigation, shortcuts, live updates, messages. */
export function Shell() {
  const account = useAccount();
  const navigate = useNavigate();
  const wide = useWide();
  const [help, setHelp] = useState(false);
  const params = { account };
  useSession();
  useTitle();
  useShortcuts({
    c: () => navigate({ to: '/$account/new', params }),
    '?': () => setHelp(true),
    'g i': () => navigate({ to: '/$account', params }),
    'g t': () => navigate({ to: '/$account/tasks', params }),
    'g a': () => navigate({ to: '/$account/agents', params }),
    'g s': () => navigate({ to: '/$account/servers', params }),
    'g m': () => navigate({ to: '/$account/money', params }),
  });
  return (
    <LiveProvider key={account} account={account}>
      <MembersOnly>
        <div className="app">
          <a className="btn skip" href="#main">
            {strings.skip}
          </a>
          <OfflineBar />
          {wide && <Rail account={account} />}
          <Outlet />
          {!wide && <TabBar account={account} />}
        </div>
      </MembersOnly>
      <ToastRegion />
      <Suspense>{help && <KeyHelp onClose={() => setHelp(false)} />}</Suspense>
    </LiveProvider>
  );
}

/** Shows nothing of an account that the caller has lost, also while its page is open. */
function MembersOnly({ children }: { children: ReactNode }) {
  return useConnection() === 'refused' ? <LostAccount /> : children;
}
