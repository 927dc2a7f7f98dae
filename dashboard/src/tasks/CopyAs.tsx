import type { Task } from '@rota/sdk';
import { useAccount } from '../shell/account';
import { Menu } from '../ui/Menu';
import { toast } from '../ui/toast';
import { asCurl, asPython } from './requestText';
import { strings } from './strings';

/** Copies the request that creates a task like this one. */
export function CopyAs({ task }: { task: Task }) {
  const account = useAccount();
  const copy = async (what: string, text: string) => {
    await navigator.clipboard.writeText(text);
    toast(strings.copied(what));
  };
  return (
    <Menu
      label={strings.copyAs}
      look="quiet"
      size="s"
      icon="code"
      actions={[
        { label: 'curl', onSelect: () => copy('curl', asCurl(task, location.origin, account)) },
        {
          label: 'Python (httpx)',
          onSelect: () => copy('Python', asPython(task, location.origin, account)),
        },
      ]}
    />
  );
}
