import { APIError, errors } from '@rota/sdk';
import type { ReactNode } from 'react';
import { Button } from './Button';
import { Icon, type IconName } from './Icon';
import { SafeText } from './SafeText';

const icons: Record<'plain' | 'wait' | 'bad' | 'accent', IconName> = {
  plain: 'info',
  wait: 'alert',
  bad: 'alert',
  accent: 'info',
};

export function Notice({
  tone = 'plain',
  title,
  children,
  actions,
}: {
  tone?: keyof typeof icons;
  title?: string;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className={tone === 'plain' ? 'notice' : `notice notice-${tone}`}>
      <Icon name={icons[tone]} />
      <div className="stack">
        {title && <p className="strong">{title}</p>}
        {children && <div>{children}</div>}
        {actions && <div className="row row-wrap">{actions}</div>}
      </div>
    </div>
  );
}

/** The API's own message, what to do next, and the id that support will ask for. */
export function ErrorNotice({
  error,
  actions,
  onRetry,
}: {
  error: unknown;
  actions?: ReactNode;
  /** Reads again what could not be read. */
  onRetry?: () => void;
}) {
  const known = error instanceof APIError ? error : null;
  const message = known?.message ?? (error instanceof Error ? error.message : String(error));
  // The message often names the problem of a field already.
  const fields = error instanceof errors.ValidationError ? error.fields : [];
  const problems = fields.filter((problem) => !message.includes(problem.message));
  // To read it again helps only if the service did not answer as it should.
  const retry = onRetry && (!known || known.status === 0 || known.status >= 500) && (
    <Button icon="retry" onClick={() => onRetry()}>
      Try again
    </Button>
  );
  return (
    <div role="alert">
      <Notice
        tone="bad"
        actions={
          (actions || retry) && (
            <>
              {actions}
              {retry}
            </>
          )
        }
      >
        <p>
          <SafeText>{message}</SafeText>
        </p>
        {problems.map((problem) => (
          <p key={problem.field} className="small">
            <code>{problem.field}</code>: <SafeText>{problem.message}</SafeText>
          </p>
        ))}
        {known?.status === 0 && known.code !== 'LOST' && (
          <p className="small soft">Check your connection and try again.</p>
        )}
        {known?.requestId && (
          <p className="tiny faint">
            Request <code>{known.requestId}</code>
          </p>
        )}
      </Notice>
    </div>
  );
}
