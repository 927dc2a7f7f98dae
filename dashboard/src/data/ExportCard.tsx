import { useMutation } from '@tanstack/react-query';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { download, today } from '../ui/download';
import { ErrorNotice, Notice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { isComplete } from './form';
import { strings } from './strings';

/** A file with everything that the account owns. */
export function ExportCard() {
  const save = useMutation({
    mutationFn: async () => {
      let lines = '';
      const texts = new TextDecoder();
      for await (const piece of api.data.export()) lines += texts.decode(piece, { stream: true });
      if (!isComplete(lines)) return false;
      download(`rota-export-${today()}.ndjson`, 'application/x-ndjson', lines);
      return true;
    },
    onSuccess: (complete) => complete && toast(strings.exported),
  });
  return (
    <section className="card" aria-labelledby="export">
      <div className="card-head">
        <h3 id="export">{strings.export}</h3>
      </div>
      <div className="card-pad stack-4">
        <p className="soft">{strings.exportHint}</p>
        {save.error && <ErrorNotice error={save.error} />}
        {save.data === false && <Notice tone="bad">{strings.cutOff}</Notice>}
        <p className="row">
          <Button busy={save.isPending} onClick={() => save.mutate()}>
            {strings.exportAction}
          </Button>
        </p>
      </div>
    </section>
  );
}
