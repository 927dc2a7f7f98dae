import { TopBar } from '../shell/TopBar';

export function TaskScreen() {
  return (
    <main className="main" id="main">
      <TopBar title="TaskScreen" />
    </main>
  );
}
