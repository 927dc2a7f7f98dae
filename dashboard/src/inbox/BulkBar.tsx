import type { Approval } from '@rota/sdk';
import { budgetLeft } from '../review/data';
import { Button, IconButton } from '../ui/Button';
import { usd } from '../ui/format';
import { decisionWords, groupsOf } from './groups';
import { strings } from './strings';

/** What the selected reviews have in common, and the decision about all of them. */
export function BulkBar({
  selected,
  onDecide,
  onClear,
}: {
  selected: Approval[];
  onDecide: (how: 'approve' | 'reject') => void;
  onClear: () => void;
}) {
  const groups = groupsOf(selected);
  const more = selected.reduce((sum, each) => sum + (budgetLeft(each.task) ?? 0), 0);
  const words = [
    groups.length === 1 ? groups[0]?.words : null,
    more > 0 ? strings.atMostMore(usd(more)) : null,
  ].filter(Boolean);
  return (
    <fieldset className="bulk" aria-label={strings.bulk(selected.length)}>
      <p className="small">
        <strong>{strings.someSelected(selected.length)}</strong>
        <br />
        <span className="faint tiny">{words.join(', ')}</span>
      </p>
      <span className="push" />
      <IconButton icon="x" size="s" label={strings.clear} onClick={onClear} />
      <Button look="danger" size="s" onClick={() => onDecide('reject')}>
        {strings.reject.button(selected.length)}
      </Button>
      <Button look="primary" size="s" onClick={() => onDecide('approve')}>
        {decisionWords('approve', selected).button(selected.length)}
      </Button>
    </fieldset>
  );
}
