import { Icon } from '../ui/Icon';
import { LazyMarkdown } from '../ui/LazyMarkdown';
import { strings } from './strings';

/** The agent's own words, apart from what is decided: a model can be talked into a friendly lie. */
export function AgentSays({ text }: { text: string }) {
  return (
    <div className="agent-says" role="note" aria-label={strings.agentSays}>
      <p className="row small strong soft">
        <Icon name="model" small />
        {strings.agentSays}
      </p>
      <blockquote className="soft">
        <LazyMarkdown>{text}</LazyMarkdown>
      </blockquote>
      <p className="tiny faint">{strings.agentSaysHint}</p>
    </div>
  );
}
