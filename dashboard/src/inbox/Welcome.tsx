import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { agentsQuery, balanceQuery, meQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Button, buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Logo } from '../ui/Logo';
import { Cents } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Example } from './Example';
import { strings } from './strings';
import { type FirstStep, isSkipped, skip } from './welcomed';

function Step({
  number,
  now,
  title,
  text,
  onSkip,
  children,
}: {
  number: number;
  now: boolean;
  title: string;
  text: string;
  onSkip: () => void;
  children: ReactNode;
}) {
  return (
    <li className={now ? 'card first-step is-now' : 'card first-step'}>
      <span className="first-no" aria-hidden="true">
        {number}
      </span>
      <div className="stack">
        <div className="row">
          <h3>{title}</h3>
          <Button look="quiet" size="s" className="push" onClick={onSkip}>
            {strings.skip}
            <span className="sr">: {title}</span>
          </Button>
        </div>
        <p className="soft">{text}</p>
        {children}
      </div>
    </li>
  );
}

/** Agents to try first, as far as the account can use them. */
function Tries({ account }: { account: string }) {
  const agents = useQuery(agentsQuery).data ?? [];
  const usable = agents.filter((agent) => !agent.locked);
  const known = strings.tries.flatMap(({ agent: name, text }) => {
    const agent = usable.find((each) => each.name === name);
    return agent ? [{ agent, text }] : [];
  });
  if (!known.length) return null;
  return (
    <div className="row row-wrap first-try">
      {known.map(({ agent, text }) => (
        <Link
          key={agent.name}
          className="chip"
          to="/$account/new"
          params={{ account }}
          search={{ agent: agent.name, text }}
        >
          <AgentMark initials={agent.initials} rank={agent.tier} size="s" />
          {text}
        </Link>
      ))}
    </div>
  );
}

/** The first visit: three steps that can be skipped. */
export function Welcome() {
  const account = useAccount();
  const [, again] = useState(0);
  const [example, setExample] = useState(false);
  const { user } = useQuery(meQuery).data ?? {};
  const balance = useQuery(balanceQuery).data;
  const leave = (step: FirstStep) => {
    skip(account, step);
    again((count) => count + 1);
  };
  const steps = (['task', 'example', 'server'] as const).filter(
    (step) => !isSkipped(account, step),
  );
  const frame = (step: (typeof steps)[number]) => ({
    number: steps.indexOf(step) + 1,
    now: steps[0] === step,
    onSkip: () => {
      leave(step);
      if (steps.length === 1) leave('all');
    },
  });
  const look = (step: (typeof steps)[number]) =>
    buttonClass({ look: steps[0] === step ? 'primary' : 'normal' });
  return (
    <main className="main" id="main">
      <header className="topbar">
        <h1>{strings.title}</h1>
        <Link
          className={`${buttonClass({ look: 'quiet', size: 's' })} push`}
          to="/$account/tasks"
          params={{ account }}
          onClick={() => leave('all')}
        >
          {strings.skipAll}
        </Link>
      </header>
      <div className="welcome">
        <div className="stack welcome-head">
          <Logo className="figure" />
          <h2 className="review-title review-title-l">
            <SafeText>{strings.welcome(user?.name?.split(' ')[0] ?? '')}</SafeText>
          </h2>
          <p className="soft">{strings.welcomeHint}</p>
        </div>
        <ol className="first">
          {steps.includes('task') && (
            <Step {...frame('task')} title={strings.first.title} text={strings.first.text}>
              <Tries account={account} />
              <p className="row row-wrap first-go">
                <Link className={look('task')} to="/$account/new" params={{ account }}>
                  {strings.first.go}
                </Link>
                {balance && (
                  <span className="small faint">
                    {strings.first.have} <Cents value={balance.totalAvailable} />.
                  </span>
                )}
              </p>
            </Step>
          )}
          {steps.includes('example') && (
            <Step {...frame('example')} title={strings.example.title} text={strings.example.text}>
              <p className="first-go">
                <Button
                  look={steps[0] === 'example' ? 'primary' : 'normal'}
                  onClick={() => setExample(true)}
                >
                  {strings.example.go}
                </Button>
              </p>
            </Step>
          )}
          {steps.includes('server') && (
            <Step {...frame('server')} title={strings.server.title} text={strings.server.text}>
              <p className="first-go">
                <Link className={look('server')} to="/$account/servers" params={{ account }}>
                  <Icon name="plug" />
                  {strings.server.go}
                </Link>
              </p>
            </Step>
          )}
        </ol>
      </div>
      {example && <Example onClose={() => setExample(false)} />}
    </main>
  );
}
