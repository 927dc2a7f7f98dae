import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { NewTaskBar } from '../newtask/NewTaskBar';
import { useAccount } from '../shell/account';
import { ConfirmLeave } from '../shell/ConfirmLeave';
import { keep, kept } from '../shell/kept';
import { useShortcuts } from '../ui/shortcuts';
import { BatchForm } from './BatchForm';
import { writeBatch } from './lines';
import { Results } from './Results';
import { strings } from './strings';
import { useBatch } from './useBatch';

/** Creates many tasks for one agent: the form, and then what became of each line. */
export function ManyTasks() {
  const account = useAccount();
  const { agent } = useSearch({ from: '/$account/new/many' });
  const navigate = useNavigate({ from: '/$account/new/many' });
  const name = `many-tasks.${account}`;
  const [text, setText] = useState(() => kept<string>(name) ?? '');
  const type = (typed: string) => {
    setText(typed);
    keep(name, typed || null);
  };
  const { sent, start, tryAgain, stop, close } = useBatch(`sent-tasks.${account}`);
  const leave = () => navigate({ to: '/$account', params: { account } });
  useShortcuts({ Escape: leave });
  const again = (lines: number[]) => {
    if (!sent) return;
    const { batch } = sent;
    type(
      writeBatch(
        lines.flatMap((at) => batch.lines[at] ?? []),
        batch.columns,
      ),
    );
    close();
  };
  return (
    <main className="main" id="main">
      <NewTaskBar agent={agent} />
      {sent ? (
        <Results sent={sent} onTryAgain={tryAgain} onStop={stop} onAgain={again} />
      ) : (
        <BatchForm
          agent={agent}
          onAgent={(name) =>
            navigate({ search: { agent: name }, replace: true, resetScroll: false })
          }
          text={text}
          onText={type}
          onCreate={(to, batch) => {
            start(to, text, batch);
            // From now on, the lines are in what was sent.
            type('');
          }}
        />
      )}
      <ConfirmLeave
        when={sent !== null && sent.phase !== 'ended'}
        title={strings.leaveTitle}
        text={strings.leaveText}
        leave={strings.leave}
        stay={strings.stay}
      />
    </main>
  );
}
