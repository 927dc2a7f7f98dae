import { TopBar } from '../shell/TopBar';

export function AgentScreen() {
  return (
    <main className="main" id="main">
      <TopBar title="AgentScreen" />
    </main>
  );
}
