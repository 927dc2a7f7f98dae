import { useState } from 'react';
import { Check } from '../ui/Field';
import { chooseTheme, chosenTheme, type Theme } from '../ui/theme';
import { SectionHead } from './SectionHead';
import { strings } from './strings';

const words = strings.appearance;

const themes: { name: Theme; label: string; hint: string }[] = [
  { name: 'system', label: words.system, hint: words.systemHint },
  { name: 'light', label: words.light, hint: words.lightHint },
  { name: 'dark', label: words.dark, hint: words.darkHint },
];

export function Appearance() {
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <>
      <SectionHead title={words.name} hint={words.hint} />
      <fieldset className="card card-pad stack-4">
        <legend className="sr">{words.theme}</legend>
        <p className="strong" aria-hidden="true">
          {words.theme}
        </p>
        {themes.map(({ name, label, hint }) => (
          <Check
            key={name}
            type="radio"
            name="theme"
            checked={theme === name}
            onChange={() => {
              chooseTheme(name);
              setTheme(name);
            }}
            label={
              <>
                {label}
                <span className="block small soft">{hint}</span>
              </>
            }
          />
        ))}
      </fieldset>
    </>
  );
}
