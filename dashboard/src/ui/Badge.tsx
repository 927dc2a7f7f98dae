import type { ReactNode } from 'react';
import { Icon, type IconName } from './Icon';

export function Badge({
  tone,
  icon,
  children,
}: {
  tone?: 'accent' | 'wait' | 'good' | 'bad' | 'line';
  icon?: IconName;
  children: ReactNode;
}) {
  return (
    <span className={tone ? `badge badge-${tone}` : 'badge'}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}
