import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { useActorName } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

/** How the earlier reviews of this task ended. */
export function History() {
  const { data } = useReviewView();
  const nameOf = useActorName();
  const { history } = data.review;
  if (!history.length) return null;
  return (
    <section className="card" aria-labelledby="history">
      <div className="card-head">
        <h2 id="history">{strings.history}</h2>
      </div>
      <ol className="card-pad-s stack small">
        {history.map((past) => (
          <li key={past.number}>
            <p>
              {strings.pastReview(past.number)} · {strings.states[past.state]}
              {past.decidedBy && (
                <>
                  {' '}
                  {strings.by} <SafeText>{nameOf(past.decidedBy)}</SafeText>
                </>
              )}
              {past.decidedAt && (
                <span className="faint">
                  {' · '}
                  <Ago at={past.decidedAt} />
                </span>
              )}
            </p>
            {past.items.map((item) => (
              <p className="soft" key={item.id}>
                <SafeText>{item.summary}</SafeText>
              </p>
            ))}
            {past.reason && (
              <p className="soft">
                “<SafeText>{past.reason}</SafeText>”
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
