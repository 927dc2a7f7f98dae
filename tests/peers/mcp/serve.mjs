// The reference server listens on all interfaces. This script makes it listen on 127.0.0.1 only.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, ...rest.filter((r) => typeof r === 'function'));
};
await import('./node_modules/@modelcontextprotocol/server-everything/dist/index.js');
