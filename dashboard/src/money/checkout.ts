/** Leaving for the page of the payment processor. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import { newIdempotencyKey } from '../api/client';
import { useAccount } from '../shell/account';
import { rememberPayment } from './pending';
import { paymentStateQuery } from './queries';
import { strings } from './strings';

export type PaymentKind = 'topUp' | 'plan' | 'pass';

/**
 * A key for each action. The same request again, after an error, is the same action; `forget`
 * starts over.
 */
export function useActionKeys() {
  const made = useRef(new Map<string, string>());
  const keyOf = useCallback((request: string): string => {
    const key = made.current.get(request) ?? newIdempotencyKey();
    made.current.set(request, key);
    return key;
  }, []);
  const forget = useCallback(() => made.current.clear(), []);
  return { keyOf, forget };
}

export function checkoutAddress(url: string): string {
  const { protocol, href } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:') throw new Error(strings.badCheckout);
  return href;
}

/**
 * Starts a payment. `create` gets the action's key and returns the address of the page to pay at,
 * or null if there was nothing to pay. The button stays busy until the browser has left.
 */
export function useCheckout(kind: PaymentKind, onDone?: () => void) {
  const account = useAccount();
  const cache = useQueryClient();
  const { keyOf, forget } = useActionKeys();
  // Whoever closes the dialog, or leaves the page, does not want to pay any more.
  const isOpen = useRef(false);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  const { reset, ...mutation } = useMutation({
    mutationFn: async (action: {
      request: string;
      create: (key: string) => Promise<string | null>;
    }) => {
      // Without a network, it fails like the request after it, and does not wait for one.
      const before = await cache.fetchQuery({
        ...paymentStateQuery(kind),
        staleTime: 0,
        networkMode: 'always',
      });
      if (!isOpen.current) return;
      const url = await action.create(keyOf(action.request));
      if (url === null) {
        onDone?.();
        return;
      }
      if (!isOpen.current) return;
      const address = checkoutAddress(url);
      rememberPayment({ account, kind, before });
      location.assign(address);
      await new Promise(() => undefined);
    },
  });
  useEffect(() => {
    // Back from the payment page without a reload: the page is as it was left.
    const restored = (event: PageTransitionEvent) => {
      if (!event.persisted) return;
      forget();
      reset();
    };
    addEventListener('pageshow', restored);
    return () => removeEventListener('pageshow', restored);
  }, [forget, reset]);
  return mutation;
}
