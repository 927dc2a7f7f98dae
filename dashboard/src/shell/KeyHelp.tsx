import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Kbd } from '../ui/Kbd';

const groups: { name: string; keys: [string[], string][] }[] = [
  {
    name: 'Inbox',
    keys: [
      [['J', 'K'], 'Next, previous'],
      [['X'], 'Select'],
      [['↵'], 'Open'],
    ],
  },
  {
    name: 'Decide',
    keys: [
      [['A'], 'Approve'],
      [['E'], 'Edit'],
      [['R'], 'Reject'],
      [['N'], 'Not now'],
    ],
  },
  {
    name: 'Go to',
    keys: [
      [['G', 'I'], 'Inbox'],
      [['G', 'T'], 'Tasks'],
      [['G', 'A'], 'Agents'],
      [['G', 'S'], 'Tool servers'],
      [['G', 'M'], 'Money'],
    ],
  },
  {
    name: 'Anywhere',
    keys: [
      [['C'], 'New task'],
      [['/'], 'Search'],
      [['⌘', '↵'], 'Submit the form'],
      [['Esc'], 'Close'],
    ],
  },
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title="Keyboard shortcuts"
      onClose={onClose}
      onSubmit={onClose}
      actions={<Button onClick={onClose}>Close</Button>}
    >
      <div className="keys">
        {groups.map((group) => (
          <div key={group.name}>
            <h3>{group.name}</h3>
            <dl>
              {group.keys.map(([names, does]) => (
                <div key={does} className="key-line">
                  <dt>
                    {names.map((name) => (
                      <Kbd key={name}>{name}</Kbd>
                    ))}
                    <span className="sr">{names.join(' then ')}</span>
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
