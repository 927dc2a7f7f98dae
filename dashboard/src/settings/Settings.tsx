import { TopBar } from '../shell/TopBar';

export function Settings() {
  return (
    <main className="main" id="main">
      <TopBar title="Settings" />
    </main>
  );
}
