import type { TimelineStep } from '@rota/sdk';
import { useState } from 'react';
import { CopyButton } from '../ui/CopyButton';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { strings } from './strings';

const icons = { model: 'model', summary: 'model', tool: 'tool', approval: 'person' } as const;

/** One step as the API returns it. It is written out only when somebody opens it. */
function RawStep({ step }: { step: TimelineStep }) {
  const [open, setOpen] = useState(false);
  const json = open ? JSON.stringify(step, null, 2) : '';
  return (
    <details className="raw-step" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="row small">
        <Icon name={icons[step.kind]} small />
        <span className="mono clip">
          <SafeText>{step.id}</SafeText>
        </span>
        <span className="clip">
          <SafeText>{step.name ?? step.kind}</SafeText>
        </span>
        <span className="faint">{step.outcome ?? step.state}</span>
        <span className="faint push nowrap">
          <Ago at={step.startedAt} />
        </span>
        <Icon name="down" small />
      </summary>
      {open && (
        <div className="card-pad-s stack">
          <span>
            <CopyButton text={json} />
          </span>
          <pre className="raw">
            <SafeText>{json}</SafeText>
          </pre>
        </div>
      )}
    </details>
  );
}

export function RawSteps({ steps }: { steps: TimelineStep[] }) {
  if (!steps.length) return <p className="tab-panel soft">{strings.noSteps}</p>;
  return (
    <div className="tab-panel card raw-steps">
      {steps.map((step) => (
        <RawStep key={step.id} step={step} />
      ))}
    </div>
  );
}
