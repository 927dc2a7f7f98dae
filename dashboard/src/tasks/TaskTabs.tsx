import type { Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { ErrorNotice } from '../ui/Notice';
import { Tabs } from '../ui/Tabs';
import { InputTab } from './InputTab';
import { reviewQuery } from './queries';
import { RawSteps } from './RawSteps';
import { ReviewsTab } from './ReviewsTab';
import { strings } from './strings';
import type { useTimelines } from './useTimelines';
import { Waterfall } from './Waterfall';

const names = ['timeline', 'input', 'reviews', 'raw'] as const;
type Name = (typeof names)[number];

export function TaskTabs({
  task,
  timeline,
}: {
  task: Task;
  timeline: ReturnType<typeof useTimelines>;
}) {
  const { tab } = useSearch({ from: '/$account/tasks/$id' });
  const navigate = useNavigate({ from: '/$account/tasks/$id' });
  const review = useQuery(reviewQuery(task.id));
  const selected: Name = names.find((name) => name === tab) ?? 'timeline';
  const steps = timeline.timelines.get(task.id) ?? [];
  const reviews = review.data
    ? review.data.review.history.length + (review.data.review.state === 'pending' ? 1 : 0)
    : 0;
  return (
    <Tabs
      label={strings.task}
      tabs={names.map((name) => ({
        name,
        label: (
          <>
            {strings.tabs[name]}
            {name === 'reviews' && reviews > 0 && <span className="count">{reviews}</span>}
          </>
        ),
      }))}
      selected={selected}
      onSelect={(name) =>
        navigate({
          search: { tab: name === 'timeline' ? undefined : name },
          replace: true,
          resetScroll: false,
        })
      }
    >
      {selected === 'timeline' && timeline.error && <ErrorNotice error={timeline.error} />}
      {selected === 'timeline' && <Waterfall task={task} timeline={timeline} />}
      {selected === 'input' && <InputTab task={task} />}
      {selected === 'reviews' && <ReviewsTab task={task} />}
      {selected === 'raw' && <RawSteps steps={steps} />}
    </Tabs>
  );
}
