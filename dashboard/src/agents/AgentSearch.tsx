import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { SearchBox } from '../ui/Field';
import { useShortcuts } from '../ui/shortcuts';
import { strings } from './strings';

const route = getRouteApi('/$account/agents');
const PAUSE_MS = 180;

/** The URL has the search. What is being typed reaches it after a short pause. */
export function AgentSearch() {
  const { q } = route.useSearch();
  const navigate = route.useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [draft, setDraft] = useState<string | null>(null);
  useShortcuts({ '/': () => input.current?.focus() });
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (text: string) =>
    navigate({ search: (old) => ({ ...old, q: text || undefined }), replace: true });
  return (
    <SearchBox
      ref={input}
      label={strings.search}
      shortcut="/"
      maxLength={200}
      value={draft ?? q ?? ''}
      onChange={(event) => {
        const text = event.target.value;
        setDraft(text);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => search(text), PAUSE_MS);
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        clearTimeout(timer.current);
        setDraft(null);
        search('');
      }}
      onBlur={() => {
        if (draft === null) return;
        clearTimeout(timer.current);
        search(draft);
        setDraft(null);
      }}
    />
  );
}
