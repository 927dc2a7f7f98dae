import type { TimelineStep } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { useFromHere } from '../review/origin';
import { readable } from '../review/schema';
import { useAccount } from '../shell/account';
import { SafeText } from '../ui/SafeText';
import { decisionWord, editsOf, gateWord } from './decisionWords';
import { strings } from './strings';
import type { StepRow } from './timelineRows';

function field(value: unknown, name: string): unknown {
  return value && typeof value === 'object' ? (value as Record<string, unknown>)[name] : undefined;
}

/** The agent that a call delegates to, by the name that people know. */
export function useHelper(step: TimelineStep): string {
  const name = field(step.arguments, 'agent');
  const agents = useQuery(agentsQuery).data;
  const agent = agents?.find((each) => each.name === name);
  return agent?.displayName ?? (typeof name === 'string' ? name : strings.aSubtask);
}

/** Models know a tool as `server__tool`. */
const toolName = (call: unknown): string => String(call).replace(/^.+?__/, '');

/** The tools that a model requested, by their exact names: the calls below have the readable ones. */
function requested(step: TimelineStep): string | undefined {
  const calls = field(step.result, 'toolCalls');
  if (!step.finishedAt || !Array.isArray(calls) || !calls.length) return undefined;
  const shown = calls.slice(0, 3).map(toolName);
  const rest = calls.length - shown.length;
  return (rest ? [...shown, strings.moreTools(rest)] : shown).join(', ');
}

function modelWords(step: TimelineStep): string {
  if (!step.finishedAt) return strings.works;
  return step.outcome === 'ok' ? strings.answers : strings.couldNot;
}

function Delegation({ step }: { step: TimelineStep }) {
  const account = useAccount();
  const helper = useHelper(step);
  return (
    <>
      {strings.delegate}{' '}
      {step.childTaskId ? (
        <Link className="link" to="/$account/tasks/$id" params={{ account, id: step.childTaskId }}>
          <SafeText>{helper}</SafeText>
        </Link>
      ) : (
        <SafeText>{helper}</SafeText>
      )}
    </>
  );
}

function Words({
  main,
  code,
  more,
}: {
  main: string;
  code?: string | undefined;
  more?: string | null;
}) {
  return (
    <>
      <SafeText>{main}</SafeText>{' '}
      {code && (
        <code className="faint">
          <SafeText>{code}</SafeText>
        </code>
      )}{' '}
      {more && (
        <span className="faint">
          <SafeText>{more}</SafeText>
        </span>
      )}
    </>
  );
}

function Decision({ step, task }: { step: TimelineStep; task: string }) {
  const account = useAccount();
  const fromHere = useFromHere();
  const edits = editsOf(step);
  const reason = typeof step.result === 'string' ? step.result : null;
  if (step.state === 'pending') {
    return (
      <Link
        className="link"
        to="/$account/reviews/$id"
        params={{ account, id: task }}
        state={fromHere}
      >
        {strings.decision.pending}
      </Link>
    );
  }
  return (
    <Words
      main={decisionWord(step.state, step.decidedBy)}
      more={edits ? strings.edits(edits) : (reason ?? gateWord(step.name)?.toLowerCase())}
    />
  );
}

/** What a step is, in words. */
export function StepName({ row: { step, task, model } }: { row: StepRow }) {
  if (step.kind === 'summary') return <Words main={strings.summarizes} />;
  if (step.kind === 'model') {
    const tools = requested(step);
    return <Words main={tools ? strings.requested : modelWords(step)} code={tools} more={model} />;
  }
  if (step.kind === 'tool') {
    if (step.childTaskId || (step.name === 'delegate' && !step.server)) {
      return <Delegation step={step} />;
    }
    if (step.name === 'ask_person' && !step.server) return <Words main={strings.question} />;
    const name = step.name ?? '';
    return <Words main={readable(name)} code={step.server ? `${step.server}/${name}` : name} />;
  }
  return <Decision step={step} task={task} />;
}
