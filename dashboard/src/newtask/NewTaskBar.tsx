import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { TopBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Kbd } from '../ui/Kbd';
import { strings } from './strings';

/** The bar of both ways to create tasks: one, or many at once. */
export function NewTaskBar({
  agent,
}: {
  /** The agent that is chosen. Changing the way keeps it. */
  agent: string | undefined;
}) {
  const account = useAccount();
  const to = {
    params: { account },
    search: agent ? { agent } : {},
    replace: true,
    activeOptions: { exact: true, includeSearch: false },
  };
  return (
    <TopBar title={strings.title}>
      <nav className="segments" aria-label={strings.ways}>
        <Link to="/$account/new" {...to}>
          <span>
            {strings.one} <span className="not-phone">{strings.oneTask}</span>
          </span>
        </Link>
        <Link to="/$account/new/many" {...to}>
          <span>
            {strings.many} <span className="not-phone">{strings.manyTasks}</span>
          </span>
        </Link>
      </nav>
      <Link
        className={`${buttonClass({ look: 'quiet', size: 's' })} push`}
        to="/$account"
        params={{ account }}
      >
        <span className="only-phone">
          <Icon name="x" />
        </span>
        {strings.close}
        <Kbd>Esc</Kbd>
      </Link>
    </TopBar>
  );
}
