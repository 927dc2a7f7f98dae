import { cents, usd } from './format';

/**
 * An amount with its unit. What steps and tasks cost is fine: it has four decimals, balances have two.
 * In a column of costs, nothing is a dash, so that what does cost something stands out.
 */
export function Money({ usd: amount, fine }: { usd: string | number; fine?: boolean }) {
  if (fine && Number(amount) === 0) {
    return (
      <span className="money">
        <span aria-hidden="true">–</span>
        <span className="sr">{usd(0)}</span>
      </span>
    );
  }
  return <span className="money">{usd(amount, fine ? 4 : 2)}</span>;
}

/** A cost that stands alone, or in a sentence: "$0.0149", "$0". */
export function Cost({ usd: amount }: { usd: string | number }) {
  return <span className="money">{usd(amount, 4)}</span>;
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
