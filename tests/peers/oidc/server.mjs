// A certified OpenID Connect provider that the sign-in tests run against:
//   node server.mjs <port>
// It exits when its standard input closes, so it does not outlive the tests.
import { generateKeyPairSync } from 'node:crypto';
import * as oidc from 'oidc-provider';

const Provider = oidc.default ?? oidc.Provider;
const port = Number(process.argv[2]);
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'spa',
      redirect_uris: ['http://127.0.0.1:5173/callback'],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      application_type: 'native',
    },
    {
      client_id: 'cli',
      redirect_uris: [],
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
      response_types: [],
      application_type: 'native',
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
  cookies: { keys: ['tests only'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.test`, email_verified: true, name: id }),
  }),
});

provider.listen(port, '127.0.0.1');
process.stdin.resume().on('end', () => process.exit());
