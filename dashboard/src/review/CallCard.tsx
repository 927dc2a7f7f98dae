import { Badge } from '../ui/Badge';
import { Check } from '../ui/Field';
import { SafeText } from '../ui/SafeText';
import { AgentSays } from './AgentSays';
import { editedFields } from './edits';
import { ArgumentsForm } from './fields/ArgumentsForm';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';
import type { Call } from './useReview';

export const toolName = (item: Call['item']): string =>
  item.server ? `${item.server}/${item.tool}` : (item.tool ?? '');

export function DefinitionBadge({ item }: { item: Call['item'] }) {
  if (item.definitionAccepted === null || item.definitionAccepted === undefined) return null;
  return item.definitionAccepted ? (
    <Badge tone="good" icon="shield">
      {strings.definitionAccepted}
    </Badge>
  ) : (
    <Badge tone="wait" icon="alert">
      {strings.definitionChanged}
    </Badge>
  );
}

/** One call with its arguments. With several calls, each can be taken out of the decision. */
export function CallCard({ call, at, of }: { call: Call; at: number; of: number }) {
  const { state, page } = useReviewView();
  const { item, fields, edits, chosen } = call;
  const count = editedFields(fields, edits).length;
  const several = of > 1;
  const heading = `call-${item.id}`;
  return (
    <section aria-labelledby={heading} className={several ? 'card card-pad stack-4' : 'stack-4'}>
      {several && (
        <div className="stack">
          <p className="small faint">{strings.call(at, of)}</p>
          <p className="strong">
            <SafeText>{item.summary}</SafeText>
          </p>
          <Check
            label={strings.approveThis}
            checked={chosen}
            onChange={(event) => state.choose(item.id, event.target.checked)}
          />
        </div>
      )}
      <div>
        <div className="section-head">
          <h2 id={heading}>{strings.arguments}</h2>
          {count > 0 && <Badge tone="accent">{strings.edits(count)}</Badge>}
          <span className="row row-wrap small push">
            {(!page || several) && (
              <>
                <code className="soft">
                  <SafeText>{toolName(item)}</SafeText>
                </code>
                <DefinitionBadge item={item} />
              </>
            )}
            {count > 0 && (
              <button type="button" className="undo" onClick={state.undoAll}>
                {strings.undoAll}
              </button>
            )}
          </span>
        </div>
        {fields.length ? (
          <ArgumentsForm
            fields={fields}
            edits={edits}
            onEdit={(field, edit) => state.edit(item.id, field, edit)}
          />
        ) : (
          <p className="soft">{strings.noArguments}</p>
        )}
      </div>
      {item.agentSays && several && <AgentSays text={item.agentSays} />}
    </section>
  );
}
