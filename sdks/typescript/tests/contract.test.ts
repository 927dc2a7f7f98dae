/** The SDK covers the whole API: every operation has a method that takes all it can be given. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';

const sdk = join(import.meta.dirname, '..');
const resources = join(sdk, 'src', 'resources');
const files = [
  join(sdk, 'src', 'client.ts'),
  ...readdirSync(resources).map((name) => join(resources, name)),
];

interface Parameter {
  name: string;
  in: string;
}
interface Schema {
  $ref?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
}
interface Described {
  operationId: string;
  parameters?: (Parameter & { $ref?: string })[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
}
interface Description {
  paths: Record<string, Record<string, Described>>;
  components: { parameters: Record<string, Parameter>; schemas: Record<string, Schema> };
}

const descriptions = ['a', 'b'].map(
  (variant) =>
    JSON.parse(
      readFileSync(join(sdk, '..', '..', 'openapi', `variant-${variant}.json`), 'utf8'),
    ) as Description,
);
const operations = new Map(
  descriptions.flatMap((description) =>
    Object.values(description.paths).flatMap((item) =>
      Object.values(item).map(
        (operation) => [operation.operationId, { description, operation }] as const,
      ),
    ),
  ),
);

// `quote` is a method instead of `dryRun`.
const BY_OTHER_MEANS = new Set(['dryRun']);
// What methods take as a resource or its ID.
const RESOURCES: Record<string, string> = { invitationId: 'invitation' };

const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
const last = (reference: string) => reference.split('/').at(-1) as string;

/** Everything that an operation can be given: path, query, body and key. */
function wanted({ components }: Description, operation: Described): Set<string> {
  const found = new Set<string>();
  for (const given of operation.parameters ?? []) {
    const parameter = given.$ref ? (components.parameters[last(given.$ref)] as Parameter) : given;
    if (parameter.in === 'path' || parameter.in === 'query')
      found.add(RESOURCES[parameter.name] ?? parameter.name);
    if (parameter.name === 'Idempotency-Key') found.add('idempotencyKey');
  }
  const schema = operation.requestBody?.content['application/json'].schema;
  const body = (schema?.anyOf ?? [schema]).find((each) => each?.$ref)?.$ref;
  const fields = body ? components.schemas[last(body)]?.properties : {};
  for (const name of Object.keys(fields ?? {})) found.add(name);
  return new Set([...found].filter((name) => !BY_OTHER_MEANS.has(name)));
}

/** What the methods that use each operation take: their parameters, and the fields of those. */
function taken(): Map<string, Set<string>> {
  const { config } = ts.readConfigFile(join(sdk, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, sdk);
  const program = ts.createProgram(files, options);
  const checker = program.getTypeChecker();
  const found = new Map<string, Set<string>>();

  function parametersOf(method: ts.MethodDeclaration): string[] {
    return method.parameters.flatMap((parameter) => {
      const type = checker.getNonNullableType(checker.getTypeAtLocation(parameter));
      const kinds = type.isUnion() ? type.types : [type];
      const fields = kinds.flatMap((kind) =>
        kind.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)
          ? checker.getPropertiesOfType(kind)
          : [],
      );
      return [parameter.name.getText(), ...fields.map(({ name }) => name)];
    });
  }

  function visit(node: ts.Node, method: ts.MethodDeclaration | null): void {
    const inside = ts.isMethodDeclaration(node) ? node : method;
    if (inside && ts.isIdentifier(node)) {
      const symbol = checker.getSymbolAtLocation(node);
      const origin =
        symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const file = origin?.declarations?.[0]?.getSourceFile().fileName ?? '';
      if (origin && file.endsWith('operations.gen.ts')) {
        const names = found.get(origin.name) ?? new Set();
        for (const name of parametersOf(inside)) names.add(name);
        found.set(origin.name, names);
      }
    }
    ts.forEachChild(node, (child) => visit(child, inside));
  }

  for (const file of files) visit(program.getSourceFile(file) as ts.SourceFile, null);
  return found;
}

test('every operation has a method that takes all it can be given', () => {
  const methods = taken();
  expect(operations.size).toBeGreaterThan(70);
  for (const [name, { description, operation }] of operations) {
    const names = methods.get(camel(name));
    expect(names, `No method calls ${name}.`).toBeDefined();
    const missing = [...wanted(description, operation)].filter((each) => !names?.has(each));
    expect(missing, name).toEqual([]);
  }
});
