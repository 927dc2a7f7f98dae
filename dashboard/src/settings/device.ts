/** "Chrome on Linux" from a User-Agent header. Programs keep the name that they gave. */
const browsers: [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];

const systems: [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
];

const nameIn = (names: [RegExp, string][], agent: string): string | undefined =>
  names.find(([pattern]) => pattern.test(agent))?.[1];

export function deviceName(agent: string): string {
  // Every browser starts with this, for reasons of the nineties.
  if (!agent.startsWith('Mozilla/')) return agent.split(/[\s(]/)[0]?.replace('/', ' ') || agent;
  const browser = nameIn(browsers, agent);
  const system = nameIn(systems, agent);
  if (!browser) return agent;
  return system ? `${browser} on ${system}` : browser;
}
