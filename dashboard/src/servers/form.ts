/** What a person enters about a server, and the requests that it becomes. */
import type { ConnectServer, ToolServer, Transport, UpdateServer } from '@rota/sdk';

export interface Header {
  id: number;
  name: string;
  value: string;
}

export interface Connection {
  name: string;
  url: string;
  transport: Transport;
  token: string;
  headers: Header[];
}

export const emptyConnection: Connection = {
  name: '',
  url: '',
  transport: 'streamable-http',
  token: '',
  headers: [],
};

/** With one more row, which has an id of its own. */
export const withHeader = (headers: Header[]): Header[] => [
  ...headers,
  { id: Math.max(0, ...headers.map(({ id }) => id)) + 1, name: '', value: '' },
];

const filled = (headers: Header[]): Record<string, string> =>
  Object.fromEntries(
    headers
      .filter((header) => header.name.trim())
      .map((header) => [header.name.trim(), header.value.trim()]),
  );

const bearer = (token: string) => ({ type: 'bearer' as const, token: token.trim() });

export function connectBody(form: Connection): ConnectServer {
  const headers = filled(form.headers);
  return {
    name: form.name.trim(),
    url: form.url.trim(),
    transport: form.transport,
    ...(form.token.trim() ? { auth: bearer(form.token) } : {}),
    ...(Object.keys(headers).length ? { headers } : {}),
  };
}

export type Secret = 'keep' | 'replace' | 'remove';

export interface Edit extends Connection {
  tokenChange: Secret;
  headersChange: Secret;
}

/** Only what differs. Secrets are never shown, so that they change only when a person says so. */
export function updateBody(server: ToolServer, form: Edit): UpdateServer {
  const body: UpdateServer = {};
  if (form.name.trim() !== server.name) body.name = form.name.trim();
  if (form.url.trim() !== server.url) body.url = form.url.trim();
  if (form.transport !== server.transport) body.transport = form.transport;
  if (form.tokenChange === 'remove') body.auth = null;
  if (form.tokenChange === 'replace') body.auth = bearer(form.token);
  if (form.headersChange === 'remove') body.headers = null;
  if (form.headersChange === 'replace') body.headers = filled(form.headers);
  return body;
}
