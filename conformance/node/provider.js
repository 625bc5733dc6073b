// Runs the certified oidc-provider at PORT for slotlock at URL, with a new key at each start.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Provider } from 'oidc-provider'

const { PORT, URL, REDIRECT_URI, SECRET } = process.env
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }
const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  clients: [
    {
      client_id: 'slotlock',
      client_secret: SECRET,
      redirect_uris: [REDIRECT_URI],
      backchannel_logout_uri: `${URL}/sign-on/school/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
  cookies: { keys: [SECRET] },
  features: { backchannelLogout: { enabled: true } },
  // Its own dispatcher refuses loopback addresses, such as that of the back channel here.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  findAccount: (_, accountId) => ({
    accountId,
    claims: () => ({
      sub: accountId,
      name: 'Ada Lovelace',
      email: `${accountId}@slotlock.test`,
      email_verified: true,
    }),
  }),
  jwks: { keys: [key] },
  pkce: { required: () => true },
})
for (const name of ['server_error', 'backchannel.error']) {
  provider.on(name, (_, error) => console.error(name, error))
}
provider.listen(Number(PORT), '127.0.0.1')
