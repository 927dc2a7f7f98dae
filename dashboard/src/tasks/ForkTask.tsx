import type { Task } from '@rota/sdk';
import { useState } from 'react';
import { Button } from '../ui/Button';
import { ForkDialog } from './ForkDialog';
import { strings } from './strings';

export function ForkTask({ task }: { task: Task }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <Button size="s" icon="fork" onClick={() => setAsks(true)}>
        {strings.fork.fork}
      </Button>
      {asks && <ForkDialog task={task} fromStep={0} onClose={() => setAsks(false)} />}
    </>
  );
}
