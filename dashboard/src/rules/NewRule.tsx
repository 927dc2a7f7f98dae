import type { Tool } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Json } from '../api/exact';
import { agentsQuery, serversQuery } from '../api/queries';
import { toolsQuery } from '../servers/queries';
import { Field, Select } from '../ui/Field';
import { visible } from '../ui/SafeText';
import { type Row, rowsOf } from './conditions';
import { RuleDialog } from './RuleDialog';
import { strings } from './strings';

interface Option {
  value: string;
  label: string;
}

function Choose({
  label,
  prompt,
  options,
  value,
  tried,
  onChange,
}: {
  label: string;
  prompt: string;
  options: Option[];
  value: string;
  tried: boolean;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} error={tried && !value ? strings.missing : undefined}>
      {(control) => (
        <Select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{prompt}</option>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {visible(option.label)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

/** Only these can be called by agents. */
const isUsable = (tool: Tool): boolean => tool.allowed && tool.accepted && !tool.changed;

/** A rule for any tool and agent. The service says if the agent cannot use the tool. */
export function NewRule({ onClose }: { onClose: () => void }) {
  const servers = useQuery(serversQuery).data?.servers ?? [];
  const agents = useQuery(agentsQuery).data ?? [];
  const [serverId, setServer] = useState('');
  const [tool, setTool] = useState('');
  const [agent, setAgent] = useState('');
  const [rows, setRows] = useState<Row[]>([]);
  const [tried, setTried] = useState(false);
  const found = useQuery({ ...toolsQuery(serverId), enabled: serverId !== '' });
  const tools = serverId ? (found.data?.tools ?? []).filter(isUsable) : [];
  const choose = (name: string) => {
    setTool(name);
    setRows(rowsOf(tools.find((each) => each.name === name)?.inputSchema as Json | undefined));
  };
  return (
    <RuleDialog
      title={strings.createTitle}
      subject={serverId && tool && agent ? { serverId, tool, agent } : null}
      rows={rows}
      onRows={setRows}
      onTry={() => setTried(true)}
      onClose={onClose}
    >
      <Choose
        label={strings.server}
        prompt={strings.chooseServer}
        options={servers.map(({ id, name }) => ({ value: id, label: name }))}
        value={serverId}
        tried={tried}
        onChange={(id) => {
          setServer(id);
          choose('');
        }}
      />
      <Choose
        label={strings.toolName}
        prompt={strings.chooseTool}
        options={tools.map(({ name }) => ({ value: name, label: name }))}
        value={tool}
        tried={tried}
        onChange={choose}
      />
      <Choose
        label={strings.agent}
        prompt={strings.chooseAgent}
        options={agents.map(({ name, displayName }) => ({ value: name, label: displayName }))}
        value={agent}
        tried={tried}
        onChange={setAgent}
      />
    </RuleDialog>
  );
}
