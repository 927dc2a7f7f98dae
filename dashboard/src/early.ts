/**
 * Runs before everything else and asks for what the first screen shows, so that the answers arrive
 * while the browser still loads the dashboard. It is a small file of its own and imports nothing.
 */
declare global {
  interface Window {
    /** Answers to requests that the dashboard is about to make, by account and path. */
    early?: Map<string, Promise<Response>>;
  }
}

const [, account, screen, id] =
  /^\/(acct_[^/]+)(?:\/([^/]*)(?:\/([^/]+))?)?/.exec(location.pathname) ?? [];

// The cookie cannot be read. This says that somebody has signed in with this browser.
if (account && localStorage.getItem('rota.renewed')) {
  const paths = ['/api/me'];
  if (!screen) paths.push('/api/approvals?limit=100&offset=0');
  if (screen === 'reviews' && id) paths.push(`/api/tasks/${id}/review`, `/api/tasks/${id}`);
  window.early = new Map();
  for (const path of paths) {
    const answer = fetch(path, { headers: { 'X-Service-Account': account } });
    // Who takes the answer handles the error.
    answer.catch(() => undefined);
    window.early.set(account + path, answer);
  }
}

export {};
