import type { Role } from '@rota/sdk';
import { Check } from '../ui/Field';
import { strings } from './strings';

/** A role, and for members whether they can approve. */
export function RoleFields({
  roles,
  role,
  approver,
  onChange,
}: {
  roles: Role[];
  role: Role;
  approver: boolean;
  onChange: (role: Role, approver: boolean) => void;
}) {
  return (
    <>
      <fieldset className="stack">
        <legend className="label legend">{strings.role}</legend>
        {roles.map((each) => (
          <Check
            key={each}
            type="radio"
            name="role"
            checked={role === each}
            onChange={() => onChange(each, approver)}
            label={
              <>
                {strings.roles[each]}
                <span className="block small soft">{strings.roleDoes[each]}</span>
              </>
            }
          />
        ))}
      </fieldset>
      {role === 'member' ? (
        <Check
          checked={approver}
          onChange={(event) => onChange(role, event.target.checked)}
          label={
            <>
              {strings.canApprove}
              <span className="block small soft">{strings.canApproveDoes}</span>
            </>
          }
        />
      ) : (
        <p className="small soft">{strings.alwaysApproves}</p>
      )}
    </>
  );
}
