/**
 * Runs before everything else. It chooses what is painted while the dashboard loads, and asks for
 * what the first screen shows, so that the answers arrive meanwhile. It is a small file of its own
 * and imports nothing.
 */
declare global {
  interface Window {
    /** Answers to requests that the dashboard is about to make, by account and path. */
    early?: Map<string, Promise<Response>>;
  }
}

const [, account, screen, id] =
  /^\/(acct_[^/]+)(?:\/([^/]*)(?:\/([^/]+))?)?/.exec(location.pathname) ?? [];
const page = document.documentElement.dataset;

// As in ui/theme.ts, but before anything is painted.
const theme = localStorage.getItem('rota.theme');
if (theme === 'light' || theme === 'dark') page.theme = theme;

// The cookie cannot be read. This says that somebody has signed in with this browser.
if (localStorage.getItem('rota.renewed') && (account || location.pathname === '/')) {
  page.starting = '';
}
const paths: string[] = [];
if (location.pathname === '/signin') paths.push('/api/auth/config');
if (account && page.starting !== undefined) {
  paths.push('/api/me');
  if (!screen) paths.push('/api/approvals?limit=100&offset=0');
  if (screen === 'reviews' && id) paths.push(`/api/tasks/${id}/review`, `/api/tasks/${id}`);
  // The names of agents are on almost every screen.
  paths.push('/api/agents/catalog');
}
window.early = new Map();
for (const path of paths) {
  const answer = fetch(path, { headers: account ? { 'X-Service-Account': account } : {} });
  // Who takes the answer handles the error.
  answer.catch(() => undefined);
  window.early.set((account ?? '') + path, answer);
}

export {};
