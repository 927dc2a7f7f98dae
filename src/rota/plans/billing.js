// The billing page: shows what the API says of an account, and leads to where one pays.
"use strict";

const LOOKS = 30;
const LOOK_EVERY_MS = 1000;
const ROWS = 20;
const MOST_ROWS = 100;
const PATHS = {
  me: "api/me",
  balance: "api/credits/balance",
  subscription: "api/subscriptions",
  pass: "api/addons/connect-pass/billing",
};

const $ = (id) => document.getElementById(id);

// What is sold here: plans, or the connect pass. The same for everybody.
let offer = null;
let rows = ROWS;

// Kept in this tab only: who uses the page, for which account, and what they went to pay for.
const kept = {
  get: (name) => sessionStorage.getItem(`rota.${name}`),
  set: (name, value) => sessionStorage.setItem(`rota.${name}`, value),
  drop: (...names) => names.forEach((name) => sessionStorage.removeItem(`rota.${name}`)),
};

// ---- Talking to the API

class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// A request that got no answer is sent again with the key that it had.
const unanswered = new Map();

function keyOf(request) {
  if (!unanswered.has(request)) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    unanswered.set(request, `billing-${hex}`);
  }
  return unanswered.get(request);
}

async function ask(method, path, body) {
  const headers = { Authorization: `Bearer ${kept.get("token")}` };
  if (kept.get("account")) headers["X-Service-Account"] = kept.get("account");
  if (body) headers["Content-Type"] = "application/json";
  const request = JSON.stringify([method, path, body, kept.get("account")]);
  if (method === "POST") headers["Idempotency-Key"] = keyOf(request);
  let answer, said;
  try {
    answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    said = await answer.json();
  } catch {
    throw new Problem("The service did not answer. Check your connection and try again.");
  }
  unanswered.delete(request);
  if (!answer.ok) {
    throw new Problem(said.error?.message ?? "Something went wrong. Try again.", answer.status);
  }
  return said;
}

const get = (path) => ask("GET", path);

// ---- Words

const dollars = (cents) =>
  `${cents < 0 ? "−" : ""}$${(Math.abs(cents) / 100).toLocaleString("en", {
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  })}`;

// What was spent rounds up, as everywhere in the API.
const spent = (usd) => dollars(Math.ceil(Math.round(usd * 1e6) / 1e4));

const price = (cents) => (cents % 100 ? dollars(cents) : `$${(cents / 100).toLocaleString("en")}`);

// Calls cost fractions of a cent: as many places as there are.
const exactly = (usd) =>
  `$${Math.abs(usd).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`;

const titled = (word) => word[0].toUpperCase() + word.slice(1).toLowerCase();

const onDay = (time) =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

const atTime = (time) =>
  new Date(time).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  });

const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

function wordsOf(transaction) {
  // The end of an id tells tasks apart. It stays on one line.
  const task = `task\u00a0…\u2060${transaction.taskId?.slice(-6)}`;
  const words = {
    allowance: "Monthly allowance",
    expiry: "Unused allowance, expired",
    top_up: "Top-up",
    refund: "Refund",
    hold: `Held for ${task}`,
    release: `Given back by ${task}`,
    charge: `Model call, ${transaction.model}, ${task}`,
  };
  return words[transaction.kind] ?? transaction.description;
}

// ---- Pieces of the page

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function say(notice, problem = "") {
  $("notice").textContent = notice;
  $("problem").textContent = problem;
}

function fail(error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) signOut();
  say("", error.message);
}

// A button does one thing at a time, and says so.
function button(text, style, act) {
  const made = make("button", { type: "button", className: style }, text);
  made.addEventListener("click", () => busy(made, act));
  return made;
}

async function busy(pressed, act) {
  pressed.disabled = true;
  say("");
  try {
    await act();
  } catch (error) {
    fail(error);
  } finally {
    pressed.disabled = false;
  }
}

const BADGES = {
  ACTIVE: ["Active", "good"],
  TRIALING: ["Trial", "good"],
  PAST_DUE: ["Payment due", "warn"],
  ENDING: ["Ending", "warn"],
};

function badge(id, bought, otherwise) {
  const status = bought?.cancelAtPeriodEnd ? "ENDING" : (bought?.status ?? otherwise);
  const [text, style] = BADGES[status] ?? ["", ""];
  $(id).textContent = text;
  $(id).className = `badge ${style}`;
  $(id).hidden = !text;
}

// ---- What there is

function showWho(me) {
  const several = me.accounts.length > 1;
  const nameOf = (account) =>
    account.kind === "personal" && several ? `${account.name} (personal)` : account.name;
  $("account-name").textContent = several ? "" : nameOf(me.account);
  $("account-choice").hidden = !several;
  $("account").replaceChildren(
    ...me.accounts.map((each) => make("option", { value: each.id }, nameOf(each))),
  );
  $("account").value = me.account.id;
}

function showBalance(balance) {
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
    { warning: "Nearly used up. ", depleted: "Used up. " }[bar.status] ?? "";
  if (bar.resetsAt) $("allowance-note").append(`Starts afresh on ${onDay(bar.resetsAt)}.`);
}

// The whole month, so that a day has its place from the first on.
function showUsage(usage) {
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
    ? `The most in a day was ${spent(most)}. Days are UTC.`
    : "What tasks cost will be shown here, day by day.";
  $("chart").setAttribute("viewBox", `0 0 ${days} 100`);
  $("chart").setAttribute(
    "aria-label",
    `Cost by day in ${month}: ${total} in all, ${spent(most)} on the busiest day`,
  );
  $("chart").replaceChildren(
    ...usage.usage.map((day, n) => {
      const height = most && Number(day.costUsd) ? 2 + (98 * day.costUsd) / most : 0;
      const words = `${n + 1} ${month}: ${exactly(day.costUsd)}, ${counted(day.calls, "call")}`;
      return drawn(
        "g",
        {},
        drawn("title", {}, words),
        drawn("rect", { class: "room", x: n, y: 0, width: 1, height: 100 }),
        drawn("rect", { class: "day", x: n + 0.15, y: 100 - height, width: 0.7, height }),
      );
    }),
  );
}

function showTransactions({ transactions, total }) {
  $("no-transactions").hidden = total > 0;
  $("transactions").hidden = total === 0;
  $("more").hidden = total <= rows || rows >= MOST_ROWS;
  $("movements").replaceChildren(
    ...transactions.map((each) => {
      const came = each.amountMicros > 0;
      const amount = `${came ? "+" : "−"}${exactly(each.amountMicros / 1e6)}`;
      return make(
        "tr",
        {},
        make("td", { title: each.taskId ?? "" }, wordsOf(each)),
        make("td", { title: each.createdAt }, atTime(each.createdAt)),
        make("td", { className: came ? "number in" : "number" }, amount),
      );
    }),
  );
}

function showPlan({ subscription, effectiveTier }, account) {
  const live = subscription && subscription.status !== "CANCELLED" ? subscription : null;
  $("tier").textContent = titled(effectiveTier);
  badge("plan-status", live);
  $("plan-note").textContent = live ? planNote(live, effectiveTier) : "";
  const choices = offer.plans.filter((plan) => (plan.minSeats !== null) === isCompany(account));
  $("plan-choices").replaceChildren(
    ...(live?.cancelAtPeriodEnd ? [] : choices.map((plan) => choice(plan, live))),
  );
  $("plan-actions").replaceChildren();
  if (!live) return;
  $("plan-actions").append(
    live.cancelAtPeriodEnd
      ? button("Resume subscription", "main", () => change("resume", "The plan goes on."))
      : button("Cancel subscription", "quiet", () =>
          change("cancel", `The plan ends on ${onDay(live.currentPeriodEnd)}.`),
        ),
  );
}

const isCompany = (account) => account.kind === "company";

function planNote(live, effectiveTier) {
  const end = onDay(live.currentPeriodEnd);
  const named = (tier, seats) => titled(tier) + (seats ? ` with ${counted(seats, "seat")}` : "");
  const name = named(live.tier, live.seats);
  if (live.cancelAtPeriodEnd) return `${name} ends on ${end}. Nothing more will be charged.`;
  if (live.downgradeTarget) {
    return `${name} until ${end}, then ${named(live.downgradeTarget, live.downgradeSeats)}.`;
  }
  if (live.status === "PAST_DUE") {
    const failed = `The last payment for ${name} failed, and will be tried again.`;
    return effectiveTier === live.tier ? failed : `${failed} Until then you have ${titled(effectiveTier)}.`;
  }
  if (live.status === "TRIALING") return `${name} is free until ${end}, and paid for from then on.`;
  return `${name} renews on ${end}.`;
}

// One plan that can be had: what it costs, and the button that its state allows.
function choice(plan, live) {
  const seated = plan.minSeats !== null;
  const current = live?.tier.toLowerCase() === plan.name;
  const leaving = current && live.downgradeTarget;
  const coming = live?.downgradeTarget?.toLowerCase() === plan.name;
  const title = titled(plan.name);
  const per = seated ? "a month for each seat" : "a month";
  const words = make(
    "div",
    { className: "words" },
    title,
    make("small", {}, `${price(plan.priceCents)} ${per}, ${price(plan.includedCents)} allowance`),
  );
  const row = make("div", { className: seated ? "choice seated" : "choice" }, words);
  const seats = make("input", { type: "number", min: plan.minSeats });
  seats.value = Math.max(plan.minSeats ?? 1, live?.downgradeSeats ?? live?.seats ?? 1);
  if (seated) row.append(make("label", {}, "Seats", seats));
  const send = () => subscribe(plan.name, seated ? Number(seats.value) : undefined);
  if (!live) row.append(button(`Subscribe to ${title}`, "", send));
  else if (leaving) row.append(button(`Keep ${title}`, "", send));
  else if ((current || coming) && seated) row.append(button("Change seats", "", send));
  else if (current) row.append(make("span", { className: "soft" }, "Your plan"));
  else if (coming) row.append(make("span", { className: "soft" }, "Your next plan"));
  else row.append(button(`Change to ${title}`, "", send));
  return row;
}

function showPass({ billing, trial }) {
  const live = billing && billing.status !== "CANCELLED" ? billing : null;
  badge("pass-status", live, trial?.active ? "TRIALING" : null);
  const monthly = `${price(offer.passCents)} a month`;
  $("pass-note").textContent = passNote(live, trial, monthly);
  $("pass-actions").replaceChildren();
  const add = (...made) => $("pass-actions").append(button(...made));
  if (!live) add(`Buy for ${monthly}`, "main", () => checkout("pass", "api/addons/connect-pass/checkout"));
  if (billing?.canCancel) {
    const words = `The connect pass ends on ${onDay(billing.currentPeriodEnd)}.`;
    add("Cancel connect pass", "quiet", () => changePass("cancel", words));
  }
  if (billing?.canResume) {
    add("Resume connect pass", "main", () => changePass("resume", "The connect pass goes on."));
  }
}

function passNote(live, trial, monthly) {
  if (live?.cancelAtPeriodEnd) {
    return `Ends on ${onDay(live.currentPeriodEnd)}. Nothing more will be charged.`;
  }
  if (live?.status === "PAST_DUE") return "The last payment failed, and will be tried again.";
  if (live) return `Renews on ${onDay(live.currentPeriodEnd)} for ${monthly}.`;
  if (trial?.active) return `Free until ${onDay(trial.endsAt)}. The trial ends by itself.`;
  return trial ? `The free trial ended on ${onDay(trial.endsAt)}.` : "";
}

// ---- What people do

async function signIn(token) {
  kept.drop("account");
  kept.set("token", token);
  await load();
  $("token").value = "";
  $("title").focus();
}

function signOut() {
  kept.drop("token", "account", "paying");
  say("");
  askWho();
}

function askWho() {
  $("signed-in").hidden = $("who").hidden = true;
  $("signed-out").hidden = false;
  $("token").focus();
}

async function load() {
  const me = await get(PATHS.me).catch((error) => {
    if (error.status !== 403 || !kept.get("account")) throw error;
    // No longer a member of the account that was chosen.
    kept.drop("account");
    return get(PATHS.me);
  });
  const day = new Date().toISOString().slice(0, 10);
  const hasPass = offer.passCents !== null && !isCompany(me.account);
  const [balance, subscription, usage, transactions, pass] = await Promise.all([
    get(PATHS.balance),
    get(PATHS.subscription),
    get(`api/usage?from=${day.slice(0, 8)}01&to=${day}`),
    get(`api/credits/transactions?limit=${rows}`),
    hasPass ? get(PATHS.pass) : null,
  ]);
  showWho(me);
  showBalance(balance);
  showPlan(subscription, me.account);
  showUsage(usage);
  showTransactions(transactions);
  $("pass").hidden = !pass;
  if (pass) showPass(pass);
  $("signed-out").hidden = true;
  $("signed-in").hidden = $("who").hidden = false;
}

// What changes when a payment of that kind has arrived.
async function standing(kind) {
  const said = await get(kind === "topUp" ? PATHS.balance : PATHS[kind]);
  return JSON.stringify(kind === "topUp" ? said.totalLoadedCents : said);
}

async function checkout(kind, path, body) {
  const before = await standing(kind);
  const said = await ask("POST", path, body);
  if (!said.checkoutUrl) return said;
  if (!/^https?:/.test(said.checkoutUrl)) throw new Problem("The payment page has no address.");
  kept.set("paying", JSON.stringify({ kind, before }));
  location.assign(said.checkoutUrl);
  // The page is about to go; until then nothing is pressed twice.
  return new Promise(() => {});
}

async function subscribe(plan, seats) {
  const said = await checkout("subscription", "api/subscriptions/subscribe", { plan, seats });
  await changed(planNote(said.subscription, said.subscription.tier));
}

async function change(verb, words) {
  await ask("POST", `api/subscriptions/${verb}`);
  await changed(words);
}

async function changePass(verb, words) {
  await ask("POST", `api/addons/connect-pass/${verb}`);
  await changed(words);
}

async function changed(words) {
  await load();
  say(words);
  // The button that was pressed may be gone.
  $("notice").focus();
}

async function comeBack(how) {
  const { kind, before } = JSON.parse(kept.get("paying") ?? '{"kind": "topUp"}');
  kept.drop("paying");
  if (how === "cancelled") {
    say("Nothing was charged.");
    return;
  }
  const what = { topUp: "balance", subscription: "plan", pass: "connect pass" }[kind];
  if (!kept.get("token")) {
    say(`Payment received. Sign in to see your ${what}.`);
    return;
  }
  say(`Payment received, your ${what} will show it in a moment.`);
  const account = kept.get("account");
  const known = before ?? (await standing(kind));
  for (let look = 0; look < LOOKS; look++) {
    // Whoever signs out or goes to another account does not wait any more.
    if (!kept.get("token") || kept.get("account") !== account) return;
    if ((await standing(kind)) !== known) {
      await load();
      say(`Thank you. Your ${what} is up to date.`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  say(`The payment is on its way, but your ${what} does not show it yet. Look again in a few minutes.`);
}

// ---- The forms

function amountCents() {
  const typed = $("other").value.trim().replace(/^\$/, "");
  const chosen = document.querySelector("[name=amount]:checked")?.value ?? "";
  return Math.round(Number((typed || chosen).replace(",", ".")) * 100);
}

function showAmount() {
  const cents = amountCents();
  $("pay").textContent = cents > 0 ? `Pay ${dollars(cents)}` : "Pay";
}

function listen() {
  $("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = $("token").value.trim().replace(/^Bearer\s+/i, "");
    if (!/^[\x21-\x7e]+$/.test(token)) {
      say("", "A token or key is one word without spaces. Copy all of it.");
      return;
    }
    busy(event.submitter, () => signIn(token));
  });
  $("sign-out").addEventListener("click", signOut);
  $("account").addEventListener("change", () => {
    kept.set("account", $("account").value);
    busy($("account"), load);
  });
  $("overflow").addEventListener("change", () =>
    busy($("overflow"), async () => {
      try {
        await ask("PATCH", "api/credits/settings", { allowOverflow: $("overflow").checked });
      } catch (error) {
        $("overflow").checked = !$("overflow").checked;
        throw error;
      }
    }),
  );
  $("more").addEventListener("click", () =>
    busy($("more"), async () => {
      rows += ROWS;
      showTransactions(await get(`api/credits/transactions?limit=${rows}`));
    }),
  );
  // Either one of the amounts or another.
  const chips = document.querySelectorAll("[name=amount]");
  $("other").addEventListener("input", () => {
    for (const chip of chips) chip.checked = false;
    showAmount();
  });
  for (const chip of chips) {
    chip.addEventListener("change", () => {
      $("other").value = "";
      showAmount();
    });
  }
  $("top-up-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const cents = amountCents();
    if (!(cents >= 500 && cents <= 100000)) {
      say("", "Choose an amount from $5 to $1,000.");
      $("other").focus();
      return;
    }
    busy($("pay"), () => checkout("topUp", "api/credits/topup", { amountCents: cents }));
  });
}

async function start() {
  listen();
  // Told once: the address does not say it again when the page is loaded again.
  const how = new URLSearchParams(location.search).get("checkout");
  history.replaceState(null, "", location.pathname);
  try {
    offer = await (await fetch("billing/offer.json")).json();
    if (kept.get("token")) await load();
    else askWho();
    if (how) await comeBack(how);
  } catch (error) {
    if (!(error instanceof Problem)) console.error(error);
    fail(error instanceof Problem ? error : new Problem("The page did not load. Load it again."));
  }
}

// Whoever comes back with the browser's button finds the page as it is now.
addEventListener("pageshow", (event) => event.persisted && location.reload());
start();
