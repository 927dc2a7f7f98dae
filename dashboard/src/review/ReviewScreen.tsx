import { TopBar } from '../shell/TopBar';

export function ReviewScreen() {
  return (
    <main className="main" id="main">
      <TopBar title="ReviewScreen" />
    </main>
  );
}
