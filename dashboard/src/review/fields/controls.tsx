import { useLayoutEffect, useRef } from 'react';
import { stringifyExact } from '../../api/exact';
import { Check, Input, Select, TextArea } from '../../ui/Field';
import { hasLongWord, SafeText, visible } from '../../ui/SafeText';
import { isDate, isTime, proposedText, resolve } from '../edits';
import { patternOf } from '../pattern';
import { strings } from '../strings';
import { kindWords, shownValue } from './display';
import { FieldFrame, FieldName, type FieldProps, Was, Without } from './FieldFrame';

const LONG = 34;
const grows = () => CSS.supports('field-sizing', 'content');

/** A text area as high as its text: nothing of what is decided is scrolled out of sight. */
export function GrowingText(props: React.TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const ref = useRef<HTMLTextAreaElement>(null);
  const { value } = props;
  useLayoutEffect(() => {
    const area = ref.current;
    if (!area || grows() || value === undefined) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight + 2}px`;
  }, [value]);
  // Text in a text area cannot be cut into pieces. Letters of one width are laid out at once.
  const isData = typeof value === 'string' && hasLongWord(value);
  return (
    <TextArea
      {...props}
      ref={ref}
      rows={1}
      dir="auto"
      spellCheck={false}
      className={['grow', isData && 'mono', props.className].filter(Boolean).join(' ')}
    />
  );
}

const dateWords = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeZone: 'UTC' });
const timeWords = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

function timeHint(format: string | undefined, text: string): string | undefined {
  if (format === 'date' && isDate(text)) return dateWords.format(new Date(text));
  if (format === 'date-time' && isTime(text)) return timeWords.format(new Date(text));
  return undefined;
}

/** People read an example. Only a pattern that has none is shown itself. */
function PatternHint({ pattern }: { pattern: string }) {
  const example = patternOf(pattern)?.example;
  if (example) {
    return (
      <span title={visible(pattern)}>
        {strings.kinds.like} <SafeText>{example}</SafeText>
      </span>
    );
  }
  return (
    <>
      {strings.kinds.pattern}{' '}
      <code>
        <SafeText>{pattern}</SafeText>
      </code>
    </>
  );
}

/** What an empty control stands for. */
function emptyWord({ field, edit }: FieldProps): string {
  const value = edit && 'value' in edit ? edit.value : field.proposed;
  return Array.isArray(value) ? strings.emptyList : shownValue(value);
}

const textOf = ({ field, edit }: FieldProps): string =>
  edit && 'text' in edit ? edit.text : edit ? '' : proposedText(field);

export function TextField(props: FieldProps) {
  const { field, onEdit } = props;
  const text = textOf(props);
  const format = field.kind.is === 'text' ? field.kind.format : undefined;
  const pattern = field.kind.is === 'text' ? field.kind.pattern : undefined;
  const before = proposedText(field);
  // A date control shows nothing for a text that is not a date.
  const isDateInput = format === 'date' && (before === '' || isDate(before));
  const long = !isDateInput && (before.length > LONG || before.includes('\n'));
  const common = {
    value: text,
    placeholder: emptyWord(props),
    onChange: (event: { target: { value: string } }) => onEdit({ text: event.target.value }),
  };
  return (
    <FieldFrame
      {...props}
      wide={long}
      hint={
        <>
          {timeHint(format, text)} {pattern && <PatternHint pattern={pattern} />}
        </>
      }
    >
      {(control) =>
        long ? (
          <GrowingText {...control} {...common} />
        ) : (
          <Input
            {...control}
            {...common}
            dir="auto"
            type={isDateInput ? 'date' : 'text'}
            inputMode={format === 'email' ? 'email' : format === 'uri' ? 'url' : undefined}
            spellCheck={false}
          />
        )
      }
    </FieldFrame>
  );
}

export function NumberField(props: FieldProps) {
  const { field, onEdit } = props;
  const integer = field.kind.is === 'number' && field.kind.integer;
  const long = proposedText(field).length > LONG;
  return (
    <FieldFrame {...props} wide={long}>
      {(control) => (
        <Input
          {...control}
          value={textOf(props)}
          placeholder={emptyWord(props)}
          inputMode={integer ? 'numeric' : 'decimal'}
          onChange={(event) => onEdit({ text: event.target.value })}
        />
      )}
    </FieldFrame>
  );
}

export function ListField(props: FieldProps) {
  return (
    <FieldFrame {...props}>
      {(control) => (
        <GrowingText
          {...control}
          value={textOf(props)}
          placeholder={emptyWord(props)}
          onChange={(event) => props.onEdit({ text: event.target.value })}
        />
      )}
    </FieldFrame>
  );
}

export function JsonField(props: FieldProps) {
  return (
    <FieldFrame {...props} wide>
      {(control) => (
        <GrowingText
          {...control}
          className="mono"
          value={textOf(props)}
          placeholder={emptyWord(props)}
          onChange={(event) => props.onEdit({ text: event.target.value })}
        />
      )}
    </FieldFrame>
  );
}

export function ChoiceField(props: FieldProps) {
  const { field, edit, onEdit } = props;
  if (field.kind.is !== 'choice') return null;
  const { options, fixed } = field.kind;
  const now = resolve(field, edit);
  const value = 'value' in now ? now.value : undefined;
  const name = (option: unknown) => (option === undefined ? '' : stringifyExact(option));
  const long = options.some((option) => shownValue(option).length > LONG);
  return (
    <FieldFrame {...props} wide={long}>
      {(control) =>
        fixed && value !== undefined ? (
          <Input {...control} readOnly value={visible(shownValue(value))} />
        ) : (
          <Select
            {...control}
            value={name(value)}
            onChange={(event) =>
              onEdit({ value: options.find((option) => name(option) === event.target.value) })
            }
          >
            {field.required && value === undefined && <option value="">{strings.notSent}</option>}
            {options.map((option) => (
              <option key={name(option)} value={name(option)}>
                {visible(shownValue(option))}
              </option>
            ))}
          </Select>
        )
      }
    </FieldFrame>
  );
}

export function YesNoField(props: FieldProps) {
  const { field, edit, onEdit } = props;
  const now = resolve(field, edit);
  return (
    <div className={edit ? 'wide edited' : 'wide'}>
      <Check
        checked={'value' in now && now.value === true}
        onChange={(event) => onEdit({ value: event.target.checked })}
        label={
          <>
            <FieldName field={field} />{' '}
            <span className="type faint small">{strings.kinds.yesno}</span>
            {field.description && (
              <span className="hint block">
                <SafeText>{field.description}</SafeText>
              </span>
            )}
          </>
        }
      />
      <Was {...props} />
    </div>
  );
}

/** A list whose elements are chosen from a few. */
export function SeveralField(props: FieldProps) {
  const { field, edit, onEdit } = props;
  if (field.kind.is !== 'several') return null;
  const { options } = field.kind;
  const now = resolve(field, edit);
  const chosen = 'value' in now && Array.isArray(now.value) ? now.value : [];
  const toggle = (option: string, yes: boolean) => {
    const next = yes ? [...chosen, option] : chosen.filter((each) => each !== option);
    const { proposed } = field;
    const same =
      Array.isArray(proposed) &&
      proposed.length === next.length &&
      proposed.every((each) => next.includes(each));
    onEdit(same ? undefined : { value: next });
  };
  return (
    <fieldset className={edit ? 'wide edited arg' : 'wide arg'}>
      <legend className="label legend">
        <FieldName field={field} /> <span className="type">{kindWords(field)}</span>
      </legend>
      <div className="row row-wrap several">
        {options.map((option) => (
          <Check
            key={option}
            label={<SafeText>{option}</SafeText>}
            checked={chosen.includes(option)}
            onChange={(event) => toggle(option, event.target.checked)}
          />
        ))}
      </div>
      {field.description && (
        <p className="hint">
          <SafeText>{field.description}</SafeText>
        </p>
      )}
      <Was {...props} />
      <Without {...props} />
    </fieldset>
  );
}
