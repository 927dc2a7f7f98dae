import { TopBar } from '../shell/TopBar';

export function Servers() {
  return (
    <main className="main" id="main">
      <TopBar title="Servers" />
    </main>
  );
}
