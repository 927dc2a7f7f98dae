/** The pages of the settings. A new page needs an entry here, and nothing else. */

import type { Account } from '@rota/sdk';
import type { ComponentType } from 'react';
import { strings as auditStrings } from '../audit/strings';
import { strings as dataStrings } from '../data/strings';
import { Members } from '../members/Members';
import { strings as memberStrings } from '../members/strings';
import { strings as notificationStrings } from '../notifications/strings';
import { Policies } from '../policies/Policies';
import { strings as policyStrings } from '../policies/strings';
import { Rules } from '../rules/Rules';
import { strings as ruleStrings } from '../rules/strings';
import { screen } from '../shell/screen';
import type { IconName } from '../ui/Icon';
import { Appearance } from './Appearance';
import { Keys } from './Keys';
import { Profile } from './Profile';
import { Sessions } from './Sessions';
import { strings } from './strings';

export interface Section {
  /** Its place in the URL. */
  name: string;
  label: string;
  icon: IconName;
  page: ComponentType;
  /** Only in accounts of this kind. */
  kind?: Account['kind'];
  /** Only for owners and admins. */
  managed?: true;
}

export const groups: { name: string; sections: Section[] }[] = [
  {
    name: strings.you,
    sections: [
      { name: 'profile', label: strings.profile.name, icon: 'person', page: Profile },
      { name: 'appearance', label: strings.appearance.name, icon: 'later', page: Appearance },
      {
        name: 'notifications',
        label: notificationStrings.name,
        icon: 'bell',
        page: screen(() => import('../notifications/Notifications'), 'Notifications'),
      },
      { name: 'sessions', label: strings.sessions.name, icon: 'clock', page: Sessions },
    ],
  },
  {
    name: strings.account,
    sections: [
      {
        name: 'members',
        label: memberStrings.name,
        icon: 'agents',
        page: Members,
        kind: 'company',
      },
      { name: 'policies', label: policyStrings.name, icon: 'shield', page: Policies },
      { name: 'rules', label: ruleStrings.name, icon: 'rule', page: Rules },
      { name: 'keys', label: strings.keys.name, icon: 'key', page: Keys },
      {
        name: 'webhooks',
        label: strings.webhooks,
        icon: 'hook',
        page: screen(() => import('../webhooks/Webhooks'), 'Webhooks'),
        managed: true,
      },
      {
        name: 'audit',
        label: auditStrings.name,
        icon: 'file',
        page: screen(() => import('../audit/AuditTrail'), 'AuditTrail'),
        managed: true,
      },
      {
        name: 'data',
        label: dataStrings.name,
        icon: 'data',
        page: screen(() => import('../data/Data'), 'Data'),
      },
    ],
  },
];
