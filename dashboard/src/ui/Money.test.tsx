import { render } from '@testing-library/react';
import { expect, test } from 'vitest';
import { Cost, Money } from './Money';

test('a balance has two decimals, and a cost has four', () => {
  expect(render(<Money usd="9.6410" />).container.textContent).toBe('$9.64');
  expect(render(<Money usd="0.02" fine />).container.textContent).toBe('$0.0200');
});

test('in a column, a cost of nothing is a dash that is read as an amount', () => {
  const { container } = render(<Money usd="0.000000" fine />);
  expect(container.querySelector('[aria-hidden]')?.textContent).toBe('–');
  expect(container.querySelector('.sr')?.textContent).toBe('$0.00');
  expect(render(<Cost usd={0} />).container.textContent).toBe('$0');
});
