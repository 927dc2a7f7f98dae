import { SafeText } from '../../ui/SafeText';
import { type Field, flat, isAbsent } from '../schema';
import { shownValue } from './display';
import { Rows } from './Rows';

/** Arguments to read, with the names and in the order of the form. */
export function Values({ fields }: { fields: Field[] }) {
  return (
    <dl className="values">
      {flat(fields)
        .filter((field) => !isAbsent(field))
        .map((field) => (
          <div key={field.id} className={field.kind.is === 'table' ? 'wide' : undefined}>
            <dt>
              <SafeText>{field.name}</SafeText>
            </dt>
            <dd>
              {field.kind.is === 'table' ? (
                <Rows field={field} />
              ) : (
                <SafeText>{shownValue(field.proposed)}</SafeText>
              )}
            </dd>
          </div>
        ))}
    </dl>
  );
}
