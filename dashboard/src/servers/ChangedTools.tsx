import { errors, type Tool } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { ErrorNotice, Notice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { ChangedTool } from './ChangedTool';
import { shownKey, waitsForAcceptance } from './definition';
import { showChange, toolsQuery } from './queries';
import { strings } from './strings';

const { changed: words } = strings;
/** What can be compared in one go. The rest follows when these are accepted. */
const AT_ONCE = 20;

/** A set that only React changes. */
function useKeys() {
  const [all, setAll] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string, on: boolean) =>
    setAll((old) => {
      const next = new Set(old);
      if (on) next.add(key);
      else next.delete(key);
      return next;
    });
  return [all, toggle] as const;
}

/** Accepts exactly what is on screen: names and hashes. A definition that changed since is refused. */
function useAccept(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (tools: Tool[]) => api.toolServers.accept(id, { tools }),
    onSuccess: (answer, tools) => {
      showChange(cache, id, answer);
      toast(words.done(tools.length));
    },
    onError: (error) => {
      if (error instanceof errors.ConflictError) {
        return cache.invalidateQueries({ queryKey: toolsQuery(id).queryKey });
      }
    },
  });
}

export function ChangedTools({ id }: { id: string }) {
  const { data } = useQuery(toolsQuery(id));
  const [left, leave] = useKeys();
  const [seen, see] = useKeys();
  const accept = useAccept(id);
  const hint = useId();
  const waiting = data?.tools.filter(waitsForAcceptance) ?? [];
  if (!waiting.length) return null;
  const changed = waiting.filter((tool) => tool.changed).length;
  const shown = waiting.slice(0, AT_ONCE);
  const selected = shown.filter((tool) => !left.has(shownKey(tool)));
  const unseen = selected.some((tool) => !seen.has(shownKey(tool)));
  const stale = accept.error instanceof errors.ConflictError;
  return (
    <section className="card changed" aria-labelledby="changed">
      <div className="notice notice-wait notice-top">
        <div className="stack">
          <h2 id="changed">{words.title(changed, waiting.length - changed)}</h2>
          <p className="small soft">{words.hint(waiting.length)}</p>
        </div>
      </div>
      {shown.map((tool) => (
        <ChangedTool
          key={tool.name}
          tool={tool}
          selected={!left.has(shownKey(tool))}
          seen={seen.has(shownKey(tool))}
          onSelect={(on) => leave(shownKey(tool), !on)}
          onSeen={() => see(shownKey(tool), true)}
        />
      ))}
      <div className="card-foot changed-foot stack">
        {stale && (
          <div role="alert">
            <Notice tone="wait" title={words.stale}>
              {words.staleHint}
            </Notice>
          </div>
        )}
        {accept.error && !stale && <ErrorNotice error={accept.error} />}
        <div className="row">
          <p className="small soft" id={hint}>
            {!selected.length ? words.selectSome : unseen ? words.scroll : ''}
            {waiting.length > shown.length && ` ${words.later(waiting.length - shown.length)}`}
          </p>
          <span className="push">
            <Button
              look="primary"
              aria-describedby={hint}
              busy={accept.isPending}
              disabled={unseen || !selected.length}
              onClick={() => accept.mutate(selected)}
            >
              {words.accept(selected.length)}
            </Button>
          </span>
        </div>
      </div>
    </section>
  );
}
