import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { Span } from '../ui/Time';
import { stepsQuery } from './data';
import { useReviewView } from './ReviewContext';
import { StepDetail } from './StepDetail';
import { type LedStep, ledHere } from './steps';
import { strings } from './strings';

/** A step opens to what it was asked and what it answered. */
function Step({ step }: { step: LedStep }) {
  const [open, setOpen] = useState(false);
  const words = (
    <>
      <SafeText>{step.words}</SafeText>{' '}
      {step.code && (
        <code className="faint">
          <SafeText>{step.code}</SafeText>
        </code>
      )}
    </>
  );
  return (
    <li className="step">
      <Icon name={step.icon} />
      {step.detail ? (
        <button
          type="button"
          className="step-open"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          <span>{words}</span>
          <Icon name="down" small />
        </button>
      ) : (
        <span>{words}</span>
      )}
      <Money usd={step.costUsd} fine />
      {open && step.detail && <StepDetail {...step.detail} />}
    </li>
  );
}

/** The timeline in short: what the agent did before it asked. */
export function LedHere() {
  const account = useAccount();
  const { data, page } = useReviewView();
  // A task that runs elsewhere has no steps here.
  const hosted = data.review.gate !== null;
  const steps = useQuery({ ...stepsQuery(data.task.id), enabled: hosted }).data;
  const { shown, earlier } = ledHere(steps?.steps ?? [], steps?.total ?? 0);
  if (!shown.length) return null;
  const timeline = (
    <Link
      className="link small push"
      to="/$account/tasks/$id"
      params={{ account, id: data.task.id }}
    >
      {strings.timeline}
    </Link>
  );
  const list = (
    <ol className={page ? 'steps card-pad-s' : 'steps'}>
      {earlier > 0 && (
        <li className="step">
          <Icon name="dots" />
          <span className="faint">{strings.earlier(earlier)}</span>
          <span />
        </li>
      )}
      {shown.map((step) => (
        <Step key={step.id} step={step} />
      ))}
      <li className="step" aria-current="step">
        <Shape shape="waiting" />
        <span>{strings.waitingHere}</span>
        <span className="faint small">
          {data.review.requestedAt && <Span from={data.review.requestedAt} />}
        </span>
      </li>
    </ol>
  );
  return page ? (
    <section className="card" aria-labelledby="led">
      <div className="card-head">
        <h2 id="led">{strings.ledHere}</h2>
        {timeline}
      </div>
      {list}
    </section>
  ) : (
    <section aria-labelledby="led">
      <div className="section-head">
        <h3 id="led">{strings.ledHere}</h3>
        {timeline}
      </div>
      {list}
    </section>
  );
}
