import { errors } from '@rota/sdk';
import {
  createRootRoute,
  createRoute,
  createRouter,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { queryClient } from './api/cache';
import { selectAccount, selectedAccount } from './api/client';
import { approvalsQuery, issuersQuery, meQuery } from './api/queries';
import { Inbox } from './inbox/Inbox';
import { keepToken, keptToken } from './invitation/token';
import { pendingPayment } from './money/pending';
import { reviewQuery } from './review/data';
import { rememberAccount, rememberedAccount } from './shell/account';
import { Broken, BrokenScreen, NotFound, NotFoundScreen } from './shell/Broken';
import { keepOnlyFor } from './shell/kept';
import { Shell } from './shell/Shell';
import { screen } from './shell/screen';
import { wasSignedIn } from './signin/renewal';
import { Loading } from './ui/Loading';

const root = createRootRoute({
  component: Outlet,
  errorComponent: Broken,
  notFoundComponent: NotFound,
});

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value ? value : undefined;

/** The texts of a URL with these names. */
const texts =
  <Name extends string>(...names: Name[]) =>
  (search: Record<string, unknown>) =>
    Object.fromEntries(names.map((name) => [name, text(search[name])])) as {
      [name in Name]?: string;
    };

/** The caller, or the sign-in page. After sign-in, the browser returns to `href`. */
async function signedIn(href: string) {
  if (!wasSignedIn()) throw redirect({ to: '/signin', search: { next: href } });
  try {
    const me = await queryClient.ensureQueryData(meQuery);
    keepOnlyFor(me.user.id);
    return me;
  } catch (error) {
    if (!(error instanceof errors.AuthenticationError)) throw error;
    throw redirect({ to: '/signin', search: { next: href } });
  }
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: async ({ preload }) => {
    if (preload) return;
    // An account that the caller has lost is still in what was read for it.
    if (selectAccount(null)) queryClient.clear();
    const { accounts, account } = await signedIn('/');
    const last = rememberedAccount();
    const known =
      accounts.find((each) => each.id === last) ??
      // Work with others comes first.
      accounts.find((each) => each.kind === 'company') ??
      account;
    queryClient.removeQueries({ queryKey: meQuery.queryKey });
    throw redirect({ to: '/$account', params: { account: known.id } });
  },
});

/** The link of an invitation. Its token does not stay in the address. */
const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  beforeLoad: async ({ location }) => {
    if (keepToken(location.hash)) throw redirect({ to: '/invitation', replace: true });
    if (selectAccount(null)) queryClient.clear();
    const me = await signedIn('/invitation');
    queryClient.removeQueries({ queryKey: meQuery.queryKey });
    return { token: keptToken(), me };
  },
  component: screen(() => import('./invitation/InvitationPage'), 'InvitationPage'),
});

/** Where people return to from a checkout, which does not know the account. */
const backFromCheckout = createRoute({
  getParentRoute: () => root,
  path: '/money',
  validateSearch: texts('checkout'),
  beforeLoad: async ({ search, location }) => {
    const { account } = await signedIn(location.href);
    const paying = pendingPayment()?.account;
    const params = { account: paying ?? rememberedAccount() ?? account.id };
    // It was read for no account, so it is about the personal one.
    queryClient.removeQueries({ queryKey: meQuery.queryKey });
    throw redirect({ to: '/$account/money', params, search });
  },
});

const signin = createRoute({
  getParentRoute: () => root,
  path: '/signin',
  validateSearch: texts('next'),
  // The buttons are there from the start, so that nothing moves when they come.
  loader: () => queryClient.prefetchQuery(issuersQuery),
  component: screen(() => import('./signin/SignIn'), 'SignIn'),
});

const callback = createRoute({
  getParentRoute: () => root,
  path: '/signin/callback',
  component: screen(() => import('./signin/Callback'), 'Callback'),
});

/** What an email links to, without a sign-in. */
const unsubscribe = createRoute({
  getParentRoute: () => root,
  path: '/unsubscribe',
  component: screen(() => import('./unsubscribe/UnsubscribePage'), 'UnsubscribePage'),
});

const ReviewScreen = screen(() => import('./review/ReviewScreen'), 'ReviewScreen');

/**
 * A link in a message opens a review, often on a phone. On a slow network each answer takes long,
 * so what the page needs is asked for at once, not after the answer about the caller. The same goes
 * for the inbox, which most visits start with.
 */
function startEarly(path: string): void {
  if (!wasSignedIn()) return;
  if (/^\/[^/]+\/?$/.test(path)) queryClient.prefetchQuery(approvalsQuery);
  const id = /^\/[^/]+\/reviews\/([^/]+)/.exec(path)?.[1];
  if (!id) return;
  ReviewScreen.preload?.();
  queryClient.prefetchQuery(reviewQuery(id));
}

const account = createRoute({
  getParentRoute: () => root,
  path: '/$account',
  beforeLoad: async ({ params, location, preload }) => {
    // A link to another account selects it when it is followed, not when a pointer is over it.
    if (preload && selectedAccount() !== params.account) return;
    if (selectAccount(params.account)) queryClient.clear();
    const caller = signedIn(location.href);
    startEarly(location.pathname);
    await caller;
    rememberAccount(params.account);
  },
  component: Shell,
  errorComponent: Broken,
  notFoundComponent: NotFoundScreen,
});

const inbox = createRoute({
  getParentRoute: () => account,
  path: '/',
  validateSearch: (search): { task?: string; agent?: string; later?: boolean } => ({
    task: text(search.task),
    agent: text(search.agent),
    later: search.later === true ? true : undefined,
  }),
  component: Inbox,
});

const review = createRoute({
  getParentRoute: () => account,
  path: '/reviews/$id',
  component: ReviewScreen,
});

const newTask = createRoute({
  getParentRoute: () => account,
  path: '/new',
  validateSearch: texts('agent', 'text'),
  component: screen(() => import('./newtask/NewTask'), 'NewTask'),
});

const manyTasks = createRoute({
  getParentRoute: () => account,
  path: '/new/many',
  validateSearch: texts('agent'),
  component: screen(() => import('./batch/ManyTasks'), 'ManyTasks'),
});

const tasks = createRoute({
  getParentRoute: () => account,
  path: '/tasks',
  validateSearch: texts('status', 'agent', 'q'),
  component: screen(() => import('./tasks/Tasks'), 'Tasks'),
});

const task = createRoute({
  getParentRoute: () => account,
  path: '/tasks/$id',
  validateSearch: texts('tab'),
  component: screen(() => import('./tasks/TaskScreen'), 'TaskScreen'),
});

const compare = createRoute({
  getParentRoute: () => account,
  path: '/compare/$original/$fork',
  component: screen(() => import('./compare/CompareScreen'), 'CompareScreen'),
});

const schedules = createRoute({
  getParentRoute: () => account,
  path: '/schedules',
  component: screen(() => import('./schedules/Schedules'), 'Schedules'),
});

const schedule = createRoute({
  getParentRoute: () => account,
  path: '/schedules/$id',
  component: screen(() => import('./schedules/ScheduleScreen'), 'ScheduleScreen'),
});

const agents = createRoute({
  getParentRoute: () => account,
  path: '/agents',
  validateSearch: (search): { q?: string; department?: string; rank?: string; open?: boolean } => ({
    q: text(search.q),
    department: text(search.department),
    rank: text(search.rank),
    open: search.open === true ? true : undefined,
  }),
  component: screen(() => import('./agents/Agents'), 'Agents'),
});

const agent = createRoute({
  getParentRoute: () => account,
  path: '/agents/$name',
  validateSearch: (search): { tab?: string; from?: number; to?: number } => ({
    tab: text(search.tab),
    from: typeof search.from === 'number' ? search.from : undefined,
    to: typeof search.to === 'number' ? search.to : undefined,
  }),
  component: screen(() => import('./agents/AgentScreen'), 'AgentScreen'),
});

const servers = createRoute({
  getParentRoute: () => account,
  path: '/servers',
  component: screen(() => import('./servers/Servers'), 'Servers'),
});

const server = createRoute({
  getParentRoute: () => account,
  path: '/servers/$id',
  component: screen(() => import('./servers/ServerScreen'), 'ServerScreen'),
});

const money = createRoute({
  getParentRoute: () => account,
  path: '/money',
  validateSearch: texts('checkout', 'kind', 'by'),
  component: screen(() => import('./money/MoneyScreen'), 'MoneyScreen'),
});

const settings = createRoute({
  getParentRoute: () => account,
  path: '/settings/$section',
  // The filters of the audit trail, and the webhook whose deliveries are shown.
  validateSearch: texts('action', 'actor', 'user', 'resource', 'from', 'to', 'webhook'),
  component: screen(() => import('./settings/Settings'), 'Settings'),
});

const settingsHome = createRoute({
  getParentRoute: () => account,
  path: '/settings',
  component: screen(() => import('./settings/Settings'), 'SettingsHome'),
});

const routeTree = root.addChildren([
  home,
  invitation,
  backFromCheckout,
  signin,
  callback,
  unsubscribe,
  account.addChildren([
    inbox,
    review,
    newTask,
    manyTasks,
    tasks,
    task,
    compare,
    schedules,
    schedule,
    agents,
    agent,
    servers,
    server,
    money,
    settingsHome,
    settings,
  ]),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: 'intent',
  defaultPendingComponent: Loading,
  // A screen that fails leaves the navigation around it in place.
  defaultErrorComponent: BrokenScreen,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
