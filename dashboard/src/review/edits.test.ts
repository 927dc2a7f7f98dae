import { expect, test } from 'vitest';
import { type JsonObject, parseExact, stringifyExact } from '../api/exact';
import { edited, editedFields, problemsOf, rebase, withEdit } from './edits';
import { type Field, fieldsOf, flat } from './schema';

const schema = parseExact(`{
  "type": "object",
  "required": ["amount", "status"],
  "properties": {
    "amount": {"type": "integer", "minimum": 1, "maximum": 99999999999999999999},
    "status": {"enum": ["open", "solved"]},
    "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
    "payOn": {"type": "string", "format": "date"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "to": {"$ref": "#/$defs/Person"},
    "rows": {"type": "array", "minItems": 1, "items": {"type": "object"}},
    "either": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "copy": {"type": "boolean"},
    "kind": {"const": "batch"}
  },
  "$defs": {"Person": {"type": "object", "properties": {"email": {"type": "string", "format": "email"}}}}
}`);
const text = `{"amount":12345678901234567890,"status":"open","note":null,"payOn":"2026-11-13",
"tags":["a","b"],"to":{"email":"a@b.example"},"rows":[{"id":1.0},{"id":2}],"either":3,"copy":true,
"kind":"batch","extra":{"x":[{"y":null}]}}`;
const proposed = parseExact<JsonObject>(text);
const fields = fieldsOf(schema, proposed);
const named = (key: string, from = fields): Field => {
  const found = flat(from).find((field) => field.key === key);
  if (!found) throw new Error(`no field ${key}`);
  return found;
};

test('each argument gets the control of its type, also one that the schema does not name', () => {
  const kinds = Object.fromEntries(flat(fields).map((field) => [field.key, field.kind.is]));
  expect(kinds).toEqual({
    amount: 'number',
    status: 'choice',
    note: 'text',
    payOn: 'text',
    tags: 'list',
    email: 'text',
    rows: 'table',
    either: 'json',
    copy: 'yesno',
    kind: 'choice',
    x: 'table',
  });
  expect(named('note').nullable).toBe(true);
});

test('a value that does not fit its schema is still shown', () => {
  const odd = fieldsOf(schema, parseExact('{"amount":"ten","status":"lost","rows":"none"}'));
  expect(named('amount', odd).kind.is).toBe('json');
  expect(named('status', odd).kind.is).toBe('json');
  expect(named('rows', odd).kind.is).toBe('json');
});

test('an edit changes its own value and not one digit of the others', () => {
  const edits = withEdit({}, named('payOn'), { text: '2026-11-16' });
  const result = stringifyExact(edited(proposed, fields, edits));
  expect(result).toBe(stringifyExact(proposed).replace('2026-11-13', '2026-11-16'));
  expect(result).toContain('12345678901234567890');
  expect(result).toContain('{"id":1.0}');
});

test('whole numbers of any size keep their digits and their bounds', () => {
  const field = named('amount');
  const big = withEdit({}, field, { text: '99999999999999999998' });
  expect(stringifyExact(edited(proposed, fields, big))).toContain('99999999999999999998');
  expect(problemsOf(fields, big)).toEqual([]);
  for (const bad of ['100000000000000000000', '0', '1.5', 'ten', '']) {
    expect(problemsOf(fields, withEdit({}, field, { text: bad }))).toEqual([field]);
  }
});

test('going back to the proposal is not an edit', () => {
  const field = named('status');
  const edits = withEdit({}, field, { value: 'solved' });
  expect(editedFields(fields, edits)).toEqual([field]);
  expect(withEdit(edits, field, { value: 'open' })).toEqual({});
});

test('rows can be left out, but not below the least number', () => {
  const rows = named('rows');
  const one = withEdit({}, rows, { leftOut: [0] });
  expect(stringifyExact(edited(proposed, fields, one))).toContain('"rows":[{"id":2}]');
  expect(problemsOf(fields, withEdit({}, rows, { leftOut: [0, 1] }))).toEqual([rows]);
});

test('a value of nested arguments can be changed or left out', () => {
  const email = named('email');
  const changed = edited(proposed, fields, withEdit({}, email, { text: 'c@d.example' }));
  expect(changed.to).toEqual({ email: 'c@d.example' });
  const gone = edited(proposed, fields, withEdit({}, email, { value: undefined }));
  expect(gone.to).toEqual({});
});

test('on a new proposal, edits stay where their field still exists', () => {
  let edits = withEdit({}, named('payOn'), { text: '2026-11-16' });
  edits = withEdit(edits, named('rows'), { leftOut: [1] });
  edits = withEdit(edits, named('status'), { value: 'solved' });
  edits = withEdit(edits, named('tags'), { text: 'c' });
  const next = parseExact<JsonObject>(
    '{"amount":1,"status":"solved","payOn":"2026-11-14","rows":[{"id":2},{"id":3}],"tags":7}',
  );
  const after = fieldsOf(schema, next);
  const kept = rebase(edits, fields, after);
  // The status is what was proposed now, and the tags are something else.
  expect(editedFields(after, kept).map((field) => field.key)).toEqual(['payOn', 'rows']);
  expect(stringifyExact(edited(next, after, kept))).toBe(
    '{"amount":1,"status":"solved","payOn":"2026-11-16","rows":[{"id":3}],"tags":7}',
  );
});

test('a text that breaks the rule of its field cannot be sent', () => {
  const own = {
    type: 'object',
    properties: { ticket: { type: 'string', pattern: '^T-[0-9]{4}$' } },
  };
  const [ticket] = fieldsOf(own, { ticket: 'T-4821' });
  if (!ticket) throw new Error('no field');
  expect(problemsOf([ticket], withEdit({}, ticket, { text: 'X' }))).toEqual([ticket]);
  expect(problemsOf([ticket], withEdit({}, ticket, { text: 'T-4822' }))).toEqual([]);
});
