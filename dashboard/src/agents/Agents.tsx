import { TopBar } from '../shell/TopBar';

export function Agents() {
  return (
    <main className="main" id="main">
      <TopBar title="Agents" />
    </main>
  );
}
