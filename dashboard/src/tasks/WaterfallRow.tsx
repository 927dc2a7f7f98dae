import type { TimelineStep } from '@rota/sdk';
import type { CSSProperties } from 'react';
import { Badge } from '../ui/Badge';
import { IconButton } from '../ui/Button';
import { count, duration } from '../ui/format';
import { Icon, type IconName } from '../ui/Icon';
import { Money } from '../ui/Money';
import { labelAt, type Scale, spanOf } from './folding';
import { StepName, useHelper } from './StepName';
import { strings } from './strings';
import type { StepRow } from './timelineRows';

function iconOf(step: TimelineStep): IconName {
  if (step.kind === 'approval') return 'person';
  if (step.childTaskId) return 'branch';
  return step.kind === 'tool' ? 'tool' : 'model';
}

const isWait = (step: TimelineStep) => step.kind === 'approval' || step.state === 'gated';

function barClass(step: TimelineStep): string {
  if (isWait(step)) return 'bar bar-wait';
  if (step.outcome === 'failed') return 'bar bar-failed';
  if (step.childTaskId) return 'bar bar-group';
  const kind = step.kind === 'tool' ? 'bar bar-tool' : 'bar';
  return step.finishedAt ? kind : `${kind} bar-live`;
}

function label(step: TimelineStep, ms: number): string {
  const state = strings.states[step.state];
  if (state) return state;
  if (step.kind === 'tool' && step.state !== 'finished' && step.finishedAt) return strings.noResult;
  const took = duration(ms);
  if (step.kind === 'approval') {
    return step.finishedAt ? strings.waited(took) : strings.waitsFor(took);
  }
  if (step.outcome === 'failed') return strings.stepFailed(took);
  if (step.outcome === 'rejected') return strings.stepRejected;
  // A running step counts whole seconds.
  return step.finishedAt ? took : duration(Math.floor(ms / 1_000) * 1_000);
}

function Track({ step, scale, now }: { step: TimelineStep; scale: Scale; now: number }) {
  const span = spanOf(step, now);
  const at = scale.x(span.from);
  const width = scale.x(span.to) - at;
  const text = label(step, span.to - span.from);
  const place = labelAt(text, at, at + width, scale.folds);
  const hasBar = step.state !== 'planned' && step.state !== 'gated';
  return (
    <td className="wf-track" style={{ '--at': at, '--for': width } as CSSProperties}>
      {hasBar && <span className={barClass(step)} />}
      <span
        className={place === null ? 'bar-label bar-label-left' : 'bar-label'}
        style={{ '--label': place } as CSSProperties}
      >
        {text}
      </span>
    </td>
  );
}

function Fold({
  row,
  onToggle,
}: {
  row: StepRow;
  onToggle: (child: string, open: boolean) => void;
}) {
  const name = useHelper(row.step);
  const { child } = row;
  if (!child) return null;
  return (
    <span className="fold">
      <IconButton
        icon={child.open ? 'down' : 'right'}
        size="s"
        label={child.open ? strings.hideSteps(name) : strings.showSteps(name)}
        aria-expanded={child.open}
        onClick={() => onToggle(child.id, !child.open)}
      />
    </span>
  );
}

export function WaterfallRow({
  row,
  scale,
  now,
  onToggle,
  onFork,
}: {
  row: StepRow;
  scale: Scale;
  now: number;
  onToggle: (child: string, open: boolean) => void;
  /** Absent where a fork cannot continue. */
  onFork?: () => void;
}) {
  const { step, child, depth, number } = row;
  const amounts = child?.loaded ? child.amounts : step;
  const tokens = amounts.inputTokens + amounts.outputTokens > 0;
  const cost = Number(amounts.costUsd);
  return (
    <tr
      className={depth ? 'wf-row wf-child' : 'wf-row'}
      style={depth > 1 ? ({ '--depth': depth } as CSSProperties) : undefined}
    >
      <td>
        {!depth && <span className="wf-no">{number}</span>}
        <Icon name={iconOf(step)} />
        <span className="clip">
          <StepName row={row} />
        </span>
        {step.copied && <Badge tone="line">{strings.fork.copied}</Badge>}
        {child && <Fold row={row} onToggle={onToggle} />}
        {onFork && (
          <span className="push fold">
            <IconButton icon="fork" size="s" label={strings.fork.fromHere} onClick={onFork} />
          </span>
        )}
      </td>
      <Track step={step} scale={scale} now={now} />
      <td className="end faint" title={step.estimated ? strings.estimated : undefined}>
        {tokens && `${count(amounts.inputTokens)} + ${count(amounts.outputTokens)}`}
        {step.estimated && ' ≈'}
      </td>
      <td className={cost ? 'end' : 'end faint'}>
        <Money usd={cost} fine />
      </td>
    </tr>
  );
}
