/** Tables as text: CSV and TSV with the quotes of RFC 4180. */

export interface TableRow {
  /** The line of the text where it begins, from 1. */
  line: number;
  cells: string[];
  /** Whether the text ends inside quotes. */
  unclosed: boolean;
}

/** The rows that have any text. A cell in quotes can contain delimiters, quotes and lines. */
export function parseTable(text: string, delimiter: string): TableRow[] {
  const rows: TableRow[] = [];
  let row: TableRow = { line: 1, cells: [], unclosed: false };
  let cell = '';
  let line = 1;
  let inQuotes = false;

  const endRow = () => {
    row.cells.push(cell);
    if (row.cells.some((each) => each.trim())) rows.push(row);
    cell = '';
  };
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    const isLineEnd = character === '\n' || (character === '\r' && text[at + 1] !== '\n');
    if (isLineEnd) line += 1;
    if (inQuotes) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else inQuotes = false;
    } else if (character === '"' && !cell) inQuotes = true;
    else if (character === delimiter) {
      row.cells.push(cell);
      cell = '';
    } else if (isLineEnd) {
      endRow();
      row = { line, cells: [], unclosed: false };
    } else if (character !== '\r') cell += character;
  }
  row.unclosed = inQuotes;
  endRow();
  return rows;
}

const written = (cell: string): string =>
  /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;

export const writeTable = (rows: string[][]): string =>
  rows.map((cells) => cells.map(written).join(',')).join('\n');
