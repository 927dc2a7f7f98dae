/** The tasks that a text describes: one on each line, or one in each row of a table. */
import type { BatchTask } from '@rota/sdk';
import { lengthOf, MAX_TEXT, nameOf } from '../newtask/draft';
import { strings } from './strings';
import { parseTable, writeTable } from './table';

export const COLUMNS = ['name', 'input', 'description', 'priority'] as const;
type Column = (typeof COLUMNS)[number];
type Fields = Partial<Record<Column, string>>;

const MAX_NAME = 1_000;
const MAX_PRIORITY = 10;
// The order matters: a table of one column has none of them, and its cells can contain commas.
const DELIMITERS = ['\t', ',', ';'];

/** What JSON cannot carry to the service: NUL, and halves of characters. */
const UNSENDABLE = /\0|\p{Surrogate}/u;

export interface Line {
  /** Where it begins in the text, from 1. */
  number: number;
  /** As they were typed. */
  fields: Fields;
  task: BatchTask;
  /** Why it cannot be sent. */
  problem: string | undefined;
}

export interface Batch {
  lines: Line[];
  /** Of a table, those that are used. Null if each line is a task. */
  columns: Column[] | null;
  /** Columns of the table that mean nothing here. */
  ignored: string[];
}

interface Header {
  delimiter: string;
  /** Null for a column that is ignored. */
  columns: (Column | null)[];
  names: string[];
}

const columnOf = (name: string): Column | null =>
  COLUMNS.find((column) => column === name.toLowerCase()) ?? null;

/** Reads a line as the header of a table, if it is one and not a sentence with commas. */
function headerOf(line: string): Header | null {
  for (const delimiter of DELIMITERS) {
    const names = (parseTable(line, delimiter)[0]?.cells ?? []).map((cell) => cell.trim());
    const columns = names.map(columnOf);
    const known = columns.filter((column) => column !== null);
    const isHeader = known.length === names.length || known.length > 1;
    const hasText = known.includes('name') || known.includes('input');
    if (isHeader && hasText && new Set(known).size === known.length) {
      return { delimiter, columns, names };
    }
  }
  return null;
}

function taskOf({ name, input, description, priority }: Fields): BatchTask {
  return {
    name:
      name ||
      nameOf(input ?? '') ||
      Array.from(input ?? '')
        .slice(0, 80)
        .join(''),
    ...(input && { input }),
    ...(description && { description }),
    ...(priority && { priority: Number(priority) }),
  };
}

function problemOf({ name, input, description }: BatchTask, fields: Fields): string | undefined {
  const { problems } = strings;
  const priority = Number(fields.priority ?? 0);
  if (!name) return problems.empty;
  if (lengthOf(name) > MAX_NAME) return problems.tooLong('name', MAX_NAME);
  if (lengthOf(input ?? '') > MAX_TEXT) return problems.tooLong('input', MAX_TEXT);
  if (lengthOf(description ?? '') > MAX_TEXT) return problems.tooLong('description', MAX_TEXT);
  if (!(priority >= 0 && priority <= MAX_PRIORITY)) return problems.priority(MAX_PRIORITY);
  if (Object.values(fields).some((text) => UNSENDABLE.test(text))) return problems.unsendable;
  return undefined;
}

function lineOf(number: number, fields: Fields, problem?: string): Line {
  const task = taskOf(fields);
  return { number, fields, task, problem: problem ?? problemOf(task, fields) };
}

function readTable(text: string, header: Header, from: number): Batch {
  const rows = parseTable(text, header.delimiter).filter((row) => row.line > from);
  const lines = rows.map(({ line, cells, unclosed }) => {
    const fields: Fields = {};
    for (const [at, column] of header.columns.entries()) {
      const cell = cells[at]?.trim();
      if (column && cell) fields[column] = cell;
    }
    const isTooWide = cells.slice(header.columns.length).some((cell) => cell.trim());
    const { problems } = strings;
    return lineOf(
      line,
      fields,
      unclosed ? problems.unclosed : isTooWide ? problems.tooWide : undefined,
    );
  });
  return {
    lines,
    columns: header.columns.filter((column) => column !== null),
    ignored: header.names.filter((name, at) => name && header.columns[at] === null),
  };
}

export function readBatch(text: string): Batch {
  const clean = text.replace(/^\uFEFF/, '');
  const all = clean.split(/\r\n|\r|\n/);
  const first = all.findIndex((line) => line.trim());
  const header = headerOf(all[first] ?? '');
  if (header) return readTable(clean, header, first + 1);
  const lines = all
    .map((line, at) => ({ input: line.trim(), number: at + 1 }))
    .filter(({ input }) => input)
    .map(({ input, number }) => lineOf(number, { input }));
  return { lines, columns: null, ignored: [] };
}

/** The text that these lines are read from again. */
export function writeBatch(lines: Line[], columns: Column[] | null): string {
  if (!columns) return lines.map(({ fields }) => fields.input ?? '').join('\n');
  return writeTable([
    [...columns],
    ...lines.map(({ fields }) => columns.map((column) => fields[column] ?? '')),
  ]);
}
