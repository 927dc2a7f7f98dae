import type { AgentDetails } from '@rota/sdk';
import { useState } from 'react';
import { Button } from '../ui/Button';
import { count } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Markdown } from '../ui/Markdown';
import { Cents } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { AgentTools } from './AgentTools';
import { asks } from './approval';
import { strings } from './strings';
import { toolWords } from './toolWords';

const SHOWN_USES = 8;

export function AgentOverview({ agent }: { agent: AgentDetails }) {
  return (
    <div className="agent-grid">
      <div className="stack-6">
        {agent.useFor.length > 0 && <UseFor agent={agent} />}
        <section className="card" aria-labelledby="agent-instructions">
          <div className="card-head">
            <h2 id="agent-instructions">{strings.instructions}</h2>
            <span className="small faint push">
              {strings.version} {agent.version}
            </span>
          </div>
          <div className="card-pad">
            {agent.instructions === null ? (
              <p className="row soft">
                <Icon name="lock" />
                {strings.instructionsLocked}
              </p>
            ) : (
              <Markdown>{agent.instructions}</Markdown>
            )}
          </div>
        </section>
      </div>
      <div className="stack-6 agent-side">
        <section className="card" aria-labelledby="agent-tools">
          <div className="card-head">
            <h2 id="agent-tools">{strings.mayUse}</h2>
          </div>
          <AgentTools tools={agent.tools} />
        </section>
        <Asks agent={agent} />
        <Limits agent={agent} />
      </div>
    </div>
  );
}

function UseFor({ agent }: { agent: AgentDetails }) {
  const [all, setAll] = useState(false);
  const shown = all ? agent.useFor : agent.useFor.slice(0, SHOWN_USES);
  return (
    <section className="card" aria-labelledby="agent-uses">
      <div className="card-head">
        <h2 id="agent-uses">{strings.usedFor}</h2>
      </div>
      <div className="card-pad stack-4">
        <ul className="use-for small">
          {shown.map((use) => (
            <li key={use}>
              <SafeText>{use}</SafeText>
            </li>
          ))}
        </ul>
        {shown.length < agent.useFor.length && (
          <div>
            <Button size="s" onClick={() => setAll(true)}>
              {strings.showAll(agent.useFor.length)}
            </Button>
          </div>
        )}
        {agent.aliases.length > 0 && (
          <p className="small soft">
            {strings.otherNames}: <code>{agent.aliases.join(', ')}</code>
          </p>
        )}
      </div>
    </section>
  );
}

function Asks({ agent }: { agent: AgentDetails }) {
  return (
    <section className="card" aria-labelledby="agent-asks">
      <div className="card-head">
        <h2 id="agent-asks">{strings.asksBefore}</h2>
      </div>
      <ul className="asks small">
        {asks(agent.approval, agent.tools).map((ask) => (
          <li key={ask.gate} className={ask.asks ? undefined : 'faint'}>
            <Icon name={ask.asks ? 'shield' : 'go'} />
            <span>
              {ask.sentence}
              {ask.patterns.map((pattern) => (
                <span key={pattern} className="block strong" title={pattern}>
                  <SafeText>{toolWords(pattern)}</SafeText>
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Limits({ agent }: { agent: AgentDetails }) {
  return (
    <section className="card" aria-labelledby="agent-limits">
      <div className="card-head">
        <h2 id="agent-limits">{strings.limits}</h2>
      </div>
      <dl className="pairs small">
        <dt>{strings.budget}</dt>
        <dd>
          <Cents value={agent.budgetCents} />
        </dd>
        <dt>{strings.maxSteps}</dt>
        <dd>{count(agent.maxSteps)}</dd>
        {agent.maxConcurrent !== null && (
          <>
            <dt>{strings.maxConcurrent}</dt>
            <dd>{count(agent.maxConcurrent)}</dd>
          </>
        )}
        <dt>{strings.model}</dt>
        <dd>
          {agent.model ? (
            <SafeText>{agent.model}</SafeText>
          ) : (
            <span className="faint">{strings.modelLocked}</span>
          )}
        </dd>
        <dt>{strings.version}</dt>
        <dd>{agent.version}</dd>
      </dl>
    </section>
  );
}
