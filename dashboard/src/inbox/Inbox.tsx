import { TopBar } from '../shell/TopBar';

export function Inbox() {
  return (
    <main className="main" id="main">
      <TopBar title="Inbox" />
    </main>
  );
}
