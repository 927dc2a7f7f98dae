/**
 * Text of others, as it is. Characters that a reader cannot see, or that turn the direction of
 * what follows, are shown as marks: what a person approves must be what they read.
 */
const HIDDEN = new RegExp(
  `[${[
    '\\u0000-\\u0008\\u000B-\\u001F\\u007F-\\u009F', // control characters, without tab and newline
    '\\u00AD\\u034F\\u061C\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F', // no width
    '\\u200B-\\u200F\\u2028-\\u202E\\u2060-\\u206F', // no width, and direction
    '\\u3164\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF9-\\uFFFB',
    '\\u{1D173}-\\u{1D17A}\\u{E0000}-\\u{E0FFF}', // tags
  ].join('')}]`,
  'gu',
);

/** Joins the parts of an emoji or gives it colour: harmless after a visible symbol. */
const EMOJI = /\p{Extended_Pictographic}/u;

const isEmojiPart = (text: string, at: number, character: string): boolean =>
  (character === '\uFE0F' || character === '\u200D') &&
  EMOJI.test(text.slice(Math.max(0, at - 3), at));

export function hasHidden(text: string): boolean {
  return marks(text).some((part) => part.hidden);
}

interface Part {
  at: number;
  text: string;
  hidden: boolean;
}

export function marks(text: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const [character] = match;
    if (isEmojiPart(text, match.index, character)) continue;
    if (match.index > from) {
      parts.push({ at: from, text: text.slice(from, match.index), hidden: false });
    }
    const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    parts.push({ at: match.index, text: `U+${code}`, hidden: true });
    from = match.index + character.length;
  }
  if (from < text.length) parts.push({ at: from, text: text.slice(from), hidden: false });
  return parts;
}

/** For places that can show only plain text, such as an option. */
export const visible = (text: string): string =>
  marks(text)
    .map((part) => (part.hidden ? `⟨${part.text}⟩` : part.text))
    .join('');

const LONG_WORD = /\S{400}/u;
const PIECES = /.{1,200}/gsu;

/** Browsers need minutes to lay out a word of 50,000 letters after the window has become wider. */
export const hasLongWord = (text: string): boolean => LONG_WORD.test(text);

/** The text in pieces, if it has a very long word. Each is an element, and no line looks different. */
export const pieces = (text: string): string[] =>
  hasLongWord(text) ? (text.match(PIECES) ?? []) : [text];

function Visible({ text }: { text: string }) {
  const found = pieces(text);
  if (found.length < 2) return text;
  // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no identity, and no state.
  return found.map((piece, at) => <span key={at}>{piece}</span>);
}

export function SafeText({ children }: { children: string }) {
  return (
    <bdi>
      {marks(children).map((part) =>
        part.hidden ? (
          <span key={part.at} className="hidden-mark" title="Invisible character">
            {part.text}
          </span>
        ) : (
          <Visible key={part.at} text={part.text} />
        ),
      )}
    </bdi>
  );
}
