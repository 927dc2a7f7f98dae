import type { Task } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { Money } from './Money';
import { SafeText } from './SafeText';
import { Status } from './Status';
import { Ago } from './Time';

type Words = Record<'task' | 'status' | 'cost' | 'created', string>;

/** The last tasks of an agent or a schedule. */
export function RunTable({ tasks, words }: { tasks: Task[]; words: Words }) {
  const account = useAccount();
  return (
    <table className="table table-runs">
      <thead>
        <tr>
          <th scope="col">{words.task}</th>
          <th scope="col">{words.status}</th>
          <th scope="col" className="end">
            {words.cost}
          </th>
          <th scope="col" className="end">
            {words.created}
          </th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <tr key={task.id}>
            <td>
              <Link
                className="strong name"
                to="/$account/tasks/$id"
                params={{ account, id: task.id }}
              >
                <SafeText>{task.name}</SafeText>
              </Link>
            </td>
            <td>
              <Status status={task.status} />
            </td>
            <td className="end" data-l={words.cost}>
              <Money usd={task.usage.costUsd} fine />
            </td>
            <td className="end faint">
              <Ago at={task.createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
