import { getRouteApi } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Check } from '../ui/Field';
import { Menu } from '../ui/Menu';
import { Segments } from '../ui/Tabs';
import { ranks, strings } from './strings';

const route = getRouteApi('/$account/agents');

export function AgentFilters({
  departments,
  children,
}: {
  departments: string[];
  /** Stands before the filters. */
  children?: ReactNode;
}) {
  const { department, rank, open } = route.useSearch();
  const navigate = route.useNavigate();
  const filter = (changed: { department?: string; rank?: string; open?: boolean }) =>
    navigate({ search: (old) => ({ ...old, ...changed }), replace: true });
  const rankLabel = ranks.find((each) => each.key === rank)?.name ?? strings.anyRank;
  return (
    <div className="filterbar">
      {children}
      <div className="scroll-x">
        <Segments
          label={strings.department}
          options={[
            { name: '', label: strings.allDepartments },
            ...departments.map((name) => ({ name, label: name })),
          ]}
          selected={department ?? ''}
          onSelect={(name) => filter({ department: name || undefined })}
        />
      </div>
      <span className="row push">
        <Menu
          label={`${strings.rank}: ${rankLabel}`}
          look="quiet"
          size="s"
          actions={[
            {
              label: strings.anyRank,
              checked: !rank,
              onSelect: () => filter({ rank: undefined }),
            },
            ...ranks.map((each) => ({
              label: each.name,
              checked: rank === each.key,
              onSelect: () => filter({ rank: each.key }),
            })),
          ]}
        >
          {rankLabel}
        </Menu>
        <Check
          className="small nowrap"
          label={strings.openToMe}
          checked={open ?? false}
          onChange={(event) => filter({ open: event.target.checked || undefined })}
        />
      </span>
    </div>
  );
}
