import type { Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { Ago } from '../ui/Time';
import { strings } from './strings';

/** A name can have 1,000 characters. A row shows its beginning. */
const SHOWN_CHARACTERS = 160;

function AgentName({ name }: { name: string | null }) {
  const agents = useQuery(agentsQuery).data;
  if (!name) return <span className="faint">{strings.noAgent}</span>;
  return <SafeText>{agents?.find((agent) => agent.name === name)?.displayName ?? name}</SafeText>;
}

export function TaskRow({
  index,
  top,
  task,
  selected,
  onSelect,
}: {
  index: number;
  top: number;
  task: Task | undefined;
  selected: boolean;
  onSelect: (selected: boolean, range: boolean) => void;
}) {
  const account = useAccount();
  const place = { transform: `translateY(${top}px)` };
  if (!task) {
    return (
      <tr className="tl-row" aria-rowindex={index + 2} style={place}>
        <td />
        <td className="sr">{strings.loadingRow}</td>
        <td>
          <span className="tl-void" />
        </td>
      </tr>
    );
  }
  return (
    <tr className="tl-row" aria-rowindex={index + 2} data-index={index} style={place}>
      <td>
        <label className="check">
          <input
            type="checkbox"
            aria-label={strings.selectTask(task.name)}
            checked={selected}
            onChange={(event) =>
              onSelect(event.target.checked, (event.nativeEvent as MouseEvent).shiftKey)
            }
          />
        </label>
      </td>
      <td>
        <Status status={task.status} />
      </td>
      <td className="tl-name">
        <Link
          className="clip"
          to="/$account/tasks/$id"
          params={{ account, id: task.id }}
          preload={false}
        >
          <SafeText>{task.name.slice(0, SHOWN_CHARACTERS)}</SafeText>
        </Link>
      </td>
      <td className="clip soft">
        <AgentName name={task.assignedAgent} />
      </td>
      <td className={Number(task.usage.costUsd) ? 'end num' : 'end num faint'}>
        <Money usd={task.usage.costUsd} fine />
      </td>
      <td className="end faint clip">
        {task.startedAt ? <Ago at={task.startedAt} /> : strings.notStarted}
      </td>
    </tr>
  );
}
