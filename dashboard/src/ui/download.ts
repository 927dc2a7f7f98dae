/** Saves a text as a file of the person's computer. */
export function download(name: string, type: string, ...content: string[]): void {
  const url = URL.createObjectURL(new Blob(content, { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Today in UTC, for the name of a file. */
export const today = (): string => new Date().toISOString().slice(0, 10);
