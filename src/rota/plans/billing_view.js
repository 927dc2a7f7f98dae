// Builds the parts of the page from the API's responses.

import {
  atTime,
  capitalized,
  counted,
  describe,
  dollars,
  exactly,
  onDay,
  passNote,
  planNote,
  price,
  spent,
} from "./billing_format.js";

export const $ = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const created = Object.assign(document.createElement(tag), properties);
  created.append(...children);
  return created;
}

function svgElement(tag, attributes, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children);
  return created;
}

export function say(notice, problem = "") {
  $("notice").textContent = notice;
  $("problem").textContent = problem;
}

// `run` disables the button while its action runs.
function button(run, text, style, action) {
  const created = element("button", { type: "button", className: style }, text);
  created.addEventListener("click", () => run(created, action));
  return created;
}

const BADGES = {
  ACTIVE: ["Active", "good"],
  TRIALING: ["Trial", "good"],
  PAST_DUE: ["Payment due", "warn"],
  ENDING: ["Ending", "warn"],
};

function badge(id, live, fallback) {
  const status = live?.cancelAtPeriodEnd ? "ENDING" : (live?.status ?? fallback);
  const [text, style] = BADGES[status] ?? ["", ""];
  $(id).textContent = text;
  $(id).className = `badge ${style}`;
  $(id).hidden = !text;
}

export function showWho(me) {
  const several = me.accounts.length > 1;
  const nameOf = (account) =>
    account.kind === "personal" && several ? `${account.name} (personal)` : account.name;
  $("account-name").textContent = several ? "" : nameOf(me.account);
  $("account-choice").hidden = !several;
  $("account").replaceChildren(
    ...me.accounts.map((each) => element("option", { value: each.id }, nameOf(each))),
  );
  $("account").value = me.account.id;
}

export function showBalance(balance) {
  $("available").textContent = dollars(balance.totalAvailable);
  $("top-up").textContent = dollars(balance.topUpCents);
  $("reserved").textContent = dollars(balance.balance.reservedCents);
  const owed = balance.owedCents ?? 0;
  $("owed").textContent = dollars(owed);
  $("owed-row").hidden = $("owed-note").hidden = owed === 0;
  $("allowance").hidden = $("overflow-row").hidden = !balance.hasAllowance;
  $("overflow").checked = balance.allowOverflow;
  const bar = balance.usageBar;
  $("allowance-used").textContent = `${dollars(bar.used)} of ${dollars(bar.total)}`;
  $("allowance-bar").max = Math.max(bar.total, 1);
  $("allowance-bar").value = bar.used;
  $("allowance-bar").className = bar.status;
  $("allowance-note").textContent =
    { warning: "Almost used up. ", depleted: "Used up. " }[bar.status] ?? "";
  if (bar.resetsAt) $("allowance-note").append(`Resets on ${onDay(bar.resetsAt)}.`);
}

// The chart always spans the whole month.
export function showUsage(usage) {
  const today = new Date(usage.to);
  const month = today.toLocaleDateString("en-GB", { month: "long", timeZone: "UTC" });
  const days = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 0)).getUTCDate();
  const most = Math.max(...usage.usage.map((day) => Number(day.costUsd)));
  const total = spent(usage.totals.costUsd);
  $("usage-cost").textContent = total;
  $("usage-calls").textContent = `in ${counted(usage.totals.calls, "model call")}`;
  $("chart-first").textContent = `1 ${month}`;
  $("chart-last").textContent = `${days} ${month}`;
  $("usage").hidden = !usage.totals.calls;
  $("usage-note").textContent = usage.totals.calls
    ? `The highest cost in a day was ${spent(most)}. Days are in UTC.`
    : "The cost of tasks appears here, day by day.";
  $("chart").setAttribute("viewBox", `0 0 ${days} 100`);
  $("chart").setAttribute(
    "aria-label",
    `Cost by day in ${month}: ${total} in total, ${spent(most)} on the most expensive day`,
  );
  $("chart").replaceChildren(
    ...usage.usage.map((day, n) => {
      const height = most && Number(day.costUsd) ? 2 + (98 * day.costUsd) / most : 0;
      const label = `${n + 1} ${month}: ${exactly(day.costUsd)}, ${counted(day.calls, "call")}`;
      return svgElement(
        "g",
        {},
        svgElement("title", {}, label),
        svgElement("rect", { class: "room", x: n, y: 0, width: 1, height: 100 }),
        svgElement("rect", { class: "day", x: n + 0.15, y: 100 - height, width: 0.7, height }),
      );
    }),
  );
}

export function showTransactions({ transactions, total }, hasMore) {
  $("no-transactions").hidden = total > 0;
  $("transactions").hidden = total === 0;
  $("more").hidden = !hasMore;
  $("movements").replaceChildren(
    ...transactions.map((each) => {
      const incoming = each.amountMicros > 0;
      const amount = `${incoming ? "+" : "−"}${exactly(each.amountMicros / 1e6)}`;
      return element(
        "tr",
        {},
        element("td", { title: each.taskId ?? "" }, describe(each)),
        element("td", { title: each.createdAt }, atTime(each.createdAt)),
        element("td", { className: incoming ? "number in" : "number" }, amount),
      );
    }),
  );
}

export function showPlan({ subscription, effectiveTier }, account, plans, actions) {
  const live = subscription && subscription.status !== "CANCELLED" ? subscription : null;
  $("tier").textContent = capitalized(effectiveTier);
  badge("plan-status", live);
  $("plan-note").textContent = live ? planNote(live, effectiveTier) : "";
  const choices = plans.filter((plan) => (plan.minSeats !== null) === isCompany(account));
  $("plan-choices").replaceChildren(
    ...(live?.cancelAtPeriodEnd ? [] : choices.map((plan) => choice(plan, live, actions))),
  );
  $("plan-actions").replaceChildren();
  if (!live) return;
  $("plan-actions").append(
    live.cancelAtPeriodEnd
      ? button(actions.run, "Resume subscription", "main", () =>
          actions.change("resume", "The plan continues."),
        )
      : button(actions.run, "Cancel subscription", "quiet", () =>
          actions.change("cancel", `The plan ends on ${onDay(live.currentPeriodEnd)}.`),
        ),
  );
}

export const isCompany = (account) => account.kind === "company";

// One plan: its price, and the button for its state.
function choice(plan, live, actions) {
  const seated = plan.minSeats !== null;
  const current = live?.tier.toLowerCase() === plan.name;
  const leaving = current && live.downgradeTarget;
  const next = live?.downgradeTarget?.toLowerCase() === plan.name;
  const title = capitalized(plan.name);
  const per = seated ? "a month for each seat" : "a month";
  const text = element(
    "div",
    { className: "words" },
    title,
    element("small", {}, `${price(plan.priceCents)} ${per}, ${price(plan.includedCents)} allowance`),
  );
  const row = element("div", { className: seated ? "choice seated" : "choice" }, text);
  const seats = element("input", { type: "number", min: plan.minSeats });
  seats.value = Math.max(plan.minSeats ?? 1, live?.downgradeSeats ?? live?.seats ?? 1);
  if (seated) row.append(element("label", {}, "Seats", seats));
  const subscribe = () => actions.subscribe(plan.name, seated ? Number(seats.value) : undefined);
  if (!live) row.append(button(actions.run, `Subscribe to ${title}`, "", subscribe));
  else if (leaving) row.append(button(actions.run, `Keep ${title}`, "", subscribe));
  else if ((current || next) && seated) row.append(button(actions.run, "Change seats", "", subscribe));
  else if (current) row.append(element("span", { className: "soft" }, "Your plan"));
  else if (next) row.append(element("span", { className: "soft" }, "Your next plan"));
  else row.append(button(actions.run, `Change to ${title}`, "", subscribe));
  return row;
}

export function showPass({ billing, trial }, priceCents, actions) {
  const live = billing && billing.status !== "CANCELLED" ? billing : null;
  badge("pass-status", live, trial?.active ? "TRIALING" : null);
  const monthly = `${price(priceCents)} a month`;
  $("pass-note").textContent = passNote(live, trial, monthly);
  $("pass-actions").replaceChildren();
  const add = (...options) => $("pass-actions").append(button(actions.run, ...options));
  if (!live) add(`Buy for ${monthly}`, "main", actions.buyPass);
  if (billing?.canCancel) {
    const notice = `The connect pass ends on ${onDay(billing.currentPeriodEnd)}.`;
    add("Cancel connect pass", "quiet", () => actions.changePass("cancel", notice));
  }
  if (billing?.canResume) {
    add("Resume connect pass", "main", () =>
      actions.changePass("resume", "The connect pass continues."),
    );
  }
}
