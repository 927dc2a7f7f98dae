import type { Task } from '@rota/sdk';
import { CopyButton } from '../ui/CopyButton';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

function Text({ title, text }: { title: string; text: string }) {
  return (
    <section className="card">
      <div className="card-head">
        <h2>{title}</h2>
        <span className="push">
          <CopyButton text={text} />
        </span>
      </div>
      <div className="card-pad">
        <p className="prose plain-text">
          <SafeText>{text}</SafeText>
        </p>
      </div>
    </section>
  );
}

/** What the agent got to read, as it was written. */
export function InputTab({ task }: { task: Task }) {
  const { actions } = task.metadata;
  return (
    <div className="tab-panel stack-4">
      {task.input ? (
        <Text title={strings.input} text={task.input} />
      ) : (
        <p className="soft">{strings.noInput}</p>
      )}
      {task.description && <Text title={strings.description} text={task.description} />}
      {actions.length > 0 && <Text title={strings.actions} text={actions.join('\n')} />}
    </div>
  );
}
