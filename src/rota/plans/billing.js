// The billing page: shows the account's data and starts payments.

import { PATHS, Problem, get, send, stored } from "./billing_api.js";
import { dollars, planNote } from "./billing_format.js";
import {
  $,
  isCompany,
  say,
  showBalance,
  showPass,
  showPlan,
  showTransactions,
  showUsage,
  showWho,
} from "./billing_view.js";

const CHECKS = 30;
const CHECK_INTERVAL_MS = 1000;
const ROWS = 20;
const MAX_ROWS = 100;

// What this variant sells: plans, or the connect pass.
let offer = null;
let rows = ROWS;

function fail(error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) signOut();
  say("", error.message);
}

async function run(control, action) {
  control.disabled = true;
  say("");
  try {
    await action();
  } catch (error) {
    fail(error);
  } finally {
    control.disabled = false;
  }
}

// ---- Actions

async function signIn(token) {
  stored.remove("account");
  stored.set("token", token);
  await load();
  $("token").value = "";
  $("title").focus();
}

function signOut() {
  stored.remove("token", "account", "paying");
  say("");
  askForToken();
}

function askForToken() {
  $("signed-in").hidden = $("who").hidden = true;
  $("signed-out").hidden = false;
  $("token").focus();
}

async function load() {
  const me = await get(PATHS.me).catch((error) => {
    if (error.status !== 403 || !stored.get("account")) throw error;
    // The user has left the selected account.
    stored.remove("account");
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
  showPlan(subscription, me.account, offer.plans, actions);
  showUsage(usage);
  showRows(transactions);
  $("pass").hidden = !pass;
  if (pass) showPass(pass, offer.passCents, actions);
  $("signed-out").hidden = true;
  $("signed-in").hidden = $("who").hidden = false;
}

function showRows(page) {
  showTransactions(page, page.total > rows && rows < MAX_ROWS);
}

// The state that changes when a payment of this kind arrives.
async function paymentState(kind) {
  const found = await get(kind === "topUp" ? PATHS.balance : PATHS[kind]);
  return JSON.stringify(kind === "topUp" ? found.totalLoadedCents : found);
}

async function checkout(kind, path, body) {
  const before = await paymentState(kind);
  const created = await send("POST", path, body);
  if (!created.checkoutUrl) return created;
  if (!/^https?:/.test(created.checkoutUrl)) throw new Problem("The payment page has no URL.");
  stored.set("paying", JSON.stringify({ kind, before }));
  location.assign(created.checkoutUrl);
  // The button stays disabled until the browser leaves the page.
  return new Promise(() => {});
}

async function subscribe(plan, seats) {
  const response = await checkout("subscription", "api/subscriptions/subscribe", { plan, seats });
  await reload(planNote(response.subscription, response.subscription.tier));
}

async function change(verb, notice) {
  await send("POST", `api/subscriptions/${verb}`);
  await reload(notice);
}

const buyPass = () => checkout("pass", "api/addons/connect-pass/checkout");

async function changePass(verb, notice) {
  await send("POST", `api/addons/connect-pass/${verb}`);
  await reload(notice);
}

const actions = { run, subscribe, change, buyPass, changePass };

async function reload(notice) {
  await load();
  say(notice);
  // The pressed button may no longer exist.
  $("notice").focus();
}

async function handleReturn(result) {
  const { kind, before } = JSON.parse(stored.get("paying") ?? '{"kind": "topUp"}');
  stored.remove("paying");
  if (result === "cancelled") {
    say("Nothing was charged.");
    return;
  }
  const subject = { topUp: "balance", subscription: "plan", pass: "connect pass" }[kind];
  if (!stored.get("token")) {
    say(`Payment received. Sign in to see your ${subject}.`);
    return;
  }
  say(`Payment received. Your ${subject} will show it in a moment.`);
  const account = stored.get("account");
  const previous = before ?? (await paymentState(kind));
  for (let check = 0; check < CHECKS; check++) {
    // Stop after a sign-out or a change of account.
    if (!stored.get("token") || stored.get("account") !== account) return;
    if ((await paymentState(kind)) !== previous) {
      await load();
      say(`Thank you. Your ${subject} is up to date.`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS));
  }
  say(`The payment is being processed. Check your ${subject} again in a few minutes.`);
}

// ---- Forms

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
      say("", "A token or key has no spaces. Copy all of it.");
      return;
    }
    run(event.submitter, () => signIn(token));
  });
  $("sign-out").addEventListener("click", signOut);
  $("account").addEventListener("change", () => {
    stored.set("account", $("account").value);
    run($("account"), load);
  });
  $("overflow").addEventListener("change", () =>
    run($("overflow"), async () => {
      try {
        await send("PATCH", "api/credits/settings", { allowOverflow: $("overflow").checked });
      } catch (error) {
        $("overflow").checked = !$("overflow").checked;
        throw error;
      }
    }),
  );
  $("more").addEventListener("click", () =>
    run($("more"), async () => {
      rows += ROWS;
      showRows(await get(`api/credits/transactions?limit=${rows}`));
    }),
  );
  // A preset amount or another amount, not both.
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
    run($("pay"), () => checkout("topUp", "api/credits/topup", { amountCents: cents }));
  });
}

async function start() {
  listen();
  // Removed from the URL, so that a reload does not show the message again.
  const result = new URLSearchParams(location.search).get("checkout");
  history.replaceState(null, "", location.pathname);
  try {
    offer = await (await fetch("billing/offer.json")).json();
    if (stored.get("token")) await load();
    else askForToken();
    if (result) await handleReturn(result);
  } catch (error) {
    if (!(error instanceof Problem)) console.error(error);
    fail(error instanceof Problem ? error : new Problem("The page did not load. Reload it."));
  }
}

// A page from the browser's back-forward cache shows old data.
addEventListener("pageshow", (event) => event.persisted && location.reload());
start();
