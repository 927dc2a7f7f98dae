import { lazy, Suspense } from 'react';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

const Markdown = lazy(() =>
  import('../ui/Markdown').then(({ Markdown }) => ({ default: Markdown })),
);

/** The agent's own words, apart from what is decided: a model can be talked into a friendly lie. */
export function AgentSays({ text }: { text: string }) {
  return (
    <div className="agent-says" role="note" aria-label={strings.agentSays}>
      <p className="row small strong soft">
        <Icon name="model" small />
        {strings.agentSays}
      </p>
      <blockquote className="soft">
        <Suspense fallback={<SafeText>{text}</SafeText>}>
          <Markdown>{text}</Markdown>
        </Suspense>
      </blockquote>
      <p className="tiny faint">{strings.agentSaysHint}</p>
    </div>
  );
}
