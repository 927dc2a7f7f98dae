import type { Tool } from '@rota/sdk';
import { Badge } from '../ui/Badge';
import { Check } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { shownKey } from './definition';
import { FieldDifference } from './FieldDifference';
import { Hints } from './Hints';
import { strings } from './strings';
import { AcceptedBy } from './ToolItem';
import { useSeen } from './useSeen';

const { changed: words } = strings;

/** What was accepted of a tool beside what the server offers now, field by field. */
export function ChangedTool({
  tool,
  selected,
  seen,
  onSelect,
  onSeen,
}: {
  tool: Tool;
  selected: boolean;
  seen: boolean;
  onSelect: (on: boolean) => void;
  onSeen: () => void;
}) {
  const ref = useSeen(shownKey(tool), onSeen);
  return (
    <article ref={ref} className="changed-tool" aria-label={tool.name}>
      <div className="row row-wrap">
        <Check
          label={
            <code className="strong">
              <SafeText>{tool.name}</SafeText>
            </code>
          }
          aria-label={words.select(tool.name)}
          checked={selected}
          onChange={(event) => onSelect(event.target.checked)}
        />
        <Badge tone={tool.changed ? 'wait' : undefined}>
          {tool.changed ? words.isChanged : words.isNew}
        </Badge>
        <Hints annotations={tool.annotations} />
        <span className="tiny faint row push" role="status">
          {seen ? (
            <>
              <Icon name="check" small />
              {words.seen}
            </>
          ) : (
            words.unseen
          )}
        </span>
      </div>
      {tool.difference.map((change) => (
        <FieldDifference key={change.field} change={change} isNew={!tool.changed} />
      ))}
      {tool.changed && tool.acceptedAt && (
        <p className="tiny faint">
          <AcceptedBy tool={tool} /> <Ago at={tool.acceptedAt} />
        </p>
      )}
    </article>
  );
}
