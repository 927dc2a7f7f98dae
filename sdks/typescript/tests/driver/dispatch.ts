/**
 * Runs calls of the SDK that are described as JSON, so that a program in another language can run its
 * scenarios through this SDK, in Node and in a browser.
 */
import { type EventStream, errors, type Pages, Rota, type RotaOptions } from '../../src/index.ts';

export interface Call {
  id: number;
  options: RotaOptions;
  /** The method, such as `tasks.create`. */
  method: string;
  args: unknown[];
  /** What the method returns, the first page of a list, or its items one by one. */
  wants: 'value' | 'page' | 'items';
}

/** Asks for the next item of a call that wants items, or for no more. */
export interface Step {
  id: number;
  step: 'next' | 'stop';
}

type Outcome = { result: unknown } | { item: unknown } | { error: unknown } | { opened: unknown };

/** The same options get the same client. */
const clients = new Map<string, Rota>();
const iterators = new Map<number, AsyncIterator<unknown>>();

function clientOf(options: RotaOptions): Rota {
  const key = JSON.stringify(options);
  const found = clients.get(key) ?? new Rota(options);
  clients.set(key, found);
  return found;
}

type Holder = Record<string, (...args: unknown[]) => unknown>;

function invoked({ options, method, args }: Call, opened: (last: number | null) => void): unknown {
  const client = clientOf(options) as unknown as Holder & Record<string, Holder>;
  const [first = '', second] = method.split('.');
  if (second === undefined) return client[first]?.(...args);
  if (second !== 'follow') return client[first]?.[second]?.(...args);
  const given = args.pop() as object;
  const onOpen = () => opened(stream.lastSequence);
  const stream = client[first]?.follow?.(...args, { ...given, onOpen }) as EventStream<never>;
  return stream;
}

async function outcomeOf(
  message: Call | Step,
  opened: (last: number | null) => void,
): Promise<Outcome> {
  if ('step' in message) {
    const iterator = iterators.get(message.id);
    if (message.step === 'stop') await iterator?.return?.();
    const next = message.step === 'next' ? await iterator?.next() : undefined;
    return next && !next.done ? { item: next.value } : { result: null };
  }
  const returned = invoked(message, opened);
  if (message.wants === 'page') {
    return { result: await (returned as Pages<unknown, unknown>).firstPage() };
  }
  if (message.wants === 'value') return { result: (await returned) ?? null };
  iterators.set(message.id, (returned as AsyncIterable<unknown>)[Symbol.asyncIterator]());
  return { result: null };
}

/** Runs what the text describes. `answer` is called with each answer as JSON. */
export async function dispatch(text: string, answer: (text: string) => void): Promise<void> {
  const message = JSON.parse(text) as Call | Step;
  const send = (outcome: Outcome) =>
    answer(
      JSON.stringify({ id: message.id, ...outcome }, (_, value: unknown) =>
        value instanceof Error ? described(value) : value,
      ),
    );
  try {
    send(await outcomeOf(message, (last) => send({ opened: last })));
  } catch (error) {
    send({ error: described(error as Error) });
  }
}

/** An error with the name of its class. */
function described(error: Error): unknown {
  const own = error instanceof errors.RotaError ? { ...error } : {};
  return { ...own, cause: undefined, message: error.message, class: error.constructor.name };
}
