import type { Approval, ReviewItem } from '@rota/sdk';
import type { JsonObject } from '../api/exact';
import { argumentsOf, budgetLeft, isQuestion, pendingItems } from '../review/data';
import { prettyJson } from '../review/edits';
import { Values } from '../review/fields/Values';
import { outputOf } from '../review/Subject';
import { fieldsOf } from '../review/schema';
import { strings as reviewStrings } from '../review/strings';
import { Check } from '../ui/Field';
import { cents, usd } from '../ui/format';
import { LazyMarkdown } from '../ui/LazyMarkdown';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { bulkStrings } from './bulkStrings';
import type { Result } from './useBulk';

function Texts({ rows }: { rows: [string, string | null | undefined][] }) {
  return (
    <dl className="values">
      {rows.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {text ? <SafeText>{text}</SafeText> : <span className="faint">{bulkStrings.none}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Call({ item, named }: { item: ReviewItem; named: boolean }) {
  const fields = fieldsOf((item.argumentsSchema ?? null) as never, argumentsOf(item));
  return (
    <>
      {named && (
        <p className="small strong">
          <SafeText>{item.summary}</SafeText>
        </p>
      )}
      {fields.length ? (
        <Values fields={fields} />
      ) : (
        <p className="small soft">{bulkStrings.noArguments}</p>
      )}
    </>
  );
}

const schemaRow = (schema: JsonObject): [string, string] => [
  reviewStrings.workFields.outputSchema,
  prettyJson(schema),
];

/** Everything that one decision is about, whole. */
function Content({ approval: { task, review } }: { approval: Approval }) {
  const names = reviewStrings.workFields;
  if (review.work) {
    const { work } = review;
    return (
      <Texts
        rows={[
          [names.name, work.name],
          [names.description, work.description],
          [names.input, work.input],
          [names.agent, `${work.agent}, ${names.version} ${work.version}`],
          [names.model, work.model],
          [names.budget, cents(work.budgetCents)],
          ...(work.outputSchema ? [schemaRow(work.outputSchema as JsonObject)] : []),
        ]}
      />
    );
  }
  if (review.gate === 'output' && !task.outputSchema) {
    return <LazyMarkdown>{outputOf(review)}</LazyMarkdown>;
  }
  if (review.gate === null) {
    return (
      <Texts
        rows={[
          [names.name, task.name],
          [names.description, task.description],
          [names.input, task.input],
          [names.output, task.output],
        ]}
      />
    );
  }
  const items = pendingItems(review);
  return items.map((item) => <Call key={item.id} item={item} named={items.length > 1} />);
}

function Outcome({ result, done }: { result: Result | undefined; done: string }) {
  if (result === undefined) return null;
  return (
    <p className={result === true ? 'status is-done' : 'status is-failed'}>
      <Shape shape={result === true ? 'done' : 'failed'} />
      {result === true ? done : bulkStrings.failed}
      {result !== true && <span className="bulk-why">{result}</span>}
    </p>
  );
}

/** A question has an answer of its own, so it is not approved together with others. */
export const asksSomething = ({ review }: Approval): boolean =>
  pendingItems(review).some(isQuestion);

/** One card of the dialog. It can be taken out of the decision. */
export function BulkItem({
  approval,
  result,
  done,
  chosen,
  onChoose,
}: {
  approval: Approval;
  result: Result | undefined;
  /** What a decision is called once it is made. */
  done: string;
  chosen: boolean;
  /** Absent once the decision is made. */
  onChoose?: (yes: boolean) => void;
}) {
  const { task, review } = approval;
  const summary = review.summary ?? task.name;
  const more = budgetLeft(task);
  const cost = bulkStrings.costs(usd(task.usage.costUsd), more === null ? null : usd(more));
  return (
    <li className="card card-pad-s stack bulk-item" data-left={!chosen || undefined}>
      <Check
        checked={chosen}
        disabled={!onChoose}
        onChange={(event) => onChoose?.(event.target.checked)}
        label={
          <span className="strong">
            <SafeText>{summary}</SafeText>
          </span>
        }
      />
      <p className="small faint">
        <SafeText>{task.name}</SafeText>
        {task.usage.budgetUsd !== null && <> · {cost}</>}
      </p>
      <Outcome result={result} done={done} />
      <Content approval={approval} />
    </li>
  );
}
