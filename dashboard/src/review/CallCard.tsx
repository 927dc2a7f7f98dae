import { useQuery } from '@tanstack/react-query';
import { serversQuery } from '../api/queries';
import { Badge } from '../ui/Badge';
import { Check, Field, TextArea } from '../ui/Field';
import { SafeText } from '../ui/SafeText';
import { AgentSays } from './AgentSays';
import { argumentsOf, isDisconnected, isQuestion } from './data';
import { editedFields, resolve } from './edits';
import { ArgumentsForm } from './fields/ArgumentsForm';
import { useActorName } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';
import type { Call } from './useReview';

export const toolName = (item: Call['item']): string =>
  item.server ? `${item.server}/${item.tool}` : (item.tool ?? '');

export function DefinitionBadge({ item }: { item: Call['item'] }) {
  const servers = useQuery(serversQuery).data?.servers;
  if (isDisconnected(item, servers)) {
    return (
      <Badge tone="wait" icon="alert">
        {strings.serverDisconnected}
      </Badge>
    );
  }
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

/** The agent's question, and the answer that it gets. */
function Question({ call }: { call: Call }) {
  const { state } = useReviewView();
  const field = call.fields.find((each) => each.key === 'answer');
  if (!field) return null;
  const edit = call.edits[field.id];
  const resolved = resolve(field, edit);
  return (
    <section className="stack-4 form-answer" aria-label={strings.question}>
      <blockquote className="question">
        <SafeText>{String(argumentsOf(call.item).question ?? '')}</SafeText>
      </blockquote>
      <Field
        label={strings.answer}
        kind={strings.kinds.required}
        hint={strings.answerHint}
        error={'problem' in resolved ? resolved.problem : undefined}
      >
        {(control) => (
          <TextArea
            {...control}
            rows={3}
            value={edit && 'text' in edit ? edit.text : ''}
            onChange={(event) =>
              state.edit(
                call.item.id,
                field,
                event.target.value ? { text: event.target.value } : undefined,
              )
            }
          />
        )}
      </Field>
    </section>
  );
}

function Arguments({ call, named }: { call: Call; named: boolean }) {
  const { state } = useReviewView();
  const { item, fields, edits } = call;
  const count = editedFields(fields, edits).length;
  const nameOf = useActorName();
  const heading = `call-${item.id}`;
  return (
    <div>
      <div className="section-head">
        <h2 id={heading}>{item.tool === null ? strings.output : strings.arguments}</h2>
        {count > 0 && <Badge tone="accent">{strings.edits(count)}</Badge>}
        {item.editedBy && (
          <Badge tone="wait" icon="pencil">
            {strings.editedBy} <SafeText>{nameOf(item.editedBy)}</SafeText>
          </Badge>
        )}
        <span className="row row-wrap small push">
          {named && item.tool !== null && (
            <>
              <code className="soft">
                <SafeText>{toolName(item)}</SafeText>
              </code>
              <DefinitionBadge item={item} />
            </>
          )}
          {count > 0 && (
            <button type="button" className="undo" onClick={() => state.undoAll(item.id)}>
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
  );
}

/** One call with its arguments. With several calls, each can be taken out of the decision. */
export function CallCard({ call, at, of }: { call: Call; at: number; of: number }) {
  const { state, page } = useReviewView();
  const { item, chosen } = call;
  const several = of > 1;
  return (
    <section aria-label={item.summary} className={several ? 'card card-pad stack-4' : 'stack-4'}>
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
      {isQuestion(item) ? (
        <Question call={call} />
      ) : (
        <Arguments call={call} named={!page || several} />
      )}
      {item.agentSays && several && <AgentSays text={item.agentSays} />}
    </section>
  );
}
