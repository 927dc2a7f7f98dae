import type { ReactNode } from 'react';
import { Button } from '../ui/Button';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { SectionHead } from './SectionHead';

/** Settings that are saved together, and can be discarded before. */
export function SettingsForm({
  words,
  hint,
  saving,
  changed,
  readOnly,
  onSave,
  onDiscard,
  footer,
  children,
}: {
  words: { name: string; save: string; discard: string };
  hint: string;
  saving: { isPending: boolean; error: Error | null };
  changed: boolean;
  readOnly?: boolean;
  onSave: () => void;
  /** Null: nothing is typed. */
  onDiscard: (() => void) | null;
  footer: ReactNode;
  children: ReactNode;
}) {
  return (
    <form
      className="stack-6"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!saving.isPending) onSave();
      }}
    >
      <SectionHead title={words.name} hint={<SafeText>{hint}</SafeText>} />
      {children}
      {saving.error && <ErrorNotice error={saving.error} />}
      {!readOnly && (
        <p className="row">
          <Button look="primary" type="submit" busy={saving.isPending} disabled={!changed}>
            {words.save}
          </Button>
          {onDiscard && <Button onClick={onDiscard}>{words.discard}</Button>}
        </p>
      )}
      {footer}
    </form>
  );
}
