import type { Tool } from '@rota/sdk';
import { Badge } from '../ui/Badge';
import { type Hint, hints } from './definition';
import { strings } from './strings';

const tones = {
  readOnly: 'line',
  writes: 'line',
  destructive: 'wait',
  openWorld: 'line',
} as const satisfies Record<Hint, string>;

/** What the server says about a tool, as badges. */
export function Hints({ annotations }: { annotations: Tool['annotations'] }) {
  return (
    <span className="row row-wrap tight">
      {hints(annotations).map((hint) => {
        const [word, meaning] = strings.annotations[hint];
        return (
          <span key={hint} title={meaning}>
            <Badge tone={tones[hint]}>{word}</Badge>
          </span>
        );
      })}
    </span>
  );
}
