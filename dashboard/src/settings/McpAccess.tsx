import { CopyButton } from '../ui/CopyButton';
import { strings } from './strings';

const words = strings.mcp;

/** What a program that speaks MCP needs: the address, and a configuration without the secret. */
export function McpAccess() {
  const url = `${window.location.origin}/mcp`;
  const configuration = JSON.stringify(
    {
      mcpServers: {
        rota: { type: 'http', url, headers: { Authorization: `Bearer ${words.placeholder}` } },
      },
    },
    null,
    2,
  );
  return (
    <section className="card" aria-labelledby="mcp">
      <div className="card-pad stack-4">
        <div className="stack-0">
          <h3 id="mcp">{words.name}</h3>
          <p className="small soft">{words.hint}</p>
        </div>
        <div className="secret">
          <code>{url}</code>
          <CopyButton text={url} label={words.copyUrl} />
        </div>
        <figure className="snippet">
          <figcaption className="small">{words.configuration}</figcaption>
          <pre>{configuration}</pre>
          <CopyButton text={configuration} label={words.copyConfiguration} />
        </figure>
        <p className="small soft">{words.command}</p>
      </div>
    </section>
  );
}
