import { TopBar } from '../shell/TopBar';

export function NewTask() {
  return (
    <main className="main" id="main">
      <TopBar title="NewTask" />
    </main>
  );
}
