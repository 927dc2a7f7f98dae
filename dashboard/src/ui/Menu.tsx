import { type ReactNode, useId, useRef } from 'react';
import { Button, type ButtonProps } from './Button';
import { Icon, type IconName } from './Icon';
import { SafeText } from './SafeText';

export interface MenuAction {
  label: string;
  icon?: IconName;
  checked?: boolean;
  onSelect: () => void;
}

/** A button that opens a list of actions, as a popover of the browser. */
export function Menu({
  label,
  actions,
  children,
  ...button
}: { label: string; actions: MenuAction[]; children?: ReactNode } & Omit<ButtonProps, 'onClick'>) {
  const id = useId();
  // A short value, such as "Any rank", needs to say of what. Other buttons are named by what they
  // show, so that people who speak to their computer can name them.
  const named = typeof children === 'string' && children !== label ? label : undefined;
  const menu = useRef<HTMLDivElement>(null);
  const anchor = useRef<HTMLSpanElement>(null);
  const place = () => {
    const box = anchor.current?.getBoundingClientRect();
    const shown = menu.current;
    if (!box || !shown) return;
    const below = box.bottom + 4;
    const fits = below + shown.offsetHeight <= innerHeight - 8;
    // Above the button where there is no room below: a second tap must not choose anything.
    shown.style.top = `${fits ? below : Math.max(8, box.top - shown.offsetHeight - 4)}px`;
    shown.style.left = `${Math.max(8, Math.min(box.left, innerWidth - shown.offsetWidth - 8))}px`;
  };
  const move = (step: number) => {
    const items = [...(menu.current?.querySelectorAll<HTMLElement>('.menu-item') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[(at + step + items.length) % items.length]?.focus();
  };
  return (
    <span ref={anchor}>
      <Button {...button} popoverTarget={id} aria-haspopup="menu" aria-label={named}>
        {children ?? label}
        <Icon name="down" small />
      </Button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        className="menu"
        onToggle={(event) => {
          if (event.newState !== 'open') return;
          place();
          move(1);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') move(1);
          else if (event.key === 'ArrowUp') move(-1);
          else return;
          event.preventDefault();
        }}
      >
        {actions.map((action, at) => (
          // biome-ignore lint/a11y/useAriaPropsSupportedByRole: the role below supports it.
          <button
            // biome-ignore lint/suspicious/noArrayIndexKey: two accounts can have the same name.
            key={at}
            type="button"
            role={action.checked === undefined ? 'menuitem' : 'menuitemradio'}
            aria-checked={action.checked}
            className="menu-item"
            onClick={() => {
              menu.current?.hidePopover();
              action.onSelect();
            }}
          >
            {action.icon && <Icon name={action.icon} small />}
            <SafeText>{action.label}</SafeText>
          </button>
        ))}
      </div>
    </span>
  );
}
