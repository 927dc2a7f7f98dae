import type { ServerStatus } from '@rota/sdk';
import { plural } from '../ui/format';

export const statusWords: Record<ServerStatus, string> = {
  CONNECTED: 'Connected',
  CHANGED: 'Changed',
  UNREACHABLE: 'Unreachable',
  AUTH_FAILED: 'Credentials refused',
};

export const strings = {
  servers: 'Tool servers',
  allServers: 'All tool servers',
  columns: { server: 'Server', status: 'Status', tools: 'Tools', checked: 'Last check' },
  toAccept: 'Tools to accept',
  none: 'No tool server is connected yet',
  noneHint:
    'Tools let agents do more than write text: look something up, change a record, send a message. Connect a server, and agents can use its tools.',
  connect: 'Connect a server',
  connectShort: 'Connect',

  form: {
    name: 'Name',
    nameHint: 'Lowercase letters, digits and hyphens. Agents call its tools as',
    url: 'URL',
    urlHint: 'The address of the MCP endpoint.',
    transport: 'Transport',
    transports: { 'streamable-http': 'Streamable HTTP', sse: 'SSE, for older servers' },
    token: 'Bearer token',
    newToken: 'New bearer token',
    newHeaders: 'New headers',
    optional: 'optional',
    secretHint: 'Stored encrypted and never shown again.',
    headers: 'Headers',
    headerName: 'Name of header',
    headerValue: 'Value of header',
    addHeader: 'Add a header',
    removeHeader: 'Remove this header',
  },
  connectDialog: {
    title: 'Connect a tool server',
    what: 'What agents will be able to do',
    whatUse: (name: string) =>
      `Agents that may use ${name}/… can call its tools, with the credentials that you enter here.`,
    whatAsk:
      'Calls to tools that the server does not mark as read-only wait for a person, unless the agent’s policy says otherwise.',
    whatAccept:
      'By connecting, you accept every tool that it offers now. You then see all of them, and can switch off those that agents must not use. A tool that changes later is blocked until you accept it.',
    submit: 'Connect',
    cancel: 'Cancel',
    done: 'Done',
    open: 'Open the server',
    connected: (name: string, tools: number) =>
      `${name} is connected with ${plural(tools, 'tool')}`,
    connectedHint:
      'These are all of its tools, with what the server says about them. Agents can use them from now on. Open the server to switch off those that they must not use.',
    noTools: 'The server offers no tools yet.',
  },

  more: 'More',
  edit: 'Edit',
  checkNow: 'Check now',
  checkShort: 'Check',
  checked: (word: string, time: string) => `Checked in ${time}: ${word.toLowerCase()}`,
  disconnect: 'Disconnect',
  problem: {
    UNREACHABLE: 'The server does not respond',
    AUTH_FAILED: 'The server refuses the credentials',
  },
  problemHint: 'Agents cannot use its tools until a check succeeds.',
  changeCredentials: 'Change the credentials',
  facts: {
    checked: 'Last check',
    latency: 'Response time',
    tools: 'Tools',
    revision: 'Revision',
    none: '–',
    allowed: (allowed: number) => `${allowed} allowed`,
    allAllowed: 'All allowed',
    blocked: (count: number) => `${count} blocked`,
    connected: 'Connected',
  },

  changed: {
    title: (changed: number, added: number) => {
      if (!added) return `${plural(changed, 'tool')} changed`;
      return changed
        ? `${plural(changed + added, 'tool')} are new or changed`
        : plural(added, 'new tool');
    },
    hint: (count: number) =>
      `Agents cannot use ${count === 1 ? 'it until you accept it' : 'them until you accept them'}. Compare what was accepted with what the server offers now.`,
    isNew: 'New',
    isChanged: 'Changed',
    select: (name: string) => `Accept ${name}`,
    accepted: 'Accepted',
    live: 'Offered now',
    nothing: 'Nothing',
    unchanged: (count: number) => plural(count, 'unchanged line'),
    showAll: 'Show all lines',
    showChanges: 'Show only changes',
    seen: 'Shown in full',
    unseen: 'Not shown in full yet',
    accept: (count: number) => (count ? `Accept ${plural(count, 'tool')}` : 'Accept'),
    scroll: 'Scroll to the end to accept',
    selectSome: 'Select the tools that you accept.',
    done: (count: number) =>
      `Accepted ${plural(count, 'tool')}. Agents can use ${count === 1 ? 'it' : 'them'} now.`,
    stale: 'Nothing was accepted',
    staleHint: 'The server changed these tools again while you read. Below is what it offers now.',
    later: (count: number) => `${plural(count, 'more tool')} to accept after these.`,
  },

  tools: {
    title: 'Tools',
    filter: 'Filter tools',
    loading: 'Loading the server’s tools…',
    none: 'The server offers no tools.',
    noMatch: 'No tool matches.',
    allow: 'Allowed',
    allowLater: 'Allowed once accepted',
    allowTool: (name: string) => `Allow ${name}`,
    allowAll: 'Allow all, including future tools',
    some: 'Only the tools that are switched on can be used. Tools that the server adds later are off.',
    missing: (names: string) => `Allowed, but not offered by the server: ${names}`,
    says: 'The server says',
    noDescription: 'The server gives no description.',
    input: 'Arguments',
    output: 'Result',
    by: 'Accepted by',
    withKey: 'with an API key',
    unknown: 'Accepted before this was recorded',
    blocked: 'Blocked until you accept it',
    more: (count: number) => `Show ${count} more`,
  },
  annotations: {
    readOnly: ['Read-only', 'The server says that this tool changes nothing.'],
    writes: [
      'Not marked read-only',
      'The server does not say that this tool changes nothing. By default, each call waits for a person.',
    ],
    destructive: [
      'May change or delete data',
      'The server says so about this tool. By default, each call waits for a person.',
    ],
    openWorld: [
      'Reaches other systems',
      'The server says that this tool reaches systems beyond its own.',
    ],
  },

  health: {
    title: 'Health',
    none: 'No check is recorded yet.',
    last: (count: number) => `Last ${plural(count, 'check')}`,
    table: 'When, and what happened',
    when: 'When',
    status: 'Status',
    latency: 'Response time',
    error: 'Problem',
    fine: 'all succeeded',
    newest: 'Newest',
  },

  editDialog: {
    title: (name: string) => `Edit ${name}`,
    save: 'Save',
    cancel: 'Cancel',
    tokenNow: 'Bearer token',
    headersNow: 'Other headers',
    keep: 'Keep as it is',
    replace: 'Replace',
    remove: 'Remove',
    newUrl:
      'Stored credentials are not sent to a new URL. If the server has some, replace or remove them here.',
    connects:
      'Rota connects with these values before it saves them. Tools that match their accepted definitions stay accepted.',
    saved: 'Saved.',
    rename: (old: string) =>
      `Agents refer to its tools as ${old}/…. After you rename it, only agents whose files use the new name can use them.`,
  },

  disconnectDialog: {
    title: (name: string) => `Disconnect ${name}?`,
    effects: (tools: number) => [
      `${tools === 1 ? 'Its tool stops' : `Its ${tools} tools stop`} working for you and for every agent, at once.`,
      'Tasks that wait for approval of one of its calls cannot make that call.',
      'Its credentials, accepted tools and past checks are deleted.',
    ],
    again: 'You can connect it again, and then accept its tools again.',
    cancel: 'Keep it',
    done: (name: string) => `${name} is disconnected.`,
  },
};
