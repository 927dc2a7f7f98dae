/** The client. */
import { me } from './generated/operations.gen.ts';
import type { MeResponse } from './generated/types.gen.ts';
import { type OtherOptions, type RequestOptions, type RotaOptions, settingsOf } from './options.ts';
import { Resource } from './resource.ts';
import { Auth, Keys, Sessions } from './resources/access.ts';
import { Events, Health } from './resources/account.ts';
import { Agents } from './resources/agents.ts';
import { Audit } from './resources/audit.ts';
import { Companies } from './resources/companies.ts';
import { Data } from './resources/data.ts';
import { ConnectPass, Credits, Subscriptions } from './resources/money.ts';
import { Notifications } from './resources/notifications.ts';
import { Policies, Rules } from './resources/policies.ts';
import { Schedules } from './resources/schedules.ts';
import { Approvals, Tasks } from './resources/tasks.ts';
import { ToolServers } from './resources/toolServers.ts';
import { Webhooks } from './resources/webhooks.ts';
import { Transport } from './transport.ts';

/** A client of a Rota service. */
export class Rota extends Resource {
  readonly tasks: Tasks;
  readonly approvals: Approvals;
  readonly agents: Agents;
  readonly schedules: Schedules;
  readonly toolServers: ToolServers;
  readonly credits: Credits;
  readonly subscriptions: Subscriptions;
  readonly connectPass: ConnectPass;
  readonly events: Events;
  readonly audit: Audit;
  readonly companies: Companies;
  readonly notifications: Notifications;
  readonly policies: Policies;
  readonly data: Data;
  readonly rules: Rules;
  readonly webhooks: Webhooks;
  readonly keys: Keys;
  readonly sessions: Sessions;
  readonly auth: Auth;
  readonly health: Health;

  constructor(options: RotaOptions = {}) {
    const transport = new Transport(settingsOf(options));
    super(transport);
    this.tasks = new Tasks(transport);
    this.approvals = new Approvals(transport);
    this.agents = new Agents(transport);
    this.schedules = new Schedules(transport);
    this.toolServers = new ToolServers(transport);
    this.credits = new Credits(transport);
    this.subscriptions = new Subscriptions(transport);
    this.connectPass = new ConnectPass(transport);
    this.events = new Events(transport);
    this.audit = new Audit(transport);
    this.companies = new Companies(transport);
    this.notifications = new Notifications(transport);
    this.policies = new Policies(transport);
    this.data = new Data(transport);
    this.rules = new Rules(transport);
    this.webhooks = new Webhooks(transport);
    this.keys = new Keys(transport);
    this.sessions = new Sessions(transport);
    this.auth = new Auth(transport);
    this.health = new Health(transport);
  }

  /** A client with other options. What is not given stays, and null clears it. */
  withOptions(options: OtherOptions): Rota {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const merged = { ...this.transport.settings, ...Object.fromEntries(given) };
    return new Rota(merged as RotaOptions);
  }

  /** The user, the account and the tier of this client. */
  me(options?: RequestOptions): Promise<MeResponse> {
    return this.call(me, {}, options);
  }
}
