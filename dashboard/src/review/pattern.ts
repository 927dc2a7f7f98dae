/**
 * Patterns of a tool's schema. They come from tool servers, and a hostile one could make the
 * browser search for hours. So a pattern is checked only if a bound on its work is small; of the
 * others, people see the pattern alone.
 */
const MAX_PATTERN = 200;
const MAX_STEPS = 5_000_000;
const MAX_REPEAT = 1_000;

interface Part {
  /** In how many ways the part can match at one place, for a text of this length. */
  ways: (length: number) => number;
  /** Whether it contains anything that repeats. */
  repeats: boolean;
  /** A text that it matches. Null if none is known. */
  example: string | null;
}

const once = (example: string | null): Part => ({ ways: () => 1, repeats: false, example });

/** Thrown for what is not understood. */
class Unknown extends Error {}

const SAMPLES: [RegExp, string][] = [
  [/^(\\d|\[0-9\]|\[\\d\])$/, '1234567890'],
  [/^\[(A-Z|A-Z0-9|0-9A-Z)\]$/, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'],
  [/^(\\w|\[(a-z|a-z0-9|0-9a-z|A-Za-z|a-zA-Z|A-Za-z0-9|a-zA-Z0-9|\\w)\])$/, 'abcdefghijklmnopqrst'],
];

class Reader {
  private at = 0;
  constructor(private readonly source: string) {}

  read(): Part {
    const part = this.either();
    if (this.at < this.source.length) throw new Unknown();
    return part;
  }

  private get next(): string {
    return this.source[this.at] ?? '';
  }

  private either(): Part {
    const options = [this.sequence()];
    while (this.next === '|') {
      this.at += 1;
      options.push(this.sequence());
    }
    const [first] = options;
    if (options.length === 1 && first) return first;
    return {
      ways: (length) => options.reduce((sum, each) => sum + each.ways(length), 0),
      repeats: options.some((each) => each.repeats),
      example: first?.example ?? null,
    };
  }

  private sequence(): Part {
    const parts: Part[] = [];
    while (this.next && this.next !== '|' && this.next !== ')') parts.push(this.repeated());
    return {
      ways: (length) => parts.reduce((product, each) => product * each.ways(length), 1),
      repeats: parts.some((each) => each.repeats),
      example: parts.reduce<string | null>(
        (text, each) => (text === null || each.example === null ? null : text + each.example),
        '',
      ),
    };
  }

  private repeated(): Part {
    const from = this.at;
    const part = this.atom();
    const source = this.source.slice(from, this.at);
    const times = this.times();
    if (!times) return { ...part, example: sample(source, 1) ?? part.example };
    const [least, most] = times;
    if (most > 1 && (part.repeats || part.ways(1) > 1)) throw new Unknown();
    const count = Math.max(least, 1);
    const many = part.example === null || count > 40 ? null : part.example.repeat(count);
    return {
      ways: (length) => part.ways(length) + Math.min(most, length) - Math.min(least, length),
      repeats: true,
      example: sample(source, count) ?? many,
    };
  }

  private times(): [number, number] | null {
    const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.source.slice(this.at));
    if (!found) {
      if (this.next === '{') throw new Unknown();
      return null;
    }
    this.at += found[0].length;
    if (found[1])
      return [found[1] === '+' ? 1 : 0, found[1] === '?' ? 1 : Number.POSITIVE_INFINITY];
    const least = Number(found[2]);
    const most = found[3] ? (found[4] ? Number(found[4]) : Number.POSITIVE_INFINITY) : least;
    if (least > MAX_REPEAT || (Number.isFinite(most) && most > MAX_REPEAT)) throw new Unknown();
    return [least, most];
  }

  private atom(): Part {
    const character = this.next;
    this.at += 1;
    if (character === '(') return this.group();
    if (character === '[') return this.set();
    if (character === '^' || character === '$') return once('');
    if (character === '\\') return this.escape();
    if ('*+?{}]'.includes(character)) throw new Unknown();
    return once(character === '.' ? 'x' : character);
  }

  private group(): Part {
    const opening = /^\?(?::|<[A-Za-z]\w*>)/.exec(this.source.slice(this.at));
    if (this.next === '?' && !opening) throw new Unknown();
    this.at += opening?.[0].length ?? 0;
    const part = this.either();
    if (this.next !== ')') throw new Unknown();
    this.at += 1;
    return part;
  }

  private set(): Part {
    const found = /^(\^?(?:\\.|[^\]\\])*)\]/s.exec(this.source.slice(this.at));
    if (!found) throw new Unknown();
    this.at += found[0].length;
    const first = found[1] ?? '';
    return once(/^[^^\\]/.test(first) ? first.charAt(0) : null);
  }

  private escape(): Part {
    const rest = this.source.slice(this.at);
    const found = /^(?:[dDwWsSbBfnrtv0]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[^\w\s])/.exec(rest);
    if (!found || /^0\d/.test(rest)) throw new Unknown();
    this.at += found[0].length;
    return once(/^[^\w]$/.test(found[0]) ? found[0] : null);
  }
}

/** Characters that people recognise as "a digit" or "a letter". */
function sample(source: string, count: number): string | null {
  const known = SAMPLES.find(([shape]) => shape.test(source))?.[1];
  return known && count <= known.length ? known.slice(0, count) : null;
}

export interface Pattern {
  /** Whether the text fits. Null if it is too long to look. */
  fits: (text: string) => boolean | null;
  /** A text that fits, for people. */
  example: string | null;
}

function compile(source: string): RegExp {
  try {
    return new RegExp(source, 'u');
  } catch {
    return new RegExp(source);
  }
}

function read(source: string): Pattern | null {
  if (source.length > MAX_PATTERN) return null;
  try {
    const { ways, example } = new Reader(source).read();
    const expression = compile(source);
    const anywhere = source.startsWith('^') && !source.includes('|') ? 0 : 1;
    const fits = (text: string): boolean | null => {
      const size = text.length + 1;
      const steps = ways(size) * size * size ** anywhere;
      return steps <= MAX_STEPS ? expression.test(text) : null;
    };
    return { fits, example: example && fits(example) ? example : null };
  } catch {
    return null;
  }
}

const known = new Map<string, Pattern | null>();

/** Null for a pattern that is not checked. */
export function patternOf(source: string): Pattern | null {
  const found = known.get(source);
  if (found !== undefined) return found;
  const pattern = read(source);
  known.set(source, pattern);
  return pattern;
}
