import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { SafeText } from '../ui/SafeText';

/** The screens of what has one, by the first part of the ID. */
const screens = {
  task: '/$account/tasks/$id',
  sched: '/$account/schedules/$id',
  mcp: '/$account/servers/$id',
} as const;

/** An ID, as a link to its screen if there is one. */
export function ResourceLink({ id }: { id: string }) {
  const account = useAccount();
  const kind = id.slice(0, id.indexOf('_'));
  const text = (
    <code>
      <SafeText>{id}</SafeText>
    </code>
  );
  if (!Object.hasOwn(screens, kind)) return text;
  return (
    <Link className="link" to={screens[kind as keyof typeof screens]} params={{ account, id }}>
      {text}
    </Link>
  );
}
