import type { Version } from '@rota/sdk';
import { cents, count } from '../ui/format';
import { strings } from './strings';

export interface SettingChange {
  name: string;
  before: string | null;
  after: string | null;
}

const yesNo = (value: boolean) => (value ? 'yes' : 'no');

/** What two versions set, as people read it. Null where a plan does not show it. */
function settings(version: Version): Record<string, string | null> {
  const { fields } = strings;
  const { approval } = version;
  return {
    [fields.model]: version.model ?? null,
    [fields.run]: yesNo(approval.run),
    [fields.calls]: typeof approval.tools === 'string' ? approval.tools : approval.tools.join(', '),
    [fields.output]: yesNo(approval.output),
    [fields.budget]: cents(version.budgetCents),
    [fields.steps]: count(version.maxSteps),
    [fields.concurrent]: version.maxConcurrent === null ? null : count(version.maxConcurrent),
    [fields.outputSchema]: version.outputSchema ? JSON.stringify(version.outputSchema) : null,
  };
}

/** The settings that differ. Each tool that came or went is a change of its own. */
export function changedSettings(before: Version, after: Version): SettingChange[] {
  const old = settings(before);
  const changes: SettingChange[] = Object.entries(settings(after))
    .filter(([name, value]) => value !== old[name])
    .map(([name, value]) => ({ name, before: old[name] ?? null, after: value }));
  const { tools } = strings.fields;
  for (const tool of before.tools) {
    if (!after.tools.includes(tool)) changes.push({ name: tools, before: tool, after: null });
  }
  for (const tool of after.tools) {
    if (!before.tools.includes(tool)) changes.push({ name: tools, before: null, after: tool });
  }
  return changes;
}

/** The names of what a version changed, for a list of versions. */
export function changedNames(before: Version, after: Version): string[] {
  const names = new Set<string>();
  if (before.instructions !== after.instructions) names.add(strings.fields.instructions);
  for (const change of changedSettings(before, after)) names.add(change.name);
  return [...names];
}
