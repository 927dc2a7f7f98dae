import type { Scope } from '@rota/sdk';
import { Check } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { Notice } from '../ui/Notice';
import { scopeGroups, strings } from './strings';

export function ScopeChoice({
  chosen,
  onChange,
  error,
}: {
  chosen: Scope[];
  onChange: (scopes: Scope[]) => void;
  error: string | undefined;
}) {
  const toggle = (scope: Scope) =>
    onChange(chosen.includes(scope) ? chosen.filter((each) => each !== scope) : [...chosen, scope]);
  return (
    <fieldset className="stack-4" aria-describedby={error && 'scopes-error'}>
      <legend className="label legend">{strings.keys.thisKeyCan}</legend>
      {scopeGroups.map((group) => (
        <fieldset key={group.name} className="scope-group">
          <legend className="tiny faint">{group.name}</legend>
          {group.scopes.map(({ scope, label, does }) => (
            <Check
              key={scope}
              checked={chosen.includes(scope)}
              onChange={() => toggle(scope)}
              label={
                <>
                  {label} <span className="mono faint tiny">{scope}</span>
                  <span className="block small soft">{does}</span>
                </>
              }
            />
          ))}
          {group.scopes.some(({ scope }) => scope === 'tasks:approve') && (
            <div role="status" className="small">
              {chosen.includes('tasks:approve') && (
                <Notice tone="wait">{strings.keys.approveWarning}</Notice>
              )}
            </div>
          )}
        </fieldset>
      ))}
      {error && (
        <p className="error" id="scopes-error" role="alert">
          <Icon name="alert" small />
          {error}
        </p>
      )}
    </fieldset>
  );
}
