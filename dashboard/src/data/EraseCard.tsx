import { type Account, errors } from '@rota/sdk';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, whenSessionEnds } from '../api/client';
import { ConfirmDialog } from '../settings/ConfirmDialog';
import { forgetKept } from '../shell/kept';
import { useSignOut } from '../signin/useSignOut';
import { Button } from '../ui/Button';
import { Field, Input } from '../ui/Field';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

/** Erases the account, after its name was typed. Then it shows that the account has stopped. */
export function EraseCard({ account }: { account: Account }) {
  const [asking, setAsking] = useState(false);
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  const signOut = useSignOut();
  const erase = useMutation({
    mutationFn: () => api.data.erase({ name }, { maxRetries: 0 }),
    onSuccess: () => {
      setAsking(false);
      // This page says what has ended, and leads on.
      whenSessionEnds(undefined);
    },
  });
  const isOld = erase.error instanceof errors.RecentSignInRequiredError;
  if (erase.data) {
    return (
      <section className="card" aria-labelledby="ended">
        <div className="card-head">
          <h3 id="ended">{strings.ended}</h3>
        </div>
        <div className="card-pad stack-4" role="status">
          <p>{strings.endedHint}</p>
          <p className="row">
            <Button
              look="primary"
              onClick={() => {
                forgetKept();
                // There is no session that could be ended. A new page knows nothing of the account.
                window.location.assign(account.kind === 'company' ? '/' : '/signin');
              }}
            >
              {strings.leave}
            </Button>
          </p>
        </div>
      </section>
    );
  }
  return (
    <section className="card" aria-labelledby="erase">
      <div className="card-head">
        <h3 id="erase">{strings.erase}</h3>
      </div>
      <div className="card-pad stack-4">
        <p className="soft">{strings.eraseHint}</p>
        <p className="row">
          <Button
            look="danger"
            onClick={() => {
              erase.reset();
              setName('');
              setTried(false);
              setAsking(true);
            }}
          >
            {strings.eraseAction}
          </Button>
        </p>
      </div>
      {asking && (
        <ConfirmDialog
          title={strings.eraseTitle}
          action={strings.eraseAction}
          busy={erase.isPending}
          error={isOld ? undefined : erase.error}
          onConfirm={() => {
            setTried(true);
            if (name === account.name) erase.mutate();
          }}
          onClose={() => setAsking(false)}
        >
          <p>{strings.eraseWarning}</p>
          <Field
            label={strings.nameLabel}
            hint={<SafeText>{strings.typeName(account.name)}</SafeText>}
            {...(tried && name !== account.name ? { error: strings.nameWrong } : {})}
          >
            {(control) => (
              <Input
                {...control}
                autoComplete="off"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          {isOld && (
            <Notice tone="wait">
              {strings.signInAgain}{' '}
              <Button
                onClick={() => {
                  // A message would be behind the dialog.
                  setAsking(false);
                  void signOut();
                }}
              >
                {strings.toSignIn}
              </Button>
            </Notice>
          )}
        </ConfirmDialog>
      )}
    </section>
  );
}
