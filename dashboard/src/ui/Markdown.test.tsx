import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { Markdown, safeHref } from './Markdown';

afterEach(cleanup);

test('HTML is shown as text and makes no element', () => {
  const { container } = render(
    <Markdown>{'<script>alert(1)</script>\n\nHello <img src=x onerror=alert(1)> there'}</Markdown>,
  );
  expect(container.querySelector('script, img')).toBeNull();
  expect(container.textContent).toContain('<script>alert(1)</script>');
});

test('images are links, and never load', () => {
  const { container } = render(<Markdown>{'![a cat](https://example.com/cat.png)'}</Markdown>);
  expect(container.querySelector('img')).toBeNull();
  expect(screen.getByRole('link', { name: 'a cat' })).toBeTruthy();
});

test.each([
  'javascript:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  '//host',
  '/path',
  'JaVaScRiPt:x',
])('an address such as %s does not become a link', (href) => expect(safeHref(href)).toBeNull());

test('headings, lists, tables and code become elements', () => {
  render(
    <Markdown>{'# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`code`'}</Markdown>,
  );
  expect(screen.getByRole('heading', { name: 'Title' })).toBeTruthy();
  expect(screen.getAllByRole('listitem')).toHaveLength(2);
  expect(screen.getByRole('table')).toBeTruthy();
});

test('nesting without end is cut off, not a crash', () => {
  const { container } = render(<Markdown>{`${'> '.repeat(500)}deep`}</Markdown>);
  expect(container.textContent).toContain('deep');
});
