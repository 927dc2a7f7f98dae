/** Initials in a wheel: three dark arcs for a Director, two for a Lead, one for a Specialist. */
const ARC = 24.61;
const GAP = 4.71;

export function AgentMark({
  initials,
  rank,
  size,
}: {
  initials: string;
  rank: number;
  size?: 's' | 'l';
}) {
  const arcs = Math.max(1, Math.min(3, 4 - rank));
  const whole = (ARC + GAP) * 3;
  const dashes = Array.from({ length: arcs }, (_, i) => (i ? [GAP, ARC] : [ARC])).flat();
  const drawn = dashes.reduce((sum, dash) => sum + dash, 0);
  return (
    <svg className={size ? `mark mark-${size}` : 'mark'} viewBox="0 0 32 32" aria-hidden="true">
      <circle className="face" cx="16" cy="16" r="11.5" />
      <g transform="rotate(-84 16 16)" strokeLinecap="round">
        <circle className="off" cx="16" cy="16" r="14" strokeDasharray={`${ARC} ${GAP}`} />
        <circle
          className="on"
          cx="16"
          cy="16"
          r="14"
          strokeDasharray={[...dashes, whole - drawn].join(' ')}
        />
      </g>
      <text x="16" y="19.7">
        {initials}
      </text>
    </svg>
  );
}

export function Avatar({ name }: { name: string }) {
  const words = name.trim().split(/\s+/);
  const initials = [words[0], words.length > 1 ? words.at(-1) : undefined]
    .map((word) => (word ? (Array.from(word)[0] ?? '') : ''))
    .join('')
    .toUpperCase();
  return (
    <span className="avatar" aria-hidden="true">
      {initials || '?'}
    </span>
  );
}
