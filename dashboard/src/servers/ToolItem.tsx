import type { Tool } from '@rota/sdk';
import { Badge } from '../ui/Badge';
import { Check } from '../ui/Field';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { shownValue, waitsForAcceptance } from './definition';
import { Hints } from './Hints';
import { strings } from './strings';

const { tools: words } = strings;

export function ToolItem({
  tool,
  busy,
  onAllow,
}: {
  tool: Tool;
  busy: boolean;
  onAllow: (on: boolean) => void;
}) {
  return (
    <li className="tool-item" data-off={!tool.allowed || undefined}>
      <div className="stack">
        <p className="row row-wrap">
          {tool.title && (
            <span className="strong">
              <SafeText>{tool.title}</SafeText>
            </span>
          )}
          <code className={tool.title ? 'soft' : 'strong'}>
            <SafeText>{tool.name}</SafeText>
          </code>
          <Hints annotations={tool.annotations} />
        </p>
        {tool.description ? (
          <blockquote className="says small" aria-label={words.says}>
            <SafeText>{tool.description}</SafeText>
          </blockquote>
        ) : (
          <p className="small faint">{words.noDescription}</p>
        )}
        <Schema title={words.input} schema={tool.inputSchema} />
        {tool.outputSchema && <Schema title={words.output} schema={tool.outputSchema} />}
        <p className="tiny faint">
          <Acceptance tool={tool} />
        </p>
      </div>
      <Check
        className="small"
        label={waitsForAcceptance(tool) ? words.allowLater : words.allow}
        aria-label={words.allowTool(tool.name)}
        checked={tool.allowed}
        disabled={busy}
        onChange={(event) => onAllow(event.target.checked)}
      />
    </li>
  );
}

function Schema({ title, schema }: { title: string; schema: Record<string, unknown> }) {
  return (
    <details className="schema">
      <summary className="small">{title}</summary>
      <pre>
        <SafeText>{shownValue(schema) ?? ''}</SafeText>
      </pre>
    </details>
  );
}

function Acceptance({ tool }: { tool: Tool }) {
  if (waitsForAcceptance(tool)) {
    return (
      <Badge tone="wait" icon="alert">
        {words.blocked}
      </Badge>
    );
  }
  if (!tool.acceptedAt) return words.unknown;
  return (
    <>
      <AcceptedBy tool={tool} /> <Ago at={tool.acceptedAt} />
    </>
  );
}

export function AcceptedBy({ tool: { acceptedBy } }: { tool: Tool }) {
  if (!acceptedBy) return null;
  return (
    <>
      {words.by} <SafeText>{acceptedBy.name ?? acceptedBy.userId}</SafeText>
      {acceptedBy.via === 'key' && ` ${words.withKey}`}
    </>
  );
}
