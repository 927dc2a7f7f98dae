import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';

export interface Tab<Name extends string> {
  name: Name;
  label: ReactNode;
}

/** Tabs of one page. Arrow keys move between them. The panel is the caller's `children`. */
export function Tabs<Name extends string>({
  label,
  tabs,
  selected,
  onSelect,
  children,
}: {
  label: string;
  tabs: Tab<Name>[];
  selected: Name;
  onSelect: (name: Name) => void;
  children: ReactNode;
}) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((tab) => tab.name === selected);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next) {
      onSelect(next.name);
      list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${next.name}`)}`)?.focus();
    }
  };
  return (
    <div>
      <div ref={list} className="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            type="button"
            id={`${id}-${tab.name}`}
            role="tab"
            className="tab"
            aria-selected={tab.name === selected}
            aria-controls={`${id}-panel`}
            tabIndex={tab.name === selected ? 0 : -1}
            onClick={() => onSelect(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`}>
        {children}
      </div>
    </div>
  );
}

/** A choice of a few views. */
export function Segments<Name extends string>({
  label,
  options,
  selected,
  onSelect,
}: {
  label: string;
  options: { name: Name; label: string }[];
  selected: Name;
  onSelect: (name: Name) => void;
}) {
  return (
    <fieldset className="segments" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.name}
          type="button"
          aria-pressed={option.name === selected}
          onClick={() => onSelect(option.name)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
