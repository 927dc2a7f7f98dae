/** Icons of 16 pixels, drawn with the colour of the text. */

const shapes = {
  inbox: (
    <path d="M2 9.5 3.8 3.6A1.5 1.5 0 0 1 5.2 2.5h5.6a1.5 1.5 0 0 1 1.4 1.1L14 9.5v2.5a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 12zM2 9.5h3.5l1 1.75h3l1-1.75H14" />
  ),
  tasks: (
    <path d="M6.5 4H14M6.5 8H14M6.5 12H14M2 4l.9.9L4.4 3.2M2 8l.9.9 1.5-1.7M2 12l.9.9 1.5-1.7" />
  ),
  agents: (
    <path d="M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM1.5 13.5c.3-2.4 2-3.8 4.5-3.8s4.2 1.4 4.5 3.8M10.8 2.8a2.3 2.3 0 0 1 0 4.4M12.3 10c1.2.6 2 1.8 2.2 3.5" />
  ),
  plug: <path d="M5.5 1.5v3M10.5 1.5v3M3.5 4.5h9V7a4.5 4.5 0 0 1-9 0zM8 11.5v3" />,
  money: (
    <path d="M1.5 4.5A1.5 1.5 0 0 1 3 3h10a1.5 1.5 0 0 1 1.5 1.5v7A1.5 1.5 0 0 1 13 13H3a1.5 1.5 0 0 1-1.5-1.5zM1.5 6.5h13M4 10h2.5" />
  ),
  settings: (
    <>
      <path d="M2 4.5h6.5M12.5 4.5H14M2 11.5h1.5M7.5 11.5H14" />
      <circle cx="10.5" cy="4.5" r="2" />
      <circle cx="5.5" cy="11.5" r="2" />
    </>
  ),
  plus: <path d="M8 3v10M3 8h10" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3 3" />
    </>
  ),
  right: <path d="m6 3.5 4.5 4.5L6 12.5" />,
  down: <path d="m3.5 6 4.5 4.5L12.5 6" />,
  left: <path d="M10 3.5 5.5 8l4.5 4.5" />,
  clock: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.5V8l2.3 1.5" />
    </>
  ),
  check: <path d="m3 8.5 3.3 3.3L13 4.8" />,
  x: <path d="m4 4 8 8M12 4l-8 8" />,
  pencil: <path d="m10.5 3 2.5 2.5-7.5 7.5-3 .5.5-3zM9 4.5 11.5 7" />,
  later: <path d="M13.5 9.8A6 6 0 1 1 6.2 2.5a4.8 4.8 0 0 0 7.3 7.3Z" />,
  shield: <path d="M8 1.8 13 3.5v4c0 3.2-2 5.4-5 6.7-3-1.3-5-3.5-5-6.7v-4zM5.7 8l1.6 1.6 3-3.2" />,
  alert: <path d="M8 2.2 14.3 13H1.7zM8 6.3v3.2M8 11.3v.1" />,
  info: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 7.3v3.5M8 5.1v.1" />
    </>
  ),
  lock: (
    <>
      <rect x="3" y="7" width="10" height="6.5" rx="1.5" />
      <path d="M5.3 7V5a2.7 2.7 0 0 1 5.4 0v2" />
    </>
  ),
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M3.5 10.5h-.5a1 1 0 0 1-1-1V3.5a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1V4" />
    </>
  ),
  key: (
    <>
      <circle cx="5.5" cy="10.5" r="3" />
      <path d="m7.7 8.3 5.8-5.8M11 5l1.8 1.8" />
    </>
  ),
  dots: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2" />,
  undo: <path d="M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M3 6.5l3-3M3 6.5l3 3" />,
  tool: (
    <path d="M13.3 4.6a3.3 3.3 0 0 1-4.4 4.3l-4.3 4.3a1.3 1.3 0 0 1-1.8-1.8l4.3-4.3a3.3 3.3 0 0 1 4.3-4.4L9.3 4.8l.3 1.6 1.6.3z" />
  ),
  model: <path d="M3 4.5h10M3 8h10M3 11.5h5.5" />,
  person: (
    <>
      <circle cx="8" cy="5" r="2.7" />
      <path d="M2.8 13.5c.4-2.8 2.4-4.3 5.2-4.3s4.8 1.5 5.2 4.3" />
    </>
  ),
  branch: (
    <>
      <circle cx="4" cy="3.5" r="1.5" />
      <circle cx="12" cy="12" r="1.5" />
      <path d="M4 5v4a3 3 0 0 0 3 3h3.5" />
    </>
  ),
  fork: (
    <>
      <circle cx="4" cy="3.5" r="1.5" />
      <circle cx="12" cy="3.5" r="1.5" />
      <circle cx="8" cy="12.5" r="1.5" />
      <path d="M4 5v1.5A1.5 1.5 0 0 0 5.5 8h5A1.5 1.5 0 0 0 12 6.5V5M8 8v3" />
    </>
  ),
  retry: <path d="M13.3 8A5.3 5.3 0 1 1 11.7 4.2L13.5 6M13.5 2.5V6H10" />,
  stop: <rect x="3.5" y="3.5" width="9" height="9" rx="1.5" />,
  rule: (
    <>
      <path d="M8 2v3.5M8 10.5V14M2 8h3.5M10.5 8H14" />
      <circle cx="8" cy="8" r="2.5" />
    </>
  ),
  go: <path d="M3 8h9.5M9 4.5 12.5 8 9 11.5" />,
  ext: <path d="M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3 7.5 8.5" />,
  bell: <path d="M3.5 11.5V7a4.5 4.5 0 0 1 9 0v4.5l1 .5h-11zM6.5 13.8h3" />,
  code: <path d="M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5" />,
  trash: <path d="M3 4.5h10M6.5 4.5v-2h3v2M4.2 4.5l.6 9h6.4l.6-9" />,
  data: (
    <path d="M13 4c0 1.1-2.2 2-5 2s-5-.9-5-2 2.2-2 5-2 5 .9 5 2ZM3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2" />
  ),
  file: <path d="M4 2h5l3 3v9H4zM9 2v3h3" />,
  hook: (
    <>
      <circle cx="4" cy="11" r="2" />
      <circle cx="12" cy="11" r="2" />
      <circle cx="8" cy="4" r="2" />
      <path d="M7 5.8 5 9.3M9 5.8l2 3.5M6 11h4" />
    </>
  ),
  cal: (
    <>
      <rect x="2.5" y="3.5" width="11" height="10" rx="1.5" />
      <path d="M2.5 6.5h11M5.5 2v2.5M10.5 2v2.5" />
    </>
  ),
};

export type IconName = keyof typeof shapes;

/** Decoration only: the word beside it, or the label of its button, says what it means. */
export function Icon({ name, small }: { name: IconName; small?: boolean }) {
  return (
    <svg className={small ? 'i i-s' : 'i'} viewBox="0 0 16 16" aria-hidden="true">
      {shapes[name]}
    </svg>
  );
}
