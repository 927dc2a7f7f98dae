// Amounts, dates and descriptions as text.

export const dollars = (cents) =>
  `${cents < 0 ? "−" : ""}$${(Math.abs(cents) / 100).toLocaleString("en", {
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  })}`;

// Spent money rounds up, as in the API.
export const spent = (usd) => dollars(Math.ceil(Math.round(usd * 1e6) / 1e4));

export const price = (cents) =>
  cents % 100 ? dollars(cents) : `$${(cents / 100).toLocaleString("en")}`;

// Model calls cost fractions of a cent, so all decimals are shown.
export const exactly = (usd) =>
  `$${Math.abs(usd).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`;

export const capitalized = (word) => word[0].toUpperCase() + word.slice(1).toLowerCase();

export const onDay = (time) =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

export const atTime = (time) =>
  new Date(time).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  });

export const counted = (number, noun) =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export function describe(transaction) {
  // The end of the ID distinguishes tasks. The separators keep it on one line.
  const task = `task\u00a0…\u2060${transaction.taskId?.slice(-6)}`;
  const descriptions = {
    allowance: "Monthly allowance",
    expiry: "Unused allowance, expired",
    top_up: "Top-up",
    refund: "Refund",
    refund_reversal: "Refund that failed",
    dispute: "Payment disputed at the bank",
    dispute_reversal: "Disputed payment returned",
    hold: `Held for ${task}`,
    release: `Released by ${task}`,
    charge: `Model call, ${transaction.model}, ${task}`,
  };
  return descriptions[transaction.kind] ?? transaction.description;
}

export function planNote(live, effectiveTier) {
  const end = onDay(live.currentPeriodEnd);
  const named = (tier, seats) => capitalized(tier) + (seats ? ` with ${counted(seats, "seat")}` : "");
  const name = named(live.tier, live.seats);
  if (live.cancelAtPeriodEnd) return `${name} ends on ${end}. Nothing more will be charged.`;
  if (live.downgradeTarget) {
    return `${name} until ${end}, then ${named(live.downgradeTarget, live.downgradeSeats)}.`;
  }
  if (live.status === "PAST_DUE") {
    const failed = `The last payment for ${name} failed. It will be retried automatically.`;
    const current = capitalized(effectiveTier);
    return effectiveTier === live.tier ? failed : `${failed} Until then, your tier is ${current}.`;
  }
  if (live.status === "TRIALING") return `${name} is free until ${end}. After that, it is billed monthly.`;
  return `${name} renews on ${end}.`;
}

export function passNote(live, trial, monthly) {
  if (live?.cancelAtPeriodEnd) {
    return `Ends on ${onDay(live.currentPeriodEnd)}. Nothing more will be charged.`;
  }
  if (live?.status === "PAST_DUE") return "The last payment failed. It will be retried automatically.";
  if (live) return `Renews on ${onDay(live.currentPeriodEnd)} for ${monthly}.`;
  if (trial?.active) return `Free until ${onDay(trial.endsAt)}. The trial ends automatically.`;
  return trial ? `The free trial ended on ${onDay(trial.endsAt)}.` : "";
}
