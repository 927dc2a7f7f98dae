import { cents, fourDecimals, usd } from './format';

/** An amount with its unit. What steps and tasks cost has four decimals, balances have two. */
export function Money({ usd: amount, fine }: { usd: string | number; fine?: boolean }) {
  return <span className="money">{fine ? fourDecimals(amount) : usd(amount)}</span>;
}

export function Cents({ value }: { value: number }) {
  return <span className="money">{cents(value)}</span>;
}

/** How much of something is used. `held` is shown striped after it. */
export function Meter({
  used,
  held = 0,
  total,
  large,
  label,
}: {
  used: number;
  held?: number;
  total: number;
  large?: boolean;
  label: string;
}) {
  const percent = total > 0 ? Math.min(100, (used / total) * 100) : 0;
  const level = percent >= 100 ? 'depleted' : percent >= 80 ? 'warning' : 'normal';
  return (
    <span
      className={large ? 'meter meter-l' : 'meter'}
      role="img"
      aria-label={label}
      data-level={level}
      style={
        {
          '--used': percent,
          '--held': total > 0 ? Math.min(100 - percent, (held / total) * 100) : 0,
        } as React.CSSProperties
      }
    >
      <span />
      {held > 0 && <span className="held" />}
    </span>
  );
}
