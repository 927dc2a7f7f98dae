import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { Icon } from './Icon';

interface FieldProps {
  label: ReactNode;
  /** What kind of value is wanted, in a quieter voice: "text, up to 35". */
  kind?: string;
  hint?: ReactNode;
  error?: string;
  className?: string;
  /** Gets the ids that its control needs. */
  children: (control: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': true | undefined;
  }) => ReactNode;
}

/** A label, a control, a hint and the message of an error, tied together for screen readers. */
export function Field({ label, kind, hint, error, className, children }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className={['field', className].filter(Boolean).join(' ')}>
      <label className="label" htmlFor={id}>
        {label} {kind && <span className="type">{kind}</span>}
      </label>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p className="error" id={`${id}-error`}>
          <Icon name="alert" small />
          {error}
        </p>
      )}
    </div>
  );
}

export function Input({
  className,
  ...rest
}: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
  return <input {...rest} className={['input', className].filter(Boolean).join(' ')} />;
}

export function TextArea({
  className,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
  return <textarea {...rest} className={['input', className].filter(Boolean).join(' ')} />;
}

export function Select({ children, ...rest }: SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <span className="select">
      <select {...rest} className="input">
        {children}
      </select>
      <Icon name="down" />
    </span>
  );
}

export function Check({
  label,
  className,
  type = 'checkbox',
  ...rest
}: { label: ReactNode; type?: 'checkbox' | 'radio' } & Omit<
  InputHTMLAttributes<HTMLInputElement>,
  'type'
>) {
  return (
    <label className={['check', className].filter(Boolean).join(' ')}>
      <input {...rest} type={type} /> <span>{label}</span>
    </label>
  );
}

export function SearchBox({
  label,
  shortcut,
  ...rest
}: { label: string; shortcut?: string } & InputHTMLAttributes<HTMLInputElement> & {
    ref?: Ref<HTMLInputElement>;
  }) {
  return (
    <label className="search">
      <span className="sr">{label}</span>
      <Icon name="search" />
      <input type="search" placeholder={label} {...rest} className="input" />
      {shortcut && (
        <span className="kbd" aria-hidden="true">
          {shortcut}
        </span>
      )}
    </label>
  );
}
