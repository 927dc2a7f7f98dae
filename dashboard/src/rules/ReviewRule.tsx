import type { ReviewItem } from '@rota/sdk';
import { useState } from 'react';
import type { Json, JsonObject } from '../api/exact';
import { SafeText } from '../ui/SafeText';
import { rowsOf } from './conditions';
import { RuleDialog } from './RuleDialog';
import { strings } from './strings';

/** A rule from a call that waits: for calls like it, of the same tool by the same agent. */
export function ReviewRule({
  taskId,
  agent,
  item,
  onClose,
}: {
  taskId: string;
  agent: string;
  item: ReviewItem;
  onClose: () => void;
}) {
  const [rows, setRows] = useState(() =>
    rowsOf(
      (item.argumentsSchema ?? undefined) as Json | undefined,
      (item.arguments ?? {}) as JsonObject,
    ),
  );
  return (
    <RuleDialog
      title={strings.fromReviewTitle}
      subject={{ fromReview: { taskId, itemId: item.id } }}
      rows={rows}
      onRows={setRows}
      onClose={onClose}
    >
      <p>
        <b>
          <SafeText>{agent}</SafeText>
        </b>{' '}
        {strings.calls}{' '}
        <code>
          <SafeText>{`${item.server}/${item.tool}`}</SafeText>
        </code>
      </p>
      <p className="soft">{strings.fromReviewHint}</p>
    </RuleDialog>
  );
}
