import { lazy, Suspense } from 'react';
import { SafeText } from './SafeText';

// The parser is large, so it is a file of its own.
const load = () => import('./Markdown');
const Markdown = lazy(() => load().then(({ Markdown }) => ({ default: Markdown })));

/** Starts to load the parser, for a screen that will need it. If that fails, it is tried again. */
export const prepareMarkdown = (): void => {
  load().catch(() => undefined);
};

/**
 * Markdown, once its parser is here. Until then the source takes up its room, unseen. `data-loading`
 * says so to what checks that a text has been on screen.
 */
export function LazyMarkdown({ children }: { children: string }) {
  return (
    <Suspense
      fallback={
        <div className="prose unparsed" data-loading="" aria-busy="true">
          <SafeText>{children}</SafeText>
        </div>
      }
    >
      <Markdown>{children}</Markdown>
    </Suspense>
  );
}
