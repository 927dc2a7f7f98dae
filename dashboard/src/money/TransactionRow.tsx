import type { Transaction } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { Badge } from '../ui/Badge';
import { exact } from '../ui/format';
import { Cents } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { exactUsd, isWholeCents, signed } from './amounts';
import { ledgerTime } from './dates';
import { details, isFromHold, withoutStop } from './ledger';
import { useAgentFaces } from './names';
import { strings } from './strings';

const tones: Partial<Record<Transaction['kind'], 'good' | 'bad' | 'wait'>> = {
  top_up: 'good',
  refund_reversal: 'good',
  dispute_reversal: 'good',
  grant: 'good',
  refund: 'wait',
  dispute: 'bad',
};

export function TransactionRow({ transaction }: { transaction: Transaction }) {
  const { kind, createdAt, amountMicros } = transaction;
  const fine = kind === 'charge';
  const whole = !fine && isWholeCents(amountMicros);
  return (
    <tr>
      <td className="soft">
        <time dateTime={createdAt} title={exact(createdAt)}>
          {ledgerTime(createdAt)}
        </time>
      </td>
      <td>
        <Badge tone={tones[kind]}>{strings.kinds[kind]}</Badge>
      </td>
      <td className="mv-what">
        <For transaction={transaction} />
      </td>
      <td
        className={amountMicros > 0 ? 'end money money-in' : 'end money'}
        title={exactUsd(amountMicros)}
      >
        <span className={whole ? 'mv-whole' : undefined}>{signed(amountMicros, fine)}</span>
      </td>
      <td className="end money soft mv-bal" title={exactUsd(transaction.availableAfterMicros)}>
        {isFromHold(transaction) ? (
          strings.fromHold
        ) : (
          <Cents value={transaction.availableAfterCents} />
        )}
      </td>
    </tr>
  );
}

function For({ transaction }: { transaction: Transaction }) {
  const account = useAccount();
  const face = useAgentFaces();
  const { taskId, taskName, agent, step, kind } = transaction;
  const parts = details(transaction);
  const second = agent ? [face(agent).name, ...parts] : parts;
  const after = [step !== null && strings.step(step), kind === 'release' && strings.ended]
    .filter(Boolean)
    .join(' · ');
  const name = taskName ?? taskId ?? '';
  const title = after ? withoutStop(name) : name;
  return (
    <>
      <p className="clip">
        {taskId ? (
          <>
            <Link className="link" to="/$account/tasks/$id" params={{ account, id: taskId }}>
              <SafeText>{title}</SafeText>
            </Link>
            {after && ` · ${after}`}
          </>
        ) : (
          <SafeText>{transaction.description}</SafeText>
        )}
      </p>
      {second.length > 0 && (
        <p className="tiny faint clip">
          <SafeText>{second.join(' · ')}</SafeText>
        </p>
      )}
    </>
  );
}
