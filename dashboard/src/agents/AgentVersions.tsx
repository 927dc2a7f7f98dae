import type { Version } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Badge } from '../ui/Badge';
import { Field, Select } from '../ui/Field';
import { Loading } from '../ui/Loading';
import { ErrorNotice, Notice } from '../ui/Notice';
import { Ago } from '../ui/Time';
import { versionsQuery } from './queries';
import { strings } from './strings';
import { VersionDifference } from './VersionDifference';
import { changedNames } from './versions';

const route = getRouteApi('/$account/agents/$name');
const { versions: words } = strings;

export function AgentVersions({ name }: { name: string }) {
  const { data, error } = useQuery(versionsQuery(name));
  const search = route.useSearch();
  const navigate = route.useNavigate();
  if (error && !data) return <ErrorNotice error={error} />;
  if (!data) return <Loading />;
  const { versions, total } = data;
  const numbered = (number: number | undefined) => versions.find((each) => each.version === number);
  const after = numbered(search.to) ?? versions[0];
  const before = numbered(search.from) ?? versions[1];
  const compare = (changed: { from?: number; to?: number }) =>
    navigate({ search: (old) => ({ ...old, ...changed }), replace: true });
  return (
    <div className="stack-6">
      <VersionTable versions={versions} total={total} />
      {before && after ? (
        <section className="stack-4" aria-labelledby="compare">
          <div className="row row-wrap compare">
            <h2 id="compare">{words.compare}</h2>
            <span className="row push">
              <VersionSelect
                label={words.from}
                versions={versions}
                value={before.version}
                onChange={(from) => compare({ from })}
              />
              <VersionSelect
                label={words.to}
                versions={versions}
                value={after.version}
                onChange={(to) => compare({ to })}
              />
            </span>
          </div>
          <VersionDifference before={before} after={after} />
        </section>
      ) : (
        <Notice>{words.one}</Notice>
      )}
    </div>
  );
}

function VersionSelect({
  label,
  versions,
  value,
  onChange,
}: {
  label: string;
  versions: Version[];
  value: number;
  onChange: (version: number) => void;
}) {
  return (
    <Field label={label}>
      {(control) => (
        <Select
          {...control}
          value={value}
          onChange={(event) => onChange(Number(event.target.value))}
        >
          {versions.map(({ version }) => (
            <option key={version} value={version}>
              {words.option(version)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

function VersionTable({ versions, total }: { versions: Version[]; total: number }) {
  return (
    <div className="card">
      <table className="table table-versions">
        <thead>
          <tr>
            <th scope="col">{words.version}</th>
            <th scope="col">{words.changed}</th>
            <th scope="col" className="end">
              {words.added}
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map((version, at) => {
            const previous = versions[at + 1];
            const names = previous ? changedNames(previous, version) : [];
            return (
              <tr key={version.version}>
                <td className="nowrap">
                  <span className="strong">{version.version}</span>{' '}
                  {version.current && <Badge tone="good">{words.current}</Badge>}
                </td>
                <td className="soft">
                  {version.version === 1
                    ? words.first
                    : names.join(', ') || (previous ? words.nothing : '')}
                </td>
                <td className="end faint">
                  <Ago at={version.createdAt} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {versions.length < total && (
        <p className="card-foot small soft">{words.more(versions.length, total)}</p>
      )}
    </div>
  );
}
