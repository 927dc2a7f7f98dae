import { TopBar } from '../shell/TopBar';

export function MoneyScreen() {
  return (
    <main className="main" id="main">
      <TopBar title="MoneyScreen" />
    </main>
  );
}
