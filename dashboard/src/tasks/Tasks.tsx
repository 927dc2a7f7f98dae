import { TopBar } from '../shell/TopBar';

export function Tasks() {
  return (
    <main className="main" id="main">
      <TopBar title="Tasks" />
    </main>
  );
}
