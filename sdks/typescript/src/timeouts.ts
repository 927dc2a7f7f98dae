/** A longer timer fires at once: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** Ends a request when its time has passed, or when its caller ends it. */
export class Deadline {
  readonly #cut = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  hasPassed = false;

  constructor(ms: number, outer?: AbortSignal) {
    this.#outer = outer;
    if (outer?.aborted) this.cut();
    outer?.addEventListener('abort', this.cut);
    this.restart(ms);
  }

  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  /** The time begins again. */
  restart(ms: number): void {
    clearTimeout(this.#timer);
    if (ms > LONGEST_MS) return;
    this.#timer = setTimeout(() => {
      this.hasPassed = true;
      this.cut();
    }, ms);
  }

  /** Ends the request now. */
  readonly cut = (): void => this.#cut.abort(this.#outer?.reason);

  clear(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.cut);
  }
}
