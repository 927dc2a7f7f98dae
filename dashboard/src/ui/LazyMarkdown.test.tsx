import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { LazyMarkdown } from './LazyMarkdown';

afterEach(cleanup);

test('until its parser is here, the text counts as loading', async () => {
  const { container } = render(<LazyMarkdown>{'Is **done**.'}</LazyMarkdown>);
  const source = container.querySelector('[data-loading]');
  expect(source?.className).toContain('unparsed');
  expect(source?.getAttribute('aria-busy')).toBe('true');
  expect(await screen.findByText('done')).toBeTruthy();
  expect(container.querySelector('[data-loading]')).toBeNull();
});
