// Calls to the API, and the values that this tab stores.

export const PATHS = {
  me: "api/me",
  balance: "api/credits/balance",
  subscription: "api/subscriptions",
  pass: "api/addons/connect-pass/billing",
};

// Stored in this tab only: the token, the selected account and the pending payment.
export const stored = {
  get: (name) => sessionStorage.getItem(`rota.${name}`),
  set: (name, value) => sessionStorage.setItem(`rota.${name}`, value),
  remove: (...names) => names.forEach((name) => sessionStorage.removeItem(`rota.${name}`)),
};

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// A request without a response is repeated with the same idempotency key.
const pendingKeys = new Map();

function keyOf(request) {
  if (!pendingKeys.has(request)) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    pendingKeys.set(request, `billing-${hex}`);
  }
  return pendingKeys.get(request);
}

export async function send(method, path, body) {
  const headers = { Authorization: `Bearer ${stored.get("token")}` };
  if (stored.get("account")) headers["X-Service-Account"] = stored.get("account");
  if (body) headers["Content-Type"] = "application/json";
  const request = JSON.stringify([method, path, body, stored.get("account")]);
  if (method === "POST") headers["Idempotency-Key"] = keyOf(request);
  let response, result;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    result = await response.json();
  } catch {
    throw new Problem("The service did not respond. Check your connection and try again.");
  }
  pendingKeys.delete(request);
  if (!response.ok) {
    throw new Problem(result.error?.message ?? "Something went wrong. Try again.", response.status);
  }
  return result;
}

export const get = (path) => send("GET", path);
