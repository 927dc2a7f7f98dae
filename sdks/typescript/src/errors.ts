/** The errors of the SDK: one class for each code of the API, and one for a lost connection. */
import type { FieldError, Review } from './generated/types.gen.ts';

/** The base class of all errors of the SDK. */
export class RotaError extends Error {
  /**
   * The Idempotency-Key of the request, if it had one. To find out what a request did whose response
   * was lost, call the method again with it: the request takes effect once.
   */
  idempotencyKey: string | null = null;
  /** Whether this or an earlier attempt of the request may have taken effect. */
  wasSent = false;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No response arrived: the service is not reachable, or the connection was cut. */
export class APIConnectionError extends RotaError {
  constructor(message: string, options: { cause?: unknown; wasSent?: boolean } = {}) {
    super(message, options);
    this.wasSent = options.wasSent ?? true;
  }
}

/** No response arrived within the timeout. */
export class APITimeoutError extends APIConnectionError {}

/** The task did not end in the time that `tasks.wait` was given. The task continues. */
export class WaitTimeoutError extends RotaError {}

/** A webhook's signature, time or receiver is not right. Do not process it. */
export class WebhookVerificationError extends RotaError {}

/** The response or event has an unexpected form: it is not from Rota, or this SDK is too old. */
export class UnreadableResponseError extends RotaError {
  override wasSent = true;
}

export interface ErrorFields {
  status?: number | undefined;
  code?: string | undefined;
  details?: unknown;
  requestId?: string | null | undefined;
  retryAfterS?: number | null | undefined;
}

/** The service refused the request or failed. */
export class APIError extends RotaError {
  /** The status that the code comes with. */
  static readonly usualStatus: number = 500;

  readonly status: number;
  readonly code: string | undefined;
  readonly details: unknown;
  /** Quote it when you report a problem. */
  readonly requestId: string | null;
  /** How long the service asks to wait before the next request. */
  readonly retryAfterS: number | null;

  constructor(message: string, fields: ErrorFields = {}) {
    super(message);
    this.status = fields.status ?? new.target.usualStatus;
    this.code = fields.code;
    this.details = fields.details ?? null;
    this.requestId = fields.requestId ?? null;
    this.retryAfterS = fields.retryAfterS ?? null;
  }
}

/** A field or parameter is not valid. */
export class ValidationError extends APIError {
  static override readonly usualStatus = 400;

  /** Each problem with the field that it is in. */
  get fields(): FieldError[] {
    return Array.isArray(this.details) ? (this.details as FieldError[]) : [];
  }
}

/**
 * The account has no room for more tool definitions. Disconnect a server, or connect one with fewer
 * tools.
 */
export class ToolsTooLargeError extends ValidationError {}

/** The API key or session token is missing, expired or not valid. */
export class AuthenticationError extends APIError {
  static override readonly usualStatus = 401;
}

/** The balance is too low, or a payment failed. */
export class PaymentRequiredError extends APIError {
  static override readonly usualStatus = 402;
}

/** The balance does not cover the budget of the task. */
export class InsufficientCreditsError extends PaymentRequiredError {}

/** The payment processor refused or did not respond. */
export class PaymentProcessorError extends PaymentRequiredError {}

/** The key's scopes, the account's tier or the role do not allow the request. */
export class PermissionDeniedError extends APIError {
  static override readonly usualStatus = 403;
}

/** The session is too old for this. Sign in again. */
export class RecentSignInRequiredError extends PermissionDeniedError {}

/** The caller shaped what is approved, so a second person has to approve it. */
export class SecondPersonRequiredError extends PermissionDeniedError {
  /** How the caller shaped it: `created` or `edited`, for example. */
  get because(): string[] {
    return (this.details as { because?: string[] } | null)?.because ?? [];
  }
}

/** The resource does not exist, or belongs to another account. */
export class NotFoundError extends APIError {
  static override readonly usualStatus = 404;
}

/** The path does not support the method. */
export class MethodNotAllowedError extends APIError {
  static override readonly usualStatus = 405;
}

/** The request arrived too slowly and was not handled. */
export class RequestTimeoutError extends APIError {
  static override readonly usualStatus = 408;
}

/** The resource is in a state that does not allow the request. */
export class ConflictError extends APIError {
  static override readonly usualStatus: number = 409;

  /**
   * What is wrong with the Idempotency-Key: `in_progress` if the first request with it has not ended,
   * `outcome_unknown` if that was interrupted and may have taken effect, and `key_reused` if it was
   * another request. Null if the conflict is not about the key.
   */
  get reason(): string | null {
    return (this.details as { reason?: string } | null)?.reason ?? null;
  }

  /** Whether the first request with the same Idempotency-Key has not ended. */
  get isInProgress(): boolean {
    // The message is what an older service sends.
    const start = 'A request with this Idempotency-Key is in progress';
    return this.reason === 'in_progress' || this.message.startsWith(start);
  }
}

/** The review has changed since it was shown. Nothing was decided. */
export class StaleReviewError extends ConflictError {
  /** The review that waits now. */
  get review(): Review {
    return (this.details as { review: Review }).review;
  }
}

/** The user or key that saved the schedule can no longer create its task. */
export class ScheduleOwnerInvalidError extends ConflictError {}

/** The body has more than 2 MiB. */
export class PayloadTooLargeError extends APIError {
  static override readonly usualStatus = 413;
}

/** The body is not JSON. */
export class UnsupportedMediaTypeError extends APIError {
  static override readonly usualStatus = 415;
}

/** The service does not serve the host name of the request. */
export class MisdirectedRequestError extends APIError {
  static override readonly usualStatus = 421;
}

/** The headers have more than 64 KiB. */
export class HeadersTooLargeError extends APIError {
  static override readonly usualStatus = 431;
}

/** The account sent too many requests (`RATE_LIMIT_EXCEEDED`), or too many at once (`RATE_LIMITED`). */
export class RateLimitError extends APIError {
  static override readonly usualStatus = 429;
}

/** The account has too much in progress at once. */
export class TooManyAtOnceError extends RateLimitError {}

/** The service failed. */
export class InternalServerError extends APIError {}

/** The service's database failed. */
export class DatabaseError extends InternalServerError {}

/** Something that the service needs is down. */
export class ServiceUnavailableError extends InternalServerError {
  static override readonly usualStatus = 503;
}

/** A tool server failed or refused a call. */
export class ToolServerError extends APIError {
  static override readonly usualStatus: number = 502;
}

/** A tool server did not answer in time. */
export class ToolServerTimeoutError extends ToolServerError {
  static override readonly usualStatus = 504;
}

/** The class of each code. */
export const BY_CODE: Readonly<Record<string, typeof APIError>> = {
  VALIDATION_ERROR: ValidationError,
  TOOLS_TOO_LARGE: ToolsTooLargeError,
  AUTHENTICATION_ERROR: AuthenticationError,
  INSUFFICIENT_CREDITS: InsufficientCreditsError,
  PAYMENT_PROCESSOR_ERROR: PaymentProcessorError,
  AUTHORIZATION_ERROR: PermissionDeniedError,
  SECOND_PERSON_REQUIRED: SecondPersonRequiredError,
  RECENT_SIGN_IN_REQUIRED: RecentSignInRequiredError,
  NOT_FOUND: NotFoundError,
  METHOD_NOT_ALLOWED: MethodNotAllowedError,
  REQUEST_TIMEOUT: RequestTimeoutError,
  CONFLICT: ConflictError,
  SCHEDULE_OWNER_INVALID: ScheduleOwnerInvalidError,
  PAYLOAD_TOO_LARGE: PayloadTooLargeError,
  UNSUPPORTED_MEDIA_TYPE: UnsupportedMediaTypeError,
  MISDIRECTED_REQUEST: MisdirectedRequestError,
  HEADERS_TOO_LARGE: HeadersTooLargeError,
  RATE_LIMIT_EXCEEDED: RateLimitError,
  RATE_LIMITED: TooManyAtOnceError,
  INTERNAL_SERVER_ERROR: InternalServerError,
  DATABASE_ERROR: DatabaseError,
  TOOL_SERVER_ERROR: ToolServerError,
  TOOL_SERVER_TIMEOUT: ToolServerTimeoutError,
  SERVICE_UNAVAILABLE: ServiceUnavailableError,
};

/** The class of a status whose code is not known. */
const BY_STATUS: Readonly<Record<number, typeof APIError>> = {
  400: ValidationError,
  401: AuthenticationError,
  402: PaymentRequiredError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
};

function classOf(code: unknown, status: number, details: unknown): typeof APIError {
  const known =
    typeof code === 'string' && Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  const found = known ?? BY_STATUS[status] ?? (status >= 500 ? InternalServerError : APIError);
  const waits = (details as { review?: unknown } | null | undefined)?.review;
  return found === ConflictError && waits ? StaleReviewError : found;
}

/** The error with the class of its code, or of its status if the code is not known. */
export function apiError(
  error: { code?: unknown; message?: unknown; details?: unknown },
  about: Omit<ErrorFields, 'code' | 'details'> = {},
): APIError {
  const { code, details } = error;
  const kind = classOf(code, about.status ?? 500, details);
  const message = typeof error.message === 'string' ? error.message : 'The service gave no reason.';
  return new kind(message, {
    ...about,
    code: typeof code === 'string' ? code : undefined,
    details,
  });
}
