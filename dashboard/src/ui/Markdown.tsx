/**
 * Markdown as elements, never as HTML: nothing that an agent or a tool writes can run, load or
 * style anything. HTML in it is shown as text, and images as links to where they are.
 */
import { type MarkedToken, marked, type Token, type Tokens } from 'marked';
import { Fragment, type ReactNode } from 'react';
import { SafeText } from './SafeText';

const MAX_DEPTH = 40;

/** Only these addresses become links. Others are shown as text. */
export function safeHref(href: string): string | null {
  try {
    const url = new URL(href);
    return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function Link({ href, children }: { href: string; children: ReactNode }) {
  const safe = safeHref(href);
  if (!safe) return <>{children}</>;
  return (
    <a className="link" href={safe} target="_blank" rel="noopener noreferrer nofollow" title={safe}>
      {children}
    </a>
  );
}

const text = (value: string) => <SafeText>{value}</SafeText>;

// The entities that people write in Markdown.
const ENTITIES: Record<string, string> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
};
const decode = (value: string) => value.replace(/&(amp|lt|gt|quot|#39);/g, (m) => ENTITIES[m] ?? m);

function children(tokens: Token[] | undefined, depth: number): ReactNode {
  if (depth > MAX_DEPTH) return text(tokens?.map((token) => token.raw).join('') ?? '');
  return tokens?.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: tokens have no identity, and no state.
    <Fragment key={at}>{element(token as MarkedToken, depth + 1)}</Fragment>
  ));
}

function list(token: Tokens.List, depth: number): ReactNode {
  const items = token.items.map((item, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: see above.
    <li key={at}>
      {item.task && (item.checked ? '☑ ' : '☐ ')}
      {children(item.tokens, depth)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, depth: number): ReactNode {
  return (
    <div className="scroll-x">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: see above.
              <th key={at} scope="col">
                {children(cell.tokens, depth)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, y) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: see above.
            <tr key={y}>
              {row.map((cell, x) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: see above.
                <td key={x}>{children(cell.tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function element(token: MarkedToken, depth: number): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'paragraph':
      return <p>{children(token.tokens, depth)}</p>;
    case 'heading':
      return <h3>{children(token.tokens, depth)}</h3>;
    case 'strong':
      return <strong>{children(token.tokens, depth)}</strong>;
    case 'em':
      return <em>{children(token.tokens, depth)}</em>;
    case 'del':
      return <del>{children(token.tokens, depth)}</del>;
    case 'codespan':
      return <code>{text(token.text)}</code>;
    case 'code':
      return <pre>{text(token.text)}</pre>;
    case 'blockquote':
      return <blockquote>{children(token.tokens, depth)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'br':
      return <br />;
    case 'list':
      return list(token, depth);
    case 'table':
      return table(token, depth);
    case 'link':
      return <Link href={token.href}>{children(token.tokens, depth)}</Link>;
    case 'image':
      return (
        <>
          [image: <Link href={token.href}>{text(token.text || token.href)}</Link>]
        </>
      );
    case 'escape':
      return text(decode(token.text));
    case 'text':
      return token.tokens ? children(token.tokens, depth) : text(decode(token.text));
    default:
      return text(token.raw);
  }
}

export function Markdown({ children: source }: { children: string }) {
  return <div className="prose">{children(marked.lexer(source), 0)}</div>;
}
