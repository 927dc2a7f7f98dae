import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Icon, type IconName } from './Icon';
import { Kbd } from './Kbd';

type Look = 'normal' | 'primary' | 'danger' | 'danger-solid' | 'quiet';

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  size?: 's' | 'm' | 'l';
  icon?: IconName;
  /** The key that does the same, shown beside the word. */
  shortcut?: string;
  busy?: boolean;
  block?: boolean;
  children?: ReactNode;
}

export function buttonClass({ look = 'normal', size = 'm', block }: ButtonProps): string {
  return [
    'btn',
    look !== 'normal' && `btn-${look}`,
    size !== 'm' && `btn-${size}`,
    block && 'btn-block',
  ]
    .filter(Boolean)
    .join(' ');
}

export function Button(props: ButtonProps) {
  const { look, size, icon, shortcut, busy, block, children, className, ...rest } = props;
  return (
    <button
      type="button"
      {...rest}
      className={[buttonClass(props), className].filter(Boolean).join(' ')}
      aria-busy={busy || undefined}
      disabled={rest.disabled || busy}
    >
      {icon && <Icon name={icon} small={size === 's'} />}
      {children}
      {shortcut && <Kbd>{shortcut}</Kbd>}
    </button>
  );
}

/** A button of one icon. Its label is for screen readers and the tooltip. */
export function IconButton({
  icon,
  label,
  size,
  ...rest
}: { icon: IconName; label: string; size?: 's' | 'm' } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button
      type="button"
      title={label}
      aria-label={label}
      {...rest}
      className={`btn btn-quiet btn-icon${size === 's' ? ' btn-s' : ''}`}
    >
      <Icon name={icon} small={size === 's'} />
    </button>
  );
}
