import { TopBar } from '../shell/TopBar';

export function ServerScreen() {
  return (
    <main className="main" id="main">
      <TopBar title="ServerScreen" />
    </main>
  );
}
