export const strings = {
  title: 'Sign in to Rota',
  lead: 'See what your agents do, and decide what they may do.',
  continueWith: (name: string) => `Continue with ${name}`,
  unreachable: 'Cannot be reached at the moment',
  finishing: 'Signing in…',
  again: 'Start again',
  notSignedOut: (why: string) => `You may still be signed in. ${why}`,
  none: 'No identity provider is configured. Ask the operator to set ROTA_OIDC_ISSUERS.',
};
