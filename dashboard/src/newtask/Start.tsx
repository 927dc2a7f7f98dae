import { type AgentDetails, APIError, type Quote } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { TopUpLink } from '../money/TopUpLink';
import { useAccount } from '../shell/account';
import { Button, buttonClass } from '../ui/Button';
import { FormError } from '../ui/FormError';
import { Cents } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { stopsOf } from './draft';
import { strings } from './strings';

interface StartProps {
  disabled: boolean;
  busy: boolean;
  waits: boolean;
}

/** The API's message, with the way to more money or to a higher plan. */
export function StartError({ error }: { error: unknown }) {
  const account = useAccount();
  if (!error) return null;
  const status = error instanceof APIError ? error.status : 0;
  return (
    <FormError
      error={error}
      actions={
        status === 402 ? (
          <TopUpLink className={buttonClass({})} />
        ) : (
          status === 403 && (
            <Link className={buttonClass({})} to="/$account/money" params={{ account }} hash="plan">
              {strings.seePlans}
            </Link>
          )
        )
      }
    />
  );
}

export function StartButton({ disabled, busy, waits }: StartProps) {
  return (
    <div className="stack not-phone">
      <Button
        look="primary"
        size="l"
        block
        type="submit"
        disabled={disabled}
        busy={busy}
        shortcut="⌘↵"
        aria-keyshortcuts="Meta+Enter Control+Enter"
      >
        {waits ? strings.send : strings.start}
      </Button>
      <p className="tiny faint center">{strings.startNote}</p>
    </div>
  );
}

/** On a phone, the decision stays in reach of the thumb. */
export function StartBar({
  agent,
  quote,
  ...start
}: { agent: AgentDetails | undefined; quote: Quote | undefined } & StartProps) {
  return (
    <div className="decide only-phone start-bar">
      {agent && quote && (
        <p className="small start-who">
          <span className="strong clip block">
            <SafeText>{agent.displayName}</SafeText>
          </span>
          <span className="soft">{strings.atMostShort}</span>{' '}
          <strong>
            <Cents value={quote.budgetCents} />
          </strong>
          <br />
          <span className="tiny faint">{strings.asksShort(stopsOf(agent, quote.opensGates))}</span>
        </p>
      )}
      <Button
        look="primary"
        type="submit"
        className="push"
        disabled={start.disabled}
        busy={start.busy}
      >
        {start.waits ? strings.send : strings.start}
      </Button>
    </div>
  );
}
