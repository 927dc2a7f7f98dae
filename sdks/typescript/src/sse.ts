/** Reads server-sent events from bytes that arrive in pieces of any size. */
export interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** Collects text, and returns the messages that it completes. */
export class Decoder {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #id: string | null = null;

  /** The text must not end between the parts of a character. */
  feed(text: string): Message[] {
    // Only these characters end a line. Texts may contain others, such as U+2028.
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    const found: Message[] = [];
    for (const line of lines) {
      const message = this.#take(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (message) found.push(message);
    }
    return found;
  }

  #take(line: string): Message | null {
    if (line === '') {
      const message = {
        id: this.#id,
        event: this.#event || 'message',
        data: this.#data.join('\n'),
      };
      const isComplete = this.#data.length > 0;
      this.#event = '';
      this.#data = [];
      this.#id = null;
      return isComplete ? message : null;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#event = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id') this.#id = value;
    return null;
  }
}
