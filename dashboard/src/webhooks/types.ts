/** The types that somebody has typed, or null for all. */
export const typesOf = (text: string): string[] | null => {
  const types = text.split(/[\s,]+/).filter(Boolean);
  return types.length ? types : null;
};
