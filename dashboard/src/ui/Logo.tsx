export function Logo({ className }: { className?: string }) {
  return (
    <svg className={className} viewBox="0 0 16 16" aria-hidden="true">
      <path d="M8.75.79A7.25 7.25 0 0 1 14.62 10.96L10.17 8.38A2.2 2.2 0 0 0 8.75 5.93ZM13.87 12.26A7.25 7.25 0 0 1 2.13 12.26L4.18 11.07A4.9 4.9 0 0 0 11.82 11.07ZM1.38 10.96A7.25 7.25 0 0 1 7.25.79L7.25 3.16A4.9 4.9 0 0 0 3.43 9.77Z" />
    </svg>
  );
}
