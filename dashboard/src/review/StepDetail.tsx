import type { Json } from '../api/exact';
import { SafeText } from '../ui/SafeText';
import { Values } from './fields/Values';
import { fieldsOf, isObject } from './schema';
import { strings } from './strings';

function parsed(text: string): Json {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** What a tool answered, without its envelope. */
export function contentOf(result: Json): Json {
  if (isObject(result) && isObject(result.structuredContent)) return result.structuredContent;
  const blocks = isObject(result) ? result.content : result;
  if (Array.isArray(blocks)) {
    const texts = blocks.map((block) => (isObject(block) ? block.text : undefined));
    if (texts.every((text) => typeof text === 'string')) return parsed(texts.join('\n'));
  }
  return typeof result === 'string' ? parsed(result) : result;
}

function Shown({ value }: { value: Json }) {
  const content = isObject(value) ? value : { result: value };
  if (typeof value === 'string') {
    return (
      <p className="step-text">
        <SafeText>{value}</SafeText>
      </p>
    );
  }
  return <Values fields={fieldsOf(null, content)} />;
}

/** What a step was asked and what it answered. */
export function StepDetail({ asked, answered }: { asked: Json; answered: Json }) {
  const content = contentOf(answered);
  return (
    <div className="step-detail stack small">
      {isObject(asked) && Object.keys(asked).length > 0 && (
        <>
          <p className="faint tiny">{strings.stepAsked}</p>
          <Shown value={asked} />
        </>
      )}
      <p className="faint tiny">{strings.stepAnswered}</p>
      {content === null || content === '' ? (
        <p className="soft">{strings.none_}</p>
      ) : (
        <Shown value={content} />
      )}
    </div>
  );
}
